"""Conventions of published checkpoints for their SentencePiece file: other ids, more tokens, marks around a text.

The file alone does not say; `tokenizer_class` of tokenizer_config.json does, or `model_type` of config.json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, models
from tokenizers.processors import TemplateProcessing

from engine.tokenizers.classes import CLASSES, Settings, TokenizerClass, finish_class, name_class
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.jsonfile import check_ids, read_object
from engine.tokenizers.settings import read_settings
from engine.tokenizers.special import UNKNOWN as UNK
from engine.tokenizers.special import read_roles, register_special_tokens
from engine.tokenizers.spm import (
    CONTROL,
    NORMAL,
    UNIGRAM,
    UNKNOWN,
    UNKNOWN_COSTS,
    UNUSED,
    USER_DEFINED,
    Model,
    Piece,
    SentencePieceTokenizer,
    build_bpe,
    build_pipeline,
    build_unigram,
    read_model,
)

FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model", "source.spm")
TARGET, TARGET_VOCABULARY = "target.spm", "target_vocab.json"  # of a model whose source and target are cut differently
MOST_EXTRA = 10_000
PEGASUS_OFFSET = 103  # ids that pre-training used before those of the file (Zhang et al. 2020)


def keep_order(model: Model) -> Model:
    return model


def arrange_xlm_roberta(model: Model) -> Model:
    """fairseq's four first, then the file's without its own three, then the mask."""
    first = [Piece("<s>", 0.0, CONTROL), Piece("<pad>", 0.0, CONTROL), Piece("</s>", 0.0, CONTROL)]
    return model._replace(
        pieces=(*first, Piece(UNK, 0.0, UNKNOWN), *model.pieces[3:], Piece("<mask>", 0.0, CONTROL)),
        roles={"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "unk_token": UNK}
        | {"pad_token": "<pad>", "mask_token": "<mask>"},
    )


def arrange_camembert(model: Model) -> Model:
    """fairseq's five first, then the file's without its unknown, then the mask."""
    names = {"<s>NOTUSED": UNUSED, "<pad>": CONTROL, "</s>NOTUSED": UNUSED, UNK: UNKNOWN, "<unk>NOTUSED": UNUSED}
    first = (Piece(name, 0.0, kind) for name, kind in names.items())
    arranged = arrange_xlm_roberta(model)
    return arranged._replace(pieces=(*first, *model.pieces[1:], Piece("<mask>", 0.0, CONTROL)))


def arrange_pegasus(model: Model) -> Model:
    """The file's end and padding in places of their own, masks, and the unused ids of pre-training."""
    unused = (f"<unk_{id}>" for id in range(2, PEGASUS_OFFSET))
    first = [Piece(name, 0.0, CONTROL) for name in ("<pad>", "</s>", "<mask_1>", "<mask_2>", *unused)]
    unknown = Piece(UNK, 0.0, UNKNOWN)
    rest = [unknown if piece.type == UNKNOWN else piece for piece in model.pieces[2:]]
    roles = {"pad_token": "<pad>", "eos_token": "</s>", "mask_token": "<mask_2>", "unk_token": UNK}
    return model._replace(pieces=(*first, *rest), roles=roles)


def arrange_deberta(model: Model) -> Model:
    """The file's, and behind them the mask."""
    mask = Piece("[MASK]", 0.0, CONTROL)
    return model._replace(
        pieces=(*model.pieces, *(() if any(one.text == mask.text for one in model.pieces) else (mask,)))
    )


