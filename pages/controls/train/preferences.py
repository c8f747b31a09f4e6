"""Adapting by preferences: rank answers, learn a reward from them, and move a policy towards it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.checkpoints.run_steps import name_step
from engine.data.kinds.preferences import Preferences
from engine.plurals import count_words
from engine.runtime import library
from engine.training import Recipe
from engine.training.base.base import tokenizer_of
from engine.training.objectives import find_objective, objectives
from engine.training.policy.judge import open_reward_model
from engine.training.policy.pairs import format_jsonl
from engine.training.policy.rule import rules
from engine.training.recipe.preference import Preference
from engine.training.run.folder import RunFolder
from engine.training.run.runs import runs
from pages.controls.bar import bar
from pages.controls.state.page_state import Here
from pages.controls.train.adapt_plan import (
    choose_base,
    describe,
    kind_of_run,
    name_of,
    on_base,
    recording_of,
    steer_weight,
)
from pages.controls.train.before_after import before_after
from pages.controls.train.laboratory import draw_laboratory
from pages.controls.train.parameters import MINE, SHIPPED
from pages.controls.train.policies import draw_policy
from pages.controls.train.presets import presets
from pages.controls.train.rank import FEWEST, draw_rank, read_ranking
from pages.controls.train.recipe_plan import Plan, Task, draw_recipe
from pages.controls.train.rewards import draw_reward
from pages.controls.train.run_state import newest_weights
from pages.controls.train.session import PREFERRED, Session
from pages.controls.train.user_data import store_file
from views.core.markdown import escape_markdown

FOLDER = PREFERRED.parent
RECORDED_REWARD = "recorded reward model"


def draw_preferences(here: Here, session: Session) -> None:
    """Draws the step that is chosen, with the laboratory and what came of the run that is shown."""
    run = here["run"]
    shown = objectives().get(kind_of_run(run))
    stages = {"Policy": shown is not None and shown.moves_policy, "Reward": shown is not None and shown.makes_judge}
    here.set_usual(
        stage=next((name for name, fits in stages.items() if fits), "Rank"),
        pairs=MINE if len(read_ranking().all_pairs) >= FEWEST else SHIPPED,  # who has made some learns from them
    )
    stage = here.segments("stage", on_change=here.state.choose, args=("run", ""), label_visibility="collapsed")
    if stage == "Rank":
        published = presets(FOLDER)[here["learner"]].recipe
        base = choose_base(here, published)
        bar(base)
        draw_rank(base, Path(published.data.expect(Preferences).path))
        return
    name, plan = ("reward", plan_reward(here)) if stage == "Reward" else plan_policy(here)
    if run:
        steer_weight(session, run)
    recorded = recording_of(PREFERRED / name, plan)
    session.recorded = recorded or session.recorded
    draw_laboratory(here, session, plan, recorded)
    if run or recorded:
        (draw_reward if stage == "Reward" else draw_policy)(session, run)
        before_after(session, run)


# --- Plans ---


def plan_reward(here: Here) -> Plan:
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="task row")
    published = presets(FOLDER)["reward"].recipe
    with row:
        base = choose_base(here, published)
    return finish(here, published, base, row)


def plan_policy(here: Here) -> tuple[str, Plan]:
    """The name of the recipe, and what would be trained by it."""
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="task row")
    more = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="what learns")
    with row:
        name = here.menu("learner", width=160)
        published = presets(FOLDER)[name].recipe
        base = choose_base(here, published)

    def choose(recipe: Recipe) -> Recipe:
        with more:
            return replace(recipe, preference=choose_preference(here, recipe))

    return name, finish(here, published, base, row, choose, name)


def finish(
    here: Here,
    published: Recipe,
    base: str,
    row: DeltaGenerator,
    choose: Callable[[Recipe], Recipe] = lambda recipe: recipe,
    called: str = "reward",
) -> Plan:
    """The plan for these pairs and that base, once `choose` has drawn what else is to be chosen; what is wrong with
    them is said on the page."""
    name, about = f"{name_of(base)} {called}", st.container(key="about the task")
    try:
        with row:
            recipe = on_base(choose(with_pairs(here, published)), base)
        if find_objective(published.objective.kind).least_answers:
            check_judges(recipe)
    except (ValueError, OSError) as error:
        problem = str(error).removeprefix("recipe: ")
        st.warning(escape_markdown(problem))
        return Plan(name, None, problem, base=base)
    key = f"{called} on {base}, {recipe.data.expect(Preferences).path}, {recipe.preference}"
    return replace(draw_recipe(here, Task(key, recipe, name, describe), row, about), base=base)


def with_pairs(here: Here, recipe: Recipe) -> Recipe:
    """The recipe with the pairs that are chosen. Raises ValueError where there are too few."""
    mine = read_ranking().all_pairs
    if here.menu("pairs", width=130, help=f"{MINE}: the {count_words(len(mine), 'pair')} that you ranked.") == SHIPPED:
        return recipe
    if len(mine) < FEWEST:
        raise ValueError(f"pairs must be at least {FEWEST} to learn from, got {len(mine)}; rank or upload more.")
    file = store_file("my-pairs.jsonl", format_jsonl(mine).encode())  # as they are now, whatever is ranked later
    table = replace(recipe.data.expect(Preferences), path=str(file))
    return replace(recipe, data=replace(recipe.data, table=table))


def choose_preference(here: Here, recipe: Recipe) -> Preference:
    """Draws the controls of [preference] that the objective has, and returns their values."""
    objective, kind, usual = find_objective(recipe.objective.kind), recipe.objective.kind, recipe.preference
    beta = st.number_input("β", 0.0, 1.0, usual.beta, 0.01, format="%g", key=f"beta {kind} {usual.beta}", width=110,
        help=escape_markdown(objective.beta),
    )  # fmt: skip
    chosen, answers = usual.reward, usual.answers
    if objective.least_answers:
        here.set_defaults(judge=usual.reward)
        chosen = here.menu("judge", width=210)
        fitting = [n for n in (1, 2, 4, 8, 16) if recipe.batch.size % n == 0 and n >= objective.least_answers]
        answers = st.selectbox(
            "answers to a prompt",
            fitting,
            fitting.index(usual.answers),
            key=f"answers {kind}",
            width=130,
        )
    tokens = st.number_input("answer tokens", 1, 256, usual.answer_tokens, key=f"answer tokens {kind}", width=120)
    judges, named = here.name_options("judge", ())
    watched = {"": "nothing", **{judge: named(judge) for judge in judges}}
    watch = st.selectbox("also watch", list(watched), list(watched).index(usual.watch), watched.__getitem__,
        key=f"watch {kind}", width=190, help="A second score, shown but not trained on.",
    )  # fmt: skip
    return replace(usual, beta=beta, reward=chosen, answers=answers, answer_tokens=int(tokens), watch=watch)


def list_judges(session: Session) -> Mapping[str, str]:
    """The rules, the recorded reward model, and the reward models of this visitor's runs: names with titles."""
    found = {rule.name: rule.title for rule in rules().values()}
    recorded = newest_weights(RunFolder(PREFERRED / "reward"))
    if recorded is not None:
        found[library.offer(library.LoadOptions(recorded, title=RECORDED_REWARD))] = RECORDED_REWARD
    for run in runs():
        name = name_step(run.name)
        kind = objectives().get(kind_of_run(run.name))
        if kind is not None and kind.makes_judge and library.knows(name) and not session.locked(run.path):
            found[name] = name
    return found


def check_judges(recipe: Recipe) -> None:
    """Raises ValueError for a reward model that does not read the tokens of the base."""
    for name in filter(None, (recipe.preference.reward, recipe.preference.watch)):
        if name not in rules():
            check_judge(name, library.version(name), recipe.base)


@st.cache_data(max_entries=64, show_spinner="Opening the reward model …")
def check_judge(name: str, version: tuple[object, ...], base: str) -> None:
    open_reward_model(name, tokenizer_of(base))
