"""How many bits a pixel costs, and whether a classifier still knows the digit whose lower half the model drew."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.checkpoints import load
from engine.data.digits import SIDE, invert
from engine.inputs.processors import ImageProcessor, PalettePixels
from engine.model.layers.cache import KVCache
from engine.model.layers.softmax import softmax
from engine.model.transformer import Transformer
from engine.training.measures.digits import digits, draw_levels, measure_distance
from engine.training.sources.source import chance
from engine.training.trainer import Trainer

GIVEN = SIDE * SIDE // 2  # the upper half
TEMPERATURE = 1.0


def measure_pixels(trainer: Trainer) -> dict[str, Any]:
    source = digits(trainer)
    pictures = source.images.test_images
    loss = trainer.measure(len(pictures))["loss"]
    found: dict[str, Any] = {
        "bits_per_pixel": loss / math.log(2),
        "bits_per_pixel_inverted": measure_bits(trainer, invert(pictures)),
        "pictures": len(pictures),
        **measure_distance(source),
    }
    if source.digits.judge:
        found["completion"] = judge_completions(trainer, source.digits.judge)
    return found


@torch.no_grad()
def measure_bits(trainer: Trainer, images: Tensor) -> float:
    """Bits a pixel of `images`, levels, batch height width."""
    source = digits(trainer)
    examples = source.examples(images, source.images.test_labels).to(trainer.full_model.device)
    logits, pixels = trainer.result(examples.ids)[:, :-1], examples.targets[:, :-1]
    return float(cross_entropy(logits.flatten(0, 1), pixels.flatten())) / math.log(2)


def judge_completions(trainer: Trainer, judge: str) -> dict[str, Any]:
    """Measures how often `judge` names a picture right: as it was, and with its lower half drawn by the model, whose
    upper half is given on either ground."""
    source = digits(trainer)
    images, labels = source.images.test_images, source.images.test_labels
    classifier = load(judge)
    processor = classifier.processor
    if not isinstance(processor, ImageProcessor):
        raise ValueError(f"data.digits.judge must read pictures, and {judge} has no processor for them.")

    def accuracy(levels: Tensor) -> float:
        named = classifier.model(processor.levels_to_pixels(levels)).argmax(-1)
        return float((named == labels).float().mean())

    drawn = complete_pictures(trainer, images)
    empty = torch.cat([images[:, : SIDE // 2], torch.zeros_like(images[:, SIDE // 2 :])], dim=1)
    return {
        "judge": judge,
        "right": accuracy(drawn),
        "right_inverted": accuracy(complete_pictures(trainer, invert(images))),
        "right_of_the_originals": accuracy(images),
        "right_with_an_empty_lower_half": accuracy(empty),
        "temperature": TEMPERATURE,
    }


def complete_pictures(trainer: Trainer, images: Tensor) -> Tensor:
    """`images` (levels, batch height width) with the lower half drawn by the model."""
    palette = trainer.source.processor
    assert isinstance(palette, PalettePixels)
    upper = images.flatten(1)[:, :GIVEN].long()
    start = torch.full((len(images), 1), palette.start_id)
    ids = torch.cat([start, upper], dim=1).to(trainer.full_model.device)
    drawn = drawn_after(trainer.result, ids, SIDE * SIDE - GIVEN, chance(trainer.recipe.seed))
    return torch.cat([upper, drawn.cpu()], dim=1).view(-1, SIDE, SIDE)


@torch.no_grad()
def drawn_after(model: Transformer, ids: Tensor, pixels: int, draw: torch.Generator) -> Tensor:
    """batch pixel: what follows `ids` (batch pos), each drawn from the model's distribution."""
    cache = KVCache(model.config, len(ids), ids.shape[1] + pixels, next(model.parameters()))
    drawn: list[Tensor] = []
    for _ in range(pixels):
        logits = model(drawn[-1] if drawn else ids, cache=cache, logits_at=slice(-1, None))[:, 0]
        chances = softmax(logits, TEMPERATURE).cpu()
        drawn.append(torch.multinomial(chances, 1, generator=draw).to(ids.device))
    return torch.cat(drawn, dim=1)


def sample_picture(trainer: Trainer) -> str:
    """The upper half of a held-out picture, drawn, and all of it as the model goes on."""
    images = digits(trainer).images.test_images[:1]
    return f"{draw_levels(images[0, : SIDE // 2])}\n\n{draw_levels(complete_pictures(trainer, images)[0])}"
