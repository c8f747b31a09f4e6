"""How it goes on, without the edits and with them: a text greedily written, or a picture greedily completed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Literal

from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.edits import Edit
from engine.generation.generate import generate
from engine.inputs.processors import PalettePixels
from engine.inputs.readers import Reading, kind, unit
from engine.tokenizers.encoding import Encoding
from views.core.payload import pack

WRITTEN = 20  # tokens of a continuation
CHEAP = 20_000_000  # parameters up to which a continuation is written unasked


def writes(checkpoint: Checkpoint) -> Literal["at once", "asked", "never"]:
    if not checkpoint.model.config.generates:
        return "never"
    return "at once" if sum(p.numel() for p in checkpoint.model.parameters()) <= CHEAP else "asked"


def continuation(checkpoint: Checkpoint, reading: Reading, edits: Sequence[Edit]) -> list[str]:
    """Writes greedily with the model, as pieces: behind the text, or instead of what it wrote itself before."""
    begun = reading.whole if reading.written and reading.target is None and reading.whole else reading.read
    target = None if reading.written else reading.target
    steps = generate(checkpoint, begun, WRITTEN, target=target, greedy=True, edits=edits)
    return [step.piece for step in islice(steps, WRITTEN)]


def completion(checkpoint: Checkpoint, reading: Reading, edits: Sequence[Edit]) -> Tensor:
    """The picture, height width channel in 0..1, that the pixels given become greedily; as far as the one read goes."""
    processor, read = checkpoint.processor, reading.read
    assert isinstance(processor, PalettePixels) and isinstance(read, Encoding) and reading.picture is not None
    known = int((reading.picture[..., 0] >= 0).sum())
    begun = list(read.ids[: 1 + reading.given])
    steps = generate(checkpoint, begun, known - reading.given, greedy=True, edits=edits, stop_at_end=False)
    return unit(processor.picture([*begun[1:], *(step.id for step in steps)]))


def continuations(checkpoint: Checkpoint, reading: Reading, before: Sequence[Edit], after: Sequence[Edit]) -> bytes:
    """The payload. Raises ValueError, with a sentence, for edits of positions behind where the writing begins."""
    if kind(checkpoint) == "pixels":
        drawn = {name: completion(checkpoint, reading, made) for name, made in (("before", before), ("after", after))}
        return pack({"given": reading.given}, drawn)
    texts = {name: continuation(checkpoint, reading, made) for name, made in (("before", before), ("after", after))}
    return pack(texts, {})
