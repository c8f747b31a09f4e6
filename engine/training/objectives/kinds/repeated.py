"""The token after each one that has stood in the text before."""

from __future__ import annotations

from engine.data.kinds.repeats import Repeats
from engine.training.measures.text import measure_text, sample_text
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.sources.repeats import RepeatedSequences


class Repetitions(RepeatedSequences):
    asks_all = False


OBJECTIVE = ObjectiveKind(
    "repeated", 2, {Repeats: Repetitions}, measure=measure_text, sample=sample_text, needs=CAUSAL,
    asks="what had stood in the text before",
)  # fmt: skip
