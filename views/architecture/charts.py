"""Figures and tables of a model's sizes: how an estimate becomes the exact count, and what grows with the length."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from engine.analysis.sizes import Formula, Memory, Step, activations, forward, kv_cache, reading, states
from engine.analysis.sizes.shape import stacks
from engine.model.config import ModelConfig
from views.charts.show import NamedChart
from views.charts.template import AltairChart, colors, pan_and_zoom
from views.core.table_files import Table
from views.core.theme import Shade, ramp

HUES = {"norm": "soft", "embedding": "residual", "patches": "residual", "pooler": "probability", "head": "probability"}
HUES |= {"cross-attention": "query", "attention": "attention", "MLP": "mlp", "keys": "key", "logits": "probability"}
SHAPES = ["square", "cross", "circle", "diamond", "triangle-up", "triangle-down", "stroke", "triangle-left", "wedge"]
SQUARE, PATCHES = ", × length", ", × patches"
Axis = tuple[str, str]  # title of the axis, and what one of its numbers counts
TOKENS, PIXELS = ("length (tokens)", "tokens"), ("side of the picture (pixels)", "pixels a side")
Sums = list[tuple[str, int]]

PLOT_HEIGHT, ROW_HEIGHT, STEP_HEIGHT = 330, 15, 34  # px
PALE = 4  # place on a ramp of ten: a part that grows with the square of the length
MARKS = (0.19, 0.52, 0.86)  # places along a band where its shape stands
LEAST_MARKED = 0.05  # of the highest sum: a thinner band has no shape
BINARY = [(2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "bytes")]
DECIMAL = [(1e15, "10¹⁵"), (1e12, "trillions of"), (1e9, "billions of"), (1e6, "millions of"), (1e3, "thousands of")]


@dataclass(frozen=True)
class Part:
    """Kind of work or memory with its amount at every length. `pale`: it grows with the square of the length."""

    name: str
    role: str
    pale: bool
    amounts: Sequence[float]


@dataclass(frozen=True)
class Curves:
    """Amounts of `parts` in `unit` at every one of `lengths`, of which `now` is chosen."""

    title: str
    unit: str
    axis: Axis
    lengths: Sequence[int]
    now: int
    parts: Sequence[Part]

    @property
    def table_name(self) -> str:
        return f"{self.title}, by {self.axis[0].partition(' (')[0]}"

    def total(self, at: int) -> float:
        """Sum of all parts at the length with that index."""
        return sum(part.amounts[at] for part in self.parts)


def cost_curves(config: ModelConfig, batch: int, length: int, number: int, lengths: Sequence[int]) -> list[Curves]:
    """Operations, KV cache and activations as the text grows to each of `lengths`, `length` being among them.

    `number` is in bytes. There is no cache where the model continues no text. Lengths of a model of pictures are the
    picture's side in pixels, and the operations are those of a whole picture.
    """
    if config.embedding.patches is not None:
        return picture_curves(config, batch, length, number, lengths)
    stacks_read = len(stacks(config))
    work = [
        Part(one.name, one.role, one.pale, [x / (n * stacks_read) for n, x in zip(lengths, one.amounts, strict=True)])
        for one in parts_by_length(lambda n: sum_work(config, n), lengths)
    ]
    found = [Curves("Operations of a forward pass", "operations a token", TOKENS, lengths, length, work)]
    if config.generates:
        cache = parts_by_length(lambda n: sum_memory(kv_cache(config, batch, n, number)), lengths)
        found.append(Curves("KV cache of generation", "bytes", TOKENS, lengths, length, cache))
    kept = parts_by_length(lambda n: sum_memory(activations(config, batch, n, number)), lengths)
    return [*found, Curves("Activations kept in training", "bytes", TOKENS, lengths, length, kept)]


def picture_curves(config: ModelConfig, batch: int, side: int, number: int, sides: Sequence[int]) -> list[Curves]:
    def work(pixels: int) -> Sums:
        larger = reading(config, pixels)
        return sum_work(larger, larger.context, PATCHES)

    def activation_bytes(pixels: int) -> Sums:
        larger = reading(config, pixels)
        return sum_memory(activations(larger, batch, larger.context, number), PATCHES)

    operations, saved = parts_by_length(work, sides), parts_by_length(activation_bytes, sides)
    return [
        Curves("Operations of a forward pass", "operations a picture", PIXELS, sides, side, operations),
        Curves("Activations kept in training", "bytes", PIXELS, sides, side, saved),
    ]


def parts_by_length(sums: Callable[[int], Sums], lengths: Sequence[int]) -> list[Part]:
    """Each kind with its amount at every length, 0 where it has none."""
    found = [dict(sums(length)) for length in lengths]
    names = dict.fromkeys(name for one in found for name in one)
    return [
        Part(name, hue(name), name.endswith((SQUARE, PATCHES)), [one.get(name, 0) for one in found]) for name in names
    ]


def sum_work(config: ModelConfig, length: int, square: str = SQUARE) -> Sums:
    return sum_kinds(((work.name, work.quadratic, work.flops) for work in forward(config, length)), square)


def sum_memory(parts: Iterable[Memory], square: str = SQUARE) -> Sums:
    return sum_kinds(((part.name, part.quadratic, part.bytes) for part in parts), square)


def sum_kinds(parts: Iterable[tuple[str, bool, int]], square: str) -> Sums:
    """Sums by the word before the colon, both stacks together; what grows with the square of the length apart."""
    sums: dict[str, int] = {}
    for name, quadratic, amount in parts:
        kind = name.partition(":")[0].removeprefix("encoder ").removeprefix("decoder ")
        kind += square if quadratic else ""
        sums[kind] = sums.get(kind, 0) + amount
    return list(sums.items())


def hue(part: str) -> str:
    """The theme's role of a kind of work or memory."""
    return next((role for word, role in HUES.items() if word in part), "negative")


