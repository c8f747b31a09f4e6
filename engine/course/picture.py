"""A picture as a text: patches that become tokens, what [CLS] looks at, and pixels that are written one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.inputs.processors import ImageProcessor, PalettePixels
from engine.runtime import library
from engine.runtime.run import run

Levels = Sequence[Sequence[float]]  # height width, in 0..1


def reader(checkpoint: Checkpoint) -> ImageProcessor:
    assert isinstance(checkpoint.processor, ImageProcessor)
    return checkpoint.processor


def cut_patches(values: Tensor, size: int) -> Tensor:
    """The patches of a picture (height width), row by row, each with its pixels in a row: patch pixel."""
    height, width = values.shape
    squares = values.view(height // size, size, width // size, size).transpose(1, 2)
    return squares.reshape(-1, size * size)


@torch.no_grad()
def patch_tokens(name: str, picture: Levels) -> tuple[Tensor, Tensor]:
    """Patches of a picture of one channel, patch pixel, and the vectors that a linear map makes of them, patch d_model
    (Dosovitskiy et al. 2021, section 3.1, equation 1)."""
    checkpoint = library.checkpoint(name)
    patches, weights = checkpoint.config.embedding.patches, checkpoint.model.state_dict()
    assert patches is not None
    values = reader(checkpoint).pixels(torch.tensor(picture))[0, 0]
    pixels = cut_patches(values, patches.size)
    weight, bias = (weights[f"embed.patches.project.{part}"] for part in ("weight", "bias"))
    return pixels, pixels @ weight.flatten(1).T + bias


@dataclass(frozen=True)
class PatchLook:
    """Attention of [CLS] in the last block, head patch, and the probabilities of the classes."""

    weights: Tensor
    probabilities: Tensor


def look_at_patches(name: str, picture: Levels) -> PatchLook:
    checkpoint = library.checkpoint(name)
    hook = f"blocks.{checkpoint.config.layers - 1}.attn.pattern"
    found = run(checkpoint.model, reader(checkpoint).pixels(torch.tensor(picture)), keep=[hook, "logits"])
    return PatchLook(found[hook][0, :, 0, 1:], found["logits"][0].softmax(-1))


def position_likeness(name: str, patch: int) -> Tensor:
    """Cosine of the learned vector of a patch's position with those of all patches."""
    table = library.checkpoint(name).model.get_parameter("embed.positions.weight").detach()[1:]
    return torch.nn.functional.cosine_similarity(table[patch][None], table, dim=-1)


@torch.no_grad()
def next_pixel(name: str, picture: Levels, given: int) -> tuple[list[int], Tensor]:
    """Levels of the first `given` pixels as a model that writes pictures reads them, its start token in front, and the
    probabilities of the next (Chen et al. 2020, section 2)."""
    checkpoint = library.checkpoint(name)
    processor = checkpoint.processor
    assert isinstance(processor, PalettePixels)
    ids = [processor.start_id, *processor.ids(torch.tensor(picture)).flatten()[:given].tolist()]
    return ids, checkpoint.model(torch.tensor([ids]))[0, -1].softmax(-1)
