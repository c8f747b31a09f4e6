"""English sentences and their French translations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice
from pathlib import Path

from engine.config import ModelConfig
from engine.data.translation import Pair, pair
from engine.training.corpus import Document, Documents, open_corpus
from engine.training.objectives import Examples
from engine.training.objectives.translation import Marks, teacher_forced
from engine.training.recipe import Recipe, Translation
from engine.training.seeds import seed_for
from engine.training.sources.shelf import shelf
from engine.training.sources.source import Part, Source, chance

PAD, START, END = "<pad>", "<s>", "</s>"


@dataclass(frozen=True)
class Streams:
    """The pairs to train on, and those held out, whose English sentences are none of those."""

    recipe: Translation
    seed: int

    def train(self) -> Iterator[Pair]:
        stream = seed_for(self.seed, "translation")
        return (pair(stream, index) for index in range(self.recipe.documents))

    def held_out(self) -> Iterator[Pair]:
        stream = seed_for(self.seed, "held-out translation")
        drawn = (pair(stream, index) for index in count())
        return islice((one for one in drawn if one.english not in self.seen), self.recipe.held_out)

    @cached_property
    def seen(self) -> frozenset[str]:
        return frozenset(known.english for known in self.train())


class Translations(Source):
    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        if recipe.data.translation is None:
            raise ValueError("translations need [data.translation] in the recipe; add it.")
        self.pairs = Streams(recipe.data.translation, recipe.seed)
        documents = Documents(
            lambda: map(document, self.pairs.train()), lambda: map(document, self.pairs.held_out()), (PAD, START, END)
        )
        self.corpus = open_corpus(documents, recipe.data, recipe.seed, folder)
        self.tokenizer = self.corpus.tokenizer
        self.marks = Marks(*(self.tokenizer.special_tokens[name] for name in (START, END, PAD)))
        self.shelves = {
            part: shelf(tokens, tokens.lengths.amax(1) + 1, recipe.batch.context)  # the target's start
            for part, tokens in (("train", self.corpus.train), ("held_out", self.corpus.held_out))
        }

    def draw(self, part: Part, seed: int) -> Examples:
        shelf = self.shelves[part]
        sides = [shelf.tokens.document(index) for index in shelf.draw(self.recipe.batch.size, chance(seed))]
        return teacher_forced([english for english, _ in sides], [french for _, french in sides], self.marks)

    def fitted(self, config: ModelConfig) -> ModelConfig:
        config = super().fitted(config)
        encoder = config.encoder
        return config if encoder is None else replace(config, encoder=replace(encoder, start=self.marks.start))


def document(one: Pair) -> Document:
    return Document((one.english, one.french))
