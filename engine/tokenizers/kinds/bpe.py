"""Byte-pair encoding: start from bytes, and merge the most frequent neighbours again and again.

Text is split first by GPT-2's rule, so that no merge crosses from one word into the next; the space belongs to the
word that follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kind import TokenizerKind
from engine.tokenizers.pieces import BYTE_OF_LETTER
from engine.tokenizers.special import END, unique_names
from engine.tokenizers.vocabulary import check_corpus, check_room


def train(texts: Iterable[str], vocab_size: int = 1024, special_tokens: Sequence[str] = (END,)) -> FastTokenizer:
    """Train a byte-level BPE: no text is unknown, since all 256 bytes are in the vocabulary."""
    names = unique_names(special_tokens)
    check_room(vocab_size, len(names) + 255)
    fast = Tokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    fast.decoder = decoders.ByteLevel()
    return learn_merges(fast, check_corpus(texts), vocab_size, names, alphabet=list(BYTE_OF_LETTER))


def learn_merges(
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


KIND = TokenizerKind("bpe", 3, train, "BPE on bytes", vocabulary=1_024)
