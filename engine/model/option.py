"""What an option of a recipe says of itself, beside its field: `field(default=..., metadata=Option(help=...))`.

Of the options of a model some have a meaning only beside others; which these are is asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypedDict

Said = Mapping[str, Any]  # values of the same table, as far as they are said
When = Callable[[Said, Any], bool]  # of these and the whole recipe


class Option(TypedDict, total=False):
    """`help` says in a sentence what it means, `title` what it is called where that is not the field's name, `when`
    tells whether it has a meaning at all, and `choices` gives its values where its type does not name them. What is
    `decided`, by the data and the task, is not asked of a person."""

    help: str
    title: str
    when: When
    choices: Callable[[], Iterable[str]]
    decided: bool


DECIDED = Option(decided=True)


def is_rotary(said: Said, _: Any) -> bool:
    return bool(said["kind"] == "rotary")


def is_relative(said: Said, _: Any) -> bool:
    return bool(said["kind"] in ("relative", "disentangled") or said.get("relative_bias"))


def is_disentangled(said: Said, _: Any) -> bool:
    return bool(said["kind"] == "disentangled")


def is_normed(said: Said, _: Any) -> bool:
    return bool(said["kind"] != "none")


def is_alone(_: Said, recipe: Any) -> bool:
    """Tells whether a model has one stack of blocks."""
    return recipe.model.encoder is None


def reads_patches(_: Said, recipe: Any) -> bool:
    return recipe.model.embedding.patches is not None


def has_head(*kinds: str) -> When:
    return lambda _, recipe: recipe.model.head.kind in kinds
