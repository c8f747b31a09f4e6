"""What stood in a gap, from the text on both sides (Du et al. 2022)."""

from __future__ import annotations

from engine.data.kinds.infill import Gaps
from engine.data.task import RunningText
from engine.training.measures.infill import measure_infill, sample_infill
from engine.training.objectives.kind import LANGUAGE, PRESENT, ObjectiveKind
from engine.training.sources.gapped_windows import GappedWindows
from engine.training.sources.infill import GappedPassages

OBJECTIVE = ObjectiveKind(
    "infill", 6, {Gaps: GappedPassages, RunningText: GappedWindows},
    measure=measure_infill, sample=sample_infill, unit="nats a token of the gap",
    needs=LANGUAGE | {"attention.mask": "prefix", "infill": PRESENT}, two_axes=True,
    marks=("[gMASK]", "[sop]", "[eop]"),
    forms=("text", "labelled"), like="infill", about="Learns to fill gaps in {} from the text on both sides.",
)  # fmt: skip
