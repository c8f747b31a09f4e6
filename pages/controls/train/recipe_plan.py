"""What the page about training would train: a task, the options of its recipe, and the same with one choice changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePath
from typing import Any

import streamlit as st

from engine.training import Recipe, limit_checks
from engine.training.estimate import estimate
from engine.training.link import FILES
from engine.training.names import check_name
from engine.training.objectives.suitable_config import suit_model
from engine.training.recipe_file import as_toml, parse_recipe
from engine.training.sizing import Sizing, known_size
from pages.controls.share.links import as_text
from pages.controls.train.presets import OWN, duration, gallery, presets
from pages.controls.train.recipe_contrasts import contrasts
from pages.controls.train.recipe_form import Form
from pages.controls.train.recipe_options import format_value as as_option
from pages.controls.train.recipe_state import begin_recipe, keep, list_changes, recipe_memory
from pages.controls.train.recipe_text import text_of_recipe
from pages.controls.train.user_data import SHARED as DATA
from pages.controls.train.user_data import own_data

FIRST = "reverse"  # the task a visitor meets
NAMED = 3  # of what was changed; the others are counted
MIB = 2**20


@dataclass(frozen=True)
class Plan:
    """`recipe` is None where the controls do not make one: `problem` says why. `line` tells what would be trained."""

    name: str
    recipe: Recipe | None
    problem: str = ""
    line: str = ""
    contrasts: Mapping[str, Recipe] = field(default_factory=dict)


def plan_training() -> Plan:
    """Draws the controls."""
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="task row")
    with row:
        task = st.selectbox(
            "task", [*presets(), OWN], list(presets()).index(FIRST), key="task", bind="query-params", width=210
        )
        gallery(task, choose)
    about = st.container(key="about the task")
    if task == OWN:
        own = own_data()
        if own is None:
            return Plan("own", None, "paste a text or upload a file to learn from.")
        task, preset, name = own.task, own.recipe, own.title.removesuffix(PurePath(own.title).suffix)
    else:
        st.query_params.pop(DATA, None)
        preset, name = presets()[task].recipe, task
    recipe, turn = begin_recipe(task, preset)
    with row:
        seed = st.number_input("seed", 0, 2**31 - 1, recipe.seed, key=f"{turn} seed", width=110)
        name = st.text_input("name of the run", name, key=f"{turn} name", width=210)
    about.caption(as_text(recipe.about))
    with st.expander("Recipe: every option", key="recipe open"):
        made = read(Form(recipe, turn), int(seed), name, task, preset)
    if made.recipe is not None:
        keep(task, made.recipe, preset)
    with about:
        show_link_state(task, made.recipe, preset)
    return made


def choose(task: str) -> None:
    st.session_state.task = task


def read(form: Form, seed: int, name: str, task: str, preset: Recipe) -> Plan:
    """Reads the recipe that the controls make; the text follows them, whether or not they make a recipe."""
    said = adapt_model(form.draw() | {"seed": seed}, form.recipe)
    with form.text:
        files = places(preset)
        text_of_recipe(form.turn, as_toml(without_paths(said, files)), lambda text: apply(text, task, files))
    problem, recipe, line = "; ".join(form.problems), None, ""
    try:
        recipe = parse_recipe(as_toml(said), "the recipe")
        name = check_name(name)
        line, wrong = estimate_plan(recipe)
        limit_checks.check_recipe(recipe)
        problem = problem or wrong
    except ValueError as error:
        problem = problem or str(error).removeprefix("the recipe: ")
    if problem or recipe is None:
        st.warning(as_text(problem))
        return Plan(name, None, problem, line)
    return Plan(name, recipe, "", line, contrasts(recipe))


def adapt_model(said: dict[str, Any], begun: Recipe) -> dict[str, Any]:
    """Adapts the model to another objective than the controls begin with; the page says what of it."""
    kind = said["objective"]["kind"]
    if kind == begun.objective.kind:
        return said
    model, told = suit_model(kind, begun.data.kind, said["model"])
    if told:
        told_of = " and ".join(told)
        st.info(as_text(f"For the objective {as_option(kind)}, of the model {told_of}, whatever its controls say."))
    return said | {"model": model}


def apply(text: str, task: str, files: Mapping[str, str]) -> None:
    """Makes the controls begin with what is written. No text leads to a file that was not brought here."""
    recipe = parse_recipe(text, "the text")
    table = recipe.data.table
    for option in (each.name for each in fields(table) if each.name in FILES and getattr(table, each.name)):
        path = next((path for path, name in files.items() if name == getattr(table, option)), None)
        if path is None:
            raise ValueError(
                f"data.{recipe.data.kind}.{option} must be a file that was brought to this page, got "
                f"{getattr(table, option)!r}; choose the task own-data for that."
            )
        recipe = replace(recipe, data=replace(recipe.data, **{recipe.data.kind: replace(table, **{option: path})}))
    recipe_memory().begin(task, recipe)


def places(preset: Recipe) -> dict[str, str]:
    """The file that a person's own data lies in, and what it is called on the page."""
    path = getattr(preset.data.table, "path", "")
    return {path: path.rpartition("/")[2]} if path else {}


