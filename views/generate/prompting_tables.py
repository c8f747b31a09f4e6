"""What can be taken away of the tab Prompting: the answer by token, what was measured, and the lines of Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.generation import few_shot as prompting
from views.core.codegen import Imports, quoted, source_of
from views.core.table_files import Table
from views.generate.codegen import joined
from views.generate.prompting import (
    ANSWER,
    MOST,
    TEXT,
    answered,
    checkpoint_of,
    instructed_parts,
    model_of,
    piece_of,
    prompt_parts,
    shots_of,
    table_of,
)
from views.generate.session import UNKNOWN, Query, Writing

USUAL = 30  # queries, where the page says nothing
UNMEASURED = "Nothing is measured yet: measure first."
STEP = ("prompt", "place", "written", "token", "id", "probability")
ASKED = ("examples", "query", "expected", "written", "right")


def answer_table(writing: Writing, query: Query) -> Table:
    """A row for each of the most probable tokens at each place of what was written."""
    checkpoint = checkpoint_of(writing, query)
    rows = list[tuple[Any, ...]]()
    if query.get("part") == "instructed":
        header, arrays = instructed_parts(checkpoint, text_of(query))
        for number, one in enumerate(header["tasks"]):
            rows += step_rows(checkpoint, one["prompt"], one["tokens"], arrays, f"{number}.")
    else:
        header, arrays = prompt_parts(checkpoint, table_of(query), *shots_of(query))
        rows += step_rows(checkpoint, header["prompt"], header["tokens"], arrays)
    return Table(columns(STEP, rows), {"model": model_of(writing, query), "table": "what might have been written"})


def step_rows(
    checkpoint: Checkpoint,
    prompt: str,
    tokens: Sequence[Mapping[str, Any]],
    arrays: Mapping[str, Tensor],
    name: str = "",
) -> list[tuple[Any, ...]]:
    return [
        (prompt, place, token["piece"], piece_of(checkpoint, id), id, share)
        for place, token in enumerate(tokens)
        for id, share in zip(
            arrays[f"{name}top.id"][place].tolist(), arrays[f"{name}top.probability"][place].tolist(), strict=True
        )
    ]


def accuracy_table(writing: Writing, query: Query) -> Table:
    """A row for each query that was asked, for every number of examples that was measured."""
    name, table = model_of(writing, query), table_of(query)
    n, ks = measured_of(query)
    rows = [
        (k, found.query, found.expected, found.written, found.right)
        for k in ks
        for asked, turn in prompting.queries(table, shots_of(query)[2], n)
        for found in [answered(name, table, k, asked, turn)]
    ]
    return Table(columns(ASKED, rows), {"model": name, "table": f"answers by number of examples, {table.name}"})


def columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def measured_of(query: Query) -> tuple[int, list[int]]:
    """How many queries were asked, with which numbers of examples. Raises ValueError where none were."""
    match query.get("measured"):
        case {"n": int(n), "ks": [*ks]} if 0 < n <= MOST and ks and all(type(k) is int for k in ks):
            return n, ks
    raise ValueError(UNMEASURED)


def queries_of(query: Query) -> int:
    """How many queries each number of examples is measured with, whether it was or not."""
    match query.get("measured"):
        case {"n": int(n)} if 0 < n <= MOST:
            return n
    return USUAL


def text_of(query: Query) -> str:
    text = query.get("text")
    if not isinstance(text, str):
        raise ValueError(UNKNOWN)
    return text[:TEXT]


def prompting_lines(writing: Writing, query: Query) -> str:
    """They bind `found` to the Answer that is shown and `curve` to the accuracies; of instructions, `written` to what
    stands behind each."""
    source, note = source_of(model_of(writing, query))
    lines = [f"checkpoint = load({source}){note}"]
    if query.get("part") == "instructed":
        return instructed_lines(lines, text_of(query))
    table = table_of(query)
    k, asked, seed = shots_of(query)
    own = "rows" in query
    few_shot = {"accuracy", "answer", "table_of" if own else "tables"}
    imports: Imports = {"engine": {"load"}, "engine.generation.few_shot": few_shot}
    lines += [
        f"table = table_of({quoted(str(query['rows']))})" if own else f"table = tables()[{quoted(table.name)}]",
        f"found = answer(checkpoint, table, {k}, {quoted(asked)}, {seed})",
        "print(found.prompt, found.written, found.right)",
        f"curve = list(accuracy(checkpoint, table, {curve_of(table)}, {seed}, n={queries_of(query)}))",
        "for one in curve:",
        "    print(one.k, one.share, one.error)",
    ]
    return joined(imports, lines)


def curve_of(table: prompting.PromptTable) -> tuple[int, ...]:
    return tuple(k for k in prompting.KS if k <= table.most)


def instructed_lines(lines: list[str], text: str) -> str:
    imports: Imports = {
        "engine": {"generate", "load"},
        "engine.generation.instructions": {"answer_behind"},
        "engine.generation.few_shot": {"instructed", "instructions"},
    }
    lines += [
        "written = {}",
        "for task in instructions(checkpoint):",
        f"    steps = generate(checkpoint, instructed({quoted(text)}, task), {ANSWER}, greedy=True)",
        "    written[task] = answer_behind(checkpoint, [step.id for step in steps])",
        "print(written)",
    ]
    return joined(imports, lines)

