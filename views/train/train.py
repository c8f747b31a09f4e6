"""Payloads of the page about training, sent again and again while a run learns: only what is new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from torch import Tensor

from engine.model.config import ModelConfig
from engine.tokenizers import Tokenizer
from engine.training.probe.frames import Frame
from engine.training.probe.watch import WatchLine, line
from engine.training.run.live import Update
from engine.training.run.news import Line
from views.core.payload import Numbers, pack

COUNTED = ("step",)  # columns of whole numbers
NAMED = ("ids", "target.ids", "top.ids", "asked", "free.ids")  # arrays of a frame that hold token ids


def list_attentions(config: ModelConfig) -> list[dict[str, Any]]:
    """Attention patterns that a frame has, by their names there: what stands at their rows and columns."""
    own = {"key": "attn", "title": "self-attention", "layers": config.layers, "heads": config.attention.heads}
    if config.encoder is None:
        return [own | {"rows": "read", "columns": "read"}]
    encoder, crossed = config.encoder, config.cross_attention.heads
    return [
        {"key": "encoder", "title": "encoder", "layers": encoder.layers, "heads": encoder.attention.heads}
        | {"rows": "read", "columns": "read"},
        own | {"title": "decoder", "rows": "target", "columns": "target"},
        own | {"key": "cross_attn", "title": "cross-attention", "heads": crossed, "rows": "target", "columns": "read"},
    ]


def pack_update(update: Update, known: Mapping[str, Any], tokenizer: Tokenizer | None) -> bytes:
    """Payload of what is new; `known` is what its header has besides: the cursor, the status, the model."""
    return pack(*split_update(update, known, tokenizer))


def split_update(
    update: Update, known: Mapping[str, Any], tokenizer: Tokenizer | None
) -> tuple[dict[str, Any], dict[str, Numbers]]:
    """Header and arrays of what is new of a run."""
    columns = metric_columns(update.metrics)
    arrays: dict[str, Numbers] = {f"metrics.{name}": values for name, values in columns.items()}
    for index, frame in enumerate(update.frames):
        arrays |= {f"frames.{index}.{name}": tensor for name, tensor in frame.tensors.items()}
    header = {
        **known,
        "anew": sorted(update.anew),
        "columns": list(columns),
        "frames": [{"step": frame.step, "kept": frame.kept} for frame in update.frames],
        "names": piece_names(update.frames, tokenizer),
        "watch": [describe_watched(one) for one in update.watched],
        "marks": [asdict(mark) for mark in update.marks],
    }
    return header, arrays


def pack_metrics(lines: Sequence[Line]) -> bytes:
    """Metrics of a run alone, to be laid over those of another."""
    columns = metric_columns(lines)
    return pack({"columns": list(columns)}, {f"metrics.{name}": values for name, values in columns.items()})


def metric_columns(lines: Sequence[Line]) -> dict[str, np.ndarray]:
    """Column by name for each number of the lines; NaN where a line has none."""
    flat = [{key: value for key, value in one.items() if key != "also"} | one.get("also", {}) for one in lines]
    columns = dict.fromkeys(key for one in flat for key in one)
    return {
        name: np.array([as_number(one.get(name)) for one in flat], np.int32 if name in COUNTED else np.float32)
        for name in columns
    }


def as_number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def piece_names(frames: Iterable[Frame], tokenizer: Tokenizer | None) -> dict[str, str]:
    """Pieces of all tokens in these frames by their ids."""
    if tokenizer is None:
        return {}
    held: list[Tensor] = [frame.tensors[name].flatten() for frame in frames for name in NAMED if name in frame.tensors]
    ids = {id for tensor in held for id in tensor.tolist()}
    return {str(id): tokenizer.piece(id) for id in sorted(ids) if 0 <= id < tokenizer.vocab_size}


def describe_watched(one: WatchLine) -> dict[str, Any]:
    """Line of watch.jsonl without what JSON cannot say."""
    said = line(one)
    said["gradients"] = {part: norm for part, norm in one.gradients.items() if np.isfinite(norm)}
    return said
