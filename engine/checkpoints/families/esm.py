"""ESM-2 (Lin et al. 2023) and ESM-1b (Rives et al. 2021), which read proteins, as transformers names them: BERT with
norms before the sublayers, rotary positions or RoBERTa's, and masks whose vectors are left out. ESMFold is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families import bart, bert
from engine.checkpoints.families.bert import CLASSES, POOLED, at_each_position, under
from engine.checkpoints.families.roberta import DENSE_CLASSIFIER, PADDING, POSITIONS, WITH_PADDING, WORDS
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import Key, Table, check_word, write_only_key
from engine.checkpoints.kinds import FLAG, ID, WORD
from engine.checkpoints.recomputed import SAME_FREQUENCIES, SAVED_FREQUENCIES

KINDS = {"rotary": ("rotary", "all"), "absolute": ("learned", "tokens")}  # of positions, and what of a text they count


def is_learned(theirs: Table) -> bool:
    named = theirs.get("position_embedding_type") or "absolute"
    return bool(check_word("position_embedding_type", named, KINDS) == KINDS["absolute"])


def read_token_dropout(dropped: bool, theirs: Table) -> Any:
    """The mask's id, where its vectors are left out."""
    return theirs["mask_token_id"] if dropped else None


KEYS = (
    *(
        key
        for key in bert.KEYS
        if key.theirs not in ("max_position_embeddings", "hidden_act", "type_vocab_size", "tie_word_embeddings")
    ),
    Key(
        "max_position_embeddings",
        "context",
        reads=lambda rows, theirs: rows - bart.OFFSET * is_learned(theirs),
        writes=lambda context, ours: context + bart.OFFSET * (ours["positions"]["kind"] == "learned"),
    ),
    Key(
        "position_embedding_type",
        ("positions.kind", "positions.counted"),
        default=KINDS["absolute"],
        values=KINDS,
        kind=WORD,
    ),
    Key("rope_theta", "positions.theta", default=10_000.0),
    Key("emb_layer_norm_before", "embedding.norm", default=False, kind=FLAG),
    Key(
        "token_dropout",
        "embedding.token_dropout",
        default=None,
        reads=read_token_dropout,
        writes=lambda mask, _: mask is not None,
        kind=FLAG,
    ),
    write_only_key("mask_token_id", lambda ours: ours["embedding"]["token_dropout"], kind=ID),
    Key("tie_word_embeddings", "tied", default=True),
)

ALWAYS = {
    "positions.padding": PADDING,
    "norm.kind": "layer",
    "norm.place": "before",
    "attention.mask": "full",
    "mlp.activation": "gelu",
}
NO_HEAD = ALWAYS | {"head.kind": "none"}

NAMES = {
    "attention.self.query": "attn.q",
    "attention.self.key": "attn.k",
    "attention.self.value": "attn.v",
    "attention.output.dense": "attn.out",
    "attention.LayerNorm": "norm1",
    "intermediate.dense": "mlp.pre",
    "output.dense": "mlp.out",
    "LayerNorm": "norm2",
}
PARTS = ("weight", "bias")
CONTACTS = tuple(f"esm.contact_head.regression.{part}" for part in PARTS)  # of which no logits are made
ROWS: tuple[tuple[Any, ...], ...] = (
    ("esm.embeddings.word_embeddings.weight", "embed.tokens.weight"),
    (POSITIONS.replace("roberta.", "esm."), ("embed.positions.weight", "embed.padded"), WITH_PADDING),
    ("esm.embeddings.position_ids", DROPPED, bert.POSITION_IDS),
    *((f"esm.embeddings.layer_norm.{part}", f"embed.norm.{part}") for part in PARTS),
    *(
        (f"esm.encoder.layer.{{}}.{theirs}.{part}", f"blocks.{{}}.{ours}.{part}")
        for theirs, ours in NAMES.items()
        for part in PARTS
    ),
    *((f"esm.encoder.emb_layer_norm_after.{part}", f"final_norm.{part}") for part in PARTS),
    ("esm.rotary_embeddings.inv_freq", DROPPED, SAVED_FREQUENCIES),
    ("esm.encoder.layer.{}.attention.self.rotary_embeddings.inv_freq", DROPPED, SAME_FREQUENCIES),
    ("esm.encoder.layer.*.attention.self.rotary_embeddings.inv_freq", DROPPED, SAME_FREQUENCIES),  # as 5.23 saves it
    *((name, DROPPED) for name in CONTACTS),
)
POOLER, NO_POOLER = under("esm.", bert.POOLER), under("esm.", bert.NO_POOLER)

LETTERS = (*(row for row in WORDS if isinstance(row[0], str)), ("lm_head.decoder.weight", "head.weight"))

BODY = Family(
    name="esm",
    architecture="EsmModel",
    keys=KEYS,
    always=NO_HEAD,
    only={"is_decoder": False, "add_cross_attention": False, "pad_token_id": PADDING, "is_folding_model": False},
    rows=ROWS,
    optional_prefix="esm.",
    old_spelling=bert.OLD_SPELLING,
    kept=CONTACTS,
    extra={"hidden_act": "gelu"},  # as published, and read by nobody
    defaults={
        name: value for name, value in bert.DEFAULTS.items() if name not in ("vocab_size", "max_position_embeddings")
    }
    | {"max_position_embeddings": 1026},
)
FAMILIES = (
    replace(
        BODY,
        architecture="EsmForMaskedLM",
        always=ALWAYS | {"head.kind": "masked", "head.bias": True},
        rows=(*ROWS, *LETTERS, *NO_POOLER),
        tied={"lm_head.decoder.weight": "esm.embeddings.word_embeddings.weight"},
        signs=("lm_head.dense.weight",),
    ),
    replace(
        BODY,
        architecture="EsmForSequenceClassification",
        keys=(*KEYS, CLASSES),
        always=ALWAYS | POOLED | {"head.kind": "sequence"},
        rows=(*ROWS, *DENSE_CLASSIFIER, *NO_POOLER),
        signs=("classifier.dense.weight",),
    ),
    at_each_position(BODY, "Esm", NO_POOLER)[0],
    replace(BODY, always=NO_HEAD | POOLED, rows=(*ROWS, *POOLER), signs=("esm.pooler.dense.weight",)),
    BODY,
)
