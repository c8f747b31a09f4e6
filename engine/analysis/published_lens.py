"""Lenses that others made, beside the weights of their model or from a hub.

Tuned ones in the form of the package tuned-lens (Belrose et al. 2023): a folder with `config.json` and `params.pt`,
whose translators are added to the stream as ours are. Jacobian ones in the form of the package jacobian-lens (Gurnee et
al. 2026, "Verbalizable Representations Form a Global Workspace in Language Models"): a file of `J`, by block the mean
derivative of the last stream by that behind the block, which unlike ours counts what it does at later positions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from engine.analysis.logit_lens import Translators, check_lens
from engine.checkpoints.torch_pickle import check_stored, read_torch_pickle, unpickle
from engine.checkpoints.weights import read_json
from engine.model.transformer import Transformer
from engine.plurals import count_words

if TYPE_CHECKING:
    from engine.checkpoints.hub import Progress

FOLDER, JACOBIANS = "tuned_lens", "jacobian_lens"  # beside the weights of their model
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


def read_jacobian_lens(file: Path, model: Transformer) -> Translators:
    """Raises ValueError, naming the file, for a lens that is damaged, or of a model of another shape."""
    check_lens(model.config)
    said, _ = unpickle(file)
    layers, width = model.config.layers, model.config.d_model
    found = said.get("J") if isinstance(said, dict) else None
    if not isinstance(found, dict) or not found or not all(map(is_block, found.items())):
        raise ValueError(f"{file} must hold J, a table of a block's number and its matrix; fetch it again.")
    check_stored(found, file)
    odd = next((block for block in found if not 0 <= block < layers), None)
    if odd is not None:
        raise ValueError(f"{file} must hold J of the blocks 0 to {layers - 1}, got {odd}; use the lens of this model.")
    matrix = torch.zeros(layers, width, width)
    for block, tensor in found.items():
        if tensor.shape != (width, width) or not tensor.is_floating_point() or not tensor.isfinite().all():
            raise ValueError(
                f"J of block {block} in {file} must be finite numbers of shape {[width, width]}, got "
                f"{list(tensor.shape)} of {tensor.dtype}; use the lens of this model."
            )
        if block + 1 < layers:  # the stream behind the last block is read as it is
            matrix[block + 1] = tensor.float() - torch.eye(width)
    count = said.get("n_prompts")
    missing = tuple(layer for layer in range(layers) if layer - 1 not in found)
    return Translators(
        matrix, torch.zeros(layers, width), count if isinstance(count, int) else 0, file.name, "Jacobian", missing
    )


def is_block(pair: tuple[Any, Any]) -> bool:
    return type(pair[0]) is int and isinstance(pair[1], Tensor)


def find_lens(folder: Path) -> Path | None:
    """The tuned lens, a folder, or else the file of a Jacobian lens that lies in the folder of a model. Raises
    ValueError for several Jacobian lenses."""
    if (folder / FOLDER).is_dir():
        return folder / FOLDER
    files = sorted((folder / JACOBIANS).glob("*.pt"))
    if len(files) > 1:
        raise ValueError(
            f"{folder / JACOBIANS} must hold one lens, got {count_words(len(files), 'file')}; leave the one to be read."
        )
    return files[0] if files else None


def read_lens(place: Path, model: Transformer) -> Translators:
    """Raises as `read_tuned_lens` and `read_jacobian_lens`."""
    return read_tuned_lens(place, model) if place.is_dir() else read_jacobian_lens(place, model)


def fetch_lens(
    text: str, model_name: str, most: int | None = None, report: Callable[[Progress], object] | None = None
) -> Path:
    """The lens of a model in a repository of a hub that may have lenses of many, fetched to this machine.

    `text` is hub:org/name or hub:org/name@revision, and behind a space the path of one lens where several are of the
    model. Raises ValueError where there is not one lens, and as `engine.checkpoints.hub.plan` and `fetch` do.
    """
    from engine.checkpoints import hub  # what speaks to a network is slow to import

    repo, _, path = text.strip().partition(" ")
    name = hub.parse(repo)
    base = hub.parse(model_name).repo.rpartition("/")[2] if model_name.startswith(hub.PREFIX) else model_name
    lens: list[str] = []

    def choose(names: Collection[str]) -> list[str]:
        found = [one for one in names if one == path.strip()] if path else choose_lenses(names, base)
        if len(found) != 1:
            got = ", ".join(sorted(found)[:5]) or "none"
            raise ValueError(
                f"{name} must have one lens of {base!r:.80} (a .pt file below that name), got {got}; write its path "
                "behind the name and a space."
            )
        lens.extend(found)
        beside = str(PurePosixPath(found[0]).with_name(CONFIG))
        return [*([beside] if found[0].endswith(PARAMETERS) and beside in names else []), found[0]]

    download = hub.plan_online(name, hub.fetch_listing(name), choose)
    hub.fetch(download, most, report)
    place = download.folder / lens[0]
    return place.parent if place.name == PARAMETERS else place


def choose_lenses(names: Iterable[str], base: str) -> list[str]:
    """Files of lenses below a folder called like a model, or called so themselves up to an underscore."""
    wanted = base.casefold()

    def is_of_model(name: str) -> bool:
        *folders, file = name.casefold().split("/")
        return wanted in folders or file.startswith(f"{wanted}_")

    return [name for name in names if name.endswith(".pt") and is_of_model(name)]


def compare_translators(one: Translators, other: Translators) -> Tensor:
    """Cosine of two lenses by layer: of what they add to a stream, A and b as one vector, or of Jacobians, J itself; 0
    where one is 0."""
    eye = torch.eye(one.matrix.shape[-1]) if one.kind == "Jacobian" else 0
    first, second = (torch.cat([(lens.matrix + eye).flatten(1), lens.bias], 1) for lens in (one, other))
    return torch.cosine_similarity(first, second)
