"""DeBERTa v2 and v3 (He et al. 2021, 2023), as transformers names them: BERT whose scores have terms of the distance.

The convolution of the two largest v2 models is refused. Files of v3 spell the head over words otherwise than those of
transformers, which always reads their words through the token vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from engine.checkpoints.families import bert
from engine.checkpoints.families.bert import ACTIVATION, CLASSES, CLASSIFIER, at_each_position, under
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import ACTIVATIONS, Key, Table, write_only_key
from engine.checkpoints.kinds import ANY, FLAG, WORD, integer, size

BOTH = ("c2p", "p2c")


def split_words(theirs: Table) -> tuple[str, ...]:
    """What config.json says of the terms, as a list or as words with | between them."""
    said = theirs.get("pos_att_type") or []
    return tuple(str(word).strip() for word in (said.lower().split("|") if isinstance(said, str) else said))


def read_terms(theirs: Table) -> tuple[str, ...]:
    """The terms that config.json names; transformers reads no other."""
    named = split_words(theirs)
    return tuple(term for term in BOTH if term in named)


def is_relative(theirs: Table) -> bool:
    return bool(theirs.get("relative_attention")) and bool(read_terms(theirs))


def is_biased(theirs: Table) -> bool:
    return theirs.get("position_biased_input") is not False


def read_positions(theirs: Table) -> tuple[str, bool]:
    """Kind of the positions, and whether learned ones stand beside disentangled ones."""
    if is_relative(theirs):
        return "disentangled", is_biased(theirs)
    return "learned" if is_biased(theirs) else "none", False


def read_scale(theirs: Table) -> float | None:
    """What scores are multiplied by, which the terms that are named change even where there are none."""
    if is_relative(theirs):
        return None
    width: int = theirs["hidden_size"] // theirs["num_attention_heads"]
    return float((width * (1 + len(read_terms(theirs)))) ** -0.5)


def choose_terms(theirs: Table) -> str:
    terms = read_terms(theirs)
    return "both" if len(terms) != 1 else terms[0]


def write_terms(ours: Table) -> list[str]:
    attention, positions = ours["attention"], ours["positions"]
    if positions["kind"] == "disentangled":
        return list(BOTH) if positions["terms"] == "both" else [positions["terms"]]
    return list(BOTH)[: round(1 / (attention["scale"] ** 2 * attention["d_head"])) - 1]


def every(read: Callable[[Table], Any]) -> dict[str, Any]:
    """How a key is read that several others decide, said or not."""
    return {"default": read, "reads": lambda _, theirs: read(theirs)}


def read_farthest(theirs: Table) -> int:
    said: int = theirs.get("max_relative_positions") or -1
    return said if said > 0 else theirs["max_position_embeddings"]


def read_width(width: int, theirs: Table) -> int | None:
    if width == theirs["hidden_size"]:
        return None
    if is_biased(theirs) or theirs.get("type_vocab_size"):
        raise ValueError(
            f"config.json's embedding_size must be {theirs['hidden_size']} where positions or segments are added, got "
            f"{width}: Loupe maps narrow vectors of tokens alone."
        )
    return width


KEYS = (
    *(key for key in bert.KEYS if key.theirs not in ("type_vocab_size", "layer_norm_eps", "tie_word_embeddings")),
    Key(
        "tie_word_embeddings",
        "tied",
        default=True,
        reads=lambda tied, theirs: tied or theirs.get("legacy") is False,  # whose head has no words of its own
    ),
    write_only_key("legacy", lambda _: True, kind=FLAG),
    Key("layer_norm_eps", "norm.eps", default=1e-7),
    Key("type_vocab_size", "embedding.segments", default=0, kind=size(0)),
    Key(
        "embedding_size",
        "embedding.width",
        default=None,
        reads=read_width,
        writes=lambda width, ours: ours["d_model"] if width is None else width,
    ),
    Key(
        "relative_attention",
        ("positions.kind", "positions.added"),
        **every(read_positions),
        writes=lambda values, _: values[0] == "disentangled",
        kind=FLAG,
    ),
    write_only_key(
        "position_biased_input",
        lambda ours: ours["positions"]["kind"] == "learned" or ours["positions"]["added"],
        kind=FLAG,
    ),
    Key(
        "pos_att_type",
        "positions.terms",
        **every(choose_terms),
        writes=lambda _, ours: write_terms(ours),
        kind=ANY,
    ),
    Key(
        "share_att_key",
        "positions.own_maps",
        default=True,
        reads=lambda shares, _: not shares,
        writes=lambda own, _: not own,
        kind=FLAG,
    ),
    Key(
        "norm_rel_ebd",
        "positions.normed",
        default=False,
        reads=lambda said, _: "layer_norm" in (word.strip() for word in said.lower().split("|")),
        writes=lambda normed, _: "layer_norm" if normed else "none",
        kind=WORD,
    ),
    Key(
        "position_buckets",
        "positions.buckets",
        default=0,
        reads=lambda buckets, _: max(buckets, 0),
        writes=lambda buckets, _: buckets or -1,
        kind=integer(-1),
    ),
    Key("max_relative_positions", "positions.farthest", **every(read_farthest), kind=integer(-1)),
)
ALWAYS = {
    "attention.scale": read_scale,
    "norm.kind": "layer",
    "norm.place": "after",
    "attention.mask": "full",
    "embedding.norm": True,
    "embedding.mapped": "tokens",
}
NO_HEAD = ALWAYS | {"head.kind": "none"}
GUESSES = ALWAYS | {"head.kind": "masked", "head.bias": True}

OWN = {"self.query": "self.query_proj", "self.key": "self.key_proj", "self.value": "self.value_proj"}
MAPS = {"pos_key_proj": "position_k", "pos_query_proj": "position_q"}
PARTS = ("weight", "bias")


def respell(name: str) -> str:
    """DeBERTa's name of a tensor of BERT's."""
    for theirs, own in OWN.items():
        name = name.replace(theirs, own)
    return name


ROWS: tuple[tuple[Any, ...], ...] = (
    *((respell(theirs), *ours) for theirs, *ours in under("deberta.", bert.ROWS)),
    ("deberta.embeddings.position_embeddings.weight", DROPPED),  # which transformers leaves out too
    ("deberta.embeddings.embed_proj.weight", "embed.mapped.weight"),
    ("deberta.encoder.rel_embeddings.weight", "distances.weight"),
    *((f"deberta.encoder.LayerNorm.{part}", f"distances_norm.{part}") for part in PARTS),
    *(
        (f"deberta.encoder.layer.{{}}.attention.self.{theirs}.{part}", f"blocks.{{}}.attn.{ours}.{part}")
        for theirs, ours in MAPS.items()
        for part in PARTS
    ),
)
POOLER = (
    ("pooler.dense.weight", "pooler.dense.weight"),
    ("pooler.dense.bias", "pooler.dense.bias"),
)
DISTANCES = tuple(row[0] for row in ROWS if row[1] is not None and row[1].startswith("distances"))
UNREAD = (
    *(  # of the discriminator
        (f"mask_predictions.{part}.{end}", DROPPED) for part in ("dense", "LayerNorm", "classifier") for end in PARTS
    ),
    *((name, DROPPED) for name in DISTANCES),  # where scores have no terms
)
OF_V3 = "lm_predictions.lm_head."

BODY = Family(
    name="deberta-v2",
    architecture="DebertaV2Model",
    keys=KEYS,
    always=NO_HEAD,
    only={"conv_kernel_size": 0},
    kept=DISTANCES,
    rows=(*ROWS, *UNREAD),
    optional_prefix="deberta.",
    old_spelling={
        f"{OF_V3}dense.": "cls.predictions.transform.dense.",
        f"{OF_V3}LayerNorm.": "cls.predictions.transform.LayerNorm.",
        f"{OF_V3}bias": "cls.predictions.bias",
    },
    defaults={
        "vocab_size": 128100,
        "hidden_size": 1536,
        "num_hidden_layers": 24,
        "num_attention_heads": 24,
        "intermediate_size": 6144,
        "max_position_embeddings": 512,
    },
)
FAMILIES = (
    replace(
        BODY,
        architecture="DebertaV2ForMaskedLM",
        keys=(*KEYS, ACTIVATION),
        always=GUESSES,
        rows=(*ROWS, *UNREAD, *bert.WORDS),
        tied={"cls.predictions.decoder.weight": "deberta.embeddings.word_embeddings.weight"},
        twins={"cls.predictions.decoder.bias": "cls.predictions.bias"},
        signs=("cls.predictions.transform.dense.weight",),
    ),
    replace(
        BODY,
        architecture="DebertaV2ForSequenceClassification",
        keys=(
            *KEYS,
            CLASSES,
            Key(
                "pooler_hidden_act",
                "head.pooler_activation",
                default="gelu",
                values=ACTIVATIONS | {"tanh": "tanh"},
                kind=WORD,
            ),
            write_only_key("pooler_hidden_size", lambda ours: ours["d_model"], kind=size(1)),
        ),
        always=ALWAYS | {"head.kind": "sequence", "head.pooler": True},
        rows=(*ROWS, *POOLER, *CLASSIFIER),
        signs=("classifier.weight", "pooler.dense.weight"),
    ),
    *at_each_position(BODY, "DebertaV2"),
    BODY,
)
