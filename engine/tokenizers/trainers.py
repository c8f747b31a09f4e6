"""Every kind of tokenizer that can be trained here, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from engine.collect import collect
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kind import TokenizerKind


@cache
def tokenizer_kinds() -> Mapping[str, TokenizerKind]:
    return {one.name: one for one in collect("engine.tokenizers.kinds", "KIND", TokenizerKind)}


def find_kind(name: str) -> TokenizerKind:
    """Raises ValueError where there is none."""
    if name not in tokenizer_kinds():
        known = ", ".join(tokenizer_kinds())
        raise ValueError(f"Expected a kind of tokenizer among {known}, got {name!r:.80}; choose one.")
    return tokenizer_kinds()[name]


def train(
    kind: str,
    texts: Iterable[str],
    vocab_size: int | None = None,
    special_tokens: Sequence[str] | None = None,
) -> FastTokenizer:
    """Train a tokenizer; each kind chooses itself what is left out.

    The vocabulary is then all that the texts contain, or 1024 entries for BPE and Unigram and 2048 for
    WordPiece; the special tokens are the end of text, or BERT's five for WordPiece, which always has those.
    """
    chosen = {"vocab_size": vocab_size, "special_tokens": special_tokens}
    return find_kind(kind).train(texts, **{name: value for name, value in chosen.items() if value is not None})
