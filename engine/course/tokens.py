"""One text cut in six ways: by words, characters, bytes, and by pieces that BPE, WordPiece and Unigram learned."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from itertools import islice

import tokenizers

from engine.checkpoints.locate import locate
from engine.data.stories import stories
from engine.json_text import parse_json
from engine.tokenizers import Encoding, FastTokenizer, read_tokenizer, train

KINDS = ("word", "char", "byte", "bpe", "wordpiece", "unigram")
SHIPPED = "stories"  # a checkpoint whose BPE learned from more of the same stories
SEED, STORIES = 1, 300
SIZES = {"bpe": (257, 320, 512, 724, 1024), "wordpiece": (150, 320, 512, 1024, 1536), "unigram": (128, 320, 1024)}


def tokenizer_of(kind: str, size: int = 0) -> FastTokenizer:
    """The tokenizer of a shipped checkpoint for BPE, else one that is trained on stories, with as many entries as there
    are, or the most of SIZES.

    `size` cuts the vocabulary of BPE and WordPiece, which is in the order it was learned in, to its beginning.
    """
    return make_tokenizer(kind, size or most_of(kind))


def most_of(kind: str) -> int:
    return SIZES[kind][-1] if kind in SIZES else 0


@lru_cache(maxsize=32)
def make_tokenizer(kind: str, size: int) -> FastTokenizer:
    if kind in ("bpe", "wordpiece") and size < most_of(kind):
        return shrink(tokenizer_of(kind), size)
    if kind == "bpe":
        found = read_tokenizer(locate(SHIPPED).weights.parent)
        assert found is not None
        return found
    return train(kind, read_stories(), size or None)


@cache
def read_stories() -> tuple[str, ...]:
    return tuple(islice(stories(SEED), STORIES))


def shrink(tokenizer: FastTokenizer, size: int) -> FastTokenizer:
    """The same tokenizer with the first `size` entries alone: what a shorter training on the same texts had learned."""
    state = parse_json(tokenizer.fast.to_str())
    model = state["model"]
    model["vocab"] = {entry: id for entry, id in model["vocab"].items() if id < size}
    if "merges" in model:
        model["merges"] = [pair for pair in model["merges"] if "".join(pair) in model["vocab"]]
    return FastTokenizer(tokenizers.Tokenizer.from_str(json.dumps(state)), tokenizer.roles)


def cut(kind: str, text: str, size: int = 0) -> Encoding:
    """`text` as tokens of one of KINDS, without those that the tokenizer adds around it."""
    return tokenizer_of(kind, size).encode(text, special=False)


def word_entries(text: str) -> dict[str, int]:
    """The words of a text and their ids, in a vocabulary of words that has them, since it was learned from it."""
    tokenizer = train("word", [text])
    encoding = tokenizer.encode(text, special=False)
    return {piece: id for piece, id in zip(encoding.pieces, encoding.ids, strict=True) if piece.strip().isalnum()}


def are_unknown(kind: str, encoding: Encoding) -> list[bool]:
    """True for each token that stands for text outside the vocabulary, which is lost there."""
    tokenizer = tokenizer_of(kind)
    unknown = tokenizer.special_tokens.get(tokenizer.roles.get("unk_token", ""))
    return [id == unknown for id in encoding.ids]


def comes_back(kind: str, text: str) -> bool:
    """True if the tokens of `text` decode to it, letter by letter."""
    return tokenizer_of(kind).decode(cut(kind, text).ids) == text


def lengths(text: str) -> list[tuple[str, int, int]]:
    """(kind, entries of the vocabulary, tokens of `text`): of each kind, and of those that learn at several sizes."""
    found = []
    for kind in KINDS:
        for size in SIZES.get(kind, (0,)):
            found.append((kind, tokenizer_of(kind, size).vocab_size, len(cut(kind, text, size))))
    return found
