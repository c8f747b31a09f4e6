"""What an edit takes its values from, as a form gives it: another text, another picture, a token by its spelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, get_args, get_type_hints

import numpy as np
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.edits import Edit, Source
from engine.inputs.processors import ImageProcessor, PalettePixels
from engine.inputs.readers import SPAN, Reading, kind, pictures, require_known_ids, shift_target, tokens
from views.what_if.edit_words import Terms

OWN_PICTURE = "the picture that was shown"


def source_fields(kind: type[Edit]) -> list[str]:
    """Fields of a kind of edit that are another run."""
    hints = get_type_hints(kind)
    return [each.name for each in fields(kind) if Source in (hints[each.name], *get_args(hints[each.name]))]  # type: ignore[arg-type]


def to_form(edit: Edit, terms: Terms) -> dict[str, Any]:
    """An edit as a form shows it: other runs by their text as well, pictures by their name alone."""
    data = edit.to_dict()
    for field in source_fields(type(edit)):
        if isinstance(data.get(field), dict):
            data[field]["text"] = terms.read(data[field]["ids"]).strip()
            if data[field].pop("pixels") is not None:  # too many to travel with every answer
                data[field]["kept"] = True
    return data


def source(given: Mapping[str, Any], checkpoint: Checkpoint, reading: Reading, was: Source | None) -> dict[str, Any]:
    """The run of a text that was typed or of a picture that was chosen; of one that was not chosen anew, `was`."""
    if given.get("kept"):
        if was is None:
            raise ValueError("The image of this edit was deleted; choose it again.")
        return asdict(was)
    if "picture" in given:
        return asdict(other_picture(given["picture"], str(given.get("name", "")), checkpoint, reading))
    data = {key: part for key, part in given.items() if key != "text"}
    if "ids" in data:
        return data
    text = str(given.get("text", "")).strip()
    if not text:
        raise ValueError("Expected a text to take values from, got none; type one.")
    if kind(checkpoint) == "infill" and SPAN not in text:
        text += SPAN
    ids = tokens(checkpoint, text).ids
    target = None
    if reading.target is not None:  # the decoder reads what it reads now, or the other text again
        rereads = checkpoint.model.config.rereads
        target = list((shift_target(checkpoint, ids[:-1]) if rereads else reading.target).ids)
    return asdict(Source(list(ids), target))


def other_picture(number: Any, name: str, checkpoint: Checkpoint, reading: Reading) -> Source:
    """A shipped picture by its number, as far as the one that is shown is read; None: the one that is shown, kept."""
    images, processor = pictures()[0], checkpoint.processor
    if number is None:
        read = reading.read
        if isinstance(read, Tensor):
            return Source(pixels=exact(read[0]), name=name or OWN_PICTURE)
        return Source(list(read.ids), name=name or OWN_PICTURE)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(images):
        raise ValueError(f"Expected the number of a picture from 0 to {len(images) - 1}, got {number}; choose one.")
    named = f"picture {number}"
    if isinstance(processor, PalettePixels):
        start = [processor.start_id] if kind(checkpoint) == "pixels" else []
        return Source([*start, *processor.ids(images[number]).flatten().tolist()][: len(reading.read)], name=named)
    if not isinstance(processor, ImageProcessor):
        raise ValueError("Expected a model of pictures to take one from; this one reads texts, type one.")
    return Source(pixels=exact(processor.pixels(images[number])[0]), name=named)


def exact(pixels: Tensor) -> list[list[list[float]]]:
    """Writes a number with as few digits as bring every float32 back: what a link holds is short."""
    values = pixels.cpu().float().numpy()
    return [[[float(np.format_float_positional(x)) for x in row] for row in channel] for channel in values]


def token(given: Mapping[str, Any], checkpoint: Checkpoint) -> int:
    """The one token that a typed text is; where it begins a word, as it does behind a space."""
    if isinstance(given.get("id"), int):
        return int(given["id"])
    text = str(given.get("text", "")).strip()
    if checkpoint.tokenizer is None:
        ids = list(tokens(checkpoint, text).ids)
    else:
        encode = checkpoint.tokenizer.encode
        found = [list(require_known_ids(checkpoint, encode(before + text, special=False)).ids) for before in ("", " ")]
        special = checkpoint.tokenizer.special_tokens.get(text)
        ids = [special] if special is not None else min(found, key=len)
    if len(ids) != 1:
        pieces = "" if checkpoint.tokenizer is None else " (" + " ".join(map(checkpoint.tokenizer.piece, ids)) + ")"
        raise ValueError(f"Expected one token, and “{text}” is {len(ids)}{pieces}; type a shorter or commoner word.")
    return int(ids[0])
