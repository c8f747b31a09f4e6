"""Words: each word, punctuation mark and blank is a token, except the single space between two words.

That space is left out because decoding can put it back: a sentence reads as its words and still decodes
exactly. Chinese, Japanese and Thai put no spaces between words; there each character is a token.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

from engine.tokenizers.fast import FastTokenizer
from engine.tokenizers.kind import TokenizerKind
from engine.tokenizers.special import END, UNKNOWN, unique_names
from engine.tokenizers.vocabulary import check_corpus, rank_by_frequency

# Letters and their marks, digits, underscore. Variation selectors count as marks, but belong to emoji.
LETTER = r"[\w&&[^\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\x{FE00}-\x{FE0F}]]"
WORD = rf"{LETTER}+(?:['\u2019]{LETTER}+)*"
# What a person sees as one sign (an emoji with its joiners, a line break), unless a mark ends it.
SIGN = rf"\X(?<!{LETTER})|(?m:.)"

SPLIT = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Split(Regex(f"(?<={LETTER}) (?={LETTER})"), "removed"),
        pre_tokenizers.Split(Regex(f"{WORD}|{SIGN}"), "isolated"),
    ]
)

# Put a space before every word, then take it away again except after a word.
JOIN = decoders.Sequence(
    [
        decoders.Replace(Regex(f"^(?={LETTER}|{UNKNOWN}$)"), " "),
        decoders.Fuse(),
        decoders.Replace(Regex(f"(?<!{LETTER}|{UNKNOWN}) (?={LETTER}|{UNKNOWN})"), ""),
    ]
)


def train(texts: Iterable[str], vocab_size: int | None = None, special_tokens: Sequence[str] = (END,)) -> FastTokenizer:
    """Train on the `vocab_size` most frequent words, marks and blanks, or all of them; any other becomes <unk>."""
    names = unique_names([UNKNOWN, *special_tokens])
    special = re.compile("|".join(map(re.escape, names)))  # found whole, so that none of its parts is a word
    pieces = (piece for text in check_corpus(texts) for piece in special.split(text) if piece)
    counts = Counter(word for piece in pieces for word, _ in SPLIT.pre_tokenize_str(piece))
    fast = Tokenizer(models.WordLevel(rank_by_frequency(counts, names, vocab_size), unk_token=UNKNOWN))
    fast.pre_tokenizer = SPLIT
    fast.decoder = JOIN
    fast.add_special_tokens(names)
    return FastTokenizer(fast)


KIND = TokenizerKind("word", 1, train, "words", vocabulary=2_000)
