"""The adapters that a person can apply, and the edits that switch a checkpoint's own off."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import streamlit as st

from engine.checkpoints import Checkpoint
from engine.edits import ApplyAdapter, find_adapter, keep_adapter
from engine.edits.experiment import Entry, Experiment
from engine.model.layers.lora import Adapter
from engine.runtime import library
from pages.controls.state.session import SessionValue, set_widget, widget_value
from pages.controls.visitor import recent
from views.core.markdown import escape_markdown

SWITCH = "switch of "  # before the key of an adapter
MET = SessionValue[dict[str, None]]("adapters opened", dict)  # keys of those of checkpoints that were open once


def known_adapters(name: str, checkpoint: Checkpoint, made: Experiment) -> list[Adapter]:
    """Adapters of the checkpoint, those that runs trained for it, those of other checkpoints that this person opened or
    that everybody sees, and those that edits name, as far as they are in memory."""
    others = [*library.names(), *recent()]
    opened = [library.checkpoint(other) for other in others if library.checkpoint.has(other)]
    keys = MET.get()
    own = [keep_adapter(adapter) for adapter in (*checkpoint.adapters, *library.adapters_for(name))]
    keys.update(dict.fromkeys(keep_adapter(adapter) for one in opened for adapter in one.adapters))
    named = [key for entry in made.entries for key in entry.edit.adapters()]
    found = []
    for key in dict.fromkeys([*own, *keys, *named]):
        with suppress(ValueError):  # of one that had to make room
            found.append(find_adapter(key))
    return found


def without_adapters(checkpoint: Checkpoint) -> Experiment:
    """The adapters that the checkpoint's weights hold, switched off."""
    return Experiment(tuple(Entry(ApplyAdapter.of(adapter, 0.0)) for adapter in checkpoint.adapters))


def draw_switches(checkpoint: Checkpoint, made: Experiment, keep: Callable[[Experiment], None]) -> None:
    """Draws a switch for each adapter that the checkpoint's weights hold; switched off it is an edit of the page."""

    def switch(edit: ApplyAdapter) -> None:
        now = [entry for entry in made.entries if not is_strength(entry, edit.adapter)]
        keep(made.replace_all((*now, *([] if widget_value(SWITCH + edit.adapter) else [Entry(edit)]))))

    for adapter in checkpoint.adapters:
        off = ApplyAdapter.of(adapter, 0.0)
        is_off = any(
            entry.on and entry.edit.strength == 0  # type: ignore[attr-defined]
            for entry in made.entries
            if is_strength(entry, off.adapter)
        )
        set_widget(SWITCH + off.adapter, not is_off)
        st.toggle(
            f"Adapter {escape_markdown(adapter.name)}",
            key=SWITCH + off.adapter,
            on_change=switch,
            args=(off,),
            help="The weights hold this low-rank adapter, as its folder says. Switched off, the base alone is run.",
        )


def is_strength(entry: Entry, key: str) -> bool:
    return key in entry.edit.adapters()
