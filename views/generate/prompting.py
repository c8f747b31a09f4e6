"""Prompts made of a table's rows, how often a model is right as rows are added, and a text with an instruction after
it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.checkpoints.locate import present_names
from engine.generation import few_shot as prompting
from engine.generation.few_shot import BEHIND, PromptTable
from engine.generation.generate import Step, generate
from engine.generation.instructions import InstructedPair, answer_behind, held_out_pairs
from engine.runtime import library
from engine.training.objectives import objectives
from views.core.codegen import Imports, quote, source_of
from views.core.table_files import Table
from views.generate.codegen import join_lines

LEARNER = "in-context"  # what is asked first
ROWS = 8  # of the most probable tokens of a step
LONGEST_LINK = 4_000  # characters of a person's own table, which stands in the address
QUERY = 200  # characters of a query
TEXT = 400  # of a text to be instructed about
QUERIES = (10, 30, 100)  # for each number of examples
ANSWER = 40  # tokens written after an instruction
OWN = "your own"


class PromptContinuation(NamedTuple):
    """Text that a model writes after `prompt`, always the likeliest token: `text`, why it stopped, and of each token
    the most probable ones in its place: ids and probabilities (token, row)."""

    checkpoint: Checkpoint
    prompt: str
    text: str
    stop: str
    ids: tuple[int, ...]
    top_ids: Tensor
    top_probabilities: Tensor

    @property
    def pieces(self) -> list[str]:
        return [piece_of(self.checkpoint, id) for id in self.ids]

    @property
    def first(self) -> int:
        """The first token that holds a letter or a digit."""
        return next((at for at, piece in enumerate(self.pieces) if any(map(str.isalnum, piece))), 0)

    def rows(self, place: int) -> pd.DataFrame:
        """Token, probability and whether it was chosen, the most probable first."""
        ids = self.top_ids[place].tolist()
        return pd.DataFrame(
            {
                "token": [piece_of(self.checkpoint, id) for id in ids],
                "probability": self.top_probabilities[place].double().numpy(),
                "is_chosen": [id == self.ids[place] for id in ids],
            }
        )


def offered_models(name: str) -> list[str]:
    """Models that continue a text of words, the one that learnt to do it from examples first; `name` is among them if
    it does."""
    names = dict.fromkeys([LEARNER, name, *present_names()])
    return [one for one in names if continues(library.checkpoint(one))]


def instructed_models(name: str) -> list[str]:
    """Models whose vocabulary has instructions, those that were taught what they mean before their bases."""
    names = [one for one in offered_models(name) if prompting.instructions(library.checkpoint(one))]
    return sorted(names, key=lambda one: not completes_pairs(library.checkpoint(one)))


def completes_pairs(checkpoint: Checkpoint) -> bool:
    """Tells whether it was trained to go on from the first text of a pair with the second."""
    learned = objectives().get(str(checkpoint.card.get("objective")))
    return learned is not None and learned.joins


def continues(checkpoint: Checkpoint) -> bool:
    try:
        prompting.check_reads_text(checkpoint)
    except ValueError:
        return False
    return True


def piece_of(checkpoint: Checkpoint, id: int) -> str:
    assert checkpoint.tokenizer is not None
    return checkpoint.tokenizer.piece(id)


def continue_greedily(checkpoint: Checkpoint, prompt: str, most: int, stops: Sequence[str] = ()) -> Iterator[Step]:
    """The likeliest token each time."""
    return generate(checkpoint, prompt, most, greedy=True, stop_strings=stops)


def written_after(checkpoint: Checkpoint, prompt: str, text: str, steps: Sequence[Step]) -> PromptContinuation:
    stop = "" if not steps or steps[-1].stopped is None else steps[-1].stopped.sentence
    if not steps:
        return PromptContinuation(checkpoint, prompt, text, stop, (), torch.empty(0, 0), torch.empty(0, 0))
    own = torch.stack([step.logits.float() for step in steps]).softmax(-1)
    top = own.topk(min(ROWS, own.shape[-1]))
    return PromptContinuation(checkpoint, prompt, text, stop, tuple(step.id for step in steps), top.indices, top.values)


def write_shots(checkpoint: Checkpoint, table: PromptTable, k: int, query: str, seed: int) -> PromptContinuation:
    """Writes the model's answer after `k` examples and the query. Raises ValueError, with a sentence."""
    prompt = prompting.few_shot(table, k, query, seed)
    answer = prompting.answer(checkpoint, table, k, query, seed)
    steps = list(continue_greedily(checkpoint, prompt, prompting.longest(checkpoint, table), (BEHIND,)))
    return written_after(checkpoint, prompt, answer.written, steps)


def write_instructed(checkpoint: Checkpoint, text: str) -> dict[str, PromptContinuation]:
    """Writes the model's answers after the text alone ("") and under each of its instructions."""
    found = {}
    for task in ("", *prompting.instructions(checkpoint)):
        prompt = prompting.add_instruction(text, task) if task else text.strip()
        steps = list(continue_greedily(checkpoint, prompt, ANSWER))
        answer = answer_behind(checkpoint, [step.id for step in steps])
        found[task] = written_after(checkpoint, prompt, answer, steps)
    return found


