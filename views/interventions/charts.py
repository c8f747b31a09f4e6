"""Charts of the page Interventions, by title: the question and its chart."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd

from views.charts.template import PICKED, AltairChart, at_least, colors
from views.core.theme import Shade, diverging_scale
from views.why.charts import signed_cells, write_decimals

POSITIONS = 32  # up to which every one is shown
SAME = "="  # in a cell whose place holds the same value in both runs
DOES = "effect"
COLUMN = 0.8  # of the width, which heads stand in
WRITERS = 16  # that are shown, those of which a block reads most


def name_places(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its places in words, and what is written in each cell."""
    written = table["effect"].map(write_decimals).where(table["moved"] > 0, SAME)
    named = table.assign(value=table["effect"], written=written, block=(table["layer"] + 1).map("block {}".format))
    if "head" in named:
        named["head_name"] = (named["head"] + 1).map("head {}".format)
    if "pos" in named:
        named["place"] = (named["pos"] + 1).astype(str) + " " + named["token"]
    return named


def effect_cells(table: pd.DataFrame, shade: Shade, x: tuple[str, str], y: tuple[str, str]) -> AltairChart:
    """Heat map of `effect` with the metric and the length of the change in its tooltips; a click chooses a place."""
    if x[0] == "place" and table["pos"].nunique() > POSITIONS:
        differ = table.loc[table["moved"] > 0, "pos"].unique()
        table, x = table[table["pos"].isin(differ)], (x[0], "position, of those where a value differs")
    named = name_places(table)
    told = [alt.Tooltip(one, title=title) for one, title in (y, x)]
    told += [
        alt.Tooltip("measured", format=".4f", title="metric"),
        alt.Tooltip("moved", format=".4g", title="moved by"),
    ]
    chart = signed_cells(named, shade, axis(named, *x), axis(named, *y), told, does=DOES)
    fields = [name for name in ("layer", "head") if name in named]
    return chart.add_params(alt.selection_point(name=PICKED, fields=fields, on="click", toggle=False))


def axis(table: pd.DataFrame, column: str, title: str) -> tuple[str, str, list[str]]:
    return column, title, list(dict.fromkeys(table[column]))


def draw_places(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`effect` by block and position."""
    return effect_cells(table, shade, ("place", "position"), ("block", "in front of, or in"))


def draw_heads(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`effect` by block and head."""
    return effect_cells(table, shade, ("head_name", "head"), ("block", "block"))


def draw_block(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`effect` by head and position."""
    return effect_cells(table, shade, ("place", "position"), ("head_name", "head"))


def draw_first_order(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`estimate` against `effect`, a point a head, and the line on which they are the same."""
    named = table.assign(name=(table["layer"] + 1).astype(str) + "." + (table["head"] + 1).astype(str))
    low, high = (pick(named[["effect", "estimate"]].to_numpy().ravel()) for pick in (min, max))
    domain = [low - 0.05 * (high - low or 1), high + 0.05 * (high - low or 1)]
    told = [
        alt.Tooltip("name", title="block.head"), alt.Tooltip("effect", format=".4f"),
        alt.Tooltip("estimate", format=".4f", title="to first order"),
    ]  # fmt: skip
    base = alt.Chart(named, height=280).encode(
        x=alt.X("effect:Q", title="effect, measured", scale=alt.Scale(domain=domain)),
        y=alt.Y("estimate:Q", title="effect, to first order", scale=alt.Scale(domain=domain)),
        tooltip=told,
    )
    ends = pd.DataFrame({"effect": domain, "estimate": domain})
    same = (
        alt.Chart(ends).mark_line(strokeDash=[4, 4], color=colors(shade)["soft"]).encode(x="effect:Q", y="estimate:Q")
    )
    points = base.mark_point(filled=True, size=60, color=colors(shade)["attention"], opacity=1)
    far = named["effect"].abs().rank(ascending=False) <= NAMED
    letters = base.mark_text(dy=-10, fontSize=11).encode(text="written:N")
    letters.data = named.assign(written=named["name"].where(far, ""))
    return same + points + letters


NAMED = 5  # points whose head is written


def draw_edges(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """The edges as a graph: the embedding below, the output on top, each block's heads and MLP in between; the width
    of an edge is the size of its effect."""
    if table.empty:
        none = pd.DataFrame({"said": ["No edge does anything to first order."]})
        return alt.Chart(none, height=60).mark_text(align="left").encode(text="said:N", x=alt.value(0))
    spots = spots_of(table)
    lines = table.assign(
        x=[spots[key][0] for key in keys(table, "writer")], y=[spots[key][1] for key in keys(table, "writer")],
        x2=[spots[key][0] for key in keys(table, "reader")], y2=[spots[key][1] for key in keys(table, "reader")],
        size=table["effect"].abs(),
    )  # fmt: skip
    most = max(float(lines["size"].max()), 1e-9)
    color = alt.Color(
        "effect:Q", title=DOES, scale=alt.Scale(range=diverging_scale(shade, "attention"), domain=[-most, most])
    )
    told = [
        alt.Tooltip("writer", title="what"),
        alt.Tooltip("reader", title="read by"),
        alt.Tooltip("effect", format=".4f"),
    ]
    x, y = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, 1])), alt.Y("y:Q", axis=None)
    drawn = alt.Chart(lines).mark_rule(strokeCap="round").encode(
        x=x, y=y, x2="x2:Q", y2="y2:Q", color=color, tooltip=told,
        strokeWidth=alt.StrokeWidth("size:Q", legend=None, scale=alt.Scale(range=[0.6, 9], domain=[0, most])),
    )  # fmt: skip
    nodes = pd.DataFrame(
        [{"x": x, "y": y, "name": name_of(key), "inside": key[1] == "head"} for key, (x, y) in spots.items()]
    )
    base = alt.Chart(nodes).encode(x=x, y=y)
    dots = base.mark_point(filled=True, size=640, color=colors(shade)["panel"], stroke=colors(shade)["soft"], opacity=1)
    inside, beside = nodes[nodes["inside"]], nodes[~nodes["inside"]]
    letters = alt.Chart(inside).mark_text(fontSize=11).encode(x=x, y=y, text="name:N")
    names = alt.Chart(beside).mark_text(fontSize=11, align="left", dx=20).encode(x=x, y=y, text="name:N")
    rows = len({y for _, y in spots.values()})
    return at_least((drawn + dots + letters + names).properties(height=56 * rows + 20), 560)


