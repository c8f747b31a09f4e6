"""What the page Adapt would train: a checkpoint to begin with, what it learns from, and which of its parts learn."""

from __future__ import annotations

import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import streamlit as st

from engine.budget import budget
from engine.model.config import ModelConfig
from engine.model.layers.lora import list_linears
from engine.runtime import library, openings
from engine.training import Recipe, model_of_base
from engine.training.objectives import find_objective
from engine.training.recipe.recipe import Lora, Train
from engine.training.recipe.recipe_file import as_toml, parse_recipe, read_recipe
from engine.training.run.control import read_order, set_weight
from engine.training.run.folder import RunFolder
from engine.training.run.status import ACTIVE, read_status
from pages.controls.model_input.model_input import looked_at
from pages.controls.state.history import is_drawn
from pages.controls.state.page_state import Here
from pages.controls.state.session import widget_value
from pages.controls.train.parameters import FIRST_TO_ADAPT, WAYS
from pages.controls.train.presets import OWN, presets
from pages.controls.train.recipe_plan import Plan, Task, draw_recipe, find_task
from pages.controls.train.run_state import recipe_of, recipe_of_run
from pages.controls.train.session import ADAPTED, Session
from pages.controls.visitor import recent
from views.core.markdown import escape_markdown

FOLDER = ADAPTED.parent
KEPT = ".bases"  # in the folder of the runs: uploads that something is trained from


def plan_adaptation(here: Here, way: str) -> Plan:
    """Draws the controls of fine-tuning or LoRA."""
    tasks = presets(FOLDER)
    names = sorted(tasks, key=lambda name: (tasks[name].recipe.train.parts == "lora") != (way == "LoRA"))
    here.set_defaults(adapt=names[0])
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="task row")
    more = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="what learns")
    with row:
        task = here.menu("adapt", [*names, OWN], width=190)
    about = st.container(key="about the task")
    found = find_task(here, task, tasks)
    if isinstance(found, Plan):
        return found
    with row:
        base = choose_base(here, found.preset)
    with more:
        published = (choose_adapter if way == "LoRA" else choose_parts)(base, found.preset)
    try:
        preset = on_base(published, base)
    except ValueError as error:
        st.warning(escape_markdown(str(error).removeprefix("recipe: ")))
        return Plan(found.name, None, str(error), base=base)
    key = f"{found.key} on {base}, {published.train}, {published.lora}, {published.objective.language_weight}"
    name = f"{name_of(base)} {found.name}"
    return replace(draw_recipe(here, Task(key, preset, name, describe), row, about), base=base)


def name_of(base: str) -> str:
    """A part of the name of a run that begins with it."""
    return base.partition("~")[0].replace(":", "-").replace("/", "-")


def describe(recipe: Recipe) -> str:
    """Says what a recipe is about, what its base is by its config, and what of it learns."""
    parts, rank = recipe.train.parts, recipe.lora.rank
    ways = {"all": "all of its weights learn", "head": "its head alone learns"}
    ways["lora"] = f"its weights stay, and an adapter of rank {rank} learns"
    named = parts if isinstance(parts, str) else ", ".join(parts)
    how = ways.get(named, f"its {named} learn{'' if named.endswith('s') else 's'}")
    try:
        kind = describe_model(library.checkpoint(recipe.base).config)
    except (ValueError, OSError):
        return recipe.about  # the plan says why it does not open
    return f"{recipe.about} The base, {recipe.base}, is {kind}: {how}."


def describe_model(config: ModelConfig) -> str:
    """A model by what it reads and gives, a part of a sentence."""
    if config.encoder is not None:
        return "an encoder-decoder that writes a target from a source"
    full, head = config.attention.mask == "full", config.head.kind
    stack = "an encoder" if full else "a decoder"
    gives = {"masked": "guesses hidden tokens", "token": "tags tokens", "span": "finds answers in a text"}
    if config.embedding.patches is not None:
        return f"{stack} of pictures"
    if config.attention.mask == "prefix":
        return f"{stack} that fills gaps in a text"
    if head == "sequence":
        return f"{stack} that gives a text a score" if config.head.classes == 1 else f"{stack} that classifies texts"
    return f"{stack} that {gives[head]}" if head in gives else stack if head == "none" else f"{stack} that writes text"


def recording_of(folder: Path, plan: Plan) -> Path | None:
    """`folder`, where the run that is recorded in it began with the base of a plan and learned the same in the same
    way; None where it is another's."""
    file, recipe = folder / "recipe.toml", plan.recipe
    if recipe is None or not file.is_file():
        return None
    made = recipe_of(file, file.stat().st_mtime_ns)
    ours, theirs = ((one.base, one.train.parts, one.objective.kind, one.data.kind) for one in (recipe, made))
    return folder if ours == theirs else None


def choose_base(here: Here, published: Recipe) -> str:
    """Any model that is here: the one of the recipe until a link or a person names another."""
    looked = looked_at()[0]
    here.set_defaults(base=published.base or looked)
    models = library.names(*recent(), here.begin("base"), looked)
    base: str = here.menu("base", models, filter_mode="contains", width=190)
    return base


def choose_way(here: Here) -> str:
    """Fine-tuning, LoRA or preferences: as the run or the task of a link is learned, until a person chooses."""
    if here.read_said("way", "adapt", "base") and not is_drawn("way"):  # such a link is none to the run that was left
        here.restart("run")
    named = presets(FOLDER).get(here.read_said("adapt").get("adapt", FIRST_TO_ADAPT))
    usual = WAYS[named is not None and named.recipe.train.parts == "lora"]
    recipe = recipe_of_run(here.begin("run"))
    preferred = recipe is not None and find_objective(recipe.objective.kind).from_preferences
    here.set_usual(way=WAYS[2] if preferred else usual)
    return str(here.segments("way", label_visibility="collapsed"))