# --- measured ---


@lru_cache(maxsize=4096)
def answer_of(name: str, table: PromptTable, k: int, query: str, seed: int) -> prompting.WrittenAnswer:
    return prompting.answer(library.checkpoint(name), table, k, query, seed)


def answers(name: str, table: PromptTable, seed: int, n: int) -> Iterator[tuple[int, prompting.WrittenAnswer]]:
    """Number of examples and answer, for `n` queries with each number that the table has room for."""
    for k in examples_of(table):
        for query, turn in prompting.queries(table, seed, n):
            yield k, answer_of(name, table, k, query, turn)


def examples_of(table: PromptTable) -> tuple[int, ...]:
    """Numbers of examples that accuracy is measured with."""
    return tuple(k for k in prompting.KS if k <= table.most)


def share_frame(found: Sequence[tuple[int, prompting.WrittenAnswer]]) -> pd.DataFrame:
    """K, share that is right, its standard error sqrt(p (1 - p) / n), and the number of queries."""
    rows = []
    for k in dict.fromkeys(k for k, _ in found):
        right = [one.right for at, one in found if at == k]
        share = sum(right) / len(right)
        rows.append((k, share, sqrt(share * (1 - share) / len(right)), len(right)))
    return pd.DataFrame(rows, columns=["K", "right", "error", "queries"])


def pair_answers(name: str) -> Iterator[tuple[InstructedPair, str]]:
    """Sentences that no model was trained on, and what the model writes for each."""
    return ((pair, pair_written(name, pair)) for pair in held_out_pairs())


@lru_cache(maxsize=1024)
def pair_written(name: str, pair: InstructedPair) -> str:
    checkpoint = library.checkpoint(name)
    steps = continue_greedily(checkpoint, prompting.add_instruction(pair.text, pair.instruction), ANSWER)
    return answer_behind(checkpoint, [step.id for step in steps])


def pair_frame(found: Sequence[tuple[InstructedPair, str]]) -> pd.DataFrame:
    rows = [(pair.text, pair.instruction, written, pair.expected, written == pair.expected) for pair, written in found]
    return pd.DataFrame(rows, columns=["text", "instruction", "written", "expected", "right"])


# --- to download ---


def answer_table(name: str, found: Sequence[PromptContinuation]) -> Table:
    """A row for each of the most probable tokens at each place of what was written."""
    rows = [
        (one.prompt, place, piece, row["token"], id, row["probability"])
        for one in found
        for place, piece in enumerate(one.pieces)
        for id, row in zip(one.top_ids[place].tolist(), one.rows(place).to_dict("records"), strict=True)
    ]
    names = ("prompt", "place", "written", "token", "id", "probability")
    columns: dict[str, Any] = {column: [row[i] for row in rows] for i, column in enumerate(names)}
    return Table(columns, {"model": name, "table": "what might have been written"})


def accuracy_table(name: str, table: PromptTable, found: Sequence[tuple[int, prompting.WrittenAnswer]]) -> Table:
    """A row for each query that was asked, for every number of examples that was measured."""
    if not found:
        raise ValueError("Nothing is measured yet: measure first.")
    columns: dict[str, Any] = {"examples": [k for k, _ in found]}
    for column in ("query", "expected", "written", "right"):
        columns[column] = [getattr(one, column) for _, one in found]
    return Table(columns, {"model": name, "table": f"answers by number of examples, {table.name}"})


def shots_lines(name: str, table: PromptTable, own: str | None, k: int, query: str, seed: int, n: int) -> str:
    """Writes the lines that bind `found` to the WrittenAnswer that is shown and `curve` to the accuracies; `own` are a
    person's own rows."""
    source, note = source_of(name)
    few_shot = {"accuracy", "answer", "tables" if own is None else "table_of"}
    imports: Imports = {"engine": {"load"}, "engine.generation.few_shot": few_shot}
    lines = [
        f"checkpoint = load({source}){note}",
        f"table = tables()[{quote(table.name)}]" if own is None else f"table = table_of({quote(own)})",
        f"found = answer(checkpoint, table, {k}, {quote(query)}, {seed})",
        "print(found.prompt, found.written, found.right)",
        f"curve = list(accuracy(checkpoint, table, {examples_of(table)}, {seed}, n={n}))",
        "for one in curve:",
        "    print(one.k, one.share, one.error)",
    ]
    return join_lines(imports, lines)


def instructed_lines(name: str, text: str) -> str:
    """Writes the lines that bind `written` to what stands after each instruction."""
    source, note = source_of(name)
    imports: Imports = {
        "engine": {"generate", "load"},
        "engine.generation.instructions": {"answer_behind"},
        "engine.generation.few_shot": {"add_instruction", "instructions"},
    }
    lines = [
        f"checkpoint = load({source}){note}",
        "written = {}",
        "for task in instructions(checkpoint):",
        f"    steps = generate(checkpoint, add_instruction({quote(text)}, task), {ANSWER}, greedy=True)",
        "    written[task] = answer_behind(checkpoint, [step.id for step in steps])",
        "print(written)",
    ]
    return join_lines(imports, lines)