def draw_curves(curves: Curves) -> NamedChart:
    """Areas on top of each other by length; the legend reads every part at the chosen length, the tooltip at any."""
    sums = [curves.total(at) for at in range(len(curves.lengths))]
    scale, title = readable_unit(max(sums), curves.unit)
    now = list(curves.lengths).index(curves.now)
    reading = f"{curves.now:,} {curves.axis[1]}: {sums[now]:,.0f} {curves.unit}"
    parts = tuple((part.name, part.role, part.pale) for part in curves.parts)
    return NamedChart(
        curve_chart,
        (curves.title, curves.axis, title, parts),
        {
            "areas": area_rows(curves, scale),
            "now": pd.DataFrame({"length": [curves.now], "reading": [reading]}),
            "readings": reading_rows(curves),
        },
        {"labels": {part.name: f"{part.name}: {part.amounts[now]:,.0f}" for part in curves.parts}},
    )


def curve_chart(
    title: str, axis: Axis, unit: str, parts: tuple[tuple[str, str, bool], ...], shade: Shade
) -> AltairChart:
    """Chart of the data `areas`, `now` and `readings`; `parts` are name, role and pale, from below."""
    of, top_down = colors(shade), [name for name, _, _ in reversed(parts)]
    fills = [ramp(shade, role)[PALE] if pale else of[role] for _, role, pale in reversed(parts)]
    legend = alt.Legend(
        title=None, orient="bottom", direction="vertical", columns=1, labelExpr="labels[datum.label]",
        labelLimit=400, symbolType="square", symbolOpacity=1, symbolStrokeWidth=0,
    )  # fmt: skip
    chosen = alt.selection_point(fields=["part"], bind="legend", name="part_chosen")
    x = alt.X("length:Q", title=axis[0], scale=alt.Scale(nice=False), axis=alt.Axis(grid=False, tickCount=4))
    areas = alt.Chart(alt.NamedData("areas")).mark_area(stroke=of["ground"], strokeWidth=1).encode(
        x=x, y=alt.Y("low:Q", title=unit, axis=alt.Axis(tickCount=4)), y2="high:Q",
        color=alt.Color("part:N", scale=alt.Scale(domain=top_down, range=fills), legend=legend),
        opacity=alt.condition(chosen, alt.value(1), alt.value(0.35)),
    ).add_params(chosen, pan_and_zoom())  # fmt: skip
    shapes = alt.Scale(domain=top_down, range=[SHAPES[i % len(SHAPES)] for i in reversed(range(len(parts)))])
    marks = (
        alt.Chart(alt.NamedData("areas"))
        .transform_filter("isValid(datum.middle)")
        .mark_point(filled=True, fill=of["ground"], stroke=of["ink"], strokeWidth=1.2, size=60, opacity=1)
        .encode(x="length:Q", y="middle:Q", shape=alt.Shape("part:N", scale=shapes, legend=legend))
    )
    now = alt.Chart(alt.NamedData("now"))
    rule = now.mark_rule(color=of["ink"], strokeDash=[4, 3]).encode(x="length:Q")
    reading = now.mark_text(align="left", baseline="bottom", color=of["soft"]).encode(
        x=alt.value(0), y=alt.value(-7), text="reading:N"
    )
    near = alt.selection_point(
        fields=["length"], nearest=True, on="pointerover", clear="pointerout", empty=False, name="length_near"
    )
    shown = [axis[1], "all", *top_down]
    pointer = alt.Chart(alt.NamedData("readings")).mark_rule(color=of["ink"]).encode(
        x="length:Q", opacity=alt.condition(near, alt.value(0.6), alt.value(0)),
        tooltip=[alt.Tooltip(field=f"reading_{at}", type="nominal", title=name) for at, name in enumerate(shown)],
    ).add_params(near)  # fmt: skip
    return (
        alt.layer(areas, marks, rule, reading, pointer)
        .add_params(alt.param("labels", value={}))
        .properties(title=alt.Title(title, offset=22), width="container", height=PLOT_HEIGHT + ROW_HEIGHT * len(parts))
    )


