"""The token after each one."""

from __future__ import annotations

from engine.data.kinds.in_context import InContext
from engine.data.kinds.repeats import Repeats
from engine.data.task import RunningText
from engine.training.measures.text import measure_text, sample_text
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.sources.in_context import Prompts
from engine.training.sources.repeats import RepeatedSequences
from engine.training.sources.windows import Windows

OBJECTIVE = ObjectiveKind(
    "next",
    1,
    learns={RunningText: Windows, Repeats: RepeatedSequences, InContext: Prompts},
    measure=measure_text,
    sample=sample_text,
    needs=CAUSAL,
    forms=("text", "labelled"),
    like="python-reference",
    about="Learns to write like {}.",
)
