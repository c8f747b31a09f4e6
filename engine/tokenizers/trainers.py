"""Every kind of tokenizer that can be trained here, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from engine.tokenizers import bpe, byte, char, word
from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.special import END

TRAINERS: dict[str, Callable[..., FastTokenizer]] = {
    "char": char.train,
    "word": word.train,
    "byte": byte.train,
    "bpe": bpe.train,
    "bpe-characters": bpe.train_on_characters,
}


def train(
    kind: str, texts: Iterable[str], vocab_size: int | None = None, special_tokens: Sequence[str] = (END,)
) -> FastTokenizer:
    """Without a `vocab_size` each kind takes its own: all that the texts contain, or 1024 for BPE."""
    if kind not in TRAINERS:
        raise ValueError(
            f"Expected a kind of tokenizer among {', '.join(TRAINERS)}, got {kind!r}; choose one."
        )
    size = {} if vocab_size is None else {"vocab_size": vocab_size}
    return TRAINERS[kind](texts, special_tokens=special_tokens, **size)
