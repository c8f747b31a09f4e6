"""A recipe as controls: every field of its tables is one, by its type, so that no option of the engine is forgotten."""

from __future__ import annotations

import math
from dataclasses import Field, asdict, dataclass, field, fields, replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import streamlit as st

from engine.data.own import Columns
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.model.config import MLP, Attention, Encoder, Experts, OtherRotation, RotaryScaling
from engine.model.from_dict import part_of
from engine.training import Recipe
from engine.training.objectives import find_objective, list_fitting, objectives
from pages.controls.train.recipe_options import format_value, help_of, is_offered, title
from views.core.markdown import Markdown, escape_markdown

WIDE = 148  # CSS pixels of a control
SHORT = 14  # letters that fit into it
AUTOMATIC = "automatic"  # what stands in a field that may be left out
TABS = ("Data", "Tokenizer", "Model", "Learning", "Keeping", "As text")
LEARNING = ("objective", "optimiser", "schedule", "batch")
KEEPING = ("log", "machine")


@dataclass
class Form:
    """Controls that begin with `recipe`; under another `turn` they begin anew. `problems` are of fields that do not
    read: they stand at what the recipe says."""

    recipe: Recipe
    turn: str
    problems: list[str] = field(default_factory=list)

    def draw(self) -> dict[str, Any]:
        """Draws all tabs but the last, `text`, and returns what they say as plain data."""
        recipe = self.recipe
        said = recipe.tables
        data, tokenizer, model, learning, keeping, self.text = st.tabs(list(TABS), key=f"{self.turn} tabs")
        with data:
            self.heading(recipe.data.kind, recipe.data.table)
            said["data"][recipe.data.kind] = self.table(recipe.data.table, f"data.{recipe.data.kind}")
        with tokenizer:
            said["data"]["tokenizer"] = self.tokenizer()
        with model:
            said["model"] = self.table(recipe.model, "model")
        preference = ("preference",) if "temperature" in find_objective(recipe.objective.kind).option_names else ()
        for tab, names in ((learning, (*LEARNING, *preference)), (keeping, KEEPING)):
            with tab:
                for name in names:
                    self.heading(name, getattr(recipe, name))
                    said[name] = self.table(getattr(recipe, name), name)
        if recipe.model.context == recipe.batch.context:  # one number, which the batch's control says
            said["model"]["context"] = said["batch"]["context"]
        return said

    def tokenizer(self) -> dict[str, Any]:
        """Only kinds that suit the data."""
        own = self.recipe.data.tokenizer
        if not suits(self.recipe, replace(own, sample=own.sample + 1)):
            pictures = self.recipe.data.table.pictures
            st.caption("Images need no tokenizer." if pictures else "The data's own symbols are the tokens.")
            return asdict(own)
        st.caption(field_meanings(TokenizerRecipe))
        return self.table(own, "data.tokenizer")

    def table(self, value: Any, path: str) -> dict[str, Any]:
        """The controls of one dataclass, those of its own fields in a row and each part of it below."""
        hints = get_type_hints(type(value))
        own = {each.name: each for each in fields(value)}
        parts = [name for name in own if part_of(hints[name]) is not None]
        said = {name: as_recipe_value(getattr(value, name)) for name in own}
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            for name, option in own.items():
                if name not in parts and is_offered(f"{path}.{name}", option, said, self.recipe):
                    said[name] = self.control(option, hints[name], f"{path}.{name}", getattr(value, name))
        for name in parts:
            if is_offered(f"{path}.{name}", own[name], said, self.recipe):
                said[name] = self.part(value, own[name], hints[name], f"{path}.{name}")
        return said

    def part(self, owner: Any, option: Field[Any], hint: Any, path: str) -> dict[str, Any] | None:
        """A nested table; one that may be left out has a switch."""
        value = getattr(owner, option.name)
        if type(None) not in get_args(hint) or option.name == "patches":
            self.heading(".".join(path.split(".")[1:]), value)
        else:
            kind = part_of(hint)
            on = st.toggle(title(option), value is not None, key=f"{self.turn}.{path}", help=field_meanings(kind))
            if not on:
                return None
            value = first_value(owner, option.name) if value is None else value
        return self.table(value, path)

    def control(self, option: Field[Any], hint: Any, path: str, value: Any) -> Any:
        kinds = [kind for kind in options(hint) if kind is not type(None)]
        optional, kind = len(kinds) < len(options(hint)), kinds[0]
        key, name = f"{self.turn}.{path}", title(option)
        told = escape_markdown(help_of(path, option)) or None
        named = get_args(kind) if get_origin(kind) is Literal else tuple(option.metadata.get("choices", tuple)())
        if named or kind is bool:
            all_of = (True, False) if kind is bool else self.choices(path, named, value)
            choices = [*([None] if optional else []), *all_of]
            wide = WIDE if max(len(format_option(each)) for each in choices) <= SHORT else round(1.4 * WIDE)
            return st.selectbox(name, choices, choices.index(value), format_option, key=key, help=told, width=wide)
        if kind is int:
            return st.number_input(name, value=value, step=1, placeholder=AUTOMATIC, key=key, help=told, width=WIDE)
        if kind is float:
            return st.number_input(
                name, value=None if value is None else float(value), step=a_tenth(value), format="%g", key=key,
                placeholder=AUTOMATIC, help=told, width=WIDE,
            )  # fmt: skip
        if kind is str:
            said = st.text_input(name, value or "", key=key, help=told, width=2 * WIDE)
            return said or (None if optional else "")
        return self.list_field(name, kind, value, key, told)

    def choices(self, path: str, all_of: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        """Choices that suit the data."""
        data = self.recipe.data
        if path == "objective.kind":
            learns = list_fitting(data.table.form) if isinstance(data.table, Columns) else all_of
            fit = (one for one in all_of if one in learns and data.kind in objectives()[one].sources)
            return tuple(dict.fromkeys([value, *fit]))
        if path == "data.tokenizer.kind":
            return tuple(one for one in all_of if one == value or suits(self.recipe, replace(data.tokenizer, kind=one)))
        return all_of

    def list_field(self, name: Markdown, kind: Any, value: Any, key: str, told: Markdown | None) -> list[Any] | None:
        """Several numbers or words, with commas between them."""
        of = get_args(kind)[0]
        shown = "" if value is None else ", ".join(map(str, value))
        said = st.text_input(name, shown, key=key, help=told or "Several values, with commas between them.", width=WIDE)
        words = [word.strip() for word in said.split(",") if word.strip()]
        try:
            return [of(word) for word in words] if words or value is not None else None
        except ValueError:
            must = "whole numbers" if of is int else "numbers"
            self.problems.append(f"{name} must be {must} with commas between them, got {said!r}.")
            return None if value is None else list(value)

    def heading(self, name: str, value: Any) -> None:
        shown = escape_markdown(name.replace(".", " · ").replace("_", " "))
        st.markdown(f"**{shown}**", help=field_meanings(type(value)))


def suits(recipe: Recipe, tokenizer: TokenizerRecipe) -> bool:
    try:
        replace(recipe.data, tokenizer=tokenizer)
    except ValueError:
        return False
    return True


def first_value(owner: Any, name: str) -> Any:
    """First value of a part that was left out."""
    if name == "mlp":
        return MLP(4 * getattr(owner, "d_model", 32))
    if name == "scaling":
        return RotaryScaling("linear", 2.0, 512)
    if name == "experts":
        return Experts(8, 2)
    if name == "other":
        return OtherRotation((0,))
    if name == "cross":
        return owner.cross_attention
    return Encoder(owner.layers, Attention(owner.attention.heads, mask="full"), owner.mlp)


def options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)


def as_recipe_value(value: Any) -> Any:
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value


def format_option(value: Any) -> str:
    if value is None:
        return AUTOMATIC
    return ("yes" if value else "no") if isinstance(value, bool) else format_value(value)


def a_tenth(value: float | None) -> float:
    """The step of a number's buttons: a tenth of its size, rounded down to a power of ten."""
    return 10.0 ** math.floor(math.log10(abs(value)) - 0.5) if value else 0.01


def field_meanings(kind: type) -> Markdown | None:
    """Meaning of the fields, in the words of the engine; None where Python itself wrote that."""
    said = kind.__doc__ or ""
    return None if said.startswith(f"{kind.__name__}(") else Markdown(" ".join(said.split()))
