"""The token after each one."""

from __future__ import annotations

from engine.training.measures.text import measure_text, sample_text
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.recipe.data_recipe import RUNNING
from engine.training.sources.in_context import Prompts
from engine.training.sources.repeats import RepeatedSequences
from engine.training.sources.windows import Windows

OBJECTIVE = ObjectiveKind(
    "next",
    1,
    sources=dict.fromkeys(RUNNING, Windows) | {"repeats": RepeatedSequences, "in_context": Prompts},
    measure=measure_text,
    sample=sample_text,
    needs=CAUSAL,
    like="python-reference",
    about="Learns to write like {}.",
)
