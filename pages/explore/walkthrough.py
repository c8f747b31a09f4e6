"""The walkthrough: one text or picture through one transformer, from what it reads to what it says."""

from dataclasses import replace

import streamlit as st

from engine.checkpoints import Checkpoint
from engine.generation.sampling import Sampling
from engine.inputs.readers import SPAN, kind
from engine.runtime import library
from pages.controls.model_input.conversation import is_conversation
from pages.controls.model_input.model_input import Subject, field_value, is_heard, look, pixels, reading, seed
from pages.controls.model_input.notice import notice
from pages.controls.model_input.parameters import OUTPUT_TEMPERATURE, TOP_K, TOP_P
from pages.controls.run_page import PicturePage, state_of
from pages.controls.share.export import Export
from pages.controls.state.hidden import is_hidden
from pages.controls.state.page_state import Here
from pages.controls.state.session import event_value
from views.core.component import view
from views.core.lanes import lanes, measure_heads
from views.core.run_context import Run
from views.walkthrough.outcome import first_row, outcome_of
from views.walkthrough.questions import WALKTHROUGH, WalkthroughContext
from views.walkthrough.walkthrough import walkthrough

MENU = {"title": "Walkthrough", "address": "walkthrough", "place": 1, "opens": True}

PICTURE = "walkthrough"
OUTPUT = "Divides the logits before the last softmax only: no attention changes. 0 is greedy."
STATE = state_of(
    PICTURE,
    replace(OUTPUT_TEMPERATURE, label="output temperature", help=OUTPUT),
    replace(TOP_K, help=""),
    replace(TOP_P, help=""),
)
SAMPLING = ("temperature", "top_k", "top_p")  # its parameters, as Sampling has its fields
picture = view("walkthrough", events=("append", "again"))


def continued_field(checkpoint: Checkpoint) -> str:
    """Name of the field that the model's own words are appended to."""
    return {"translation": "target", "infill": "span"}.get(kind(checkpoint), "text")


def is_locked(checkpoint: Checkpoint) -> bool:
    """True of a conversation, and where a link hid the text or the part that the model writes: nothing is appended."""
    return is_conversation(checkpoint, field_value) or is_hidden("text", continued_field(checkpoint))


def append() -> None:
    """Put the drawn token behind the text, as the text it stands for; a second click on the same picture is void."""
    checkpoint = library.checkpoint(field_value("model"))
    field = continued_field(checkpoint)
    if is_locked(checkpoint):
        return
    match event_value(PICTURE, "append"):
        case {"id": int(token), "length": int(length)}:
            if length != len(lanes(checkpoint, reading(checkpoint))[-1].pieces):
                return
        case _:
            return
    text, tokenizer = field_value(field), checkpoint.tokenizer
    if tokenizer is None:
        STATE.choose(field, f"{text} {token}")
        return
    mark = SPAN if field == "span" else ""
    before = tokenizer.encode(mark + text, special=field == "text").ids
    whole = tokenizer.decode([*before, token], special=False)
    if tokenizer.encode(mark + whole, special=field == "text").ids == (*before, token):
        STATE.choose(field, whole)
    elif token in tokenizer.encode(tokenizer.decode([token])).ids:
        STATE.choose(field, text + tokenizer.decode([token]))
    else:
        st.toast("That token is only part of a character and cannot be added to the text; draw another one.")


def again() -> None:
    st.query_params["seed"] = str(seed() + 1)


class Walkthrough(PicturePage):
    title, state, registry = "Walkthrough", STATE, WALKTHROUGH
    linked = ("attention", *SAMPLING, "what if")
    hears = "stages"

    def draw_controls(self, here: Here) -> None:
        super().draw_controls(here)
        if is_heard(here):
            here.leave_out(*SAMPLING)
            return
        for name, width in zip(SAMPLING, (155, 88, 88), strict=True):
            here.slider(name, width=width)

    def extend(self, here: Here, subject: Subject, run: Run) -> WalkthroughContext:
        """The run with what its head gives under the temperatures and cuts that are set."""
        sampling = Sampling(*(here[key] for key in SAMPLING))
        text, second = field_value("text"), field_value("second")
        said = outcome_of(run.checkpoint, run.trace, subject.reading, sampling, text=text, second=second, seed=seed())
        return WalkthroughContext(**vars(run), outcome=said, sampling=sampling)

    def payload(self, here: Here, subject: Subject, run: Run, export: Export) -> bytes:
        assert isinstance(run, WalkthroughContext)
        shown = subject.reading
        return walkthrough(
            run.trace,
            run.lanes,
            name=subject.name,
            outcome=run.outcome,
            scores=measure_heads(run.trace, run.lanes),
            picture=shown.picture,
            original=shown.original,
            notes={
                "notice": notice(subject, run),
                "tour": True,
                "locked": is_locked(run.checkpoint),
                "full": len(run.lanes[-1].pieces) >= subject.limit,
                "look": {"layer": 0, "head": 0, **look()},
                "row0": first_row(run.checkpoint, shown, run.outcome, pixels(run.checkpoint)),
                "attention_temperature": here["attention"],
                "take": export.header,
                "sampling": {key: here[key] for key in SAMPLING},
            },
        )

    def mount(self, payload: bytes) -> None:
        picture(payload, key=PICTURE, on={"append": append, "again": again})


Walkthrough().show()
