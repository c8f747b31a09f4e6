"""Two passages of the stories or of tales, with words to guess and the question whether they belong together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from engine.data import mixture
from engine.data.documents import Document, Documents, read_parts
from engine.data.drawing import number
from engine.data.kinds.sentence_pairs import SentencePairs
from engine.data.seeds import seed_for
from engine.data.sentences import pair, pair_following, sentences
from engine.scoring.examples import UNASKED, Examples
from engine.training.examples.masked import marks_of, masked_pairs
from engine.training.recipe.recipe import Recipe
from engine.training.sources.corpus import open_corpus
from engine.training.sources.shelf import make_shelf
from engine.training.sources.source import Part, Source, chance

ADDED = 3  # [CLS] and two [SEP]
ANOTHER, FOLLOWS, UNKNOWN = 0, 1, 2  # labels of the documents


class PairsOfPassages(Source):
    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        told, seed = recipe.data.expect(SentencePairs), recipe.data_seed
        documents = Documents(
            lambda: iter(passages(told, "train", seed)), lambda: iter(passages(told, "held_out", seed)), read=read_parts
        )
        self.corpus = open_corpus(documents, recipe.data, seed, folder, recipe.base)
        self.tokenizer = self.corpus.tokenizer
        self.marks = marks_of(self.tokenizer)
        self.shelves = {
            part: make_shelf(tokens, tokens.lengths.sum(1) + ADDED, recipe.batch.context)
            for part, tokens in (("train", self.corpus.train), ("held_out", self.corpus.held_out))
        }

    def draw(self, part: Part, seed: int) -> Examples:
        shelf, draw = self.shelves[part], chance(seed)
        chosen = shelf.draw(self.recipe.batch.size, draw)
        pairs = [shelf.tokens.document(index) for index in chosen]
        labels = shelf.tokens.labels[chosen]
        found = masked_pairs([(first, second) for first, second in pairs], labels == FOLLOWS, self.marks, draw)
        assert found.second is not None
        return replace(found, second=found.second.masked_fill(labels == UNKNOWN, UNASKED))


def passages(told: SentencePairs, part: Part, seed: int) -> list[Document]:
    """Pairs of the stories, among those of the tales and the sentences."""
    name, count = ("sentence pairs", told.documents) if part == "train" else ("held-out sentence pairs", told.held_out)
    ours = seed_for(seed, name)
    found = [pair(ours, index) for index in range(count)]
    if told.tales:
        found += pair_following(mixture.documents(told.tales, "", 1, part, seed), told.times, ours)
    whole = [Document((one.first, one.second), FOLLOWS if one.follows else ANOTHER) for one in found]
    if told.sentences:
        whole += in_two(mixture.documents("", told.sentences, told.times, part, seed), ours)
    return mixture.shuffle(whole, seed) if told.tales or told.sentences else whole


def in_two(texts: Sequence[str], seed: int) -> Iterator[Document]:
    """Sentences that have nothing to do with each other, cut at a place where one ends."""
    chance = random.Random(f"{seed}:in two").random
    for text in texts:
        told = sentences(text.replace("\n", " "))
        if len(told) > 1:
            at = number(chance, 1, len(told) - 1)
            yield Document((" ".join(told[:at]), " ".join(told[at:])), UNKNOWN)
