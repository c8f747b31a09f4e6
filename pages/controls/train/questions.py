"""What the page about training is asked while it stands, and by whom it is answered."""

from __future__ import annotations

from typing import Any

from pages.controls.train.commands import DOING
from pages.controls.train.queries import READING
from pages.controls.train.session import Session
from views.core.payload import pack

REMEMBERED = 64  # answers to what was to be done


def answered(session: Session, query: dict[str, Any]) -> bytes:
    """What was to be done is done once, however often the question comes. Raises ValueError, in a sentence, for what
    cannot be done."""
    ask, once = str(query.get("ask")), str(query.get("once", ""))
    if ask in READING:
        return READING[ask](session, query)
    if ask not in DOING:
        known = ", ".join(map(str, [*READING, *DOING]))
        raise ValueError(f"a question must be one of {known}, got {ask!r}.")
    if once not in session.done:
        session.done[once] = pack(DOING[ask](session, query), {})
        while len(session.done) > REMEMBERED:
            session.done.popitem(last=False)
    return session.done[once]
