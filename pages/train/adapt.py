"""Adapt: take any checkpoint further, watch it change, compare it with what it was, and carry it away."""

from pages.controls.share.links import honour_link
from pages.controls.train.adapt_plan import choose_way, plan_adaptation, recording_of, steer_weight
from pages.controls.train.before_after import before_after
from pages.controls.train.laboratory import draw_laboratory, training_session
from pages.controls.train.parameters import ADAPT
from pages.controls.train.preferences import draw_preferences, list_judges
from pages.controls.train.session import ADAPTED

MENU = {"title": "Adapt a model", "address": "adapt", "place": 2}

session, here = training_session(ADAPTED), ADAPT.open()
here.adjust("judge", options=list_judges(session))
honour_link(here.rules)
if (way := choose_way(here)) == "Preferences":
    draw_preferences(here, session)
else:
    plan = plan_adaptation(here, way)
    if here["run"]:
        steer_weight(session, here["run"])
    recorded = recording_of(ADAPTED, plan)
    draw_laboratory(here, session, plan, recorded)
    if here["run"] or recorded:
        before_after(session, here["run"])
