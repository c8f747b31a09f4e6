"""What of a model is measured while it learns, beside its loss: gradients, weights and activations, part by part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from engine.analysis.recorded_patterns import masks, patterns
from engine.json_text import parse_json
from engine.runtime.trace import Trace
from engine.training.run.atomic import replace_atomically

FILE = "watch.jsonl"
MAX_LINES = 600  # then every second one that belongs to no snapshot goes, or of all where that is not enough
BINS = 40
CERTAIN = 0.99  # of a row of attention on one key
QUIET = 0.01  # of the strongest activation of a layer
BLOCK = re.compile(r"((?:encoder\.|decoder\.)?blocks\.\d+)\.(\w+)")


@dataclass(frozen=True)
class Histogram:
    """`counts` of values in equal bins from `low` to `high`, the least and the greatest of them."""

    low: float
    high: float
    counts: tuple[int, ...]


@dataclass(frozen=True)
class WatchLine:
    """Line of watch.jsonl. The parts are "embed", "blocks.0.attn", "blocks.0.mlp", ..., "head", with "encoder." or
    "decoder." before a block of two stacks; `gradients` are norms before clipping, as the trainer names its parts.

    `activations` is the residual stream behind each block on the probe. Shares of a block, on the probe: `certain` are
    the rows of attention that give one key more than 99 % and had a choice, `quiet` the neurons of the MLP that nowhere
    come to 1 % of the layer's strongest.
    """

    step: int
    gradients: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, Histogram] = field(default_factory=dict)
    activations: Mapping[str, Histogram] = field(default_factory=dict)
    certain: Mapping[str, float] = field(default_factory=dict)
    quiet: Mapping[str, float] = field(default_factory=dict)
    kept: bool = False


def line(watched: WatchLine) -> dict[str, Any]:
    """Values for JSON, histograms as [low, high, counts]."""
    plain = vars(watched)
    return plain | {
        name: {part: [one.low, one.high, list(one.counts)] for part, one in plain[name].items()}
        for name in ("weights", "activations")
    }


def read_line(data: Mapping[str, Any]) -> WatchLine:
    """The inverse of `line`. Raises ValueError for what is none."""
    try:
        histograms = {
            name: {part: Histogram(low, high, tuple(counts)) for part, (low, high, counts) in data[name].items()}
            for name in ("weights", "activations")
        }
        found = WatchLine(**{**data, **histograms})
        known = all(isinstance(number, int | float) for number in numbers(found))
    except (TypeError, ValueError, LookupError, AttributeError):
        known = False
    if not known:
        raise ValueError(
            f"{FILE} must have what was watched at one step a line, and has {data!r:.80}; delete the file."
        )
    return found


def numbers(watched: WatchLine) -> Iterator[object]:
    """All of a line, which as JSON may be anything."""
    yield watched.step
    for shares in (watched.gradients, watched.certain, watched.quiet):
        yield from shares.values()
    for histograms in (watched.weights, watched.activations):
        for one in histograms.values():
            yield from (one.low, one.high, *one.counts)


@lru_cache(maxsize=4096)
def part_of(name: str) -> str:
    """Part to which a parameter belongs; a block's norms are with what they stand before, in the block's own order."""
    found = BLOCK.match(name)
    if found is None:
        return "embed" if {"embed", "relative", "distances", "distances_norm"} & set(name.split(".")) else "head"
    block, inside = found.groups()
    return f"{block}.{'mlp' if inside in ('mlp', 'norm2', 'norm2_after') else 'attn'}"


def parts(model: nn.Module) -> dict[str, list[Tensor]]:
    """The parameters of each part, in the order of the model; what two blocks share is with the first."""
    found: dict[str, list[Tensor]] = {}
    for name, parameter in model.named_parameters():
        found.setdefault(part_of(name), []).append(parameter.detach())
    return found


def weights(model: nn.Module) -> dict[str, Histogram]:
    return {part: histogram(each.flatten() for each in tensors) for part, tensors in parts(model).items()}


def activations(trace: Trace) -> dict[str, Histogram]:
    return {block_of(name): histogram([trace[name].flatten()]) for name in trace if name.endswith(".resid_post")}


def block_of(hook: str) -> str:
    found = BLOCK.match(hook)
    assert found is not None
    return found[1]


def histogram(values: Iterable[Tensor]) -> Histogram:
    """Histogram of finite values; the rest is left out."""
    whole = torch.cat([one.float() for one in values])
    if not len(whole) or not all(end.isfinite() for end in whole.aminmax()):
        whole = whole[whole.isfinite()]
    if not len(whole):
        return Histogram(0.0, 0.0, (0,) * BINS)
    low, high = (float(end) for end in whole.aminmax())
    if low == high:
        return Histogram(low, high, (len(whole), *(0,) * (BINS - 1)))
    return Histogram(low, high, tuple(torch.histc(whole, BINS, low, high).int().tolist()))


def quiet_shares(trace: Trace) -> dict[str, float]:
    found = {}
    for name in trace:
        if name.endswith(".mlp.post"):
            strength = trace[name][0].abs().amax(0)  # d_mlp
            found[block_of(name)] = float((strength < QUIET * strength.max()).float().mean())
    return found


def certain_shares(trace: Trace) -> dict[str, float]:
    """Share of certain rows in each block's attention of a stack to itself."""
    found = {}
    for side in ("encoder", "decoder") if trace.target is not None else ("",):
        prefix = f"{side}." if side else ""
        if not any(name.startswith(f"{prefix}blocks.") for name in trace):
            continue
        pairs = zip(patterns(trace, side), masks(trace, side), strict=True)
        for layer, (pattern, mask) in enumerate(pairs):
            choice = mask.expand_as(pattern).sum(-1) > 1
            rows = int(choice.sum())
            found[f"{prefix}blocks.{layer}"] = float(((pattern.amax(-1) > CERTAIN) & choice).sum()) / max(rows, 1)
    return found


class WatchFile:
    """watch.jsonl, kept bounded by its writer, who forgets what came after the step that a run goes on from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count, self.last = 0, -1  # lines, and the step of the last

    def append(self, watched: WatchLine) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line(watched)) + "\n")
        self.count, self.last = self.count + 1, watched.step
        if self.count > MAX_LINES:
            told = read_lines(self.path)
            for kept_too in (False, True):
                spare = [i for i, one in enumerate(told[:-1]) if kept_too or not one["kept"]]
                dropped = set(spare[::2]) if len(told) > MAX_LINES * 3 // 4 else set()
                told = [one for i, one in enumerate(told) if i not in dropped]
            self._replace(told)

    def rewind(self, step: int) -> None:
        """Forget what was measured after `step`."""
        if self.path.exists():
            self._replace([one for one in read_lines(self.path) if one["step"] <= step])

    def _replace(self, lines: list[dict[str, Any]]) -> None:
        with replace_atomically(self.path) as partial:
            partial.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
        self.count, self.last = len(lines), lines[-1]["step"] if lines else -1


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A last line that is still being written is left out."""
    try:
        return [parse_json(one) for one in path.read_text(encoding="utf-8").split("\n")[:-1]]
    except FileNotFoundError:
        return []
