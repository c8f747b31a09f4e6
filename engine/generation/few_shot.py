"""Prompts made of a table: rows to learn from, a word to go on with, and how often a model is right as rows are added
(zero-, one- and few-shot prompting, Brown et al. 2020, section 2).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from random import Random

from engine.checkpoints import Checkpoint
from engine.generation.generate import generate
from engine.generation.prompt import decoder_ids
from engine.places import ASSETS

FILE = ASSETS / "texts" / "prompting.toml"
BETWEEN, BEHIND = ":", "\n"  # an input and its output, and a row and the next
KS = 0, 1, 2, 4, 8
MORE = 2  # tokens that a model may write beyond the longest output
INSTRUCTION = re.compile(r"\[to\w+\]")


@dataclass(frozen=True)
class PromptTable:
    """`rows` are inputs, no two of them the same, and their outputs; each is one line at most."""

    name: str
    rows: tuple[tuple[str, str], ...]
    about: str = ""

    def __post_init__(self) -> None:
        if len(self.rows) < 2:
            raise ValueError(
                f"a table must have at least 2 rows, one to ask and one to learn from, got {len(self.rows)}; add some."
            )
        inputs = [one for one, _ in self.rows]
        twice = next((one for one in inputs if inputs.count(one) > 1), None)
        if twice is not None:
            raise ValueError(f"each input must stand in one row of the table, and {twice!r} stands in more; keep one.")

    @property
    def most(self) -> int:
        """Number of rows there are to learn from beside the one that is asked."""
        return len(self.rows) - 1

    def output(self, query: str) -> str | None:
        """Output that belongs to an input; None for one that is not in the table."""
        return dict(self.rows).get(query)


def table_of(text: str, name: str = "table", about: str = "") -> PromptTable:
    """A row from each line, "input: output", empty lines left out. Raises ValueError for a line that is none."""
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        given, found, output = line.partition(BETWEEN)
        if found and given.strip() and output.strip():
            rows.append((given.strip(), output.strip()))
        elif line.strip():
            raise ValueError(f"line {number} must be an input, a colon and an output, got {line.strip()[:60]!r}.")
    return PromptTable(name, tuple(rows), about)


@cache
def tables() -> dict[str, PromptTable]:
    """Tables that come with Loupe, by name; the model in-context was trained on none of these prompts."""
    told = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {name: table_of(one["rows"], name, one["about"]) for name, one in told.items()}


def examples(table: PromptTable, k: int, query: str, seed: int = 0) -> tuple[tuple[str, str], ...]:
    """`k` rows in the order they are told, never that of the query. More of them are the same ones and others behind.

    Raises ValueError where the table has fewer.
    """
    others = [row for row in table.rows if row[0] != query]
    if not 0 <= k <= len(others):
        raise ValueError(f"the number of examples must be 0 to {len(others)} in this table, got {k}.")
    drawn = Random(f"{seed}:{query}".encode(errors="surrogatepass"))  # of what is no text, its tokenizer speaks
    return tuple(drawn.sample(others, len(others))[:k])


def few_shot(table: PromptTable, k: int, query: str, seed: int = 0) -> str:
    """`k` examples, a line each, and the query with a colon behind it: what a model goes on with."""
    return prompt_of(examples(table, k, query, seed), query)


def prompt_of(rows: Sequence[tuple[str, str]], query: str) -> str:
    """Writes the rows, a line each, and the query behind them."""
    return "".join(f"{one}{BETWEEN} {output}{BEHIND}" for one, output in rows) + f"{query}{BETWEEN}"


@dataclass(frozen=True)
class WrittenAnswer:
    """Text that a model wrote behind `prompt`, up to the end of the line and without spaces around it."""

    prompt: str
    query: str
    expected: str
    written: str

    @property
    def right(self) -> bool:
        return self.written == self.expected


@dataclass(frozen=True)
class Accuracy:
    """Accuracy of prompts with `k` examples each."""

    k: int
    answers: tuple[WrittenAnswer, ...]

    @property
    def n(self) -> int:
        return len(self.answers)

    @property
    def right(self) -> int:
        return sum(one.right for one in self.answers)

    @property
    def share(self) -> float:
        return self.right / self.n

    @property
    def error(self) -> float:
        """The standard error of the share, as of `n` independent draws: sqrt(p (1 - p) / n)."""
        return sqrt(self.share * (1 - self.share) / self.n)


def accuracy(
    checkpoint: Checkpoint, table: PromptTable, ks: Sequence[int] = KS, seed: int = 0, n: int = 50
) -> Iterator[Accuracy]:
    """Measures how many of `n` queries are answered right, greedily and letter for letter, with each number of
    examples.

    The queries are the same for each number: all rows in a drawn order, over again with other examples where `n` is
    more than the table has. Raises ValueError for a model that does not continue texts, a prompt that is longer than it
    reads, and a number of examples that the table does not have.
    """
    check_reads_text(checkpoint, n)
    for k in ks:
        yield Accuracy(k, tuple(answer(checkpoint, table, k, query, turn) for query, turn in queries(table, seed, n)))


def queries(table: PromptTable, seed: int, n: int) -> Iterator[tuple[str, int]]:
    """Inputs, and the seed that draws each one's examples."""
    order = Random(f"{seed}:queries").sample(table.rows, len(table.rows))
    return ((order[index % len(order)][0], seed + index // len(order)) for index in range(n))


def answer(checkpoint: Checkpoint, table: PromptTable, k: int, query: str, seed: int = 0) -> WrittenAnswer:
    """Text that the model writes in the row of the query. Where that is none of the table's, "" is expected."""
    prompt = few_shot(table, k, query, seed)
    written = line_behind(checkpoint, prompt, longest(checkpoint, table))
    return WrittenAnswer(prompt, query, table.output(query) or "", written)


def longest(checkpoint: Checkpoint, table: PromptTable) -> int:
    """Tokens of the longest output and its line break, and a few more."""
    assert checkpoint.tokenizer is not None
    rows = (checkpoint.tokenizer.encode(f" {output}{BEHIND}", special=False) for _, output in table.rows)
    return max(map(len, rows)) + MORE


def line_behind(checkpoint: Checkpoint, prompt: str, most: int) -> str:
    """Text that a decoder writes after a prompt, always the likeliest token, as far as the line goes or `most`
    tokens."""
    assert checkpoint.tokenizer is not None
    read = len(decoder_ids(checkpoint, prompt))
    if read > checkpoint.config.context:
        raise ValueError(
            f"this model reads at most {checkpoint.config.context} tokens, and this prompt has {read}, which leaves "
            "none to write; give fewer examples."
        )
    new: list[int] = []
    for step in generate(checkpoint, prompt, max_tokens=most, greedy=True):
        new.append(step.id)
        line, ended, _ = checkpoint.tokenizer.decode(new, special=False).lstrip(" ").partition(BEHIND)
        if ended:
            break
    return line.strip()


def check_reads_text(checkpoint: Checkpoint, n: int = 1) -> None:
    """Raises ValueError for a model that reads no text and goes on with it."""
    config = checkpoint.config
    if config.encoder is not None or config.infill is not None or checkpoint.tokenizer is None or not config.generates:
        raise ValueError("a prompt is for a model that goes on with a text, such as in-context or stories; choose one.")
    if n < 1:
        raise ValueError(f"the number of queries must be at least 1, got {n}.")


def instructions(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The special tokens that say what is wanted of the text before them, such as [toEnglish]; () without any."""
    names = () if checkpoint.tokenizer is None else checkpoint.tokenizer.special_tokens
    return tuple(name for name in names if INSTRUCTION.fullmatch(name))


def add_instruction(text: str, instruction: str) -> str:
    """Prompt that a model with such tokens continues."""
    return f"{text.strip()} {instruction}"
