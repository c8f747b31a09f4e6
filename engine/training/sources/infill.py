"""Passages of the stories, or of real texts, with a gap to fill."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from engine.data import mixture
from engine.data.documents import Document, Documents, read_parts
from engine.data.kinds.infill import Gaps
from engine.data.seeds import seed_for
from engine.data.sentences import cut_gaps, span
from engine.model.config import Infill, ModelConfig
from engine.scoring.examples import Examples
from engine.tokenizers import Tokenizer
from engine.training.examples.infill import END, MASK, START, infill_examples, marks_of
from engine.training.recipe.recipe import Recipe
from engine.training.run.atomic import write_json
from engine.training.sources.corpus import open_corpus
from engine.training.sources.shelf import make_shelf
from engine.training.sources.source import Part, Source, chance

ADDED = 2  # the mark of a gap, and the one that begins its span
MOST = 12  # gaps in a passage
LONGEST = 12  # words in a gap that is drawn
MEAN = 3  # words in it, before the longest are left out
TRIES = 30
COMMON = 64  # words of the corpus that are never hidden because they recur: the, and, was, ...
SAMPLE = 2_000  # documents in which they are counted


class GappedPassages(Source):
    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        told, seed = recipe.data.expect(Gaps), recipe.data_seed
        documents = Documents(
            lambda: iter(passages(told, "train", seed)),
            lambda: iter(passages(told, "held_out", seed)),
            (MASK, START, END),
            read=read_parts,
            template="bare",
        )
        self.corpus = open_corpus(documents, recipe.data, seed, folder, recipe.base)
        self.tokenizer = self.corpus.tokenizer
        self.marks = marks_of(self.tokenizer)
        self.end_ids = (self.marks.end,)
        write_json(folder / "generation_config.json", {"eos_token_id": self.marks.end})  # for whoever opens a snapshot
        self.told = told
        pieces = [self.tokenizer.decode([id]) for id in range(self.tokenizer.vocab_size)]
        self.begins = word_beginnings(self.tokenizer)
        self.letters = torch.tensor([piece.strip().isalpha() for piece in pieces])
        self.common = self.most_common()
        self.shelves = {
            part: make_shelf(tokens, tokens.lengths.sum(1) + gaps * ADDED, recipe.batch.context)
            for part, tokens, gaps in (("train", self.corpus.train, MOST), ("held_out", self.corpus.held_out, 1))
        }

    def draw(self, part: Part, seed: int) -> Examples:
        """Held out, a passage has its own gap; to learn from, several are drawn anew in most of them."""
        shelf, drawn = self.shelves[part], chance(seed)
        whole = [shelf.tokens.document(index) for index in shelf.draw(self.recipe.batch.size, drawn)]
        return infill_examples([self.cut(pieces, drawn) for pieces in whole] if part == "train" else whole, self.marks)

    def cut(self, pieces: Sequence[Tensor], chance: torch.Generator) -> Sequence[Tensor]:
        told, kind = self.told, float(torch.rand((), generator=chance))
        if kind < told.own:
            return pieces
        ids = torch.cat(list(pieces))
        edges = edges_at(self.begins[ids])
        if kind < told.own + told.long:
            return with_long_gap(ids, edges, chance)
        if kind < told.own + told.long + told.recurring:
            return self.with_recurring(ids, chance) or with_gaps(ids, edges, told.hidden, chance)
        return with_gaps(ids, edges, told.hidden, chance)

    def with_recurring(self, ids: Tensor, chance: torch.Generator) -> list[Tensor]:
        return with_recurring_gaps(ids, words(ids, self.begins, self.letters), self.common, chance)

    def most_common(self) -> frozenset[tuple[int, ...]]:
        counts: Counter[tuple[int, ...]] = Counter()
        for index in range(min(SAMPLE, len(self.corpus.train.starts))):
            ids = torch.cat(self.corpus.train.document(index))
            counts.update(tuple(ids[start:stop].tolist()) for start, stop in words(ids, self.begins, self.letters))
        return frozenset(word for word, _ in counts.most_common(COMMON))

    def gaps(self, most: int) -> Sequence[Sequence[Tensor]]:
        """Passages held out, each as text, span, text; no more than asked."""
        shelf = self.shelves["held_out"]
        return [shelf.tokens.document(index) for index in shelf.fit[:most].tolist()]

    def complete_config(self, config: ModelConfig) -> ModelConfig:
        return replace(super().complete_config(config), infill=Infill(self.marks.mask, self.marks.start))


def with_gaps(ids: Tensor, edges: list[int], hidden: float, chance: torch.Generator, most: int = MOST) -> list[Tensor]:
    """`ids` cut into text, span, text, ..., about the share `hidden` of the words in at most `most` spans of few words.

    `edges` are those of its words, from 0 to its length. No two spans touch; their lengths fall off geometrically.
    """
    words = len(edges) - 1
    spans: list[tuple[int, int]] = []
    left = max(1, round(hidden * words))
    for _ in range(TRIES):
        draw = torch.rand(2, generator=chance, dtype=torch.float64).tolist()
        length = min(1 + int(math.log1p(-draw[0]) / math.log1p(-1 / MEAN)), LONGEST, words - 1)
        first = int(draw[1] * (words - length + 1))
        if length and all(first + length < start or first > stop for start, stop in spans):
            spans.append((first, first + length))
            left -= length
        if left <= 0 or len(spans) == most:
            break
    return cut_at(ids, [edges[word] for span in sorted(spans) for word in span])


def with_long_gap(ids: Tensor, edges: list[int], chance: torch.Generator) -> list[Tensor]:
    """`ids` cut into text, span, text, the span being half of the words to nearly all of them."""
    words = len(edges) - 1
    draw = torch.rand(2, generator=chance, dtype=torch.float64).tolist()
    length = min(math.ceil(words * (0.5 + 0.5 * draw[0])), max(words - 1, 1))
    first = int(draw[1] * (words - length + 1))
    return cut_at(ids, [edges[first], edges[first + length]])


def with_recurring_gaps(
    ids: Tensor, spans: Sequence[tuple[int, int]], common: Collection[tuple[int, ...]], chance: torch.Generator
) -> list[Tensor]:
    """`ids` cut into text, span, text, ..., the spans being words that also stand elsewhere, where they stay.

    What is hidden is decided by the whole text and not by its neighbours (salient spans, Guu et al. 2020, section 3.4).
    `spans` are its words; none of the `common` ones is taken. Empty where no word recurs.
    """
    places: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for start, stop in spans:
        places.setdefault(tuple(ids[start:stop].tolist()), []).append((start, stop))
    candidates: list[tuple[int, int]] = []
    for word, found in places.items():
        if len(found) > 1 and word not in common:
            order = torch.randperm(len(found), generator=chance).tolist()
            candidates += [found[i] for i in order[: max(1, len(found) // 2)]]
    chosen: list[tuple[int, int]] = []
    for i in torch.randperm(len(candidates), generator=chance).tolist():
        start, stop = candidates[i]
        if len(chosen) < MOST and all(start > other_stop or stop < other for other, other_stop in chosen):
            chosen.append((start, stop))
    return cut_at(ids, [edge for span in sorted(chosen) for edge in span]) if chosen else []


def words(ids: Tensor, begins: Tensor, letters: Tensor) -> list[tuple[int, int]]:
    """Finds where each word stands that follows a space, without the marks behind it."""
    first, inside = begins[ids.long()].tolist(), letters[ids.long()].tolist()
    found: list[tuple[int, int]] = []
    for start in (i for i in range(len(ids)) if first[i] and inside[i]):
        stop = start + 1
        while stop < len(ids) and inside[stop] and not first[stop]:
            stop += 1
        found.append((start, stop))
    return found


def word_beginnings(tokenizer: Tokenizer) -> Tensor:
    """vocab: which tokens begin a word, so that there is a space between a letter and them."""
    vocabulary = range(tokenizer.vocab_size)
    letters = (id for id in vocabulary if tokenizer.decode([id]).strip().isalnum())
    before = [*islice(letters, 1)]
    end = len(tokenizer.decode(before))
    return torch.tensor([tokenizer.decode([*before, id])[end : end + 1].isspace() for id in vocabulary])


def edges_at(first: Tensor) -> list[int]:
    """Finds where each word begins, and the end of the last; `first` (pos) says which tokens begin one."""
    return [*sorted({0, *first.nonzero().flatten().tolist()}), len(first)]


def cut_at(ids: Tensor, cuts: list[int]) -> list[Tensor]:
    return [ids[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(ids)], strict=True)]


def passages(told: Gaps, part: Part, seed: int) -> list[Document]:
    """Passages of the stories, among those of real texts."""
    name, count = ("infill", told.documents) if part == "train" else ("held-out infill", told.held_out)
    ours = seed_for(seed, name)
    found = [span(ours, index) for index in range(count)]
    real = mixture.documents(told.tales, told.sentences, told.times, part, seed)
    whole = [Document((one.before, one.span, one.after)) for one in (*found, *cut_gaps(real, ours))]
    return mixture.shuffle(whole, seed) if real else whole
