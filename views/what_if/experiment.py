"""What the panel "What if" draws: the edits in words, and what of this model and text can be edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from engine.checkpoints import Checkpoint
from engine.edits import Edit, parts, validate_edit
from engine.edits.experiment import Experiment
from engine.inputs.readers import GAP, SPAN, Reading, kind, pictures
from engine.runtime.trace import Trace
from views.core.payload import pack
from views.walkthrough.walkthrough import Lane
from views.what_if.edit_sources import SOURCES, source, to_form, token
from views.what_if.edit_words import Terms, in_words


def panel(
    experiment: Experiment,
    checkpoint: Checkpoint,
    plain: Trace,
    lanes: Sequence[Lane],
    *,
    unfit: Mapping[int, str],
    notes: Mapping[str, Any],
) -> bytes:
    """`plain` is the run without edits, or one on the beginning of it, for what values there are; `unfit` says why
    edits, by number, cannot be made here.
    """
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
        "stacks": [stack(checkpoint, plain, lane, lanes[0]) for lane in lanes],
        "attentions": attentions(lanes),
        "others": "pictures" if read in ("picture", "pixels") else "texts",
        "closed": closed(checkpoint),
        "pictures": len(pictures()[0]) if read in ("picture", "pixels") else 0,
        **notes,
    }
    return pack(header, {})


def closed(checkpoint: Checkpoint) -> bool:
    """Tells whether every text ends in the same token, at which two of them hold much the same."""
    tokenizer = checkpoint.tokenizer
    return kind(checkpoint) == "infill" or (tokenizer is not None and tokenizer.encode("").special[-1:] == (True,))


def stack(checkpoint: Checkpoint, plain: Trace, lane: Lane, encoder: Lane) -> dict[str, Any]:
    """Describes one stack: its tokens, and what can be weighed, patched and steered, in each block and outside of
    them."""
    hooks, side = checkpoint.model.hook_names, lane.side or None
    first = f"{lane.prefix}blocks.0."
    counted = [hook for hook in hooks if hook.startswith(lane.prefix) and hook.endswith("position_ids")]
    more = {"own": unread(plain, lane), "encoder": unread(plain, encoder)}
    held = [hook for hook in plain if changes(plain, hook)]
    return {
        "stack": side,
        "layers": lane.config.layers,
        "heads": lane.config.attention.heads,
        "pieces": list(lane.pieces),
        "special": list(lane.special),
        "parts": [parts(hooks, layer, side) for layer in range(lane.config.layers)],  # type: ignore[arg-type]
        "inner": [value(plain, hook, first, more) for hook in held if hook.startswith(first)],
        "outer": [value(plain, hook, lane.prefix, more) for hook in held if outside(hook, lane)],
        "positions": bool(counted),
        "turned": any("blocks.0." in hook for hook in counted),
        "tokens": f"{lane.prefix}embed.tokens" in plain,
    }


def unread(plain: Trace, lane: Lane) -> int:
    """Number of tokens of a stack `plain` did not read."""
    return len(lane.pieces) - plain[f"{lane.prefix}blocks.0.resid_pre"].shape[1]


def changes(plain: Trace, hook: str) -> bool:
    """Tells whether what it holds depends on the text."""
    return plain.dims(hook)[0] == "batch"


def outside(hook: str, lane: Lane) -> bool:
    """Tells whether a hook is one of this stack's, and of no block; what names no stack is the last one's."""
    named = hook.partition(".")[0] in ("encoder", "decoder")
    return "blocks." not in hook and (hook.startswith(lane.prefix) if named else lane.side != "encoder")


def value(plain: Trace, hook: str, before: str, more: Mapping[str, int]) -> dict[str, Any]:
    """A hook by its name behind `before`, with its axes and their sizes in the whole text, the batch left out."""
    keys = more["encoder" if ".cross_attn." in hook else "own"]
    longer = {"pos": more["own"], "key": keys}
    sized = zip(plain.dims(hook)[1:], plain[hook].shape[1:], strict=True)
    axes = [[axis, size + longer.get(axis, 0)] for axis, size in sized]
    return {"part": hook.removeprefix(before), "hook": hook, "axes": axes}


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
    """Ids as a text, in which masks and gaps stand as they are typed; as numbers where there is no tokenizer."""
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        return " ".join(map(str, ids))
    typed = {tokenizer.mask_id, tokenizer.special_tokens.get(GAP)}
    parts: list[str] = []
    for marked, group in groupby(ids, lambda id: id in typed):
        some = list(group)
        parts += map(tokenizer.piece, some) if marked else [tokenizer.decode(some, special=False)]
    end = SPAN if kind(checkpoint) == "infill" else ""
    written = [" ".join(part.strip() for part in parts), "".join(parts)]  # where spaces are no tokens, where they are
    return next((text for text in written if list(tokenizer.encode(text + end).ids) == list(ids)), written[0])


def from_form(data: Mapping[str, Any], checkpoint: Checkpoint, reading: Reading, was: Edit | None = None) -> Edit:
    """An edit as a form gives it, in which texts and pictures stand for what is read of them.

    `was` is the edit that the form was opened on. Raises ValueError, with a sentence.
    """
    made = dict(data)
    for field in SOURCES:
        if isinstance(made.get(field), Mapping):
            made[field] = source(made[field], checkpoint, reading, getattr(was, field, None))
    if isinstance(made.get("token"), Mapping):
        made["token"] = token(made["token"], checkpoint)
    return validate_edit(made)
