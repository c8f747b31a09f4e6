"""The same sentences in six languages under vocabularies that are learned from one of them or from all, and the best
ways to cut a text by Unigram (Kudo and Richardson 2018; Petrov et al. 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from heapq import nlargest
from typing import NamedTuple

from engine.data.corpora import read_corpus
from engine.json_text import parse_json
from engine.tokenizers import FastTokenizer, train
from engine.tokenizers.kinds.unigram import SPACE
from engine.tokenizers.special import UNKNOWN

LANGUAGES = ("en", "fr", "de", "fi", "zh", "ja")
ALL = ""  # learned from all six alike
ENTRIES = 512  # of each vocabulary
KINDS = ("bpe", "unigram")


class TokenCount(NamedTuple):
    """Of a text; an `unknown` token stands for what the vocabulary cannot write."""

    tokens: int
    unknown: int
    characters: int
    bytes: int


class Cut(NamedTuple):
    """Pieces of a text, and the sum of their scores, which is the log of their probability."""

    pieces: tuple[str, ...]
    score: float


def measured(language: str) -> list[str]:
    """Sentences to count, the same in every language."""
    return list(read_corpus("languages/sentences")["measured"][language])


def learned_texts(main: str) -> list[str]:
    """All sentences of the language `main` and one of each other; of ALL all sentences of all six."""
    sentences = read_corpus("languages/sentences")["learned"]
    return [text for language in LANGUAGES for text in sentences[language][: None if main in (language, ALL) else 1]]


@cache
def learn_vocabulary(kind: str, main: str) -> FastTokenizer:
    """One of KINDS with at most ENTRIES entries, learned mostly from one language, or from ALL."""
    return train(kind, learned_texts(main), ENTRIES, ())


def cut(kind: str, main: str, text: str) -> list[str]:
    return list(learn_vocabulary(kind, main).encode(text, special=False).pieces)


def count_tokens(kind: str, main: str, text: str) -> TokenCount:
    """Tokens of a text under a vocabulary that was learned mostly from the language `main`."""
    tokenizer = learn_vocabulary(kind, main)
    ids = tokenizer.encode(text, special=False).ids
    unknown = sum(id == tokenizer.special_tokens.get(UNKNOWN) for id in ids)
    return TokenCount(len(ids), unknown, len(text), len(text.encode()))


# --- Unigram's arithmetic ---


@cache
def piece_scores(main: str) -> Mapping[str, float]:
    """Score of each piece of the learned Unigram, log p."""
    entries = parse_json(learn_vocabulary("unigram", main).fast.to_str())["model"]["vocab"]
    return {piece: score for piece, score in entries if piece != UNKNOWN}


def mark_spaces(text: str) -> str:
    """SentencePiece's form of a text: each space, and one before the text, is the letter ▁."""
    return SPACE + text.replace(" ", SPACE)


def best_cuts(text: str, main: str, count: int) -> list[Cut]:
    """The `count` most probable ways to cut a text with spaces marked, the best first.

    Of each beginning of the text the best `count` are kept, since what follows adds the same to all of them.
    """
    scores = piece_scores(main)
    ways = [[Cut((), 0.0)]]
    for end in range(1, len(text) + 1):
        longer = [
            Cut((*way.pieces, piece), way.score + scores[piece])
            for start in range(end)
            if (piece := text[start:end]) in scores
            for way in ways[start]
        ]
        ways.append(nlargest(count, longer, key=lambda way: way.score))
    return ways[-1]
