"""The bar in the header of every page: which model and text are looked at, with the block and head that the browser
knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import streamlit as st

from engine.runtime import library
from views.core.component import view

LONGEST = 300  # letters of a text that the bar is given; it shows as many as fit

line = view("share/bar")


def bar(
    model: str,
    said: Mapping[str, Any] | None = None,
    about: str = "",
    look: Mapping[str, int] | None = None,
    names: Iterable[str] = (),
) -> None:
    """Draws it: `said` are the fields of what the model reads, none where nothing was read yet; `look` is the block and
    the head that the page shows where its address says nothing else. `names` are those of the checkpoints, where
    `model` says more than one."""
    said = said or {}
    texts = [str(text) for field in ("text", "second", "target", "span") if (text := said.get(field))]
    text = " | ".join(texts) or (f"picture {said['picture']}" if "picture" in said else "")
    with st.container(key="headline"):
        unsure = dict.fromkeys(key for name in names or [model] for key in library.checkpoint.unconfirmed_keys(name))
        drawn = {"model": model, "text": text[:LONGEST], "about": about, "look": look or {}, "assumed": list(unsure)}
        line(drawn, key="bar")