def readable_unit(most: float, unit: str) -> tuple[float, str]:
    """Chooses the divisor of amounts up to `most`, and the title of their axis."""
    if unit == "bytes":
        return next((size, name) for size, name in BINARY if most >= size or size == 1)
    return next(((size, f"{name} {unit}") for size, name in DECIMAL if most >= size), (1, unit))


def area_rows(curves: Curves, scale: float) -> pd.DataFrame:
    """A row for each part and length: where its band begins and ends, and the `middle` where its shape stands.

    By the shape a band is known without its hue; NaN elsewhere and where a band is thin.
    """
    count = len(curves.lengths)
    amounts = np.array([part.amounts for part in curves.parts], float) / scale
    high = amounts.cumsum(0)
    low = high - amounts
    marked = np.isin(np.arange(count), [round(share * (count - 1)) for share in MARKS])
    thick = amounts >= LEAST_MARKED * high[-1, marked].max()
    return pd.DataFrame(
        {
            "part": np.repeat([part.name for part in curves.parts], count),
            "length": np.tile(curves.lengths, len(curves.parts)),
            "low": low.ravel(),
            "high": high.ravel(),
            "middle": np.where(marked & thick, (low + high) / 2, np.nan).ravel(),
        }
    )


def reading_rows(curves: Curves) -> pd.DataFrame:
    """A row for each length, as a tooltip reads it: length, sum, and every part's amount and share from the top down.

    The readings are numbered: a part's name can hold what a field's may not ("encoder's output").
    """
    rows: list[dict[str, int | str]] = []
    for at, length in enumerate(curves.lengths):
        total = curves.total(at)
        parts = [
            f"{one.amounts[at]:,.0f} · {100 * one.amounts[at] / total if total else 0:.1f} %"
            for one in reversed(curves.parts)
        ]
        readings = [f"{length:,}", f"{total:,.0f} {curves.unit}", *parts]
        rows.append({"length": length} | {f"reading_{at}": reading for at, reading in enumerate(readings)})
    return pd.DataFrame(rows)


