"""Reading the tokenizer of a checkpoint folder, whichever of the usual files it has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.jsonfile import check_file_size, check_ids, check_largest, read_object
from engine.tokenizers.pipeline_limits import check_pipeline, refuse_failure
from engine.tokenizers.special import END, UNKNOWN, read_roles, register_special_tokens
from engine.tokenizers.spm_checkpoints import find_only_model_file, find_sentencepiece_file, read_sentencepiece
from engine.tokenizers.wordpiece import build_bert_pipeline

T = TypeVar("T")

SPECIAL_NAME = re.compile(r"<[^<>\s]+>|\[[A-Z]+\]")

WHOLE = "tokenizer.json"  # says everything; other files beside it are not read

BERTS = ("Bert", "ConvBert", "DistilBert", "Electra", "MobileBert", "SqueezeBert")
BERT_CLASSES = {"", "PreTrainedTokenizer", "TokenizersBackend", *(f"{name}Tokenizer" for name in BERTS)}
BERT_ROLES = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}


def read_tokenizer(folder: Path) -> FastTokenizer | None:
    """Read the tokenizer of a folder; None where there is none. Raises ValueError, naming the file, for a bad one."""
    spm = None if (folder / WHOLE).is_file() else find_sentencepiece_file(folder)
    if spm is not None:
        return read_sentencepiece(spm)
    for name, read in READERS.items():
        if (folder / name).is_file():
            fast = read(folder / name)
            register_special_tokens(fast, folder)
            return FastTokenizer(fast, read_roles(folder))
    spm = find_only_model_file(folder)
    return None if spm is None else read_sentencepiece(spm)


def _read_tokenizer_json(path: Path) -> tokenizers.Tokenizer:
    check_pipeline(read_object(path), path)
    fast = _build(path, lambda: tokenizers.Tokenizer.from_file(str(path)))
    check_largest(fast.get_vocab(), path)
    return fast


def _read_gpt2(path: Path) -> tokenizers.Tokenizer:
    """`vocab.json` and `merges.txt`: a byte-level BPE, with GPT-2's end token where the vocabulary has it."""
    merges = path.with_name("merges.txt")
    if not merges.is_file():
        raise ValueError(f"Expected merges.txt beside {path}, found none; add it, or a tokenizer.json.")
    check_ids(read_object(path), path)
    check_file_size(merges)
    fast = tokenizers.Tokenizer(_build(merges, lambda: models.BPE.from_file(str(path), str(merges))))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    if fast.token_to_id(END) is not None:
        fast.add_special_tokens([END])
    return fast


def _read_bert(path: Path) -> tokenizers.Tokenizer:
    """`vocab.txt`, one entry a line: a WordPiece, with what tokenizer_config.json says of case and accents."""
    config_file = path.with_name("tokenizer_config.json")
    config = read_object(config_file) if config_file.is_file() else {}
    kind = str(config.get("tokenizer_class") or "").removesuffix("Fast")
    if kind not in BERT_CLASSES:
        raise ValueError(f"Expected BERT's WordPiece in {path}, got a {kind}; save its tokenizer.json and load that.")
    ids = _read_lines(path)
    roles = BERT_ROLES | read_roles(path.parent)
    if roles["unk_token"] not in ids:
        raise ValueError(
            f"Expected {roles['unk_token']!r:.80} among the {len(ids)} lines of {path}, found none; fetch it again."
        )
    normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
        strip_accents=None if config.get("strip_accents") is None else bool(config["strip_accents"]),
        lowercase=bool(config.get("do_lower_case", True)),
    )
    fast = build_bert_pipeline(ids, normalizer, roles["unk_token"], roles["cls_token"], roles["sep_token"])
    fast.add_special_tokens([name for name in roles.values() if name in ids])
    return fast


def _read_lines(path: Path) -> dict[str, int]:
    """Ids by line number; of an entry that stands twice the later one counts, as in the reference."""
    check_file_size(path)
    try:
        with path.open(encoding="utf-8") as lines:
            return {line.removesuffix("\n"): id for id, line in enumerate(lines)}
    except UnicodeDecodeError as error:
        raise ValueError(f"Expected UTF-8 text in {path}, got something else ({error}); fetch it again.") from error


def _read_token_mappings(path: Path) -> tokenizers.Tokenizer:
    ids = check_ids(read_object(path).get("token2id"), path)
    return _build(path, lambda: build_word_list(ids))


def build_word_list(ids: Mapping[str, int]) -> tokenizers.Tokenizer:
    """Build the tokenizer of a plain list of words, as some checkpoints carry it, split at white space.

    An entry may be several words ("Thread Milling"): it is found before its single words, longest first. Without an
    entry <unk> the vocabulary is closed: see `check_words`.
    """
    phrases = sorted((entry for entry in ids if len(entry.split()) > 1), key=len, reverse=True)
    entry = "|".join([*map(re.escape, phrases), r"\S+"])
    fast = tokenizers.Tokenizer(models.WordLevel(dict(ids), unk_token=UNKNOWN))
    fast.pre_tokenizer = pre_tokenizers.Split(Regex(rf"(?<!\S)(?:{entry})(?!\S)"), "removed", invert=True)
    fast.add_special_tokens([name for name in ids if SPECIAL_NAME.fullmatch(name)])
    return fast


READERS: dict[str, Callable[[Path], tokenizers.Tokenizer]] = {
    WHOLE: _read_tokenizer_json,
    "vocab.json": _read_gpt2,
    "vocab.txt": _read_bert,
    "token_mappings.json": _read_token_mappings,
}


def _build(path: Path, build: Callable[[], T]) -> T:
    with refuse_failure(f"Expected a tokenizer in {path}, got something else", "fetch it again"):
        return build()
