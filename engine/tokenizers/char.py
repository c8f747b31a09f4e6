"""Characters: every Unicode code point that the texts contain is a token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.special import END, UNKNOWN, distinct
from engine.tokenizers.vocabulary import by_frequency, corpus


def train(texts: Iterable[str], vocab_size: int | None = None, special_tokens: Sequence[str] = (END,)) -> FastTokenizer:
    """The `vocab_size` most frequent characters, or all of them; any other becomes <unk>."""
    names = distinct([UNKNOWN, *special_tokens])
    counts = Counter(character for text in corpus(texts) for character in text)
    vocabulary = by_frequency(counts, names, vocab_size)
    fast = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=UNKNOWN))  # characters, never merged
    fast.decoder = decoders.Fuse()
    fast.add_special_tokens(names)
    return FastTokenizer(fast)
