"""In the prompt: a task learned from the rows above, beside the same rows trained into the weights."""

from functools import lru_cache, partial

import altair as alt
import pandas as pd
import streamlit as st

from engine.course.in_prompt import Row, Shot, fine_tune, shots
from engine.generation.few_shot import table_of
from engine.runtime import library
from pages.controls.learn.fields import choose_view, read_field
from pages.controls.learn.predict import choose, is_found, show_code
from pages.controls.learn.words import numeral
from pages.controls.learn.words import translate as _
from views.charts.show import show_altair
from views.charts.template import colors
from views.core.theme import Shade

MODEL = "in-context"
TABLES = {
    "labels": "paris: lor\ncow: mip\nrome: lor\ndog: mip\nberlin: lor\nhorse: mip\nlondon: lor",
    "ending": "bake: bakezo\ncarry: carryzo\ncart: cartzo\nhen: henzo\negg: eggzo\ngiant: giantzo",
    "backwards": "bake: ekab\ncarry: yrrac\ncart: trac\nhen: neh\negg: gge\ngiant: tnaig",
}
LEAST_ROWS, MOST_ROWS, LONGEST = 3, 9, 16  # rows; characters of a word
STEPS, RATE, KNOWN = 60, 1e-3, 0.01  # KNOWN: nats, below which the rows are known by heart
QUESTION = "in prompt question"

shots_of = lru_cache(maxsize=32)(shots)
tune = lru_cache(maxsize=16)(fine_tune)


def experiment() -> bool:
    names = {"labels": _("two labels"), "ending": _("an ending"), "backwards": _("backwards")}
    task = st.segmented_control(
        _("task"), list(names), default="labels", key="in-prompt-task", required=True, persist_state="session",
        format_func=names.__getitem__,
    )  # fmt: skip
    label = _("rows, “word: answer”; the last one is asked")
    *rows, (query, answer) = read_field(f"in-prompt-rows {task}", label, TABLES[str(task)], read_rows, lines=True)
    found = shots_of(MODEL, tuple(rows), query, answer)
    if not ask(found, query, answer):
        return False
    views = {"prompt": _("read in the prompt"), "training": _("trained into the weights")}
    if choose_view("in-prompt-view", views) == "prompt":
        draw_shots(found, answer)
        show_code(shots, key="in prompt code", name=MODEL, rows=rows, query=query, answer=answer)
    else:
        draw_training(found, tuple(rows), query, answer)
    return is_found(QUESTION)


def read_rows(said: str) -> tuple[Row, ...]:
    """Raises ValueError, with a sentence."""
    rows = table_of(said).rows
    if not LEAST_ROWS <= len(rows) <= MOST_ROWS:
        sentence = _("Expected {least} to {most} rows, and here are {count}; add or remove some.")
        raise ValueError(sentence.format(least=LEAST_ROWS, most=MOST_ROWS, count=len(rows)))
    if long := next((one for row in rows for one in row if len(one) > LONGEST), None):
        sentence = _("Expected words of at most {most} characters, and “{word}” has {count}; shorten it.")
        raise ValueError(sentence.format(most=LONGEST, word=long[:40], count=len(long)))
    return rows


def ask(found: list[Shot], query: str, answer: str) -> bool:
    right = [shot.k for shot in found if shot.written == answer]
    options = [*(str(shot.k) for shot in found), _("it never does")]

    def why(said: int) -> str:
        if said < len(found) or not right:
            shot = found[min(said, len(found) - 1)]
            if shot.written == answer and shot.k > right[0]:
                sentence = _("Behind {k} it is right too, but it already is behind {first}.")
                return sentence.format(k=shot.k, first=right[0])
            return _("Behind {k} it writes “{written}”.").format(k=shot.k, written=shot.written)
        return _("Behind {k} it writes it.").format(k=right[0])

    question = _(
        "The model reads the first rows, then “{query}:”. How many rows must stand there until it writes “{answer}”?"
    ).format(query=query, answer=answer)
    at = right[0] if right else len(found)
    return choose(question, options, at, key=QUESTION, why=why)


# --- read in the prompt ---


def draw_shots(found: list[Shot], answer: str) -> None:
    columns = [_("rows above"), _("it writes"), _("right?"), _("p of the answer")]
    rows = [
        (shot.k, shot.written, _("yes") if shot.written == answer else _("no"), numeral(shot.probability, ".3f"))
        for shot in found
    ]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")
    names = {0: _("zero-shot"), 1: _("one-shot")}
    named = ", ".join(f"{count}: {name}" for count, name in names.items())
    said = _("{named}, more: few-shot. No weight changes: what the model has learned, it has learned to read.")
    st.caption(said.format(named=named))


# --- trained into the weights ---


def draw_training(found: list[Shot], rows: tuple[Row, ...], query: str, answer: str) -> None:
    with st.spinner(_("{steps} steps").format(steps=STEPS)):
        made = tune(MODEL, rows, query, answer, STEPS, RATE)
    left, right = st.columns(2)
    title = _("p of the answer")
    with left:
        read = pd.DataFrame({"at": [shot.k for shot in found], "p": [shot.probability for shot in found]})
        show_altair(partial(draw_curve, read, _("rows in the prompt"), title, "attention"), key="in prompt read")
    with right:
        steps = pd.DataFrame({"at": range(len(made.probabilities)), "p": made.probabilities})
        show_altair(partial(draw_curve, steps, _("steps of training"), title, "key"), key="in prompt trained")
    known = next((step for step, loss in enumerate(made.losses) if loss < KNOWN), None)
    count = sum(weight.numel() for weight in library.checkpoint(MODEL).model.parameters())
    if known is None:
        said = _("After {steps} steps the rows are not known by heart yet.").format(steps=STEPS)
    else:
        said = _("After {known} steps the rows are known by heart: a loss below {least:g} nats.")
        said = said.format(known=known, least=KNOWN)
    about = _(
        "Asked with no row above, the right answer has p = **{tuned:.3f}** in the end (it was {first:.3f}); with all "
        "rows in the prompt and the weights as they were, **{read:.3f}**. Training changed {count} weights, the "
        "prompt none."
    )
    last, all_read = made.probabilities[-1], found[-1].probability
    st.markdown(
        said + " " + about.format(tuned=last, first=found[0].probability, read=all_read, count=numeral(count, ","))
    )
    show_code(
        fine_tune, key="in prompt code training", name=MODEL, rows=list(rows), query=query, answer=answer, steps=STEPS,
        rate=RATE,
    )  # fmt: skip


def draw_curve(table: pd.DataFrame, along: str, title: str, role: str, shade: Shade) -> alt.Chart:
    return (
        alt.Chart(table)
        .mark_line(color=colors(shade)[role], point=len(table) <= MOST_ROWS)
        .encode(
            alt.X("at:Q", title=along, axis=alt.Axis(tickMinStep=1, format="d")),
            alt.Y("p:Q", title=title, scale=alt.Scale(domain=[0, 1])), tooltip=["at", "p"],
        )
        .properties(height=200)
    )  # fmt: skip
