"""Two passages of the stories, with words to guess and the question whether they belong together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engine.data.seeds import seed_for
from engine.data.sentences import pair
from engine.scoring.examples import Examples
from engine.training.corpus import Document, Documents, open_corpus, read_parts
from engine.training.objectives.masked import marks_of, masked_pairs
from engine.training.recipe import Recipe
from engine.training.sources.shelf import shelf
from engine.training.sources.source import Part, Source, chance

ADDED = 3  # [CLS] and two [SEP]


class PairsOfPassages(Source):
    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        if recipe.data.sentence_pairs is None:
            raise ValueError("pairs of passages need [data.sentence_pairs] in the recipe; add it.")
        told, seed = recipe.data.sentence_pairs, recipe.seed
        ours, theirs = seed_for(seed, "sentence pairs"), seed_for(seed, "held-out sentence pairs")
        documents = Documents(
            lambda: passages(ours, told.documents), lambda: passages(theirs, told.held_out), read=read_parts
        )
        self.corpus = open_corpus(documents, recipe.data, seed, folder, recipe.base)
        self.tokenizer = self.corpus.tokenizer
        self.marks = marks_of(self.tokenizer)
        self.shelves = {
            part: shelf(tokens, tokens.lengths.sum(1) + ADDED, recipe.batch.context)
            for part, tokens in (("train", self.corpus.train), ("held_out", self.corpus.held_out))
        }

    def draw(self, part: Part, seed: int) -> Examples:
        shelf, draw = self.shelves[part], chance(seed)
        chosen = shelf.draw(self.recipe.batch.size, draw)
        pairs = [shelf.tokens.document(index) for index in chosen]
        follows = shelf.tokens.labels[chosen] == 1
        return masked_pairs([(first, second) for first, second in pairs], follows, self.marks, draw)


def passages(seed: int, count: int) -> Iterator[Document]:
    for index in range(count):
        one = pair(seed, index)
        yield Document((one.first, one.second), int(one.follows))
