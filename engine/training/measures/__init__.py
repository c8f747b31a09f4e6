"""What a finished model is measured by on data it never saw, and a sample of what it does, for its card.

One file for each way of learning, with a function that measures a trainer's model and one that draws a sample; both are
called with the model in evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.training.measures.classification import measure_classification, sample_classification
from engine.training.measures.exact import sample_target
from engine.training.measures.infill import measure_infill, sample_infill
from engine.training.measures.masked import measure_masked, sample_masked
from engine.training.measures.next_pixel import measure_pixels, sample_picture
from engine.training.measures.preferences import measure_preferences, sample_answer
from engine.training.measures.sequence_to_sequence import measure_completion, measure_translation
from engine.training.measures.span import measure_span, sample_span
from engine.training.measures.tagging import measure_tags, sample_tags
from engine.training.measures.text import measure_text, sample_text
from engine.training.trainer import Trainer


@dataclass(frozen=True)
class Measure:
    measure: Callable[[Trainer], dict[str, Any]]
    sample: Callable[[Trainer], str]


MEASURES = {
    "next": Measure(measure_text, sample_text),
    "repeated": Measure(measure_text, sample_text),
    "completion": Measure(measure_completion, sample_target),
    "sequence_to_sequence": Measure(measure_translation, sample_target),
    "masked": Measure(measure_masked, sample_masked),
    "infill": Measure(measure_infill, sample_infill),
    "classification": Measure(measure_classification, sample_classification),
    "token_classification": Measure(measure_tags, sample_tags),
    "span": Measure(measure_span, sample_span),
    **dict.fromkeys(("reward", "dpo", "ppo", "grpo"), Measure(measure_preferences, sample_answer)),
    "next_pixel": Measure(measure_pixels, sample_picture),
}
