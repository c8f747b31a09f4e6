"""What a person's own rows ask: the same kinds of tasks that are generated here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from engine.data.documents import Documents, cut, split_documents
from engine.data.drawing import Part, lot
from engine.data.own import Columns
from engine.data.table import Table
from engine.data.task import BETWEEN, Answered, AnswerTask, Labelled, LabelTask, Pair, PairTask, Tagged, TagTask
from engine.plurals import count_words

MOST_CLASSES = 1_000


def task_of(options: object, table: Table | None = None, labels: Sequence[str] = ()) -> object:
    """The task that a recipe's table stands for: the table itself, or what its columns ask, of a person's own `table`
    where that is read already. `labels` are a base's, in the order of its head's rows."""
    if not isinstance(options, Columns):
        return options
    kinds = {"pairs": OwnPairs, "labelled": OwnLabels, "tagged": OwnTags, "answers": OwnAnswers}
    return kinds[options.form](options, table or options.table(), tuple(labels)) if options.form in kinds else options


def join_texts(first: str, second: str) -> str:
    """Makes one key of two texts, another for each way to cut the same letters."""
    return json.dumps([first, second])


def held_out(keys: Sequence[str], share: float, seed: int) -> frozenset[str]:
    """Chooses of the different keys the share whose lots are lowest, at least one. A key is all that a model reads of a
    row, and none of what it is to answer: rows that ask the same are in one part, whatever their answers. Raises
    ValueError where there is but one."""
    different = sorted(set(keys), key=lambda key: lot(key, seed))
    if len(different) < 2:
        raise ValueError(
            "data must have at least 2 rows with different texts to read, one to learn from and one to measure on, got "
            f"1 in {len(keys):,}; add rows, or choose another column of texts."
        )
    return frozenset(different[: min(max(round(share * len(different)), 1), len(different) - 1)])


@dataclass(frozen=True)
class Own:
    """`known` are the labels of a base; where they name all classes of the rows, each keeps its number there, and with
    it its row of the head."""

    options: Columns
    table: Table
    known: tuple[str, ...] = ()

    tokenizers: ClassVar[tuple[str, ...]] = ()

    def rows(self, keys: Sequence[str], part: Part, seed: int) -> Iterator[int]:
        """Yields the rows of a part; no key is in both parts, unless the parts are files of their own."""
        if self.table.held_out:
            first = len(keys) - self.table.held_out
            return iter(range(first, len(keys)) if part == "held_out" else range(first))
        theirs = held_out(keys, self.options.held_out, seed)
        return (row for row, key in enumerate(keys) if (key in theirs) == (part == "held_out"))


@dataclass(frozen=True)
class OwnTexts(Own):
    @cached_property
    def all(self) -> tuple[str, ...]:
        return self.table.texts(self.options.text)

    def texts(self, part: Part, seed: int) -> Iterator[str]:
        return (self.all[row] for row in self.rows(self.all, part, seed))


@dataclass(frozen=True)
class OwnPairs(Own, PairTask):
    separator: ClassVar[str] = BETWEEN

    @cached_property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.table.texts(self.options.source), self.table.texts(self.options.target)

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        sources, targets = self.columns
        rows = list(self.rows(sources, part, seed))
        yield from (Pair(sources[row], targets[row]) for row in rows)
        if part == "train" and self.options.joined:
            mixed = sorted(rows, key=lambda row: lot(f"joined {row}", seed))
            for some in list(zip(mixed, mixed[1:], strict=False))[: round(self.options.joined * len(rows))]:
                yield Pair(*(" ".join(texts[row] for row in some) for texts in (sources, targets)))


@dataclass(frozen=True)
class OwnLabels(Own, LabelTask):
    @cached_property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.table.texts(self.options.text), self.table.texts(self.options.label)

    @cached_property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return classes(self.columns[1], "label", self.known)

    def texts(self, part: Part, seed: int) -> Iterator[Labelled]:
        texts, labels = self.columns
        pairs = self.table.texts(self.options.pair) if self.options.pair else ("",) * len(texts)
        keys = list(map(join_texts, texts, pairs)) if self.options.pair else texts
        rows = self.rows(keys, part, seed)
        return (Labelled(texts[row], self.labels.index(labels[row]), pairs[row]) for row in rows)


@dataclass(frozen=True)
class OwnTags(Own, TagTask):
    @cached_property
    def columns(self) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, ...], ...]]:
        words, tags = self.table.words(self.options.tokens), self.table.words(self.options.tags)
        for row, (some, others) in enumerate(zip(words, tags, strict=True), 1):
            if len(some) != len(others):
                raise ValueError(
                    f"row {row:,} must have a tag for each token, got {count_words(len(some), 'token')} and "
                    f"{count_words(len(others), 'tag')}; "
                    "correct or remove the row."
                )
        return words, tags

    @cached_property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return classes([tag for row in self.columns[1] for tag in row], "tag", self.known)

    def sentences(self, part: Part, seed: int) -> Iterator[Tagged]:
        words, tags = self.columns
        keys = [" ".join(row) for row in words]
        return (Tagged(words[row], tags[row]) for row in self.rows(keys, part, seed))


@dataclass(frozen=True)
class OwnAnswers(Own, AnswerTask):
    @cached_property
    def all(self) -> tuple[Answered, ...]:
        """Raises ValueError for the first row whose answer does not stand where it says."""
        options = self.options
        texts = map(self.table.texts, (options.question, options.context))
        firsts = map(self.table.firsts, (options.answer, options.start))  # of several answers to a question
        found = []
        for row, cells in enumerate(zip(*texts, *firsts, strict=True), 1):
            question, context, answer, start = cells
            at = int(start) if start.isdecimal() else -1
            if at < 0 or context[at : at + len(answer)] != answer:
                raise ValueError(
                    f"row {row:,} must have its answer {answer!r:.40} in the context from the character that "
                    f"{options.start!r:.40} counts from 0, got {start!r:.20}; correct or remove the row."
                )
            found.append(Answered(question, context, answer, at))
        return tuple(found)

    def answers(self, part: Part, seed: int) -> Iterator[Answered]:
        keys = [join_texts(one.question, one.context) for one in self.all]
        return (self.all[row] for row in self.rows(keys, part, seed))


def classes(names: Sequence[str], what: str, known: tuple[str, ...] = ()) -> tuple[str, ...]:
    found = tuple(sorted(set(names)))
    if found and set(found) <= set(known):
        return known
    if not 2 <= len(found) <= MOST_CLASSES:
        got = f"only {found[0]!r:.80}" if len(found) == 1 else f"{len(found):,}"
        raise ValueError(
            f"the column of the {what}s must have 2 to {MOST_CLASSES:,} different ones, got {got}; choose another "
            "column, or add rows."
        )
    return found


def own_documents(options: Columns, seed: int) -> Documents:
    """Rows of a table as running text. A single one is cut in two."""
    own = OwnTexts(options, options.table())
    if len(set(own.all)) == 1 and not own.table.held_out:
        return cut(own.all[0], options.held_out)
    return split_documents(own.texts, seed)
