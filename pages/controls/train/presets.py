"""The tasks that come with Loupe: recipes under assets/lab, by what they are about, with what each of them shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

import streamlit as st

from engine.data.task import Subject
from engine.places import ASSETS
from engine.plurals import write_duration
from engine.training import Recipe
from engine.training.launch.estimate import estimate
from engine.training.recipe.recipe_file import read_recipe
from pages.controls.state.session import set_widget
from views.core.markdown import escape_markdown

FOLDER = ASSETS / "lab"
OWN = "own-data"  # the task that is a person's own
GALLERY = "all tasks"


@dataclass(frozen=True)
class Preset:
    """`found` is what its file says came out of it."""

    name: str
    recipe: Recipe
    found: str

    @property
    def group(self) -> Subject:
        return self.recipe.data.table.subject


def presets(folder: Path = FOLDER) -> dict[str, Preset]:
    """Presets by name, those of one group together."""
    files = sorted(folder.glob("*.toml"))
    found = [read(file, file.stat().st_mtime_ns) for file in files]
    order = get_args(Subject)
    return {one.name: one for one in sorted(found, key=lambda one: order.index(one.group))}


@cache
def read(file: Path, stamp: int) -> Preset:
    """Read once as long as `stamp`, the time of its last change, is the same."""
    recipe, said = read_recipe(file), " ".join(comment(file.read_text(encoding="utf-8")))
    return Preset(file.stem, recipe, said)


def comment(text: str) -> Iterator[str]:
    """The lines of the comment that a recipe begins with."""
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        yield line.removeprefix("#").strip()


def gallery(chosen: str, choose: Callable[[str], None]) -> None:
    """All tasks with a line each and how long they take here; `choose` is called with the name of that which is
    clicked."""
    popover = st.popover("All tasks", key=GALLERY, on_change="rerun")
    if not popover.open:
        return
    with popover:
        before = ""
        for one in presets().values():
            if one.group != before:
                st.markdown(f"**{escape_markdown(one.group)}**")
                before = one.group
            row(one.name, one.recipe.about, estimate(one.recipe).seconds, one.found, chosen, choose)
        st.markdown("**Yours**")
        own = "A text that you paste, or a file of texts, pairs, labels, tags or answers."
        row(OWN, own, None, "", chosen, choose)


def row(name: str, about: str, takes: float | None, found: str, chosen: str, choose: Callable[[str], None]) -> None:
    def take() -> None:
        set_widget(GALLERY, False)  # it would cover what was chosen
        choose(name)

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            escape_markdown(name.replace("-", " ")),
            key=f"task {name}",
            help=escape_markdown(found) or None,
            width=172,
            on_click=take,
            type="primary" if name == chosen else "secondary",
        )
        said = escape_markdown(about)
        st.caption(said if takes is None else f"{said} About {write_duration(takes)}.", width=420)
