"""Questions of the page Generate: what its component asks about a prompt, and what can be downloaded of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from engine.generation.stopping import Stop
from views.core.payload import pack
from views.core.questions import UNKNOWN, Answer, Registry
from views.core.table_files import Table
from views.generate.availability import missing_tabs
from views.generate.beam import beam_payload, beam_script, node_table, path_table
from views.generate.beam_search import MOST, BeamOptions, Search, hold_search, search_to
from views.generate.codegen import cache_lines, surprise_lines, written_lines
from views.generate.kv_cache import CachedPrompt, cache_arrays, cache_header, cost_table, costs, dtype_of, norm_table
from views.generate.reread import fields_after
from views.generate.session import GenerationContext, Settings
from views.generate.steps import steps_payload, stop_header
from views.generate.streaming import check_count, grown
from views.generate.surprise import Stride, between, measurement, surprise_table
from views.generate.write import replay, step_payload, step_table, token_table, write_on

GENERATE = Registry()
LONGEST = 2048  # positions of a cache that are drawn
TABLES = {  # title -> the question that it answers
    "Write: tokens": "written",
    "Write: one step": "step",
    "Beam: hypotheses": "beam",
    "Beam: best and greedy": "paths",
    "Cache: keys and values": "cache",
    "Cache: costs by length": "costs",
    "Surprise: tokens": "surprise",
}


def require(writing: GenerationContext, tab: str) -> None:
    """Raises ValueError, with the reason, for a tab that has nothing to show of the prompt."""
    if why := missing_tabs(writing.prompt).get(tab):
        raise ValueError(why)


# --- Write ---


@GENERATE.question("write")
def ask_write(
    writing: GenerationContext, begun: list[int], goal: int, settings: dict | None = None, shared: bool = False
) -> Iterator[bytes]:
    """The next tokens, some at a time, until the text has `goal` or has ended, or it is time to ask again; soon where
    the server is `shared`."""
    require(writing, "write")
    yield from write_on(writing, Settings.from_browser(settings or {}), writing.ids(begun), goal, shared)


def step_script(writing: GenerationContext, begun: list[int], settings: dict | None = None, **_: Any) -> str:
    return written_lines(writing, begun, len(begun), settings)


def make_step_table(
    writing: GenerationContext, begun: list[int], settings: dict | None = None, id: int | None = None
) -> Table:
    require(writing, "write")
    return step_table(writing, writing.ids(begun), Settings.from_browser(settings or {}))


@GENERATE.question("step", make_table=make_step_table, make_script=step_script)
def ask_step(
    writing: GenerationContext, begun: list[int], settings: dict | None = None, id: int | None = None
) -> bytes:
    """The step after `begun`, at which `id` was chosen, or where that is None nothing has been chosen yet."""
    require(writing, "write")
    chosen = None if id is None else writing.ids([id])[0]
    return step_payload(writing, Settings.from_browser(settings or {}), writing.ids(begun), chosen)


@GENERATE.question("steps")
def ask_steps(writing: GenerationContext, begun: list[int], ids: list[int], settings: dict | None = None) -> bytes:
    """The steps after `begun` at which the `ids` were chosen, and `stops`: what ends the text at each."""
    require(writing, "write")
    before, chosen = writing.ids(begun), writing.ids(ids)
    if not 0 < len(chosen) <= min(MOST["tokens"], writing.prompt.tokens_left - len(before)):
        raise ValueError(UNKNOWN)
    steps = replay(writing, Settings.from_browser(settings or {}), before, chosen)
    header, arrays = steps_payload(writing, steps)
    stops: Sequence[Stop | None] = [step.stopped for step in steps]
    return pack({**header, "stops": [stop_header(one) for one in stops]}, arrays)


@GENERATE.question("reread")
def ask_reread(writing: GenerationContext, begun: list[int]) -> Answer:
    """Address of a page about one run that reads the prompt and `begun`, or None, and the row that predicts what
    follows."""
    ids = writing.ids(begun)
    fields = fields_after(writing, ids)
    address = None if fields is None else {"model": writing.name, **fields}
    return Answer(header={"address": address, "row": len(writing.prompt.ids) + len(ids) - 1})


def written_script(
    writing: GenerationContext, ids: list[int], begun: int = 0, settings: dict | None = None, **_: Any
) -> str:
    return written_lines(writing, ids, begun, settings)


def make_token_table(writing: GenerationContext, ids: list[int], **_: Any) -> Table:
    require(writing, "write")
    return token_table(writing, writing.ids(ids))


@GENERATE.question("written", make_table=make_token_table, make_script=written_script)
def ask_written(writing: GenerationContext, ids: list[int], begun: int = 0, settings: dict | None = None) -> Answer:
    """The tokens of a branch, of which `begun` stood there before the others were written with `settings`."""
    table = make_token_table(writing, ids)
    return Answer(header={"tokens": list(table.columns["token"])})


# --- Beam ---


def search_of(writing: GenerationContext, wanted: dict, steps: int | None = None) -> Search:
    require(writing, "beam")
    if steps is not None and steps <= 0:
        raise ValueError(UNKNOWN)
    return search_to(writing, BeamOptions.from_query(wanted), steps)


def beam_table(writing: GenerationContext, wanted: dict, steps: int | None = None) -> Table:
    return node_table(search_of(writing, wanted, steps))


def beam_lines(writing: GenerationContext, wanted: dict, steps: int | None = None, **_: Any) -> str:
    return beam_script(search_of(writing, wanted, steps))


@GENERATE.question("beam", make_table=beam_table, make_script=beam_lines)
def ask_beam(writing: GenerationContext, wanted: dict, steps: int | None = None) -> bytes:
    """The whole search, or its first `steps`; `wanted` are the entries of Wanted."""
    return beam_payload(search_of(writing, wanted, steps))


@GENERATE.question("beam_parts")
def ask_beam_parts(writing: GenerationContext, wanted: dict, came: int = 0, shared: bool = False) -> Iterator[bytes]:
    """Steps of a search after those that `came`, as they are found."""
    require(writing, "beam")
    how = BeamOptions.from_query(wanted)
    check_count(came, how.tokens)
    with hold_search(writing, how) as one:
        for begin, end in grown(one, came, shared):
            yield beam_payload(one.result(how, end), begin)


def paths_table(writing: GenerationContext, wanted: dict, steps: int | None = None) -> Table:
    return path_table(search_of(writing, wanted, steps))


@GENERATE.question("paths", make_table=paths_table, make_script=beam_lines)
def ask_paths(writing: GenerationContext, wanted: dict, steps: int | None = None) -> Answer:
    """The best text and the greedy one, token by token."""
    found = search_of(writing, wanted, steps)
    return Answer(header={"best": list(found.best_open.ids), "greedy": list(found.greedy.ids)})


# --- Cache ---


def cached(writing: GenerationContext, begun: list[int]) -> CachedPrompt:
    require(writing, "cache")
    found = CachedPrompt(writing, writing.ids(begun))
    if len(found.ids) > LONGEST:
        raise ValueError(f"At most {LONGEST:,} positions are drawn, and here are {len(found.ids):,}; write less.")
    return found


def cache_table(writing: GenerationContext, begun: list[int]) -> Table:
    return norm_table(cached(writing, begun))


def cache_script(writing: GenerationContext, begun: list[int], **_: Any) -> str:
    require(writing, "cache")
    return cache_lines(writing, writing.ids(begun))


@GENERATE.question("cache", make_table=cache_table, make_script=cache_script)
def ask_cache(writing: GenerationContext, begun: list[int]) -> bytes:
    """Lengths of the keys and values in the KV cache once the prompt and `begun` are read."""
    found = cached(writing, begun)
    return pack(cache_header(found), cache_arrays(found))


def make_cost_table(writing: GenerationContext, begun: list[int]) -> Table:
    require(writing, "cache")
    return cost_table(writing)


@GENERATE.question(
    "costs",
    returns=dict.fromkeys(("cached", "again", "bytes"), ("length",)),
    make_table=make_cost_table,
    make_script=cache_script,
)
def ask_costs(writing: GenerationContext, begun: list[int]) -> dict[str, Tensor]:
    """Multiply-adds of the last token with the KV cache and without, and the cache's bytes, at every length."""
    require(writing, "cache")
    found = costs(writing.checkpoint.config, len(writing.prompt.source), dtype_of(writing))
    return {name: torch.tensor(found[name], dtype=torch.float32) for name in ("cached", "again", "bytes")}


