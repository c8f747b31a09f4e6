"""How a text is written: the row of settings of the page Generate, and what a link may say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Literal

import streamlit as st

from engine.checkpoints import Checkpoint
from pages.controls.generate.tabs import RULES as TAB_RULES
from pages.controls.share.links import CONTROLS, RUN, Rule, as_text, number, one_of, whole_number
from views.generate.session import METHODS, MOST, Settings

KEPT = "how it is written"  # in the session state, from one visit of the page to the next
LABELS = {"sample": "sample", "greedy": "greedy", "contrastive": "contrastive"}
USUAL: dict[str, Any] = asdict(Settings())
MOST_SEED = 999_999_999  # as `seed` of pages/controls/subject.py reads it
Slider = tuple[str, tuple[float, float, float], str]  # label; ends and step; what it does
SLIDERS: dict[str, Slider] = {
    "temperature": (
        "temperature", (*CONTROLS["temperature"], 0.05), "Divides the logits before the softmax. 0 is greedy.",
    ),
    "top_k": ("top-k", (*CONTROLS["top_k"], 1), "Keeps the k most probable tokens; 0 keeps all."),
    "top_p": ("top-p", (*CONTROLS["top_p"], 0.05), "Keeps the fewest tokens that together have this share."),
    "min_p": ("min-p", (0.0, 1.0, 0.01), "Keeps tokens at least so probable, as a share of the most probable one."),
    "typical_p": (
        "typical", (0.05, 1.0, 0.05), "Keeps those whose surprise is nearest to the entropy, up to this share.",
    ),
    "repetition_penalty": (
        "repetition", (0.5, 2.0, 0.05),
        "Divides the positive logits of tokens that were read already, and multiplies the negative ones. 1 is none.",
    ),
    "penalty_alpha": (
        "degeneration", (0.05, 1.0, 0.05),
        "How much a candidate loses for being like what was read: (1 − α) confidence − α likeness.",
    ),
    "candidates": ("candidates", (2, 20, 1), "How many of the most probable tokens are read and compared."),
}  # fmt: skip
USED = {
    "sample": ("temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty"),
    "greedy": ("repetition_penalty",),
    "contrastive": ("penalty_alpha", "candidates", "repetition_penalty"),
}
FIRST_OF = {"sample": "temperature", "greedy": "", "contrastive": "candidates"}  # what stands in the row itself
RULES: dict[str, Rule] = {
    **{name: RUN[name] for name in ("picture", "given", *CONTROLS) if name in RUN and name != "attention"},
    **{name: number(low, high) for name, (_, (low, high, _), _) in SLIDERS.items() if name not in CONTROLS},
    "method": one_of(METHODS),
    "most": whole_number(1, MOST),
    "stop_at": lambda text: "" if len(text) <= 200 else "at most 200 characters",
}
RULES |= TAB_RULES
CONTROLLED = (*SLIDERS, "method", "most", "stop_at", "seed")


def settings(checkpoint: Checkpoint, tab: str) -> Settings:
    """How a text is written, on every tab; the tab that writes has the controls: three, and the rest behind "Sampling".

    What a method does not use is not there, and for a model that writes nothing there is no row.
    """
    if not checkpoint.config.generates:
        return Settings()
    state = st.session_state
    begin()
    reads_text = checkpoint.tokenizer is not None
    if tab == "write":
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="writing"):
            usual = METHODS.index(USUAL["method"])
            st.selectbox("method", METHODS, usual, key="method", bind="query-params", width=130)
            if first := FIRST_OF[state.method]:
                slider(first)
            st.number_input("maximum tokens", 1, MOST, USUAL["most"], key="most", bind="query-params", width=140)
            with st.popover("Sampling", key="sampling", help="Which tokens are drawn from, and where the text ends."):
                further(reads_text)
            if changed := changes(reads_text):
                st.caption(" · ".join(changed))
    said = {name: value_of(name) for name in USUAL}
    state[KEPT] = said
    return Settings(**said) if reads_text else Settings(**said | {"stop_at": ""})


def further(reads_text: bool) -> None:
    """Draws what seldom changes."""
    method = st.session_state.method
    for name in USED[method]:
        if name != FIRST_OF[method]:
            slider(name)
    if reads_text:
        stop_string()
    if method == "sample":
        st.number_input("seed", 0, MOST_SEED, key="seed", bind="query-params")


def stop_string(width: Literal["stretch"] | int = "stretch") -> None:
    help = "The text ends where it comes up. Several with | between them; \\n is the end of a line."
    st.text_input("stop string", key="stop_at", bind="query-params", width=width, help=help)


def changes(reads_text: bool) -> list[str]:
    """What stands behind "Sampling" and is not as usual, in words."""
    state, method = st.session_state, st.session_state.method
    names = [name for name in USED[method] if name != FIRST_OF[method]]
    found = [f"{SLIDERS[name][0]} {state[name]:g}" for name in names if state[name] != USUAL[name]]
    if reads_text and state.stop_at:
        found.append(f"stops at “{as_text(state.stop_at)}”")
    return [*found, *([f"seed {state.seed}"] if method == "sample" and state.seed else [])]


def value_of(name: str) -> Any:
    """Value of a setting, drawn on this tab or not."""
    state = st.session_state
    if name in state:
        return state[name]
    kept, said = state.get(KEPT, {}), st.query_params.get(name)
    return kept.get(name, USUAL[name]) if said is None else type(USUAL[name])(said)


def begin() -> None:
    """Values that the row opens on: what the address says, what it stood at when the page was left, or what is usual.
    Of what the address says nothing is set: Streamlit takes that over, but where a browser comes back to a server that
    was started anew, what is set here would count more."""
    state = st.session_state
    kept = state.get(KEPT, {})
    stays = kept and "method" in state  # a page that is left takes its controls along
    for name, value in {**USUAL, **kept}.items():
        here = name in st.query_params or (stays and name in state)
        if not here:  # or Streamlit writes the address anew, with texts as they were when the page was opened
            state[name] = value  # not what a control of that name said on another page


def slider(name: str, width: int = 220) -> None:
    label, (low, high, step), help = SLIDERS[name]
    kind: Callable[[float], float] = int if isinstance(USUAL[name], int) else float
    ends = (kind(low), kind(high), kind(USUAL[name]))
    st.slider(label, *ends, step=kind(step), key=name, bind="query-params", width=width, help=help)
