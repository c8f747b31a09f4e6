"""Train: choose a task, press play, watch a model learn it, and go back to the step at which something formed."""

from pages.controls.share.links import honour_link
from pages.controls.train.laboratory import draw_laboratory, training_session
from pages.controls.train.parameters import FIRST, TRAIN
from pages.controls.train.recipe_plan import plan_training
from pages.controls.train.session import RECORDED

MENU = {"title": "Train a model", "address": "train", "place": 1}

honour_link(TRAIN.rules)
here = TRAIN.open()
session, plan = training_session(RECORDED), plan_training(here)
draw_laboratory(here, session, plan, RECORDED if here["task"] == FIRST else None)  # it learned that one
