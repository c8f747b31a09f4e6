"""What a model can be asked to learn: each file of `kinds` is one objective, with all that is known of it."""

from __future__ import annotations

from functools import cache

from engine.collect import collect
from engine.data.own import Form
from engine.training.objectives.kind import ObjectiveKind


@cache
def objectives() -> dict[str, ObjectiveKind]:
    """All of them by name. They are found when they are first asked for, as they need what recipes are made of."""
    return {one.name: one for one in collect(f"{__name__}.kinds", "OBJECTIVE", ObjectiveKind)}


def find_objective(name: str) -> ObjectiveKind:
    """Raises ValueError where there is none."""
    if name not in objectives():
        raise ValueError(f"objective.kind must be one of {', '.join(objectives())}, got {name!r:.80}.")
    return objectives()[name]


def list_fitting(form: Form) -> list[str]:
    """Names of the objectives that learn from a person's own data of that form, the one that it suits most first."""
    fitting = [one for one in objectives().values() if form in one.forms]
    return [one.name for one in sorted(fitting, key=lambda one: one.forms.index(form))]
