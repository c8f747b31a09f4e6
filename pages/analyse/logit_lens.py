"""Logit lens: what the model would say if it stopped before a block, and lenses that know what later layers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import streamlit as st

from engine.analysis.lenses import (
    HELD_OUT,
    PLACES,
    STEPS,
    TEXTS,
    LensKind,
    compare_published,
    learning_of,
    measure_lens,
)
from engine.analysis.logit_lens import check_lens
from engine.plurals import count_words
from pages.controls.run_page import RunPage, state_of
from pages.controls.share.links import address_now
from pages.controls.state.parameter import choice
from views.core.markdown import escape_markdown
from views.core.run_context import Run, RunContext
from views.logit_lens.charts import CHARTS
from views.logit_lens.questions import LENS

MENU = {"title": "Logit lens", "address": "logit_lens", "place": 3, "opens": True}

WHY = "pages/analyse/why_token.py"


class LogitLens(RunPage):
    title, registry, charts = "Logit lens", LENS, CHARTS
    state = state_of("logit_lens", choice("lens", "logit", get_args(LensKind), label="lens", hidden_as="lens"))
    linked, about = ("attention", "lens", "what if"), "depth"

    def check(self, run: Run) -> None:
        check_lens(run.model.config)

    def draw_findings(self, run: Run, chosen: Mapping[str, Any]) -> None:
        """Says what a click does and what the lens is made of; leads to what wrote the logit of the place."""
        assert isinstance(run, RunContext)
        row, id = chosen["row"], chosen["candidate"]
        label = f"Which parts of the model wrote the logit of “{run.name_candidates([id])[0]}” at “{run.rows[row]}”?"
        query = address_now(row=str(row), candidate=str(id))
        st.page_link(WHY, label=escape_markdown(label), icon=":material/search:", query_params=query)
        st.caption("Click a cell of a map to look at its position and its most likely candidate.")
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
        elif chosen["lens"] == "published":
            base = learning_of(run.checkpoint, "published").results.base or "a model without a name"
            cosine = compare_published(run.checkpoint)
            each = "shown once that is" if cosine is None else ", ".join(f"{one:.2f}" for one in cosine.tolist())
            st.caption(
                f"Each layer first goes through an affine map that others learned for {escape_markdown(base)} (Belrose "
                f"et al. 2023). Its cosine with the map of the tuned lens learned here, block by block: "
                f"{escape_markdown(each)}."
            )
        else:
            return  # nothing was made, and nobody has waited for more than one run
        kinds: tuple[LensKind, ...] = (chosen["lens"], "logit")
        found = {kind: measure_lens(run.checkpoint, kind).tolist() for kind in kinds}
        told = [f"the {kind} lens {', '.join(f'{one:.2f}' for one in each)}" for kind, each in found.items()]
        unseen = count_words(HELD_OUT, "picture" if run.trace.pictures else "text")
        st.caption(
            f"On {unseen} that no lens is made of, in nats from what the model says in the end, block by block: "
            f"{escape_markdown('; '.join(told))}."
        )


LogitLens().show()
