"""What the tab Beam gives away: every hypothesis of the search, the greedy path beside the best, lines of Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from views.generate_beam import node_arrays, written
from views.generate_search import Search, Wanted, searched
from views.generate_writing import Query, Writing
from views.lines_of_generating import called, joined, opening
from views.table_files import Table

USUAL = Wanted(best=1)
SHOWN = """for one in result.hypotheses:
    print(f"{one.score:.3f} {one.log_probability:.2f} {len(one.ids)} {one.text!r}")"""
PRUNED = """for step in result.steps:
    for one in step.candidates:
        why = "finished" if one in step.finished else ""
        if one in step.pruned:
            why = f"pruned, {step.margin(one):.2f} nats behind"
        print(step.index + 1, one.rank, one.piece, f"{one.log_probability:.2f}", why)"""


def search_of(writing: Writing, query: Query) -> Search:
    """The one that the browser says is shown."""
    said = query.get("search")
    return searched(writing, Wanted.of(said if isinstance(said, dict) else {}))


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
    return Table(columns, {"model": writing.name, "table": "hypotheses of the beam search"})


def path_table(writing: Writing, query: Query) -> Table:
    """A row for each token of the best text, and below them for each of the greedy one."""
    search = search_of(writing, query)
    greedy, line = search.greedy, search.line(search.best[0])
    own = [*(search.own(one) for one in line), *greedy.own.tolist()]
    total = [*(one.log_probability for one in line), *greedy.total.tolist()]
    ids = [*search.best[0].ids, *greedy.ids]
    columns: dict[str, Any] = {
        "text": ["best"] * len(line) + ["greedy"] * len(greedy.ids),
        "position": [*range(len(line)), *range(len(greedy.ids))],
        "id": ids,
        "token": [writing.piece(id) for id in ids],
        "log_probability": own,
        "sum": total,
    }
    return Table(columns, {"model": writing.name, "table": "the best text and the greedy one, token by token"})


def ahead_of_search(writing: Writing, query: Query) -> Iterator[dict[str, Any]]:
    """The usual search, for a file in which somebody turns to the tab."""
    usual = vars(Wanted(stop_at=writing.settings.stop_at))
    yield {"trace": writing.made, "ask": "beam", **usual}


def search_lines(writing: Writing, query: Query) -> str:
    """They bind `result` to the search, and `steps` to the greedy text beside it."""
    wanted = search_of(writing, query).wanted
    strings = list(wanted.greedy.strings)
    stops: dict[str, Any] = {"stop_strings": strings} if strings else {}
    settings: dict[str, Any] = {"beams": wanted.beams}
    if wanted.penalty != USUAL.penalty:
        settings["length_penalty"] = wanted.penalty
    if wanted.early != USUAL.early:
        settings["early_stopping"] = wanted.beam.early_stopping
    if wanted.best != USUAL.best:
        settings["n_best"] = wanted.best
    imports, lines = opening(writing)
    imports["engine"] |= {"beam", "generate"}
    lines += [f"result = beam({called(writing, settings | stops, wanted.tokens)})", SHOWN, PRUNED]
    lines += [f"steps = list(generate({called(writing, {'greedy': True} | stops, wanted.tokens)}))"]
    lines += ["log_probability = sum(float(step.logits.log_softmax(-1)[step.id]) for step in steps)"]
    return joined(imports, [*lines, 'print("greedy", f"{log_probability:.2f}", repr(steps[-1].text))'])
