"""What the page about training would train: a task, the options of its recipe, and the same with one choice changed."""

from __future__ import annotations

import json
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from operator import attrgetter
from pathlib import PurePath
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.data.kinds.hub import Hub
from engine.data.own import Columns
from engine.model.config import ModelConfig, PositionKind
from engine.plurals import count_words
from engine.training import Recipe
from engine.training.launch.estimate import estimate
from engine.training.launch.sizing import Sizing, known_size
from engine.training.objectives.suitable_config import suit_model
from engine.training.recipe import limit_checks
from engine.training.recipe.link import FILES, pack_recipe, unpack_recipe
from engine.training.recipe.recipe import MOST_SEED
from engine.training.recipe.recipe_file import as_toml, parse_recipe, write_recipe
from engine.training.run.names import check_name
from pages.controls.state.history import is_drawn
from pages.controls.state.page_state import Here
from pages.controls.state.session import find_record, set_widget, widget_value
from pages.controls.train.parameters import FIRST
from pages.controls.train.presets import OWN, Preset, gallery, presets
from pages.controls.train.recipe_form import Form
from pages.controls.train.recipe_options import format_value as as_option
from pages.controls.train.run_state import recipe_of_run
from pages.controls.train.user_data import own_data
from views.core.markdown import escape_markdown

# --- The recipe between visits ---


@dataclass
class Written:
    """The text that the form of a recipe made last, and what is wrong with that of a person."""

    made: str | None = None
    wrong: str = ""


@dataclass
class RecipeMemory:
    """State of each task's form: what its controls `begins` with where that is not its preset, what they `said` last,
    and how often they began anew. `link` is the recipe in the address as it was read or written last; `learned` are the
    presets of a person's own data."""

    begins: dict[str, Recipe] = field(default_factory=dict)
    said: dict[str, Recipe] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)
    # By the turn of the controls.
    written: defaultdict[str, Written] = field(default_factory=lambda: defaultdict(Written))
    link: str = ""
    learned: dict[str, Recipe] = field(default_factory=dict)

    def begin(self, task: str, recipe: Recipe | None) -> None:
        """The controls of a task begin anew, with its preset where no recipe is given."""
        self.turns[task] = self.turns.get(task, 0) + 1
        self.said.pop(task, None)
        self.begins.pop(task, None)
        if recipe is not None:
            self.begins[task] = recipe

    def turn(self, task: str) -> str:
        """Prefix of the keys of its controls."""
        return f"{task} {self.turns.get(task, 0)}"


def begin_recipe(here: Here, task: str, preset: Recipe) -> tuple[Recipe, str]:
    """The recipe that the controls begin with, and the turn of the controls.

    That of a link counts first; then what they said when the person left them for another task or page.
    """
    known, link = find_record(RecipeMemory), here.begin("recipe")
    if link != known.link:
        known.link = link
        known.begin(task, unpack_recipe(link) if link else None)
    elif widget_value(f"{known.turn(task)} seed") is None and task in known.said:
        known.begin(task, known.said[task])
    return known.begins.get(task, preset), known.turn(task)


def keep(here: Here, task: str, recipe: Recipe, preset: Recipe) -> None:
    """Keeps what the controls say now; in the address too where it is not the preset."""
    known = find_record(RecipeMemory)
    known.said[task] = recipe
    try:
        known.link = "" if recipe == preset else pack_recipe(recipe)
    except ValueError:  # it learns from a file, which no link can carry; the page says so where it offers the link
        known.link = ""
    here.assign("recipe", known.link)


def list_changes(recipe: Recipe, preset: Recipe) -> list[str]:
    """Differences from a preset, as "model.layers 2 → 4"."""
    ours, theirs = (flat(one) for one in (recipe, preset))
    return [
        f"{key} {theirs.get(key, 'none')} → {ours.get(key, 'none')}"
        for key in dict.fromkeys([*theirs, *ours])
        if ours.get(key) != theirs.get(key)
    ]


