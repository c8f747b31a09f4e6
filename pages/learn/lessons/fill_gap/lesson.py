"""Fill in the gap: the same hidden words asked for by masks, by sentinels, and as a span with two positions."""

import pandas as pd
import streamlit as st
import torch

from engine.course.fill_gap import GapTask, ask_masks, ask_sentinels, ask_span, words_of
from pages.controls.figures import matrix, picked_place
from pages.controls.learn.fields import choose_view, name_apart, read_field
from pages.controls.learn.predict import is_answered, is_found, point, show_code
from pages.controls.learn.words import numeral
from pages.controls.learn.words import translate as _
from views.core.markdown import escape_markdown

BERT, T5, GLM = "tales-bert", "t5-spans", "infill"
WAYS = {"glm": (ask_span, GLM), "t5": (ask_sentinels, T5), "bert": (ask_masks, BERT)}
TEXT, FIRST, LAST = "The little girl was very tired and went to bed.", 6, 7
LEAST, MOST, LONGEST = 3, 14, 12  # words of the text; characters of one
MOST_HIDDEN = 4  # words
QUESTION = "gap question"


def experiment() -> bool:
    text = read_field("gap-text", _("text"), TEXT, read_words)
    words = text.split()
    numbers = list(range(len(words)))
    usual = (FIRST, LAST) if len(words) > LAST + 1 else (len(words) // 2, len(words) // 2)
    first, last = st.select_slider(
        _("what is hidden"), numbers, usual, key=f"gap-hidden {len(words)}",
        format_func=lambda at: escape_markdown(words[at]),
    )  # fmt: skip
    last = min(last, first + MOST_HIDDEN - 1, first + len(words) - 2)  # something is left
    parts = words_of(text, first, last)
    span = ask_span(GLM, *parts)
    above = st.container()
    found = ask(span)
    with above:
        draw_sight(span, covered=not (found and is_answered(QUESTION)))
    if not found:
        return False
    titles = {"glm": _("as GLM: a span"), "t5": _("as T5: sentinels"), "bert": _("as BERT: masks")}
    way = choose_view("gap-view", titles)
    make, name = WAYS[way]
    asked = span if way == "glm" else make(name, *parts)
    draw_asked(asked, way, name)
    before, hidden, behind = parts
    show_code(make, key=f"gap code {way}", name=name, before=before, hidden=hidden, behind=behind)
    return is_found(QUESTION)


def read_words(said: str) -> str:
    """Raises ValueError, with a sentence."""
    words = said.split()
    if not LEAST <= len(words) <= MOST:
        sentence = _("Expected {least} to {most} words, and here are {count}; change the text.")
        raise ValueError(sentence.format(least=LEAST, most=MOST, count=len(words)))
    if long := next((word for word in words if len(word) > LONGEST or word.startswith(("[", "<"))), None):
        sentence = _("Expected plain words of at most {most} characters, got “{word}”; change it.")
        raise ValueError(sentence.format(most=LONGEST, word=long[:40]))
    return " ".join(words)


def start_of(span: GapTask) -> int:
    """Row of the mark behind which the gap's words are written."""
    return len(span.reads) - len(span.asked) - 1


def ask(span: GapTask) -> bool:
    row, names = start_of(span), name_apart(span.reads)
    hidden = (~span.sees[row]).nonzero().flatten().tolist()
    reason = _(
        "{mark} sees the whole text around the gap, before and behind it, and itself. What will be written after it "
        "it does not see."
    ).format(mark=names[row])
    question = _(
        "The words of the gap are written behind the text, from {mark} on. Click a token that {mark} may not look at."
    ).format(mark=names[row])
    cell = picked_place(f"{QUESTION} picture", tuple(span.sees.shape))
    return point(
        question, None if cell is None else (cell[0], cell[1]), [(row, at) for at in hidden], key=QUESTION,
        why=lambda _said: reason, name=lambda at: f"{names[at[0]]} → {names[at[1]]}",
    )  # fmt: skip


def draw_sight(span: GapTask, covered: bool) -> None:
    """Who may look at whom in GLM; the row that is asked for is covered."""
    values = span.sees.float()
    if covered:
        values[start_of(span)] = torch.nan
    names = name_apart(span.reads)
    matrix(
        values, rows=names, columns=names, digits=0, key=f"{QUESTION} picture", label=_("1: may look")
    )  # fmt: skip


def draw_asked(asked: GapTask, way: str, name: str) -> None:
    left, right = st.columns([3, 2])
    with left:
        st.code(" ".join(asked.reads), language=None, wrap_lines=True)
        if asked.target:
            st.caption(_("The decoder reads:"))
            st.code(" ".join(asked.target), language=None, wrap_lines=True)
        if way != "glm":
            names = name_apart(asked.target or asked.reads)
            label = _("1: may look")
            matrix(asked.sees.float(), rows=names, columns=names, digits=0, key=f"gap sees {way}", label=label)
        else:
            st.caption(_("positions: in the text, and in the gap"))
            st.code("\n".join(" ".join(map(str, row)) for row in asked.positions.tolist()), language=None)
    with right:
        rows = [
            (token.replace(" ", "·"), numeral(p, ".3f"))
            for token, p in zip(asked.asked, asked.probabilities, strict=True)
        ]
        st.dataframe(pd.DataFrame(rows, columns=[_("asked"), _("p")]), hide_index=True, width="stretch")
    said = {
        "glm": _("{model}: one mark for any number of words. Each is written knowing the ones before."),
        "t5": _("{model}: the decoder says which gap it fills, then what was there. It too knows the words before."),
        "bert": _("{model}: one mask a token, so their number is told. All are guessed at once, none knows another."),
    }[way]
    st.caption(said.format(model=name))
