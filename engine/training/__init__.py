"""Training: `train(recipe, folder)` yields Steps, and the run directory tells everyone else.

A recipe (recipe.py, read by recipe_file.py) says what: from which data (sources/), asked what (objectives/). loop.py
does it, with trainer.py for the updates and journal.py for what is written down; measures/ say how good the model is at
the end; control.py is how a person steers a run that is under way.
"""

from engine.training.base import read_transfer
from engine.training.control import one_step, pause, resume, set_rate, set_weight, stop
from engine.training.failures import Diverged, TrainingFailed
from engine.training.folder import RunFolder
from engine.training.journal import Step
from engine.training.loop import train
from engine.training.new_head import model_of_base
from engine.training.recipe import Recipe
from engine.training.recipe_file import RecipeError, parse_recipe, read_recipe, write_recipe
from engine.training.status import Status, read_status

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
