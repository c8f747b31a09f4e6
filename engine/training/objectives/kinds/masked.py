"""Hidden words, and whether two sentences followed each other (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

from engine.data.kinds.sentence_pairs import SentencePairs
from engine.data.task import RunningText
from engine.training.measures.masked import measure_masked, sample_masked
from engine.training.objectives.kind import ONE_AXIS, ObjectiveKind
from engine.training.sources.masked_windows import MaskedWindows
from engine.training.sources.sentence_pairs import PairsOfPassages

TWO_TEXTS = {"head.next_sentence": True, "embedding.segments": 2}

OBJECTIVE = ObjectiveKind(
    "masked", 5, {SentencePairs: PairsOfPassages, RunningText: MaskedWindows},
    measure=measure_masked, sample=sample_masked,
    unit="nats a masked token, and nats a pair of sentences where there are pairs",
    needs={"head.kind": "masked", "attention.mask": "full", "encoder": None} | ONE_AXIS,
    of_data={SentencePairs: TWO_TEXTS, RunningText: {"head.next_sentence": False}},
    head="masked", marks=("[CLS]", "[SEP]", "[MASK]"),
    forms=("text", "labelled"), like="masked-stories", about="Learns to guess hidden words of {}.",
)  # fmt: skip
