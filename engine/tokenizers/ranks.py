"""Byte-level BPE as a list of tokens by rank: the `tokenizer.model` of Llama 3, in tiktoken's form, and Mistral's
`tekken.json`.

The list has no merges: two neighbours that make a token are merged, the token of the lowest rank first.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.jsonfile import check_file_size, read_object
from engine.tokenizers.pieces import LETTER_OF_BYTE
from engine.tokenizers.pipeline_limits import refuse_failure
from engine.tokenizers.settings import read_settings
from engine.tokenizers.special import read_roles, register_special_tokens
from engine.tokenizers.spm_checkpoints import (
    LLAMA,
    MOST_EXTRA,
    add_declared_marks,
    find_only_model_file,
    find_sentencepiece_file,
)

TEKKEN = "tekken.json"
LINE = re.compile(rb"([A-Za-z0-9+/]+={0,2}) (\d{1,9})\r?")  # a token in base64, and its rank
MOST_TOKENS = 2**20  # of published lists the longest has 200,000
LONGEST_TOKEN, MOST_BYTES = 1024, 2**22  # of one, and of all, each of whose cuts is tried; the longest list has 2 MB
MOST_MERGES, MOST_LETTERS = 2**20, 2**24  # Llama 3's are 280,147, each of the letters of its token
LONGEST_PATTERN = 4096  # letters
LISTS_OF_LLAMA = ("llama", None)  # model_type; another model splits texts, and names special tokens, in its own way
LLAMA_3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA_3_SPECIAL = 256
LLAMA_3_NAMES = {0: "begin_of_text", 1: "end_of_text", 6: "start_header_id", 7: "end_header_id", 9: "eot_id"}
LLAMA_3_1_NAMES = LLAMA_3_NAMES | {4: "finetune_right_pad_id", 8: "eom_id", 10: "python_tag"}
LLAMA_3_ROLES = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
TEKKEN_ROLES = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
TEKKEN_UNNAMED = (  # the special tokens of a file before version 11, which does not name them
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"),
    *("[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]"),
    *("[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
)


def find_ranks(folder: Path) -> Path | None:
    """The list of a folder; a `.model` is one, or SentencePiece's, by what it begins with."""
    if (tekken := folder / TEKKEN).is_file():
        return tekken
    model = find_sentencepiece_file(folder) or find_only_model_file(folder)
    return model if model is not None and _is_tiktoken(model) else None


def _is_tiktoken(path: Path) -> bool:
    with path.open("rb") as file:
        return LINE.fullmatch(file.read(2 * LONGEST_TOKEN).partition(b"\n")[0]) is not None


def read_ranks(path: Path) -> FastTokenizer:
    """Raises ValueError, naming the file, for a list that is damaged, or of a model that splits texts otherwise."""
    return _read_tekken(path) if path.name == TEKKEN else _read_tiktoken(path)


def _read_tiktoken(path: Path) -> FastTokenizer:
    settings, config = read_settings(path.parent)
    if (kind := config.get("model_type")) not in LISTS_OF_LLAMA:
        raise ValueError(
            f"Expected the list of tokens in {path} to be a Llama 3's, got one beside a {kind!r:.80}, and a list does "
            "not say how a text is split; put the tokenizer.json of the same model beside it."
        )
    tokens = list(_parse_lines(path))
    fast = _build(tokens, LLAMA_3_SPLIT, {}, path)
    scaled = config.get("rope_parameters") or config.get("rope_scaling")
    newer = isinstance(scaled, Mapping) and scaled.get("rope_type") == "llama3"
    if "added_tokens_decoder" not in settings:
        _add_special(fast, name_special_tokens(LLAMA_3_1_NAMES if newer else LLAMA_3_NAMES), path)
    return _finish(fast, LLAMA_3_ROLES, settings, path)


def _parse_lines(path: Path) -> Iterator[bytes]:
    check_file_size(path)
    data = path.read_bytes().removesuffix(b"\n")
    if (count := data.count(b"\n") + 1) > MOST_TOKENS:
        raise ValueError(f"Expected at most {MOST_TOKENS:,} tokens in {path}, got {count:,}; is it a tokenizer?")
    for rank, line in enumerate(data.split(b"\n")):
        found = LINE.fullmatch(line)
        yield _decode(found and found[1], found and int(found[2]), rank, path)


def name_special_tokens(named: Mapping[int, str]) -> list[str]:
    """Llama 3's, which follow the list: those without a name of their own are reserved, and numbered."""
    reserved = iter(range(LLAMA_3_SPECIAL))
    names = (named.get(at) or f"reserved_special_token_{next(reserved)}" for at in range(LLAMA_3_SPECIAL))
    return [f"<|{name}|>" for name in names]


