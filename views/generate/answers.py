"""What the page Generate asks once it is drawn; every tab answers for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from views.generate import beam as generate_beam
from views.generate import branch as generate_branch
from views.generate import kv_cache as generate_cache
from views.generate import surprise as generate_surprise
from views.generate import write as generate_write
from views.generate.availability import missing
from views.generate.session import UNKNOWN, Query, Writing

ANSWERS: Mapping[str, Callable[[Writing, Query], bytes]] = {
    "step": generate_write.answer,
    "steps": generate_branch.answer,
    "beam": generate_beam.answer,
    "cache": generate_cache.answer,
    "surprise": generate_surprise.answer,
}

# Of what is not called as its tab:
TAB_OF = {"step": "write", "steps": "write"}
STREAMS: Mapping[str, Callable[[Writing, Query], Iterator[bytes]]] = {
    "write": generate_write.parts,
    "beam": generate_beam.parts,
    "surprise": generate_surprise.parts,
}


def answered(writing: Writing, query: Query) -> bytes:
    """Raises ValueError, with a sentence, for what cannot be answered."""
    ask = query.get("ask")
    if not isinstance(ask, str) or ask not in ANSWERS:
        raise ValueError(UNKNOWN)
    check(writing, ask)
    return ANSWERS[ask](writing, query)


def streamed(writing: Writing, query: Query) -> Iterator[bytes]:
    """Raises ValueError, at its first part, as `answered`."""
    ask = query.get("ask")
    if not isinstance(ask, str) or ask not in STREAMS:
        raise ValueError(UNKNOWN)
    check(writing, ask)
    yield from STREAMS[ask](writing, query)


def check(writing: Writing, ask: str) -> None:
    """Raises ValueError for what a tab asks that has nothing to show of this prompt."""
    why = missing(writing.prompt).get(TAB_OF.get(ask, ask), "")
    if why:
        raise ValueError(why)
