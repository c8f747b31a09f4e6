"""Charts of a checkpoint: its matrices by size, one matrix's numbers and singular values, its tables in the plane."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from statistics import median
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from engine.analysis.weights import Histogram, Neighbours, Projection, Spectrum
from views.charts.template import AltairChart, colors
from views.checkpoint.embedding import KINDS, VectorTable
from views.checkpoint.weights import MatrixRow
from views.core.theme import Shade, ramp

ROW = 27  # px of a row of the map
HEIGHT = 310  # px of a chart of one matrix, with its axes
HUES = (
    ("queries", "query"), ("keys", "key"), ("values", "value"), ("output|^W_O", "attention"), ("MLP", "mlp"),
    ("head|pooler|next sentence", "probability"), ("embed|relative|distances|tokens|positions", "residual"),
)  # fmt: skip
OUTSIDE = "–"  # column of the matrices that are in no layer
CAMERA = {"eye": {"x": 1.05, "y": 1.05, "z": 0.75}}
SYMBOLS = {2: "square", 3: "circle"}
LEAST = 1e-7  # of the largest singular value that is drawn
FRAME = (820, 440)  # px that labels are placed for
LABEL = (7, 15)  # px of a letter
LABELLED = 6000  # points that are tried for a label
CLUSTER = 4.0  # standard deviations about the median that the main cluster has
TO_DEVIATION = 1.4826  # standard deviation of a normal distribution, from its median absolute deviation


def hue(row: MatrixRow) -> str:
    """Role whose colour a matrix has."""
    found = next((role for pattern, role in HUES[:-1] if re.search(pattern, row.matrix.title)), None)
    return found or ("residual" if re.search(HUES[-1][0], row.name) else "attention")


def matrix_map(rows: Sequence[MatrixRow], sizes: Sequence[float], chosen: str, shade: Shade) -> alt.Chart:
    """A cell for each matrix, coloured by the root mean square of its numbers; a click selects `matrix` by its name."""
    layers = sorted({row.matrix.layer + 1 for row in rows if row.matrix.layer is not None})
    outside = any(row.matrix.layer is None for row in rows)
    columns = [OUTSIDE] * outside + [str(layer) for layer in layers]
    labels = list(dict.fromkeys(row.label for row in sorted(rows, key=lambda row: row.matrix.layer is not None)))
    table = pd.DataFrame(
        {
            "name": [row.name for row in rows],
            "matrix": [row.label for row in rows],
            "layer": [OUTSIDE if row.matrix.layer is None else str(row.matrix.layer + 1) for row in rows],
            "shape": [" × ".join(map(str, row.matrix.shape)) for row in rows],
            "role": [hue(row) for row in rows],
            "rms": list(sizes),
        }
    )
    of = colors(shade)
    roles = list(dict.fromkeys(table["role"]))
    is_chosen = alt.datum.name == chosen
    return (
        alt.Chart(table, height=alt.Step(ROW))
        .mark_rect(cornerRadius=2, cursor="pointer")
        .encode(
            x=alt.X(
                "layer:N", sort=columns, title="layer", axis=alt.Axis(labelAngle=0, ticks=False, domain=False)
            ).scale(paddingInner=0.06),
            y=alt.Y(
                "matrix:N", sort=labels, title=None, axis=alt.Axis(ticks=False, domain=False, labelLimit=150)
            ).scale(paddingInner=0.2),
            color=alt.Color("role:N", legend=None).scale(domain=roles, range=[of[role] for role in roles]),
            fillOpacity=alt.FillOpacity("rms:Q", legend=None).scale(domain=[0, max(sizes)], range=[0.03, 1]),
            stroke=alt.when(is_chosen).then(alt.value(of["ink"])).otherwise(alt.value(of["hairline"])),
            strokeWidth=alt.when(is_chosen).then(alt.value(2.5)).otherwise(alt.value(0.5)),
            tooltip=[
                alt.Tooltip("name:N", title="matrix"),
                alt.Tooltip("shape:N"),
                alt.Tooltip("rms:Q", title="root mean square", format=".5g"),
            ],
        )
        .add_params(alt.selection_point(name="matrix", fields=["name"]))
    )


def head_bars(sizes: Sequence[float], chosen: int | None, role: str, experts: bool, shade: Shade) -> alt.Chart:
    """Root mean square of each head; a click selects `head` by its number, from 1. Experts are called by theirs, from
    0."""
    table = pd.DataFrame({"head": range(1, len(sizes) + 1), "rms": list(sizes)})
    called = "'expert ' + (datum.value - 1)" if experts else "'head ' + datum.value"
    table["called"] = [f"expert {at}" if experts else f"head {at + 1}" for at in range(len(sizes))]
    shown = alt.datum.head == (0 if chosen is None else chosen + 1)
    return (
        alt.Chart(table, height=110)
        .mark_bar(cursor="pointer", color=colors(shade)[role])
        .encode(
            x=alt.X("head:O", title=None, axis=alt.Axis(labelAngle=0, ticks=False, labelExpr=called)),
            y=alt.Y("rms:Q", title="RMS", axis=alt.Axis(tickCount=2, format=".2~g")).scale(domain=[0, max(sizes)]),
            opacity=alt.when(shown).then(alt.value(1)).otherwise(alt.value(1 if chosen is None else 0.45)),
            tooltip=[alt.Tooltip("called:N", title="of"), alt.Tooltip("rms:Q", title="root mean square", format=".5g")],
        )
        .add_params(alt.selection_point(name="head", fields=["head"]))
    )


def histogram_chart(found: Histogram, log: bool, role: str, shade: Shade) -> AltairChart:
    """Counts of the numbers in each bin, and dashed a normal distribution of the same mean and standard deviation."""
    edges, counts = found.edges.numpy(), found.counts.numpy()
    bins = pd.DataFrame({"from": edges[:-1], "to": edges[1:], "count": counts})
    bins["floor"] = 0.8 if log else 0
    if log:
        bins = bins[bins["count"] > 0]
    of = colors(shade)
    top = max(1.0, float(counts.max()))
    scale = alt.Scale(type="log", domain=[0.8, 1.6 * top], nice=False) if log else alt.Scale(domain=[0, 1.06 * top])
    x = alt.X("from:Q", title="value", axis=alt.Axis(format=".3~g")).scale(domain=[edges[0], edges[-1]], nice=False)
    y = alt.Y("count:Q", title="count", axis=alt.Axis(format="~s")).scale(scale)
    bars = (
        alt.Chart(bins)
        .mark_rect(color=of[role], opacity=0.6, clip=True)
        .encode(
            x=x,
            x2="to:Q",
            y=y,
            y2="floor:Q",
            tooltip=[
                alt.Tooltip("from:Q", format=".5g"),
                alt.Tooltip("to:Q", format=".5g"),
                alt.Tooltip("count:Q", format=","),
            ],
        )
    )
    layers: list[alt.Chart] = [bars]
    if found.std > 0:
        values = np.linspace(edges[0], edges[-1], 161)
        density = np.exp(-0.5 * ((values - found.mean) / found.std) ** 2) / (found.std * np.sqrt(2 * np.pi))
        normal = pd.DataFrame({"from": values, "count": counts.sum() * density * (edges[1] - edges[0])})
        normal = normal[normal["count"] >= 0.8] if log else normal
        layers.append(
            alt.Chart(normal)
            .mark_line(clip=True, color=of["ink"], opacity=0.7, strokeDash=[5, 4], strokeWidth=1.3)
            .encode(x="from:Q", y="count:Q")
        )
    return alt.layer(*layers, height=HEIGHT).add_params(alt.selection_interval(bind="scales", encodings=["x"]))


def spectrum_chart(found: Spectrum, role: str, shade: Shade) -> AltairChart:
    """Singular values in descending order on a logarithmic axis, with the effective rank and 90 % of the squares."""
    values = found.values.numpy()
    of = colors(shade)
    points = pd.DataFrame({"i": np.arange(1, len(values) + 1), "value": values})
    shown = points[points["value"] > LEAST * max(values[0], np.finfo(float).tiny)]
    x = alt.X("i:Q", title="i").scale(domain=[1, max(2, len(values))], nice=False)
    y = alt.Y("value:Q", title="singular value σᵢ", axis=alt.Axis(format=".2~g")).scale(type="log", nice=True)
    tooltip = [alt.Tooltip("i:Q"), alt.Tooltip("value:Q", title="singular value", format=".5g")]
    line = alt.Chart(shown).mark_line(color=of[role], strokeWidth=2.2).encode(x=x, y=y, tooltip=tooltip)
    near = alt.selection_point(
        name="near", nearest=True, on="pointerover", clear="pointerout", encodings=["x"], empty=False
    )
    dots = (
        alt.Chart(shown)
        .mark_circle(color=of[role], size=60)
        .encode(x="i:Q", y="value:Q", tooltip=tooltip)
        .encode(opacity=alt.when(near).then(alt.value(1)).otherwise(alt.value(0)))
        .add_params(near)
    )
    marks = pd.DataFrame({"i": [found.energy, found.rank], "what": ["90 % of ‖W‖²", "effective rank"]})
    rules = alt.Chart(marks).mark_rule(color=of["soft"], strokeDash=[3, 4]).encode(x="i:Q", tooltip=["what:N", "i:Q"])
    end = 0.6 * len(values)
    texts = [
        alt.Chart(marks[:1] if lift == 8 else marks[1:])
        .mark_text(align="right" if beyond else "left", dx=-5 if beyond else 5, dy=-lift, color=of["soft"])
        .encode(x="i:Q", y=alt.value("height"), text="what:N")
        for lift, place in ((8, found.energy), (24, found.rank))
        for beyond in [place > end]
    ]
    return alt.layer(line, rules, *texts, dots, height=HEIGHT)


def embedding_figure(
    table: VectorTable,
    found: Projection,
    chosen: int,
    near: Neighbours | None,
    hidden: Collection[str],
    whole: bool,
    shade: Shade,
    notes: Sequence[str] = (),
) -> go.Figure:
    """Rows of a table as points in the plane or in space, coloured by kind, the chosen one joined to its nearest.

    Hidden kinds are left out. The frame is the main cluster, or everything if `whole`. `customdata` of a point is its
    id; `notes` are lines more that each row shows when it is pointed at.
    """
    points, ids = found.points.cpu().numpy(), found.ids.cpu().numpy()
    flat = points.shape[1] == 2
    figure = go.Figure()
    shown = np.array([table.kinds is None or table.kinds[id] not in hidden for id in ids])
    for trace in point_traces(table, points, ids, shown, notes, shade):
        figure.add_trace(trace)
    places = {int(id): place for place, id in enumerate(ids)}
    ends = frame_of(points[shown], whole)
    marked = [id for id in [chosen, *([] if near is None else near.ids.tolist())] if id in places]
    if flat:
        figure.add_trace(label_trace(table, points, ids, shown, [places[id] for id in marked], ends, shade))
    for trace in chosen_traces(table, points, places, marked, shade):
        figure.add_trace(trace)
    titles = axis_titles(found, points.shape[1])
    layout = {"legend": {"itemsizing": "constant"}, "height": 560, "hovermode": "closest", "dragmode": "pan"}
    figure.update_layout(**layout, uirevision=f"{table.name} {titles[0]} {whole} {sorted(hidden)}")
    if flat:
        for id in marked:
            figure.add_annotation(**annotation(table, id, points[places[id]], id == chosen, shade))
        figure.update_xaxes(title=titles[0], range=list(ends[0]))
        figure.update_yaxes(title=titles[1], range=list(ends[1]), scaleanchor="x")
    else:
        axes = {f"{'xyz'[i]}axis": {"title": {"text": titles[i]}, "range": list(ends[i])} for i in range(3)}
        figure.update_layout(scene={**axes, "aspectmode": "cube", "camera": CAMERA}, margin={"l": 0, "r": 0, "b": 0})
    return figure


def point_traces(
    table: VectorTable, points: np.ndarray, ids: np.ndarray, shown: np.ndarray, notes: Sequence[str], shade: Shade
) -> Iterator[go.Scattergl | go.Scatter3d]:
    size = 3 if len(ids) > 3000 or points.shape[1] == 3 else 5
    if table.kinds is None:
        hues = ramp(shade, "residual", 256)
        scale = [[step / 3, hues[round((0.25 + 0.75 * step / 3) * 255)]] for step in range(4)]
        bar = {"title": {"text": "id"}, "thickness": 10, "len": 0.6}
        marker = {"size": size, "color": ids, "colorscale": scale, "colorbar": bar}
        mode = "lines+markers" if table.title == "position" else "markers"
        line = {"color": hues[140], "width": 1}
        look = {"mode": mode, "marker": marker, "line": line, "showlegend": False}
        yield scatter(table, points, ids, notes, name=f"{table.title}s", **look)
        return
    of, kinds = colors(shade), np.array([table.kinds[id] for id in ids])
    for kind, (words, role) in KINDS.items():
        of_kind = (kinds == kind) & shown
        if of_kind.any():
            marker = {"size": size, "color": of[role], "opacity": 0.75, "line": {"width": 0}}
            marker["symbol"] = SYMBOLS[points.shape[1]]
            name = f"{words} {of_kind.sum():,}"
            yield scatter(table, points[of_kind], ids[of_kind], notes, mode="markers", marker=marker, name=name)


def scatter(
    table: VectorTable, points: np.ndarray, ids: np.ndarray, notes: Sequence[str], **options: Any
) -> go.Scattergl | go.Scatter3d:
    """Points that show their name and id when they are pointed at."""
    hover = f"%{{text}}<br>id %{{customdata}}{'<br>%{hovertext}' if notes else ''}<extra></extra>"
    given = {"text": [hover_text(table.label(int(id))) for id in ids], "customdata": ids, "hovertemplate": hover}
    given |= {"hovertext": [notes[id] for id in ids]} if notes else {}
    places = {"xyz"[axis]: points[:, axis] for axis in range(points.shape[1])}
    return (go.Scattergl if points.shape[1] == 2 else go.Scatter3d)(**places, **given, **options)


def hover_text(text: str) -> str:
    """Text of a token: Plotly reads a few HTML tags in labels."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def label_trace(
    table: VectorTable, points: np.ndarray, ids: np.ndarray, shown: np.ndarray, marked: Sequence[int],
    ends: Sequence[tuple[float, float]], shade: Shade,
) -> go.Scatter:  # fmt: skip
    """Names wherever one has room in the first frame beside the marked ones, those of the first ids first."""
    scale = min(side / (high - low) for side, (low, high) in zip(FRAME, ends, strict=True))
    taken: set[tuple[int, int]] = set()
    kept: list[int] = []

    def cells(i: int) -> set[tuple[int, int]]:
        left, top = (int((points[i, axis] - ends[axis][0]) * scale / LABEL[axis]) for axis in (0, 1))
        return {(left + letter, top) for letter in range(len(name_of(table, int(ids[i]))) + 2)}

    for i in marked:
        taken |= cells(i)
    for i in range(0, len(ids), max(1, -(-len(ids) // LABELLED))):
        inside = all(low <= at <= high for at, (low, high) in zip(points[i], ends, strict=True))
        if shown[i] and inside and not cells(i) & taken:
            taken |= cells(i)
            kept.append(i)
    return go.Scatter(
        x=points[kept, 0], y=points[kept, 1], text=[hover_text(name_of(table, int(ids[i]))) for i in kept],
        mode="text", textposition="middle right", hoverinfo="skip", showlegend=False,
        textfont={"size": 11.5, "color": colors(shade)["ink"]}, opacity=0.8, name="names",
    )  # fmt: skip


def name_of(table: VectorTable, id: int) -> str:
    return str(id) if table.pieces is None else table.pieces[id]


def annotation(table: VectorTable, id: int, place: np.ndarray, chosen: bool, shade: Shade) -> dict[str, object]:
    """The name of a ring, readable over what lies below it."""
    of, text = colors(shade), hover_text(table.label(id))
    return {
        "x": place[0], "y": place[1], "text": f"<b>{text}</b>" if chosen else text, "showarrow": False,
        "xanchor": "left", "xshift": 9 if chosen else 6, "bgcolor": of["ground"], "opacity": 0.9, "borderpad": 1,
        "font": {"size": 13, "color": of["ink"]},
    }  # fmt: skip


def chosen_traces(
    table: VectorTable, points: np.ndarray, places: dict[int, int], marked: Sequence[int], shade: Shade
) -> Iterator[go.Scatter | go.Scatter3d]:
    """Lines from the first of the marked points to the others, and a ring at each; in space with their names."""
    if not marked:
        return
    of, kind, mode = colors(shade), go.Scatter, "markers"
    if points.shape[1] == 3:
        kind, mode = go.Scatter3d, "markers+text"
    start, gap = points[places[marked[0]]], np.full(points.shape[1], np.nan)

    def along(rows: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        return {"xyz"[axis]: np.array([row[axis] for row in rows], float) for axis in range(points.shape[1])}

    lines = [row for id in marked[1:] for row in (start, points[places[id]], gap)]
    line = {"color": of["soft"], "width": 1}
    yield kind(**along(lines), mode="lines", line=line, hoverinfo="skip", showlegend=False, name="to its nearest")
    for name, ids, size, width in (("its nearest", marked[1:], 9, 1.5), ("chosen", marked[:1], 13, 2.5)):
        yield kind(
            **along([points[places[id]] for id in ids]), mode=mode, name=name, showlegend=False, customdata=list(ids),
            text=[hover_text(table.label(id)) for id in ids], textposition="middle right",
            marker={"size": size, "color": of["ground"], "line": {"color": of["ink"], "width": width}},
            hovertemplate="%{text}<br>id %{customdata}<extra></extra>",
        )  # fmt: skip


def axis_titles(found: Projection, axes: int) -> list[str]:
    if found.explained is None:
        return [f"t-SNE {axis + 1} (no unit)" for axis in range(axes)]
    of = "of the variance" if axes == 2 else "of it"
    return [f"component {i + 1} ({100 * share:.3g} % {of})" for i, share in enumerate(found.explained)]


def frame_of(points: np.ndarray, whole: bool) -> list[tuple[float, float]]:
    """Range of each axis: everything, or the main cluster, with 5 % around it."""
    ends = []
    for values in points.T:
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        middle = median(values.tolist()) if len(values) else 0.0
        spread = TO_DEVIATION * median(np.abs(values - middle).tolist()) if len(values) else 0.0
        if spread and not whole:
            low, high = max(low, middle - CLUSTER * spread), min(high, middle + CLUSTER * spread)
        room = 0.05 * (high - low) or 0.5
        ends.append((low - room, high + room))
    return ends


def outside_frame(found: Projection, shown: np.ndarray, whole: bool) -> int:
    """Number of the shown points that lie outside of the frame."""
    points = found.points.cpu().numpy()[shown]
    ends = np.array(frame_of(points, whole))
    return int(((points < ends[:, 0]) | (points > ends[:, 1])).any(1).sum())
