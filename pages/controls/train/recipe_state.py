"""What one session knows of the recipes on the page about training: what each task's controls begin with and say."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from engine.training import Recipe
from engine.training.link import pack_recipe, unpack_recipe
from engine.training.recipe_file import write_recipe

SHARED = "recipe"  # the name in a link


@dataclass
class RecipeMemory:
    """State of each task's form: what its controls `begins` with where that is not its preset, what they `said` last,
    and how often they began anew. `link` is the recipe in the address as it was read or written last, `lost` why one
    did not read."""

    begins: dict[str, Recipe] = field(default_factory=dict)
    said: dict[str, Recipe] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)
    link: str = ""
    lost: str = ""

    def begin(self, task: str, recipe: Recipe | None) -> None:
        """The controls of a task begin anew, with its preset where no recipe is given."""
        self.turns[task] = self.turns.get(task, 0) + 1
        self.said.pop(task, None)
        self.begins.pop(task, None)
        if recipe is not None:
            self.begins[task] = recipe

    def turn(self, task: str) -> str:
        """Prefix of the keys of its controls."""
        return f"{task} {self.turns.get(task, 0)}"


def recipe_memory() -> RecipeMemory:
    found: RecipeMemory = st.session_state.setdefault("recipes", RecipeMemory())
    return found


def begin_recipe(task: str, preset: Recipe) -> tuple[Recipe, str]:
    """The recipe that the controls begin with, and the turn of the controls.

    That of a link counts first; then what they said when the person left them for another task or page.
    """
    known, shared = recipe_memory(), st.query_params.get(SHARED, "")
    if shared and shared != known.link:
        known.link = shared
        try:
            known.begin(task, unpack_recipe(shared))
        except ValueError as error:
            known.lost = str(error)
    elif f"{known.turn(task)} seed" not in st.session_state and task in known.said:
        known.begin(task, known.said[task])
    return known.begins.get(task, preset), known.turn(task)


def keep(task: str, recipe: Recipe, preset: Recipe) -> None:
    """Keeps what the controls say now; in the address too where it is not the preset."""
    known = recipe_memory()
    if known.said.setdefault(task, recipe) != recipe:
        known.lost = ""  # the person looks at something else now
    known.said[task] = recipe
    if recipe == preset:
        st.query_params.pop(SHARED, None)
        return
    try:
        known.link = pack_recipe(recipe)
    except ValueError:  # it learns from a file, which no link can carry; the page says so where it offers the link
        st.query_params.pop(SHARED, None)
    else:
        if st.query_params.get(SHARED) != known.link:
            st.query_params[SHARED] = known.link


def list_changes(recipe: Recipe, preset: Recipe) -> list[str]:
    """Differences from a preset, as "model.layers 2 → 4"."""
    ours, theirs = (flat(one) for one in (recipe, preset))
    return [
        f"{key} {theirs.get(key, 'none')} → {ours.get(key, 'none')}"
        for key in dict.fromkeys([*theirs, *ours])
        if ours.get(key) != theirs.get(key)
    ]


def flat(recipe: Recipe) -> Mapping[str, str]:
    """Values of its file as text, by the dotted key."""
    found = dict[str, str]()

    def visit(table: Mapping[str, Any], prefix: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                visit(value, f"{prefix}{key}.")
            else:
                found[f"{prefix}{key}"] = json.dumps(value)

    visit(tomllib.loads(write_recipe(replace(recipe, about=""))), "")
    return found
