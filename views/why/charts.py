"""Charts of the pages Why this token and Why this head, by title: the question and its chart."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from views.charts.template import AltairChart, at_least, colors
from views.core.theme import Shade, diverging_scale, ramp

ROW, COLUMN = 26, 52  # CSS pixels of a row, and of a column at least
BESIDE = 150  # of the axis
TOKENS = 256  # in a row, of which each has its own cell
READABLE = 0.55  # of the largest value, above which a cell is dark


def name_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Parts as rows and columns: a row for what comes first, for each block and for what is left."""
    row = table["layer"].map(lambda layer: f"block {layer + 1}")
    row = row.where(table["layer"] >= 0, "embedding").where((table["layer"] >= 0) | (table["kind"] != "bias"), "output")
    row = row.where(table["kind"] != "edit", "edits")
    heads = table["kind"].where(table["head"] < 0, table["kind"] + " " + (table["head"] + 1).astype(str))
    return table.assign(row=row, column=heads)


def write_decimals(value: float) -> str:
    """Two decimals, and no minus in front of nothing."""
    return f"{round(value, 2) + 0.0:.2f}"


def signed_cells(
    table: pd.DataFrame,
    shade: Shade,
    x: tuple[str, str, Sequence[str]],
    y: tuple[str, str, Sequence[str]],
    told: Sequence[alt.Tooltip],
    role: str = "attention",
    does: str = "adds to the logit",
) -> AltairChart:
    """Heat map of `value`, signed around 0, each cell with its number, or with what is `written`; an axis is (column,
    title, order)."""
    most = max(float(table["value"].abs().max()), 1e-9) if len(table) else 1.0
    shown = table.assign(dark=table["value"].abs() > READABLE * most)
    if "written" not in shown:
        shown["written"] = shown["value"].map(write_decimals)
    scale = alt.Scale(range=diverging_scale(shade, role), domain=[-most, most])
    across = alt.X(f"{x[0]}:N", title=x[1], sort=list(x[2]), axis=alt.Axis(labelAngle=-40, labelLimit=120, ticks=False))
    down = alt.Y(f"{y[0]}:N", title=y[1], sort=list(y[2]), axis=alt.Axis(labelLimit=BESIDE, ticks=False))
    base = alt.Chart(shown, height=alt.Step(ROW)).encode(
        x=across, y=down, tooltip=[*told, alt.Tooltip("value", format=".4f", title=does.partition(" to ")[0])]
    )
    ink = alt.condition(alt.datum.dark, alt.value(colors(shade)["ground"]), alt.value(colors(shade)["ink"]))
    cells = base.mark_rect().encode(color=alt.Color("value:Q", title=does, scale=scale))
    letters = base.mark_text(fontSize=11).encode(text="written:N", color=ink)
    return at_least(cells + letters, COLUMN * len(x[2]) + BESIDE)


def draw_parts(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`value` of each part, blocks down, heads, MLP and biases across; all cells add up to the logit."""
    named = name_rows(table)
    rows = list(dict.fromkeys(named["row"]))
    blocks = sorted((row for row in rows if row.startswith("block")), key=lambda row: int(row.split()[1]))
    order = [row for row in ("embedding", *blocks, "output", "edits") if row in rows]
    columns = sorted(dict.fromkeys(named["column"]), key=rank_column)
    told = [alt.Tooltip("part", title="part")]
    return signed_cells(named, shade, ("column", "part", columns), ("row", "written by", order), told)


def rank_column(name: str) -> tuple[int, int]:
    kinds = ("token", "patch", "sound", "segment", "position", "within", "head", "cross head", "MLP", "bias", "edit")
    kind, _, number = name.rpartition(" ")
    return (kinds.index(kind), int(number)) if kind in kinds else (kinds.index(name), 0)


def draw_sources(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`value` of each token through each of the heads that add most; of a long text the tokens that count most, and all
    others as one."""
    named = table.assign(token=(table["key"] + 1).astype(str) + " " + table["key_token"])
    if named["key"].nunique() > TOKENS:
        most = named["value"].abs().groupby(named["key"]).max().nlargest(TOKENS - 1).index
        named["token"] = named["token"].where(named["key"].isin(most), "all others")
        named = named.groupby(["part", "token"], sort=False, as_index=False)[["value", "attention"]].sum()
    told = [
        alt.Tooltip("part", title="head"),
        alt.Tooltip("token"),
        alt.Tooltip("attention", format=".4f", title="weight"),
    ]
    heads, tokens = (list(dict.fromkeys(named[name])) for name in ("part", "token"))
    return signed_cells(named, shade, ("token", "value of", tokens), ("part", "through", heads), told, "value")


def draw_split(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`value` of each pair of parts; all cells add up to the score."""
    queries, keys = (list(dict.fromkeys(table[name])) for name in ("query", "key"))
    told = [alt.Tooltip("query", title="query from"), alt.Tooltip("key", title="key from")]
    across, down = ("key", "key written by", keys), ("query", "query written by", queries)
    return signed_cells(table, shade, across, down, told, does="adds to the score")


def draw_composition(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`score` of each earlier head in the head's query, key and value."""
    if table.empty:
        none = pd.DataFrame({"said": ["A head of the first block reads no earlier head."]})
        return alt.Chart(none, height=60).mark_text(align="left").encode(text="said:N", x=alt.value(0))
    named = table.assign(
        written=(table["layer"] + 1).astype(str) + "." + (table["head"] + 1).astype(str), read=table["reads with"]
    )
    order = list(dict.fromkeys(named["written"]))
    scale = alt.Scale(range=ramp(shade, "residual"), domain=[0, max(float(named["score"].max()), 1e-9)])
    across = alt.X("written:N", title="block.head", sort=order, axis=alt.Axis(labelAngle=-40, ticks=False))
    told = [alt.Tooltip("written", title="block.head"), alt.Tooltip("read"), alt.Tooltip("score", format=".4f")]
    chart = alt.Chart(named, height=alt.Step(ROW)).mark_rect()
    chart = chart.encode(
        x=across,
        y=alt.Y("read:N", title="reads with", sort=["Q", "K", "V"]),
        tooltip=told,
        color=alt.Color("score:Q", title="composition", scale=scale),
    )
    return at_least(chart, COLUMN // 2 * len(order) + BESIDE)


TOKEN_CHARTS = {
    "What each part adds to the logit": ("parts", draw_parts),
    "What the strongest heads take from each token": ("sources", draw_sources),
}
HEAD_CHARTS = {
    "What wrote the query and the key": ("split", draw_split),
    "How much this head reads of each earlier one": ("composition", draw_composition),
}
