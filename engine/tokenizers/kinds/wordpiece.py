"""WordPiece, as BERT has it: a word is its longest known beginning, then the longest known pieces of the rest.

A piece that continues a word is written "##ing". Text is cleaned, lower-cased and stripped of its accents
first, so decoding gives back the words and not the text. The vocabulary is learned as the `tokenizers` library
learns it, by BPE's merges of the most frequent neighbours (Google's own trainer was never published); the
letter "o" at a beginning and the "##o" of a continuation are different symbols to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kind import TokenizerKind
from engine.tokenizers.special import unique_names
from engine.tokenizers.vocabulary import check_corpus, rank_by_frequency

BERT_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CONTINUES = "##"
STAND_INS = 0x10000  # where the code points begin that stand for symbols while merges are learned


def train(
    texts: Iterable[str], vocab_size: int = 2048, special_tokens: Sequence[str] = (), lowercase: bool = True
) -> FastTokenizer:
    """Train a WordPiece. `special_tokens` follow BERT's five, which have the ids 0 to 4.

    Fewer entries than `vocab_size` are made where every word of the texts is one entry already.
    """
    names = unique_names([*BERT_SPECIAL, *special_tokens])
    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    words = Counter(
        word
        for text in check_corpus(texts)
        for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normalizer.normalize_str(text))
    )
    vocabulary = [*names, *learn_entries(words, names, vocab_size)]
    fast = build_bert_pipeline({entry: id for id, entry in enumerate(vocabulary)}, normalizer)
    fast.add_special_tokens(names)
    return FastTokenizer(fast)


def build_bert_pipeline(
    ids: dict[str, int],
    normalizer: normalizers.BertNormalizer,
    unknown: str = "[UNK]",
    first: str = "[CLS]",
    separator: str = "[SEP]",
) -> Tokenizer:
    """Build BERT's steps: [CLS] A [SEP] for one text and [CLS] A [SEP] B [SEP] for two, where both marks are known."""
    fast = Tokenizer(models.WordPiece(ids, unk_token=unknown, continuing_subword_prefix=CONTINUES))
    fast.normalizer = normalizer
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece(prefix=CONTINUES)
    if first in ids and separator in ids:
        fast.post_processor = TemplateProcessing(
            single=[f"{first}:0", "$A:0", f"{separator}:0"],
            pair=[f"{first}:0", "$A:0", f"{separator}:0", "$B:1", f"{separator}:1"],
            special_tokens=[(first, ids[first]), (separator, ids[separator])],
        )
    return fast


def learn_entries(words: Counter[str], names: list[str], vocab_size: int) -> list[str]:
    """Learn the entries beside `names`: symbols in the order of their code points, then merges as they were made.

    `tokenizers` has a trainer for WordPiece, but it numbers the "##" symbols in the order of a random hash. So
    each symbol is given a character of its own, and BPE's trainer, whose alphabet can be given whole, merges
    those.
    """
    symbols = Counter[str]()
    for word, count in words.items():
        for symbol in [*_split_symbols(word), *word[1:]]:  # a letter that was only seen inside may begin a word yet
            symbols[symbol] += count
    kept = sorted(list(rank_by_frequency(symbols, names, vocab_size))[len(names) :], key=_sort_key)
    stand_in = {symbol: chr(STAND_INS + n) for n, symbol in enumerate(kept)}
    meant = {character: symbol for symbol, character in stand_in.items()}
    spelt = {word: _split_symbols(word) for word in sorted(words) if stand_in.keys() >= {*_split_symbols(word)}}
    merged = Tokenizer(models.BPE())
    merged.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    merged.train_from_iterator(
        (" ".join(["".join(stand_in[symbol] for symbol in symbols)] * words[word]) for word, symbols in spelt.items()),
        trainers.BpeTrainer(
            vocab_size=vocab_size - len(names),
            initial_alphabet=list(meant),
            limit_alphabet=len(meant),
            show_progress=False,
        ),
    )
    learned = merged.get_vocab()
    return [
        _join_symbols([meant[character] for character in piece]) for piece in sorted(learned, key=learned.__getitem__)
    ]


def _split_symbols(word: str) -> list[str]:
    """ "going" as g, ##o, ##i, ##n, ##g."""
    return [word[0], *(CONTINUES + character for character in word[1:])]


def _join_symbols(symbols: list[str]) -> str:
    """##i, ##n, ##g as "##ing"."""
    return symbols[0] + "".join(symbol.removeprefix(CONTINUES) for symbol in symbols[1:])


def _sort_key(symbol: str) -> tuple[bool, str]:
    return len(symbol) > 1, symbol


KIND = TokenizerKind("wordpiece", 5, train, "WordPiece", vocabulary=1_024, own_marks=True)
