"""Before and after: what the run that is shown has changed of the model that it began with."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st
from torch import Tensor

from engine.analysis.adaptation import (
    MatrixChange,
    caught,
    change_of,
    matrix_changes,
    pattern_changes,
    singular_values,
)
from engine.checkpoints.run_steps import name_step
from engine.runtime import library
from engine.scoring.examples import Examples
from engine.training import Recipe
from engine.training.base.base import read_transfer
from engine.training.recipe.parts import count_learning
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run.comparison import (
    held_out_examples,
    held_out_loss,
    old_model,
    recipe_of_base,
    texts_of,
    without_published,
)
from engine.training.run.folder import RunFolder
from engine.training.run.runs import runs
from engine.training.run.status import read_status
from pages.controls.compare.defaults import link_sides
from pages.controls.train.held_out_rows import draw_held_out, open_result
from pages.controls.train.policies import draw_shift
from pages.controls.train.run_state import newest_weights
from pages.controls.train.session import Session, told_damage
from views.adapt.charts import (
    draw_heads,
    draw_matrices,
    draw_matrices_beside,
    draw_spectrum,
    head_table,
    matrix_table,
    spectrum_table,
)
from views.charts.show import show_altair, show_plotly
from views.core.markdown import escape_markdown

COMPARE = "pages/explore/compare.py"
TEXTS, BATCHES = 8, 4  # on which patterns, and losses, are compared
MIB = 2**20


def before_after(session: Session, name: str) -> None:
    """Draws it for the run `name`, "" for the recorded one, once that has weights."""
    try:
        run = session.reader(name).live.run
        recipe = read_recipe(run.recipe)
    except (ValueError, OSError):
        return  # the view says why there is no such run
    weights = newest_weights(run)
    if not recipe.base or weights is None:
        return
    with st.expander("Before and after: what has changed of the base", key="before after", on_change="rerun") as part:
        if part.open:  # it takes a few seconds, in which somebody may delete the run
            with told_damage():
                draw(run, recipe, weights, name)


def draw(run: RunFolder, recipe: Recipe, weights: Path, name: str) -> None:
    """Raises ValueError or OSError where the base or the run does not open."""
    library.checkpoint(recipe.base)
    open_result(weights, weights.stat().st_mtime_ns)
    if (transfer := read_transfer(run.path)) is not None:
        st.caption(escape_markdown(str(transfer)))
    if name:
        st.page_link(
            COMPARE,
            label=f"Compare {escape_markdown(recipe.base)} with {escape_markdown(name)} on one text",
            icon=":material/arrow_forward:",
            query_params=link_sides(recipe.base, name_step(name)),
        )
    draw_changes(run, recipe, weights)
    draw_held_out(recipe, run.recipe, weights, name)
    draw_shift(recipe, weights)
    draw_matrix(run, recipe, weights)


@st.cache_data(max_entries=16, show_spinner="Measuring what was held out …")
def losses(recipe: str, weights: Path, stamp: int) -> tuple[str, float, float] | None:
    """Record of what the base had learned (the kind of its objective, and on which part of its data where that is not
    all), and its loss on that data, before and after; None where its recipe is unknown."""
    base_name = read_recipe(Path(recipe)).base
    found = loss_of_base(base_name, library.version(base_name))
    if found is None:
        return None
    kind, examples, before = found
    after = old_model(library.checkpoint(base_name).model, open_result(weights, stamp).model)
    return kind, before, held_out_loss(after, examples)


@st.cache_resource(max_entries=4, show_spinner=False)
def loss_of_base(name: str, version: tuple[object, ...]) -> tuple[str, list[Examples], float] | None:
    """Facts that are the same for all that was made of a base: what it had learned, the examples, and its loss on
    them."""
    old = recipe_of_base(name)
    if old is None:
        return None
    read = without_published(old)
    examples = held_out_examples(read, BATCHES)
    kind = old.objective.kind if read == old else f"{old.objective.kind}, without its published texts"
    return kind, examples, held_out_loss(library.checkpoint(name).model, examples)


@st.cache_data(max_entries=16, show_spinner="Comparing the heads …")
def moved_heads(recipe: str, weights: Path, stamp: int) -> object:
    read = read_recipe(Path(recipe))
    base, (examples,) = library.checkpoint(read.base).model, held_out_examples(read, 1)
    return pattern_changes(base, open_result(weights, stamp).model, texts_of(examples, TEXTS))


@st.cache_data(max_entries=16, show_spinner=False)
def moved_matrices(base: str, weights: Path, stamp: int) -> list[MatrixChange]:
    return matrix_changes(library.checkpoint(base).model, open_result(weights, stamp).model)


@st.cache_data(max_entries=64, show_spinner=False)
def spectrum(base: str, weights: Path, stamp: int, name: str) -> tuple[Tensor, Tensor]:
    """Singular values of a matrix's change, and what the best matrix of each rank catches of it."""
    values = singular_values(change_of(library.checkpoint(base).model, open_result(weights, stamp).model, name)[1])
    return values, caught(values)