def flat(recipe: Recipe) -> Mapping[str, str]:
    """Values of its file as text, by the dotted key."""
    found = dict[str, str]()

    def visit(table: Mapping[str, Any], prefix: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                visit(value, f"{prefix}{key}.")
            else:
                found[f"{prefix}{key}"] = json.dumps(value)

    visit(tomllib.loads(write_recipe(replace(recipe, about=""))), "")
    return found


# --- Recipes that differ in one thing ---


SEEN = 0.05  # the weight decay from which leaving it out makes a difference


def contrasts(recipe: Recipe) -> dict[str, Recipe]:
    """Changed recipes by their titles, without those that change nothing or that no model or task can have."""
    found: dict[str, Recipe] = {}
    for title, change in CHANGES.items():
        try:
            other = change(recipe)
            limit_checks.check_start(other)
        except ValueError:
            continue
        if other != recipe:
            found[title] = other
    return found


def of_model(change: Callable[[ModelConfig], ModelConfig]) -> Callable[[Recipe], Recipe]:
    return lambda recipe: replace(recipe, model=change(recipe.model))


def change_stacks(model: ModelConfig, **changed: Any) -> ModelConfig:
    """Changes both stacks."""
    encoder = model.encoder and replace(model.encoder, **changed)
    return replace(model, encoder=encoder, **changed)


def change_attention(model: ModelConfig, **changed: Any) -> ModelConfig:
    """Changes all attention, that to the encoder too."""
    encoder = model.encoder and replace(model.encoder, attention=replace(model.encoder.attention, **changed))
    cross = model.cross and replace(model.cross, **changed)
    return replace(model, attention=replace(model.attention, **changed), encoder=encoder, cross=cross)


def with_positions(kind: PositionKind) -> Callable[[Recipe], Recipe]:
    return of_model(
        lambda model: replace(model, positions=replace(model.positions, kind=kind, scaling=None, other=None))
    )


def norms_after(model: ModelConfig) -> ModelConfig:
    return model if model.norm.kind == "none" else replace(model, norm=replace(model.norm, place="after"))


def without_scale(model: ModelConfig) -> ModelConfig:
    return change_attention(model, scale=1.0) if model.attention.scale is None else model


def one_block(model: ModelConfig) -> ModelConfig:
    return change_stacks(model, layers=1) if model.distinct is None else replace(model, layers=1, distinct=1)


def not_warmed_up(recipe: Recipe) -> Recipe:
    return replace(recipe, schedule=replace(recipe.schedule, warmup=0))


def not_decayed(recipe: Recipe) -> Recipe:
    """Sets the weight decay to 0 where it is large enough to be seen."""
    if recipe.optimiser.weight_decay < SEEN:
        return recipe
    return replace(recipe, optimiser=replace(recipe.optimiser, weight_decay=0.0))


def ten_times(recipe: Recipe) -> Recipe:
    return replace(recipe, optimiser=replace(recipe.optimiser, lr=10 * recipe.optimiser.lr))


# A title becomes a part of a run's name: letters, digits, spaces and hyphens.
CHANGES: dict[str, Callable[[Recipe], Recipe]] = {
    "without residual connections": of_model(lambda model: replace(model, residual=False)),
    "without normalisation": of_model(lambda model: replace(model, norm=replace(model.norm, kind="none"))),
    "batch normalisation": of_model(lambda model: replace(model, norm=replace(model.norm, kind="batch"))),
    "normalisation after each sublayer": of_model(norms_after),
    "scores not divided by sqrt d_head": of_model(without_scale),
    "without positions": with_positions("none"),
    "learned positions": with_positions("learned"),
    "sinusoidal positions": with_positions("sinusoidal"),
    "rotary positions": with_positions("rotary"),
    "ALiBi positions": with_positions("alibi"),
    "one block": of_model(one_block),
    "one head": of_model(lambda model: change_attention(model, heads=1, kv_heads=None)),
    "attention without MLPs": of_model(lambda model: change_stacks(model, mlp=None)),
    "without warm-up": not_warmed_up,
    "ten times the learning rate": ten_times,
    "without weight decay": not_decayed,
}


# --- The recipe as text ---


HIGH = 420  # CSS pixels


def text_of_recipe(turn: str, text: str, apply: Callable[[str], None]) -> None:
    """`text` is what the controls say; `apply` takes what is written, and raises ValueError where it cannot."""
    key, written = f"{turn} text", find_record(RecipeMemory).written[turn]

    def discard_text() -> None:
        set_widget(key, text)
        written.made, written.wrong = text, ""

    if widget_value(key) in (None, written.made):
        discard_text()
    elif widget_value(key) == text:
        written.made = text

    def apply_text() -> None:
        try:
            apply(widget_value(key))
        except ValueError as error:
            written.wrong = str(error)

    st.text_area("recipe in TOML", key=key, height=HIGH, label_visibility="collapsed")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button("Apply", key=f"{key} apply", on_click=apply_text, help="Set the controls to this text.")
        differs = widget_value(key) != text
        st.button("Discard", key=f"{key} discard", on_click=discard_text, disabled=not differs,
                  help="Set this text to the controls.")  # fmt: skip
        if differs:
            st.caption("Not applied yet. Training uses the controls, not this text.")
    if written.wrong:
        st.warning(escape_markdown(written.wrong))


# --- The plan ---


NAMED = 3  # of what was changed; the others are counted
MIB = 2**20


@dataclass(frozen=True)
class Plan:
    """`recipe` is None where the controls do not make one: `problem` says why, or what to do first where `asks`. `line`
    tells what would be trained, and `seconds` how long that would take, None where it is not known. `base` is the model
    that it begins with, "" for none."""

    name: str
    recipe: Recipe | None
    problem: str = ""
    line: str = ""
    contrasts: Mapping[str, Recipe] = field(default_factory=dict)
    asks: bool = False
    seconds: float | None = None
    base: str = ""


def plan_training(here: Here) -> Plan:
    """Draws the controls."""
    if here.read_said("task") and not is_drawn("task"):  # a link to a task is none to the run that was left here
        here.restart("run")
    here.set_usual(task=task_of(here.begin("run")))
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="task row")
    with row:
        task = here.menu("task", width=210)
        gallery(task, partial(here.state.choose, "task"))
    about = st.container(key="about the task")
    found = find_task(here, task, presets())
    return found if isinstance(found, Plan) else draw_recipe(here, found, row, about)


