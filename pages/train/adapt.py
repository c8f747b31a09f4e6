"""Adapt: take any checkpoint further, watch it change, compare it with what it was, and carry it away."""

import streamlit as st

from pages.controls.share.links import honour_link
from pages.controls.train.adapt_plan import choose_way, plan_adaptation, recording_of, steer_weight
from pages.controls.train.before_after import before_after
from pages.controls.train.laboratory import draw_laboratory, training_session
from pages.controls.train.preferences import draw_preferences
from pages.controls.train.session import ADAPTED

MENU = {"title": "Adapt a model", "address": "adapt", "place": 2}

honour_link({})
session, way = training_session(ADAPTED), choose_way()
if way == "Preferences":
    draw_preferences(session)
else:
    plan = plan_adaptation(way)
    if run := st.query_params.get("run", ""):
        steer_weight(session, run)
    recorded = recording_of(ADAPTED, plan)
    draw_laboratory(session, plan, recorded)
    if run or recorded:
        before_after(session, run)
