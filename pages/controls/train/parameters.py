"""What a link can hold of the pages Train and Adapt: what is learned, from what data, and the run that is shown."""

from __future__ import annotations

from engine.runtime import library
from engine.training.launch.search import list_searches
from engine.training.objectives import find_objective
from engine.training.recipe.link import LONGEST, unpack_recipe
from engine.training.run.runs import runs
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Choice, Hideable, Text, choice
from pages.controls.train.presets import OWN, presets
from pages.controls.train.run_table import ORDERS
from pages.controls.train.session import ADAPTED, PREFERRED
from pages.controls.train.user_data import find_file

FIRST, FIRST_TO_ADAPT = "reverse", "sentiment"  # tasks that a visitor meets: what the recorded runs have learned
WAYS = ("Fine-tune", "LoRA", "Preferences")
STAGES = ("Rank", "Reward", "Policy")
SHIPPED, MINE = "shipped", "mine"


def title_policies() -> dict[str, str]:
    """The recipes by which a policy learns from preferences, with titles, in the order of their objectives."""
    made = presets(PREFERRED.parent).values()
    kinds = {one.name: find_objective(one.recipe.objective.kind) for one in made}
    order = sorted(kinds, key=lambda name: (kinds[name].place, name))
    free = {one.name for one in made if not one.recipe.preference.beta}
    titles = {name: kinds[name].name.upper() + (", no penalty" if name in free else "") for name in order}
    return {name: title for name, title in titles.items() if kinds[name].moves_policy}


def recipe_rule(text: str) -> str:
    try:
        if text:
            unpack_recipe(text)
    except ValueError as error:
        return f"what a link can say of one: {str(error).removesuffix('.')}"
    return ""


def data_rule(text: str) -> str:
    return "" if not text or find_file(text) else "a file that this server keeps: upload this link's data here"


def base_rule(text: str) -> str:
    return "" if library.knows(text) else "a model that is here"


def search_rule(text: str) -> str:
    return "" if not text or text in list_searches(runs()) else "a search whose runs are here"


POLICIES = title_policies()
SHARED = (
    Text("run", "", READABLE),
    Text("recipe", "", LONGEST, rule=recipe_rule, carried=True),
    Text("data", "", READABLE, rule=data_rule),
    Text("held_out_data", "", READABLE, rule=data_rule),
    Text("search", "", READABLE, rule=search_rule, label="search"),
    Choice("runs", next(iter(ORDERS)), ORDERS, label="sorted by"),
)
TRAIN = PageState(
    "train",
    choice("task", FIRST, [*presets(), OWN], label="task"),
    *SHARED,
    Hideable("task row", hidden_as="task, seed, name"),
    Hideable("recipe open", hidden_as="every option"),
    Hideable("own data", hidden_as="your data"),
)
ADAPT = PageState(
    "adapt", choice("way", WAYS[0], WAYS, label="way"), choice("stage", STAGES[0], STAGES, label="step"),
    choice("adapt", FIRST_TO_ADAPT, [*presets(ADAPTED.parent), OWN], label="learn from"),
    Text("base", "", READABLE, rule=base_rule, older=("start",), label="base",
         help="Models that are here. Others are opened on the page Open a model."),
    Choice("learner", next(iter(POLICIES)), POLICIES, label="objective"),
    choice("pairs", SHIPPED, (SHIPPED, MINE), label="pairs"),
    choice("judge", "", (), label="reward", help="A rule, or a reward model of the step Reward."), *SHARED,
)  # fmt: skip
