"""What one objective declares of itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.data.kinds import data_kinds
from engine.data.kinds.preferences import Preferences
from engine.data.own import Form
from engine.data.task import DataKind
from engine.model.config import HeadKind, ModelConfig
from engine.model.transformer import Transformer
from engine.training.learner import Learner, LearnerContext

if TYPE_CHECKING:
    from engine.training.recipe.recipe import Recipe
    from engine.training.sources.source import Source
    from engine.training.trainer import Trainer

PRESENT = object()  # an optional part, whatever it holds

ONE_AXIS = {"positions.axes": 1}
LANGUAGE = {"head.kind": "language", "encoder": None}
CAUSAL = LANGUAGE | {"attention.mask": "causal"} | ONE_AXIS
WHOLE = {"attention.mask": {"prefix": "full"}}  # without a gap nothing says where a prefix ends: all of it is one


@dataclass(frozen=True)
class ObjectiveKind:
    """An objective that a recipe can name.

    It `learns` from tables [data.*] of these kinds, each by what makes examples of it; the first that fits counts.
    `unit` is what its loss is the mean of. `measure` gives what a finished model is measured by on
    data it never saw, and `sample` what it does with some of it; both are called with the model in
    evaluation. `learner` makes its updates.

    `needs` is what its model's config must say, by dotted key; `of_data` is the same for some kinds of data alone.
    `never` has what a value must not be, and what stands for it in a model that is made to suit. With `two_axes`
    positions count a gap's and a span's places apart where a model is made to suit, if their kind can. `head` is the
    one that a base is given, and `marks` are the tokens that its tokenizer must have. With `joins` the two texts of a
    pair stand in one row, with the data's separator between them.

    `whole`: its forward pass is neither compiled nor held in parts. `attach` puts beside a model what learns with it.
    `settings` are the groups of options of [preference] that it has, and `beta` says what that one does; of an
    objective that draws answers, `least_answers` is the fewest to a prompt. `check` raises ValueError for another fault
    of a recipe, and `check_start` for what its base lacks, or for none.

    `title` names it where that is not its name with spaces. `asks` says for what it asks where that is less than every
    token.

    For a person's own data: the `forms` that it learns from, the one that suits it most first, the task whose recipe it
    begins with, `like`, and what is said `about` it.
    """

    name: str
    place: int
    learns: Mapping[type[DataKind], Callable[[Recipe, Path], Source]]
    measure: Callable[[Trainer], dict[str, Any]]
    sample: Callable[[Trainer], str]
    unit: str = "nats a token"
    learner: Callable[[LearnerContext], Learner] = Learner
    needs: Mapping[str, Any] = field(default_factory=dict)
    of_data: Mapping[type[DataKind], Mapping[str, Any]] = field(default_factory=dict)
    never: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    two_axes: bool = False
    head: HeadKind = "language"
    marks: tuple[str, ...] = ()
    joins: bool = False
    whole: bool = False
    attach: Callable[[Transformer], object] | None = None
    settings: tuple[type, ...] = ()
    beta: str = "The price of leaving the base: the larger, the closer the policy stays."
    least_answers: int = 0
    check: Callable[[Recipe], None] | None = None
    check_start: Callable[[Recipe], object] | None = None
    title: str = ""
    asks: str = ""
    forms: tuple[Form, ...] = ()
    like: str = ""
    about: str = ""

    @cached_property
    def sources(self) -> Mapping[str, Callable[[Recipe, Path], Source]]:
        """Constructors of sources of examples, by the name of the data."""
        return {
            name: next(make for kind, make in self.learns.items() if issubclass(one, kind))
            for name, one in data_kinds().items()
            if issubclass(one, tuple(self.learns))
        }

    @property
    def option_names(self) -> set[str]:
        """Names of its options of [preference]."""
        return {option.name for group in self.settings for option in fields(group)}

    @property
    def fills_gaps(self) -> bool:
        """Tells whether its model has the marks of gaps."""
        return "infill" in self.needs

    @property
    def from_preferences(self) -> bool:
        return Preferences in self.learns

    def needs_of(self, data: str) -> Mapping[str, Any]:
        """Values that the model's config must have where the table `data` is learned from; "" stands for any."""
        one = data_kinds().get(data, DataKind)
        return {**self.needs, **next((more for kind, more in self.of_data.items() if issubclass(one, kind)), {})}

    @property
    def moves_policy(self) -> bool:
        """Tells whether what learns from preferences is a model that writes."""
        return self.from_preferences and self.head == "language"

    @property
    def makes_judge(self) -> bool:
        """Tells whether what learns from preferences is a reward model."""
        return self.from_preferences and self.head == "sequence"

    def check_model(self, config: ModelConfig, data: str = "") -> None:
        """Raises ValueError for a model that cannot learn so, from the table `data` where one is given."""
        for key, wanted in self.needs_of(data).items():
            value = reduce(getattr, key.split("."), config)
            if value is None if wanted is PRESENT else value != wanted:
                expected = "given" if wanted is PRESENT else "left out" if wanted is None else repr(wanted)
                raise ValueError(f'model.{key} must be {expected} for objective.kind "{self.name}", got {value!r}.')
        for key, instead in self.never.items():
            value = reduce(getattr, key.split("."), config)
            if value in instead:
                raise ValueError(
                    f'model.{key} must not be {value!r} for objective.kind "{self.name}"; it stands for '
                    f"{instead[value]!r} there, so write that."
                )
