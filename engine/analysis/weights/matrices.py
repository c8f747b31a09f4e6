"""Every parameter tensor of a model, in the order in which the stream meets them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from torch import Tensor

from engine.analysis.sizes import parameters
from engine.model.config import ModelConfig
from engine.model.transformer import Transformer

Kind = Literal["matrix", "vector", "bias", "norm"]

BEFORE = ("norm1", "attn", "norm1_after", "norm_cross", "cross_attn", "norm2", "mlp", "norm2_after")
AFTER = ("attn", "norm1", "cross_attn", "norm_cross", "mlp", "norm2")
ENDS = (
    *("encoder", "decoder", "embed", "relative", "distances", "distances_norm", "blocks"),
    *("final_norm", "pooler", "next_sentence", "head", "vector"),
)
WITHIN = (
    *("patches", "conv1", "conv2", "cls", "segments", "positions", "within"),
    *("q", "q_norm", "k", "v", "k_norm", "position_k", "position_q", "pre", "up", "out"),
    *("dense", "narrow", "norm", "weight", "bias", "distilled", "project", "mapped"),
)


@dataclass(frozen=True)
class Matrix:
    """Parameter tensor of a model. `others` are more names of the same numbers (a tied head, layers that share).

    `part` is the module of the stack that it belongs to, `title` what it is in the words of `engine.analysis.sizes`,
    `family` its name with * for the layer, the same for all layers. `dtype` reads "float32".
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    side: Literal["", "encoder", "decoder"]
    part: str
    layer: int | None
    kind: Kind
    title: str
    others: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        return pattern_of_name(self.name)


def matrices(model: Transformer) -> tuple[Matrix, ...]:
    """Each tensor once, under its first name. `model.get_parameter(name)` is the tensor."""
    parts = order(model.config)
    rank = {part: i for i, part in reversed(list(enumerate(parts)))}
    titles = {part.tensors: part.name for part in parameters(model.config)}
    tied = named_elsewhere(model)
    names: dict[Tensor, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(parameter, []).append(name)

    def sort_key(name: str) -> list[int]:
        return [int(part) if part.isdigit() else rank.get(part, len(parts)) for part in name.split(".")]

    found = [matrix(first, tensor, titles, (*more, *tied.get(first, ()))) for tensor, (first, *more) in names.items()]
    return tuple(sorted(found, key=lambda each: sort_key(each.name)))


def order(config: ModelConfig) -> tuple[str, ...]:
    """The parts of a name in the order of the forward pass; of a part that stands twice the first counts."""
    block = AFTER if config.norm.place == "after" else BEFORE
    narrow_tokens = ("mapped",) if config.embedding.mapped == "tokens" else ()
    return (*ENDS, *block, "tokens", *narrow_tokens, *WITHIN)


def matrix(name: str, tensor: Tensor, titles: dict[str, str], others: tuple[str, ...]) -> Matrix:
    first, _, rest = name.partition(".")
    side = first if first in ("encoder", "decoder") else ""
    inside = re.match(r"blocks\.(\d+)\.", rest if side else name)
    within = (rest if side else name)[inside.end() if inside else 0 :]
    title = next((title for tensors, title in titles.items() if fnmatchcase(pattern_of_name(name), tensors)), within)
    return Matrix(
        name=name,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        side=side,  # type: ignore[arg-type]
        part=within.partition(".")[0],
        layer=int(inside[1]) if inside else None,
        kind=kind(within, tensor),
        title=title,
        others=others,
    )


def kind(name: str, tensor: Tensor) -> Kind:
    if "norm" in name:
        return "norm"
    if name.endswith("bias"):
        return "bias"
    return "matrix" if tensor.dim() > 1 else "vector"


def named_elsewhere(model: Transformer) -> dict[str, tuple[str, ...]]:
    """Names of the token table elsewhere, by that of the embedding that holds it."""
    config = model.config
    head = ("head.weight",) if head_is_tied(model) else ()
    two = config.encoder is not None and config.embedding.of_tokens
    others = ("decoder.embed.tokens.weight", *head) if two else head
    return {config.table: others} if others else {}


def head_is_tied(model: Transformer) -> bool:
    return model.config.tied and model.config.head.kind in ("language", "masked")


def pattern_of_name(name: str) -> str:
    return re.sub(r"\bblocks\.\d+\.", "blocks.*.", name)