@dataclass(frozen=True)
class Task:
    """Initial values of the controls of a recipe; `key` tells them from those of another task, `name` is the run's.
    `describe` puts what a recipe is about into words."""

    key: str
    preset: Recipe
    name: str
    describe: Callable[[Recipe], str] = attrgetter("about")


def find_task(here: Here, chosen: str, known: Mapping[str, Preset]) -> Task | Plan:
    """The task of that name, or of the person's own data, whose controls it draws; a plan that asks for data where
    there is none yet."""
    if chosen != OWN:
        here.leave_out("data", "held_out_data")
        return Task(chosen, known[chosen].recipe, chosen)
    own = own_data(here)
    if own is None:
        return Plan("own", None, "Paste a text or upload a file to learn from.", asks=True)
    learned = find_record(RecipeMemory).learned  # no link carries it, so that a page loaded anew finds it in its run
    preset = learned.setdefault(own.task, as_learned(here, own.recipe))
    return Task(own.task, preset, own.title.removesuffix(PurePath(own.title).suffix))


def as_learned(here: Here, preset: Recipe) -> Recipe:
    """The preset, or what the run that is shown learned of the same data in the same way."""
    run = recipe_of_run(here.begin("run"))
    if run is None or (run.data.table, run.objective.kind) != (preset.data.table, preset.objective.kind):
        return preset
    return run


