"""Byte-pair encoding: start from bytes or characters, and merge the most frequent neighbours again and again.

Both forms split text first by GPT-2's rule, so that no merge crosses from one word into the next; the space
belongs to the word that follows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.pieces import BYTE_OF_LETTER
from engine.tokenizers.special import END, UNKNOWN, unique_names
from engine.tokenizers.vocabulary import check_corpus, check_room, rank_by_frequency

GPT2_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def train(texts: Iterable[str], vocab_size: int = 1024, special_tokens: Sequence[str] = (END,)) -> FastTokenizer:
    """Train a byte-level BPE: no text is unknown, since all 256 bytes are in the vocabulary."""
    names = unique_names(special_tokens)
    check_room(vocab_size, len(names) + 255)
    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    return _train_pipeline(fast, check_corpus(texts), vocab_size, names, alphabet=list(BYTE_OF_LETTER))


def train_on_characters(
    texts: Iterable[str], vocab_size: int = 1024, special_tokens: Sequence[str] = (END,)
) -> FastTokenizer:
    """Train a BPE of characters; a character that the texts lack, or that finds no room, becomes <unk>."""
    names = unique_names([UNKNOWN, *special_tokens])
    learned = check_corpus(texts)
    counts = Counter(character for text in learned for character in text)
    fast = Tokenizer(models.BPE(unk_token=UNKNOWN))
    fast.pre_tokenizer = pre_tokenizers.Split(Regex(GPT2_WORDS), "isolated")
    fast.decoder = decoders.Fuse()
    alphabet = list(rank_by_frequency(counts, names, vocab_size))[len(names) :]
    return _train_pipeline(fast, learned, vocab_size, names, alphabet)


def _train_pipeline(
    fast: Tokenizer, texts: list[str], vocab_size: int, names: list[str], alphabet: list[str]
) -> FastTokenizer:
    """Train with a whole alphabet: a trainer that chooses one breaks ties between characters at random."""
    fast.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=vocab_size,
            special_tokens=names,
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
        ),
    )
    return FastTokenizer(fast)
