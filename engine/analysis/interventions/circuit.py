"""Circuits of heads and MLPs: how much of a prediction some of them make alone, and how much is left without them.

Wang et al. 2023, "Interpretability in the Wild", section 4: a circuit is faithful as far as the model predicts the same
with every other part's value replaced, and complete as far as nothing is left where its own parts are replaced. Conmy
et al. 2023, "Towards Automated Circuit Discovery", set circuits beside random ones of equal size.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.analysis.interventions.edges import Node
from engine.analysis.interventions.pairs import source_of, take_from
from engine.analysis.interventions.patching import (
    Constant,
    Origin,
    PatchRows,
    Resample,
    rows_together,
    run_rows,
    spread,
)
from engine.analysis.interventions.sites import SITES
from engine.analysis.interventions.sweep import SAME, Sweep
from engine.edits import Edit, KeepParts
from engine.model.config import ModelConfig

RANDOM = 8  # circuits of each size
POINTS = 24  # sizes at most


@dataclass(frozen=True)
class Curve:
    """`nodes` in the order of what the prediction loses with each alone; circuits are the first of them, by `sizes`.

    All else (size) is a share of what replacing every node takes away: `faithful` of the circuit alone, `left` without
    it, and `random` (size circuit) of random circuits alone.
    """

    nodes: tuple[Node, ...]
    sizes: tuple[int, ...]
    faithful: Tensor
    left: Tensor
    random: Tensor


def list_nodes(config: ModelConfig) -> tuple[Node, ...]:
    """Heads and MLPs of a decoder, or of the one stack."""
    found = list[Node]()
    for layer in range(config.layers):
        found += [Node("head", layer, head) for head in range(config.attention.heads)]
        found += [Node("MLP", layer)] if config.mlp else []
    return tuple(found)


@torch.no_grad()
def measure_circuits(sweep: Sweep, kept: Tensor) -> Tensor:
    """The metric of each circuit alone, in the run of `sweep.trace`: `kept` (circuit node, in the order of
    `list_nodes`) says which nodes keep their values, all others take those of the other run."""
    model, base = sweep.model, sweep.trace
    breaking = sweep if sweep.base is base else replace_direction(sweep)
    side = "decoder" if model.config.encoder else ""
    nodes = list_nodes(model.config)
    found = []
    for rows in kept.split(rows_together(model, base)):
        each = [measure_rows(breaking, origin, rows, nodes, side) for origin in breaking.origins]
        found.append(torch.stack(each).mean(0))
    return torch.cat(found)


def measure_rows(sweep: Sweep, origin: Origin, kept: Tensor, nodes: Sequence[Node], side: str) -> Tensor:
    """The metric of circuits that run together, all other parts with the values of one origin."""
    model, base = sweep.model, sweep.base
    edits = list[Edit]()
    for layer in range(model.config.layers):
        for site in ("z", "MLP") if model.config.mlp else ("z",):
            hook = SITES[site].hook(model, layer, side)
            values, known = origin.values(hook, base[hook.name][:1])
            own = [number for number, node in enumerate(nodes) if node.layer == layer and is_of(node, site)]
            gone = spread(~kept[:, own], hook, "head") if site == "z" else (~kept[:, own]).view(-1, 1, 1)
            edits.append(PatchRows(hook.name, values, gone if known is None else gone & spread(known, hook, "pos")))
    return sweep.measure(run_rows(model, base, edits, len(kept), sweep.rows[0]))


def is_of(node: Node, site: str) -> bool:
    return (node.part == "MLP") == (site == "MLP")


def replace_direction(sweep: Sweep) -> Sweep:
    given = sweep.model, sweep.trace, sweep.other, sweep.metric, sweep.row, sweep.candidate, sweep.against
    return Sweep(*given, "break")


def keep_parts(sweep: Sweep, nodes: Collection[Node], alone: bool = True) -> KeepParts | None:
    """The edit that lets nodes keep their values in the run of `sweep.trace`, or all others where not `alone`, as
    `measure_circuits` does; None where the other values are of several texts one by one, or are aligned otherwise than
    position by position."""
    model, other = sweep.model, sweep.other
    side = "decoder" if model.config.encoder else ""
    replaced = [node for node in list_nodes(model.config) if (node in nodes) != alone]
    kept = dict[str, list[int]]()
    for layer in range(model.config.layers):
        heads = {node.head for node in replaced if node.layer == layer and node.head is not None}
        if heads:
            own = set(range(model.config.attention.heads)) - heads
            kept[SITES["z"].hook(model, layer, side).name] = sorted(own)
        if Node("MLP", layer) in replaced:
            kept[SITES["MLP"].hook(model, layer, side).name] = []
    if not kept:
        return None
    if isinstance(other, Resample):
        return None
    if isinstance(other, Constant):
        first, *further = other.texts or [None]
        return KeepParts(kept, "zero" if other.means is None else "mean", first, further)  # type: ignore[arg-type]
    partners = take_from(sweep.trace, other).partners or {}
    if any(not torch.equal(one, torch.arange(len(one))) for one in partners.values()):
        return None
    return KeepParts(kept, "patch", source_of(other))


def trace_curve(sweep: Sweep, seed: int = 0) -> Curve:
    """Raises ValueError where replacing every node changes nothing, and for runs that cannot be aligned."""
    nodes = list_nodes(sweep.model.config)
    count = len(nodes)
    alone = measure_circuits(sweep, torch.cat([~torch.eye(count, dtype=torch.bool), ends(count)]))
    *effects, nothing, whole = alone.tolist()
    if abs(nothing - whole) <= SAME * max(1.0, abs(whole)):
        raise ValueError(
            f"The {sweep.metric} is the same, {whole:.4g}, with every head and MLP replaced; choose another metric, "
            "candidate or text."
        )
    order = sorted(range(count), key=lambda one: -abs(effects[one] - whole))
    sizes = sorted({round(one) for one in torch.linspace(0, count, min(POINTS, count + 1)).tolist()})
    generator = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(count, generator=generator).tolist() for _ in range(RANDOM)]
    circuits = torch.stack([first_of(one, size, count) for one in (order, *orders) for size in sizes])
    without = torch.stack([~first_of(order, size, count) for size in sizes])
    shares = (measure_circuits(sweep, torch.cat([circuits, without])) - nothing) / (whole - nothing)
    faithful, *random, left = shares.view(RANDOM + 2, len(sizes))
    return Curve(tuple(nodes[one] for one in order), tuple(sizes), faithful, left, torch.stack(random, 1))


def ends(count: int) -> Tensor:
    """The circuit without any node, and that of all."""
    return torch.tensor([[False], [True]]).expand(2, count)


def first_of(order: Sequence[int], size: int, count: int) -> Tensor:
    found = torch.zeros(count, dtype=torch.bool)
    found[list(order[:size])] = True
    return found
