"""Writes an adapter in PEFT's format.

Where a file has one matrix for several of ours (GPT-2's c_attn), it has the parts' A on top of each other and their B
side by side, zero elsewhere.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from engine.checkpoints.adapters.config import BASE, CONFIG, HUB_NAME, TASKS, WEIGHTS, public_base, task_of
from engine.checkpoints.adapters.read import PREFIX, Module, list_modules
from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.families import NATIVE
from engine.checkpoints.family import Family, Row
from engine.checkpoints.save import family_for, keep_settings, name_export, write_config, zip_folder
from engine.checkpoints.weights import write_weights
from engine.model.config import ModelConfig
from engine.model.layers.lora import Adapter, check_fits, list_linears
from engine.model.transformer import Transformer

README = "README.md"


def write_adapter(adapter: Adapter, checkpoint: Checkpoint, folder: str | Path) -> None:
    """Write the two files of PEFT's format for the family that `checkpoint.save` would write the base in.

    A head over classes, and what else the adapter's training `saved`, are in them as PEFT's modules_to_save, and then
    config.json beside them has the names of the classes. A README.md says how they open on another machine. Raises
    ValueError for an adapter that is not of this base.
    """
    folder, model = Path(folder), checkpoint.model
    check_fits(adapter, model)
    family, settings = family_for(model.config, checkpoint.family)
    rows = family.bind(model.state_dict())
    modules = list_modules(model, rows)
    widths = {name: linear.out_features for name, linear in list_linears(model).items()}
    body = family.optional_prefix if family.head == "none" else ""
    tensors: dict[str, Tensor] = {}
    ranks: dict[str, int] = {}
    alphas: dict[str, float] = {}
    for full, module in modules.items():
        if any(name in adapter.matrices for name in module.ours):
            name = family.module_name(full.removeprefix(body))
            a, b, alphas[name] = join_parts(adapter, module, widths, model.config)
            ranks[name] = len(a)
            tensors |= {f"{PREFIX}{name}.lora_A.weight": a, f"{PREFIX}{name}.lora_B.weight": b}
    if not tensors:
        raise ValueError(f"an adapter must act on a linear map to be written, and {adapter.name!r:.80} acts on none.")
    saved = list_saved(adapter, model, family, rows)
    tensors |= {f"{PREFIX}{family.module_name(name.removeprefix(body))}": tensor for name, tensor in saved.items()}
    rank, alpha = (Counter(values.values()).most_common(1)[0][0] for values in (ranks, alphas))
    public = public_base(adapter.base or checkpoint.name)
    hub = HUB_NAME.fullmatch(public)
    named, revision = hub.groups("") if hub else (public, "")
    config = {
        "peft_type": "LORA",
        "task_type": task_of(model.config),
        BASE: named or None,
        "revision": revision or None,
        "r": rank,
        "lora_alpha": alpha,
        "rank_pattern": {name: own for name, own in ranks.items() if own != rank},
        "alpha_pattern": {name: own for name, own in alphas.items() if own != alpha},
        "use_rslora": adapter.rank_stabilised,
        "lora_dropout": adapter.dropout,
        "target_modules": sorted(ranks),
        "modules_to_save": sorted({family.module_name(saved_module(name, family).removeprefix(body)) for name in saved})
        or None,
        "fan_in_fan_out": any(module.transposed for module in modules.values()),
        "bias": "none",
        "init_lora_weights": True,
        "inference_mode": True,
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(folder / WEIGHTS[0], tensors, {"format": "pt"})
    (folder / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if saved:
        write_config(checkpoint, folder, keep_settings(checkpoint, family, settings))
    opener = family.architecture if family is not NATIVE else None
    readme = describe_opening(folder.name, named, revision, opener, bool(saved))
    (folder / README).write_text(readme, encoding="utf-8")


def describe_opening(name: str, base: str, revision: str, opener: str | None, saved: bool) -> str:
    """Text of README.md: what an adapter changes, and the lines that open it on another machine.

    `opener` is transformers' class of the base, None where it has none; with `saved` tensors beside A and B the
    adapter's own config.json says of which head.
    """
    name, base = re.sub(r"[^\w .-]", "-", name), re.sub(r"[^\w/:@. -]", "-", base) or "base"
    hub = HUB_NAME.fullmatch(base) is not None
    place = base if hub else name_export(base)
    more = f", revision={revision!r}" * (hub and bool(revision))
    more += f", config=AutoConfig.from_pretrained({name!r})" * saved
    lines = ["from engine import load", "", f"model = load({name!r}, config={{{BASE!r}: {place!r}}}).model"]
    if opener is not None:
        lines = ["from peft import PeftModel", f"from transformers import {'AutoConfig, ' * saved}{opener}", ""]
        lines += [f"base = {opener}.from_pretrained({place!r}{more})"]
        lines += [f"model = PeftModel.from_pretrained(base, {name!r})"]
    get = f"open {base} in Loupe, on the page Checkpoint, take Export and Folder, zipped, and unpack that as {place!r}"
    told = f"This adapter (LoRA) changes the model {base}, which is not in this folder: "
    told += "transformers fetches it from the hub." if hub else f"{get}, beside this folder."
    front = ["---", *([f"base_model: {base}"] if hub else []), "library_name: peft", "---"]
    return "\n".join([*front, "", f"# {name}", "", told, "", "```python", *lines, "```", ""])


def list_saved(adapter: Adapter, model: Transformer, family: Family, rows: Sequence[Row]) -> dict[str, Tensor]:
    """Tensors by the family's names that are written whole: those that the adapter saved and, of a head over classes,
    all, with whatever else lies in the same modules."""
    ours = set(adapter.saved)
    if model.config.head.over_classes:
        ours |= {name for name in model.state_dict() if name.startswith("head.")}
    touched = {source for row in rows if ours.intersection(row.target) for source in row.source}
    modules = {saved_module(source, family) for source in touched}
    chosen = [row for row in rows if any(saved_module(source, family) in modules for source in row.source)]
    state = {**model.state_dict(), **adapter.saved}
    return {
        source: tensor.detach().contiguous()
        for row in chosen
        for source, tensor in zip(
            row.source, row.inverse.transform.read([state[name] for name in row.target], model.config), strict=True
        )
    }


def saved_module(source: str, family: Family) -> str:
    """The module of modules_to_save that holds a tensor: the outermost one of a head over classes, which PEFT names by
    itself, else its own."""
    prefix, path = family.optional_prefix, source.rpartition(".")[0]
    own = family.head not in TASKS or (prefix and path.startswith(prefix))
    return path if own else path.partition(".")[0]


def export_adapters(checkpoint: Checkpoint, folder: Path) -> Path:
    """Write into `folder` a zip with a folder of PEFT's format for each adapter of the checkpoint."""
    target = folder / "adapters.zip"
    with TemporaryDirectory(dir=folder) as made:
        for adapter in checkpoint.adapters:
            name = adapter.key.partition("~")[0].strip(".-") or "adapter"
            write_adapter(adapter, checkpoint, Path(made) / name)
        zip_folder(Path(made), target)
    return target


