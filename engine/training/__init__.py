"""Training: `train(recipe, folder)` yields Steps, and the run directory tells everyone else.

A recipe (recipe/) says what: from which data (sources/), asked what (objectives/, whose examples are made by examples/,
and of those that learn from preferences by policy/), and with what to begin (base/). loop.py does it, with trainer.py
for the updates and learner.py for what they learn from; run/ is all that is written down, by which a person also steers
it, probe/ what is looked at meanwhile, and measures/ say how good the model is at the end. launch/ starts it as a
process of its own, cluster/ on several devices and machines.
"""

from engine.training.base.base import read_transfer
from engine.training.base.new_head import model_of_base
from engine.training.loop import train
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import RecipeError, parse_recipe, read_recipe, write_recipe
from engine.training.run.control import one_step, pause, resume, set_rate, set_weight, stop
from engine.training.run.failures import Diverged, TrainingFailed
from engine.training.run.folder import RunFolder
from engine.training.run.journal import Step
from engine.training.run.status import Status, read_status

__all__ = [
    "Diverged",
    "Recipe",
    "RecipeError",
    "RunFolder",
    "Status",
    "TrainingFailed",
    "Step",
    "model_of_base",
    "one_step",
    "parse_recipe",
    "pause",
    "read_recipe",
    "read_status",
    "read_transfer",
    "resume",
    "set_weight",
    "set_rate",
    "stop",
    "train",
    "write_recipe",
]
