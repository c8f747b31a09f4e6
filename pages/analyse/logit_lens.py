"""Logit lens: what the model would say if it stopped before a block, and lenses that know what later layers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import streamlit as st

from engine.analysis.lenses import PLACES, STEPS, TEXTS, LensKind
from engine.analysis.logit_lens import check_lens
from engine.plurals import count_words
from pages.controls.run_page import run_page, state_of
from pages.controls.state.parameter import choice
from views.core.run_context import Run
from views.logit_lens.charts import CHARTS
from views.logit_lens.questions import LENS

MENU = {"title": "Logit lens", "address": "logit_lens", "place": 3, "opens": True}


def tell(run: Run, chosen: Mapping[str, Any]) -> None:
    """Says what the chosen lens is made of."""
    texts = count_words(TEXTS[chosen["lens"]], "picture" if run.trace.pictures else "text")
    if chosen["lens"] == "tuned":
        st.caption(
            f"Each layer first goes through an affine map of its own, learned in {STEPS} steps on {texts} of the "
            "shipped data so that it says what the model says in the end (Belrose et al. 2023)."
        )
    elif chosen["lens"] == "Jacobian":
        st.caption(
            f"Each layer is first multiplied by the mean Jacobian of the last stream by it, over {texts} of the "
            f"shipped data at {PLACES} positions each: what later layers make of it on average. Nothing is learned."
        )


run_page(
    "Logit lens", state_of("logit_lens", choice("lens", "logit", get_args(LensKind), label="lens", hidden_as="lens")),
    LENS, charts=CHARTS, linked=("attention", "lens", "what if"), tell=tell,
    check=lambda run: check_lens(run.model.config),
)  # fmt: skip
