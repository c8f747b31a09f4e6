"""What the page about training adds to what the options of a recipe say of themselves (engine.model.option)."""

from __future__ import annotations

from dataclasses import Field
from typing import Any

from engine.data.kinds import data_kinds
from engine.data.kinds.preferences import Preferences
from engine.data.kinds.text import Text
from engine.data.own import Columns
from engine.model.option import Said
from engine.tokenizers import tokenizer_kinds
from engine.training import Recipe
from engine.training.launch.machine import Abilities, plan
from engine.training.objectives import find_objective, objectives
from engine.training.recipe.recipe import Machine
from server.settings import GIVEN
from views.core.markdown import Markdown, escape_markdown

ELSEWHERE = {  # said elsewhere on the page, or not at all
    "preference.beta",
    "preference.reward",
    "preference.watch",
    "preference.answers",
    "preference.answer_tokens",
    "machine.shard",  # the page starts one process
    *(() if GIVEN.ray_address else ("machine.share",)),
}
BROUGHT = (Text, Columns, Preferences)  # data of which the page asks in its own way,
BUT = ("held_out", "ended")  # but for these

SAID = {  # options as they are called in the recipe
    "gelu_tanh": "GELU (tanh)",
    "quick_gelu": "quick GELU", "gelu": "GELU", "relu": "ReLU", "relu2": "ReLU²", "silu": "SiLU", "alibi": "ALiBi",
    "adamw": "AdamW", "sgd": "SGD", "muon": "Muon", "rms": "RMS",
    "yarn": "YaRN", "longrope": "LongRoPE", "llama3": "Llama 3", "parallel_one_norm": "parallel, one norm",
    "cuda": "CUDA", "cpu": "CPU",
    **{one.name: one.title for one in tokenizer_kinds().values()},
    **{one.name: one.title for one in objectives().values() if one.title},
}  # fmt: skip
THREADS = (
    "On a CPU. 0 gives each of the {most} trainings that may run at a time as many, whether or not others run: "
    "{share} on this machine. More can serve a wide model with a long context, slow down a little one, and make the "
    "pages wait. Weights are the same bit for bit with the same number only."
).format(most=GIVEN.max_trainings, share=plan(Machine("cpu"), Abilities.of_this_machine(), GIVEN.max_trainings).threads)

HELP = {"machine.threads": THREADS}  # which count on this machine


def title(option: Field[Any]) -> Markdown:
    return escape_markdown(option.metadata.get("title") or option.name.replace("_", " "))


def format_value(value: Any) -> str:
    """Formats a value of a choice."""
    return "none" if value == "none" else SAID.get(str(value), str(value).replace("_", " "))


def help_of(path: str, option: Field[Any]) -> str:
    return HELP.get(path) or option.metadata.get("help", "")


def is_offered(path: str, option: Field[Any], said: Said, recipe: Recipe) -> bool:
    """Tells whether there is such a control, given the others of its table."""
    section, name = path.split(".")[:2]
    brought = section == "data" and issubclass(data_kinds().get(name, object), BROUGHT) and option.name not in BUT
    if path in ELSEWHERE or brought or option.metadata.get("decided"):
        return False
    if section == "preference":
        return name in find_objective(recipe.objective.kind).option_names
    when = option.metadata.get("when")
    return when is None or bool(when(said, recipe))
