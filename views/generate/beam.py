"""A beam search for the browser: the tree of its hypotheses, what it found, how the greedy text stands beside that, and
what can be downloaded of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from engine.generation.beam import BeamStep, Hypothesis
from engine.generation.prompt import begin, decode_ids, text_of
from views.core.codegen import Imports
from views.core.payload import pack
from views.core.table_files import Table
from views.generate.beam_report import greedy_told, over_told
from views.generate.beam_search import EXAMPLES, STATES, BeamOptions, Search
from views.generate.codegen import call_arguments, join_lines, prompt_lines
from views.generate.session import GenerationContext
from views.generate.steps import stop_header

USUAL = BeamOptions(best=1)
SHOWN = """for one in result.hypotheses:
    print(f"{one.score:.3f} {one.log_probability:.2f} {len(one.ids)} {one.text!r}")"""
GOING = """for one in (*found[-1].best, *found[-1].kept):
    why = "finished" if one.stopped else "goes on"
    print(f"{one.score:.3f} {one.log_probability:.2f} {len(one.ids)} {why} {one.text!r}")"""
PRUNED = """for step in found:
    for one in step.candidates:
        why = "finished" if one in step.finished else ""
        if one in step.pruned:
            why = f"pruned, {step.margin(one):.2f} nats behind"
        print(step.index + 1, one.rank, one.piece, f"{one.log_probability:.2f}", why)"""


def beam_payload(search: Search, first: int = 0) -> bytes:
    """Without what is there of the steps before `first`."""
    return pack(search_header(search, first), {**node_arrays(search, first), **greedy_arrays(search, first)})


def search_header(search: Search, first: int = 0) -> dict[str, Any]:
    """`best` are the nodes of the n best, the best first; `found` for each step those finished so far. Before it is
    over, after `count` steps of at most `room`, nothing is `told`."""
    writing, nodes, greedy = search.writing, since(search, first), search.greedy.ids
    ids = {*(one.id for one in nodes.values()), *greedy[first:]}
    return {
        "from": first,
        "whole": search.is_over,
        "count": max(len(search.steps), len(greedy)),
        "room": search.room,
        "pieces": {str(id): writing.piece(id) for id in sorted(ids)},
        "beams": search.wanted.beams,
        "best": [search.index_of(one) for one in search.best],
        "texts": [text_with_prompt(search, one.ids) for one in search.best],
        "said": [text_without_prompt(search, one.ids) for one in nodes.values()],
        "found": [[search.index_of(one) for one in step.best] for step in search.steps[first:]],
        "ended": {str(at): stop_header(one.stopped) for at, one in nodes.items() if one.stopped and is_in(search, one)},
        "greedy_text": text_with_prompt(search, greedy),
        "greedy_said": [text_without_prompt(search, greedy[: at + 1]) for at in range(first, len(greedy))],
        "greedy_ended": stop_header(search.greedy.stopped),
        "greedy_score": search.wanted.beam.score(float(search.greedy.total[-1]), len(greedy)),
        "over": over_told(search) if search.is_over else "",
        "told": greedy_told(search) if search.is_over else [],
        "examples": examples(writing, search.wanted.stop_at),
    }


def since(search: Search, first: int) -> dict[int, Hypothesis]:
    """The nodes of the steps from `first` on, by their place among all."""
    return {at: one for at, one in enumerate(search.nodes) if len(one.ids) > first}


def is_in(search: Search, one: Hypothesis) -> bool:
    return search.state(one) == "finished"


def text_without_prompt(search: Search, ids: Sequence[int]) -> str:
    """Text that was written, without the prompt and special tokens."""
    return decode_ids(search.writing.checkpoint, ids, special=False)


def text_with_prompt(search: Search, ids: Iterable[int]) -> str:
    return text_of(search.writing.checkpoint, (*search.writing.prompt.ids, *ids))


def node_arrays(search: Search, first: int = 0) -> dict[str, Tensor]:
    """node, each of them; `behind` is the rank that the margin of a pruned one is measured from, and 0 elsewhere."""
    nodes = list(since(search, first).values())
    steps = [search.steps[len(one.ids) - 1] for one in nodes]
    states = [search.state(one) for one in nodes]
    lost = [state == "pruned" for state in states]
    margins = [step.margin(one) if out else math.nan for one, step, out in zip(nodes, steps, lost, strict=True)]
    whole: Mapping[str, list[int]] = {
        "step": [step.index for step in steps],
        "rank": [one.rank for one in nodes],
        "parent": [search.parent(one) for one in nodes],
        "id": [one.id for one in nodes],
        "state": [STATES.index(state) for state in states],
        "behind": [behind(step, one) if out else 0 for one, step, out in zip(nodes, steps, lost, strict=True)],
    }
    real = {
        "log_probability": [one.log_probability for one in nodes],
        "score": [one.score for one in nodes],
        "margin": margins,
    }
    return {
        **{f"node.{name}": torch.tensor(column, dtype=torch.int32) for name, column in whole.items()},
        **{f"node.{name}": torch.tensor(column, dtype=torch.float32) for name, column in real.items()},
    }


def behind(step: BeamStep, one: Hypothesis) -> int:
    """The rank from which `BeamStep.margin` measures."""
    return min(step.beams, len(step.candidates)) if one.stopped else step.kept[-1].rank


def greedy_arrays(search: Search, first: int = 0) -> dict[str, Tensor]:
    """token, each of them: `own` log-probability, the `total` so far, the `node` of the tree that it is (or -1)."""
    greedy = search.greedy
    lengths = range(1, len(greedy.ids) + 1)
    scores = [search.wanted.beam.score(float(total), n) for total, n in zip(greedy.total, lengths, strict=True)]
    return {
        "greedy.id": torch.tensor(greedy.ids[first:], dtype=torch.int32),
        "greedy.own": greedy.own[first:],
        "greedy.total": greedy.total[first:],
        "greedy.score": torch.tensor(scores[first:], dtype=torch.float32),
        "greedy.node": torch.tensor(search.on_greedy[first:], dtype=torch.int32),
    }


def examples(writing: GenerationContext, stop_at: str) -> list[dict[str, Any]]:
    """Lists the shipped examples, those of the model that is looked at first; without the one that is looked at."""
    others = [one for one in EXAMPLES if not is_here(writing, stop_at, one)]
    return sorted(others, key=lambda one: one["model"] != writing.name)


def is_here(writing: GenerationContext, stop_at: str, example: Mapping[str, Any]) -> bool:
    if (writing.name, stop_at) != (example["model"], example["stop_at"]):
        return False
    return begin(writing.checkpoint, example["text"]).ids == writing.prompt.ids


# --- to download ---


def node_table(search: Search) -> Table:
    """A row for each hypothesis that was considered; `parent` is one of the rows, or -1, the prompt."""
    writing = search.writing
    arrays, nodes, best = node_arrays(search), search.nodes, [search.index_of(one) for one in search.best]
    columns: dict[str, Any] = {
        "step": (arrays["node.step"] + 1).numpy(),
        "rank": arrays["node.rank"].numpy(),
        "parent": arrays["node.parent"].numpy(),
        "id": arrays["node.id"].numpy(),
        "token": [writing.piece(one.id) for one in nodes],
        "log_probability": arrays["node.log_probability"].numpy(),
        "score": arrays["node.score"].numpy(),
        "state": [search.state(one) for one in nodes],
        "margin": arrays["node.margin"].numpy(),
        "on_greedy_path": [at in search.on_greedy for at in range(len(nodes))],
        "n_best": [best.index(at) + 1 if at in best else 0 for at in range(len(nodes))],
        "text": [text_with_prompt(search, one.ids) for one in nodes],
    }
    return Table(columns, {"model": writing.name, "table": "hypotheses of the beam search", **part(search)})


def part(search: Search) -> dict[str, str]:
    """Describes a search that is not over."""
    return {} if search.is_over else {"steps": f"the first {len(search.steps)} of at most {search.room}"}


def path_table(search: Search) -> Table:
    """A row for each token of the best text, and below them for each of the greedy one."""
    writing = search.writing
    greedy, line = search.greedy, search.line(search.best_open)
    own = [*(search.own(one) for one in line), *greedy.own.tolist()]
    total = [*(one.log_probability for one in line), *greedy.total.tolist()]
    ids = [*search.best_open.ids, *greedy.ids]
    columns: dict[str, Any] = {
        "text": ["best"] * len(line) + ["greedy"] * len(greedy.ids),
        "position": [*range(len(line)), *range(len(greedy.ids))],
        "id": ids,
        "token": [writing.piece(id) for id in ids],
        "log_probability": own,
        "sum": total,
    }
    title = "the best text and the greedy one, token by token"
    return Table(columns, {"model": writing.name, "table": title, **part(search)})


def beam_script(search: Search) -> str:
    """Writes the lines that bind `found` to the steps of the search, and `steps` to those of the greedy text beside it;
    of a search that is over `result` is all of it."""
    imports, lines = prompt_lines(search.writing)
    imports["engine"] |= {"generate"}
    lines += over_lines(search, imports) if search.is_over else first_lines(search, imports)
    lines += [PRUNED, greedy_line(search)]
    lines += ["log_probability = sum(float(step.logits.log_softmax(-1)[step.id]) for step in steps)"]
    made = join_lines(imports, [*lines, 'print("greedy", f"{log_probability:.2f}", repr(steps[-1].text))'])
    return made if search.is_over else f"from itertools import islice\n\n{made}"


def settings_of(search: Search) -> dict[str, Any]:
    """Arguments of the search that are not the defaults, Loupe's and the checkpoint's."""
    wanted, asked = search.wanted, BeamOptions.from_checkpoint(search.writing.checkpoint)
    found: dict[str, Any] = {"beams": wanted.beams}
    if not wanted.penalty == USUAL.penalty == asked.penalty:
        found["length_penalty"] = wanted.penalty
    if not wanted.early == USUAL.early == asked.early:
        found["early_stopping"] = wanted.beam.early_stopping
    return found


def stops_of(search: Search, name: str) -> dict[str, Any]:
    checkpoint = search.writing.checkpoint
    strings = list(search.wanted.greedy(checkpoint).strings)
    return {name: strings} if strings or checkpoint.writing.end.stop_strings else {}


def over_lines(search: Search, imports: Imports) -> list[str]:
    wanted = search.wanted
    imports["engine"] |= {"beam"}
    best = {"n_best": wanted.best} if wanted.best != USUAL.best else {}
    more = settings_of(search) | best | stops_of(search, "stop_strings")
    return [f"result = beam({call_arguments(search.writing, more, wanted.tokens)})", SHOWN, "found = result.steps"]


def first_lines(search: Search, imports: Imports) -> list[str]:
    """`beam` would count as finished what it finds in its last step."""
    wanted = search.wanted
    imports |= {"engine.generation.beam": {"Beam", "search"}, "engine.generation.prompt": {"begin"}}
    imports |= {"engine.generation.stopping": {"stopping_rules"}}
    stops = "".join(f", {name}={value!r}" for name, value in stops_of(search, "strings").items())
    settings = ", ".join(f"{name}={value!r}" for name, value in settings_of(search).items())
    return [
        f"ending = stopping_rules(begin({call_arguments(search.writing, {})}), {wanted.tokens}{stops})",
        f"found = list(islice(search(ending, Beam({settings})), {len(search.steps)}))",
        GOING,
    ]


def greedy_line(search: Search) -> str:
    wanted = search.wanted
    more = {"greedy": True} | stops_of(search, "stop_strings")
    text = f"generate({call_arguments(search.writing, more, wanted.tokens)})"
    return f"steps = list({text if search.is_over else f'islice({text}, {len(search.greedy.ids)})'})"
