"""What a class handed in at one step, as a chart and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from PIL import ImageColor

from views.charts.template import AltairChart, colors
from views.core.table_files import Table
from views.core.theme import Shade, ramp

BINS = 20
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which a cell of a spreadsheet begins to compute
Content = Mapping[str, Any]  # of one answer


def draw_choices(found: Sequence[Content], revealed: bool, shade: Shade) -> AltairChart:
    """A bar for each answer, as long as it was given often; once it is revealed, the right ones stand out."""
    ink = colors(shade)
    table = pd.DataFrame({"answer": [one["said"] for one in found], "right": [bool(one["right"]) for one in found]})
    counted = table.groupby("answer", as_index=False).agg(count=("right", "size"), right=("right", "sum"))
    counted["wrong"] = counted["count"] - counted["right"]
    kinds, inks = (["right", "wrong"], ["query", "soft"]) if revealed else (["count"], ["key"])
    long = counted.melt("answer", kinds, "kind", "learners")
    scale = alt.Scale(domain=kinds, range=[ink[one] for one in inks])
    base = alt.Chart(long, height=alt.Step(34)).encode(y=alt.Y("answer:N", title=None, sort="-x"))
    bars = base.mark_bar().encode(
        x=alt.X("learners:Q", title="learners", axis=alt.Axis(tickMinStep=1, format="d")),
        color=alt.Color("kind:N", scale=scale, legend=alt.Legend(title=None) if revealed else None),
        tooltip=["answer", "kind", "learners"],
    )
    return alt.layer(bars)


def draw_estimates(found: Sequence[Content], revealed: bool, shade: Shade) -> AltairChart:
    """Histogram of what was estimated; once it is revealed a line at each true value, which may be another for each."""
    ink = colors(shade)
    table = pd.DataFrame({"estimate": [one["number"] for one in found], "true": [one["true"] for one in found]})
    base = alt.Chart(table, height=240)
    bars = base.mark_bar(color=ink["key"]).encode(
        alt.X("estimate:Q", bin=alt.Bin(maxbins=BINS), title="estimate"),
        alt.Y("count():Q", title="learners", axis=alt.Axis(tickMinStep=1, format="d")),
    )
    lines = base.mark_rule(color=ink["query"], size=2).encode(x="true:Q", tooltip=alt.Tooltip("true:Q", format=".3f"))
    return alt.layer(bars, lines) if revealed else alt.layer(bars)


def paint_pattern(picture: Sequence[Sequence[int]], shade: Shade) -> np.ndarray:
    """Attention that was handed in, query key from 0 to 255, as a picture of a pixel a cell: height width channel."""
    colors = np.array([ImageColor.getrgb(one) for one in ramp(shade, "attention", 256)], np.uint8)
    return colors[np.array(picture)]


def tabulate(rows: Sequence[Mapping[str, Any]], safe: bool = True) -> Table:
    """A line for each answer of a session; with `safe` no cell of it is a formula in a spreadsheet (OWASP, CSV
    injection)."""
    names = ("step", "kind", "question", "name", "said", "truth", "right", "score", "page", "link")
    columns = {name: [neutral(row.get(name)) if safe else row.get(name) for row in rows] for name in names}
    return Table(columns, {"table": "answers of a class"})


def neutral(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    line = value.replace("\r", " ")  # which a reader of CSV may take for the end of a line
    return f"'{line}" if value.startswith(FORMULA) else line
