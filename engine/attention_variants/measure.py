"""Each kind of attention timed here, on the same real vectors, as the length grows."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isqrt
from statistics import median
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from engine.attention_variants import quantize
from engine.attention_variants.blocks import local_2d, local_2d_cost
from engine.attention_variants.cost import Cost
from engine.attention_variants.full import explicit, explicit_cost, fused_attention, fused_cost
from engine.attention_variants.material import Material
from engine.attention_variants.nearest import Search, attend_cost, exact, exact_cost, fold, nearest_attention
from engine.attention_variants.window import sliding_window, window_cost

# --- Peak memory ---


class PeakBytes(TorchDispatchMode):
    """`with PeakBytes() as seen: ...` leaves the highest sum in `seen.peak`, for this thread alone.

    A tensor counts from the operation that makes its storage until nobody refers to it. What existed before does not
    count, and neither does the scratch space inside one operation (a fused attention's is a constant per thread).
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing here is compiled; else the first use in a process imports PyTorch's compiler, for two seconds."""
        return False

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        known = {given.untyped_storage()._cdata for given in _tensors([args, list((kwargs or {}).values())])}
        for made in _tensors([out]):
            if (storage := made.untyped_storage())._cdata not in known:
                known.add(storage._cdata)
                self._add(storage.nbytes())
                weakref.finalize(storage, self._add, -storage.nbytes())
        return out

    def _add(self, size: int) -> None:
        self.live += size
        self.peak = max(self.peak, self.live)


def _tensors(values: Iterable[Any]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


# --- Measurements ---


KINDS = {  # in the order in which they are measured and drawn
    "explicit": "full, explicit",
    "fused": "full, fused",
    "window": "window",
    "blocks": "2-D blocks",
    "nearest": "k nearest, exact",
    "quantized": "k nearest, PQ",
}
REPETITIONS = 3
ENOUGH = 0.1  # seconds after which a computation is not repeated
MOST_BYTES = 2**30  # a computation whose formula asks for more is left out
LEARNED_FROM = 1024  # positions whose queries the quantizer's metric is learned from
ALONE = Lock()  # two measurements at a time would measure each other


@dataclass(frozen=True)
class Setup:
    """`window` positions to both sides, blocks of `block` x `block` pixels with `margin` more around, `k` states."""

    window: int = 32
    block: int = 4
    margin: int = 2
    k: int = 16
    quantizer: quantize.Settings = field(default_factory=quantize.Settings)

    def part_for(self, kind: str) -> tuple[object, ...]:
        """The part of the setup on which a kind's figures depend."""
        parts: dict[str, tuple[object, ...]] = {
            "window": (self.window,),
            "blocks": (self.block, self.margin),
            "nearest": (self.k,),
            "quantized": (self.k, self.quantizer),
        }
        return parts.get(kind, ())


@dataclass(frozen=True)
class Point:
    """Measurement of one kind at one length: the median `seconds` of all positions and heads, the `bytes` of tensors
    held at the peak, and what the formulas say of both. `built` is the time to make the index, `recall` its recall@k
    against exact."""

    kind: str
    length: int
    seconds: float
    bytes: int
    cost: Cost
    built: float | None = None
    recall: float | None = None


def grid(length: int) -> tuple[int, int]:
    """The height and width of an image of `length` pixels, as near to a square as they go."""
    height = next(rows for rows in range(isqrt(length), 0, -1) if length % rows == 0)
    return height, length // height


def cost(kind: str, length: int, heads: int, d_head: int, d_model: int, setup: Setup) -> Cost:
    """The formula of a kind, for all positions and heads of one layer. Raises ValueError for an unknown kind."""
    match kind:
        case "explicit":
            return explicit_cost(length, heads, d_head)
        case "fused":
            return fused_cost(length, heads, d_head)
        case "window":
            return window_cost(length, heads, d_head, setup.window, causal=False)
        case "blocks":
            block, margin = (setup.block, setup.block), (setup.margin, setup.margin)
            return local_2d_cost(grid(length), heads, d_head, block, margin)
        case "nearest":
            search = exact_cost(length, length, heads, d_model, setup.k)
        case "quantized":
            search = quantize.search_cost(length, length, heads, d_model, setup.k, setup.quantizer)
        case _:
            raise ValueError(f"a kind of attention must be one of {', '.join(KINDS)}, got {kind!r}.")
    attend = attend_cost(length, heads, d_head, d_model, min(setup.k, length))
    folded = 4 * length * heads * d_model  # bytes that are there while searching, and counted in `attend`
    adds = search.multiply_adds + attend.multiply_adds
    return Cost(adds, max(search.bytes + folded, attend.bytes), search.lookups)


def computation(kind: str, material: Material, setup: Setup, search: Search | None = None) -> Callable[[], object]:
    """Runs what is timed: from queries, and keys and values or states, to z, no position hidden from any other."""
    states, heads = material.states, material.heads
    q = heads.queries(states)
    if kind in ("nearest", "quantized"):
        return lambda: nearest_attention(q, states, heads, setup.k, search)
    q, k, v = q[None], heads.keys(states)[None], heads.values(states)[None]
    block, margin = (setup.block, setup.block), (setup.margin, setup.margin)
    computations: dict[str, Callable[[], object]] = {
        "explicit": lambda: explicit(q, k, v),
        "fused": lambda: fused_attention(q, k, v),
        "window": lambda: sliding_window(q, k, v, setup.window, causal=False),
        "blocks": lambda: local_2d(q, k, v, grid(len(states)), block, margin),
    }
    return computations[kind]


@torch.no_grad()
def point(kind: str, material: Material, setup: Setup) -> Point:
    """Measures one kind at the length of `material`, measured while no other measurement runs in this process."""
    length, d_model = material.states.shape
    count, d_head, _ = material.heads.w_q.shape
    formula = cost(kind, length, count, d_head, d_model, setup)
    with ALONE:
        if kind != "quantized":
            compute = computation(kind, material, setup)
            return Point(kind, length, *time_and_peak(compute), formula)
        begin = time.perf_counter()
        index = index_of(material, setup.quantizer)
        built = time.perf_counter() - begin
        compute = computation(kind, material, setup, index.search)
        queries = sampled_queries(material, seed=1, count=256)
        found = index.search(queries, setup.k)[1]
        share = quantize.recall(found, exact(queries, material.states, setup.k)[1])
        return Point(kind, length, *time_and_peak(compute), formula, built, share)


def index_of(material: Material, settings: quantize.Settings) -> quantize.Index:
    return quantize.build(material.states, settings, sampled_queries(material, seed=0, count=LEARNED_FROM))


def sampled_queries(material: Material, seed: int, count: int) -> Tensor:
    """Folded queries of some of the positions, all heads: query d_model."""
    chosen = torch.randperm(len(material.states), generator=torch.Generator().manual_seed(seed))[:count]
    return fold(material.heads.queries(material.states[chosen]), material.heads.w_k).flatten(0, 1)


def time_and_peak(compute: Callable[[], object]) -> tuple[float, int]:
    """Seconds and peak bytes. The first run counts bytes; where it is short, it only warms up for the runs timed."""
    with PeakBytes() as seen:
        begin = time.perf_counter()
        compute()
        first = time.perf_counter() - begin
    times: list[float] = []
    while first < ENOUGH and len(times) < REPETITIONS and sum(times) < ENOUGH:
        begin = time.perf_counter()
        compute()
        times.append(time.perf_counter() - begin)
    return median(times or [first]), seen.peak


def measure(
    material: Material,
    lengths: Iterable[int],
    setup: Setup,
    kinds: Iterable[str] = tuple(KINDS),
    budget: float = float("inf"),
    measured: Callable[[str, Material, Setup], Point] = point,
) -> Iterator[Point]:
    """Points as they come, the shorter lengths first, until `budget` seconds have passed.

    A kind ends where its formula asks for more than 1 GiB, or where its last time, grown as its formula grows, would
    take more than what is left. `measured` may be a cache of `point`.
    """
    deadline = time.perf_counter() + budget
    last: dict[str, Point] = {}
    ended: set[str] = set()
    count, d_head, d_model = material.heads.w_q.shape
    for length in lengths:
        for kind in kinds:
            formula = cost(kind, length, count, d_head, d_model, setup)
            before = last.get(kind)
            growth = 0 if before is None else before.seconds * grown(before.cost, formula)
            if formula.bytes > MOST_BYTES or time.perf_counter() + growth > deadline:
                ended.add(kind)
            if kind not in ended:
                last[kind] = measured(kind, material.first(length), setup)
                yield last[kind]


def grown(before: Cost, after: Cost) -> float:
    return (after.multiply_adds + after.lookups) / (before.multiply_adds + before.lookups)