def _read_tekken(path: Path) -> FastTokenizer:
    """The special tokens come first, as many as the file says, then as many of the list as the vocabulary has."""
    state = read_object(path)
    config, rows, special = state.get("config"), state.get("vocab"), state.get("special_tokens")
    if not isinstance(config, dict) or not isinstance(rows, list) or not isinstance(config.get("pattern"), str):
        raise ValueError(f"Expected a config with a pattern, and a vocab, in {path}, got neither; fetch it again.")
    names = list(TEKKEN_UNNAMED if special is None else _read_special(special, path))
    count = len(names) if (said := config.get("default_num_special_tokens")) is None else said
    if type(count) is not int or not len(names) <= count <= MOST_EXTRA:
        raise ValueError(
            f"Expected {len(names):,} to {MOST_EXTRA:,} special tokens in {path}, got {count!r:.80}; fetch it again."
        )
    names += [f"<SPECIAL_{id}>" for id in range(len(names), count)]
    if len(set(names)) < count or "" in names:
        raise ValueError(f"Expected each special token in {path} to have a name of its own; fetch it again.")
    most = min(len(rows), MOST_TOKENS) + count
    size = len(rows) + count if (said := config.get("default_vocab_size")) is None else said
    if type(size) is not int or not count < size <= most:
        raise ValueError(
            f"Expected a default_vocab_size of {count + 1:,} to {most:,}, the special tokens and others of {path}, "
            f"got {size!r:.80}; fetch it again."
        )
    tokens = [_read_row(row, rank, path) for rank, row in enumerate(rows[: size - count])]
    fast = _build(tokens, config["pattern"], {name: id for id, name in enumerate(names)}, path)
    _add_special(fast, names, path)
    return _finish(fast, TEKKEN_ROLES, read_settings(path.parent)[0], path)


def _read_special(rows: Any, path: Path) -> list[str]:
    listed = [row if isinstance(row, dict) else {} for row in rows] if isinstance(rows, list) else []
    named: dict[int, str] = {}
    for row in listed:
        rank, name = row.get("rank"), row.get("token_str")
        if type(rank) is int and isinstance(name, str):
            named[rank] = name
    if not named or len(named) < len(listed) or named.keys() != set(range(len(named))):
        raise ValueError(f"Expected special_tokens in {path} to name each rank from 0 once; fetch it again.")
    return [named[rank] for rank in range(len(named))]


def _read_row(row: Any, rank: int, path: Path) -> bytes:
    row = row if isinstance(row, dict) else {}
    token = row.get("token_bytes")
    return _decode(token if isinstance(token, str) else None, row.get("rank"), rank, path)


def _decode(token: str | bytes | None, got: int | None, rank: int, path: Path) -> bytes:
    try:
        read = b64decode(token or b"", validate=True)
    except ValueError:
        read = b""
    if got != rank or not 0 < len(read) <= LONGEST_TOKEN:
        raise ValueError(
            f"Expected a token of 1 to {LONGEST_TOKEN:,} bytes in base64, and its rank {rank:,}, as entry {rank + 1:,} "
            f"of {path}, got something else; fetch it again."
        )
    return read


def _build(tokens: Sequence[bytes], pattern: str, special: Mapping[str, int], path: Path) -> tokenizers.Tokenizer:
    """The tokens' ids follow those of `special`."""
    ranks = {token: rank for rank, token in enumerate(tokens)}
    if len(ranks) < len(tokens) or not all(bytes([byte]) in ranks for byte in range(256)):
        raise ValueError(f"Expected each token once in {path}, and all 256 bytes among them; fetch it again.")
    if (size := sum(map(len, tokens))) > MOST_BYTES:
        raise ValueError(f"Expected tokens of at most {MOST_BYTES:,} bytes in {path}, got {size:,}; is it a tokenizer?")
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"Expected a pattern of at most {LONGEST_PATTERN:,} letters in {path}; is it a tokenizer?")
    names = ["".join(map(LETTER_OF_BYTE.__getitem__, token)) for token in tokens]
    merges, letters = [], 0
    for left, right in _find_merges(ranks):
        merges.append((names[left], names[right]))
        letters += len(names[left]) + len(names[right])
        if len(merges) > MOST_MERGES or letters > MOST_LETTERS:
            raise ValueError(
                f"Expected at most {MOST_MERGES:,} merges of {MOST_LETTERS:,} letters of the tokens in {path}, got "
                "more; is it a tokenizer?"
            )
    ids = {name: len(special) + rank for rank, name in enumerate(names)} | dict(special)
    with refuse_failure(f"Expected a tokenizer in {path}, got something else", "fetch it again"):
        fast = tokenizers.Tokenizer(models.BPE(ids, merges, ignore_merges=True))
        split = pre_tokenizers.Split(Regex(pattern), "isolated")
        fast.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    fast.decoder = decoders.ByteLevel()
    return fast


def _find_merges(ranks: Mapping[bytes, int]) -> Iterator[tuple[int, int]]:
    """The two ranks of every merge, in the order in which they are tried."""
    for token in ranks:
        cuts = ((ranks.get(token[:at]), ranks.get(token[at:])) for at in range(1, len(token)))
        yield from sorted((left, right) for left, right in cuts if left is not None and right is not None)


def _add_special(fast: tokenizers.Tokenizer, names: Iterable[str], path: Path) -> None:
    with refuse_failure(f"Expected special tokens in {path}, got what fails", "fetch it again"):
        fast.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])


def _finish(
    fast: tokenizers.Tokenizer, usual: Mapping[str, str], settings: Mapping[str, Any], path: Path
) -> FastTokenizer:
    """A begin token stands before a text unless add_bos_token says no, as in the models' tokenizer.json."""
    register_special_tokens(fast, path.parent)
    roles = {**usual, **read_roles(path.parent)}
    add_declared_marks(fast, roles, LLAMA, settings)
    return FastTokenizer(fast, roles)
