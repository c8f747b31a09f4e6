"""Where the answer to a question begins and ends in a text."""

from __future__ import annotations

from engine.data.own import Columns
from engine.training.measures.span import measure_span, sample_span
from engine.training.objectives.kind import ONE_AXIS, WHOLE, ObjectiveKind
from engine.training.sources.answers import Answers

OBJECTIVE = ObjectiveKind(
    "span", 9, {Columns: Answers},
    measure=measure_span, sample=sample_span, unit="nats a start or end of an answer",
    needs={"head.kind": "span", "encoder": None} | ONE_AXIS, never=WHOLE, head="span",
    forms=("answers",), title="answers in a text", like="names", about="Learns to find the answers to questions in {}.",
)  # fmt: skip
