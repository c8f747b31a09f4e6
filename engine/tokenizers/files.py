"""Reading the tokenizer of a checkpoint folder, whichever of the usual files it has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.jsonfile import check_ids, check_largest, read_object
from engine.tokenizers.plain import plain_words
from engine.tokenizers.special import END, named_roles, register

T = TypeVar("T")


def read_tokenizer(folder: Path) -> FastTokenizer | None:
    """None where `folder` has no tokenizer; ValueError, naming the file, where one cannot be read."""
    for name, read in READERS.items():
        if (folder / name).is_file():
            fast = read(folder / name)
            register(fast, folder)
            return FastTokenizer(fast, named_roles(folder))
    return None


def _whole(path: Path) -> tokenizers.Tokenizer:
    read_object(path)
    fast = _built(path, lambda: tokenizers.Tokenizer.from_file(str(path)))
    check_largest(fast.get_vocab(), path)
    return fast


def _gpt2(path: Path) -> tokenizers.Tokenizer:
    """`vocab.json` and `merges.txt`: a byte-level BPE, with GPT-2's end token where the vocabulary has it."""
    merges = path.with_name("merges.txt")
    if not merges.is_file():
        raise ValueError(f"Expected merges.txt beside {path}, found none; add it, or a tokenizer.json.")
    check_ids(read_object(path), path)
    fast = tokenizers.Tokenizer(_built(merges, lambda: models.BPE.from_file(str(path), str(merges))))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    if fast.token_to_id(END) is not None:
        fast.add_special_tokens([END])
    return fast


def _plain(path: Path) -> tokenizers.Tokenizer:
    ids = check_ids(read_object(path).get("token2id"), path)
    return _built(path, lambda: plain_words(ids))


READERS: dict[str, Callable[[Path], tokenizers.Tokenizer]] = {
    "tokenizer.json": _whole,
    "vocab.json": _gpt2,
    "token_mappings.json": _plain,
}


def _built(path: Path, build: Callable[[], T]) -> T:
    """`tokenizers` raises a bare Exception for a file it cannot read, so nothing narrower can be caught."""
    try:
        return build()
    except Exception as error:
        raise ValueError(
            f"Expected a tokenizer in {path}, got something else ({error}); fetch it again."
        ) from error