def waterfall(steps: Sequence[Step], shade: Shade) -> go.Figure:
    """Draws the way from the estimate to the exact count: each bar begins where the one above it ends."""
    of = colors(shade)
    ends = [sum(step.count for step in steps[: i + 1]) for i in range(len(steps))]
    exact, low, high = ends[-1], min(ends), max(ends)
    start = max(0.0, low - (high - low) / 3) if high > low else 0.0
    texts = [f"{steps[0].count:,}", *(f"{step.count:+,}".replace("-", "−") for step in steps[1:]), f"{exact:,}"]
    reached = ["", *(f"; reached: {end:,}" for end in ends[1:]), ""]
    reasons = [*(step.why for step in steps), "every tensor of the model"]
    names = [*(re.sub(r"W_(\w)", r"W<sub>\1</sub>", step.name) for step in steps), "exact"]
    hover = [
        "<br>".join(textwrap.wrap(f"{name} {text}: {reason}{end}", 60))
        for name, text, reason, end in zip(names, texts, reasons, reached, strict=True)
    ]
    figure = go.Figure(
        go.Waterfall(
            orientation="h",
            measure=["absolute", *["relative"] * (len(steps) - 1), "total"],
            y=names,
            x=[*(step.count for step in steps), exact],
            text=texts,
            textposition="outside",
            cliponaxis=False,
            hovertext=hover,
            hoverinfo="text",
            connector={"line": {"color": of["soft"], "dash": "dot", "width": 1}},
            increasing={"marker": {"color": of["attention"]}},
            decreasing={"marker": {"color": of["key"]}},
            totals={"marker": {"color": of["residual"]}},
        )
    )
    axis = "parameters (axis not from 0)" if start else "parameters"
    figure.update_xaxes(title=axis, range=[start, high + 0.5 * (high - start)], tickformat="~s", nticks=5)
    figure.update_yaxes(autorange="reversed", fixedrange=True, ticklabelstandoff=6)
    return figure.update_layout(
        height=STEP_HEIGHT * len(names) + 64, margin={"l": 8, "r": 8, "t": 8, "b": 44}, dragmode="pan"
    )


def curve_table(model: str, curves: Curves) -> Table:
    """A row for each length and part."""
    rows = [
        (n, part.name, amount) for part in curves.parts for n, amount in zip(curves.lengths, part.amounts, strict=True)
    ]
    length, part, amounts = (list(column) for column in zip(*rows, strict=True))
    columns = {"side" if curves.axis == PIXELS else "length": length, "part": part, curves.unit: amounts}
    return Table(columns, {"model": model, "table": curves.table_name})


def formula_table(model: str, title: str, unit: str, rows: Iterable[tuple[str, Formula]]) -> Table:
    """A row for each part, with its formula."""
    listed = list(rows)
    columns: dict[str, list[Any]] = {
        "part": [name for name, _ in listed],
        "formula": [one.text for _, one in listed],
        unit: [one.value for _, one in listed],
    }
    return Table(columns, {"model": model, "table": title})


def formulas_by_part(
    config: ModelConfig, batch: int, length: int, number: int
) -> dict[str, tuple[str, list[tuple[str, Formula]]]]:
    """Unit and formulas of every table below the charts, by its title; empty tables are left out."""
    work = [(f"{one.block}: {one.name}", one.formula) for one in forward(config, length)]
    cache = kv_cache(config, batch, length, number)
    training = [*activations(config, batch, length, number), *states(config)]
    found = {
        "operations by part": ("operations", work),
        "KV cache, by part": ("bytes", [(part.name, part.formula) for part in cache]),
        "memory of training, by part": ("bytes", [(part.name, part.formula) for part in training]),
    }
    return {title: (unit, rows) for title, (unit, rows) in found.items() if rows}