def arrange_marian(model: Model) -> Model:
    """`vocab.json` numbers the pieces of both languages, `target_vocab.json` where it is there those of the target; a
    text is cut by the pieces of its own language.

    A character that only the other one has costs what an unknown one does, and is found all the same.
    """
    path = model.path.with_name(TARGET_VOCABULARY)
    if model.path.name != TARGET or not path.is_file():
        path = model.path.with_name("vocab.json")
    if not path.is_file():
        raise ValueError(f"Expected vocab.json beside {model.path}, found none; fetch it too.")
    ids = check_ids(read_object(path), path)
    if UNK not in ids or sorted(ids.values()) != list(range(len(ids))):
        raise ValueError(f"Expected {path} to number its tokens from 0 without gaps, {UNK} among them; fetch it again.")
    cut = {piece.text: piece for piece in model.pieces}
    marks = {"</s>", "<pad>", *(entry for entry in ids if entry.startswith(">>") and entry.endswith("<<"))}
    types = dict.fromkeys(marks, CONTROL) | {UNK: UNKNOWN}
    unknown = min((piece.score for piece in model.pieces if piece.type == NORMAL), default=0.0) - UNKNOWN_COSTS

    def make_piece(entry: str) -> Piece:
        if entry in types:
            return Piece(entry, 0.0, types[entry])
        return cut.get(entry, Piece(entry, unknown, NORMAL if len(entry) == 1 else UNUSED))

    pieces = map(make_piece, sorted(ids, key=lambda entry: ids[entry]))
    roles = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": UNK}
    return model._replace(kind=UNIGRAM, pieces=tuple(pieces), roles=roles)


@dataclass(frozen=True)
class Convention:
    """Convention of a tokenizer class.

    `begins` and `ends`: whether a text stands between its begin and end tokens where no file says otherwise.
    """

    arrange: Callable[[Model], Model] = keep_order
    begins: bool = False
    ends: bool = False
    extra: int = 0  # sentinels <extra_id_0>, ..., numbered from the end
    between: tuple[str, ...] | None = None  # roles of the tokens between the texts of a pair; None: as if each alone


PLAIN, LLAMA, T5 = Convention(), Convention(begins=True), Convention(ends=True, extra=100)
MT5 = Convention(ends=True)
DEBERTA = Convention(arrange_deberta)
PEGASUS, MARIAN = Convention(arrange_pegasus, ends=True, between=()), Convention(arrange_marian, ends=True, between=())
CAMEMBERT = Convention(arrange_camembert, begins=True, ends=True, between=("eos_token", "eos_token"))
XLM_ROBERTA = Convention(arrange_xlm_roberta, begins=True, ends=True, between=("eos_token", "eos_token"))

OF_CLASS = {
    "Albert": PLAIN,
    "Camembert": CAMEMBERT,
    "CodeLlama": LLAMA,
    "DebertaV2": DEBERTA,
    "Gemma": LLAMA,
    "Llama": LLAMA,
    "MT5": MT5,
    "Marian": MARIAN,
    "Pegasus": PEGASUS,
    "Phi3": LLAMA,
    "T5": T5,
    "XLMRoberta": XLM_ROBERTA,
}
OF_TYPE = {
    "albert": PLAIN,
    "camembert": CAMEMBERT,
    "deberta-v2": DEBERTA,
    "gemma": LLAMA,
    "gemma2": LLAMA,
    "gemma3_text": LLAMA,
    "llama": LLAMA,
    "marian": MARIAN,
    "mistral": LLAMA,
    "mixtral": LLAMA,
    "mt5": MT5,
    "pegasus": PEGASUS,
    "phi3": LLAMA,
    "t5": T5,
    "xlm-roberta": XLM_ROBERTA,
}
NO_BEGIN = (
    "No begin token is put before a text, as in transformers 5; where the model was trained with one, add "
    '"add_bos_token": true to tokenizer_config.json.'
)
# whose white space or letters transformers reads in another way; the others' spans are better by sentencepiece's rules
OTHER_THAN_SENTENCEPIECE = ("Albert", "DebertaV2", "Gemma", "Llama", "Pegasus", "Phi3")


def find_sentencepiece_file(folder: Path) -> Path | None:
    """The file by one of its usual names."""
    return next((folder / name for name in FILES if (folder / name).is_file()), None)


def find_only_model_file(folder: Path) -> Path | None:
    """A file of any name that ends like one, where the folder has a single one."""
    found = sorted(path for path in folder.glob("*.model") if path.is_file()) if folder.is_dir() else []
    return found[0] if len(found) == 1 else None


def read_sentencepiece(path: Path) -> FastTokenizer:
    """The tokenizer of the checkpoint that `path` lies in. Raises ValueError, naming the file at fault."""
    config, _ = read_settings(path.parent)
    use = _choose_convention(path, config)
    tokenizer = _read_file(path, use)
    if use is MARIAN and (of_target := path.with_name(TARGET)).is_file():
        tokenizer.target = _read_file(of_target, use)
    return tokenizer


