"""Logit lens: what the model would say if it stopped before a block."""

from engine.analysis.logit_lens import check_lens
from pages.controls.run_page import run_page, state_of
from views.logit_lens.charts import CHARTS
from views.logit_lens.questions import LENS

MENU = {"title": "Logit lens", "address": "logit_lens", "place": 3, "opens": True}

run_page("Logit lens", state_of("logit_lens"), LENS, charts=CHARTS, check=lambda run: check_lens(run.model.config))
