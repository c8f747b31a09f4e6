"""Steering: the mean difference of two sets of prompts as an edit with a strength, and what it does to a corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from engine.analysis.interventions.sites import SITES
from engine.analysis.steering import (
    LENGTH,
    PLACES,
    STRENGTHS,
    SteeringVector,
    check_steering,
    pack_vector,
    reading_of,
    unpack_vector,
)
from engine.generation.generate import generate
from engine.plurals import count_words
from pages.controls.corpus import PARAMETERS, choose_corpus
from pages.controls.interventions.leads import add_edit, compare_runs
from pages.controls.model_input.model_input import Subject
from pages.controls.places import choose_place
from pages.controls.run_page import PageRun, RunPage, state_of
from pages.controls.share.links import address_now
from pages.controls.share.measure import measure_steps, take_steps
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import Here
from pages.controls.state.parameter import Choice, Number, Text
from pages.controls.state.session import find_record, widget_value
from pages.controls.what_if.experiment_link import to_link
from views.core.markdown import Markdown, code_markdown, escape_markdown
from views.core.run_context import Run, RunContext
from views.steering.charts import CHARTS
from views.steering.questions import STEERING, SteeringContext, effect_table

MENU = {"title": "Steering", "address": "steering", "place": 7, "opens": True}

TOWARD = """She was a little girl, and she loved her dog.
The girl said that she was tired.
A girl named Mia put on her boots.
Ella took her ball, and she ran home.
Once there was a girl. She had a cat.
Zoe was sad. She had lost her hat.
Mom gave the girl her coat.
She looked for her friend, but she was not there."""
AWAY = """He was a little boy, and he loved his dog.
The boy said that he was tired.
A boy named Sam put on his boots.
Leo took his ball, and he ran home.
Once there was a boy. He had a cat.
Theo was sad. He had lost his hat.
Dad gave the boy his coat.
He looked for his friend, but he was not there."""
WORDS = {"candidate": "she", "against": "he"}  # of these prompts

LONGEST = max(map(abs, STRENGTHS))
OWN = (
    Text("toward", TOWARD, READABLE, label="toward, one prompt a line", hidden_as="the prompts"),
    Text(
        "away", AWAY, READABLE, label="away from, one prompt a line",
        help="Left empty, the vector is the mean of the first set alone: of prompts that hold demonstrations of a "
        "task, a function vector.",
    ),
    Choice("part", "stream", {one: SITES[one].title for one in PLACES}, label="place"),
    Choice("read", "mean", {"last": "last token", "mean": "mean over tokens"}, label="read at"),
    Number("strength", 1.0, -LONGEST, LONGEST, step=0.25, label="strength", help="Times the vector, at every token."),
)  # fmt: skip
WRITTEN = 20  # tokens
OF_FILE = ("steering_effect", "steering_costs")  # questions that a vector without its prompts' values answers


@dataclass
class BroughtVectors:
    """Vectors that files brought, by the model that they fit, with the file's name; why the last one was refused."""

    found: dict[str, tuple[str, SteeringVector]] = field(default_factory=dict)
    refused: str = ""
    turn: int = 0


def bring_vector(run: Run) -> tuple[str, SteeringVector] | None:
    """Draws the box for a vector's file; returns the one that is steered with, if it is a file's."""
    brought = find_record(BroughtVectors)
    key = f"vector file {brought.turn}"

    def take() -> None:
        if (file := widget_value(key)) is not None:
            brought.turn, brought.refused = brought.turn + 1, ""
            try:
                brought.found[run.model_name] = file.name, unpack_vector(file.getvalue(), run.checkpoint)
            except ValueError as error:
                brought.refused = str(error)

    with st.popover("Vector of a file", key="bring vector"):
        st.file_uploader(
            "a file that was downloaded here (.safetensors)", "safetensors", key=key, on_change=take, max_upload_size=5
        )
    if brought.refused:
        st.warning(escape_markdown(brought.refused))
    if (found := brought.found.get(run.model_name)) is not None:
        st.button("Prompts again", key="no vector", type="tertiary", on_click=lambda: brought.found.clear())
    return found


