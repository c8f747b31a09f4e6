"""Bytes: 256 tokens spell every text in UTF-8. A byte's id is the byte; special tokens follow from 256."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kind import TokenizerKind
from engine.tokenizers.pieces import BYTE_OF_LETTER
from engine.tokenizers.special import END, unique_names


def build(special_tokens: Sequence[str] = (END,)) -> FastTokenizer:
    fast = Tokenizer(models.BPE(vocab=BYTE_OF_LETTER, merges=[]))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    fast.decoder = decoders.ByteLevel()
    fast.add_special_tokens(unique_names(special_tokens))
    return FastTokenizer(fast)


def train(
    texts: Iterable[str] = (), vocab_size: int | None = None, special_tokens: Sequence[str] = (END,)
) -> FastTokenizer:
    """Build it: there is nothing to learn from `texts`, which are taken so that every kind is trained alike."""
    tokenizer = build(special_tokens)
    if vocab_size not in (None, tokenizer.vocab_size):
        raise ValueError(
            f"Expected vocab_size {tokenizer.vocab_size} (256 bytes and the special tokens), got "
            f"{vocab_size}; leave it out."
        )
    return tokenizer


KIND = TokenizerKind("byte", 2, train, "bytes", vocabulary=258, spells=True)
