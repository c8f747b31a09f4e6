"""Parts of a model by name: which of them learn, and how deep below the head each stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import nn

from engine.checkpoints.assemble import build_without_memory, list_parameters
from engine.model.layers.lora import new_adapter

if TYPE_CHECKING:
    from engine.training.base.base import Transfer
    from engine.training.recipe.recipe import Recipe

BLOCK = re.compile(r"(?:encoder\.|decoder\.)?blocks\.\d+")
LAST = re.compile(r"last (\d{1,6}) blocks?", re.ASCII)
HEAD = ("head", "pooler", "next_sentence", "language")
AFTER = (*HEAD, "final_norm", "decoder.final_norm")


def gradient_part(name: str) -> str:
    """Part of a model that a parameter belongs to: "embed", "blocks.0", ..., "head", with "encoder." or "decoder."
    before a block of two stacks; the final norm is the head's."""
    name = name.removeprefix("adapter.").replace("/", ".")
    block = BLOCK.match(name)
    return block[0] if block else "embed" if "embed." in name or "relative." in name else "head"


def choose_parts(model: nn.Module, parts: str | tuple[str, ...]) -> None:
    """Freezes every parameter outside of `parts`, which are those of a recipe's [train]. Raises ValueError for one that
    names nothing."""
    if parts in ("all", "lora"):
        return
    learning = learning_names([name for name, _ in model.named_parameters()], parts)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in learning)


def learning_names(names: Sequence[str], parts: str | tuple[str, ...]) -> frozenset[str]:
    """Chooses of the parameters' names those in `parts`. Raises ValueError for a part that names nothing."""
    blocks = list(dict.fromkeys(match[0] for match in map(BLOCK.match, names) if match))
    found: set[str] = set()
    for part in (parts,) if isinstance(parts, str) else parts:
        last = LAST.fullmatch(part)
        prefixes: tuple[str, ...] = HEAD if part == "head" else (part,)
        if last is not None:
            within = 1 <= int(last[1]) <= len(blocks)
            prefixes = (*blocks[-int(last[1]) :], *AFTER) if within else ()
        chosen = {name for name in names if part == "all" or any(f"{name}.".startswith(f"{p}.") for p in prefixes)}
        if not chosen:
            known = dict.fromkeys(match[0] if (match := BLOCK.match(name)) else name.split(".")[0] for name in names)
            raise ValueError(
                f'train.parts must be "all", "head", "last N blocks", "lora" or a list of parts ({", ".join(known)}, '
                f"or what is in them), got {part!r:.80}, which names nothing in this model; choose among those."
            )
        found |= chosen
    if not found:
        raise ValueError('train.parts must name at least one part, got an empty list; write "all".')
    return frozenset(found)


def depths(names: Sequence[str]) -> dict[str, int]:
    """Depth of each parameter below the head, which is 0: 1 for the last block, and most for the embeddings (Howard &
    Ruder 2018, section 3.2)."""
    blocks = list(dict.fromkeys(match[0] for match in map(BLOCK.match, names) if match))
    depth = {"head": 0, "embed": len(blocks) + 1} | {name: len(blocks) - at for at, name in enumerate(blocks)}
    return {name: depth[gradient_part(name)] for name in names}


def count_learning(recipe: Recipe, transfer: Transfer | None) -> tuple[int, int]:
    """Number of parameters that learn, and of all that the model has with its adapter."""
    sizes = {name: tensor.numel() for name, tensor in list_parameters(recipe.model).items()}
    if recipe.train.parts != "lora":
        chosen = learning_names(list(sizes), recipe.train.parts)
        return sum(sizes[name] for name in chosen), sum(sizes.values())
    adapter = new_adapter(build_without_memory(recipe.model), recipe.lora.targets, recipe.lora.rank)
    own = sum(tensor.numel() for tensor in adapter.tensors)
    new = sum(sizes.get(name, 0) for name in (transfer.new if transfer is not None else ()))
    return own + new, own + sum(sizes.values())