def read_lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def draw_prompts(here: Here, run: Run) -> dict[str, Any]:
    """Draws what the vector is made of; returns fields of a SteeringContext."""
    with st.container(horizontal=True, gap="small"):
        toward, away = (read_lines(here.area(name, height=180)) for name in ("toward", "away"))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        sides = list(run.choices("side", {}))
        side = sides[0]
        if len(sides) > 1:
            here.set_defaults(side=side)
            side = choose_place(here, "side", "side", run, sides, {})
        layers = list(run.choices("layer", {"side": side}))
        here.set_defaults(layer=len(layers) // 2)
        layer = choose_place(here, "layer", "layer", run, layers, {"side": side})
        site, read = here.segments("part"), here.segments("read")
    own = (toward, away) == (read_lines(TOWARD), read_lines(AWAY))
    made = {"toward": toward, "away": away, "layer": layer, "stack": side or None, "site": site, "read": read}
    return made | {"words": WORDS if own else None}


def tell_vector(run: SteeringContext) -> None:
    """Says what the vector is, how long, and in which block both sets separate best."""
    vector, many = run.vector, count_words(len(run.vector.toward), "prompt")
    away = f" less that of {count_words(len(vector.away), 'prompt')}" if vector.away else ""
    of = escape_markdown(f"“{run.named}”: mean of {many}{away}" if run.named else f"Mean of {many}{away}")
    st.markdown(
        f"{of}, read at {code_markdown(vector.hook)} ({'last token' if vector.read == 'last' else 'all tokens'}): "
        f"a vector of length **{vector.length:.3f}**."
    )
    if run.brought:
        return
    apart = run.readings.separation
    if not bool(apart.isfinite().any()):
        st.caption("With two prompts in each set, each can be held out, and the blocks be set beside each other.")
        return
    best = int(apart.nan_to_num(-1e9).argmax())
    st.markdown(
        f"Each line held out, {'both sets' if vector.away else 'the set and 0'} lie **{float(apart[run.layer]):.2f}** "
        f"standard deviations apart in this block, and most, {float(apart[best]):.2f}, in block {best + 1}."
    )


def tell_effect(run: SteeringContext, candidate: int, against: int | None) -> None:
    """The numbers of the charts, a row for each strength."""
    table = effect_table(run, candidate, against).columns
    columns = {"strength": "strength", "mean": table["metric"][0], "low": "95 % from", "high": "to", "loss": "loss",
               "kl": "KL"}  # fmt: skip
    st.dataframe({said: table[name] for name, said in columns.items()}, hide_index=True, key="steering table")
    which = escape_markdown(run.corpus.name if run.corpus else "shipped texts")
    st.caption(
        f"Of {which}, each of at most {count_words(LENGTH, 'token')}: the mean at the last position (of a model with "
        "masks at the masked token, of an encoder-decoder what it writes first) with its 95 % interval by bootstrap; "
        "the loss of the texts in nats a token, and KL from the plain run in nats a position."
    )


def write_on(run: SteeringContext, strength: float) -> str:
    """Writes on after the page's text, greedily."""

    def write() -> str:
        edits = [*run.trace.edits, *([run.vector.edit(strength)] if strength else [])]
        ids = [step.id for step in generate(run.checkpoint, run.trace.encoding, WRITTEN, greedy=True, edits=edits)]
        tokenizer = run.checkpoint.tokenizer
        return " ".join(map(str, ids)) if tokenizer is None else tokenizer.decode(ids)

    return run.cached(("written", strength), write)


def tell_written(run: SteeringContext, strength: float) -> None:
    if not run.model.config.generates:
        return
    strengths = list(dict.fromkeys((-strength, 0.0, strength)))
    take_steps("written", (run.digest, strength), [partial(write_on, run, one) for one in strengths])
    st.markdown(f"**What it writes after this text, {count_words(WRITTEN, 'token')} of it, the likeliest each time**")
    for one in strengths:
        st.markdown(f"{one:g} times the vector: {escape_markdown(write_on(run, one))}")


def lead_on(run: SteeringContext, strength: float) -> None:
    """Links to the run of this text with the vector, and the vector's file."""
    vector = replace(run.vector, strength=strength)
    both = add_edit(run.trace.edits, vector.edit())
    with st.container(horizontal=True, vertical_alignment="center"):
        if both is not None and strength:
            edited = escape_markdown(urlencode(address_now(edits=to_link(both[1]))))
            compare = escape_markdown(urlencode(compare_runs(run, run.trace, vector.edit())))
            links = [f"[Attention](attention?{edited})", f"[Compare](compare?{compare})"]
            if run.model.config.generates:
                links.insert(0, f"[Generate](generate?{edited})")
            st.markdown(Markdown(f"Try it with strength {strength:g}: {' · '.join(links)}"), width="content")
        name = f"{run.checkpoint.name or 'model'} {vector.hook}.safetensors".replace("/", " ")
        pack = partial(pack_vector, vector, run.checkpoint)
        st.download_button(
            "Download the vector", pack, name, "application/octet-stream", key="download vector", on_click="ignore",
            help="One tensor under the name of its hook, with prompts, model and strength in its metadata. Bring it "
            "back here, or in What if as a Direction.",
        )  # fmt: skip


class Steering(RunPage):
    title, registry, charts = "Steering", STEERING, CHARTS
    state = state_of("steering", *OWN, *PARAMETERS)
    linked = ("attention", "what if", *(one.name for one in OWN), "layer", "side", "corpus", "text_column")
    about = "steering"
    strength = 1.0

    def extend(self, here: Here, subject: Subject, run: Run) -> Run:
        assert isinstance(run, RunContext)
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            corpus, column = choose_corpus(here)
            brought = bring_vector(run)
            self.strength = here.slider("strength", width=240)
        more: dict[str, Any] = {"corpus": corpus, "column": column}
        if brought is None:
            more |= draw_prompts(here, run)
        else:
            here.leave_out("toward", "away", "part", "read", "layer", "side")
            self.charts = {title: one for title, one in CHARTS.items() if one[0] in OF_FILE}
            more |= {"named": brought[0], "brought": brought[1]}
        return SteeringContext(**vars(run), **more)

    def check(self, run: Run) -> None:
        """Reads the prompts."""
        assert isinstance(run, SteeringContext)
        check_steering(run.checkpoint)
        if run.brought is None:
            work = reading_of(run.checkpoint, run.toward, run.away, run.site, run.read, run.stack)
            if work.steps:
                measure_steps("prompts", (run.model_name, run.toward, run.away, run.site, run.read), work.steps)
        assert run.vector is not None

    def draw_findings(self, run: Run, chosen: Mapping[str, Any]) -> None:
        assert isinstance(run, SteeringContext)
        tell_vector(run)
        lead_on(run, self.strength)
        tell_written(run, self.strength)

    def follow_chart(self, shown: PageRun, ask: str, chosen: Mapping[str, Any]) -> None:
        if ask == "steering_costs":
            assert isinstance(shown.run, SteeringContext)
            tell_effect(shown.run, chosen["candidate"], chosen["against"])


Steering().show()
