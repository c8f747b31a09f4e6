"""Models that a request may name, and the address at which a page shows what it asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from engine.checkpoints import Checkpoint
from engine.checkpoints.load import open_model
from engine.checkpoints.locate import present_names, shipped_names
from engine.checkpoints.run_steps import name_step
from engine.edits.experiment import Experiment
from engine.inputs.readers import kind
from engine.runtime import library
from pages.controls.share.links import VERSION, VERSIONED
from pages.controls.state.history import READABLE
from pages.controls.what_if.experiment_link import linkable, to_link
from server.http.api.fields import Refused

WRITTEN = {"translation": "target", "infill": "span"}  # fields of a page that hold what a model wrote


def list_names() -> list[str]:
    """Names of what is here: shipped models, the folders of `models`, and training runs. To open one asks no network,
    and none is a path or somebody's upload."""
    absent = {*shipped_names()} - {*present_names()}
    return [name for name in library.names() if name not in absent] + [*map(name_step, library.kept_runs())]


def open_named(name: str) -> Checkpoint:
    """Raises Refused for any other name, and for a model that does not open or reads pictures."""
    if library.run_weights(name) is None and name not in list_names():
        raise Refused(f"there is no model {name[:80]!r} here; GET /v1/models lists what there is.", 404, "model")
    try:
        checkpoint = library.checkpoint(name)
    except (ValueError, OSError):
        said = f"the model {name[:80]!r} does not open; the page Open a model says why."
        raise Refused(said, field="model") from None
    if kind(checkpoint) in ("picture", "pixels"):
        raise Refused(f"the model must read texts, and {name[:80]!r} reads pictures; name another.", field="model")
    return checkpoint


def describe(name: str) -> dict[str, Any]:
    """As OpenAI lists a model, with its architecture and context where its files say them."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "loupe", **read_about(name, library.version(name))}


@lru_cache(maxsize=256)
def read_about(name: str, version: tuple[object, ...]) -> dict[str, Any]:
    """`version`, of the weights that the name means now, is part of the cache key."""
    with suppress(ValueError, OSError):
        opened = open_model(library.checkpoint_place(name), {}, {})
        return {"architecture": opened.family.name, "context": opened.config.context}
    return {}


@contextmanager
def engine_refuses(field: str | None = None) -> Iterator[None]:
    """What the engine refuses, in its sentence."""
    try:
        yield
    except Refused:
        raise
    except (ValueError, KeyError) as error:
        raise Refused(str(error.args[0]) if isinstance(error, KeyError) else str(error), field=field) from None


def read_edits(value: list[Any]) -> Experiment:
    """Raises Refused for what is no list of edits."""
    with engine_refuses("edits"):
        return Experiment.from_value(value)


def write_link(base: str, name: str, said: Mapping[str, str], edits: Experiment) -> str | None:
    """Address of the Walkthrough of a text; None where an address cannot hold it. `base` is the server's."""
    query = {VERSIONED: str(VERSION), "model": name, **{field: text for field, text in said.items() if text}}
    if edits.entries:
        if not linkable(edits):
            return None
        query["edits"] = to_link(edits)
    written = urlencode(query)
    return f"{base}/walkthrough?{written}" if len(written) <= READABLE else None


def text_of_ids(checkpoint: Checkpoint, ids: tuple[int, ...]) -> str | None:
    """Text that a page reads as these ids; None where there is none."""
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        return " ".join(map(str, ids))
    texts = (tokenizer.decode(ids, special=special) for special in (False, True))
    return next((text for text in texts if tokenizer.encode(text).ids == ids), None)
