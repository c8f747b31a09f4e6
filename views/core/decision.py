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
class Decision:
    """Decisions of a model's head: at every position, once, or where an answer starts and ends."""

    reads: Reads
    link: Link
    names: tuple[str, ...] | None


def decision_of(checkpoint: Checkpoint, read: Reading) -> Decision | None:
    """None where the model has no head."""
    config = checkpoint.model.config
    match config.head.kind:
        case "none":
            return None
        case "span":
            return Decision("answer", "softmax", tuple(read.read.pieces) if isinstance(read.read, Encoding) else None)
        case "token":
            return Decision("here", config.link, output_names(checkpoint))
        case "sequence":
            return Decision("class", config.link, output_names(checkpoint))
    return Decision("next" if config.generates else "here", "softmax", output_names(checkpoint))


def output_names(checkpoint: Checkpoint) -> tuple[str, ...] | None:
    """Names of the classes, tokens or colours that a head chooses among, None where they have none."""
    config, labels = checkpoint.model.config, checkpoint.labels
    if config.head.over_classes:
        if labels not in ((), ONE_CLASS):
            return labels
        return None if config.outputs > 1 else ("replaced",) if config.head.kind == "token" else ("score",)
    if kind(checkpoint) == "pixels":
        return tuple(map(str, range(config.outputs)))
    return None if checkpoint.tokenizer is None else checkpoint.tokenizer.pieces
