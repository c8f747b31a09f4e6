"""Where batches come from: one file for each kind of data a recipe can name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from engine.training.recipe import Recipe
from engine.training.sources.digits import DigitPixels, NamedDigits
from engine.training.sources.infill import GappedPassages
from engine.training.sources.repeats import RepeatedSequences
from engine.training.sources.sentence_pairs import PairsOfPassages
from engine.training.sources.source import Source
from engine.training.sources.translation import Translations
from engine.training.sources.windows import Windows

SOURCES: dict[tuple[str, str], Callable[[Recipe, Path], Source]] = {
    ("stories", "next"): Windows,
    ("text", "next"): Windows,
    ("repeats", "next"): RepeatedSequences,
    ("repeats", "repeated"): RepeatedSequences,
    ("sentence_pairs", "masked"): PairsOfPassages,
    ("translation", "translation"): Translations,
    ("infill", "infill"): GappedPassages,
    ("digits", "classification"): NamedDigits,
    ("digits", "next_pixel"): DigitPixels,
}


def open_source(recipe: Recipe, folder: Path) -> Source:
    """`folder`, the run directory, gets the tokenizer or the processor, and keeps what is slow to make again."""
    return SOURCES[recipe.data.kind, recipe.objective.kind](recipe, folder)


__all__ = ["SOURCES", "RepeatedSequences", "Source", "Windows", "open_source"]
