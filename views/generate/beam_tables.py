"""What the tab Beam gives away: every hypothesis of the search, the greedy path beside the best, lines of Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from views.core.codegen import Imports
from views.core.table_files import Table
from views.generate.beam import node_arrays, written
from views.generate.beam_search import Search, Wanted
from views.generate.beam_session import searched
from views.generate.codegen import called, joined, opening
from views.generate.session import Query, Writing
from views.generate.streaming import looked_at, steps_of

USUAL = Wanted(best=1)
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


def search_of(writing: Writing, query: Query) -> Search:
    """The one that the browser says is shown, or those of its steps that are."""
    said = query.get("search")
    said = said if isinstance(said, dict) else {}
    return searched(writing, Wanted.of(said), steps_of(said))


def node_table(writing: Writing, query: Query) -> Table:
    """A row for each hypothesis that was considered; `parent` is one of the rows, or -1, the prompt."""
    search = search_of(writing, query)
    arrays, nodes, best = node_arrays(search), search.nodes, [search.at(one) for one in search.best]
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
        "text": [written(search, one.ids) for one in nodes],
    }
    return Table(columns, {"model": writing.name, "table": "hypotheses of the beam search", **part(search)})


def part(search: Search) -> dict[str, str]:
    """What is said of a search that is not over."""
    return {} if search.is_over else {"steps": f"the first {len(search.steps)} of at most {search.room}"}


def path_table(writing: Writing, query: Query) -> Table:
    """A row for each token of the best text, and below them for each of the greedy one."""
    search = search_of(writing, query)
    greedy, line = search.greedy, search.line(search.leading)
    own = [*(search.own(one) for one in line), *greedy.own.tolist()]
    total = [*(one.log_probability for one in line), *greedy.total.tolist()]
    ids = [*search.leading.ids, *greedy.ids]
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


def ahead_of_search(writing: Writing, query: Query) -> Iterator[dict[str, Any]]:
    """The usual search, for a file in which somebody turns to the tab; those that were looked at are in it already."""
    if looked_at(query, "beam"):
        return
    usual = vars(Wanted(stop_at=writing.settings.stop_at))
    yield {"trace": writing.made, "ask": "beam", **usual}


def search_lines(writing: Writing, query: Query) -> str:
    """They bind `found` to the steps of the search, and `steps` to those of the greedy text beside it; of a search
    that is over `result` is all of it."""
    search = search_of(writing, query)
    imports, lines = opening(writing)
    imports["engine"] |= {"generate"}
    lines += over_lines(search, imports) if search.is_over else first_lines(search, imports)
    lines += [PRUNED, greedy_line(search)]
    lines += ["log_probability = sum(float(step.logits.log_softmax(-1)[step.id]) for step in steps)"]
    made = joined(imports, [*lines, 'print("greedy", f"{log_probability:.2f}", repr(steps[-1].text))'])
    return made if search.is_over else f"from itertools import islice\n\n{made}"


def settings_of(wanted: Wanted) -> dict[str, Any]:
    """Those of the search that are not the usual ones."""
    found: dict[str, Any] = {"beams": wanted.beams}
    if wanted.penalty != USUAL.penalty:
        found["length_penalty"] = wanted.penalty
    if wanted.early != USUAL.early:
        found["early_stopping"] = wanted.beam.early_stopping
    return found


def stops_of(wanted: Wanted, name: str) -> dict[str, Any]:
    strings = list(wanted.greedy.strings)
    return {name: strings} if strings else {}


def over_lines(search: Search, imports: Imports) -> list[str]:
    wanted = search.wanted
    imports["engine"] |= {"beam"}
    best = {"n_best": wanted.best} if wanted.best != USUAL.best else {}
    more = settings_of(wanted) | best | stops_of(wanted, "stop_strings")
    return [f"result = beam({called(search.writing, more, wanted.tokens)})", SHOWN, "found = result.steps"]


def first_lines(search: Search, imports: Imports) -> list[str]:
    """`beam` would count as finished what it finds in its last step."""
    wanted = search.wanted
    imports |= {"engine.generation.beam": {"Beam", "search"}, "engine.generation.prompt": {"begin"}}
    imports |= {"engine.generation.stopping": {"stopping"}}
    stops = "".join(f", {name}={value!r}" for name, value in stops_of(wanted, "strings").items())
    settings = ", ".join(f"{name}={value!r}" for name, value in settings_of(wanted).items())
    return [
        f"ending = stopping(begin({called(search.writing, {})}), {wanted.tokens}{stops})",
        f"found = list(islice(search(ending, Beam({settings})), {len(search.steps)}))",
        GOING,
    ]


def greedy_line(search: Search) -> str:
    wanted = search.wanted
    text = f"generate({called(search.writing, {'greedy': True} | stops_of(wanted, 'stop_strings'), wanted.tokens)})"
    return f"steps = list({text if search.is_over else f'islice({text}, {len(search.greedy.ids)})'})"