def draw_changes(run: RunFolder, recipe: Recipe, weights: Path) -> None:
    key = (str(run.recipe), weights, weights.stat().st_mtime_ns)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**How far each matrix moved**")
        table = matrix_table(moved_matrices(recipe.base, *key[1:]))
        show_altair(partial(draw_matrices, table), key="matrix changes")
    with right:
        st.markdown(f"**How far each head's attention moved**, on {TEXTS} held-out texts")
        if recipe.model.encoder is None and not recipe.data.table.pictures:
            moved = moved_heads(*key)
            show_altair(partial(draw_heads, head_table(moved)), key="head changes")  # type: ignore[arg-type]
        else:
            st.caption("Heads are compared for models of one stack that read text.")
    try:
        found = losses(*key)
    except (ValueError, OSError) as error:  # texts that a base was trained on may not be on this machine
        found = None
        st.caption(escape_markdown(f"What {recipe.base} had learned from cannot be read: {error}"))
    if found is not None:
        kind, before, after = found
        learned = escape_markdown(f"{recipe.base} had learned from ({kind})")
        st.caption(
            f"On what {learned}, its held-out loss under its own head "
            f"was {before:.4f} and is {after:.4f} now: {after - before:+.4f} nats."
        )


def draw_matrix(run: RunFolder, recipe: Recipe, weights: Path) -> None:
    key = (weights, weights.stat().st_mtime_ns)
    names = [one.name for one in moved_matrices(recipe.base, *key) if one.relative]
    if not names:
        st.caption("No matrix of the blocks has changed: only the head learns.")
        return
    others = runs_of(recipe.base, run)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = st.selectbox("change of", names, key="changed matrix", width=220)
        beside = st.selectbox("beside that of", ["", *others], key="beside run", width=260) if others else ""
    spectra = {run.path.name: spectrum(recipe.base, *key, name)}
    if beside and (theirs := newest_weights(others[beside])) is not None:
        spectra[beside] = spectrum(recipe.base, theirs, theirs.stat().st_mtime_ns, name)
    table = spectrum_table(spectra)
    show_altair(partial(draw_spectrum, table), key="spectrum")
    st.caption(
        "Dashed: what the best matrix of each rank catches of a change (Eckart & Young 1936), the most that an adapter "
        "of that rank could do."
    )
    before, change = change_of(library.checkpoint(recipe.base).model, open_result(*key).model, name)
    written = "B A" if recipe.train.parts == "lora" else "ΔW"
    show_plotly(
        partial(draw_matrices_beside, {"W": before, written: change, f"W + {written}": before + change}),
        key="three matrices",
        alt=f"{name} before, what was added, and after",
    )
    st.dataframe(trained_table({run.path.name: run, **others}), hide_index=True, key="trained", width="content",
        column_config={"peak memory, MiB": st.column_config.NumberColumn(
            format="%d", help="of the process that trained, with its libraries; of the GPU where it trained on one",
        )},
    )  # fmt: skip


def runs_of(base: str, but: RunFolder) -> dict[str, RunFolder]:
    """The other runs that began with that base and have weights, by name."""
    found = {}
    for one in runs():
        folder = RunFolder(one.path)
        if one.path != but.path and one.parameters is not None and base_of(folder) == base:
            found[one.name] = folder
    return found


def base_of(run: RunFolder) -> str:
    try:
        return read_recipe(run.recipe).base
    except (ValueError, OSError):
        return ""  # the table of runs says what is wrong with it


def trained_table(found: dict[str, RunFolder]) -> pd.DataFrame:
    """Table of the runs: what each trained, of how much, how fast, and its held-out loss in the end."""
    rows = []
    for name, folder in found.items():
        recipe, line = read_recipe(folder.recipe), next(reversed(folder.read_metrics()), {"step": 0})
        parts = recipe.train.parts if isinstance(recipe.train.parts, str) else ", ".join(recipe.train.parts)
        learned, whole = count_learning(recipe, read_transfer(folder.path))
        pace = (line.get("seconds") or 0.0) / line["step"] if line["step"] else None
        status = read_status(folder.status)
        memory = status.peak_memory / MIB if status is not None and status.peak_memory else None
        rows.append((name, parts, learned, whole, learned / whole, pace, memory, line.get("held_out_loss")))
    columns = ["run", "what learns", "trained", "of", "share", "seconds a step", "peak memory, MiB", "held-out loss"]
    return pd.DataFrame(rows, columns=columns)
