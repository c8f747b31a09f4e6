"""Why this head looks there: a score as the sum of what wrote the query and what wrote the key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.plurals import count_words
from pages.controls.run_page import RunPage, state_of
from pages.controls.state.parameter import Choice
from views.core.markdown import escape_markdown
from views.core.run_context import HeadOfRun, Run, RunContext
from views.why.charts import HEAD_CHARTS
from views.why.questions import HEAD, found_split, part_name

MENU = {"title": "Why this head", "address": "why_head", "place": 2, "opens": True}

BY = Choice(
    "by",
    "weights",
    {"weights": "by the weights", "run": "in this run"},
    label="reads of earlier heads",
    hidden_as="how earlier heads count",
)


TERMS = {
    "scores": "content with content is",
    "c2p": "content with position (the query with the key of the distance)",
    "p2c": "position with content (the query of the distance with the key)",
}


class WhyHead(RunPage):
    title, state, registry, charts = "Why this head", state_of("why_head", BY), HEAD, HEAD_CHARTS
    linked = ("attention", "by", "what if")

    def draw_findings(self, run: Run, chosen: Mapping[str, Any]) -> None:
        """The score of the pair, the two parts that count most, and what else decides the weight."""
        assert isinstance(run, RunContext)
        side, focus, layer, head, pos, key = (chosen[name] for name in ("side", "focus", "layer", "head", "pos", "key"))
        found = found_split(run, side, focus, layer, head, pos, key)
        own, source = run.lanes_of(chosen)
        asks, asked = (f"“{escape_markdown(piece)}”" for piece in (own.pieces[pos], source.pieces[key]))
        at = int(found.values.abs().argmax())
        left, right = divmod(at, found.values.shape[1])
        query, read = part_name(found.queries[left]), part_name(found.keys[right])
        largest = float(found.values[left, right])
        pairs = count_words(found.values.numel(), "pair")
        st.markdown(
            f"The score of {asks} for {asked} is **{found.score:.2f}**, the sum of {pairs}. The largest: what {query} "
            f"wrote at {asks} with what {read} wrote at {asked}, {largest:+.2f}."
        )
        if terms := found.terms:
            parts = ", ".join(f"{TERMS[name]} {value:+.2f}" for name, value in terms.items())
            st.markdown(f"Of the score, {parts}.")
        weight = float(run.pattern(HeadOfRun(side, focus, layer, head))[pos, key])
        positions = f"Positions add {found.bias:+.2f} to it. " if found.bias else ""
        hidden = "The mask hides this key, so the weight is 0 whatever the score."
        st.markdown(positions + (f"After the softmax the weight is {weight:.3f}." if found.seen else hidden))
        st.caption(
            "Norms are held still at the scale of this run (Elhage et al. 2021), so that the pairs add up to the score "
            "exactly; rotations of positions are in each pair."
        )
        st.caption(
            "The last chart shows how much this head reads of each earlier one. By the weights: the Frobenius norm of "
            "the product of their two circuits, divided by the product of the norms (Elhage et al. 2021). In this run: "
            "the length of what the earlier head added to this head's query, key or value, as a share of the lengths "
            "of what all parts added, averaged over the positions (lengths as in Kobayashi et al. 2020)."
        )


WhyHead().show()
