"""What a survey found, kept as a file in the directory of the training run whose weights were read."""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from engine.checkpoints import Checkpoint, run_steps

VERSION = 2  # of what is measured, and of the file


def survey_path(checkpoint: Checkpoint, what: str) -> Path | None:
    """Place of a survey over the texts that `what` names; None where the weights are no step of a training run."""
    run = run_steps.run_of(checkpoint.files[0]) if len(checkpoint.files) == 1 else None
    about = blake2b(what.encode(), digest_size=8).hexdigest()
    return run and run / "surveys" / f"{checkpoint.files[0].stem}-{about}.safetensors"


def fit(checkpoint: Checkpoint, what: str, most: int | None = None) -> dict[str, str]:
    """Facts that a file must state to be read: version, texts, and weights, `most` numbers of each or all."""
    return {"version": str(VERSION), "of": what, "weights": digest_weights(checkpoint, most)}


def digest_weights(checkpoint: Checkpoint, most: int | None = None) -> str:
    """Hexadecimal digest of the weights, `most` numbers of each or all."""
    weights = blake2b(digest_size=16)
    for name, weight in checkpoint.model.named_parameters():  # the file may be of a later step by now
        weights.update(name.encode())
        numbers = weight.detach().flatten()[:most].cpu().contiguous()
        weights.update(numbers.view(torch.uint8).numpy().tobytes())
    return weights.hexdigest()


def read_survey(path: Path, wanted: dict[str, str]) -> dict[str, Tensor] | None:
    """None where there is no such file, or it does not fit."""
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()} if file.metadata() == wanted else None
    except (OSError, SafetensorError):
        return None


def write_survey(path: Path, tensors: dict[str, Tensor], fits: dict[str, str]) -> None:
    """Keeps it; a disk that takes no file keeps none."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with suppress(OSError, SafetensorError):
        path.parent.mkdir(exist_ok=True)
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, partial, fits)
        os.replace(partial, path)
