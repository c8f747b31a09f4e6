"""The class of a picture, a text or two texts together."""

from __future__ import annotations

from engine.data.kinds.digits import Digits
from engine.data.own import Columns
from engine.data.task import LabelTask
from engine.training.measures.classification import measure_classification, sample_classification
from engine.training.objectives.kind import ONE_AXIS, WHOLE, ObjectiveKind
from engine.training.sources.digits import NamedDigits
from engine.training.sources.label_texts import LabelledTexts

OBJECTIVE = ObjectiveKind(
    "classification", 7, {Digits: NamedDigits, LabelTask: LabelledTexts, Columns: LabelledTexts},
    measure=measure_classification, sample=sample_classification, unit="nats a picture or text",
    needs={"head.kind": "sequence", "encoder": None} | ONE_AXIS, never=WHOLE, head="sequence",
    forms=("labelled",), like="sentiment", about="Learns to tell the labels of {} apart.",
)  # fmt: skip
