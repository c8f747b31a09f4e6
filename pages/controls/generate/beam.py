"""The tab Beam: how to search, and the examples that come with Loupe."""

from __future__ import annotations

from typing import LiteralString
from urllib.parse import urlencode

import streamlit as st

from pages.controls.generate.settings import stop_string
from pages.controls.generate.tabs import Shown, keep, restore
from views.core.markdown import Markdown, escape_markdown
from views.generate.beam_search import EXAMPLES, MOST, PENALTIES, Wanted
from views.generate.generate import grid
from views.generate.session import Writing

EARLY = {
    "no": "when the best that goes on, scored at its length, is worse than the worst of the finished",
    "yes": "as soon as as many texts as beams are finished",
    "never": "as “no”, but scored at the greatest length where the penalty favours long texts: only this is exact",
}
NAMES = ("beam_beams", "beam_penalty", "beam_best", "beam_early", "beam_tokens")


def draw_beam(writing: Writing) -> Shown:
    asked = Wanted.from_checkpoint(writing.checkpoint)
    restore(*NAMES, beam_beams=asked.beams, beam_penalty=asked.penalty, beam_early=asked.early)
    state = st.session_state
    pictures = grid(writing.checkpoint) is not None
    stop_at = "" if pictures else writing.settings.stop_at
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        number("beams", 1, MOST["beams"], "beam_beams", "How many hypotheses go on at each step.")
        st.number_input(
            "length penalty",
            *PENALTIES,
            step=0.1,
            key="beam_penalty",
            bind="query-params",
            width=110,
            help="The sum of log-probabilities is divided by the length to this power: 0 favours short texts, greater "
            "values long ones.",
        )
        number(
            "n best",
            1,
            MOST["beams"],
            "beam_best",
            "How many of the finished texts are shown, at most one for each beam.",
        )
        st.segmented_control(
            "early stopping",
            list(EARLY),
            required=True,
            key="beam_early",
            bind="query-params",
            help="  \n".join(f"**{name}**: {about}." for name, about in EARLY.items()),
        )
        about = "What is unfinished then counts as finished."
        number("maximum tokens", 1, MOST["tokens"], "beam_tokens", about, width=150)
        if not pictures:
            stop_string(width=150)
    if pictures:
        st.caption("All finished pictures have one length, so the length penalty changes no order.")
    keep(*NAMES)
    st.caption("Where greedy misses the best text: " + " · ".join(link(one) for one in EXAMPLES))
    best = min(state.beam_best, state.beam_beams)
    wanted = Wanted(state.beam_beams, state.beam_penalty, best, state.beam_early, state.beam_tokens, stop_at)
    return Shown(header={"beam": vars(wanted)})


def number(label: LiteralString, low: int, high: int, key: str, help: LiteralString, width: int = 112) -> None:
    st.number_input(label, low, high, key=key, bind="query-params", width=width, help=help)


def link(example: dict[str, str | int]) -> Markdown:
    """Markdown that opens the example."""
    said = {name: example[name] for name in ("model", "text", "stop_at") if example.get(name)}
    said |= {"view": "beam", "beam_tokens": example["tokens"]}
    if example["beams"] != Wanted().beams:
        said["beam_beams"] = example["beams"]
    return Markdown(f"[{escape_markdown(example['model'])}](/generate?{escape_markdown(urlencode(said))})")
