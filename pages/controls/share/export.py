"""Share & export: what a page gives a person to keep.

The link and the pictures are made in the browser; here are the self-contained file, the Python and the numbers,
made when they are asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np

from engine.checkpoints import Checkpoint
from engine.inputs.readers import kind
from pages.controls.model_input.model_input import FIELDS, Subject, given, seed
from pages.controls.share.links import fitting
from views.core.codegen import Fields
from views.core.export import Answered, packed, self_contained
from views.core.payload import pack

Answer = Callable[[dict[str, Any]], bytes]

STALE = "The text, the model or the edits have changed since; ask again."
UNKNOWN = "The page asked for something that cannot be taken away; reload the page."
UNLINKED = "The text is too long for a link; paste it into Loupe to see this there."
MOST_ANSWERS = 1000  # of what a view asks, in one file
MOST_BYTES = 3_000_000  # of those answers, as they stand in the file
LEAST = 300  # bytes of one of them


def standalone_file(
    view: str,
    header: Mapping[str, Any],
    payload: bytes,
    state: str,
    answers: Sequence[Answered] = (),
    page: str | None = None,
) -> str:
    """The file of a view; `header` is what its payload says under "take", `page` the page's name if not the view's."""
    link = f"/{page or view}?{urlencode(header['link'])}{state}"  # on whichever Loupe
    linked = f"In Loupe: {link}" if fitting(header["link"]) == header["link"] else UNLINKED
    caption = (" · ".join(filter(None, (header["model"], header["read"]))), linked)
    title = f"{header['title']} · Loupe"
    return self_contained(view, payload, title=title, caption=caption, state=state, answers=answers)


def filed(content: bytes) -> bytes:
    """A file as the toolbar takes it."""
    return pack({}, {"file": np.frombuffer(content, np.uint8)})


def answered(
    queries: Iterable[Any], other: Answer, most: int = MOST_ANSWERS, room: int = MOST_BYTES
) -> list[Answered]:
    """The queries that can be answered, each once, up to `most` of them and `room` bytes."""
    found: list[Answered] = []
    seen = set[str]()
    for query in queries:
        if len(found) == most or room < LEAST:
            break
        key = json.dumps(query, sort_keys=True)
        if not isinstance(query, dict) or "take" in query or key in seen:
            continue
        seen.add(key)
        try:
            payload = other(query)
        except ValueError:
            continue
        answer = Answered(query, packed(payload))
        if len(answer.packed) <= room:
            found.append(answer)
            room -= len(answer.packed)
    return found


def fields_of(subject: Subject) -> Fields:
    """What stands in the page's fields now."""
    return fields_said(subject.checkpoint, subject.limit, given)


def fields_said(checkpoint: Checkpoint, limit: int, said: Callable[[str], Any]) -> Fields:
    """`said` gives what stands in a field by its name."""
    asked = kind(checkpoint)
    here = FIELDS[asked]
    own = bool(said("upload"))
    return Fields(
        kind=asked,
        limit=limit,
        **{field: said(field) for field in ("text", "second", "target", "span", "given") if field in here},
        picture=None if own or "picture" not in here else int(said("picture")),
        settings={key: said(key) for key in ("temperature", "top_k", "top_p")} if asked == "pixels" else {},
        seed=seed(),
    )
