"""Characters: every Unicode code point that the texts contain is a token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kind import TokenizerKind
from engine.tokenizers.special import END, UNKNOWN, unique_names
from engine.tokenizers.vocabulary import check_corpus, rank_by_frequency


def train(texts: Iterable[str], vocab_size: int | None = None, special_tokens: Sequence[str] = (END,)) -> FastTokenizer:
    """Train on the `vocab_size` most frequent characters, or all of them; any other becomes <unk>."""
    names = unique_names([UNKNOWN, *special_tokens])
    counts = Counter(character for text in check_corpus(texts) for character in text)
    vocabulary = rank_by_frequency(counts, names, vocab_size)
    fast = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=UNKNOWN))  # characters, never merged
    fast.decoder = decoders.Fuse()
    fast.add_special_tokens(names)
    return FastTokenizer(fast)


KIND = TokenizerKind("char", 0, train, "characters", vocabulary=100, spells=True, learns_all=True)
