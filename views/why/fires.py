"""What the page What makes it fire asks: the strongest places of a head, and of a neuron, over many texts, and what
kind of head each is on average."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import altair as alt
import pandas as pd
from torch import Tensor

from engine.analysis.heads import SCORES
from engine.analysis.strongest import (
    KINDS,
    Measure,
    Strongest,
    Unit,
    find_kinds,
    find_strongest,
    read_hooks,
    so_far,
    strengths_of,
)
from engine.inputs.corpus import Corpus
from engine.inputs.readers import Reading
from engine.runtime.run import run as run_model
from views.charts.template import AltairChart, at_least, colors
from views.core.bound_source import Imports
from views.core.lanes import lanes
from views.core.questions import Head, Layer, Neuron, Registry, Side
from views.core.run_context import RunContext
from views.core.table_files import Table
from views.core.theme import Shade, ramp

BEFORE, AFTER = 12, 6  # tokens around the strongest that are drawn
CELL, ROW, BESIDE = 58, 26, 90  # CSS pixels
LINE, KIND = 20, 74  # of a head in the table of all, and of a kind
READABLE = 0.55  # of the largest value, above which a cell is dark

TITLES = {score.key: score.title for score in SCORES}
FIRES = Registry()


@dataclass(frozen=True)
class CorpusContext(RunContext):
    """A run, and the texts that its model is surveyed on; None: those of the shipped data."""

    corpus: Corpus | None = None
    column: str = ""

    @property
    def attributes(self) -> Mapping[str, str]:  # type: ignore[override]
        return {**RunContext.attributes, "corpus": "corpus" if self.corpus else "None"}

    def script(self, imports: Imports, lines: Sequence[str], only: tuple[str, ...] | None = None) -> str:
        if self.corpus is None:
            return super().script(imports, lines, only)
        imports = {**imports, "engine.inputs.corpus": {"read_corpus"}}
        return super().script(imports, [f"corpus = read_corpus({self.corpus.name!r}, {self.column!r})", *lines], only)


def places(run: CorpusContext, side: str, layer: int, part: Unit, unit: int) -> list[tuple[Reading, int, float]]:
    """The texts in which a unit is strongest, where in them, and how strong."""
    readings, found = find_strongest(run.checkpoint, side, layer, part, run.corpus)
    lines = zip(found.text[unit].tolist(), found.pos[unit].tolist(), found.value[unit].tolist(), strict=True)
    return [(readings[text], pos, value) for text, pos, value in lines if text >= 0]


def places_table(run: CorpusContext, side: str, layer: int, part: Unit, unit: int) -> Table:
    """A line for each token around each place: how far it is from it, and how strong the unit is there, NaN where the
    position does not count."""
    lines: list[tuple[int, int, int, str, float]] = []
    listed = places(run, side, layer, part, unit) if part != "neuron" or run.model.config.mlp else []
    for place, (reading, pos, _value) in enumerate(listed, 1):
        pieces = pieces_of(run, reading, side)
        trace = run_model(run.model, reading.read, read_hooks(run.model), target=reading.target)
        strengths = dict(strengths_of(run.model, trace))[side, layer, part][:, unit].tolist()
        near = range(max(pos - BEFORE, 0), min(pos + AFTER + 1, len(pieces)))
        lines += [(place, at, at - pos, pieces[at], strengths[at]) for at in near]
    names = ("place", "pos", "offset", "token", "value")
    columns = dict(zip(names, map(list, zip(*lines, strict=True)), strict=True)) if lines else {n: [] for n in names}
    what = part if part == "neuron" else f"head by {part}"
    return Table(columns, {"model": run.model_name, "table": f"strongest places of a {what}"})


def pieces_of(run: CorpusContext, reading: Reading, side: str) -> Sequence[str]:
    return next(lane.pieces for lane in lanes(run.checkpoint, reading) if lane.side == side)


def head_table(run: CorpusContext, side: str, layer: int, head: int, measure: Measure) -> Table:
    return cached_places(run, side, layer, measure, head)


def neuron_table(run: CorpusContext, side: str, layer: int, neuron: int) -> Table:
    return cached_places(run, side, layer, "neuron", neuron)


def cached_places(run: CorpusContext, side: str, layer: int, part: Unit, unit: int) -> Table:
    read = len(so_far(run.checkpoint, run.corpus).readings)
    key = "places", run.corpus and run.corpus.digest, read, side, layer, part, unit
    return run.cached(key, lambda: places_table(run, side, layer, part, unit))


@FIRES.question("strongest_head", make_table=head_table)
def ask_head(run: CorpusContext, side: Side, layer: Layer, head: Head, measure: Measure = "written") -> Strongest:
    """Places where a head is strongest by a measure, over many texts."""
    return find_strongest(run.checkpoint, side, layer, measure, run.corpus)[1]


@FIRES.question("strongest_neuron", make_table=neuron_table)
def ask_neuron(run: CorpusContext, side: Side, layer: Layer, neuron: Neuron) -> Strongest:
    """Places where a neuron is strongest, over many texts."""
    return find_strongest(run.checkpoint, side, layer, "neuron", run.corpus)[1]


def kinds_table(run: CorpusContext, side: str) -> Table:
    """A line a head; `highest` names the kinds of which no other head is more."""
    values = find_kinds(run.checkpoint, side, run.corpus)
    layers, heads = values.shape[1:]
    lines = [(layer, head) for layer in range(layers) for head in range(heads)]
    columns = {kind: [float(one[line]) for line in lines] for kind, one in zip(KINDS, values, strict=True)}
    most = {kind: max((one for one in column if one == one), default=None) for kind, column in columns.items()}
    highest = [", ".join(kind for kind in KINDS if columns[kind][at] == most[kind]) for at in range(len(lines))]
    places = {"layer": [layer for layer, _ in lines], "head": [head for _, head in lines]}
    return Table({**places, **columns, "highest": highest}, {"model": run.model_name, "table": "kinds of heads"})


@FIRES.question("head_kinds", returns={"values": ("kind", "layer", "head")}, make_table=kinds_table)
def ask_kinds(run: CorpusContext, side: Side) -> Tensor:
    """Measures how far each head is of each kind, on average over many texts."""
    return find_kinds(run.checkpoint, side, run.corpus)


def draw_places(table: pd.DataFrame, shade: Shade, role: str, none: str) -> AltairChart:
    """A row for each place, its strongest token in the middle column, coloured by `value`; the sentence `none` where
    there is no place."""
    if table.empty:
        return (
            alt.Chart(pd.DataFrame({"said": [none]}), height=60)
            .mark_text(align="left")
            .encode(text="said:N", x=alt.value(0))
        )
    most = max(float(table["value"].max()), 1e-9)
    shown = table.assign(dark=table["value"] > READABLE * most, shown=table["value"].clip(lower=0))
    scale = alt.Scale(range=ramp(shade, role), domain=[0, most])
    told = [alt.Tooltip("token"), alt.Tooltip("value", format=".4f"), alt.Tooltip("pos")]
    base = alt.Chart(shown, height=alt.Step(ROW)).encode(
        x=alt.X("offset:O", axis=None), y=alt.Y("place:O", title="place", axis=alt.Axis(ticks=False)), tooltip=told
    )
    ink = alt.condition(alt.datum.dark, alt.value(colors(shade)["ground"]), alt.value(colors(shade)["ink"]))
    cells = base.mark_rect().encode(color=alt.Color("shown:Q", title="strength", scale=scale))
    letters = base.mark_text(fontSize=11, limit=CELL - 4).encode(text="token:N", color=ink)
    return at_least(cells + letters, CELL * shown["offset"].nunique() + BESIDE)


def draw_kinds(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """A line a head, a column a kind, each cell with its number; the head that is most of a kind is framed."""
    named = table.assign(name=(table["layer"] + 1).astype(str) + "." + (table["head"] + 1).astype(str))
    long = named.melt(["name", "highest"], list(KINDS), "key", "value").dropna(subset="value")
    most = long.groupby("key")["value"].transform("max")
    shown = long.assign(kind=long["key"].map(TITLES), dark=long["value"] > READABLE, first=long["value"] == most)
    axis = alt.Axis(orient="top", ticks=False, labelAngle=-25)
    across = alt.X("kind:N", title=None, sort=[TITLES[kind] for kind in KINDS], axis=axis)
    down = alt.Y("name:N", title="layer.head", sort=list(named["name"]), axis=alt.Axis(ticks=False))
    told = [alt.Tooltip("name", title="layer.head"), alt.Tooltip("kind"), alt.Tooltip("value", format=".4f")]
    base = alt.Chart(shown, height=alt.Step(LINE)).encode(x=across, y=down, tooltip=told)
    of = colors(shade)
    ink = alt.condition(alt.datum.dark, alt.value(of["ground"]), alt.value(of["ink"]))
    scale = alt.Scale(range=ramp(shade, "attention"), domain=[0, 1])
    cells = base.mark_rect().encode(color=alt.Color("value:Q", title="mean share", scale=scale))
    frames = base.transform_filter("datum.first").mark_rect(filled=False, strokeWidth=2, stroke=of["ink"])
    letters = base.mark_text(fontSize=11).encode(text=alt.Text("value:Q", format=".2f"), color=ink)
    return at_least(cells + letters + frames, KIND * len(KINDS) + BESIDE)


NO_PLACE = "No position of these texts counts for this measure."
NO_MLP = "This model has no MLP, and so no neurons."
FIRES_CHARTS: dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart]]] = {
    "Where this head is strongest": ("strongest_head", partial(draw_places, role="residual", none=NO_PLACE)),
    "Where this neuron is strongest": ("strongest_neuron", partial(draw_places, role="mlp", none=NO_MLP)),
    "What kind of head each is": ("head_kinds", draw_kinds),
}
