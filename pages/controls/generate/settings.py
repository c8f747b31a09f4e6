"""How a text is written: the row of settings of the page Generate, and what a link may say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, Literal

import streamlit as st

from engine.checkpoints import Checkpoint
from engine.checkpoints.generation_defaults import CONSTRAINTS, NOTHING
from engine.plurals import count_words
from pages.controls.generate.tabs import RULES as TAB_RULES
from pages.controls.share.links import CONTROLS, RUN, Rule, one_of, span, whole_number
from views.core.markdown import Markdown, escape_markdown
from views.generate.session import METHODS, MOST, Settings, usual_settings

KEPT = "how it is written"  # in the session state, from one visit of the page to the next
OPENED = "how its checkpoint asks to be written"  # there too
LABELS = {"sample": "sample", "greedy": "greedy", "contrastive": "contrastive"}
USUAL: dict[str, Any] = asdict(Settings())
MOST_SEED = 999_999_999  # as `seed` of pages/controls/model_input/model_input.py reads it
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
    **{name: span(low, high) for name, (_, (low, high, _), _) in SLIDERS.items() if name not in CONTROLS},
    "method": one_of(METHODS),
    "most": whole_number(1, MOST),
    "stop_at": lambda text: "" if len(text) <= 200 else "at most 200 characters",
}
RULES |= TAB_RULES
SEED = whole_number(0, MOST_SEED)  # of the seed a link is told elsewhere
CONTROLLED = (*SLIDERS, "method", "most", "stop_at", "seed")


def settings(checkpoint: Checkpoint, tab: str) -> Settings:
    """Settings with which a text is written, on every tab; the tab that writes has the controls: three, and the rest
    behind "Sampling".

    What a method does not use is not there, and for a model that writes nothing there is no row.
    """
    if not checkpoint.config.generates:
        return Settings()
    state = st.session_state
    usual = asdict(opens_on(checkpoint))
    begin(usual)
    reads_text = checkpoint.tokenizer is not None
    if tab == "write":
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="writing"):
            at = METHODS.index(usual["method"])
            st.selectbox("method", METHODS, at, key="method", bind="query-params", width=130)
            if first := FIRST_OF[state.method]:
                slider(first, usual)
            st.number_input("maximum tokens", 1, MOST, usual["most"], key="most", bind="query-params", width=140)
            with st.popover("Sampling", key="sampling", help="Which tokens are drawn from, and where the text ends."):
                further(reads_text, usual)
            if changed := changes(reads_text):
                st.caption(" · ".join(changed))
        if asked := asked_sentence(checkpoint):
            st.caption(asked)
    said = {name: value_of(name, usual) for name in USUAL}
    state[KEPT], state[OPENED] = said, usual
    return Settings(**said) if reads_text else Settings(**said | {"stop_at": ""})


def opens_on(checkpoint: Checkpoint) -> Settings:
    """Settings that the checkpoint asks for, as far as the controls go."""
    usual = usual_settings(checkpoint)
    ends = {name: SLIDERS[name][1] for name in USED["sample"]}
    return replace(usual, **{name: min(max(getattr(usual, name), low), high) for name, (low, high, _) in ends.items()})


def asked_sentence(checkpoint: Checkpoint) -> Markdown:
    """Sentences on what the checkpoint forces and forbids, for which there is no control, and on which of its requests
    are not obeyed here."""
    asked, parts = checkpoint.writing, list[str]()
    if obeyed := [name for name in CONSTRAINTS if getattr(asked, name) != getattr(NOTHING, name)]:
        parts.append(f"This checkpoint asks for {', '.join(obeyed)}, and that is obeyed.")
    if (asked.num_beams or 1) > 1:
        parts.append(f"It asks for {asked.num_beams} beams: the tab Beam opens on them.")
    if asked.max_length is not None and asked.max_new_tokens is None:
        length = f"{count_words(asked.max_length, 'token')}, prompt included"
        parts.append(f"Its max_length, {length}, is not obeyed: maximum tokens is.")
    shown = asdict(opens_on(checkpoint))
    beyond = {name: value for name, value in asdict(usual_settings(checkpoint)).items() if value != shown[name]}
    parts += [f"Its {name}, {value:g}, lies beyond the control." for name, value in beyond.items()]
    return escape_markdown(" ".join(parts))


def further(reads_text: bool, usual: Mapping[str, Any]) -> None:
    """Draws what seldom changes."""
    method = st.session_state.method
    for name in USED[method]:
        if name != FIRST_OF[method]:
            slider(name, usual)
    if reads_text:
        stop_string()
    if method == "sample":
        st.number_input("seed", 0, MOST_SEED, key="seed", bind="query-params")


def stop_string(width: Literal["stretch"] | int = "stretch") -> None:
    help = "The text ends where it comes up. Several with | between them; \\n is the end of a line."
    st.text_input("stop string", key="stop_at", bind="query-params", width=width, help=help)


def changes(reads_text: bool) -> list[Markdown]:
    """Settings behind "Sampling" that differ from the defaults, in words."""
    state, method = st.session_state, st.session_state.method
    names = [name for name in USED[method] if name != FIRST_OF[method]]
    found = [Markdown(f"{SLIDERS[name][0]} {state[name]:g}") for name in names if state[name] != USUAL[name]]
    if reads_text and state.stop_at:
        found.append(Markdown(f"stops at “{escape_markdown(state.stop_at)}”"))
    return [*found, *([Markdown(f"seed {state.seed:d}")] if method == "sample" and state.seed else [])]


def value_of(name: str, usual: Mapping[str, Any]) -> Any:
    """Value of a setting, drawn on this tab or not."""
    state, rule = st.session_state, SEED if name == "seed" else RULES[name]
    if name in state:  # Streamlit takes over what the address has, of a text whatever its length
        return usual[name] if isinstance(state[name], str) and rule(state[name]) else state[name]
    kept, said = state.get(KEPT, {}), st.query_params.get(name)
    return kept.get(name, usual[name]) if said is None or rule(said) else type(USUAL[name])(said)


def begin(usual: Mapping[str, Any]) -> None:
    """Values that the row opens on: what the address says, what it stood at when the page was left, or what is usual.
    Of what the address says nothing is set: Streamlit takes that over, but where a browser comes back to a server that
    was started anew, what is set here would count more. Where another checkpoint asks for other settings, those that
    stood as the one before asked stand as this one does."""
    state = st.session_state
    kept, before = state.get(KEPT, {}), state.get(OPENED, usual)
    stays = kept and "method" in state  # a page that is left takes its controls along
    moved = {name for name, value in usual.items() if before[name] != value and kept.get(name) == before[name]}
    kept = {name: value for name, value in kept.items() if name not in moved}
    for name, value in {**usual, **kept}.items():
        here = name not in moved and (name in st.query_params or (stays and name in state))
        if not here:  # or Streamlit writes the address anew, with texts as they were when the page was opened
            state[name] = value  # not what a control of that name said on another page


def slider(name: str, usual: Mapping[str, Any], width: int = 220) -> None:
    label, (low, high, step), help = SLIDERS[name]
    kind: Callable[[float], float] = int if isinstance(USUAL[name], int) else float
    ends = (kind(low), kind(high), kind(usual[name]))
    st.slider(label, *ends, step=kind(step), key=name, bind="query-params", width=width, help=help)
