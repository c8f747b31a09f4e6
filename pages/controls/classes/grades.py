"""What a platform that a learner came from is told: a grade a lesson or session, and their name where it gave one."""

from __future__ import annotations

from engine.characters import cut_characters
from pages.controls.classes.kind import is_graded
from pages.controls.classes.who import classes, guard, visitor_id
from pages.controls.learn.course import SCORES
from pages.controls.state.session import SessionValue
from server.classes.names import LONGEST_NAME
from server.classes.store import Damaged, keeps_classes
from server.lti.launches import launches_of
from server.lti.scores import report_room, report_score, report_unsent, score_in_room
from server.settings import CLASSES_PLACE, LTI_FILE


def find_targets() -> set[str]:
    """Finds what this visitor's platforms asked a grade for, as the session begins; what they missed is sent again."""
    if not LTI_FILE or not keeps_classes(CLASSES_PLACE):
        return set()
    try:
        report_unsent(visitor_id())
        return {one.target for one in launches_of(visitor_id()) if one.target and one.lineitem}
    except Damaged:
        return set()  # it is said on the pages of a class


TARGETS = SessionValue("what a platform grades", find_targets)
REPORTED = SessionValue[dict[str, float]]("grades reported", dict)


def report_grades() -> None:
    """Reports what changed since the last run of a page."""
    for target in TARGETS.get():
        kind, _space, name = target.partition(" ")
        score = SCORES.get().get(name) if kind == "lesson" else score_in_room(name, visitor_id(), is_graded)
        if score is not None and score != REPORTED.get().get(target):
            REPORTED.get()[target] = score
            report_score(visitor_id(), target, score, best=kind == "lesson")


def launched_name() -> str:
    """Name by which the platform knows this visitor; "" where it is not kept."""
    if not LTI_FILE or not keeps_classes(CLASSES_PLACE):
        return ""
    return cut_characters(next((str(one.name) for one in launches_of(visitor_id()) if one.name), ""), LONGEST_NAME)


@guard
def close_room(code: str) -> None:
    """Ends a session; what its learners have right is known now."""
    classes().change(code, closed=True)
    if LTI_FILE:
        report_room(code, is_graded)
