"""Windows of a running text with gaps to fill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from engine.data.drawing import Part
from engine.data.seeds import seed_for
from engine.model.config import Infill, ModelConfig
from engine.scoring.examples import Examples
from engine.tokenizers import END as END_OF_TEXT
from engine.training.examples.infill import END, MASK, START, infill_examples, marks_of
from engine.training.recipe.recipe import Recipe
from engine.training.run.atomic import write_json
from engine.training.sources.infill import ADDED, MOST, edges_at, with_gaps, with_long_gap, word_beginnings
from engine.training.sources.source import chance
from engine.training.sources.windows import Windows

APART = 16  # tokens of the context for each gap
LONG_WORD = 16  # tokens: where words are longer than that on average, gaps are cut between any two tokens
SHORTEST = 0.25  # of the longest window


class GappedWindows(Windows):
    """Draws a length, of SHORTEST to all of what the context leaves beside the marks of the gaps: were they all as
    long, a model would count how much a gap must hold, and fill those of a shorter text with too much.

    To learn from, the share `objective.long_gaps` of the windows has one gap of half the words or more, the others have
    short ones that hold about the share `objective.hidden` of the words. Held out, each has one short gap.
    """

    special_tokens: ClassVar[tuple[str, ...]] = (END_OF_TEXT, MASK, START, END)

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.most = max(1, min(MOST, recipe.batch.context // APART))
        self.more = -ADDED * self.most
        if recipe.batch.context + self.more < 2:
            least = 2 - self.more
            raise ValueError(f"batch.context must be at least {least} for a gap, got {recipe.batch.context}.")
        super().__init__(recipe, folder)
        self.marks = marks_of(self.corpus.tokenizer)
        ids = torch.tensor([self.marks.mask, self.marks.start, self.marks.end], dtype=torch.int32)
        if any(bool(torch.isin(tokens.ids, ids).any()) for tokens in (self.corpus.train, self.corpus.held_out)):
            raise ValueError(
                f"the text must have none of the marks {MASK}, {START} and {END}, got one; take it out of the text."
            )
        self.end_ids = (self.marks.end,)
        write_json(folder / "generation_config.json", {"eos_token_id": self.marks.end})  # for whoever opens a snapshot
        self.begins = word_beginnings(self.corpus.tokenizer)

    def draw(self, part: Part, seed: int) -> Examples:
        return infill_examples(self.pieces(part, seed), self.marks)

    def pieces(self, part: Part, seed: int) -> list[list[Tensor]]:
        """Cuts each window: text, span, text, ..., text."""
        draw = chance(seed)
        windows = self.windows(part, draw)
        shortest = max(2, round(SHORTEST * self.length))
        stops = torch.randint(shortest, self.length + 1, (len(windows),), generator=draw).tolist()
        return [self.cut(ids[:stop], part, draw) for ids, stop in zip(windows, stops, strict=True)]

    def cut(self, ids: Tensor, part: Part, chance: torch.Generator) -> list[Tensor]:
        edges, asked = self.edges(ids), self.recipe.objective
        if part == "held_out":
            return with_gaps(ids, edges, 0.0, chance, most=1)
        if float(torch.rand((), generator=chance)) < asked.long_gaps:
            return with_long_gap(ids, edges, chance)
        return with_gaps(ids, edges, asked.hidden, chance, self.most)

    def edges(self, ids: Tensor) -> list[int]:
        """Places at which a gap may begin and end: the edges of words, the end of a document being one, or of all
        tokens."""
        ends = ids == self.corpus.tokenizer.special_tokens.get(END_OF_TEXT, -1)
        first = self.begins[ids] | ends
        first[1:] |= ends[:-1]
        found = edges_at(first)
        return found if len(found) > max(2, len(ids) / LONG_WORD) else list(range(len(ids) + 1))

    def gaps(self, most: int) -> Sequence[Sequence[Tensor]]:
        """Passages held out, each as text, span, text; as many as asked."""
        batches = range(-(-most // self.recipe.batch.size))
        drawn = (self.pieces("held_out", seed_for(self.recipe.data_seed, "held-out", index)) for index in batches)
        return [pieces for batch in drawn for pieces in batch][:most]

    def complete_config(self, config: ModelConfig) -> ModelConfig:
        return replace(super().complete_config(config), infill=Infill(self.marks.mask, self.marks.start))
