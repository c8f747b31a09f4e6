"""How much of each input can reach a position through all layers at once: attention flow.

Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3. The positions at every layer are nodes,
and what `rollout` multiplies are the capacities between them; the flow from a position to an input is the maximum flow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.analysis.rollout import Heads, add_residual, averaged_layers, mixed_layers, past_of
from engine.budget import budget
from engine.runtime.trace import Trace
from engine.work_limit import check_work

SCALE = 2**30  # a capacity of 1; what leaves a position sums to 1, so no flow leaves the range of an int32
RATE = 15e6  # weights times keys that one core reads in a second, as far as it can be said beforehand


@dataclass(frozen=True)
class Network:
    """Pipes between nodes: from, to and capacity, edge by edge.

    `tops` are the nodes of the positions behind the layers, `inputs` those of what entered them.
    """

    edges: tuple[np.ndarray, ...]
    tops: range
    inputs: range


def network(
    trace: Trace, side: str = "", start: int = 0, end: int | None = None, heads: Heads | None = None
) -> Network:
    """Flow network of the self-attention of one stack, layers `start` up to `end`: A' between the positions of two
    layers.

    Raises ValueError for layers or heads that the run does not have.
    """
    return stack_network(mixed_layers(trace, side, False, start, end, heads))


def stack_network(layers: Sequence[Tensor]) -> Network:
    """`layers` are A' of each, pos key, the first layer first."""
    count = len(layers[0])
    pipes = [(layer, (i + 1) * count, i * count) for i, layer in enumerate(layers)]
    return join_network(pipes, range(len(layers) * count, (len(layers) + 1) * count), range(count))


def crossed_network(
    trace: Trace,
    start: int = 0,
    end: int | None = None,
    heads: Heads | None = None,
    cross_heads: Heads | None = None,
) -> Network:
    """Flow network of both stacks, from the decoder's positions behind its layers `start` up to `end` down to the
    source's tokens.

    The paper's graph, drawn through both stacks as `crossed` draws the rollout: behind a decoder layer a position gets
    0.5 of each source position's encoding that its cross-attention weighs, and the rest from itself before it, which is
    0.5 A + 0.5 I of the self-attention. Every layer reads the same encodings, so that what reaches the source passes
    the encoder's own pipes, A' of each of its layers, once for all of them.
    """
    encoder = mixed_layers(trace, "encoder", False, 0, None, None)
    own = mixed_layers(trace, "decoder", False, start, end, heads)
    fetched = averaged_layers(trace, "decoder", True, start, end, cross_heads)
    return both_stacks(encoder, own, fetched)


def both_stacks(encoder: Sequence[Tensor], own: Sequence[Tensor], fetched: Sequence[Tensor]) -> Network:
    """A' of the layers' self-attention, pos key, and the mean of the heads of each cross-attention."""
    sources, targets = len(encoder[0]), len(own[0])
    pipes = [(layer, (i + 1) * sources, i * sources) for i, layer in enumerate(encoder)]
    encoded = len(encoder) * sources
    bottom = encoded + sources
    for layer, cross in zip(own, fetched, strict=True):
        between, top = bottom + targets, bottom + 2 * targets
        pipes += [(layer, between, bottom), (past_of(cross)[:, 0].diag(), top, between), (0.5 * cross, top, encoded)]
        bottom = top
    return join_network(pipes, range(bottom, bottom + targets), range(sources))


def join_network(pipes: list[tuple[Tensor, int, int]], tops: range, inputs: range) -> Network:
    """`pipes` are capacities from to, with the first node of either end."""
    parts = []
    for capacity, above, below in pipes:
        whole = np.rint(capacity.numpy() * SCALE).astype(np.int32)
        row, col = np.nonzero(whole)
        parts.append((row + above, col + below, whole[row, col]))
    return Network(tuple(np.concatenate(part) for part in zip(*parts, strict=True)), tops, inputs)


