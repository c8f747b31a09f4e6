"""TensorFlow's files of weights (`tf_model.h5`), read by h5py and without TensorFlow.

Names and layout become those of PyTorch as transformers turns them: a `kernel` is a `weight` with its axes the other
way round, `gamma` and `beta` are a norm's weight and bias, and `_._` parts the number of a layer from its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

MOST_TENSORS, LONGEST_NAME = 2**18, 1000
DTYPES = {"float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8"}
RENAMED = {"kernel": "weight", "embeddings": "weight", "gamma": "weight", "beta": "bias"}  # the last part of a name
SCOPE = re.compile(r"/[^/]*___([^/]*)/")  # of a layer that stands elsewhere in PyTorch: mlm___cls is cls
INSTALL = 'install it with pip install "loupe-engine[tensorflow]", or fetch model.safetensors of the same model.'


class StoredTensors(NamedTuple):
    """Tensors of a file by PyTorch's names."""

    shapes: dict[str, tuple[int, ...]]
    readers: dict[str, Callable[[str], Tensor]]
    dtypes: dict[str, str]
    files: dict[str, Path]


def open_tensorflow(path: Path) -> StoredTensors:
    """Raises ValueError, in one sentence, for what is no such file, is damaged, or tells of more than it holds, and
    where h5py is missing."""
    if find_spec("h5py") is None:
        raise ValueError(f"{path.name} is TensorFlow's, which needs h5py to be read: {INSTALL}")
    import h5py  # an extra

    size, found = path.stat().st_size, StoredTensors({}, {}, {}, {})

    def visit(name: str, node: Any) -> None:
        if not isinstance(node, h5py.Dataset):
            return
        if len(name) > LONGEST_NAME or len(found.shapes) >= MOST_TENSORS:
            raise ValueError(f"{path} has more names, or longer ones, than a model has; do not trust it.")
        if node.is_virtual or node.external or node.compression or node.dtype.name not in DTYPES:
            raise ValueError(
                f"{path} must hold plain numbers, and {name!r:.80} is of {node.dtype}, compressed or in another file; "
                "save it anew."
            )
        if node.nbytes > size or node.id.get_storage_size() != node.nbytes:
            raise ValueError(
                f"{path} has {node.nbytes:,} bytes of {name!r:.80}, and does not hold them; fetch it again."
            )
        ours, turned = pytorch_name(name), name.removesuffix(":0").endswith("/kernel")
        if ours in found.shapes:
            raise ValueError(f"{path} has two tensors for {ours!r:.80}; save it anew.")
        shape = tuple(node.shape)
        found.shapes[ours] = shape[::-1] if turned else shape
        found.readers[ours] = partial(read, path, name, turned)
        found.dtypes[ours], found.files[ours] = node.dtype.name, path

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)
    except (OSError, RuntimeError, KeyError, TypeError, UnicodeError) as error:
        told = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} must be an HDF5 file, and does not read as one ({told}); fetch it again.") from None
    if not found.shapes:
        raise ValueError(f"{path} must hold tensors, and has none; fetch it again.")
    return found


def pytorch_name(name: str) -> str:
    """The name of a dataset, `layer/model/bert/encoder/layer_._0/attention/self/query/kernel:0`, as PyTorch has it."""
    scoped = SCOPE.sub(r"/\1/", f"/{name.removesuffix(':0')}").replace("_._", "/")
    parts = [part for part in scoped.split("/") if part]
    parts = parts[2:] if len(parts) > 2 else parts[-1:]  # without the layer's group and the model's own name
    return ".".join((*parts[:-1], RENAMED.get(parts[-1], parts[-1])))


def read(path: Path, name: str, turned: bool, _: str) -> Tensor:
    import h5py  # an extra

    with h5py.File(path, "r") as file:
        whole = torch.from_numpy(file[name][()])
    return whole.permute(*range(whole.dim())[::-1]).contiguous() if turned else whole
