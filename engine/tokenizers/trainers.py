"""Every kind of tokenizer that can be trained here, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from engine.tokenizers import bpe, byte, char, unigram, word, wordpiece
from engine.tokenizers.fast import FastTokenizer

TRAINERS: dict[str, Callable[..., FastTokenizer]] = {
    "char": char.train,
    "word": word.train,
    "byte": byte.train,
    "bpe": bpe.train,
    "bpe-characters": bpe.train_on_characters,
    "wordpiece": wordpiece.train,
    "unigram": unigram.train,
}


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
    if kind not in TRAINERS:
        raise ValueError(f"Expected a kind of tokenizer among {', '.join(TRAINERS)}, got {kind!r}; choose one.")
    chosen = {"vocab_size": vocab_size, "special_tokens": special_tokens}
    return TRAINERS[kind](texts, **{name: value for name, value in chosen.items() if value is not None})
