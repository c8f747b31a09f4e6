"""What the page Interventions asks of a file of pairs: the mean effect of each head, and each pair behind one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from engine.analysis.interventions.metric import MetricKind
from engine.analysis.interventions.pair_set import Interval, PromptPair, SweepOptions, mean_of, sweep_pairs
from engine.analysis.interventions.sweep import Direction, Effects
from engine.analysis.interventions.sweep_file import SweptPairs
from engine.runtime.shared_work import SharedWork
from views.charts.template import AltairChart, at_least, colors
from views.core.bound_source import Imports
from views.core.questions import Head, Layer
from views.core.run_context import RunContext
from views.core.table_files import Table
from views.core.theme import Shade
from views.interventions.charts import DOES, axis
from views.interventions.questions import INTERVENTIONS, HeadPart
from views.why.charts import signed_cells

PAIR = 18  # CSS pixels of a pair
READ = 40  # characters of a prompt in a chart, its end


@dataclass(frozen=True, kw_only=True)
class PairSetContext(RunContext):
    """A model with the pairs of the file `named`, whose content has the name `file_digest`: with what it `measured` of
    this model, if anything, and the work that measures other pairs elsewhere, if any."""

    pairs: Sequence[PromptPair]
    named: str
    file_digest: str
    measured: SweptPairs | None = None
    elsewhere: Callable[[SweepOptions], SharedWork[dict[int, Effects | str]] | None] = lambda options: None

    @property
    def attributes(self) -> Mapping[str, str]:  # type: ignore[override]
        return {**RunContext.attributes, "pairs": "pairs"}

    @property
    def digest(self) -> str:
        return f"{super().digest} {self.file_digest}"

    def script(self, imports: Imports, lines: Sequence[str], only: tuple[str, ...] | None = None) -> str:
        imports = {**imports, "engine.analysis.interventions.pair_set": {"read_pairs", "sweep_pairs", "mean_of"}}
        return super().script(imports, [f"pairs = read_pairs({self.named!r})", *lines], only)


Asked = tuple[MetricKind, Direction, HeadPart]


def options_of(asked: Asked) -> SweepOptions:
    metric, direction, value = asked
    return SweepOptions(site=value, by=("head",), metric=metric, direction=direction)


def is_measured(run: PairSetContext, asked: Asked) -> bool:
    """Tells whether the file has what is asked."""
    header = run.measured.header if run.measured else None
    return header is not None and header.arguments == options_of(asked).arguments


def work_of(run: PairSetContext, asked: Asked) -> SharedWork[dict[int, Effects | str]] | None:
    """Work that measures the pairs elsewhere; None where they are measured here, or were before."""
    if is_measured(run, asked):
        return None
    return run.cached(("elsewhere", asked), lambda: run.elsewhere(options_of(asked)))


def effect_of(run: PairSetContext, asked: Asked, row: int) -> Tensor | str:
    """Effects of the heads in one pair, layer head, or why it has none."""
    metric, direction, value = asked
    if is_measured(run, asked):
        assert run.measured is not None
        return run.measured.effects[row] if row in run.measured.effects else run.measured.left_out[row]

    def measure() -> Tensor | str:
        if (work := work_of(run, asked)) is not None:
            one = work.reach()[row]
            return one if isinstance(one, str) else one.effect
        said: list[str] = []
        found = sweep_pairs(
            run.checkpoint, [run.pairs[row]], value, ("head",), metric, direction, lambda _, why: said.append(why)
        )
        swept = [effects.effect for _, effects in found]
        return swept[0] if swept else said[0]

    return run.cached(("pair", asked, row), measure)


def pair_steps(run: PairSetContext, asked: Asked) -> list[Callable[[], Tensor | str]]:
    """Steps that measure the pairs here."""
    return [partial(effect_of, run, asked, row) for row in range(len(run.pairs))]


def found_effects(run: PairSetContext, asked: Asked) -> dict[int, Tensor]:
    """Effects by row of the file, of the pairs that have any. Raises ValueError where none has."""
    each = {row: effect_of(run, asked, row) for row in range(len(run.pairs))}
    found = {row: one for row, one in each.items() if isinstance(one, Tensor)}
    if not found:
        why = next((one for one in each.values() if isinstance(one, str)), "it has no pairs")
        raise ValueError(f"No pair of {run.named} can be swept: {why}")
    return found


def tell_left_out(run: PairSetContext, asked: Asked) -> dict[int, str]:
    """Why rows of the file have no effects."""
    each = {row: effect_of(run, asked, row) for row in range(len(run.pairs))}
    return {row: one for row, one in each.items() if isinstance(one, str)}


def means_table(run: PairSetContext, **given: Any) -> Table:
    """A line a head: the mean over the pairs, and where it lies with a probability of 95 %."""
    found = found_effects(run, (given["metric"], given["direction"], given["value"]))
    interval = run.cached(
        ("means", given["metric"], given["direction"], given["value"]), lambda: mean_of(list(found.values()))
    )
    layer, head = torch.ones_like(interval.mean).nonzero().unbind(1)
    columns: dict[str, Any] = {
        "layer": layer.tolist(),
        "head": head.tolist(),
        "effect": interval.mean.flatten().tolist(),
    }
    columns |= {"low": interval.low.flatten().tolist(), "high": interval.high.flatten().tolist()}
    return Table(columns, {"model": run.model_name, "table": f"mean effects of heads over {run.named}"})


@INTERVENTIONS.question("pair_set", returns={})
def ask_pair_set(
    run: PairSetContext, layer: Layer, head: Head, metric: MetricKind = "logit", direction: Direction = "restore",
    value: HeadPart = "z",
) -> None:  # fmt: skip
    """Declares what the charts share."""


@INTERVENTIONS.question(
    "mean_heads",
    returns={"mean": ("layer", "head"), "low": ("layer", "head"), "high": ("layer", "head")},
    make_table=means_table,
)
def ask_means(
    run: PairSetContext, metric: MetricKind = "logit", direction: Direction = "restore", value: HeadPart = "z"
) -> Interval:
    """Mean effect of another value in each head, at all positions, over the pairs."""
    swept = sweep_pairs(run.checkpoint, run.pairs, value, ("head",), metric, direction)
    return mean_of([effects.effect for _, effects in swept])


def pairs_table(run: PairSetContext, **given: Any) -> Table:
    """A line for each pair behind the mean of one head."""
    found = found_effects(run, (given["metric"], given["direction"], given["value"]))
    rows = list(found)
    columns: dict[str, Any] = {
        "pair": [row + 1 for row in rows],
        "clean": [run.pairs[row].clean for row in rows],
        "corrupted": [run.pairs[row].corrupted for row in rows],
        "effect": [float(found[row][given["layer"], given["head"]]) for row in rows],
    }
    return Table(columns, {"model": run.model_name, "table": f"a head over {run.named}"})


@INTERVENTIONS.question("each_pair", returns={"effect": ("pair",)}, make_table=pairs_table)
def ask_each_pair(
    run: PairSetContext, layer: Layer, head: Head, metric: MetricKind = "logit", direction: Direction = "restore",
    value: HeadPart = "z",
) -> Tensor:  # fmt: skip
    """Effect of another value in one head in each pair."""
    swept = sweep_pairs(run.checkpoint, run.pairs, value, ("head",), metric, direction)
    return torch.stack([effects.effect[layer, head] for _, effects in swept])


def draw_means(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`effect`, the mean, by block and head, with its interval."""
    named = table.assign(
        value=table["effect"], block=(table["layer"] + 1).map("block {}".format),
        head_name=(table["head"] + 1).map("head {}".format),
    )  # fmt: skip
    told = [alt.Tooltip("block"), alt.Tooltip("head_name", title="head")]
    told += [alt.Tooltip("low", format=".4f", title="95 % from"), alt.Tooltip("high", format=".4f", title="to")]
    return signed_cells(named, shade, axis(named, "head_name", "head"), axis(named, "block", "block"), told, does=DOES)


def draw_pairs(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`effect` of each pair, the largest first."""
    named = table.assign(
        name=table["pair"].astype(str) + " …" + table["clean"].str[-READ:] if len(table) else table["pair"].astype(str)
    )
    told = [alt.Tooltip("clean"), alt.Tooltip("corrupted"), alt.Tooltip("effect", format=".4f")]
    chart = alt.Chart(named, height=alt.Step(PAIR)).mark_bar(color=colors(shade)["attention"])
    y = alt.Y("name:N", title=None, sort="-x", axis=alt.Axis(labelLimit=320))
    return at_least(chart.encode(x=alt.X("effect:Q", title=DOES), y=y, tooltip=told), 560)


PAIR_CHARTS: dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart]]] = {
    "Each head by itself, at all positions: the mean of all pairs": ("mean_heads", draw_means),
    "The pairs behind the mean of one head": ("each_pair", draw_pairs),
}
