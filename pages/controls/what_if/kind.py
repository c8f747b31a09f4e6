"""What a kind of edit is: what it is called, the fields of its form, its words. Each is a file of kinds/."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from engine.checkpoints import Checkpoint
from engine.collect import collect
from engine.edits import Edit
from pages.controls.what_if.edit_fields import Field, Place, Values, find_hook
from pages.controls.what_if.edit_form import Form
from views.what_if.edit_words import Terms
from views.what_if.experiment import Editable

Shown = Mapping[str, Any]  # an edit as `to_form` gives it


@dataclass(frozen=True, kw_only=True)
class EditVariants:
    """Several edits that one form makes, of which the field `label` chooses one among `titles`.

    `of` is the key of the one that the values take, `begin` are the values of another, beside those that are
    `kept_fields`; `offers` tells whether a form has one.
    """

    titles: Mapping[str, str]
    of: Callable[[Values], str]
    begin: Callable[[str, Form], Values]
    kept_fields: Sequence[str]
    label: str = "do"
    offers: Callable[[str, Form], bool] = lambda way, form: True

    def draw(self, form: Form) -> None:
        now = self.of(form.values)
        way = form.select(self.label, {one: self.titles[one] for one in self.titles if self.offers(one, form)}, now)
        if way != now:
            form.replace(self.begin(way, form) | {name: form.values[name] for name in self.kept_fields})


@dataclass(frozen=True, kw_only=True)
class EditKind:
    """`name` stands in what a browser asks for, `title` and `about` in the menu, at its `place`. `edits` are the
    classes of the engine that its form makes, the first of which it begins with, `fields` those of the form, which
    chooses among `ways` where there are several. `words` describe, in a few, those `edits` that no kind before it has.

    `lacking` says why a model that the kind does not fit (`fits`) cannot be edited so. `shows` tells whether the form
    shows an edit whole, and `blank` are the values that it begins with, where the edit's name, its hook and the fields
    do not say so. `read` are the form's values of an edit that it shows, `write` is the edit that such values say.
    A slider beside an edit sets its field `slider`, where it has that, within `slider_span`. `everywhere` are the
    controls of the page Interventions by which what an edit does at its place is done at every one; empty where there
    are none.
    """

    name: str
    place: int
    title: str
    about: str
    edits: tuple[type[Edit], ...]
    fields: Sequence[Field]
    words: Callable[[Any, Terms], str]
    ways: EditVariants | None = None
    fits: Callable[[Editable], bool] = lambda model: True
    lacking: str = ""
    shows: Callable[[Shown, Editable], bool] | None = None
    blank: Callable[[Editable, Place], Values] | None = None
    read: Callable[[Values, Terms], Values] = lambda edit, terms: edit
    write: Callable[[Values, Checkpoint], Values] = lambda values, checkpoint: values
    slider: str = ""
    slider_span: tuple[float, float] = (0.0, 2.0)
    everywhere: Callable[[Any, Terms], Mapping[str, str]] = lambda edit, terms: {}

    def opens(self, edit: Shown, model: Editable) -> bool:
        """Tells whether the form shows this edit whole."""
        return self.shows(edit, model) if self.shows else is_one_of(self.edits, edit, model)

    def begin(self, model: Editable, place: Place) -> Values:
        """Returns the values that the form begins with."""
        return self.blank(model, place) if self.blank else begin_fields(self.edits[0], self.fields, model, place)

    def draw(self, form: Form) -> None:
        """Draws the fields, which write into the form's values."""
        if self.ways:
            self.ways.draw(form)
        for field in self.fields:
            if field.when(form):
                field.draw(form)


def is_one_of(edits: Sequence[type[Edit]], edit: Shown, model: Editable) -> bool:
    """Tells whether an edit is of one of these classes, at a hook that the model has."""
    known = any(edit["edit"] == one.__name__ for one in edits)
    return known and ("hook" not in edit or find_hook(edit["hook"], model) is not None)


def begin_fields(edit: type[Edit], fields: Sequence[Field], model: Editable, place: Place) -> Values:
    """Values of an edit as each of the fields begins."""
    values: Values = {"edit": edit.__name__}
    for field in fields:
        values |= field.begin(model, place)
    return values


def goes(of: Callable[[Values], str], *ways: str) -> Callable[[Form], bool]:
    """Tells of a form whether it goes one of these ways."""
    return lambda form: of(form.values) in ways


def edit_name(values: Values) -> str:
    """The way of a form whose every way is another edit."""
    return str(values["edit"])


@cache
def kinds() -> dict[str, EditKind]:
    """All kinds by name, in the order of the menu."""
    return {one.name: one for one in collect("pages.controls.what_if.kinds", "KIND", EditKind)}


def form_kind(edit: Shown, model: Editable) -> EditKind | None:
    """The kind whose form shows an edit, None where none does."""
    return next((kind for kind in kinds().values() if kind.fits(model) and kind.opens(edit, model)), None)


def kind_of(edit: Edit) -> EditKind:
    return next(kind for kind in kinds().values() if isinstance(edit, kind.edits))


def in_words(edit: Edit, terms: Terms) -> str:
    return kind_of(edit).words(edit, terms)
