"""Every tensor of a file and what became of it: a table that is searched, filtered, sorted, and leads to a matrix."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import get_args

import pandas as pd
import streamlit as st

from engine.checkpoints import Checkpoint, Report
from engine.checkpoints.report import MEANING, Status
from engine.plurals import count_words
from pages.controls.checkpoint.parameters import CHECKPOINT
from pages.controls.share.links import address_now
from pages.controls.share.panel import share_panel
from pages.controls.state.page_state import Here
from pages.controls.state.session import SessionValue
from views.charts.show import current_shade
from views.charts.template import colors
from views.checkpoint import checkpoint as drawn
from views.core.codegen import source_of
from views.core.markdown import escape_markdown
from views.core.table_files import Table

MOST_COLOURED = 5000  # rows; a style for each cell travels with the table
LED = SessionValue("led to", str)  # the row of the table that was led from last
GLYPHS = {"loaded": "✓", "tied": "=", "dropped": "–", "missing": "✗", "unexpected": "?"}
ROLES = {"loaded": "value", "tied": "query", "dropped": "mlp", "missing": "edited", "unexpected": "edited"}


@st.fragment
def tensors_section(
    here: Here, report: Report, name: str = "", checkpoint: Checkpoint | None = None, matrices: Collection[str] = ()
) -> None:
    """`matrices` are those that a selected row leads to. Without a checkpoint there is nothing to share."""
    here = here.renew()
    frame, counts = drawn.tensor_frame(report), drawn.ledger(report)
    st.markdown("##### Every tensor of the file")
    statuses = [status for status in get_args(Status) if counts[status]]
    if here.begin("status") not in statuses:
        here.set("status", None)
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        pills = {"options": statuses, "format_func": escape_markdown}
        status = here.draw("status", st.pills, label_visibility="collapsed", **pills)
        text = here.text("named", placeholder="find a name", width=240, label_visibility="collapsed")
    shown = filter_rows(frame, status, text or "")
    told = [f"{counts[status]:,} {MEANING[status]}" for status in get_args(Status)]
    st.caption(" · ".join([f"{len(shown):,} of {count_words(len(frame), 'tensor')}", *told]))
    if shown.empty:
        st.caption("No tensor has that name.")
    else:
        picked = st.dataframe(
            color_statuses(shown) if len(shown) <= MOST_COLOURED else shown,
            key="tensors",
            hide_index=True,
            on_select="rerun",
            selection_mode="single-row",
            height=min(35 * (len(shown) + 1) + 3, 420),
            column_config={
                "status": st.column_config.TextColumn(width="small"),
                "elements": st.column_config.NumberColumn(format="localized", width="small"),
                "shape": st.column_config.TextColumn(width="small"),
                "stored as": st.column_config.TextColumn(width="small"),
            },
        )
        lead_to_matrix(shown, picked.selection.rows, matrices)
    if checkpoint is not None:
        share_panel(
            "Every tensor", partial(address_now, model=name), (), lambda: tensor_lines(name),
            {"tensors": lambda: tensor_table(name, checkpoint)}, key="tensors share", names=[name],
        )  # fmt: skip


def filter_rows(frame: pd.DataFrame, status: str | None, text: str) -> pd.DataFrame:
    """Rows of a status, or of all, with the text in either name."""
    names = frame["in the file"] + "\n" + frame["in the model"]
    kept = names.str.contains(text, case=False, regex=False)
    if status is not None:
        kept &= frame["status"] == status
    return frame[kept]


def color_statuses(frame: pd.DataFrame) -> pd.io.formats.style.Styler:
    """The statuses in their colours, with a sign for each."""
    of = colors(current_shade())
    lost = frame["status"].isin(("missing", "unexpected"))
    ground = f"background-color: {of['edited']}22"
    return (
        frame.style.format(lambda status: f"{GLYPHS[status]} {status}", subset=["status"])
        .map(lambda status: f"color: {of[ROLES[status]]}", subset=["status"])
        .apply(lambda column: [ground if lost[row] else "" for row in column.index])
    )


def lead_to_matrix(shown: pd.DataFrame, rows: list[int], matrices: Collection[str]) -> None:
    """A selected tensor is the matrix that is looked at above, where it is one; once."""
    chosen = shown["in the model"].iloc[rows[0]] if rows and rows[0] < len(shown) else ""
    if LED.get() == chosen:
        return
    LED.set(chosen)
    matrix = next((name for name in chosen.split(", ") if name in matrices), None)
    if matrix is not None:
        CHECKPOINT.rerun_with("matrix", matrix)


def tensor_lines(name: str) -> str:
    source, note = source_of(name)
    return (
        f"from engine import load\n\ncheckpoint = load({source}){note}\nfor row in checkpoint.report.rows:\n"
        "    print(row.name, row.status, row.shape, row.ours, row.dtype)\n"
    )


def tensor_table(name: str, checkpoint: Checkpoint) -> Table:
    """A row for each tensor of the file, as the account of it says."""
    rows = checkpoint.report.rows
    return Table(
        {
            "name": [row.name for row in rows],
            "status": [row.status for row in rows],
            "shape": [" ".join(map(str, row.shape)) for row in rows],
            "ours": [" ".join(row.ours) for row in rows],
            "dtype": [row.dtype for row in rows],
        },
        {"model": name, "table": "tensors"},
    )
