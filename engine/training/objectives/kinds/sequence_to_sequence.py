"""A target that the decoder writes from the source that the encoder reads."""

from __future__ import annotations

from engine.data.own import Columns
from engine.data.task import PairTask
from engine.training.measures.exact import sample_target
from engine.training.measures.sequence_to_sequence import measure_translation
from engine.training.objectives.kind import ONE_AXIS, PRESENT, ObjectiveKind
from engine.training.sources.sequence_to_sequence import SequenceToSequence

OBJECTIVE = ObjectiveKind(
    "sequence_to_sequence", 3, {PairTask: SequenceToSequence, Columns: SequenceToSequence},
    measure=measure_translation, sample=sample_target, marks=("</s>",),
    needs={"head.kind": "language", "encoder": PRESENT, "attention.mask": "causal"} | ONE_AXIS,
    forms=("pairs",), like="english-french", about="Learns to turn sources into targets ({}).",
)  # fmt: skip
