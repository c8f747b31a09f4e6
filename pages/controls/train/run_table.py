"""The table of runs: what was trained here, how it came out, and what can be done with the runs that are chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import streamlit as st

from engine.checkpoints.run_steps import kept_steps, name_step
from engine.training.recipe.link import pack_recipe
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run import export, trash
from engine.training.run.folder import RunFolder
from engine.training.run.runs import Run, runs
from engine.training.run.status import ACTIVE
from pages.controls.menu import entries
from pages.controls.state.page_state import Here
from pages.controls.state.session import set_widget, widget_value
from pages.controls.train.questions import delete_run, fork_run, order_run, rename_run, restore_run
from pages.controls.train.session import Session, runs_place, told_damage
from views.core.markdown import escape_markdown

KEY, FRAGMENT = "runs table", "followed runs"
PACE = 2.5  # seconds between two looks at the files while something trains
NONE = "No runs yet. Press Play above."
HEADINGS = 35, 35  # px of a row and of the headings
MOST_ROWS = 16  # in sight at once
STATES = {
    "new": "not begun", "preparing": "preparing", "running": "training", "queued": "waiting", "paused": "paused",
    "stopped": "stopped", "finished": "finished", "failed": "failed", "killed": "ended",
}  # fmt: skip
PAGES = {entry.title: entry.path for entry in entries() if entry.opens}
COMPARE = "pages/explore/compare.py"


@dataclass(frozen=True)
class Column:
    """Column by which runs are sorted; `down` where the greatest comes first."""

    title: str
    value: Callable[[Run], Any]
    down: bool = False


def state_of(run: Run) -> str:
    status = run.status
    if status.state == "queued" and run.position:
        return f"waiting, {'next' if run.position == 1 else f'number {run.position}'}"
    if status.state in ("failed", "killed") and status.cause:
        return status.cause
    return STATES.get(status.state, status.state)


COLUMNS = {
    "created": Column("made", lambda run: run.origin.created or None, down=True),
    "name": Column("run", lambda run: run.name.casefold()),
    "task": Column("task", lambda run: run.task),
    "state": Column("state", state_of),
    "step": Column("step", lambda run: run.status.step, down=True),
    "loss": Column("loss", lambda run: run.measures.loss),
    "held": Column("held-out loss", lambda run: run.measures.held_out_loss),
    "accuracy": Column("accuracy", lambda run: run.measures.best_accuracy, down=True),
    "parameters": Column("parameters", lambda run: run.parameters, down=True),
    "seconds": Column("time", lambda run: run.measures.seconds, down=True),
    "size": Column("size on disk", lambda run: run.size, down=True),
}


def order_title(order: str) -> str:
    column = COLUMNS[order.removeprefix("-")]
    return f"{column.title} {'↓' if column.down is not order.startswith('-') else '↑'}"


ORDERS = {order: order_title(order) for key in COLUMNS for order in (key, f"-{key}")}


def runs_table(here: Here, session: Session) -> None:
    """Draws the table of all runs."""
    before = ends(runs())

    @st.fragment(key=FRAGMENT)
    def follow() -> None:
        active = any(run.status.state in ACTIVE for run in runs())
        st.fragment(draw, run_every=PACE if active else None)(active)

    def draw(active: bool) -> None:
        found = runs()
        if ends(found) - before or active and not any(run.status.state in ACTIVE for run in found):
            st.rerun()  # the page measures what a run has come to, and nothing is to be followed any more
        table(here, session, found)

    follow()


def ends(found: Sequence[Run]) -> set[tuple[object, ...]]:
    """Key that tells the end of one training from that of any other."""
    ended = (run for run in found if run.status.state not in ACTIVE)
    return {(run.name, run.status.state, run.status.step, run.measures.seconds) for run in ended}


def refresh() -> None:
    """Redraws only the table; for callbacks."""
    st.rerun(FRAGMENT)


def table(here: Here, session: Session, found: Sequence[Run]) -> None:
    if not found:
        st.markdown("#### Runs")
        st.caption(NONE)
        offer_undo(session)
        return
    head = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    place = head.container(width="stretch")
    order = here.renew().menu("runs", place=head, width=230)
    words = (
        head.text_input("find", key="runs search", placeholder="name, task or state", live=True, width=230)
        .casefold()
        .split()
    )
    rows = sort_runs([run for run in found if matches(run, words)], order)
    count = f"{len(found)}" if len(rows) == len(found) else f"{len(rows)} of {len(found)}"
    place.markdown(f"#### Runs :gray[{count}]")
    if rows:
        grid(here, session, rows)
    else:
        st.caption("No run has all of these words.")
    actions(here, session, found, chosen(found, here["run"], session.overlaid))
    offer_undo(session)


# --- what is shown ------------------------------------------------------------------------------------------------


def sort_runs(rows: Sequence[Run], order: str) -> list[Run]:
    """Rows by a column of COLUMNS, those without a value last."""
    column = COLUMNS[order.removeprefix("-")]
    with_value = [run for run in rows if column.value(run) not in (None, "")]
    without = [run for run in rows if column.value(run) in (None, "")]
    return sorted(with_value, key=column.value, reverse=column.down is not order.startswith("-")) + without


def matches(run: Run, words: Sequence[str]) -> bool:
    """Tells whether all words stand somewhere in what is known of a run."""
    text = " ".join([run.name, run.task, state_of(run), run.about, run.status.cause, run.fault]).casefold()
    return all(word in text for word in words)


def as_frame(rows: Sequence[Run], shown: str) -> pd.DataFrame:
    """A row for each run; NaN where a run has no such number."""

    def share(value: float | None) -> float:
        """Percent, never rounded up to all."""
        return math.nan if value is None else math.floor(1000 * value) / 10

    def notes(run: Run) -> str:
        origin = f"forked from {run.origin.run}, step {run.origin.step:,}" if run.origin.run else ""
        return " ".join(filter(None, (run.fault or run.status.error, run.status.where, origin, run.about)))

    return pd.DataFrame(
        {
            "": ["●" if run.name == shown else "" for run in rows],
            "run": [run.name for run in rows],
            "task": [run.task for run in rows],
            "state": [state_of(run) for run in rows],
            "progress": [run.status.step / run.steps if run.steps else math.nan for run in rows],
            "step": [f"{run.status.step:,} / {run.steps:,}" if run.steps else f"{run.status.step:,}" for run in rows],
            "loss": pd.array([run.measures.loss for run in rows], "Float64"),
            "held out": pd.array([run.measures.held_out_loss for run in rows], "Float64"),
            "accuracy": [share(run.measures.best_accuracy) for run in rows],
            "parameters": pd.array([run.parameters for run in rows], "Int64"),
            "time": [run.measures.seconds for run in rows],
            "on disk": [run.size for run in rows],
            "made": [datetime.fromtimestamp(run.origin.created, UTC) if run.origin.created else None for run in rows],
            "notes": [notes(run) for run in rows],
        }
    )


CONFIG = {
    "": st.column_config.TextColumn(width=28, pinned=True, help="the run that the page shows"),
    "run": st.column_config.TextColumn(width="medium", pinned=True, help="click a cell to show its run above"),
    "progress": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1, width="small"),
    "loss": st.column_config.NumberColumn(format="%.3g", help="nats, of the last batch that was logged"),
    "held out": st.column_config.NumberColumn(
        format="%.3g", help="nats, loss on data that is not trained on, when it was measured last"
    ),
    "accuracy": st.column_config.NumberColumn(
        format="%.1f %%", help="on data that is not trained on; of the last batch where nothing else was measured"
    ),
    "parameters": st.column_config.NumberColumn(format="localized"),
    "time": st.column_config.NumberColumn(format="%.0f s", help="spent on training"),
    "on disk": st.column_config.NumberColumn(format="bytes"),
    "made": st.column_config.DatetimeColumn(format="distance"),
    "notes": st.column_config.TextColumn(width="large"),
}


def grid(here: Here, session: Session, rows: Sequence[Run]) -> None:
    """The table itself: a click on a cell shows its run, a ticked row is laid over the curves and can be acted on."""
    names, shown, overlaid = [run.name for run in rows], here["run"], session.overlaid
    ticked = [names.index(name) for name in overlaid if name in names]
    selected = widget_value(KEY, {"selection": {"rows": [], "columns": [], "cells": []}})["selection"]
    elsewhere = any(row >= len(names) or names[row] != shown for row, _ in selected["cells"])
    if elsewhere or set(selected["rows"]) != set(ticked):
        # only then: what the table is told takes back what a visitor has chosen in it meanwhile
        cells = [] if elsewhere else list(selected["cells"])
        set_widget(KEY, {"selection": {"rows": ticked, "columns": [], "cells": cells}})

    def select() -> None:
        selection = widget_value(KEY).selection
        if set(selection.rows) != set(ticked):  # the cell that was clicked before is still selected then
            kept = [name for name in overlaid if name not in names]
            session.overlaid = kept + [names[row] for row in selection.rows]
        elif selection.cells:
            here.state.choose("run", names[selection.cells[0][0]])
        st.rerun()

    st.dataframe(
        as_frame(rows, shown), key=KEY, on_select=select, selection_mode=["multi-row", "single-cell"], hide_index=True,
        column_config=CONFIG, height=HEADINGS[0] * min(len(rows), MOST_ROWS) + HEADINGS[1] + 2, placeholder="–",
        alt="all runs",
    )  # fmt: skip


# --- what can be done ---------------------------------------------------------------------------------------------


def chosen(found: Sequence[Run], shown: str, overlaid: Sequence[str]) -> list[Run]:
    """The ticked runs in the order in which they were ticked, else the run that the page shows."""
    by_name = {run.name: run for run in found}
    ticked = [by_name[name] for name in overlaid if name in by_name]
    return ticked or [run for run in found if run.name == shown]


def actions(here: Here, session: Session, found: Sequence[Run], picked: Sequence[Run]) -> None:
    """Buttons and menus for the chosen runs."""
    if not picked:
        st.caption("Click a cell to show its run above; tick rows to overlay their curves, compare or delete runs.")
        return
    names = ", ".join(run.name for run in picked)
    run, shown = picked[-1], here["run"]
    several = "Choose a single run for this." if len(picked) > 1 else ""
    locked = next((why for one in picked if (why := session.locked(one.path))), "")
    bare = "It has kept no weights yet." if run.parameters is None else ""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="runs actions"):
        st.markdown(escape_markdown(names), width="content")
        if run.name != shown:
            st.button("Show", key="runs show", on_click=show, args=(here, run.name), help="show this run above")
        if run.status.can_resume:
            st.button(
                "Resume", key="runs resume", on_click=resume, args=(here, session, run.name), type="primary",
                disabled=bool(locked), help=escape_markdown(locked) or None,
            )  # fmt: skip
        with st.popover("Open", disabled=bool(bare), help=bare or "the weights of any kept step, on another page"):
            open_menu(run, other_run(found, picked, shown))
        with st.popover("Export", disabled=bool(several), help=several or None):
            export_menu(here, run)
        with st.popover("Rename", disabled=bool(several or locked), help=escape_markdown(several or locked) or None):
            rename_menu(here, session, run)
        with st.popover("Fork or reset", disabled=bool(several or bare), help=several or bare or None):
            fork_menu(here, session, run, locked)
        st.button(
            "Delete",
            key="runs delete",
            on_click=delete,
            args=(here, session, [one.name for one in picked]),
            disabled=bool(locked),
            help=escape_markdown(locked) or None,
        )
    for one in picked:
        if problem := one.fault or one.status.error:
            st.warning(f"{escape_markdown(one.name)}: {escape_markdown(problem)}")


def attempt(session: Session, act: Callable[[], None]) -> None:
    """Does what a button is for; where it cannot be done, a sentence says why."""
    try:
        act()
    except ValueError as error:
        session.problem = str(error)


def show(here: Here, name: str) -> None:
    here.state.choose("run", name)
    st.rerun()


def resume(here: Here, session: Session, name: str) -> None:
    attempt(session, lambda: order_run(session, name, "play"))
    session.commands += 1
    show(here, name)


def other_run(found: Sequence[Run], picked: Sequence[Run], shown: str) -> Run:
    """Finds what a run is compared with: the first of two that are chosen, else the run that the page shows."""
    if len(picked) > 1:
        return picked[0]
    return next((run for run in found if run.name == shown and run.parameters is not None), picked[-1])


def open_menu(run: Run, other: Run) -> None:
    steps = kept_steps(run.path)

    def step_title(step: int | None) -> str:
        return "the last step" if step is None else f"step {step:,}"

    step = st.selectbox("weights of", [None, *reversed(steps)], format_func=step_title, key=f"open {run.name}")
    model = name_step(run.name, step)
    for title, page in PAGES.items():
        st.page_link(page, label=title, query_params={"model": model})
    if other.name == run.name and steps:
        last = steps[-1] if step is None else step
        first = st.selectbox("compared with", steps, format_func=step_title, key=f"compare {run.name}")
        label = f"Compare steps {first:,} and {last:,}"
    else:
        first = None
        label = f"Compare {other.name} with {run.name}"
    sides = {"a_model": name_step(other.name, first), "b_model": model}
    st.page_link(COMPARE, label=escape_markdown(label), query_params=sides)


def export_menu(here: Here, run: Run) -> None:
    folder, place = RunFolder(run.path), run.path.parent
    if run.parameters is not None:
        steps = [None, *reversed(folder.snapshot_steps())]
        step = st.selectbox(
            "weights of",
            steps,
            key=f"export {run.name}",
            format_func=lambda step: "the last step" if step is None else f"step {step:,}",
        )
        name = f"{run.name}.zip" if step is None else f"{run.name}-step-{step}.zip"
        st.download_button(
            "Checkpoint (zip, opens in transformers)",
            lambda: checkpoint(run, step),
            name,
            on_click="ignore",
            key="runs checkpoint",
        )
    if folder.metrics.is_file():
        st.download_button(
            "Curves (CSV)",
            lambda: export.metrics_csv(run.name, place).encode(),
            f"{run.name}.csv",
            "text/csv",
            on_click="ignore",
            key="runs curves",
        )
        st.download_button(
            "Curves (TensorBoard)",
            lambda: export.tensorboard(run.name, place)[1],
            f"events.out.tfevents.{run.name}",
            on_click="ignore",
            key="runs tensorboard",
        )
    if folder.recipe.is_file():
        st.download_button(
            "Recipe (TOML)", folder.recipe.read_bytes, f"{run.name}.toml", on_click="ignore", key="runs recipe"
        )
        st.caption("Command line that trains it again")
        with told_damage():
            st.code(export.command(run.name, place), language="bash", wrap_lines=True)
        link_to_recipe(here, folder)


def link_to_recipe(here: Here, folder: RunFolder) -> None:
    try:
        link = pack_recipe(read_recipe(folder.recipe))
    except ValueError as error:
        st.caption(escape_markdown(str(error)))
        return
    task = f"task={here['task']}&" if "task" in here.parameters else ""
    st.caption("Link that opens its recipe here")
    st.code(f"{(st.context.url or '').partition('?')[0]}?{task}recipe={link}", language=None, wrap_lines=True)


def checkpoint(run: Run, step: int | None) -> bytes:
    with TemporaryDirectory(prefix="loupe-") as made:
        return export.checkpoint(run.name, step, Path(made), run.path.parent).read_bytes()


def rename_menu(here: Here, session: Session, run: Run) -> None:
    key = f"rename {run.name}"
    st.text_input("new name", run.name, key=key)
    st.button("Rename", key="runs rename", on_click=rename, args=(here, session, run.name, key), type="primary")


def rename(here: Here, session: Session, name: str, key: str) -> None:
    wanted = widget_value(key).strip()

    def act() -> None:
        replace_name(here, session, name, rename_run(session, name, wanted).header["run"])

    if wanted and wanted != name:
        attempt(session, act)
        st.rerun()


def replace_name(here: Here, session: Session, before: str, after: str) -> None:
    """The page goes on with the new name of a run, or without it where that is empty."""
    session.overlaid = [name for name in (after if name == before else name for name in session.overlaid) if name]
    if here["run"] == before:
        here.state.choose("run", after)


def fork_menu(here: Here, session: Session, run: Run, locked: str) -> None:
    steps = RunFolder(run.path).snapshot_steps()
    key = f"fork {run.name}"
    st.selectbox("go on from", list(reversed(steps)), format_func=lambda step: f"step {step:,}", key=key)
    st.button(
        "Fork",
        key="runs fork",
        on_click=fork,
        args=(here, session, run.name, key),
        help="a new run that goes on from that step",
    )
    st.button(
        "Reset",
        key="runs reset",
        on_click=reset,
        args=(here, session, run.name),
        disabled=bool(locked),
        help=escape_markdown(locked)
        or "begin again from step 0 with the same seed; what was learned can be undeleted below",
    )


def fork(here: Here, session: Session, name: str, key: str) -> None:
    def act() -> None:
        here.state.choose("run", fork_run(session, name, widget_value(key)).header["run"])

    attempt(session, act)
    st.rerun()


def reset(here: Here, session: Session, name: str) -> None:
    attempt(session, lambda: order_run(session, name, "reset"))
    session.commands += 1
    show(here, name)


def delete(here: Here, session: Session, names: Sequence[str]) -> None:
    def act() -> None:
        for name in names:
            delete_run(session, name)
            replace_name(here, session, name, "")
            session.has_deleted = True

    attempt(session, act)
    st.rerun()


def offer_undo(session: Session) -> None:
    """The run that was deleted last can be had back, and what could not be done is said."""
    if session.problem:
        st.warning(escape_markdown(session.problem))
        session.problem = ""
    place = runs_place()
    gone = [one for one in trash.list_deleted(place) if not session.locked(place / trash.DELETED / one.token)]
    if not gone:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        word = "Deleted" if session.has_deleted else "Deleted last"
        st.caption(f"{word}: {escape_markdown(gone[0].name)}", width="content")
        st.button("Undo", key="runs undo", on_click=undo, args=(session, gone[0].token), type="tertiary")


def undo(session: Session, token: str) -> None:
    session.has_deleted = False
    attempt(session, lambda: restore_run(session, token))
    st.rerun()
