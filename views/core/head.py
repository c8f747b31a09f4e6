"""What the head of a model decides, at which positions, and among what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.checkpoints import Checkpoint
from engine.inputs.readers import Reading, kind
from engine.model.config import Link
from engine.tokenizers.encoding import Encoding

ONE_CLASS = ("LABEL_0",)  # what transformers calls the only class of a head that nobody named
Reads = Literal["next", "here", "class", "answer"]


@dataclass(frozen=True)
class Head:
    """Decisions of a model's head: at every position, once, or where an answer starts and ends."""

    reads: Reads
    link: Link
    names: tuple[str, ...] | None


def head_of(checkpoint: Checkpoint, read: Reading) -> Head | None:
    """None where the model has no head."""
    config, labels = checkpoint.model.config, checkpoint.labels
    named = labels if labels not in ((), ONE_CLASS) else None
    match config.head.kind:
        case "none":
            return None
        case "span":
            return Head("answer", "softmax", tuple(read.read.pieces) if isinstance(read.read, Encoding) else None)
        case "token":
            alone = config.outputs == 1
            return Head("here", config.link, named or ("replaced",) if alone else named)
        case "sequence":
            alone = config.outputs == 1
            return Head("class", config.link, named or ("score",) if alone else named)
    pieces = None if checkpoint.tokenizer is None else checkpoint.tokenizer.pieces
    if kind(checkpoint) == "pixels":
        pieces = tuple(map(str, range(config.outputs)))
    return Head("next" if config.generates else "here", "softmax", pieces)
