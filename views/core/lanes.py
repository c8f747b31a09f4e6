"""Stacks of a model with what each reads, and the entries about them that every view of a run sends."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.analysis.heads import CrossScores, HeadScores, cross_scores, head_scores
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.inputs.processors import PalettePixels
from engine.inputs.readers import Reading, row_and_column
from engine.model.config import ModelConfig
from engine.model.hooks import Axes
from engine.model.layers.position import infill_positions
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding

OF_A_TEXT = ("d_model", "d_embed", "class", "pooled", "component")
ONCE: tuple[Axes, ...] = tuple(("batch", axis) for axis in OF_A_TEXT)  # a text has one of these


def digest(name: str, trace: Trace) -> str:
    """An unguessable-enough name for one run of one model, the same for the same run."""
    target = None if trace.target is None else trace.target.tolist()
    made_of = (name, trace.ids.tolist(), target, [edit.to_dict() for edit in trace.edits])
    return hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Lane:
    """Stack of a model and what it reads: "encoder", "decoder", or "" where there is one stack only.

    `positions` are the two ids of every token where it has two. `grid` is how the rows stand in a picture. `letters`
    are those that several tokens are the parts of (Encoding.letters_in_parts), `roles` whose turn of a conversation
    each token is part of, none of a text.
    """

    side: str
    config: ModelConfig
    pieces: Sequence[str]
    ids: Sequence[int]
    special: Sequence[bool] = ()
    segments: Sequence[int] = ()
    positions: Sequence[Sequence[int]] = ()
    grid: Mapping[str, Any] | None = None
    letters: Sequence[tuple[int, int, str]] = ()
    roles: Sequence[str] = ()

    @property
    def prefix(self) -> str:
        return f"{self.side}." if self.side else ""


def lanes(checkpoint: Checkpoint, reading: Reading) -> list[Lane]:
    """The stacks of a checkpoint with what each reads, the encoder first."""
    config, read = checkpoint.model.config, reading.read
    if isinstance(read, Tensor):
        side = config.embedding.patches.side if config.embedding.patches else 1
        before = config.embedding.patches.names_before if config.embedding.patches else ("[CLS]",)
        pieces = [*before, *(row_and_column(i, side) for i in range(side**2))]
        grid = {"side": side, "offset": len(before), "first": " and ".join(before), "predicts": False}
        return [Lane("", config, pieces, (), special=[*[True] * len(before), *[False] * side**2], grid=grid)]
    if isinstance(checkpoint.processor, PalettePixels):
        return [text_lane("", config, read, grid=pixel_grid(checkpoint.processor, reading))]
    if config.encoder is None:
        return [text_lane("", config, read)]
    target = reading.target or Encoding.from_ids([config.encoder.start])
    return [text_lane("encoder", config.encoder_stack, read), text_lane("decoder", config, target)]


def is_long(lanes: Sequence[Lane]) -> bool:
    """Tells whether a page cannot draw every weight."""
    return max(len(lane.pieces) for lane in lanes) > budget.max_tokens


def pixel_grid(processor: PalettePixels, reading: Reading) -> Mapping[str, Any]:
    """Positions of a picture that is completed, behind its start token, or of one that is read whole."""
    side = processor.image.size[1]
    if reading.original is None:
        return {"side": side, "offset": 0, "first": "", "predicts": False}
    return {"side": side, "offset": 1, "first": "the start token", "predicts": True, "given": reading.given}


def text_lane(side: str, config: ModelConfig, read: Encoding, grid: Mapping[str, Any] | None = None) -> Lane:
    positions: list[list[int]] = []
    if config.infill is not None and config.positions.axes == 2:
        positions = infill_positions(torch.tensor([read.ids]), config.infill)[:, 0].tolist()
    letters = read.letters_in_parts()
    return Lane(side, config, read.pieces, read.ids, read.special, read.segments, positions, grid, letters, read.roles)


def measure_heads(trace: Trace, lanes: Sequence[Lane]) -> dict[str, HeadScores | CrossScores]:
    """Measures what every attention does on this text: "attn", or "encoder.attn", "decoder.attn" and
    "decoder.cross_attn"."""
    measured: dict[str, HeadScores | CrossScores] = {
        f"{lane.prefix}attn": head_scores(trace, lane.side) for lane in lanes
    }
    return measured | ({"decoder.cross_attn": cross_scores(trace)} if len(lanes) > 1 else {})


def lane_header(trace: Trace, lane: Lane) -> dict[str, Any]:
    prefix = f"{lane.prefix}blocks."
    return {
        "pieces": list(lane.pieces),
        "ids": list(lane.ids),
        "special": list(lane.special),
        "segments": list(lane.segments),
        "positions": [list(one) for one in lane.positions],
        "grid": lane.grid,
        "letters": [list(one) for one in lane.letters],
        "roles": list(lane.roles),
        "hooks": sorted({h.removeprefix(prefix).split(".", 1)[1] for h in trace if h.startswith(prefix)}),
        "model": stack_header(lane.config),
    }


def stack_header(config: ModelConfig) -> dict[str, Any]:
    mlp, attention = config.mlp, config.attention
    return {
        "layers": config.layers,
        "distinct": config.distinct or config.layers,
        "heads": attention.heads,
        "kv_heads": config.kv_heads,
        "d_head": config.d_head,
        "scale": attention.scale,
        "terms": 1 + len(config.positions.named_terms),
        "softcap": attention.softcap,
        "sinks": attention.sinks,
        "mask": attention.mask,
        "crosses": config.encoder is not None,
        "rereads": config.rereads,
        "bias": attention.bias,
        "out_bias": attention.out_bias,
        "mlp_bias": bool(mlp and mlp.bias),
        "sublayers": config.sublayers,
        "first_norm": config.norm.first,
        "d_mlp": mlp.d_mlp if mlp else None,
        "activation": mlp.activation if mlp else None,
        "gated": bool(mlp and mlp.gated),
        "experts": asdict(mlp.experts) if mlp and mlp.experts else None,
        "positions": config.positions.kind,
        "pairs": config.positions.pairs or "halves",
        "turned": config.d_turned,
        "unturned": unturned_layers(config),
        "axes": config.positions.axes,
    }


def unturned_layers(config: ModelConfig) -> list[int]:
    """Layers without positions in a model that turns queries and keys in the others."""
    kinds = [config.positions.of_layer(layer).kind for layer in range(config.layers)]
    return [layer for layer, kind in enumerate(kinds) if kind != config.positions.kind]


def model_header(name: str, config: ModelConfig) -> dict[str, Any]:
    """Parts that both stacks of a model share, and its head."""
    head, norm = config.head, config.norm
    return {
        "name": name,
        "d_model": config.d_model,
        "vocab": config.outputs,
        "context": config.context,
        "norm": config.norm.kind,
        "norm_place": config.norm.place,
        "norm_learned": "γ" * norm.has_weight + "β" * norm.has_bias,
        "eps": config.norm.eps,
        "residual": config.residual,
        "residual_scale": config.residual_scale,
        "layer_scale": config.layer_scale,
        "head": head.kind,
        "read": head.read,
        "averaged": head.averaged,
        "pooler": head.pooler,
        "pooler_activation": head.pooler_activation,
        "vector": None if config.vector is None else asdict(config.vector),
        "head_scale": head.scale,
        "head_softcap": head.softcap,
        "head_activation": head.activation,
        "head_norm": head.norm or head.kind == "masked",
        "dense_bias": head.dense_bias,
        "embed_scale": config.embedding.scale,
        "token_dropout": config.embedding.token_dropout is not None,
        "mapped": config.embedding.mapped if config.embedding.width is not None else None,
    }


def drawable(trace: Trace, hook: str) -> Tensor:
    """Takes one text's values, as float32 or bool, with two axes at least."""
    value = trace[hook]
    value = value[0] if trace.dims(hook)[0] == "batch" else value
    value = value[None] if trace.dims(hook) in ONCE else value
    return value if value.dtype == torch.bool else value.float()


def drawable_axes(axes: Axes) -> Axes:
    """The axes of what `drawable` gives."""
    return ("text", *axes[1:]) if axes in ONCE else axes[1:] if axes[0] == "batch" else axes


def candidate_names(ids: Tensor, pieces: tuple[str, ...] | None, extra: Iterable[int]) -> dict[str, str]:
    """Text of each listed token as it is drawn, by id (as JSON keys are text)."""
    wanted = {*np.unique(ids.numpy()).tolist(), *extra}
    known = pieces or ()
    return {str(i): known[i] if i < len(known) else f"#{i}" for i in sorted(wanted)}
