"""The adapters that a person can apply, and the edits with which a checkpoint's own are opened."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from engine.checkpoints import Checkpoint
from engine.edits import ApplyAdapter, find_adapter, keep_adapter
from engine.edits.experiment import Entry, Experiment
from engine.model.layers.lora import Adapter
from engine.runtime import library
from pages.controls.share.visitor import recent

KEYS = "adapters opened"  # in the session state


def known_adapters(name: str, checkpoint: Checkpoint, made: Experiment) -> list[Adapter]:
    """Adapters of the checkpoint, those that runs trained for it, those of other checkpoints that this person opened or
    that everybody sees, and those that edits name, as far as they are in memory."""
    others = [*library.names(), *recent()]
    opened = [library.checkpoint(other) for other in others if library.checkpoint.has(other)]
    keys: dict[str, None] = st.session_state.setdefault(KEYS, {})
    own = [keep_adapter(adapter) for adapter in (*checkpoint.adapters, *library.adapters_for(name))]
    keys.update(dict.fromkeys(keep_adapter(adapter) for one in opened for adapter in one.adapters))
    named = [entry.edit.adapter for entry in made.entries if isinstance(entry.edit, ApplyAdapter)]
    found = []
    for key in dict.fromkeys([*own, *keys, *named]):
        with suppress(ValueError):  # of one that had to make room
            found.append(find_adapter(key))
    return found


def with_adapters(checkpoint: Checkpoint, made: Experiment) -> Experiment:
    """The checkpoint's adapters at strength 1, in place of edits that do not name them all."""
    edits = [ApplyAdapter.of(adapter) for adapter in checkpoint.adapters]
    named = {entry.edit.adapter for entry in made.entries if isinstance(entry.edit, ApplyAdapter)}
    return made if {edit.adapter for edit in edits} <= named else made.replace_all(tuple(map(Entry, edits)))
