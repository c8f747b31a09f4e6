"""What a lesson begins with: a question about an earlier one, which is asked again until it is answered rightly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st

from pages.controls.learn.glossary import SENTENCE_END, as_title, terms
from pages.controls.learn.predict import choose, is_found
from pages.controls.state.session import SessionValue
from pages.controls.words import translate as _
from views.core.markdown import escape_markdown

APART, OPTIONS = 2, 4  # lessons between one and the question about it; terms to choose from

RECALLED = SessionValue[dict[str, str]]("lessons recalled", dict)  # which one each lesson of the visit asked about
MISSED = SessionValue[dict[str, str]]("lessons missed", dict)  # the day on which each was answered wrongly


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def due(name: str, course: Sequence[str], done: Sequence[str]) -> str | None:
    """Which earlier lesson is asked about: one that was answered wrongly, two lessons before or on another day, the
    longest ago first; else the one two lessons before, if it is done."""
    at = course.index(name)
    missed = sorted(MISSED.get().items(), key=lambda entry: entry[1])
    far = course[: max(0, at - APART + 1)]
    for one, day in missed:
        if one != name and (one in far or day < today()):
            return one
    return course[at - APART] if at >= APART and course[at - APART] in done else None


def note_answer(name: str, right: bool) -> None:
    """Keeps that a lesson was answered wrongly, for another day, or forgets it."""
    missed = dict(MISSED.get())
    if right:
        missed.pop(name, None)
    else:
        missed.setdefault(name, today())
    MISSED.set(missed)


def draw_recall(place: int, about: str, title: str, named: Sequence[str], others: Sequence[str]) -> None:
    """Asks for one of the terms `named` of an earlier lesson by its meaning, among `others`."""
    known = terms()
    term = named[place % len(named)]
    wrong = [one for one in dict.fromkeys(others) if one not in named and one in known][: OPTIONS - 1]
    options = sorted((term, *wrong), key=lambda one: known[one].name.lower())
    meaning = hide(SENTENCE_END.split(as_title(known[term].meaning))[0], known[term].name)
    key = f"recall {about} {place}"
    with st.expander(
        _("Before you begin: from “{title}”").format(title=escape_markdown(title)), icon=":material/history:"
    ):
        sentence = _("Which term is this? “{meaning}”")
        answered = choose(
            sentence.format(meaning=meaning), [known[one].name for one in options], options.index(term), key=key
        )
        if answered and is_found(key):
            note_answer(about, True)


def hide(meaning: str, name: str) -> str:
    """The meaning with the term itself left out."""
    return re.sub(re.escape(name), "…", meaning, flags=re.IGNORECASE)
