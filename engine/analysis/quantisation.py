"""Which matrix did it: what a model says with one of its matrices exchanged, and with all.

What is exchanged is what a scheme of few bits, or another model of the same shape, changes a matrix by. Over a text
the distance is that of llama.cpp's perplexity tool: KL(this model || the other) at each position, and how often both
have the same likeliest token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.analysis.interventions.metric import Metric, log_distribution, read_row
from engine.analysis.interventions.patching import run_rows
from engine.checkpoints import Checkpoint
from engine.edits import ExchangedMaps
from engine.edits.quantise import quantised_change
from engine.inputs.readers import Reading
from engine.model.layers.lora import list_linears
from engine.model.quantised import SCHEMES
from engine.model.transformer import Transformer
from engine.runtime.run import run
from engine.runtime.trace import Trace

Changes = Mapping[str, Tensor]  # by the name of a linear map, out in


@dataclass(frozen=True, eq=False)
class MadeChanges(Changes):
    """Changes of the maps `names`, each of which is made when it is asked for: of all together there is no room."""

    names: tuple[str, ...]
    make: Callable[[str], Tensor]

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.names:
            raise KeyError(name)
        return self.make(name)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def only(self, names: Sequence[str]) -> MadeChanges:
        return replace(self, names=tuple(names))


@dataclass(frozen=True)
class Exchange:
    """`measured` is the metric, and `kl` the distance of the prediction from that of the run without exchanges, in
    nats."""

    measured: float
    kl: float


@dataclass(frozen=True)
class TextDistances:
    """KL in nats at each position of the texts, and at which of them both models have the same likeliest token."""

    kl: Tensor
    same: Tensor


def changes_by_scheme(model: Transformer, scheme: str) -> MadeChanges:
    """Finds what a scheme changes each linear map by; maps whose rows are no whole blocks stay. Raises ValueError where
    that are all of them."""
    names, faults = list[str](), list[str]()
    for name, one in list_linears(model).items():
        try:
            SCHEMES[scheme].check_written(one.weight.shape[-1])
            names.append(name)
        except ValueError as error:
            faults.append(f"{name}: {error}")
    if not names:
        raise ValueError(faults[0] if faults else "this model has no matrices to quantise; choose another one.")
    return MadeChanges(tuple(names), lambda name: quantised_change(model, name, scheme))


@torch.no_grad()
def changes_to(model: Transformer, other: Transformer) -> MadeChanges:
    """Finds what another model of the same shape has in place of each linear map. Raises ValueError for one of another
    shape, and for one that has the same matrices."""
    own, theirs = list_linears(model), list_linears(other)
    if {name: one.weight.shape for name, one in own.items()} != {
        name: one.weight.shape for name, one in theirs.items()
    }:
        raise ValueError("the other model must have the same matrices, of the same sizes; choose one of this shape.")

    def change(name: str) -> Tensor:
        return theirs[name].weight.detach().float() - own[name].weight.detach().float()

    names = tuple(name for name in own if bool(change(name).any()))
    if not names:
        raise ValueError("the other model has the same matrices to the last bit; choose another one.")
    return MadeChanges(names, change)


def relative_error(model: Transformer, name: str, change: Tensor) -> float:
    """The norm of a change beside that of the matrix (Frobenius)."""
    return float(change.norm() / list_linears(model)[name].weight.detach().float().norm().clamp(min=1e-30))


@torch.no_grad()
def exchange(model: Transformer, trace: Trace, changes: Changes, metric: Metric, row: int) -> Exchange:
    """The run of `trace` with some matrices exchanged; it begins at the first block that has one."""
    aim = log_distribution(read_row(model, trace, row)[0], model.config.link)
    logits = run_rows(model, trace, [ExchangedMaps(changes)], 1, row)
    kl = Metric("KL", metric.candidate, None, aim, model.config.link)(logits)
    return Exchange(float(metric(logits)[0]), float(kl[0]))


def exchange_each(model: Transformer, trace: Trace, changes: Changes, metric: Metric, row: int) -> dict[str, Exchange]:
    """Each matrix by itself."""
    return {name: exchange(model, trace, {name: change}, metric, row) for name, change in changes.items()}


@torch.no_grad()
def text_distance(checkpoint: Checkpoint, changes: Changes, reading: Reading) -> TextDistances:
    """Distances at every position of one text."""
    given = checkpoint.model, reading.read, ["logits"]
    own, theirs = (
        run(*given, edits, target=reading.target)["logits"][0].float().log_softmax(-1)
        for edits in ((), (ExchangedMaps(changes),))
    )
    return TextDistances((own.exp() * (own - theirs)).nansum(-1).clamp(min=0), own.argmax(-1) == theirs.argmax(-1))


def join_distances(found: Sequence[TextDistances]) -> TextDistances:
    return TextDistances(*(torch.cat([getattr(one, part) for one in found]) for part in ("kl", "same")))
