"""What the walkthrough draws: one run of a decoder, laid out for assets/views/walkthrough.js."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.analysis.heads import HeadScores
from engine.analysis.operands import Operands
from engine.config import ModelConfig
from engine.sampling import Distribution
from engine.trace import Trace
from views.payload import pack

WHOLE = 6 * 2**20  # bytes; a trace larger than this is sent one layer at a time
CANDIDATES = 24  # next tokens listed at every position
THUMBNAIL = 32  # cells a side of a thumbnail, when the pattern itself is not there


def digest(name: str, trace: Trace) -> str:
    """An unguessable-enough name for one run of one model, the same for the same run."""
    made_of = (name, trace.ids.tolist(), [edit.to_dict() for edit in trace.edits])
    return hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]


def walkthrough(
    trace: Trace,
    config: ModelConfig,
    *,
    name: str,
    following: Distribution,
    pieces: tuple[str, ...] | None,
    sampled: int,
    scores: HeadScores,
    notes: Mapping[str, Any],
    layer: int = 0,
) -> bytes:
    """The payload of the whole page for the first text of `trace`, `following` being its next tokens (pos vocab).

    A trace of more than WHOLE bytes brings only `layer` and thumbnails of all the patterns; the rest is asked for with
    `layer_payload`.
    """
    hooks = list(trace)
    per_layer = [h for h in hooks if h.startswith("blocks.")]
    size = sum(trace[h].numel() // trace[h].shape[0] * 4 for h in per_layer if "batch" in trace.dims(h))
    whole = size <= WHOLE
    arrays = {h: drawable(trace, h) for h in hooks if not h.startswith("blocks.") and h != "logits"}
    layers = range(config.layers) if whole else [min(layer, config.layers - 1)]
    for one in layers:
        arrays.update(layer_arrays(trace, one))
    if not whole:
        arrays["thumbnails"] = thumbnails(trace.stack("attn.pattern")[:, 0])
    arrays.update({f"scores.{key}": value for key, value in vars(scores).items()})
    listed = candidates(following)
    arrays.update({f"next.{key}": value for key, value in listed.items()})
    header = {
        "trace": digest(name, trace),
        "model": model_header(name, config),
        "pieces": list(trace.encoding.pieces),
        "ids": list(trace.encoding.ids),
        "hooks": sorted({h.split(".", 2)[2] for h in per_layer}),
        "names": candidate_names(listed["id"], pieces, extra=[sampled]),
        "sampled": {"id": sampled, "probability": float(following.probabilities[-1, sampled])},
        "edited": sorted({h for edit in trace.edits for h in edit.touches()}),
        **notes,
    }
    axes = {hook: trace.dims(hook) for hook in hooks if hook in arrays}
    return pack(header, arrays, {h: a[1:] if a[0] == "batch" else a for h, a in axes.items()})


def layer_payload(trace: Trace, layer: int) -> bytes:
    """Every value of one layer. Raises ValueError for a layer the trace does not have."""
    arrays = layer_arrays(trace, layer)
    if not arrays:
        raise ValueError(f"this run has no layer {layer}; ask for one that it has.")
    return pack({"layer": layer}, arrays)


def operands_payload(found: Operands) -> bytes:
    return pack({"bias": found.bias}, {"weights": found.weights})


def layer_arrays(trace: Trace, layer: int) -> dict[str, Tensor]:
    return {h: drawable(trace, h) for h in trace if h.startswith(f"blocks.{layer}.")}


def drawable(trace: Trace, hook: str) -> Tensor:
    """One text's values, as float32 or bool."""
    value = trace[hook]
    value = value[0] if trace.dims(hook)[0] == "batch" else value
    return value if value.dtype == torch.bool else value.float()


def thumbnails(pattern: Tensor) -> Tensor:
    """u8 layer head side side: each cell the largest weight of its square, so that no peak is lost (255 = 1.0)."""
    side = min(THUMBNAIL, pattern.shape[-1])
    small = torch.nn.functional.adaptive_max_pool2d(pattern, side)
    return (small * 255).round().to(torch.uint8)


def candidates(following: Distribution) -> dict[str, Tensor]:
    """The likeliest next tokens at every position, pos candidate, and what the cuts kept in all, pos."""
    count = min(CANDIDATES, following.logits.shape[-1])
    order = following.logits.topk(count).indices

    def at(values: Tensor) -> Tensor:
        return values.gather(-1, order)

    return {
        "id": order.int(),
        "logit": at(following.logits),
        "scaled": at(following.scaled),
        "share": at(following.shares),
        "in_top_k": at(following.in_top_k),
        "in_top_p": at(following.in_top_p),
        "probability": at(following.probabilities),
        "kept_k": following.in_top_k.sum(-1).int(),
        "kept_p": following.in_top_p.sum(-1).int(),
        "peak": following.scaled.amax(-1),
        "total": following.shares.amax(-1).reciprocal(),  # the sum of e^(scaled - peak): the peak's own term is 1
        "kept_share": following.shares.where(following.in_top_p, 0.0).sum(-1),
    }


def candidate_names(ids: Tensor, pieces: tuple[str, ...] | None, extra: Iterable[int]) -> dict[str, str]:
    """How each listed token is drawn, by id (as JSON keys are text)."""
    wanted = {*np.unique(ids.numpy()).tolist(), *extra}
    known = pieces or ()
    return {str(i): known[i] if i < len(known) else f"#{i}" for i in sorted(wanted)}


def model_header(name: str, config: ModelConfig) -> dict[str, Any]:
    mlp = config.mlp
    return {
        "name": name,
        "layers": config.layers,
        "heads": config.attention.heads,
        "kv_heads": config.kv_heads,
        "d_model": config.d_model,
        "d_head": config.d_head,
        "d_mlp": mlp.d_mlp if mlp else None,
        "activation": mlp.activation if mlp else None,
        "gated": bool(mlp and mlp.gated),
        "vocab": config.vocab_size,
        "context": config.context,
        "positions": config.positions.kind,
        "norm": config.norm.kind,
        "norm_place": config.norm.place,
        "eps": config.norm.eps,
        "residual": config.residual,
    }
