"""The tag of each word."""

from __future__ import annotations

from engine.data.own import Columns
from engine.data.task import TagTask
from engine.training.measures.tagging import measure_tags, sample_tags
from engine.training.objectives.kind import ONE_AXIS, WHOLE, ObjectiveKind
from engine.training.sources.tag_texts import TaggedTexts

OBJECTIVE = ObjectiveKind(
    "token_classification", 8, {TagTask: TaggedTexts, Columns: TaggedTexts},
    measure=measure_tags, sample=sample_tags, unit="nats a word",
    needs={"head.kind": "token", "encoder": None} | ONE_AXIS, never=WHOLE, head="token",
    forms=("tagged",), like="names", about="Learns to tag the words of {}.",
)  # fmt: skip
