"""What a learner's page tells the class by itself: what it shows, and how far they are in the questions of a lesson."""

from __future__ import annotations

from dataclasses import asdict

from engine.plurals import count_words
from pages.controls.classes.answering import link_to_page
from pages.controls.classes.banner import own_step
from pages.controls.classes.who import classes, find_joined_class
from pages.controls.learn.predict import QUESTIONS
from pages.controls.share.links import address_now
from pages.controls.state.session import SessionValue, widget_value
from server.classes.grading import Grade
from server.classes.store import Learner, Room, Unreachable
from views.core.component import PAGE

TOLD = SessionValue[tuple[str, str, dict[str, str]] | None]("page that the class knows", lambda: None)


def note_visit() -> None:
    """Notes it of a visitor who is in a class, once their page is drawn."""
    try:
        found = find_joined_class()
        if found is None:
            return
        note_page(found[1])
        note_lesson(*found)
    except Unreachable:
        return  # it is said in the class's place; the next drawing notes it


def note_page(learner: Learner) -> None:
    page, link = widget_value(PAGE, ""), link_to_page()
    if TOLD.get() != (learner.id, page, link):
        classes().note_page(learner, page, link)
        TOLD.set((learner.id, page, link))


def note_lesson(room: Room, learner: Learner) -> None:
    """Hands in how far a learner is in the questions of a lesson, where they are to be at one."""
    at = own_step(room)
    if room.steps[at].page != "course" or room.steps[at].asks:
        return
    answered = {key: kept for key, kept in QUESTIONS.get().items() if kept.about is not None}
    if not answered:
        return
    right = sum(kept.right for kept in answered.values())
    said = f"{right} of {count_words(len(answered), 'question')} right"
    told = {one.question_text: {"said": one.words, "right": one.right, "why": one.why} for one in answered.values()}
    mine = [one for one in classes().answers(room.code) if (one.learner, one.step) == (learner.id, at)]
    if not mine or mine[0].content.get("questions") != told:
        result = Grade(said, score=right / len(answered))
        content = {**asdict(result), "page": "course", "link": address_now(), "questions": told}
        try:
            classes().hand_in(learner, at, content, again=True)
        except ValueError:
            return  # it is handed in with the next answer, or the class went on
