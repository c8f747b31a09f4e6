"""The tab Beam: how to search, and the examples that come with Loupe."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from pages.controls.generate.tabs import TabContent
from pages.controls.state.page_state import Here
from views.core.markdown import Markdown, escape_markdown
from views.generate.beam_search import EXAMPLES, BeamOptions
from views.generate.generate import grid
from views.generate.session import GenerationContext

STOPS = {
    "no": "when the best that goes on, scored at its length, is worse than the worst of the finished",
    "yes": "as soon as as many texts as beams are finished",
    "never": "as “no”, but scored at the greatest length where the penalty favours long texts: only this is exact",
}


def draw_beam(here: Here, writing: GenerationContext) -> TabContent:
    asked = BeamOptions.from_checkpoint(writing.checkpoint)
    here.set_defaults(beam_beams=asked.beams, beam_penalty=asked.penalty, beam_early=asked.early)
    pictures = grid(writing.checkpoint) is not None
    stop_at = "" if pictures else writing.settings.stop_at
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        beams = here.number("beam_beams", width=112)
        penalty = here.number("beam_penalty", width=110)
        best = here.number("beam_best", width=112)
        early = here.segments("beam_early", help="  \n".join(f"**{name}**: {about}." for name, about in STOPS.items()))
        tokens = here.number("beam_tokens", width=150)
        if not pictures:
            here.text("stop_at", width=150)
    if pictures:
        st.caption("All finished pictures have one length, so the length penalty changes no order.")
    st.caption("Where greedy misses the best text: " + " · ".join(link(one) for one in EXAMPLES))
    return TabContent(header={"beam": vars(BeamOptions(beams, penalty, min(best, beams), early, tokens, stop_at))})


def link(example: dict[str, str | int]) -> Markdown:
    """Markdown that opens the example."""
    said = {name: example[name] for name in ("model", "text", "stop_at") if example.get(name)}
    said |= {"view": "beam", "beam_tokens": example["tokens"]}
    if example["beams"] != BeamOptions().beams:
        said["beam_beams"] = example["beams"]
    return Markdown(f"[{escape_markdown(example['model'])}](/generate?{escape_markdown(urlencode(said))})")
