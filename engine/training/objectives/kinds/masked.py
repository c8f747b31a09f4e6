"""Hidden words, and whether two sentences followed each other (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

from engine.training.measures.masked import measure_masked, sample_masked
from engine.training.objectives.kind import ONE_AXIS, ObjectiveKind
from engine.training.recipe.data_recipe import RUNNING
from engine.training.sources.masked_windows import MaskedWindows
from engine.training.sources.sentence_pairs import PairsOfPassages

TWO_TEXTS = {"head.next_sentence": True, "embedding.segments": 2}

OBJECTIVE = ObjectiveKind(
    "masked", 5, {"sentence_pairs": PairsOfPassages} | dict.fromkeys(RUNNING, MaskedWindows),
    measure=measure_masked, sample=sample_masked,
    unit="nats a masked token, and nats a pair of sentences where there are pairs",
    needs={"head.kind": "masked", "attention.mask": "full", "encoder": None} | ONE_AXIS,
    of_data={"sentence_pairs": TWO_TEXTS, **{name: {"head.next_sentence": False} for name in RUNNING}},
    head="masked", marks=("[CLS]", "[SEP]", "[MASK]"),
    like="masked-stories", about="Learns to guess hidden words of {}.",
)  # fmt: skip
