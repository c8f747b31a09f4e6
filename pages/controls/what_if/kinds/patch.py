"""Takes a value from another run."""

from typing import Any

from engine.edits import Patch
from pages.controls.what_if.edit_fields import (
    SAME,
    Field,
    Place,
    Values,
    at_field,
    blank_source,
    find_hook,
    hook_field,
    parse_hook,
    read_source,
    source_field,
    what_others,
)
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind, Shown, begin_fields, is_one_of
from views.what_if.edit_words import Terms, chosen, head_words, source_words
from views.what_if.experiment import Editable


def choose_origin(form: Form) -> None:
    """Draws the choice of a value's source: another text, or this one without edits."""
    values, what = form.values, what_others(form.model)
    other = values["source"] is not None
    chosen = form.select("taken from", {True: f"another {what}", False: f"this {what}, without edits"}, other)
    if chosen != other:
        values["source"] = blank_source(form.model) if chosen else None


def choose_other_value(form: Form) -> None:
    """The value of the other run: the same, or one of its shape."""
    found = find_hook(form.values["hook"], form.model)
    if found is None or found[2].layer is None:
        form.values["source_hook"] = None
        return
    own, held, where = found
    options = {SAME: SAME}
    for block in range(own.layers):
        for one in (one for one in own.inner if one.axes == held.axes):
            name = f"{own.prefix}blocks.{block}.{one.part}"
            if name != form.values["hook"] or where.layer == "*":
                options[name] = f"block {block + 1}, {one.part}"
    chosen = form.select("its value", options, form.values.get("source_hook") or SAME)
    form.values["source_hook"] = None if chosen == SAME else chosen


def choose_other_token(form: Form) -> None:
    """The number of the other run's token, of a value by token; none stands for the same."""
    values, found = form.values, find_hook(form.values["hook"], form.model)
    now, values["source_at"] = (values["source_at"] or {}).get("pos"), None
    if found and found[1].axes[:1] and found[1].axes[0][0] == "pos" and values["at"].get("pos"):
        there = form.whole_number("its token number", now, 0, 2**31, hint="same")
        values["source_at"] = None if there is None else {"pos": there}


def shows(edit: Shown, model: Editable) -> bool:
    """Asks whether the source is the same place but for its token, which is all that the form asks of it."""
    if not is_one_of((Patch,), edit, model):
        return False
    there = edit.get("source_at")
    rest, own = ({axis: i for axis, i in (at or {}).items() if axis != "pos"} for at in (there, edit["at"]))
    alike = there is None or (rest == own and isinstance(there.get("pos", 0), int))
    hook = edit.get("source_hook")
    return alike and (not hook or isinstance(parse_hook(hook).layer, int))


def blank(model: Editable, place: Place) -> Values:
    at = {"pos": [min(place.row, len(model.stacks[-1].pieces) - 1)]}
    return begin_fields(Patch, FIELDS, model, place) | {"at": at, "source_hook": None, "source_at": None}


def read(edit: Values, terms: Terms) -> Values:
    return edit | {"source": read_source(edit["source"])}


def write(values: Values, checkpoint: object) -> Values:
    """Heads and the like are those of `at` there as well: only the token may be another one."""
    there = values["source_at"]
    return values | {"source_at": values["at"] | there} if there else values


def words(edit: Any, terms: Terms) -> str:
    hook, source, other = edit.hook, edit.source, edit.source_hook
    if source is None and str(other).endswith(".pattern"):
        there = head_words(other, edit.source_at or {}, terms)
        return f"{head_words(hook, edit.at, terms)}: as {there} attends"
    taken = f"{terms.place(other)} in " if other and other != hook else "in "
    return f"{terms.place(hook)}{chosen(edit.at, hook, terms)}: as {taken}{source_words(source, terms)}"


def everywhere(edit: Any, terms: Terms) -> dict[str, str]:
    """Every place with the value that the other text has there."""
    source = edit.source
    if source is None or source.pixels is not None or source.target is not None or source.edits:
        return {}
    return {"other": "text", "other_text": terms.read(source.ids).strip(), "direction": "break"}


FIELDS = (
    hook_field("resid_post"),
    Field(choose_origin),
    source_field(
        "source",
        "the other {what}",
        "the same text with another word in it",
        when=lambda form: form.values["source"] is not None,
    ),
    Field(choose_other_value),
    at_field(),
    Field(choose_other_token),
)
KIND = EditKind(
    name="patch", place=7, title="Patch", about="a value from another run", edits=(Patch,), fields=FIELDS, shows=shows,
    blank=blank, read=read, write=write, words=words, everywhere=everywhere,
)  # fmt: skip
