"""Who is in which class session: known by the browser's cookie, over a reload and a server started anew."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from pages.controls.menu import Entry, entries
from pages.controls.state.session import SessionValue
from pages.controls.visitor import visitor_name
from server.classes.store import Answer, Classes, Damaged, Learner, Room, Unreachable, keeps_classes, open_classes
from server.settings import CLASSES_PLACE
from views.core.component import view
from views.core.markdown import escape_markdown

P = ParamSpec("P")

ALONE = SessionValue("visitor without a cookie", lambda: secrets.token_hex(16))
news = view("classes/news", events=("news",))  # tells when something changed in a room


# The version of a room, as server/http/class_news.py tells it, while its database does not answer.
UNREACHABLE = "unreachable"
TROUBLE = SessionValue("change of a class that was not kept", str)


def classes() -> Classes:
    return open_classes(CLASSES_PLACE)


def visitor_id() -> str:
    """Name of this visitor; one that lasts as long as the session where the browser sent no cookie."""
    return visitor_name() or ALONE.get()


def find_joined() -> str:
    """Code of the class that this browser joined."""
    return classes().room_of(visitor_id()) if keeps_classes(CLASSES_PLACE) else ""


JOINED = SessionValue("class that was joined", find_joined)
OVER = SessionValue("class that is over", str)


def find_left() -> list[tuple[Room, Learner]]:
    """The classes that are over and that this visitor was in; none too where nobody can know."""
    found = list[tuple[Room, Learner]]()
    try:
        for code in classes().rooms_left(visitor_id()) if keeps_classes(CLASSES_PLACE) else ():
            room, learner = classes().find(code), classes().learner_of(code, visitor_id())
            found += [(room, learner)] if learner else []
    except ValueError:
        pass  # deleted meanwhile, or the database does not answer
    return found


def find_damage() -> None:
    """Raises Damaged where the file of class sessions is none any more; one that does not answer may do so soon."""
    try:
        if keeps_classes(CLASSES_PLACE):
            classes()
    except Damaged:
        raise
    except Unreachable:
        return


def find_joined_class() -> tuple[Room, Learner] | None:
    """The class that this visitor is in; None too where nobody can know. Raises Unreachable once it was known."""
    try:
        code = JOINED.get()
    except Unreachable:
        return None  # most visitors are in no class
    if not code:
        return None
    try:
        room, learner = classes().find(code), classes().learner_of(code, visitor_id())
    except Unreachable:
        raise
    except ValueError:
        learner = None
    if learner is None or room.closed:
        JOINED.set("")
        OVER.set(code if learner else "")
        return None
    return room, learner


def guard(change: Callable[P, None]) -> Callable[P, None]:
    """A callback that changes a class; what is not kept is said where the page is drawn next."""

    @wraps(change)
    def attempt(*given: P.args, **named: P.kwargs) -> None:
        try:
            change(*given, **named)
        except Unreachable as error:
            TROUBLE.set(f"Loupe {error}")
        except ValueError as error:
            TROUBLE.set(str(error)[:1].upper() + str(error)[1:])

    return attempt


def draw_trouble() -> None:
    if TROUBLE.get():
        st.warning(escape_markdown(TROUBLE.get()))
        TROUBLE.set("")


def draw_unreachable(said: object) -> None:
    st.warning(escape_markdown(f"Loupe {said}"))


def wait_for_database(room: str, error: Unreachable) -> None:
    """Says that it does not answer, and has the page drawn anew once it does."""
    draw_unreachable(error)
    news({"room": room, "version": UNREACHABLE, "all": True, "follow": "", "until": 0}, key="class news")


def follow(code: str) -> tuple[Room, list[Learner], list[Answer]] | None:
    """A room and all in it, for a fragment of a teacher; None where the database does not answer, which is said. A room
    that is there no longer runs the page again."""
    try:
        return classes().find_all(code)
    except Unreachable as error:
        wait_for_database(code, error)
    except ValueError:
        st.rerun()
    return None


def tell_news(room: Room) -> None:
    """Redraws what a teacher sees where something changed, and counts the step's time down."""
    until = room.entered + room.step.seconds if room.step.seconds else 0
    said = {"room": room.code, "version": f"{room.version}.{room.heard}", "all": True, "follow": "", "until": until}
    news(said, key="class news")


def entry_of(address: str) -> Entry | None:
    """The page of an address; None where there is none."""
    return next((one for one in entries() if one.address == address), None)
