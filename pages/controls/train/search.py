"""Search: the recipe of the controls with several values of some of its options, as a grid of runs, a chart and a
table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from engine.budget import budget
from engine.json_text import parse_json
from engine.plurals import count_words
from engine.training import Recipe
from engine.training.launch.search import (
    SEED,
    Axis,
    describe_value,
    keys_of,
    list_changes,
    list_searches,
    rank_runs,
    read_axis,
    start_search,
)
from engine.training.recipe.link import FILES
from engine.training.run.runs import Run, runs
from engine.training.run.status import ACTIVE
from pages.controls.state.history import is_fragment
from pages.controls.state.page_state import Here
from pages.controls.state.session import widget_value
from pages.controls.train.recipe_plan import Plan, flat
from pages.controls.train.run_table import CONFIG, PACE, as_frame
from pages.controls.train.session import OTHERS, Session, runs_place
from views.charts.show import show_altair
from views.core.markdown import escape_markdown
from views.core.table_files import csv_of
from views.train.search import search_chart

FIRST = "optimiser.lr", SEED  # options that a visitor meets
OF_A_SEARCH = (
    SEED, "base", "optimiser", "schedule", "batch", "model", "objective", "train", "lora", "preference", "data"
)  # fmt: skip
MEASURES = {"held-out loss": "held_out_loss", "loss": "loss", "held-out accuracy": "held_out_accuracy"}
ALWAYS = tuple(MEASURES)[:2]
KEY = "search table"


def draw_search(here: Here, session: Session, plan: Plan) -> None:
    with st.expander("Search: a grid of runs", bool(here["search"]), key="search open", on_change="rerun") as place:
        if place.open:
            if plan.recipe is not None:
                draw_form(here, session, plan, plan.recipe)
            follow(here, session)


# --- what is searched ---


def draw_form(here: Here, session: Session, plan: Plan, recipe: Recipe) -> None:
    turn = f"search {plan.name}"  # another recipe begins with values of its own
    now = {key: parse_json(text) for key, text in flat(recipe).items()}
    known = [key for part in OF_A_SEARCH for key in now if key.partition(".")[0] == part and is_searched(key, now[key])]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        usual = [key for key in FIRST if key in known]
        chosen = st.multiselect("options", known, usual, key=f"{turn} options", width=420)
        name = st.text_input("name of the search", f"{plan.name} search", key=f"{turn} name", width=230)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        texts = [
            st.text_input(f"values of {escape_markdown(key)}", suggest(key, now[key]), key=f"{turn} {key}", width=230)
            for key in chosen
        ]
    try:
        axes = [read_axis(f"{key}={text}") for key, text in zip(chosen, texts, strict=True)]
        count = len(list_changes(axes)) if axes else 0
    except ValueError as error:
        st.warning(escape_markdown(str(error)))
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button(f"Train {count_words(count, 'run')}", key="search start", disabled=not axes):
            start_grid(here, session, recipe, axes, name)
        at_once = "as many at a time as the cluster has room for"
        if not budget.ray_address:
            at_once = f"at most {budget.max_trainings} at a time"
        alone = "" if plan.seconds is None else f"; the recipe alone takes about {format_time(plan.seconds)}"
        st.caption(escape_markdown(f"Each combination is a run of its own, {at_once}{alone}."))


def is_searched(key: str, value: Any) -> bool:
    """No search leads to another file of the server."""
    return isinstance(value, int | float | str) and value != "" and key.rpartition(".")[2] not in FILES


def suggest(key: str, value: Any) -> str:
    """Values around the one that an option has."""
    if isinstance(value, bool):
        return "true, false"
    if key == SEED:
        return ", ".join(str(value + more) for more in range(2))
    if isinstance(value, float):
        return ", ".join(f"{value * factor:.2g}" for factor in (1 / 3, 1, 3)) if value else "0, 0.1"
    if isinstance(value, int):
        return ", ".join(str(one) for one in dict.fromkeys((max(1, value // 2), value, 2 * value)))
    return str(value)


def format_time(seconds: float) -> str:
    minutes = round(seconds / 60)
    return count_words(minutes, "minute") if minutes else count_words(max(1, round(seconds)), "second")


def start_grid(here: Here, session: Session, recipe: Recipe, axes: Sequence[Axis], name: str) -> None:
    place = runs_place()
    try:
        if any(session.locked(run.path) for run in runs(place) if run.origin.search == name.strip()):
            raise ValueError(OTHERS)
        for folder in start_search(session.launcher, recipe, axes, name, place):
            session.begin(folder)
    except ValueError as error:
        st.warning(escape_markdown(str(error)))
        return
    here.state.rerun_with("search", name.strip())


# --- how its runs came out ---


def follow(here: Here, session: Session) -> None:
    """Draws the search that is chosen, again and again while a run of it trains."""
    found = runs()
    names = list_searches(found)
    if not names:
        return
    search = here.menu("search", ["", *names], width=300)
    active = any(run.status.state in ACTIVE for run in rank_runs(found, search))

    def draw() -> None:
        rows = rank_runs(runs() if is_fragment() else found, search)
        if active and not any(run.status.state in ACTIVE for run in rows):
            st.rerun()
        if rows:
            draw_results(here, session, rows)

    st.fragment(draw, run_every=PACE if active else None)()


def draw_results(here: Here, session: Session, rows: Sequence[Run]) -> None:
    keys = keys_of(rows)
    table = list_results(rows, keys)
    best = rows[0]
    there = [title for title in MEASURES if title in ALWAYS or table[title].notna().any()]
    measure = st.segmented_control(
        "measure",
        there,
        default=there[0],
        key=f"search measure {best.origin.search}",
        required=True,
        label_visibility="collapsed",
    )
    if table[measure].notna().any():
        show_altair(partial(search_chart, table, keys, measure), key="search chart")
    else:
        st.caption("No run has measured it yet.")
    ended = sum(run.status.state not in ACTIVE for run in rows)
    told = f"{ended} of {count_words(len(rows), 'run')} ended, drawn full; lines are their means"
    if best.measures.held_out_loss is not None:
        values = ", ".join(f"{key} {describe_value(best.origin.values.get(key))}" for key in keys)
        told += f". The lowest held-out loss so far is {best.measures.held_out_loss:.4g} nats, with {values}"
    st.caption(escape_markdown(f"{told}."))
    frame = as_frame(rows, here["run"])
    for at, key in enumerate(keys):
        frame.insert(2 + at, key, table[key])
    st.dataframe(
        frame.drop(columns=["task", "notes", "made"]), key=KEY, hide_index=True, column_config=CONFIG,
        on_select=partial(show_row, here, rows), selection_mode="single-cell", placeholder="–",
        alt="the runs of a search",
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Overlay their curves",
            key="search overlay",
            on_click=overlay,
            args=(here, session, rows),
            help="shows the run with the lowest held-out loss below, with the curves of the others over its own",
        )
        st.download_button(
            "Table (CSV)",
            lambda: csv_of({str(name): as_cells(column) for name, column in table.items()}),
            f"{rows[0].origin.search}.csv",
            "text/csv",
            on_click="ignore",
            key="search csv",
        )


def list_results(rows: Sequence[Run], keys: Sequence[str]) -> pd.DataFrame:
    """A row for each run: its name, its own values, its state and step, and what it came to; NaN where it has no such
    number."""
    found = [
        {"run": run.name, **{key: as_cell(run.origin.values.get(key)) for key in keys}}
        | {"state": run.status.state, "step": run.status.step, "ended": run.status.state not in ACTIVE}
        | {title: getattr(run.measures, name) for title, name in MEASURES.items()}
        | {"parameters": run.parameters, "seconds": run.measures.seconds}
        for run in rows
    ]
    numbers = dict.fromkeys(MEASURES, "float64")
    return pd.DataFrame(found).astype(numbers)


def as_cell(value: Any) -> float | str:
    """A number as it is, anything else as a text."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else describe_value(value)


def as_cells(column: pd.Series) -> list[Any]:
    """Values of a column, None where there is none."""
    return column.astype(object).where(column.notna(), None).tolist()


def show_row(here: Here, rows: Sequence[Run]) -> None:
    if cells := widget_value(KEY).selection.cells:
        here.state.choose("run", rows[cells[0][0]].name)
    st.rerun()


def overlay(here: Here, session: Session, rows: Sequence[Run]) -> None:
    here.state.choose("run", rows[0].name)
    session.overlaid = [run.name for run in rows[1:]]
    st.rerun()
