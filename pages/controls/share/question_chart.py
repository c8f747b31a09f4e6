"""A question of a page drawn as a chart: below it its link, its Python, its data and an offline file of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from pages.controls.share.export import caption_of
from pages.controls.share.panel import share_panel
from views.charts.show import show_altair, show_plotly
from views.charts.standalone import chart_file
from views.charts.template import PICKED, AltairChart, has_cells_to_pick
from views.core.matrix_files import Matrix, columns
from views.core.questions import Page
from views.core.theme import Shade

Chart = Callable[[pd.DataFrame, Shade], AltairChart | go.Figure]


def show_question(
    page: Page, query: Mapping[str, Any], chart: Chart, *, title: str, header: Mapping[str, Any], key: str,
    on_pick: tuple[str, Callable[[], None]],
) -> None:  # fmt: skip
    """Draws the answer to `query`; `header` says what a link to the page holds (`Export.header`). Of a chart with the
    selection PICKED `on_pick` is its own key and what is called after a click."""
    data = page.table(query)
    frame = pd.DataFrame(columns(data) if isinstance(data, Matrix) else data.columns)

    def draw_figure(shade: Shade) -> Any:
        return chart(frame, shade)

    drawn = draw_figure("light")
    if isinstance(drawn, go.Figure):
        show_plotly(draw_figure, key=key)
    elif has_cells_to_pick(drawn):
        show_altair(draw_figure, key=on_pick[0], on_select=on_pick[1], selection_mode=PICKED)
    else:
        show_altair(draw_figure, key=key)
    share_panel(
        title,
        header["link"],
        [name for name, _ in header["controls"]],
        python=partial(page.python, query),
        tables={title: partial(page.table, query)},
        html=partial(chart_file, title, [draw_figure], caption=[caption_of(header)]),
        predicts=header["predicts"],
        key=f"{key} share",
        names=[header["model"]],
    )
