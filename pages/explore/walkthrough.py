"""The walkthrough: one text or picture through one transformer, from what it reads to what it says."""

import streamlit as st

from engine.edits import AttentionTemperature
from engine.generation.sampling import Sampling
from engine.inputs.readers import SPAN, kind
from engine.runtime import library
from pages.controls.model_input.model_input import field_value, look, notice, pixels, reading, seed, subject
from pages.controls.share.links import honour_link
from pages.controls.share.run_export import fields_of, run_export
from pages.controls.what_if.experiment import event_value, what_if
from views.core.component import courier, view
from views.core.lanes import lanes, measure_heads
from views.core.run_context import RUN
from views.walkthrough.outcome import first_row, outcome_of
from views.walkthrough.questions import WALKTHROUGH, WalkthroughContext
from views.walkthrough.walkthrough import walkthrough
from views.what_if.questions import WHAT_IF

MENU = {"title": "Walkthrough", "address": "walkthrough", "place": 1, "opens": True}

PICTURE = "walkthrough"
picture = view("walkthrough", events=("append", "again"))


def append() -> None:
    """Put the drawn token behind the text, as the text it stands for; a second click on the same picture is void."""
    checkpoint = library.checkpoint(st.session_state.model)
    field = {"translation": "target", "infill": "span"}.get(kind(checkpoint), "text")
    match event_value(PICTURE, "append"):
        case {"id": int(token), "length": int(length)}:
            if length != len(lanes(checkpoint, reading(checkpoint))[-1].pieces):
                return
        case _:
            return
    text, tokenizer = field_value(field), checkpoint.tokenizer
    if tokenizer is None:
        st.session_state[field] = f"{text} {token}"
        return
    mark = SPAN if field == "span" else ""
    before = tokenizer.encode(mark + text, special=field == "text").ids
    whole = tokenizer.decode([*before, token], special=False)
    if tokenizer.encode(mark + whole, special=field == "text").ids == (*before, token):
        st.session_state[field] = whole
    elif token in tokenizer.encode(tokenizer.decode([token])).ids:
        st.session_state[field] = text + tokenizer.decode([token])
    else:
        st.toast("That token is only part of a character and cannot stand in a text; draw another one.")


def again() -> None:
    st.query_params["seed"] = str(seed() + 1)


def temperatures() -> None:
    st.slider(
        "attention temperature", 0.1, 4.0, 1.0, 0.05, key="attention", bind="query-params", width=165,
        help="Divides the scores inside every head before its softmax: low makes attention sharp, high makes it even. "
        "It changes everything after it. 1 is the model as it was trained.",
    )  # fmt: skip
    st.slider(
        "output temperature", 0.0, 3.0, 1.0, 0.05, key="temperature", bind="query-params", width=155,
        help="Divides the logits before the last softmax only: no attention changes. 0 is greedy.",
    )  # fmt: skip
    st.slider("top-k", 0, 100, 0, 1, key="top_k", bind="query-params", width=88)
    st.slider("top-p", 0.05, 1.0, 1.0, 0.05, key="top_p", bind="query-params", width=88)


honour_link()
looked_at = subject(temperatures)
checkpoint, shown = looked_at.checkpoint, looked_at.reading
temperature = st.session_state.attention
edits = [] if temperature == 1 else [AttentionTemperature(temperature)]
conducted = what_if(looked_at, edits)
trace = conducted.trace
sampling = Sampling(st.session_state.temperature, st.session_state.top_k, st.session_state.top_p)
stacks = lanes(checkpoint, shown)
text, second = field_value("text"), field_value("second")
said = outcome_of(checkpoint, trace, shown, sampling, text=text, second=second, seed=seed())
run = WalkthroughContext(
    looked_at.name, checkpoint, trace, stacks, conducted.before, lambda: fields_of(looked_at), said, sampling
)
CONTROLS = ("attention", "temperature", "top_k", "top_p", "what if")
export = run_export("Walkthrough", PICTURE, looked_at, run, CONTROLS)
drawn = walkthrough(
    trace,
    stacks,
    name=looked_at.name,
    outcome=said,
    scores=measure_heads(trace, stacks),
    picture=shown.picture,
    original=shown.original,
    notes={
        "notice": notice(looked_at),
        "full": len(stacks[-1].pieces) >= looked_at.limit,
        "look": {"layer": 0, "head": 0, **look()},
        "row0": first_row(checkpoint, shown, said, pixels(checkpoint)),
        "attention_temperature": temperature,
        "take": export.header,
        "sampling": {k: st.session_state[k] for k in ("temperature", "top_k", "top_p")},
    },
)
picture(drawn, key=PICTURE, on={"append": append, "again": again})
page = export.answers(drawn, (RUN, run), (WALKTHROUGH, run)).with_registry(WHAT_IF, conducted)
courier("courier", page.answer)
