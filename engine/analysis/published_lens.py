"""Tuned lenses that others learned, in the form of the package tuned-lens (Belrose et al. 2023): a folder with
`config.json` and `params.pt`, whose translators are added to the stream as ours are."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from engine.analysis.logit_lens import Translators, check_lens
from engine.checkpoints.torch_pickle import read_torch_pickle
from engine.checkpoints.weights import read_json
from engine.model.transformer import Transformer

FOLDER = "tuned_lens"  # beside the weights of its model
CONFIG, PARAMETERS = "config.json", "params.pt"
KIND = "linear_tuned_lens"
LONGEST_BASE = 200  # letters of the base's name


def read_tuned_lens(folder: Path, model: Transformer) -> Translators:
    """Raises ValueError, naming the file, for a lens that is damaged, or of a model of another shape."""
    check_lens(model.config)
    lacking = next((name for name in (CONFIG, PARAMETERS) if not (folder / name).is_file()), None)
    if lacking is not None:
        raise ValueError(f"{folder} must hold {CONFIG} and {PARAMETERS} of a tuned lens, and lacks {lacking}; add it.")
    said, layers, width = read_json(folder / CONFIG), model.config.layers, model.config.d_model
    wanted = {"lens_type": KIND, "d_model": width, "num_hidden_layers": layers}
    for key, value in wanted.items():
        if (got := said.get(key, KIND if key == "lens_type" else None)) != value:
            raise ValueError(
                f"{folder / CONFIG} must have a {key} of {value!r}, as this model needs, got {got!r:.80}; use the lens "
                "of this very model."
            )
    has_bias = said.get("bias", True) is not False
    parts = {"weight": (width, width)} | ({"bias": (width,)} if has_bias else {})
    stored = read_torch_pickle(folder / PARAMETERS).tensors
    names = {f"{layer}.{part}" for layer in range(layers) for part in parts}
    if stored.keys() != names:
        odd = min(stored.keys() ^ names)
        raise ValueError(
            f"{folder / PARAMETERS} must hold {', '.join(parts)} of layers 0 to {layers - 1} alone, and {odd!r:.80} is "
            f"{'missing' if odd in names else 'there'}; fetch it again."
        )
    for part, shape in parts.items():
        for layer in range(layers):
            tensor = stored[f"{layer}.{part}"]
            if tensor.shape != shape or not tensor.is_floating_point() or not tensor.isfinite().all():
                raise ValueError(
                    f"{layer}.{part} in {folder / PARAMETERS} must be finite numbers of shape {list(shape)}, got "
                    f"{list(tensor.shape)} of {tensor.dtype}; fetch it again."
                )
    matrix, *bias = (torch.stack([stored[f"{layer}.{part}"].float() for layer in range(layers)]) for part in parts)
    base = str(said.get("base_model_name_or_path", ""))[:LONGEST_BASE]
    return Translators(matrix, bias[0] if bias else torch.zeros(layers, width), base=base)


def compare_translators(one: Translators, other: Translators) -> Tensor:
    """Cosine of what two lenses add to a stream, A and b of each layer as one vector; 0 where one adds nothing."""
    first, second = (torch.cat([lens.matrix.flatten(1), lens.bias], 1) for lens in (one, other))
    return torch.cosine_similarity(first, second)