def draw_recipe(here: Here, begun: Task, row: DeltaGenerator, about: DeltaGenerator) -> Plan:
    """Draws seed and name into `row`, what the recipe is about into `about`, and every option below."""
    task, preset = begun.key, begun.preset
    recipe, turn = begin_recipe(here, task, preset)
    with row:
        seed = st.number_input("seed", 0, MOST_SEED, recipe.seed, key=f"{turn} seed", width=110)
        name = st.text_input("name of the run", begun.name, key=f"{turn} name", width=210)
    with st.expander("Recipe: every option", key="recipe open", on_change="rerun") as options:
        # Some eighty controls, which most visitors never open; from then on they stay, with what is half written.
        drawn = options.open or widget_value(f"{turn} text") is not None
        made = read(Form(recipe, turn), drawn, int(seed), name, task, preset)
    about.caption(escape_markdown(begun.describe(made.recipe or recipe)))
    if made.recipe is not None:
        keep(here, task, made.recipe, preset)
    with about:
        show_left_out(made.recipe)
        show_notes(made.recipe)
        show_changes(task, made.recipe, preset)
    return made


def show_left_out(recipe: Recipe | None) -> None:
    """Shows how many rows of a person's own data are too long to be learned from, once that is known."""
    size = None if recipe is None or not isinstance(recipe.data.table, Columns) else known_size(recipe)
    if recipe is None or size is None or not size.left_out:
        return
    context, most = recipe.batch.context, recipe.model.context
    advice = "shorten them" if recipe.base and context == most else "raise the context, or shorten them"
    if recipe.base:
        advice += f"; {escape_markdown(recipe.base)} reads at most {most:,}"
    rows = f"{size.left_out:,} of {count_words(size.rows, 'row')}"
    st.caption(f"Left out: {rows}, with more tokens than the context of {context:,}: {advice}.")


def show_notes(recipe: Recipe | None) -> None:
    """Shows what is to be said of how the data is read, once that is known."""
    size = None if recipe is None else known_size(recipe)
    for note in () if size is None else size.notes:
        st.caption(escape_markdown(note))


def task_of(run: str) -> str:
    """The task that a run learns, that of the recorded one where there is no such run."""
    recipe = recipe_of_run(run)  # the view says why there is no such run
    data = None if recipe is None else recipe.data
    return next((name for name, one in presets().items() if one.recipe.data == data), FIRST)


def read(form: Form, drawn: bool, seed: int, name: str, task: str, preset: Recipe) -> Plan:
    """Reads the recipe that the controls make, or what they begin with where they are not drawn; the text follows
    them, whether or not they make a recipe."""
    said = adapt_model((form.draw() if drawn else form.recipe.tables) | {"seed": seed}, form.recipe)
    if drawn:
        with form.text:
            files = places(preset)
            text_of_recipe(form.turn, as_toml(without_paths(said, files)), lambda text: apply(text, task, files))
    problem, recipe, line, seconds = "; ".join(form.problems), None, "", None
    try:
        recipe = parse_recipe(as_toml(said), "the recipe")
        name = check_name(name)
        line, seconds, wrong = estimate_plan(recipe)
        limit_checks.check_start(recipe)
        problem = problem or wrong
    except ValueError as error:
        problem = problem or str(error).removeprefix("the recipe: ")
    if problem or recipe is None:
        st.warning(escape_markdown(problem))
        return Plan(name, None, problem, line, seconds=seconds)
    return Plan(name, recipe, "", line, contrasts(recipe), seconds=seconds)


def adapt_model(said: dict[str, Any], begun: Recipe) -> dict[str, Any]:
    """Adapts the model to another objective than the controls begin with; the page says what of it."""
    kind = said["objective"]["kind"]
    if kind == begun.objective.kind:
        return said
    model, told = suit_model(kind, begun.data.kind, said["model"])
    if told:
        told_of = " and ".join(told)
        st.info(
            escape_markdown(f"For the objective {as_option(kind)}, of the model {told_of}, whatever its controls say.")
        )
    return said | {"model": model}


