"""What the panel "What if" draws: the edits in words, and what of this model and text can be edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from engine.checkpoints import Checkpoint
from engine.edits import ChangeToken, Edit, Source, parts, received
from engine.experiment import Experiment
from engine.processors import PalettePixels
from engine.reading import SPAN, Reading, kind, known, pictures, targeted, tokens
from engine.trace import Trace
from views.edit_words import Terms, in_words
from views.payload import pack
from views.walkthrough import Lane

SOURCES = ("source", "toward", "away")  # fields of an edit that are another run


def panel(
    experiment: Experiment,
    checkpoint: Checkpoint,
    plain: Trace,
    lanes: Sequence[Lane],
    *,
    unfit: Mapping[int, str],
    notes: Mapping[str, Any],
) -> bytes:
    """`plain` is the run without edits, `unfit` why edits, by number, cannot be made here."""
    terms = Terms(lanes, checkpoint.model.hook_names, lambda ids: spelled(checkpoint, ids))
    entries = [
        {
            "words": in_words(entry.edit, terms),
            "on": entry.on,
            "sentence": unfit.get(number, ""),
            "edit": to_form(entry.edit, terms),
        }
        for number, entry in enumerate(experiment.entries)
    ]
    read = kind(checkpoint)
    header = {
        "entries": entries,
        "undo": bool(experiment.past),
        "redo": bool(experiment.future),
        "stacks": [stack(checkpoint, plain, lane) for lane in lanes],
        "attentions": attentions(lanes),
        "others": "none" if read == "picture" else "pictures" if read == "pixels" else "texts",
        "pictures": len(pictures()[0]) if read == "pixels" else 0,
        **notes,
    }
    return pack(header, {})


def stack(checkpoint: Checkpoint, plain: Trace, lane: Lane) -> dict[str, Any]:
    """Of one stack: its tokens, and what can be weighed, patched and steered, in each block and outside of them."""
    hooks, side = checkpoint.model.hook_names, lane.side or None
    first = f"{lane.prefix}blocks.0."
    counted = [hook for hook in hooks if hook.startswith(lane.prefix) and hook.endswith("position_ids")]
    return {
        "stack": side,
        "layers": lane.config.layers,
        "heads": lane.config.attention.heads,
        "pieces": list(lane.pieces),
        "special": list(lane.special),
        "parts": [parts(hooks, layer, side) for layer in range(lane.config.layers)],  # type: ignore[arg-type]
        "inner": [value(plain, hook, first) for hook in plain if hook.startswith(first) and changes(plain, hook)],
        "outer": [value(plain, hook, lane.prefix) for hook in plain if outside(hook, lane) and changes(plain, hook)],
        "positions": bool(counted),
        "turned": any("blocks.0." in hook for hook in counted),
        "tokens": f"{lane.prefix}embed.tokens" in plain,
    }


def changes(plain: Trace, hook: str) -> bool:
    """Whether what it holds depends on the text."""
    return plain.dims(hook)[0] == "batch"


def outside(hook: str, lane: Lane) -> bool:
    """Whether it is one of this stack's, and of no block; what names no stack is the last one's."""
    named = hook.partition(".")[0] in ("encoder", "decoder")
    return "blocks." not in hook and (hook.startswith(lane.prefix) if named else lane.side != "encoder")


def value(plain: Trace, hook: str, before: str) -> dict[str, Any]:
    """A hook by its name behind `before`, with its axes and their sizes, the batch left out."""
    sized = zip(plain.dims(hook)[1:], plain[hook].shape[1:], strict=True)
    return {"part": hook.removeprefix(before), "hook": hook, "axes": [[axis, size] for axis, size in sized]}


def attentions(lanes: Sequence[Lane]) -> list[dict[str, Any]]:
    """Every kind of attention that the model has, as edits name it."""
    found: list[dict[str, Any]] = []
    for lane in lanes:
        heads = {"layers": lane.config.layers, "heads": lane.config.attention.heads, "stack": lane.side or None}
        pieces = {"rows": list(lane.pieces), "keys": list(lane.pieces)}
        found.append({"label": f"{lane.side} self-attention".strip(), "cross": False, **heads, **pieces})
        if lane.config.encoder is not None:
            heads["heads"] = lane.config.cross_attention.heads
            read = {"rows": list(lane.pieces), "keys": list(lanes[0].pieces)}
            found.append({"label": "cross-attention", "cross": True, **heads, **read})
    return found


def spelled(checkpoint: Checkpoint, ids: Sequence[int]) -> str:
    """Ids as a text; as numbers where the checkpoint has no tokenizer."""
    if checkpoint.tokenizer is None:
        return " ".join(map(str, ids))
    return checkpoint.tokenizer.decode(ids, special=False)


def to_form(edit: Edit, terms: Terms) -> dict[str, Any]:
    """An edit as a form shows it: other runs and tokens by their text as well."""
    data = edit.to_dict()
    for field in SOURCES:
        if isinstance(data.get(field), dict):
            data[field]["text"] = terms.read(data[field]["ids"]).strip()
    if isinstance(edit, ChangeToken):
        data["token"] = {"id": edit.token, "text": terms.read([edit.token]).strip()}
    return data


def from_form(data: Mapping[str, Any], checkpoint: Checkpoint, reading: Reading) -> Edit:
    """An edit as a form gives it, in which texts stand for ids. Raises ValueError, with a sentence."""
    made = dict(data)
    for field in SOURCES:
        if isinstance(made.get(field), Mapping):
            made[field] = source(made[field], checkpoint, reading)
    if isinstance(made.get("token"), Mapping):
        made["token"] = token(made["token"], checkpoint)
    return received(made)


def source(given: Mapping[str, Any], checkpoint: Checkpoint, reading: Reading) -> dict[str, Any]:
    """The run of a text that was typed; one that was not typed anew keeps its ids."""
    data = {key: part for key, part in given.items() if key not in ("text", "picture")}
    if "ids" in data:
        return data
    if kind(checkpoint) == "pixels":
        return asdict(Source(other_pixels(given.get("picture"), checkpoint, len(reading.read))))
    text = str(given.get("text", "")).strip()
    if not text:
        raise ValueError("Expected a text to take values from, got none; type one.")
    if kind(checkpoint) == "infill" and SPAN not in text:
        text += SPAN
    ids = tokens(checkpoint, text).ids
    target = None
    if reading.target is not None:  # the decoder reads what it reads now, or the other text again
        rereads = checkpoint.model.config.rereads
        target = list((targeted(checkpoint, ids[:-1]) if rereads else reading.target).ids)
    return asdict(Source(list(ids), target))


def other_pixels(number: Any, checkpoint: Checkpoint, count: int) -> list[int]:
    """The first `count` tokens of a shipped picture, the start token before its pixels."""
    images, processor = pictures()[0], checkpoint.processor
    assert isinstance(processor, PalettePixels)
    if not isinstance(number, int) or not 0 <= number < len(images):
        raise ValueError(f"Expected the number of a picture from 0 to {len(images) - 1}, got {number}; choose one.")
    return [processor.start_id, *processor.ids(images[number]).flatten().tolist()][:count]


def token(given: Mapping[str, Any], checkpoint: Checkpoint) -> int:
    """The one token that a typed text is; where it begins a word, as it does behind a space."""
    if isinstance(given.get("id"), int):
        return int(given["id"])
    text = str(given.get("text", "")).strip()
    if checkpoint.tokenizer is None:
        ids = list(tokens(checkpoint, text).ids)
    else:
        encode = checkpoint.tokenizer.encode
        found = [list(known(checkpoint, encode(before + text, special=False)).ids) for before in ("", " ")]
        exact = checkpoint.tokenizer.special_tokens.get(text)
        ids = [exact] if exact is not None else min(found, key=len)
    if len(ids) != 1:
        pieces = "" if checkpoint.tokenizer is None else " (" + " ".join(map(checkpoint.tokenizer.piece, ids)) + ")"
        raise ValueError(f"Expected one token, and “{text}” is {len(ids)}{pieces}; type a shorter or commoner word.")
    return int(ids[0])


def painted_on(trace: Trace, side: str, focus: str, layer: int, head: int) -> bytes:
    """Of one head, query key: who may see whom, and the weights. Raises ValueError for a head the run does not have."""
    place = f"{side + '.' if side else ''}blocks.{layer}.{focus}"
    if f"{place}.mask" not in trace or not 0 <= head < trace[f"{place}.mask"].shape[1]:
        raise ValueError("This run has no such head; choose another block or head.")
    mask, pattern = (trace[f"{place}.{part}"][0, head] for part in ("mask", "pattern"))
    return pack({}, {"mask": mask.to(torch.bool), "pattern": pattern.float()})
