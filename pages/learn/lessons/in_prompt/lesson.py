"""In the prompt: a task learned from the rows above, beside the same rows trained into the weights."""

from functools import lru_cache, partial

import altair as alt
import pandas as pd
import streamlit as st
import torch

from engine.course.in_prompt import Row, Shot, fine_tune, shots
from engine.generation.few_shot import table_of
from engine.runtime import library
from pages.controls.figures import cover, matrix
from pages.controls.learn.fields import choose_view, other_input, read_field
from pages.controls.learn.predict import choose, is_answered, is_found, point, show_code
from pages.controls.words import join_sentences, numeral
from pages.controls.words import translate as _
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
ALIKE = 0.05  # apart at most, of probabilities that are about the same
QUESTION, GAIN, LEARNED = (f"in prompt {part}question" for part in ("", "gain ", "learned "))

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
    above = st.container()
    shown = ask(found, query, answer)
    with above:
        draw_written(found, answer, covered=not (shown and is_answered(QUESTION)))
    if not shown:
        return False
    views = {"prompt": _("read in the prompt"), "training": _("trained into the weights")}
    if choose_view("in-prompt-view", views) == "prompt":
        draw_shots(found, rows)
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
    return choose(question, options, at, key=QUESTION, why=why, again=other_input("in-prompt-task", list(TABLES)))


# --- read in the prompt ---


def draw_written(found: list[Shot], answer: str, covered: bool) -> None:
    """Draws what the model writes after no row, behind one, and so on."""
    columns = [_("rows above"), _("it writes"), _("right?")]
    rows = [
        (shot.k, "?", "?") if covered else (shot.k, shot.written, _("yes") if shot.written == answer else _("no"))
        for shot in found
    ]
    st.dataframe(pd.DataFrame(rows, columns=columns), hide_index=True, width="stretch")


def draw_shots(found: list[Shot], rows: list[Row]) -> None:
    above, names = st.container(), [_("no row"), *(f"{at}. {': '.join(row)}" for at, row in enumerate(rows, 1))]
    shares = torch.tensor([[shot.probability] for shot in found])
    ask_gain(shares[:, 0].tolist(), names)
    with above:
        matrix(
            shares if is_answered(GAIN) else cover(shares, slice(1, None)), rows=names, columns=["p"], digits=3,
            role="probability", key=f"{GAIN} picture", label=_("p of the answer, behind the rows up to this one"),
        )  # fmt: skip
    called = {0: _("zero-shot"), 1: _("one-shot")}
    named = ", ".join(f"{count}: {name}" for count, name in called.items())
    said = _("{named}, more: few-shot. No weight changes: what the model has learned, it has learned to read.")
    st.caption(said.format(named=named))


def ask_gain(shares: list[float], names: list[str]) -> None:
    gains = [after - before for before, after in zip(shares, shares[1:], strict=False)]
    best = 1 + max(range(len(gains)), key=gains.__getitem__)
    sentence = _("With “{row}” the p of the answer goes from {before:.3f} to {after:.3f}.")

    def why(said: tuple[int, int]) -> str:
        told = (at for at in dict.fromkeys((said[0], best)) if at)
        return join_sentences(*(sentence.format(row=names[at], before=shares[at - 1], after=shares[at]) for at in told))

    point(
        _("The row that is read last is named. Which of them raises the probability of the answer most? Click it."),
        (len(shares), 1),
        [(best, 0)],
        key=GAIN,
        name=lambda at: names[at[0]],
        why=why,
    )


# --- trained into the weights ---


def ask_learned(read: float, tuned: float) -> bool:
    """Asks where the answer is likelier, and tells whether that may be shown."""
    reason = _("It is {tuned:.3f} where they are trained into the weights, and {read:.3f} where they are read.")
    told = reason.format(tuned=tuned, read=read)
    options = [
        _("with all rows in the prompt"),
        _("with all rows trained into the weights, and none above"),
        _("about the same: at most {gap:g} apart").format(gap=ALIKE),
    ]
    answer = 2 if abs(tuned - read) <= ALIKE else int(tuned > read)
    choose(
        _("The curve of training is covered. Where is the answer likelier in the end?"),
        options,
        answer,
        key=LEARNED,
        why=lambda _said: told,
    )
    return is_answered(LEARNED)


def draw_training(found: list[Shot], rows: tuple[Row, ...], query: str, answer: str) -> None:
    with st.spinner(_("{steps} steps").format(steps=STEPS)):
        made = tune(MODEL, rows, query, answer, STEPS, RATE)
    left, right = st.columns(2)
    title = _("p of the answer")
    last, all_read = made.probabilities[-1], found[-1].probability
    shown = ask_learned(all_read, last)
    with left:
        read = pd.DataFrame({"at": [shot.k for shot in found], "p": [shot.probability for shot in found]})
        show_altair(partial(draw_curve, read, _("rows in the prompt"), title, "attention"), key="in prompt read")
    if shown:
        steps = pd.DataFrame({"at": range(len(made.probabilities)), "p": made.probabilities})
        with right:
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
    if shown:
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
            alt.Y("p:Q", title=title, scale=alt.Scale(domain=[0, 1])),
            tooltip=["at", "p"],
        )
        .properties(height=200)
    )
