"""How a text is written: the row of settings of the page Generate."""

from __future__ import annotations

from dataclasses import asdict, replace

import streamlit as st

from engine.checkpoints import Checkpoint
from engine.plurals import count_words
from pages.controls.generate.parameters import SETTINGS, USUAL
from pages.controls.state.page_state import Here
from pages.controls.state.parameter import Number
from views.core.markdown import Markdown, escape_markdown
from views.generate.session import Settings, usual_settings

USED = {
    "sample": ("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty"),
    "greedy": ("repetition_penalty",),
    "contrastive": ("penalty_alpha", "candidates", "repetition_penalty"),
}
FIRST_OF = {"sample": "temperature", "greedy": "", "contrastive": "candidates"}  # what stands in the row itself
NUMBERS = {parameter.name: parameter for parameter in SETTINGS if isinstance(parameter, Number)}


def settings(here: Here, checkpoint: Checkpoint, tab: str) -> Settings:
    """Settings with which a text is written, on every tab; the tab that writes has the controls: three, and the rest
    behind "Sampling".

    What a method does not use is not there, and for a model that writes nothing there is no row.
    """
    if not checkpoint.config.generates:
        return Settings()
    here.set_defaults(**asdict(opens_on(checkpoint)))
    reads_text = checkpoint.tokenizer is not None
    if tab == "write":
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="writing"):
            method = here.menu("method", width=130)
            if first := FIRST_OF[method]:
                here.slider(first, width=220)
            here.number("most", width=140)
            with st.popover("Sampling", key="sampling", help="Which tokens are drawn from, and where the text ends."):
                further(here, method, reads_text)
            if changed := changes(here, method, reads_text):
                st.caption(" · ".join(changed))
        if asked := asked_sentence(checkpoint):
            st.caption(asked)
    found = Settings(**{name: here[name] for name in USUAL})
    return found if reads_text else replace(found, stop_at="")


def opens_on(checkpoint: Checkpoint) -> Settings:
    """Settings that the checkpoint asks for, as far as the controls go."""
    usual = usual_settings(checkpoint)
    asked = {name: (getattr(usual, name), NUMBERS[name]) for name in USED["sample"]}
    return replace(usual, **{name: min(max(value, ends.low), ends.high) for name, (value, ends) in asked.items()})


def asked_sentence(checkpoint: Checkpoint) -> Markdown:
    """Sentences on what the checkpoint forces and forbids, for which there is no control, and on which of its requests
    are not obeyed here."""
    asked, parts = checkpoint.writing, list[str]()
    if obeyed := asked.constraints.names:
        parts.append(f"This checkpoint asks for {', '.join(obeyed)}, and that is obeyed.")
    if (beams := asked.beams.num_beams or 1) > 1:
        parts.append(f"It asks for {count_words(beams, 'beam')}: the tab Beam opens on them.")
    if asked.end.max_length is not None and asked.end.max_new_tokens is None:
        length = f"{count_words(asked.end.max_length, 'token')}, prompt included"
        parts.append(f"Its max_length, {length}, is not obeyed: maximum tokens is.")
    shown = asdict(opens_on(checkpoint))
    beyond = {name: value for name, value in asdict(usual_settings(checkpoint)).items() if value != shown[name]}
    parts += [f"Its {name}, {value:g}, lies beyond the control." for name, value in beyond.items()]
    return escape_markdown(" ".join(parts))


def further(here: Here, method: str, reads_text: bool) -> None:
    """Draws what seldom changes."""
    for name in USED[method]:
        if name != FIRST_OF[method]:
            here.slider(name, width=220)
    if reads_text:
        here.text("stop_at")
    if method == "sample":
        here.number("seed")


def changes(here: Here, method: str, reads_text: bool) -> list[Markdown]:
    """Settings behind "Sampling" that differ from Loupe's defaults, in words."""
    names = [name for name in USED[method] if name != FIRST_OF[method]]
    changed = [name for name in names if here[name] != USUAL[name]]
    found = [Markdown(f"{escape_markdown(NUMBERS[name].label)} {here[name]:g}") for name in changed]
    if reads_text and here["stop_at"]:
        found.append(Markdown(f"stops at “{escape_markdown(here['stop_at'])}”"))
    return [*found, *([Markdown(f"seed {here['seed']:d}")] if method == "sample" and here["seed"] else [])]