# --- Surprise ---


def make_surprise_table(
    writing: GenerationContext, written: list[int], stride: Stride = "half", steps: int | None = None
) -> Table:
    return surprise_table(writing, writing.ids(written), stride, steps)


def surprise_script(writing: GenerationContext, written: list[int], stride: Stride = "half", **_: Any) -> str:
    return surprise_lines(writing, writing.ids(written), stride)


@GENERATE.question("surprise", make_table=make_surprise_table, make_script=surprise_script)
def ask_surprise(
    writing: GenerationContext, written: list[int], stride: Stride = "half", steps: int | None = None
) -> bytes:
    """Surprise of each token of the prompt and of what was `written` after it, or of the first `steps` of a text that
    is read in windows, which are a `stride` apart."""
    measuring = measurement(writing, writing.ids(written), stride)
    if steps is not None and steps <= 0:
        raise ValueError(UNKNOWN)
    return pack(*between(writing, measuring, 0, min(len(measuring.steps), steps or len(measuring.steps))))


@GENERATE.question("surprise_parts")
def ask_surprise_parts(
    writing: GenerationContext, written: list[int], stride: Stride = "half", came: int = 0, shared: bool = False
) -> Iterator[bytes]:
    """Steps after those that `came`, as they are measured."""
    measuring = measurement(writing, writing.ids(written), stride)
    check_count(came, len(measuring.steps))
    for begin, end in grown(measuring, came, shared):
        yield pack(*between(writing, measuring, begin, end))


# --- files ---


def carry_queries(
    writing: GenerationContext, branch: list[int], has_search: bool, has_surprise: bool
) -> Iterator[dict[str, Any]]:
    """Queries that a file answers when somebody turns to another tab, though nobody asked them here."""
    without = missing_tabs(writing.prompt)
    if "beam" not in without and not has_search:
        yield {"ask": "beam", "wanted": vars(BeamOptions(stop_at=writing.settings.stop_at))}
    if "cache" not in without:
        yield {"ask": "cache", "begun": branch}
    if "surprise" not in without and not has_surprise:
        if len(measurement(writing, writing.ids(branch)).steps) == 1:
            yield {"ask": "surprise", "written": branch}