def join_parts(
    adapter: Adapter, module: Module, widths: Mapping[str, int], config: ModelConfig
) -> tuple[Tensor, Tensor, float]:
    """A (rank in), B (out rank) and alpha of one module of the file; parts with the same A share it."""
    parts = [name for name in module.ours if name in adapter.matrices]
    first = parts[0]
    distinct: list[Tensor] = []
    place: dict[str, int] = {}
    for name in parts:
        a = adapter.matrices[name][0]
        place[name] = next((i for i, other in enumerate(distinct) if torch.equal(a, other)), len(distinct))
        distinct += [a] if place[name] == len(distinct) else []
    starts = [0, *accumulate(map(len, distinct))]
    rank, columns = starts[-1], []
    scale = next(filter(None, map(adapter.scale_of, parts)), 1.0)
    alpha = adapter.alphas.get(first, adapter.alpha)
    if rank != adapter.rank_of(first) or scale != adapter.scale_of(first):
        alpha = scale * (math.sqrt(rank) if adapter.rank_stabilised else rank)
    for name in module.ours:
        b = torch.zeros(widths[name], rank, dtype=distinct[0].dtype, device=distinct[0].device)
        if name in place:
            own = adapter.matrices[name][1].detach() * (adapter.scale_of(name) / scale)
            b[:, starts[place[name]] : starts[place[name] + 1]] = own
        columns.append(b)
    return torch.cat(distinct).detach(), module.join(columns, config), alpha
