"""What makes it fire: the texts in which a head, or a neuron of an MLP, is strongest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.analysis.strongest import LENGTH, TEXTS
from engine.plurals import count_words
from pages.controls.run_page import run_page, state_of
from views.core.markdown import escape_markdown
from views.core.run_context import Run, RunContext
from views.why.fires import FIRES, FIRES_CHARTS, pieces_of, places

MENU = {"title": "What makes it fire", "address": "fires", "place": 4, "opens": True}

WALKTHROUGH = "pages/explore/walkthrough.py"
LINKED, SHOWN = 3, 120  # places that are links, characters of each


def tell(run: Run, chosen: Mapping[str, Any]) -> None:
    """Says what was read, and leads to the strongest texts."""
    assert isinstance(run, RunContext)
    count = count_words(TEXTS, "picture" if run.trace.pictures else "text")
    st.caption(
        f"Over {count} of the shipped data, of at most {LENGTH} tokens: a head is as strong as what it writes is long, "
        "a neuron as its activation. The strongest token of each text stands in one column."
    )
    if run.trace.pictures or run.checkpoint.tokenizer is None:
        return
    tokenizer = run.checkpoint.tokenizer
    found = places(run, chosen["side"], chosen["layer"], "head", chosen["head"])
    for reading, pos, value in found[:LINKED]:
        piece = pieces_of(run, reading, chosen["side"])[pos]
        text = tokenizer.decode(list(reading.read.ids), special=False)  # type: ignore[union-attr]
        st.page_link(
            WALKTHROUGH, icon=":material/search:", query_params={"model": run.model_name, "text": text.strip()},
            label=escape_markdown(f"“{piece}”, {value:.2f}: {text.strip()[:SHOWN]}"),
        )  # fmt: skip


run_page("What makes it fire", state_of("fires"), FIRES, charts=FIRES_CHARTS, tell=tell)