def apply(text: str, task: str, files: Mapping[str, str]) -> None:
    """Makes the controls begin with what is written, where it can start. No text leads to a file that was not brought
    here."""
    recipe = parse_recipe(text, "the text")
    limit_checks.check_start(recipe)
    table = recipe.data.table
    for option in (each.name for each in fields(table) if each.name in FILES and getattr(table, each.name)):
        path = next((path for path, name in files.items() if name == getattr(table, option)), None)
        if path is None:
            raise ValueError(
                f"data.{recipe.data.kind}.{option} must be a file that was brought to this page, got "
                f"{getattr(table, option)!r}; choose the task own-data for that."
            )
        recipe = replace(recipe, data=replace(recipe.data, table=replace(table, **{option: path})))
    find_record(RecipeMemory).begin(task, recipe)


def places(preset: Recipe) -> dict[str, str]:
    """The files that a person's own data lies in, and what they are called on the page."""
    paths = (getattr(preset.data.table, option, "") for option in FILES)
    return {path: path.rpartition("/")[2] for path in paths if isinstance(path, str) and path}


def without_paths(said: dict[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """Without where the files lie on the server."""

    def replace_path(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: replace_path(each) for key, each in value.items()}
        return files.get(value, value) if isinstance(value, str) else value

    found: dict[str, Any] = replace_path(said)
    return found


def show_changes(task: str, recipe: Recipe | None, preset: Recipe) -> None:
    """Shows what differs from the preset, with the way back."""
    differs = [] if recipe is None else list_changes(recipe, preset)
    if differs:
        more = len(differs) - NAMED
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            named = ", ".join(differs[:NAMED]) + (f" and {more} more" if more > 0 else "")
            st.caption(f"changed: {escape_markdown(named)}", width="content")
            begin = find_record(RecipeMemory).begin
            st.button("Reset to preset", key="as it was", on_click=begin, args=(task, None), type="tertiary")


@st.cache_resource
def sizing_cache() -> Sizing:
    return Sizing()


def estimate_plan(recipe: Recipe) -> tuple[str, float | None, str]:
    """The line of what would be trained, its seconds, None where they are not known, and the sentence that it would
    end with, "" where none."""
    size = known_size(recipe)
    with st.container():
        fetched = isinstance(recipe.data.table, Hub)  # a link shall fetch nothing
        if size is None and not fetched and (sizing_cache().begin(recipe) or sizing_cache().busy):
            wait()
    if size is not None and size.problem:
        return *describe_plan(recipe, False), size.problem
    known = size is not None and size.vocab_size > 0
    if size is not None and known:
        recipe = replace(recipe, model=replace(recipe.model, vocab_size=size.vocab_size))
    return *describe_plan(recipe, known), ""


@st.fragment(run_every=0.5)
def wait() -> None:
    """Until what is tried in the background is known."""
    if not sizing_cache().busy:
        st.rerun()


def describe_plan(recipe: Recipe, exactly: bool) -> tuple[str, float | None]:
    model, found = recipe.model, estimate(recipe)
    heads, layers = model.attention.heads, str(model.layers)
    kind = "encoder" if model.attention.mask == "full" else "decoder"
    if model.encoder is not None:
        kind, layers = "encoder-decoder", f"{model.encoder.layers} + {model.layers}"
    said = [
        f"{kind}, {layers} block{'' if layers == '1' else 's'}, {heads} head{'' if heads == 1 else 's'}, "
        f"{model.d_model} wide",
        f"{'' if exactly else 'about '}{found.parameters:,} parameters",
        f"{count_words(recipe.schedule.steps, 'step')} of {count_words(recipe.batch.size, 'row')}",
        f"about {max(1, round(found.memory_bytes / MIB)):,} MiB",
    ]
    return " · ".join(said), found.seconds
