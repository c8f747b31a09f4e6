"""What the page Generate asks once it is drawn; every tab answers for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from views import (
    generate_beam,
    generate_cache,
    generate_prompting,
    generate_surprise,
    generate_temperature,
    generate_write,
)
from views.generate_writing import UNKNOWN, Query, Writing

ANSWERS: Mapping[str, Callable[[Writing, Query], bytes]] = {
    "step": generate_write.answer,
    "beam": generate_beam.answer,
    "tempered": generate_temperature.answer,
    "prompting": generate_prompting.answer,
    "few_shot": generate_prompting.answer,
    "accuracy": generate_prompting.answer,
    "instructed": generate_prompting.answer,
    "pairs": generate_prompting.answer,
    "cache": generate_cache.answer,
    "cache_costs": generate_cache.answer_costs,
    "cache_time": generate_cache.answer_time,
    "surprise": generate_surprise.answer,
}

STREAMS: Mapping[str, Callable[[Writing, Query], Iterator[bytes]]] = {"write": generate_write.parts}


def answered(writing: Writing, query: Query) -> bytes:
    """Raises ValueError, with a sentence, for what cannot be answered."""
    ask = query.get("ask")
    if not isinstance(ask, str) or ask not in ANSWERS:
        raise ValueError(UNKNOWN)
    return ANSWERS[ask](writing, query)


def streamed(writing: Writing, query: Query) -> Iterator[bytes]:
    """Raises ValueError, at its first part, as `answered`."""
    ask = query.get("ask")
    if not isinstance(ask, str) or ask not in STREAMS:
        raise ValueError(UNKNOWN)
    yield from STREAMS[ask](writing, query)