def _read_file(path: Path, use: Convention) -> FastTokenizer:
    folder = path.parent
    config, of_model = read_settings(folder)
    model = use.arrange(read_model(path))
    name = name_class(config, of_model)
    chosen = CLASSES.get(name)
    own_steps = name in OTHER_THAN_SENTENCEPIECE or config.get("add_prefix_space") is False
    if chosen is not None and own_steps and (chosen.model is models.Unigram) == (model.kind == UNIGRAM):
        tokenizer = _read_class(model, chosen, config, _read_extra_ids(path, config, use))
        if use.begins and chosen.keeps_marks and "add_bos_token" not in config:
            tokenizer.notes = (NO_BEGIN,)
        return tokenizer
    fast = build_pipeline(model)
    known = fast.get_vocab()
    sentinels = (f"<extra_id_{number}>" for number in reversed(range(_read_extra_ids(path, config, use))))
    fast.add_special_tokens([name for name in sentinels if name not in known])
    register_special_tokens(fast, folder)
    roles = {**model.roles, **read_roles(folder)}
    add_declared_marks(fast, roles, use, config)
    return SentencePieceTokenizer(fast, model, roles)


def _read_class(model: Model, chosen: TokenizerClass, settings: Settings, extra: int) -> FastTokenizer:
    """The file's vocabulary among the steps of its class, which are transformers' and not sentencepiece's."""
    fast = tokenizers.Tokenizer(build_unigram(model) if model.kind == UNIGRAM else build_bpe(model))
    added = [
        AddedToken(piece.text, normalized=False, special=piece.type != USER_DEFINED)
        for piece in model.pieces
        if piece.type in (UNKNOWN, CONTROL, USER_DEFINED)
    ]
    known = {piece.text for piece in model.pieces}
    sentinels = [f"<extra_id_{number}>" for number in reversed(range(extra))]
    added += [AddedToken(name, normalized=False, special=True) for name in sentinels if name not in known]
    return finish_class(fast, chosen, model.path, settings, model.charsmap, added)


def _choose_convention(path: Path, config: Mapping[str, Any]) -> Convention:
    named = name_class({"tokenizer_class": config.get("tokenizer_class")}, {})
    if named and named not in OF_CLASS:
        raise ValueError(
            f"Expected {path} to be read by one of {', '.join(OF_CLASS)}, got a {named}Tokenizer, which makes other "
            "ids of it; save its tokenizer.json and load that."
        )
    if named in OF_CLASS:
        return OF_CLASS[named]
    of_file = MARIAN if path.name == "source.spm" else PLAIN
    return OF_TYPE.get(str(read_settings(path.parent)[1].get("model_type")), of_file)


def _read_extra_ids(path: Path, config: Mapping[str, Any], use: Convention) -> int:
    count = config.get("extra_ids", use.extra) if use.ends else 0
    if type(count) is not int or not 0 <= count <= MOST_EXTRA:
        raise ValueError(f"Expected extra_ids of 0 to {MOST_EXTRA:,} beside {path}, got {count!r:.80}; correct it.")
    return count


def add_declared_marks(
    fast: tokenizers.Tokenizer, roles: Mapping[str, str], use: Convention, config: Mapping[str, Any]
) -> None:
    def marks(role: str, added: bool) -> list[str]:
        token = roles.get(role)
        return [token] if added and token is not None and fast.token_to_id(token) is not None else []

    first = marks("bos_token", bool(config.get("add_bos_token", use.begins)))
    last = marks("eos_token", bool(config.get("add_eos_token", use.ends)))
    between = None if use.between is None else [mark for role in use.between for mark in marks(role, True)]
    add_marks(fast, first, last, between)


def add_marks(
    fast: tokenizers.Tokenizer,
    first: Sequence[str] = (),
    last: Sequence[str] = (),
    between: Sequence[str] | None = None,
) -> tokenizers.Tokenizer:
    """Make `fast` put these tokens before, after and between texts; `between` is both by default."""
    middle = [*last, *first] if between is None else between
    marks = dict.fromkeys([*first, *middle, *last])
    if marks:
        fast.post_processor = TemplateProcessing(
            single=[*first, "$A", *last],
            pair=[*first, "$A", *middle, "$B:0", *last],
            special_tokens=[(name, fast.token_to_id(name)) for name in marks],
        )
    return fast
