"""Byte-pair encoding that starts from characters; text is split first by GPT-2's rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kind import TokenizerKind
from engine.tokenizers.kinds.bpe import learn_merges
from engine.tokenizers.special import END, UNKNOWN, unique_names
from engine.tokenizers.vocabulary import check_corpus, rank_by_frequency

GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def train(texts: Iterable[str], vocab_size: int = 1024, special_tokens: Sequence[str] = (END,)) -> FastTokenizer:
    """Train a BPE of characters; a character that the texts lack, or that finds no room, becomes <unk>."""
    names = unique_names([UNKNOWN, *special_tokens])
    learned = check_corpus(texts)
    counts = Counter(character for text in learned for character in text)
    fast = Tokenizer(models.BPE(unk_token=UNKNOWN))
    fast.pre_tokenizer = pre_tokenizers.Split(Regex(GPT2_WORDS), "isolated")
    fast.decoder = decoders.Fuse()
    alphabet = list(rank_by_frequency(counts, names, vocab_size))[len(names) :]
    return learn_merges(fast, learned, vocab_size, names, alphabet)


KIND = TokenizerKind("bpe-characters", 4, train, "BPE on characters", vocabulary=1_024)
