"""What the page Interventions asks of a pair of runs: what each place, and each edge between parts, does to a
prediction when it takes the other run's value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, LiteralString

import torch
from torch import Tensor

from engine.analysis.interventions.circuit import Curve, trace_curve
from engine.analysis.interventions.edges import Edges, Node
from engine.analysis.interventions.metric import MetricKind, read_row
from engine.analysis.interventions.pairs import partner_row
from engine.analysis.interventions.patching import Ablation, By
from engine.analysis.interventions.sweep import Direction, Effects, Sweep
from engine.edits import Edit
from engine.runtime.trace import Trace
from views.core.bound_source import Imports
from views.core.lanes import Lane
from views.core.questions import Layer, Registry, Row, Side, Vocab
from views.core.run_context import RunContext
from views.core.table_files import Table

Part = Literal["stream", "attention", "MLP"]
HeadPart = Literal["z", "q", "k", "v", "pattern"]
Reads = Literal["q", "k", "v", "MLP", "output"]
Slopes = Literal["1", "5"]
Most = Literal["10", "40", "160"]  # of all edges those that are listed, the largest first
SLOPES = {"1": 0, "5": 5}  # runs between both of which slopes are the mean; 0: those of the run that is changed

INTERVENTIONS = Registry()


@dataclass(frozen=True, kw_only=True)
class PairContext(RunContext):
    """A run, and what it is set against: another run of the model, whose positions are those of `other_lanes`, or a
    constant. `other_lines` are those of Python that bind `other`, with their `imports`; `swap` is the
    edit, or `other_text` the text, that makes the other run."""

    other: Trace | Ablation
    other_lanes: Sequence[Lane]
    other_digest: str
    other_lines: Sequence[str] = ()
    swap: Edit | None = None
    other_text: str | None = None
    imports: Mapping[str, set[str]] = field(default_factory=dict)

    @property
    def attributes(self) -> Mapping[str, str]:  # type: ignore[override]
        return {**RunContext.attributes, "other": "other"}

    @property
    def digest(self) -> str:
        return f"{super().digest} {self.other_digest}"

    def first_candidate(self, name: str, row: int) -> int | None:
        """Of two runs the candidates whose probability differs most, that of this run first."""
        if isinstance(self.other, Ablation) or self.answers:
            return super().first_candidate(name, row)
        rows = self.trace["logits"].shape[1]
        partner = partner_row(self.trace, self.other, row, rows)
        own, theirs = (read_row(self.model, *one)[0].softmax(-1) for one in ((self.trace, row), (self.other, partner)))
        return int((own - theirs).argmax() if name == "candidate" else (theirs - own).argmax())

    def script(self, imports: Imports, lines: Sequence[str], only: tuple[str, ...] | None = None) -> str:
        names = {module: {*names} for module, names in self.imports.items()}
        return super().script({**names, **imports}, [*self.other_lines, *lines], only)

    @property
    def fixed(self) -> Mapping[str, Any]:
        """An ablation goes one way."""
        return {"direction": "break"} if isinstance(self.other, Ablation) else {}

    def changed_pieces(self, direction: Direction, side: str, positions: Sequence[int]) -> list[str]:
        """Tokens at positions of the run that is changed."""
        given = self.other_lanes if direction == "restore" and isinstance(self.other, Trace) else self.lanes
        pieces = next(lane.pieces for lane in given if lane.side == side)
        return [pieces[pos] for pos in positions]


PAIR = ("row", "candidate", "against", "metric", "direction")
Pair = tuple[int, int, int | None, MetricKind, Direction]  # row, candidate, against, metric, direction


def find_sweep(run: PairContext, pair: Pair) -> Sweep:
    row, candidate, against, metric, direction = pair
    return run.cached(
        ("sweep", pair), lambda: Sweep(run.model, run.trace, run.other, metric, row, candidate, against, direction)
    )


def pair_of(given: Mapping[str, Any]) -> Pair:
    row, candidate, against, metric, direction = (given[name] for name in PAIR)
    return row, candidate, against, metric, direction


@dataclass(frozen=True)
class Places:
    """Places of a chart: of one site, or of that which is the argument `site`, in one block or in all."""

    title: str
    site: str
    by: tuple[By, ...]

    def site_of(self, given: Mapping[str, Any]) -> str:
        return str(given.get(self.site, self.site))

    def layers(self, run: PairContext, given: Mapping[str, Any]) -> list[int]:
        one_block = len(self.by) == 2
        return [given["layer"]] if one_block else [*range(find_sweep(run, pair_of(given)).count_layers(given["side"]))]

    def block(self, run: PairContext, given: Mapping[str, Any], layer: int) -> Effects:
        pair, side, site = pair_of(given), given["side"], self.site_of(given)
        sweep = find_sweep(run, pair)
        return run.cached(
            ("block", pair, side, site, self.by, layer), lambda: sweep.patch_layer(site, self.by, layer, side)
        )

    def steps(self, run: PairContext, given: Mapping[str, Any]) -> list[Callable[[], Effects]]:
        """The blocks, one after the other."""
        return [partial(self.block, run, given, layer) for layer in self.layers(run, given)]

    def effects(self, run: PairContext, given: Mapping[str, Any]) -> Effects:
        found = [self.block(run, given, layer) for layer in self.layers(run, given)]
        return Effects(**{part: torch.stack([getattr(one, part) for one in found]) for part in EFFECTS})

    def table(self, run: PairContext, **given: Any) -> Table:
        """A line for each place: block, head and position, the metric with another value there, and the effect."""
        found, layers = self.effects(run, given), torch.tensor(self.layers(run, given))
        layer, *rest = torch.ones_like(found.effect).nonzero().unbind(1)
        columns: dict[str, Any] = {"layer": layers[layer].tolist()}
        columns |= {name: at.tolist() for name, at in zip(self.by, rest, strict=True)}
        if "pos" in columns:
            columns["token"] = run.changed_pieces(given["direction"], given["side"], columns["pos"])
        columns |= {name: getattr(found, name).flatten().tolist() for name in EFFECTS}
        return Table(columns, {"model": run.model_name, "table": self.title})


EFFECTS = ("effect", "measured", "moved")
OF_STREAM = Places("effects by block and position", "part", ("pos",))
OF_HEADS = Places("effects of heads", "value", ("head",))
OF_BLOCK = Places("effects of the heads of a block by position", "value", ("head", "pos"))


@INTERVENTIONS.question("pair", returns={})
def ask_pair(
    run: PairContext, side: Side, row: Row, candidate: Vocab, layer: Layer, against: Vocab | None = None,
    metric: MetricKind = "logit", direction: Direction = "restore", part: Part = "stream",
    value: HeadPart = "z",
) -> None:  # fmt: skip
    """Declares what the charts share."""


@INTERVENTIONS.question("patched_places", returns={"effect": ("layer", "pos")}, make_table=OF_STREAM.table)
def ask_places(
    run: PairContext, side: Side, row: Row, candidate: Vocab, against: Vocab | None = None,
    metric: MetricKind = "logit", direction: Direction = "restore", part: Part = "stream",
) -> Tensor:  # fmt: skip
    """Effect of another value at each position of each block."""
    sweep = Sweep(run.model, run.trace, run.other, metric, row, candidate, against, direction)
    return sweep.patch(part, ("pos",), side).effect


@INTERVENTIONS.question("patched_heads", returns={"effect": ("layer", "head")}, make_table=OF_HEADS.table)
def ask_heads(
    run: PairContext, side: Side, row: Row, candidate: Vocab, against: Vocab | None = None,
    metric: MetricKind = "logit", direction: Direction = "restore", value: HeadPart = "z",
) -> Tensor:  # fmt: skip
    """Effect of another value in each head, at all positions."""
    sweep = Sweep(run.model, run.trace, run.other, metric, row, candidate, against, direction)
    return sweep.patch(value, ("head",), side).effect


@INTERVENTIONS.question("patched_block", returns={"effect": ("head", "pos")}, make_table=OF_BLOCK.table)
def ask_block(
    run: PairContext, side: Side, row: Row, candidate: Vocab, layer: Layer, against: Vocab | None = None,
    metric: MetricKind = "logit", direction: Direction = "restore", value: HeadPart = "z",
) -> Tensor:  # fmt: skip
    """Effect of another value in each head of a block, at each position."""
    sweep = Sweep(run.model, run.trace, run.other, metric, row, candidate, against, direction)
    return sweep.patch_layer(value, ("head", "pos"), layer, side).effect


def first_order_table(run: PairContext, **given: Any) -> Table:
    """A line for each head: the effect, and what it would be to first order."""
    sweep, site = find_sweep(run, pair_of(given)), OF_HEADS.site_of(given)
    table = OF_HEADS.table(run, **given)
    key = "estimate", pair_of(given), given["side"], site
    estimate = run.cached(key, lambda: sweep.estimate(site, ("head",), given["side"]))
    return Table({**table.columns, "estimate": estimate.flatten().tolist()}, {**table.about, "table": "to first order"})


@INTERVENTIONS.question("first_order", returns={"estimate": ("layer", "head")}, make_table=first_order_table)
def ask_first_order(
    run: PairContext, side: Side, row: Row, candidate: Vocab, against: Vocab | None = None,
    metric: MetricKind = "logit", direction: Direction = "restore", value: HeadPart = "z",
) -> Tensor:  # fmt: skip
    """The same effects to first order: attribution patching."""
    sweep = Sweep(run.model, run.trace, run.other, metric, row, candidate, against, direction)
    return sweep.estimate(value, ("head",), side)


def node_name(node: Node) -> LiteralString:
    """Name of a part as the pictures have it: "block 2, head 1", "block 3, MLP", "query of block 2, head 1"."""
    if node.layer is None:
        return "embedding" if node.part == "embedding" else "output"
    if node.head is None:
        return f"block {node.layer + 1:d}, MLP"
    name = f"block {node.layer + 1:d}, head {node.head + 1:d}"
    return f"{READS[node.part]} of {name}" if node.part in READS else name


READS: dict[str, LiteralString] = {"q": "query", "k": "key", "v": "value"}


def find_edges(run: PairContext, given: Mapping[str, Any]) -> Edges:
    pair, steps = pair_of(given), SLOPES[given["slopes"]]
    return run.cached(("edges", pair, steps), lambda: find_sweep(run, pair).estimate_edges(steps))


def edge_heads(edges: Edges) -> list[Node]:
    """Heads at either end of an edge, those of the largest effect first."""
    sizes = edges.values.nan_to_num().abs().flatten()
    first = sizes.argsort(descending=True)[: int((sizes > 0).sum())].tolist()
    pairs = [divmod(at, len(edges.readers)) for at in first]
    ends = [node for writer, reader in pairs for node in (edges.writers[writer], edges.readers[reader])]
    return list(dict.fromkeys(Node("head", node.layer, node.head) for node in ends if node.head is not None))


def edges_table(run: PairContext, **given: Any) -> Table:
    """A line for each of the edges that do most, to first order, the largest first."""
    found = find_edges(run, given)
    values = found.values.nan_to_num()
    first = values.abs().flatten().topk(min(int(given["most"]), values.numel())).indices
    at = [divmod(int(one), values.shape[1]) for one in first if values.flatten()[one] != 0]
    writers, readers = [found.writers[one] for one, _ in at], [found.readers[other] for _, other in at]
    columns: dict[str, Any] = {
        "writer": [node_name(one) for one in writers],
        "reader": [node_name(one) for one in readers],
        "effect": [float(values[place]) for place in at],
    }
    for name, nodes in (("writer", writers), ("reader", readers)):
        columns[f"{name}_part"] = [one.part for one in nodes]
        columns[f"{name}_layer"] = [-1 if one.layer is None else one.layer for one in nodes]
        columns[f"{name}_head"] = [-1 if one.head is None else one.head for one in nodes]
    return Table(columns, {"model": run.model_name, "table": "edges to first order"})


@INTERVENTIONS.question("edges", returns={"values": ("writer", "reader")}, make_table=edges_table)
def ask_edges(
    run: PairContext, row: Row, candidate: Vocab, against: Vocab | None = None,
    metric: MetricKind = "logit", direction: Direction = "restore", slopes: Slopes = "5",
    most: Most = "40",
) -> Tensor:  # fmt: skip
    """Effect of every edge between two parts to first order: edge attribution patching."""
    sweep = Sweep(run.model, run.trace, run.other, metric, row, candidate, against, direction)
    return sweep.estimate_edges(0 if slopes == "1" else 5).values


def find_curve(run: PairContext, given: Mapping[str, Any]) -> Curve:
    pair = pair_of(given)
    return run.cached(("circuits", pair), lambda: trace_curve(find_sweep(run, pair)))


def circuits_table(run: PairContext, **given: Any) -> Table:
    """A line for each size: the part that comes last, and the shares of the circuit, of what is left without it, and of
    the random circuits."""
    found = find_curve(run, given)
    columns: dict[str, Any] = {
        "size": list(found.sizes),
        "part": ["none" if size == 0 else node_name(found.nodes[size - 1]) for size in found.sizes],
        "faithful": found.faithful.tolist(),
        "left": found.left.tolist(),
        "random": found.random.mean(1).tolist(),
        "random_low": found.random.amin(1).tolist(),
        "random_high": found.random.amax(1).tolist(),
    }
    return Table(columns, {"model": run.model_name, "table": "circuits by size"})


@INTERVENTIONS.question(
    "circuits",
    returns={"faithful": ("size",), "left": ("size",), "random": ("size", "circuit")},
    make_table=circuits_table,
)
def ask_circuits(
    run: PairContext, row: Row, candidate: Vocab, against: Vocab | None = None,
    metric: MetricKind = "logit", direction: Direction = "restore",
) -> Curve:  # fmt: skip
    """How much of the prediction the heads and MLPs that are needed most make alone."""
    return trace_curve(Sweep(run.model, run.trace, run.other, metric, row, candidate, against, direction))


def find_reader(reads: Reads, layer: int) -> Node:
    if reads == "output":
        return Node("output")
    return Node("MLP", layer) if reads == "MLP" else Node(reads, layer, 0)


def find_paths(run: PairContext, given: Mapping[str, Any]) -> Edges:
    pair, reader = pair_of(given), find_reader(given["reads"], given["layer"])
    return run.cached(("paths", pair, reader), lambda: find_sweep(run, pair).patch_paths(reader))


def paths_table(run: PairContext, **given: Any) -> Table:
    """A line for each part that writes before a reader, a head of a block, its MLP or the output: the effect of what it
    reads of it."""
    found = find_paths(run, given)
    pairs = [(writer, reader) for writer in found.writers for reader in found.readers]
    columns: dict[str, Any] = {
        "writer": [node_name(one) for one, _ in pairs],
        "reader": [node_name(one) for _, one in pairs],
        "layer": [given["layer"] for _ in pairs],
        "head": [-1 if one.head is None else one.head for _, one in pairs],
        "effect": found.values.flatten().tolist(),
    }
    return Table(columns, {"model": run.model_name, "table": "paths into the heads of a block"})


@INTERVENTIONS.question("paths", returns={"values": ("writer", "head")}, make_table=paths_table)
def ask_paths(
    run: PairContext, row: Row, candidate: Vocab, layer: Layer, against: Vocab | None = None,
    metric: MetricKind = "logit", direction: Direction = "restore", reads: Reads = "v",
) -> Tensor:  # fmt: skip
    """Effect of what each head of a block, its MLP, or the output reads of each earlier part, and of nothing else."""
    sweep = Sweep(run.model, run.trace, run.other, metric, row, candidate, against, direction)
    return sweep.patch_paths(find_reader(reads, layer)).values
