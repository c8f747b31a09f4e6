"""Prompts with two answers each, of which one is preferred."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path

import torch
from torch import Tensor

from engine.data.documents import Document, Documents
from engine.data.drawing import Part
from engine.data.kinds.preferences import Preferences
from engine.data.own_tasks import held_out
from engine.data.seeds import seed_for
from engine.scoring.examples import Examples
from engine.tokenizers import Tokenizer
from engine.tokenizers.continuation import read_continuation
from engine.training.base.base import tokenizer_of
from engine.training.examples.classification import classification_examples
from engine.training.examples.completion import Marks, completion_examples
from engine.training.examples.padding import pad_rows, real
from engine.training.objectives import find_objective
from engine.training.policy.pairs import PreferencePair, read_pairs, render_pairs
from engine.training.recipe.recipe import Recipe
from engine.training.run.folder import RunFolder
from engine.training.sources.corpus import Tokens
from engine.training.sources.shelved_texts import ShelvedTexts
from engine.training.sources.source import chance, count_rows

CHOSEN, REJECTED = 1, 2  # texts of a document, behind the prompt
PROMPTS = 10  # whose answers are shown as a training goes on


class RenderedAnswers(Document):
    """A prompt and two answers that a chat template has written, with all marks."""


@dataclass(frozen=True)
class AnsweredPairs:
    """`ids`, `real` (a token stands there) and `answer` (it is one of the answer's) are pair 2 pos: of each pair the
    chosen one and the rejected one, behind their prompt."""

    ids: Tensor
    real: Tensor
    answer: Tensor


class PreferredAnswers(ShelvedTexts[PreferencePair]):
    """Pairs of answers, each behind its prompt; one that is too long for the context is left out. As examples of its
    own it asks for the chosen answers. A prompt with all its pairs is learned from or held out."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        if not recipe.base:
            raise ValueError("base must name the model that learns from preferences, got none; add a base.")
        table, tokenizer = recipe.data.expect(Preferences), tokenizer_of(recipe.base)
        self.pairs = render_pairs(tokenizer, read_pairs(table.path))
        other = table.held_out_path
        self.pairs_held_out = render_pairs(tokenizer, read_pairs(other)) if other else None
        self.marked = self.pairs[0].form == "text"  # else the template writes all marks
        self.ended = table.ended and self.marked
        self.theirs = frozenset[str]()
        if self.pairs_held_out is None:
            keys = [pair.prompt or pair.chosen for pair in self.pairs]
            self.theirs = held_out(keys, table.held_out, recipe.data_seed)
        told = Documents(
            lambda: map(document, self.task_examples("train")),
            lambda: map(document, self.task_examples("held_out")),
            read=read_answers,
        )
        super().__init__(recipe, folder, told)
        self.read_prompts: dict[Part, list[tuple[int, ...]]] = {}
        own = self.corpus.tokenizer.end_id
        config = replace(recipe.model, vocab_size=count_rows(recipe.model, self.corpus.tokenizer))
        self.end_ids = RunFolder(folder).settings.read_end_ids(config) or (() if own is None else (own,))
        ends = [own, *self.end_ids]
        known = (id for id in ends if id is not None and id < config.vocab_size)
        self.end = next(known, None)  # of the answers of a file

    def task_examples(self, part: Part) -> Iterator[PreferencePair]:
        held_out = part == "held_out"
        if self.pairs_held_out is not None:
            return iter(self.pairs_held_out if held_out else self.pairs)
        return (pair for pair in self.pairs if ((pair.prompt or pair.chosen) in self.theirs) == held_out)

    def lengths(self, tokens: Tokens) -> Tensor:
        """Counts what is read of a prompt and its longer answer, with the end token."""
        return tokens.lengths[:, 0] + tokens.lengths[:, 1:].max(1).values + int(self.ended)

    @property
    def added_end(self) -> list[int]:
        """The token that closes an answer of the file, where one does."""
        return [self.end] if self.ended and self.end is not None else []

    def examples(self, part: Part, indexes: Sequence[int]) -> Examples:
        tokens = self.shelves[part].tokens
        if not find_objective(self.recipe.objective.kind).moves_policy:
            pairs = self.answered_pairs(part, indexes)
            chosen = torch.zeros(len(indexes), dtype=torch.long)
            return classification_examples(pairs.ids[:, 0], chosen, pairs.real[:, 0])
        marks = Marks(None, self.fill if self.end is None else self.end, bool(self.added_end))
        return completion_examples(tokens.rows(indexes, 0), tokens.rows(indexes, CHOSEN), marks)

    def answered_pairs(self, part: Part, indexes: Sequence[int]) -> AnsweredPairs:
        tokens = self.shelves[part].tokens
        rows, begins = list[Tensor](), list[int]()
        for index in indexes:
            prompt, *answers = tokens.document(index)
            for answer in answers:
                rows.append(torch.cat([prompt.long(), answer.long(), torch.tensor(self.added_end, dtype=torch.long)]))
                begins.append(len(prompt))
        ids, stands = pad_rows(rows, self.fill), real(rows)
        answer = stands & (torch.arange(ids.shape[1]) >= torch.tensor(begins)[:, None])
        shape = (len(indexes), 2, -1)
        return AnsweredPairs(ids.view(shape), stands.view(shape), answer.view(shape))

    def draw_pairs(self, step: int) -> AnsweredPairs:
        """The pairs that update `step` learns from."""
        seed = seed_for(self.recipe.seed, "batch", step)
        return self.answered_pairs("train", self.shelves["train"].draw(self.recipe.batch.size, chance(seed)))

    def draw_prompts(self, count: int, step: int) -> list[tuple[int, ...]]:
        """`count` prompts that update `step` answers, as ids."""
        prompts = self.prompts("train")
        drawn = torch.randint(len(prompts), (count,), generator=chance(seed_for(self.recipe.seed, "batch", step)))
        return [prompts[index] for index in drawn.tolist()]

    @cached_property
    def shown_prompts(self) -> list[tuple[int, ...]]:
        """The same few held-out prompts at every step."""
        return self.prompts("held_out")[:PROMPTS]

    def prompts(self, part: Part) -> list[tuple[int, ...]]:
        """The different prompts of a part, as ids, in the order in which they stand: each whole, as it is when nothing
        follows it."""
        if part not in self.read_prompts:
            texts = dict.fromkeys(self.rows[part][index].prompt for index in self.shelves[part].fit.tolist())
            found = (tuple(read_continuation(self.corpus.tokenizer, text, "", self.marked)[0]) for text in texts)
            self.read_prompts[part] = list(dict.fromkeys(prompt for prompt in found if prompt))
        return self.read_prompts[part]


def read_answers(tokenizer: Tokenizer, document: Document) -> list[list[int]]:
    """Ids of the prompt and of what follows it in each text, which is read as one with it. A token that has characters
    of the prompt and of one answer belongs to the answers: the prompt ends where both texts are the same up to it."""
    prompt, *answers = document.texts
    marked = not isinstance(document, RenderedAnswers)
    read = [read_continuation(tokenizer, prompt, answer, marked) for answer in answers]
    same = (len(set(ids)) == 1 for ids in zip(*(before for before, _ in read), strict=False))
    count = sum(takewhile(bool, same))
    return [read[0][0][:count], *(before[count:] + after for before, after in read)]


def document(one: PreferencePair) -> Document:
    kind = Document if one.form == "text" else RenderedAnswers
    return kind((one.prompt, one.chosen, one.rejected))
