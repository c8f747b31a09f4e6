"""Charts of the page Similarity, by title: the question and its chart."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd

from views.charts.template import AltairChart
from views.core.theme import Shade
from views.why.charts import signed_cells

TOKENS = 48  # of a text that have a row or a column of their own; of a longer one those that count most
ADDS = "adds to the cosine"
LETTERS = 28  # of a text in a label


def keep_strongest(table: pd.DataFrame, axis: str) -> pd.DataFrame:
    """`axis` with the tokens that add or take away most, and all others as one."""
    if table[axis].nunique() <= TOKENS:
        return table
    most = set(table["value"].abs().groupby(table[axis]).sum().nlargest(TOKENS - 1).index)
    return table.assign(**{axis: table[axis].where(table[axis].isin(most), "all others")})


def draw_pairs(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`value` of each pair of tokens, what it adds to the cosine, those of the first text down; all add up to it."""
    shown = keep_strongest(keep_strongest(table, "first"), "second")
    return draw_cells(shown.groupby(["first", "second"], sort=False, as_index=False)["value"].sum(), shade, ADDS)


def draw_products(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`value` of each pair of tokens, their product; of a long text the tokens whose products are largest."""
    kept = table
    for axis in ("first", "second"):
        best = set(table["value"].groupby(table[axis]).max().nlargest(TOKENS).index)
        kept = kept[kept[axis].isin(best)]
    return draw_cells(kept, shade, "product of their vectors")


def draw_cells(shown: pd.DataFrame, shade: Shade, does: str) -> AltairChart:
    """A cell for each pair of tokens, those of the first text down."""
    first, second = (list(dict.fromkeys(shown[name])) for name in ("first", "second"))
    told = [alt.Tooltip("first", title="of the text"), alt.Tooltip("second", title="of the other")]
    shown = shown.assign(written=shown["value"].map(lambda value: f"{round(value, 3) + 0.0:.3f}"))
    across, down = ("second", "tokens of the other text", second), ("first", "tokens of the text", first)
    return signed_cells(shown, shade, across, down, told, does=does)


def name_text(number: int, text: str) -> str:
    short = text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"
    return f"{number + 1} {short}"


def draw_cosines(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`value` of each pair of texts."""
    named = table.assign(
        first=[name_text(at, text) for at, text in zip(table["row"], table["text"], strict=True)],
        second=[name_text(at, text) for at, text in zip(table["column"], table["other"], strict=True)],
    )
    names = list(dict.fromkeys(named["first"]))
    told = [alt.Tooltip("text"), alt.Tooltip("other")]
    return signed_cells(named, shade, ("second", "", names), ("first", "", names), told, does="cosine")


Charts = dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart]]]
CHARTS: Charts = {
    "Which pairs of tokens make two texts alike": ("token_pairs", draw_pairs),
    "Each text beside each other": ("text_cosines", draw_cosines),
}
OF_TOKENS: Charts = {
    "Which tokens find which": ("token_products", draw_products)
}  # of models with a vector for each token