def without_paths(said: dict[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """Without where the files lie on the server."""

    def replace_path(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: replace_path(each) for key, each in value.items()}
        return files.get(value, value) if isinstance(value, str) else value

    found: dict[str, Any] = replace_path(said)
    return found


def show_link_state(task: str, recipe: Recipe | None, preset: Recipe) -> None:
    """Shows what of a link did not read, and what differs from the preset, with the way back."""
    if recipe_memory().lost:
        st.info(as_text(f"Not all of this link could be restored: {recipe_memory().lost}"))
    differs = [] if recipe is None else list_changes(recipe, preset)
    if differs:
        more = len(differs) - NAMED
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            named = ", ".join(differs[:NAMED]) + (f" and {more} more" if more > 0 else "")
            st.caption(f"changed: {as_text(named)}", width="content")
            st.button("As it was", key="as it was", on_click=recipe_memory().begin, args=(task, None), type="tertiary")


@st.cache_resource
def sizing_cache() -> Sizing:
    return Sizing()


def estimate_plan(recipe: Recipe) -> tuple[str, str]:
    """The line of what would be trained, and the sentence that it would end with, "" where none."""
    size = known_size(recipe)
    with st.container():
        fetched = recipe.data.hub is not None  # a link shall fetch nothing
        if size is None and not fetched and (sizing_cache().begin(recipe) or sizing_cache().busy):
            wait()
    if size is not None and size.problem:
        return describe_plan(recipe, False), size.problem
    known = size is not None and size.vocab_size > 0
    if size is not None and known:
        recipe = replace(recipe, model=replace(recipe.model, vocab_size=size.vocab_size))
    return describe_plan(recipe, known), ""


@st.fragment(run_every=0.5)
def wait() -> None:
    """Until what is tried in the background is known."""
    if not sizing_cache().busy:
        st.rerun()


def describe_plan(recipe: Recipe, exactly: bool) -> str:
    model, found = recipe.model, estimate(recipe)
    heads, layers = model.attention.heads, str(model.layers)
    kind = "encoder" if model.attention.mask == "full" else "decoder"
    if model.encoder is not None:
        kind, layers = "encoder-decoder", f"{model.encoder.layers} + {model.layers}"
    said = [
        f"{kind}, {layers} block{'' if layers == '1' else 's'}, {heads} head{'' if heads == 1 else 's'}, "
        f"{model.d_model} wide",
        f"{'' if exactly else 'about '}{found.parameters:,} parameters",
        f"{recipe.schedule.steps:,} steps of {recipe.batch.size} rows",
        f"about {max(1, round(found.memory_bytes / MIB)):,} MiB",
    ]
    return " · ".join([*said, *([] if found.seconds is None else [f"about {duration(found.seconds)}"])])
