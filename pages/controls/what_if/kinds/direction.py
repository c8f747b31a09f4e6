"""Takes the component along a direction out of what a hook holds, or adds to it."""

from typing import Any

from engine.analysis.steering import unpack_vector
from engine.checkpoints import Checkpoint
from engine.edits import AddDirection, ProjectOut
from pages.controls.what_if.edit_fields import Field, Place, Values, at_field, find_hook, hook_field, number_field
from pages.controls.what_if.edit_form import Form, read_numbers
from pages.controls.what_if.kind import EditKind, EditVariants, edit_name, goes
from views.what_if.edit_words import Terms, chosen
from views.what_if.experiment import Editable, EditableValue

WAYS = {"ProjectOut": "set the component to", "AddDirection": "add"}


def has_vectors(value: EditableValue) -> bool:
    """Tells whether a value's last axis is none of the text."""
    return value.axes[-1][0] not in ("pos", "key")


def choose_direction(form: Form) -> None:
    now = ", ".join(f"{one:g}" if float(f"{one:g}") == one else repr(one) for one in form.values["direction"])
    numbers = form.parsed_text("direction, its length does not count", now, "1, 0, 0.5", read_numbers)
    form.values["direction"] = form.values["direction"] if numbers is None else numbers


def start(way: str) -> Values:
    return {"edit": way} | ({"value": 0.0} if way == "ProjectOut" else {"amount": 1.0, "strength": 1.0})


def bring_file(form: Form) -> None:
    """A steering vector of the page Steering, which takes the place of what the form says."""
    label = "or a steering vector (.safetensors)"
    file = form.below.file_uploader(label, "safetensors", key=form.key(label), max_upload_size=1)
    form.values.pop("file", None)
    if file is not None:
        form.values["file"] = file.getvalue()


def write(values: Values, checkpoint: Checkpoint) -> Values:
    return unpack_vector(values["file"], checkpoint).edit().to_dict() if "file" in values else values


def blank(model: Editable, place: Place) -> Values:
    hook = FIELDS[0].begin(model, place)
    found = find_hook(hook["hook"], model)
    size = found[1].axes[-1][1] if found else 1
    return start("ProjectOut") | hook | {"direction": [1.0, *[0.0] * (size - 1)], "at": {}}


def words(edit: Any, terms: Terms) -> str:
    if isinstance(edit, ProjectOut):
        does = f"component set to {edit.value:g}"
    else:
        does = f"{edit.strength * edit.amount:+g} along a direction"
    return f"{terms.place(edit.hook)}: {does}{chosen(edit.at, edit.hook, terms)}"


FIELDS = (
    hook_field("resid_pre", has_vectors),
    Field(choose_direction),
    number_field("value", "component (0 removes)", 0.0, when=goes(edit_name, "ProjectOut")),
    number_field("amount", "amount", 1.0, when=goes(edit_name, "AddDirection")),
    number_field("strength", "times", 1.0, when=goes(edit_name, "AddDirection")),
    at_field(),
    Field(bring_file, when=goes(edit_name, "AddDirection")),
)
KIND = EditKind(
    name="direction", place=10, title="Direction", about="a component removed or added",
    edits=(ProjectOut, AddDirection), fields=FIELDS, blank=blank, words=words,
    write=write, slider="strength", slider_span=(-4.0, 4.0),
    ways=EditVariants(
        titles=WAYS, of=edit_name, begin=lambda way, form: start(way), kept_fields=("hook", "direction", "at")
    ),
)  # fmt: skip