def kind_of_run(name: str) -> str:
    """The objective of a run, "" where there is no such run."""
    recipe = recipe_of_run(name)
    return "" if recipe is None else recipe.objective.kind


def choose_parts(base: str, published: Recipe) -> Recipe:
    """The recipe with what learns of the base, and how."""
    train, key = published.train, f"{published.objective.kind} {published.objective.language_weight}"
    own = train.parts if isinstance(train.parts, str) and train.parts != "lora" else "all"
    said = {1: "its last block", 2: "its last 2 blocks", 4: "its last 4 blocks"}
    last = {f"last {n} blocks": title for n, title in said.items() if n < blocks_of(base)}
    named = {"all": "all of it", **last, "head": "the head alone"}
    options = list(named)
    at = options.index(own) if own in options else 0
    parts = st.selectbox("what learns", options, at, named.__getitem__, key=f"parts {key}", width=190)
    decay = st.number_input("rate by depth", 0.1, 1.0, train.decay, 0.05, key=f"decay {key}", width=130,
        help="The learning rate of each block is that of the block above it times this (Howard & Ruder 2018).",
    )  # fmt: skip
    patience = st.number_input("patience", 0, 100, train.patience, key=f"patience {key}", width=110,
        help="Held-out measurements without a better loss after which training ends; the best step's weights are put "
        "back. 0: never.",
    )  # fmt: skip
    objective = published.objective
    if objective.language_weight:
        weight = st.number_input("λ, next-token loss", 0.05, 5.0, objective.language_weight, 0.05, key=f"λ {key}",
            width=150, help="The label's loss plus λ times that of the next token (Radford et al. 2018, 3.2).",
        )  # fmt: skip
        objective = replace(objective, language_weight=weight)
    return replace(published, train=Train(parts, decay, patience), objective=objective)


def choose_adapter(base: str, published: Recipe) -> Recipe:
    """The recipe with an adapter that learns on the linear maps which are chosen."""
    lora, known = published.lora, maps_of(base)
    usual = [name for name in lora.targets if name in known]
    targets = st.multiselect("matrices, of every block", known, usual, key=f"targets {usual} {known}", width=330)
    rank = st.number_input("rank", 1, 256, lora.rank, key=f"rank {lora.rank}", width=110)
    alpha = st.number_input("alpha", 0.5, 512.0, lora.alpha, 1.0, key=f"alpha {lora.alpha}", width=120,
        help="What is added is scaled by alpha / rank (Hu et al. 2022, 4.1), or alpha / √rank where it is stabilised.",
    )  # fmt: skip
    stabilised = st.toggle("rank-stabilised", lora.rank_stabilised, key="rank stabilised")
    dropout = st.number_input("dropout", 0.0, 0.9, lora.dropout, 0.05, key=f"dropout {lora.dropout}", width=110)
    adapter = Lora(rank, alpha, tuple(targets or lora.targets), stabilised, dropout)
    return replace(published, train=replace(published.train, parts="lora"), lora=adapter)


def blocks_of(base: str) -> int:
    try:
        return library.checkpoint(base).config.layers
    except (ValueError, OSError):
        return 1  # the plan says why it does not open


def maps_of(base: str) -> list[str]:
    """The linear maps of a block that an adapter can act on, without their block."""
    try:
        linears = list_linears(library.checkpoint(base).model)
    except (ValueError, OSError):
        return []
    return list(dict.fromkeys(name.partition("blocks.")[2].partition(".")[2] for name in linears if "blocks." in name))


def on_base(recipe: Recipe, base: str) -> Recipe:
    """The recipe for another checkpoint to begin with. Raises ValueError, with a sentence, where that cannot learn
    it."""
    said: dict[str, Any] = recipe.tables | {"base": keep_base(base), "model": {}}
    language = recipe.objective.language_weight > 0
    model = model_of_base(said["base"], recipe.objective.kind, recipe.data.kind, language)
    said["batch"]["context"] = min(recipe.batch.context, model.context)
    if classes := recipe.model.head.classes:
        said["model"] = {"head": asdict(replace(model.head, classes=classes))}
    return parse_recipe(as_toml(said), "recipe")


def keep_base(name: str) -> str:
    """`name` itself, of which an upload is copied to where a training finds it, also after a restart of the server."""
    how = library.parse_name(name)
    if not how.uploaded:
        return name
    place = Path(budget.runs_folder).resolve() / KEPT / name
    if not place.is_dir():
        shutil.copytree(how.source, place)
    openings.keep_path(budget.runs_folder, name, replace(how, source=place, folder=None, uploaded=False).record)
    return name


def steer_weight(session: Session, name: str) -> None:
    """A slider that acts on the run `name` from its next step on, where its objective has a weight: λ of the next-token
    loss, or β of preferences."""
    try:
        run = RunFolder(session.changeable(name))
        recipe, status = read_recipe(run.recipe), read_status(run.status)
    except (ValueError, OSError):
        return  # the view says why there is no such run, or whose it is
    sign, usual, most = "λ", recipe.objective.language_weight, 5.0
    if find_objective(recipe.objective.kind).moves_policy:
        sign, usual, most = "β", recipe.preference.beta, 1.0
    elif not usual:
        return
    if status is None or status.state not in ACTIVE:
        return
    ordered = read_order(run.control).weight
    key, now = f"steer {name}", usual if ordered is None else ordered

    def steer() -> None:
        set_weight(run.path, widget_value(key))

    st.slider(f"{sign} of this run, from its next step on", 0.0, max(most, now), now, most / 100, key=key,
        on_change=steer, width=330,
    )  # fmt: skip
