"""Low-rank adapters (Hu et al. 2022, "LoRA", section 4.1): W x + scale B A x, of which only A and B are learned.

A model never holds one. `AdaptedRun` lets a forward pass see them, as an edit does for a run (`ApplyAdapter`), and
`merge` makes another model of them.
"""

from __future__ import annotations

import copy
import hashlib
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from engine.model.hooks import HookPoint, fold_layers
from engine.model.layers.dropout import dropout
from engine.model.layers.module import Linear

Model = TypeVar("Model", bound=nn.Module)
NO_WORD = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, eq=False)
class LowRank:
    """Change of one linear map: `a` is rank in, `b` is out rank, `scale` what multiplies their product."""

    a: Tensor
    b: Tensor
    scale: float
    dropout: float = 0.0

    def add_to(self, out: Tensor, x: Tensor, strength: float, training: bool) -> Tensor:
        """out + strength scale B A x, of x (... in) and out (... out); computed in the dtype of A and B."""
        read = dropout(x.to(self.a.dtype), self.dropout, training)
        return (out + linear(linear(read, self.a), self.b) * (strength * self.scale)).to(out.dtype)

    @property
    def delta(self) -> Tensor:
        """scale B A, out in."""
        return (self.b @ self.a) * self.scale


@dataclass(frozen=True, eq=False)
class Adapter:
    """`matrices` are (A: rank in, B: out rank) by the name of a linear map of the model, "blocks.0.attn.q".

    What is added is scaled by alpha / rank, or, `rank_stabilised`, by alpha / sqrt(rank) (Kalajdzievski 2023, "A rank
    stabilization scaling factor", theorem 3.2). `alphas` are those of maps that have their own. `dropout` is the share
    of inputs that a training leaves out, `base` what the model is called that it was made for. `saved` are tensors of
    the model, by name, that were learned beside the matrices, such as a new head's: the model has them already.
    """

    name: str
    matrices: Mapping[str, tuple[Tensor, Tensor]]
    alpha: float
    rank_stabilised: bool = False
    dropout: float = 0.0
    alphas: Mapping[str, float] = field(default_factory=dict)
    base: str = ""
    saved: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (a, b) in self.matrices.items():
            if a.dim() != 2 or b.dim() != 2 or len(a) != b.shape[1] or len(a) == 0:
                raise ValueError(
                    f"A and B of {name} must be rank x in and out x rank, got {shape(a)} and {shape(b)}; correct them."
                )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"the dropout of an adapter must lie in 0..1, below 1, got {self.dropout}.")
        if not all(map(math.isfinite, (self.alpha, *self.alphas.values()))):
            raise ValueError("the alpha of an adapter must be a finite number; correct it.")

    def rank_of(self, name: str) -> int:
        return len(self.matrices[name][0])

    def scale_of(self, name: str) -> float:
        rank = self.rank_of(name)
        return self.alphas.get(name, self.alpha) / (math.sqrt(rank) if self.rank_stabilised else rank)

    @property
    def rank(self) -> int:
        """The largest of its ranks."""
        return max(map(self.rank_of, self.matrices), default=0)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Each A and B once, also where several linear maps have the same one."""
        return tuple({id(tensor): tensor for pair in self.matrices.values() for tensor in pair}.values())

    @property
    def bytes(self) -> int:
        return sum(tensor.numel() * tensor.element_size() for tensor in self.tensors)

    @cached_property
    def key(self) -> str:
        """Its name with a digest of all that it does: another adapter has another one."""
        digest = hashlib.sha256(repr((self.alpha, self.rank_stabilised, sorted(self.alphas.items()))).encode())
        for name, pair in sorted(self.matrices.items()):
            digest.update(repr((name, *((tensor.dtype, tuple(tensor.shape)) for tensor in pair))).encode())
            for tensor in pair:
                digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return f"{NO_WORD.sub('-', self.name)[:40] or 'adapter'}~{digest.hexdigest()[:12]}"

    def parts(self, device: torch.device | None = None) -> dict[str, LowRank]:
        """Low-rank change of each linear map, by name, on `device`."""
        return {
            name: LowRank(a.to(device), b.to(device), self.scale_of(name), self.dropout)
            for name, (a, b) in self.matrices.items()
        }

    def trainable(self) -> Adapter:
        """A copy whose matrices are parameters, one where several linear maps have the same; `tensors` lists them."""
        return self.copy(nn.Parameter)

    def copy(self, make: Callable[[Tensor], Tensor] = lambda tensor: tensor) -> Adapter:
        """Returns a copy that later training does not change; `make` is called with each new tensor."""
        made = {id(tensor): make(tensor.detach().clone()) for tensor in self.tensors}
        return replace(self, matrices={name: (made[id(a)], made[id(b)]) for name, (a, b) in self.matrices.items()})


def shape(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape))


# --- The linear maps of a model ---


def name_linears(model: nn.Module) -> None:
    """Gives every linear map its full name; of those that share a weight, the first one's."""
    names: dict[int, str] = {}
    for path, module in model.named_modules():
        if isinstance(module, Linear):
            module.name = names.setdefault(id(module.weight), path)


