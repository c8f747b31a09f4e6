"""What the panel "What if" draws: the edits in words, and what of this model and text can be edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from engine.checkpoints import Checkpoint
from engine.edits import Edit, keep_adapter, parts, validate_edit
from engine.edits.experiment import Experiment
from engine.inputs.readers import GAP, SPAN, Reading, kind, pictures
from engine.model.config import Experts
from engine.model.layers.lora import Adapter, check_fits
from engine.runtime.trace import Trace
from views.core.lanes import Lane
from views.core.payload import pack
from views.what_if.edit_sources import source, source_fields
from views.what_if.edit_words import Terms


@dataclass(frozen=True)
class EditableValue:
    """A hook by its name behind that of its block (`part`) and whole, with its axes and their sizes in the whole text,
    the batch left out; `layers` are the blocks that have it."""

    part: str
    hook: str
    axes: Sequence[tuple[str, int]]
    layers: Sequence[int] = ()


@dataclass(frozen=True)
class EditableStack:
    """Stack: its tokens, and what can be weighed, patched and steered, in each block and outside of them.

    `positions`: whether they can be changed; `turned`: the blocks in which alone they can; `tokens`: whether it embeds
    any; `experts`: those of the blocks that have them.
    """

    stack: str | None
    prefix: str
    layers: int
    pieces: Sequence[str]
    parts: Sequence[Mapping[str, str]]
    inner: Sequence[EditableValue]
    outer: Sequence[EditableValue]
    positions: bool
    turned: Sequence[int]
    tokens: bool
    experts: Mapping[int, Experts]


@dataclass(frozen=True)
class EditableAttention:
    """A kind of attention as edits name it, with the tokens of its rows and of its columns."""

    label: str
    stack: str | None
    cross: bool
    layers: int
    heads: int
    rows: Sequence[str]
    keys: Sequence[str]


@dataclass(frozen=True)
class Editable:
    """Parts of a model and its text that can be edited. `closed`: every text ends in the same token, at which two of
    them hold much the same; `pictures`: how many shipped ones there are to take values from, of a model that reads
    texts 0; `shown`: what the picture of the page is called; `terms`: the words for an edit; `adapters`: those that fit
    this model, what they are called by their keys; `merged`: whether its weights hold the first of them.
    """

    stacks: Sequence[EditableStack]
    attentions: Sequence[EditableAttention]
    closed: bool
    pictures: int
    shown: str
    terms: Terms
    adapters: Mapping[str, str]
    merged: bool

    @property
    def shape(self) -> Any:
        """Key that is the same for models with the same edits, whatever the text."""
        held = [[value.part for value in (*each.inner, *each.outer)] for each in self.stacks]
        stacks = [(each.stack, each.layers) for each in self.stacks]
        return held, stacks, [(each.label, each.layers, each.heads) for each in self.attentions], list(self.adapters)


def panel(
    experiment: Experiment,
    words: Sequence[str],
    strengths: Mapping[int, tuple[float, float, float]],
    unfit: Mapping[int, str],
    notes: Mapping[str, Any],
) -> bytes:
    """The edits, in `words`; by number the `strengths` of those with a slider, with its ends, and why others cannot be
    made here."""
    entries = [
        {"words": words[number], "on": entry.on, "sentence": unfit.get(number, "")}
        | ({"strength": list(strengths[number])} if number in strengths else {})
        for number, entry in enumerate(experiment.entries)
    ]
    return pack({"entries": entries, "undo": bool(experiment.past), "redo": bool(experiment.future), **notes}, {})


def editable(
    checkpoint: Checkpoint, plain: Trace, lanes: Sequence[Lane], shown: str = "", adapters: Sequence[Adapter] = ()
) -> Editable:
    """`plain` is the run without edits, or one on the beginning of it, for what values there are; `adapters` are those
    that are here, whatever model they were made for."""
    return Editable(
        stacks=[editable_stack(checkpoint, plain, lane, lanes[0]) for lane in lanes],
        attentions=editable_attentions(lanes),
        closed=is_closed(checkpoint),
        pictures=len(pictures()[0]) if kind(checkpoint) in ("picture", "pixels") else 0,
        shown=shown,
        terms=Terms(lanes, checkpoint.model.hook_names, lambda ids: spell(checkpoint, ids)),
        adapters=fitting_adapters(checkpoint, adapters),
        merged=bool(checkpoint.adapters),
    )


def fitting_adapters(checkpoint: Checkpoint, adapters: Sequence[Adapter]) -> dict[str, str]:
    """Names of the adapters that fit the model, by their keys; adapters of one name are called by the whole key."""
    found: dict[str, Adapter] = {}
    for adapter in adapters:
        try:
            check_fits(adapter, checkpoint.model)
        except ValueError:
            continue
        found[keep_adapter(adapter)] = adapter
    names = [adapter.name for adapter in found.values()]
    return {
        key: f"{key if names.count(adapter.name) > 1 else adapter.name} (rank {adapter.rank})"
        for key, adapter in found.items()
    }


def is_closed(checkpoint: Checkpoint) -> bool:
    tokenizer = checkpoint.tokenizer
    return kind(checkpoint) == "infill" or (tokenizer is not None and tokenizer.encode("").special[-1:] == (True,))


def editable_stack(checkpoint: Checkpoint, plain: Trace, lane: Lane, encoder: Lane) -> EditableStack:
    hooks, side = checkpoint.model.hook_names, lane.side or None
    counted = [hook for hook in hooks if hook.startswith(lane.prefix) and hook.endswith("position_ids")]
    more = {"own": unread(plain, lane), "encoder": unread(plain, encoder)}
    held = [hook for hook in plain if depends_on_text(plain, hook)]
    return EditableStack(
        stack=side,
        prefix=lane.prefix,
        layers=lane.config.layers,
        pieces=lane.pieces,
        parts=[parts(hooks, layer, side) for layer in range(lane.config.layers)],  # type: ignore[arg-type]
        inner=inner_values(plain, held, lane, more),
        outer=[editable_value(plain, hook, lane.prefix, more) for hook in held if is_outside(hook, lane)],
        positions=bool(counted),
        turned=[
            layer for layer in range(lane.config.layers) if f"{lane.prefix}blocks.{layer}.attn.position_ids" in hooks
        ],
        tokens=f"{lane.prefix}embed.tokens" in plain,
        experts=lane.config.experts_by_layer,
    )


def inner_values(plain: Trace, held: Sequence[str], lane: Lane, more: Mapping[str, int]) -> list[EditableValue]:
    """Lists what blocks hold, each by the first block that has it: blocks may differ."""
    found: dict[str, list[int]] = {}
    for layer in range(lane.config.layers):
        block = f"{lane.prefix}blocks.{layer}."
        for hook in held:
            if hook.startswith(block):
                found.setdefault(hook.removeprefix(block), []).append(layer)
    return [
        replace(
            editable_value(plain, f"{lane.prefix}blocks.{layers[0]}.{part}", f"{lane.prefix}blocks.{layers[0]}.", more),
            layers=layers,
        )
        for part, layers in found.items()
    ]


def unread(plain: Trace, lane: Lane) -> int:
    """Number of tokens of a stack `plain` did not read."""
    return len(lane.pieces) - plain[f"{lane.prefix}blocks.0.resid_pre"].shape[1]


def depends_on_text(plain: Trace, hook: str) -> bool:
    return plain.dims(hook)[0] == "batch"


def is_outside(hook: str, lane: Lane) -> bool:
    """Tells whether a hook is one of this stack's, and of no block; what names no stack is the last one's."""
    named = hook.partition(".")[0] in ("encoder", "decoder")
    return "blocks." not in hook and (hook.startswith(lane.prefix) if named else lane.side != "encoder")


def editable_value(plain: Trace, hook: str, before: str, more: Mapping[str, int]) -> EditableValue:
    keys = more["encoder" if ".cross_attn." in hook else "own"]
    longer = {"pos": more["own"], "key": keys}
    sized = zip(plain.dims(hook)[1:], plain[hook].shape[1:], strict=True)
    axes = [(axis, size + longer.get(axis, 0)) for axis, size in sized]
    return EditableValue(hook.removeprefix(before), hook, axes)


def editable_attentions(lanes: Sequence[Lane]) -> list[EditableAttention]:
    found = []
    for lane in lanes:
        config, side, rows = lane.config, lane.side or None, lane.pieces
        label = f"{lane.side} self-attention".strip()
        found.append(EditableAttention(label, side, False, config.layers, config.attention.heads, rows, rows))
        if config.encoder is not None:
            heads, keys = config.cross_attention.heads, lanes[0].pieces
            found.append(EditableAttention("cross-attention", side, True, config.layers, heads, rows, keys))
    return found


def spell(checkpoint: Checkpoint, ids: Sequence[int]) -> str:
    """Ids as a text, in which masks and gaps stand as they are typed; as numbers where there is no tokenizer."""
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        return " ".join(map(str, ids))
    typed = {tokenizer.mask_id, tokenizer.special_tokens.get(GAP)}
    parts: list[str] = []
    before: list[str] = []  # the same, with a space before a mark, which it may take in
    for marked, group in groupby(ids, lambda id: id in typed):
        some = list(group)
        added = list(map(tokenizer.piece, some)) if marked else [tokenizer.decode(some, special=False)]
        before += [" " * (marked and bool(parts) and not parts[-1].endswith(" ")), *added]
        parts += added
    end = SPAN if kind(checkpoint) == "infill" else ""
    written = [" ".join(part.strip() for part in parts), "".join(before), "".join(parts)]  # spaces may be tokens
    return next((text for text in written if list(tokenizer.encode(text + end).ids) == list(ids)), written[0])


def from_form(data: Mapping[str, Any], checkpoint: Checkpoint, reading: Reading, was: Edit | None = None) -> Edit:
    """An edit as a form gives it, in which texts and pictures stand for what is read of them.

    `was` is the edit that the form was opened on. Raises ValueError, with a sentence.
    """
    made = dict(data)
    for field in source_fields(Edit.kinds[made["edit"]]) if made.get("edit") in Edit.kinds else ():
        if isinstance(made.get(field), Mapping):
            made[field] = source(made[field], checkpoint, reading, getattr(was, field, None))
    return validate_edit(made)
