"""What the panel "What if" draws: the edits in words, and what of this model and text can be edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch

from engine.checkpoints import Checkpoint
from engine.edits import ChangeToken, Edit, Source, parts, received
from engine.experiment import Experiment
from engine.reading import SPAN, Reading, kind, known, targeted, tokens
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
    header = {
        "entries": entries,
        "undo": bool(experiment.past),
        "redo": bool(experiment.future),
        "stacks": [stack(checkpoint, plain, lane) for lane in lanes],
        "attentions": attentions(lanes),
        "texts": checkpoint.tokenizer is not None and kind(checkpoint) not in ("picture", "pixels"),
        **notes,
    }
    return pack(header, {})


def stack(checkpoint: Checkpoint, plain: Trace, lane: Lane) -> dict[str, Any]:
    """Of one stack: its tokens, and by block what can be weighed, patched and steered."""
    hooks, side = checkpoint.model.hook_names, lane.side or None
    first = f"{lane.prefix}blocks.0."
    inner = [hook for hook in plain if hook.startswith(first) and plain.dims(hook)[0] == "batch"]
    inner = [hook for hook in inner if "pos" in plain.dims(hook) and plain[hook].is_floating_point()]
    own = [hook for hook in inner if len(plain[hook][0]) == len(lane.pieces) or "key" in plain.dims(hook)]
    counted = [hook for hook in hooks if hook.startswith(lane.prefix) and hook.endswith("position_ids")]
    return {
        "stack": side,
        "layers": lane.config.layers,
        "heads": lane.config.attention.heads,
        "pieces": list(lane.pieces),
        "special": list(lane.special),
        "parts": [parts(hooks, layer, side) for layer in range(lane.config.layers)],  # type: ignore[arg-type]
        "patched": [{"part": hook.removeprefix(first), "axes": plain.dims(hook)[1:]} for hook in own],
        "steered": [hook.removeprefix(first) for hook in own if plain.dims(hook) == ("batch", "pos", "d_model")],
        "positions": bool(counted),
        "turned": any("blocks.0." in hook for hook in counted),
        "tokens": f"{lane.prefix}embed.tokens" in plain,
    }


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
    data = {key: value for key, value in given.items() if key != "text"}
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
        target = list((targeted(checkpoint, ids[:-1]) if rereads else reading.target).ids)
    return asdict(Source(list(ids), target))


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


def mask_payload(trace: Trace, side: str, focus: str, layer: int, head: int) -> bytes:
    """Who may see whom in one head, query key. Raises ValueError for a head that the run does not have."""
    hook = f"{side + '.' if side else ''}blocks.{layer}.{focus}.mask"
    if hook not in trace or not 0 <= head < trace[hook].shape[1]:
        raise ValueError("This run has no such mask; choose another block or head.")
    return pack({}, {"mask": trace[hook][0, head].to(torch.bool)})