def flow(pipes: Network, pos: int) -> Tensor:
    """The maximum flow from position `pos` behind the layers to each of their inputs, key.

    Each input is a problem of its own (Dinic's algorithm, scipy's), so that they add up to no total. Capacities are
    whole 2^-30ths: a flow is exact to 2^-31 for each edge of its narrowest cut. Raises ValueError for a position
    outside the text, and for more than budget.flow_work weights times keys.
    """
    if not 0 <= pos < len(pipes.tops):
        raise ValueError(f"a position must be in 0..{len(pipes.tops) - 1}, got {pos}.")
    afford(len(pipes.edges[0]), len(pipes.inputs))
    most = solver(pipes)
    return torch.tensor([most(pos, key) for key in range(len(pipes.inputs))], dtype=torch.float32)


def flows(pipes: Network, seconds: float) -> Tensor | None:
    """`flow` of every position, pos key; None where that would take longer than `seconds` of a core, as one of them
    tells."""
    rows, keys = len(pipes.tops), len(pipes.inputs)
    if len(pipes.edges[0]) * keys > budget.flow_work:
        return None
    most = solver(pipes)
    tries = []
    for _ in range(3):  # of a core's own time, so that what else is computed meanwhile does not decide
        began = time.thread_time()
        most(rows - 1, keys // 2)
        tries.append(time.thread_time() - began)
    if min(tries) * rows * keys > seconds:
        return None
    return torch.tensor([[most(pos, key) for key in range(keys)] for pos in range(rows)], dtype=torch.float32)


def flow_from(averages: Sequence[Tensor], pos: int) -> Tensor:
    """`flow` of one position, of the means of each layer's heads (pos key, the first layer first).

    What the position cannot reach takes no part, so that an early one of a causal model is cheap in a long text. Raises
    ValueError for more than budget.flow_work weights times keys, before it takes memory for them.
    """
    reached = torch.zeros(len(averages[0]), dtype=torch.bool)
    reached[pos] = True
    for average in reversed(averages):
        reached |= average[reached].any(0)
    inside = [average[reached][:, reached] for average in averages]
    afford(weights_of(inside) + len(inside) * len(inside[0]), len(inside[0]))
    found = torch.zeros(len(reached))
    found[reached] = flow(stack_network([add_residual(average) for average in inside]), int(reached[:pos].sum()))
    return found


def crossed_flow_from(encoder: Sequence[Tensor], own: Sequence[Tensor], fetched: Sequence[Tensor], pos: int) -> Tensor:
    """Computes `flow_from` through both stacks: from a position of the target to each key of the source."""
    afford(weights_of([*encoder, *own, *fetched]), len(encoder[0]))
    pipes = both_stacks(
        [add_residual(one) for one in encoder], [add_residual(one) for one in own], [one.double() for one in fetched]
    )
    return flow(pipes, pos)


def weights_of(averages: Sequence[Tensor]) -> int:
    return sum(int(average.count_nonzero()) for average in averages)


def afford(weights: int, keys: int) -> None:
    if (work := weights * keys) > budget.flow_work:
        took = work / RATE
        time = f"{took:.0f} seconds" if took < 100 else f"{took / 60:,.0f} minutes"
        raise ValueError(
            f"the attention flow of this token reads {weights:,} weights for each of {keys:,} keys, {work:,} in all: "
            f"some {time}. LOUPE_FLOW_WORK allows {budget.flow_work:,}; choose an earlier token of a decoder, a "
            "shorter text or the rollout, or start Loupe with a higher LOUPE_FLOW_WORK."
        )


def solver(pipes: Network) -> Callable[[int, int], float]:
    """(pos, key) -> the maximum flow between the two."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped]  # slow to import
    from scipy.sparse.csgraph import maximum_flow  # type: ignore[import-untyped]

    start, end, capacity = pipes.edges
    graph = csr_array((capacity, (start, end)), shape=(pipes.tops.stop,) * 2)

    def find_most(pos: int, key: int) -> float:
        check_work()
        return float(maximum_flow(graph, pipes.tops[pos], pipes.inputs[key]).flow_value / SCALE)

    return find_most
