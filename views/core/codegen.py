"""The lines of Python that make what a page shows, with nothing but the engine: load, read, run, and the number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from engine.budget import budget
from engine.checkpoints import Checkpoint, shipped_names
from engine.edits import Edit
from engine.inputs.readers import Kind
from engine.runtime import library
from engine.runtime.trace import Trace

OWN_PICTURE = "path/to/your/picture.png"
OWN_ADAPTER = "path/to/your/adapter"
OWN_MODEL, OWN_PATH = "path/to/your/checkpoint", "  # put the path of your files here"

Imports = dict[str, set[str]]  # names by module


@dataclass(frozen=True)
class Fields:
    """Contents of a page's fields.

    `picture` is the number of one of Loupe's digits, None for a file of the person's own. At most `limit` tokens are
    read. `conversation`, as JSON has it, is read in place of the text. `settings` (temperature, top_k, top_p) and
    `seed` are those of a model that completes a picture.
    """

    kind: Kind
    limit: int
    text: str = ""
    second: str = ""
    target: str = ""
    span: str = ""
    picture: int | None = None
    given: int = 0
    conversation: Any = None
    settings: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True)
class SelectedValue:
    """The number that is looked at: an element of a hook, `head` None where all heads stand side by side.

    `alone`: a head's pattern, of a run too large to keep every one; the lines keep this hook and no other.
    """

    hook: str
    head: int | None
    row: int
    col: int
    alone: bool = False


def lines(name: str, checkpoint: Checkpoint, given: Fields, trace: Trace, looked: SelectedValue | None = None) -> str:
    """A script that computes `trace`, and binds `values` to the matrix that is looked at.

    It runs wherever the engine can be imported. Raises ValueError for a hook that this run does not have.
    """
    only = looked.hook if looked is not None and looked.alone else None
    imports, opening = run_lines(name, checkpoint, given, trace, only=only)
    shown = [] if looked is None else ["", *value_lines(trace, looked)]
    return "\n".join([*import_lines(imports), "", *opening, *shown]) + "\n"


def run_lines(
    name: str,
    checkpoint: Checkpoint,
    given: Fields,
    trace: Trace,
    *,
    bound: str = "trace",
    only: str | tuple[str, ...] | None = None,
) -> tuple[Imports, list[str]]:
    """Writes the imports, and the lines that load, read and run: they bind `bound`, of all hooks or of some `only`."""
    reads = reading_lines(checkpoint, given)
    made = edit_lines(trace.edits, checkpoint)
    imports = {
        "engine": {"load", "run"},
        "engine.checkpoints": {"read_adapter"} if any(" = read_adapter(" in line for line in made) else set(),
        "engine.edits": edit_names(trace.edits),
        "engine.inputs.ink": {"own_picture"}
        if given.picture is None and given.kind in ("picture", "pixels")
        else set(),
        "engine.conversations": set() if given.conversation is None else {"Conversation"},
        "engine.inputs.readers": reader_names(reads),
    }
    source, note = source_of(name)
    opening = [f"checkpoint = load({source}){note}", *reads, *made]
    whole = "reading.read" if reads[-1].startswith("reading") else "read"
    kept = (only,) if isinstance(only, str) else only
    more = "" if kept is None else f", [{', '.join(map(quote, kept))}]"
    more += ", target=reading.target" if trace.target is not None else ""
    more += ", edits=edits" if made else ""
    opening.append(f"{bound} = run(checkpoint.model, {whole}{more})")
    return imports, opening


def import_lines(imports: Imports) -> list[str]:
    return [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(imports.items()) if names]


def source_of(name: str) -> tuple[str, str]:
    """Arguments of `load` for a checkpoint of the library, and a remark where somebody has to put a path."""
    if name in shipped_names() or name.startswith(library.HUB):
        return quote(name), ""
    if not library.knows(name):
        return (quote(OWN_MODEL), OWN_PATH) if "~" in name else (quote(f"{budget.models_folder}/{name}"), "")
    opening = library.parse_name(name)
    source = opening.source if isinstance(opening.source, str) else opening.source.as_posix()
    given = {"config": dict(opening.config), "rename": dict(opening.rename)}
    more = ["dtype=None"] if opening.dtype is None else []
    more += [f"{key}={value!r}" for key, value in given.items() if value]
    if opening.folder is not None:  # an upload, whose folder is the server's and goes with the last who look at it
        return ", ".join([quote(OWN_MODEL), *more]), OWN_PATH
    return ", ".join([quote(source), *more]), ""


def reading_lines(checkpoint: Checkpoint, given: Fields) -> list[str]:
    """Writes the lines that bind `read`, or `reading` where that takes more than the tokenizer."""
    if given.conversation is not None:
        line = f"conversation = Conversation.from_dict({given.conversation!r})"
        return [line, f"reading = read_conversation(checkpoint, conversation, {given.limit})"]
    text, second, limit = quote(given.text), quote(given.second), given.limit
    match given.kind:
        case "translation":
            target = quote(given.target)
            return [f"reading = read_translation(checkpoint, {text}, {target}, {limit})"]
        case "infill":
            return [f"reading = read_infill(checkpoint, {text}, {quote(given.span)}, {limit})"]
        case "picture":
            return [picture_line(given), f"reading = read_picture(checkpoint, picture, {limit})"]
        case "pixels":
            settings = f"{given.given}, {limit}, {dict(given.settings)!r}, {given.seed}"
            return [picture_line(given), f"reading = read_pixels(checkpoint, picture, {settings})"]
    plain = checkpoint.tokenizer is not None and not checkpoint.model.config.rereads
    if not plain:
        more = f", {second}" if given.second.strip() else ""
        return [f"reading = read_text(checkpoint, {text}, {limit}{more})"]
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None  # as `plain` says
    pair = [given.second] if given.kind in ("pair", "question") and given.second.strip() else []
    cut = f".truncate({limit})" if len(tokenizer.encode(given.text, *pair)) > limit else ""
    return [f"read = checkpoint.tokenizer.encode({', '.join(map(quote, [given.text, *pair]))}){cut}"]


def picture_line(given: Fields) -> str:
    if given.picture is None:
        return f'picture = own_picture(checkpoint, open({quote(OWN_PICTURE)}, "rb"))  # put its path here'
    return f"picture = pictures()[0][{given.picture}]"


def reader_names(reads: Sequence[str]) -> set[str]:
    known = (
        "pictures",
        "read_conversation",
        "read_text",
        "read_translation",
        "read_infill",
        "read_picture",
        "read_pixels",
    )
    return {name for name in known for line in reads if f" {name}(" in line}


def edit_lines(edits: Sequence[Edit], checkpoint: Checkpoint) -> list[str]:
    """Writes the lines that bind `edits`, and before them an `adapter` for each that is applied."""
    if not edits:
        return []
    keys = list(dict.fromkeys(key for edit in edits for key in edit.adapters()))
    names = {key: f"adapter_{i}" if len(keys) > 1 else "adapter" for i, key in enumerate(keys, 1)}
    opening = [f"{name} = {adapter_source(key, checkpoint)}" for key, name in names.items()]
    calls = [edit.to_code(names) for edit in edits]
    if len(calls) == 1:
        return [*opening, f"edits = [{calls[0]}]"]
    return [*opening, "edits = [", *(f"    {call}," for call in calls), "]"]


def adapter_source(key: str, checkpoint: Checkpoint) -> str:
    """The expression for an adapter: one that `load` brings with the checkpoint, or its folder read."""
    keys = [adapter.key for adapter in checkpoint.adapters]
    if key in keys:
        return f"checkpoint.adapters[{keys.index(key)}]"
    folder = library.adapter_folder(key)
    if folder is None:
        return f"read_adapter({quote(OWN_ADAPTER)}, checkpoint){OWN_PATH}"
    return f"read_adapter({quote(folder.as_posix())}, checkpoint)"


def edit_names(edits: Sequence[Edit]) -> set[str]:
    def within(value: Any) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(within, value[:1]))
        if not is_dataclass(value):
            return set()
        return {type(value).__name__}.union(*(within(getattr(value, one.name)) for one in fields(value)))

    return set().union(*map(within, edits))


def value_lines(trace: Trace, looked: SelectedValue) -> list[str]:
    """Writes the lines that bind `values` to a matrix, whose axes a comment names, and print the element that is looked
    at."""
    alone = (f"0, {looked.head}", ("query", "key"))  # of a pattern that `trace` does not hold
    index, axes = alone if looked.alone else hook_index(trace, looked.hook, looked.head)
    flat = looked.head is None and "head" in axes
    where = f"[{index}]" if index else ""
    values = f'values = trace["{looked.hook}"]{where}{".flatten(-2)" if flat else ""}'
    element = f"values[{looked.row}, {looked.col}]" if len(axes) > 1 else f"values[{looked.col}]"
    return [f"{values}  # {' '.join(axes)}", f"print({element}.item())"]


def hook_index(trace: Trace, hook: str, head: int | None) -> tuple[str, tuple[str, ...]]:
    """The index that takes the first text and one head of a hook's value, and the axes that are left.

    Raises ValueError for a hook that this run does not have, and for a head that it does not have.
    """
    if hook not in trace:
        raise ValueError(f"this run has no {hook[:100]!r}; ask for one that it has.")
    dims = trace.dims(hook)
    chosen = {"batch": 0} | ({} if head is None else {"head": head})
    if head is not None and "head" in dims and not 0 <= head < trace[hook].shape[dims.index("head")]:
        raise ValueError(f"head must be in 0..{trace[hook].shape[dims.index('head')] - 1}, got {head}.")
    parts = [str(chosen[axis]) if axis in chosen else ":" for axis in dims]
    while parts and parts[-1] == ":":
        parts.pop()
    return ", ".join(parts), tuple(axis for axis in dims if axis not in chosen)


def quote(text: str) -> str:
    """A text as Python writes it, in double quotes where nothing in it would have to be escaped."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)
