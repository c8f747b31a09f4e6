"""What the kept weights of a training run say without being read: how far it is, how large its model is."""

from __future__ import annotations

from math import prod

from safetensors import SafetensorError

from engine.checkpoints.adapter_snapshot import KEY
from engine.checkpoints.weights import safetensors_header
from engine.json_text import parse_json
from engine.training.run.folder import RunFolder
from engine.training.run.latest import Progress, read_progress


def progress(run: RunFolder) -> Progress | None:
    """Progress of latest/. None where there is none, or it is damaged."""
    try:
        return read_progress(run.latest)
    except (ValueError, OSError, SafetensorError):
        return None


def count_parameters(run: RunFolder) -> int | None:
    """Counts the parameters of the model, by the header of the newest weights. None where none were kept yet."""
    kept = run.snapshot_steps()
    file = run.snapshot(kept[-1]) if kept else run.weights
    if not file.exists():
        return None
    header = safetensors_header(file)
    if KEY in header.get("__metadata__", {}):
        return int(parse_json(header["__metadata__"][KEY])["parameters"])
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    return sum(prod(entry["shape"]) for entry in tensors.values())
