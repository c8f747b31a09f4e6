"""Where batches come from: one file for each kind of data a recipe can name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.training.base import check_tokenizer, settings_of
from engine.training.data_files import check_unchanged
from engine.training.data_recipe import LABELLED, OWN, PAIRS, RUNNING, TAGGED
from engine.training.folder import RunFolder
from engine.training.recipe import Recipe
from engine.training.sources.answers import Answers
from engine.training.sources.completion import Completion
from engine.training.sources.digits import DigitPixels, NamedDigits
from engine.training.sources.gapped_windows import GappedWindows
from engine.training.sources.in_context import Prompts
from engine.training.sources.infill import GappedPassages
from engine.training.sources.label_texts import LabelledTexts
from engine.training.sources.masked_windows import MaskedWindows
from engine.training.sources.preferences import PreferredAnswers
from engine.training.sources.repeats import RepeatedSequences
from engine.training.sources.sentence_pairs import PairsOfPassages
from engine.training.sources.sequence_to_sequence import SequenceToSequence
from engine.training.sources.source import Source
from engine.training.sources.tag_texts import TaggedTexts
from engine.training.sources.windows import Windows

SOURCES: dict[tuple[str, str], Callable[[Recipe, Path], Source]] = {
    **{(name, "next"): Windows for name in RUNNING},
    **{(name, "masked"): MaskedWindows for name in RUNNING},
    ("repeats", "next"): RepeatedSequences,
    ("repeats", "repeated"): RepeatedSequences,
    **{(name, "infill"): GappedWindows for name in RUNNING},
    ("in_context", "next"): Prompts,
    ("sentence_pairs", "masked"): PairsOfPassages,
    ("infill", "infill"): GappedPassages,
    ("digits", "classification"): NamedDigits,
    ("digits", "next_pixel"): DigitPixels,
    **{(name, "completion"): Completion for name in (*PAIRS, *OWN)},
    **{(name, "sequence_to_sequence"): SequenceToSequence for name in (*PAIRS, *OWN)},
    **{(name, "classification"): LabelledTexts for name in (*LABELLED, *OWN)},
    **{(name, "span"): Answers for name in OWN},
    **{("preferences", name): PreferredAnswers for name in ("reward", "dpo", "ppo", "grpo")},
    **{(name, "token_classification"): TaggedTexts for name in (*TAGGED, *OWN)},
}


def open_source(recipe: Recipe, folder: Path) -> Source:
    """`folder`, the run directory, gets the tokenizer or the processor, and keeps what is slow to make again."""
    if recipe.base and not (folder / "tokenizer.json").exists():
        check_tokenizer(recipe)
    run = RunFolder(folder)
    check_unchanged(recipe.data, run)
    if recipe.base and not run.weights.exists():  # a run that is continued needs its base no more
        run.take_settings(settings_of(recipe.base))
    source = SOURCES[recipe.data.kind, recipe.objective.kind](recipe, folder)
    run.describe(source.end_ids, source.labels)
    return source


__all__ = ["SOURCES", "RepeatedSequences", "Source", "Windows", "open_source"]
