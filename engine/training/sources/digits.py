"""Handwritten digits, as pictures to name and as pixels to continue."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from engine.checkpoints.locate import shipped_folder
from engine.data.digits import CLASSES, LEVELS, SIDE, augment, invert, split, vary_stroke
from engine.data.kinds.digits import Digits
from engine.inputs.processors import ImageProcessor, PalettePixels
from engine.model.config import ModelConfig
from engine.scoring.examples import Examples
from engine.training.examples.classification import classification_examples
from engine.training.examples.next_pixel import next_pixels
from engine.training.recipe.recipe import Recipe
from engine.training.sources.source import Part, Source, chance


class DigitPictures(Source):
    """Base of what the two have in common: drawings to train on, a little changed each time, and all of those held
    out."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        self.digits = recipe.data.expect(Digits)
        self.images = split(self.digits.split)

    def draw(self, part: Part, seed: int) -> Examples:
        draw = chance(seed)
        of = self.images.train_images if part == "train" else self.images.test_images
        labels = self.images.train_labels if part == "train" else self.images.test_labels
        chosen = torch.randint(len(of), (self.recipe.batch.size,), generator=draw)
        images = of[chosen]
        return self.examples(self._vary(images, draw) if part == "train" else images, labels[chosen])

    def held_out(self, batches: int) -> Iterator[Examples]:
        """All test pictures, or the first `batches` batches of them."""
        size = self.recipe.batch.size
        parts = zip(self.images.test_images.split(size), self.images.test_labels.split(size), strict=True)
        for _, (images, labels) in zip(range(batches), parts, strict=False):
            yield self.examples(images, labels)

    @abstractmethod
    def examples(self, images: Tensor, labels: Tensor) -> Examples:
        """`images` are levels, batch height width."""

    def _vary(self, images: Tensor, draw: torch.Generator) -> Tensor:
        """Moves, then thickens or thins the share `moved`, and inverts the share `inverted` of all."""
        digits = self.digits
        moved = augment(images, draw, digits.shift, digits.degrees, digits.scale)
        is_moved = torch.rand(len(images), generator=draw) < digits.moved
        moved = vary_stroke(moved, draw, digits.stroke)
        is_inverted = torch.rand(len(images), generator=draw) < digits.inverted
        varied = torch.where(is_moved[:, None, None], moved, images)
        return torch.where(is_inverted[:, None, None], invert(varied), varied)


class NamedDigits(DigitPictures):
    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, folder)
        self.pixels = ImageProcessor.grey((SIDE, SIDE), LEVELS)
        self.processor = self.pixels
        self.processor.save(folder)
        self.labels = tuple(map(str, range(CLASSES)))

    def examples(self, images: Tensor, labels: Tensor) -> Examples:
        return classification_examples(self.pixels.levels_to_pixels(images), labels)

    def complete_config(self, config: ModelConfig) -> ModelConfig:
        patches = config.embedding.patches
        if config.head.classes != CLASSES or patches is None or (patches.image, patches.channels) != (SIDE, 1):
            raise ValueError(
                f"model.head.classes must be {CLASSES} and model.embedding.patches of image {SIDE} and channels 1 for "
                f"digits, got {config.head.classes} and {patches}."
            )
        return config


class DigitPixels(DigitPictures):
    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, folder)
        self.palette = PalettePixels.grey((SIDE, SIDE), LEVELS)
        self.processor = self.palette
        self.processor.save(folder)
        if self.digits.judge and shipped_folder(self.digits.judge) is None:
            raise ValueError(
                f"data.digits.judge must be a shipped checkpoint, got {self.digits.judge!r}; publish that first."
            )

    def examples(self, images: Tensor, labels: Tensor) -> Examples:
        return next_pixels(images.flatten(1).long(), self.palette.start_id)  # the palette is the levels themselves

    def complete_config(self, config: ModelConfig) -> ModelConfig:
        wanted = SIDE**2 + 1
        if config.context < wanted:
            raise ValueError(f"batch.context must be {wanted}, the start and each pixel, got {config.context}.")
        return replace(config, vocab_size=self.palette.vocab_size, head=replace(config.head, outputs=LEVELS))
