"""Logit lens: what the model would say if it stopped before a block, and lenses that know what later layers do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

import streamlit as st

from engine.analysis.lenses import (
    HELD_OUT,
    PLACES,
    STEPS,
    TEXTS,
    LensKind,
    compare_published,
    give_lens,
    learning_of,
    measure_lens,
)
from engine.analysis.logit_lens import check_lens
from engine.analysis.published_lens import fetch_lens
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.plurals import count_words
from pages.controls.run_page import Charts, PageRun, RunPage, state_of
from pages.controls.share.links import address_now
from pages.controls.state.parameter import choice
from pages.controls.visitor import on_this_machine
from views.core.markdown import Markdown, escape_markdown
from views.core.run_context import Run, RunContext
from views.logit_lens.charts import CHARTS
from views.logit_lens.questions import LENS

if TYPE_CHECKING:
    from engine.checkpoints.hub import Progress

MENU = {"title": "Logit lens", "address": "logit_lens", "place": 3, "opens": True}

WHY = "pages/analyse/why_token.py"


class LogitLens(RunPage):
    title, registry, charts = "Logit lens", LENS, CHARTS
    state = state_of("logit_lens", choice("lens", "logit", get_args(LensKind), label="lens", hidden_as="lens"))
    linked, about = ("attention", "lens", "what if"), "depth"

    def check(self, run: Run) -> None:
        check_lens(run.model.config)

    def draw_charts(self, shown: PageRun, charts: Charts) -> None:
        if shown.here["lens"] == "published" and on_this_machine():
            take_published(shown.run.checkpoint)
        super().draw_charts(shown, charts)

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
            st.caption(describe_published(run.checkpoint))
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


def describe_published(checkpoint: Checkpoint) -> Markdown:
    """Says what a published lens does, whence it is, and how near ours of its kind is."""
    lens, cosine = learning_of(checkpoint, "published").results, compare_published(checkpoint)
    whence = lens.base or "a model without a name"
    each = "shown once that is" if cosine is None else ", ".join(f"{one:.2f}" for one in cosine.tolist())
    if lens.kind == "tuned":
        does = f"Each layer first goes through an affine map that others learned for {whence} (Belrose et al. 2023)."
    else:
        texts = f" over {count_words(lens.texts, 'text')}" if lens.texts else ""
        does = (
            "Each layer is first multiplied by the mean Jacobian of the last stream, here and at later positions, by "
            f"it, which others made{texts}: {whence} (Gurnee et al. 2026)."
        )
        if lens.missing:
            places = ["the embedding" if layer == 0 else f"block {layer}" for layer in lens.missing]
            does += f" It has none after {', '.join(places)}, where the stream is read as it is."
    made = "the map of the tuned lens" if lens.kind == "tuned" else "the Jacobian lens"
    return escape_markdown(f"{does} Its cosine with {made} made here, layer by layer: {each}.")


def take_published(checkpoint: Checkpoint) -> None:
    """Draws the field for a lens of a hub, which is fetched and is the published one of this model from then on."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        named = st.text_input(
            "a lens of a hub", key="lens of hub", placeholder="hub:neuronpedia/jacobian-lens", width=420,
            help="A repository that has a tuned or a Jacobian lens of this model; behind a space the path of one.",
        )  # fmt: skip
        asked = st.button("Fetch", key="fetch lens", disabled=not named)
    if not asked:
        return
    progress = st.progress(0.0, "Asking the hub …")

    def report(step: Progress) -> None:
        progress.progress(step.done_bytes / max(1, step.total_bytes), escape_markdown(step.file))

    try:
        place = fetch_lens(named, checkpoint.name, budget.max_download, report)
        give_lens(checkpoint, place, named.strip())
    except (ValueError, OSError) as error:
        st.warning(escape_markdown(error))
    finally:
        progress.empty()


LogitLens().show()