def list_linears(model: nn.Module) -> dict[str, Linear]:
    """The linear maps that an adapter can act on, by name: those of attention and of the MLPs."""
    found: dict[str, Linear] = {}
    for module in model.modules():
        if isinstance(module, Linear):
            found.setdefault(module.name, module)
    return found


def find_targets(model: nn.Module, targets: Collection[str]) -> list[str]:
    """The linear maps that names, ends of names ("attn.q": in every block) or shell-style patterns stand for.

    Raises ValueError, listing the names there are, for one that stands for none.
    """
    names, found = list_linears(model), set()
    for target in targets:
        hits = {name for name in names if fnmatchcase(name, target) or fnmatchcase(name, f"*.{target}")}
        if not hits:
            raise ValueError(f"no linear map is called {target!r:.200}; this model has {fold_layers(names)}.")
        found |= hits
    return [name for name in names if name in found]


def check_fits(adapter: Adapter, model: nn.Module) -> None:
    """Raises ValueError where the model lacks a linear map of the adapter, or it has other widths there."""
    linears = list_linears(model)
    for name, (a, b) in adapter.matrices.items():
        if name not in linears:
            raise ValueError(
                f"the adapter {adapter.name!r:.80} acts on {name!r:.200}, and this model has {fold_layers(linears)}; "
                "use it with the model it was made for."
            )
        wanted = (linears[name].in_features, linears[name].out_features)
        if (a.shape[1], len(b)) != wanted:
            raise ValueError(
                f"the adapter {adapter.name!r:.80} maps {a.shape[1]} numbers to {len(b)} at {name}, and the model maps "
                f"{wanted[0]} to {wanted[1]}; use it with the model it was made for."
            )


def new_adapter(
    model: nn.Module,
    targets: Collection[str],
    rank: int = 8,
    alpha: float = 8.0,
    *,
    rank_stabilised: bool = False,
    dropout: float = 0.0,
    seed: int = 0,
    name: str = "adapter",
    base: str = "",
) -> Adapter:
    """An adapter that changes nothing yet: A is drawn from Kaiming's uniform distribution, U(-1/sqrt(in), 1/sqrt(in)),
    and B is zero, as `peft` begins.

    `targets` are as `find_targets` reads them. Raises ValueError for one that stands for nothing, and for a rank that
    is below 1 or above a matrix's smaller side.
    """
    linears, generator = list_linears(model), torch.Generator().manual_seed(seed)
    matrices = {}
    for target in find_targets(model, targets):
        weight = linears[target].weight
        if not 1 <= rank <= min(weight.shape):
            raise ValueError(f"the rank at {target} ({shape(weight)}) must lie in 1..{min(weight.shape)}, got {rank}.")
        a = torch.empty(rank, weight.shape[1])
        nn.init.kaiming_uniform_(a, a=math.sqrt(5), generator=generator)
        matrices[target] = (a.to(weight.device), torch.zeros(len(weight), rank, device=weight.device))
    return Adapter(name, matrices, alpha, rank_stabilised, dropout, base=base)


# --- In use ---


class AdaptedRun:
    """The active run of a forward pass with adapters alone, each with its strength: it records nothing.

    What they add is summed. Gradients reach matrices that are parameters. A compiled model does not see them.
    """

    changes = True

    def __init__(self, adapters: Mapping[Adapter, float], device: torch.device) -> None:
        self.parts = [(adapter.parts(device), strength) for adapter, strength in adapters.items()]

    def wants(self, hook: HookPoint) -> bool:
        return False

    def visit(self, hook: HookPoint, value: Tensor) -> Tensor:
        return value

    def adapts(self, name: str) -> bool:
        return any(name in parts for parts, _ in self.parts)

    def adapt(self, name: str, x: Tensor, out: Tensor, training: bool) -> Tensor:
        for parts, strength in self.parts:
            if strength and name in parts:
                out = parts[name].add_to(out, x, strength, training)
        return out


@torch.no_grad()
def merge(model: Model, adapters: Mapping[Adapter, float]) -> Model:
    """A model whose weights hold the adapters, W + strength scale B A; all other tensors are the model's own.

    Raises ValueError for an adapter that is not of this model.
    """
    merged = copy.deepcopy(model, {id(parameter): parameter for parameter in model.parameters()})
    linears = list_linears(merged)
    for adapter, strength in adapters.items():
        check_fits(adapter, merged)
        for name, part in adapter.parts(next(model.parameters()).device).items():
            weight = linears[name].weight
            changed = (weight + strength * part.delta).to(weight.dtype)
            linears[name].weight = nn.Parameter(changed, requires_grad=weight.requires_grad)
    return merged
