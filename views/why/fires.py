"""What the page What makes it fire asks: the strongest places of a head, and of a neuron, over many texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import altair as alt
import pandas as pd

from engine.analysis.strongest import (
    Strongest,
    Survey,
    Unit,
    find_strongest,
    read_hooks,
    strengths_of,
    surveying_of,
)
from engine.inputs.readers import Reading
from engine.runtime.run import run as run_model
from views.charts.template import AltairChart, at_least, colors
from views.core.lanes import lanes
from views.core.questions import Head, Layer, Neuron, Registry, Side
from views.core.run_context import RunContext
from views.core.table_files import Table
from views.core.theme import Shade, ramp

BEFORE, AFTER = 12, 6  # tokens around the strongest that are drawn
CELL, ROW, BESIDE = 58, 26, 90  # CSS pixels
READABLE = 0.55  # of the largest value, above which a cell is dark

FIRES = Registry()


def survey_steps(run: RunContext, **_: Any) -> list[Callable[[], Survey]]:
    return surveying_of(run.checkpoint).steps


def places(run: RunContext, side: str, layer: int, part: Unit, unit: int) -> list[tuple[Reading, int, float]]:
    """The texts in which a unit is strongest, where in them, and how strong."""
    readings, found = find_strongest(run.checkpoint, side, layer, part)
    lines = zip(found.text[unit].tolist(), found.pos[unit].tolist(), found.value[unit].tolist(), strict=True)
    return [(readings[text], pos, value) for text, pos, value in lines if text >= 0]


def places_table(run: RunContext, side: str, layer: int, part: Unit, unit: int) -> Table:
    """A line for each token around each place: how far it is from it, and how strong the unit is there."""
    lines: list[tuple[int, int, int, str, float]] = []
    listed = places(run, side, layer, part, unit) if part == "head" or run.model.config.mlp else []
    for place, (reading, pos, _value) in enumerate(listed, 1):
        pieces = pieces_of(run, reading, side)
        trace = run_model(run.model, reading.read, read_hooks(run.model), target=reading.target)
        strengths = dict(strengths_of(run.model, trace))[side, layer, part][:, unit].tolist()
        near = range(max(pos - BEFORE, 0), min(pos + AFTER + 1, len(pieces)))
        lines += [(place, at, at - pos, pieces[at], strengths[at]) for at in near]
    names = ("place", "pos", "offset", "token", "value")
    columns = dict(zip(names, map(list, zip(*lines, strict=True)), strict=True)) if lines else {n: [] for n in names}
    return Table(columns, {"model": run.model_name, "table": f"strongest places of a {part}"})


def pieces_of(run: RunContext, reading: Reading, side: str) -> Sequence[str]:
    return next(lane.pieces for lane in lanes(run.checkpoint, reading) if lane.side == side)


def head_table(run: RunContext, side: str, layer: int, head: int) -> Table:
    return run.cached(("places", side, layer, "head", head), lambda: places_table(run, side, layer, "head", head))


def neuron_table(run: RunContext, side: str, layer: int, neuron: int) -> Table:
    key = "places", side, layer, "neuron", neuron
    return run.cached(key, lambda: places_table(run, side, layer, "neuron", neuron))


@FIRES.question("strongest_head", make_table=head_table, steps=survey_steps)
def ask_head(run: RunContext, side: Side, layer: Layer, head: Head) -> Strongest:
    """Places where a head writes most, over the texts of the shipped data."""
    return find_strongest(run.checkpoint, side, layer, "head")[1]


@FIRES.question("strongest_neuron", make_table=neuron_table, steps=survey_steps)
def ask_neuron(run: RunContext, side: Side, layer: Layer, neuron: Neuron) -> Strongest:
    """Places where a neuron is strongest, over the texts of the shipped data."""
    return find_strongest(run.checkpoint, side, layer, "neuron")[1]


def draw_places(table: pd.DataFrame, shade: Shade, role: str) -> AltairChart:
    """A row for each place, its strongest token in the middle column, coloured by `value`."""
    if table.empty:
        none = pd.DataFrame({"said": ["This model has no MLP, and so no neurons."]})
        return alt.Chart(none, height=60).mark_text(align="left").encode(text="said:N", x=alt.value(0))
    most = max(float(table["value"].max()), 1e-9)
    shown = table.assign(dark=table["value"] > READABLE * most, shown=table["value"].clip(lower=0))
    scale = alt.Scale(range=ramp(shade, role), domain=[0, most])
    told = [alt.Tooltip("token"), alt.Tooltip("value", format=".4f"), alt.Tooltip("pos")]
    base = alt.Chart(shown, height=ROW * shown["place"].nunique() + 40).encode(
        x=alt.X("offset:O", axis=None), y=alt.Y("place:O", title="place", axis=alt.Axis(ticks=False)), tooltip=told
    )
    ink = alt.condition(alt.datum.dark, alt.value(colors(shade)["ground"]), alt.value(colors(shade)["ink"]))
    cells = base.mark_rect().encode(color=alt.Color("shown:Q", title="strength", scale=scale))
    letters = base.mark_text(fontSize=11, limit=CELL - 4).encode(text="token:N", color=ink)
    return at_least(cells + letters, CELL * shown["offset"].nunique() + BESIDE)


FIRES_CHARTS = {
    "Where this head writes most": ("strongest_head", partial(draw_places, role="residual")),
    "Where this neuron is strongest": ("strongest_neuron", partial(draw_places, role="mlp")),
}