Key = tuple[int, str, int]  # block, part without its reader, head


def keys(table: pd.DataFrame, end: str) -> list[Key]:
    """The node of each line at one end."""
    parts = {"q": "head", "k": "head", "v": "head"}
    found = zip(table[f"{end}_layer"], table[f"{end}_part"].replace(parts), table[f"{end}_head"], strict=True)
    return [(int(layer), str(part), int(head)) for layer, part, head in found]


def spots_of(table: pd.DataFrame) -> dict[Key, tuple[float, float]]:
    """Where each node stands: rows by depth, a block's heads below its MLP, which stand in a column of their own with
    the embedding and the output."""
    nodes = {*keys(table, "writer"), *keys(table, "reader")}
    heads = 1 + max((head for _, part, head in nodes if part == "head"), default=0)
    depth = {"embedding": (-1, 0), "output": (10**6, 0)}

    def row(key: Key) -> tuple[int, int]:
        layer, part, _ = key
        return depth.get(part, (layer, int(part == "MLP")))

    rows = sorted({row(key) for key in nodes})
    return {
        key: ((key[2] + 0.5) / heads * COLUMN if key[1] == "head" else (1 + COLUMN) / 2, float(rows.index(row(key))))
        for key in nodes
    }


def name_of(key: Key) -> str:
    layer, part, head = key
    if part in ("embedding", "output"):
        return part
    return f"{layer + 1}.{head + 1}" if part == "head" else f"MLP {layer + 1}"


def draw_paths(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`effect` of what each reader reads of each earlier part, of those that do most."""
    most = table["effect"].abs().groupby(table["writer"]).max().nlargest(WRITERS).index
    table = table[table["writer"].isin(most)]
    heads = (table["head"] + 1).map("head {}".format).where(table["head"] >= 0, table["reader"])
    named = table.assign(value=table["effect"], head_name=heads)
    across, down = axis(named, "head_name", "read by"), axis(named, "writer", "what was written by")
    return signed_cells(named, shade, across, down, [alt.Tooltip("writer"), alt.Tooltip("reader")], does=DOES)


def draw_circuits(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`faithful` and `left` by `size`, and the span of random circuits."""
    names = {"faithful": "these parts alone", "left": "without them", "random": "random ones, mean"}
    lines = table.melt(["size", "part"], list(names), "of", "share")
    lines["of"] = lines["of"].map(names)
    x = alt.X("size:Q", title="parts, the one that is needed most first", axis=alt.Axis(tickMinStep=1))
    palette = [colors(shade)[role] for role in ("attention", "value", "soft")]
    color = alt.Color(
        "of:N", title=None, sort=[*names.values()], scale=alt.Scale(domain=[*names.values()], range=palette)
    )
    told = [alt.Tooltip("size"), alt.Tooltip("part", title="last of them"), alt.Tooltip("share", format=".3f")]
    share = "share of what all of them do"
    y = alt.Y("share:Q", title=share)
    drawn = alt.Chart(lines, height=260).mark_line(point=True).encode(x=x, y=y, color=color, tooltip=told)
    band = alt.Chart(table).mark_area(opacity=0.15, color=colors(shade)["soft"])
    band = band.encode(x="size:Q", y=alt.Y("random_low:Q", title=share), y2="random_high:Q")
    return at_least(band + drawn, 420)


CHARTS: dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart]]] = {
    "Each place by itself": ("patched_places", draw_places),
    "Each head by itself, at all positions": ("patched_heads", draw_heads),
    "Each head of one block, by position": ("patched_block", draw_block),
    "Measured, and to first order": ("first_order", draw_first_order),
    "The edges that do most": ("edges", draw_edges),
    "The parts that are needed, alone": ("circuits", draw_circuits),
    "Each edge by itself: what one block, or the output, reads of earlier parts": ("paths", draw_paths),
}
