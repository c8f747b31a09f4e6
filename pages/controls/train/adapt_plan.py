"""What the page Adapt would train: a checkpoint to begin with, what it learns from, and which of its parts learn."""

from __future__ import annotations

import shutil
from dataclasses import asdict, replace
from pathlib import Path, PurePath
from typing import Any

import streamlit as st

from engine.runtime import library, limits, opened
from engine.training import Recipe, model_of_base
from engine.training.recipe_file import as_toml, parse_recipe
from pages.controls.model_input.model_input import looked_at
from pages.controls.share.links import as_text
from pages.controls.share.visitor import recent
from pages.controls.train.presets import OWN, presets
from pages.controls.train.recipe_form import Form
from pages.controls.train.recipe_plan import Plan, begin_recipe, keep, read, show_link_state
from pages.controls.train.session import ADAPTED
from pages.controls.train.user_data import SHARED as DATA
from pages.controls.train.user_data import own_data

FOLDER = ADAPTED.parent
FIRST = "sentiment"  # what the recorded run has learned
PARTS = {"all": "all of it", "head": "the head alone", "lora": "an adapter (LoRA)"}
KEPT = ".bases"  # in the folder of the runs: uploads that something is trained from


def plan_adaptation() -> Plan:
    """Draws the controls."""
    tasks = presets(FOLDER)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="task row")
    with row:
        task = st.selectbox(
            "learn from", [*tasks, OWN], list(tasks).index(FIRST), key="adapt", bind="query-params", width=190
        )
    about = st.container(key="about the task")
    if task == OWN:
        own = own_data()
        if own is None:
            return Plan("own", None, "Paste a text or upload a file to learn from.", asks=True)
        task, published = own.task, own.recipe
        name = own.title.removesuffix(PurePath(own.title).suffix)
    else:
        st.query_params.pop(DATA, None)
        published, name = tasks[task].recipe, task
    with row:
        base = choose_base(published)
        parts = choose_parts(base, published)
    try:
        preset = on_base(published, base, parts)
    except ValueError as error:
        st.warning(as_text(str(error).removeprefix("recipe: ")))
        return Plan(name, None, str(error))
    task = f"{task} on {base}, {parts}"
    recipe, turn = begin_recipe(task, preset)
    with row:
        seed = st.number_input("seed", 0, 2**31 - 1, recipe.seed, key=f"{turn} seed", width=110)
        named = f"{base.partition('~')[0].replace(':', '-').replace('/', '-')} {name}"
        name = st.text_input("name of the run", named, key=f"{turn} name", width=260)
    about.caption(as_text(recipe.about))
    with st.expander("Recipe: every option", key="recipe open", on_change="rerun") as options:
        drawn = options.open or f"{turn} text" in st.session_state
        made = read(Form(recipe, turn), drawn, int(seed), name, task, preset)
    if made.recipe is not None:
        keep(task, made.recipe, preset)
    with about:
        show_link_state(task, made.recipe, preset)
    return made


def choose_base(published: Recipe) -> str:
    """Any model that is here, the one of the recipe first, or the one that a link names."""
    state, address = st.session_state, st.query_params
    usual = published.base or looked_at()[0]
    names = library.names(*recent(), *filter(None, (address.get("base"), state.get("base"), looked_at()[0])))
    models = [name for name in names if may_learn(name)]
    return st.selectbox("base", models, models.index(usual) if usual in models else 0, key="base", bind="query-params",
        filter_mode="contains", width=190, help="Models that are here. Others are opened on the page Open a model.",
    )  # fmt: skip


def may_learn(name: str) -> bool:
    """Tells whether a model reads text, as far as its config says."""
    return not name.startswith("digits-")


def choose_parts(base: str, published: Recipe) -> str:
    """What learns, by the number of blocks that the base has."""
    own = published.train.parts if isinstance(published.train.parts, str) else "all"
    try:
        layers = library.checkpoint(base).config.layers
    except (ValueError, OSError):
        layers = 1  # the plan says why it does not open
    last = {f"last {n} blocks": f"its last {n} blocks" for n in (1, 2, 4) if n < layers}
    named = {"all": PARTS["all"], **last, "head": PARTS["head"], "lora": PARTS["lora"]}
    options = list(named)
    at = options.index(own) if own in options else 0
    return st.selectbox("what learns", options, at, named.__getitem__, key=f"parts {published.objective.kind} {own}",
        width=190,
    )  # fmt: skip


def on_base(recipe: Recipe, base: str, parts: str) -> Recipe:
    """The recipe for another checkpoint to begin with. Raises ValueError, with a sentence, where that cannot learn
    it."""
    said: dict[str, Any] = asdict(recipe) | {"base": keep_base(base), "model": {}}
    said["train"] = said["train"] | {"parts": parts}
    if classes := recipe.model.head.classes:
        language = recipe.objective.language_weight > 0
        model = model_of_base(said["base"], recipe.objective.kind, recipe.data.kind, language)
        said["model"] = {"head": asdict(replace(model.head, classes=classes))}
    return parse_recipe(as_toml(said), "recipe")


def keep_base(name: str) -> str:
    """`name` itself, of which an upload is copied to where a training finds it, also after a restart of the server."""
    how = library.parse_name(name)
    if how.folder is None:
        return name
    place = Path(limits.RUNS_FOLDER).resolve() / KEPT / name
    if not place.is_dir():
        shutil.copytree(how.source, place)
    opened.keep_path(library.RUNS_FOLDER, name, replace(how, source=place, folder=None).lasting)
    return name

