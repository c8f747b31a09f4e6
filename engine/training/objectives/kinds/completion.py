"""The second text of a pair behind the first one, which one stack reads."""

from __future__ import annotations

from engine.data.own import Columns
from engine.data.task import PairTask
from engine.tokenizers import END
from engine.training.measures.exact import sample_target
from engine.training.measures.sequence_to_sequence import measure_completion
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.sources.completion import Completion

OBJECTIVE = ObjectiveKind(
    "completion", 4, {PairTask: Completion, Columns: Completion},
    measure=measure_completion, sample=sample_target, unit="nats a token of the target", needs=CAUSAL, marks=(END,),
    joins=True, asks="what comes after an instruction or a separator", forms=("pairs",),
    like="repeat", about="Learns to complete prompts ({}).",
)  # fmt: skip
