"""What the walkthrough asks of a run once it is drawn: a layer that was not sent, how a cell came about."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from engine.analysis.arithmetic import Explanation, Number, Operand, Products, Span, explain, explain_candidate
from engine.generation.sampling import Sampling
from views.core.lanes import Lane
from views.core.payload import pack
from views.core.questions import Layer, Registry, Side
from views.core.run_context import RunContext
from views.walkthrough.outcome import Outcome
from views.walkthrough.walkthrough import TOGETHER, layer_payload

LISTED = 7  # products listed one by one; the rest is summed
CARRIED = 80  # cells of the pattern that an exported file explains, asked or not
LAYER = "{l}"  # in the name of a hook: every block
OVER_CLASSES = ("logits", "head.cls", "head.distilled")
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")

WALKTHROUGH = Registry()


@dataclass(frozen=True)
class WalkthroughContext(RunContext):
    """A run with what its head gives. `outcome` is None where the model has no head."""

    outcome: Outcome | None = None
    sampling: Sampling = Sampling()

    def lane_of(self, hook: str) -> Lane:
        return next((lane for lane in self.lanes if lane.side and hook.startswith(lane.prefix)), self.lanes[-1])

    def pieces(self, hook: str) -> Sequence[str]:
        """Pieces at the keys of a hook, or at all positions of its stack."""
        return self.lanes[0].pieces if "cross_attn" in hook else self.lane_of(hook).pieces

    def column(self, hook: str, unit: int) -> str | None:
        """Name of a class, or of an end of an answer."""
        outcome = self.outcome
        if hook not in OVER_CLASSES or outcome is None:
            return None
        if outcome.reads == "answer":
            return ("start", "end")[unit] if unit in (0, 1) else None
        return outcome.names[unit] if outcome.names is not None and 0 <= unit < len(outcome.names) else None


@WALKTHROUGH.question("layer")
def ask_layer(run: WalkthroughContext, side: Side, layer: Layer) -> bytes:
    """Every value of one layer."""
    return layer_payload(run.trace, layer, side)


def each_pattern_cell(run: WalkthroughContext) -> Iterator[dict[str, Any]]:
    """Cells of the pattern that may hold attention, the last row first: those that somebody clicks in a file."""
    lane = run.lanes[-1]
    config = lane.config
    crosses = config.encoder is not None
    name = f"{lane.prefix}blocks.{LAYER}.{'cross_attn' if crosses else 'attn'}.pattern"
    names = [name]
    if config.layers * config.attention.heads > TOGETHER:
        names = [name.replace(LAYER, str(layer)) for layer in range(config.layers)]
    rows, keys = len(lane.pieces), len(run.pieces(name))
    allowed = [(row, key) for row in reversed(range(rows)) for key in range(keys) if crosses or key <= row]
    for row, key in allowed[: CARRIED // len(names)]:
        yield from ({"hook": hook, "row": row, "col": key} for hook in names)


@WALKTHROUGH.question("cell", carry=each_pattern_cell)
def ask_cell(run: WalkthroughContext, hook: str, row: int, col: int) -> bytes:
    """Explains a cell in every head, and in every block where `hook` has {l} in place of its number."""
    config = run.lane_of(hook).config
    layers = [str(layer) for layer in range(config.layers)] if LAYER in hook else [layer_of(hook)]
    layers = [layer for layer in layers if hook.replace(LAYER, layer) in run.trace.hooks]
    if not layers:
        raise ValueError(f"Unknown request: this model has no hook {hook[:40]!r}. Reload and try again.")
    first = run.trace.hooks[hook.replace(LAYER, layers[0])]
    attention = config.cross_attention if "cross_attn" in hook else config.attention
    heads = range(attention.heads) if "head" in first.axes else [None]
    if LAYER in hook and len(layers) * len(heads) > TOGETHER:
        raise ValueError(f"at most {TOGETHER} explanations come at once; ask for the hook of one block.")
    entries: dict[str, Explanation] = {}
    for layer, head in product(layers, heads):
        name = hook.replace(LAYER, layer)
        found = explain(run.model, run.trace, name, row, col, head, run.column(name, col))
        entries[f"{layer},{'' if head is None else head}"] = found
    return explanations_payload(entries, list(run.pieces(hook)))


def layer_of(hook: str) -> str:
    found = re.search(r"blocks\.(\d+)\.", hook)
    return found[1] if found else ""


def each_candidate(run: WalkthroughContext) -> Iterator[dict[str, Any]]:
    """The most probable candidates of the last row."""
    if run.outcome is not None:
        logits = run.outcome.following.logits
        for id in logits[-1].topk(min(LISTED, logits.shape[-1])).indices.tolist():
            yield {"row": len(logits) - 1, "id": id}


@WALKTHROUGH.question("candidate", carry=each_candidate)
def ask_candidate(run: WalkthroughContext, row: int, id: int) -> bytes:
    """Explains the probability of candidate `id` of `row`; an answer's start is row 0 and its end row 1."""
    outcome = run.outcome
    if outcome is None:
        raise ValueError("this model has no head, so nothing is predicted; click a cell.")
    rows, count = outcome.following.logits.shape
    if not (0 <= row < rows and 0 <= id < count):
        raise ValueError(f"a candidate must be in row 0..{rows - 1} and 0..{count - 1}, got {row} and {id}.")
    pos, unit = (id, row) if outcome.reads == "answer" else (row, id)
    logit = explain(run.model, run.trace, "logits", pos, unit, column=run.column("logits", unit))
    found = explain_candidate(logit, outcome.following, row, id, run.sampling, outcome.link, outcome.noun)
    return explanations_payload({",": found}, list(run.lanes[-1].pieces))


def explanations_payload(entries: dict[str, Explanation], names: list[str]) -> bytes:
    """Entries by "block,head"; bars as one array of float32, since JSON writes a number in many more bytes."""
    values: list[Tensor] = []
    start = 0

    def strip(one: Operand) -> dict[str, Any]:
        nonlocal start
        first, length = start, one.values.numel()
        start += length
        values.append(one.values.float())
        named = one.axis in ("key", "pos")
        return {
            "label": one.label, "role": one.role or "residual", "place": one.place, "start": first,
            "length": length, "named": named, "chosen": one.chosen,
        }  # fmt: skip

    def entry(found: Explanation) -> dict[str, Any]:
        return {
            "operation": found.operation,
            "edited": found.edited,
            "strips": [strip(one) for one in found.operands if one.drawn and not weighs(found.products, one)],
            "terms": None if found.products is None else terms(found.products, names),
            "lines": [list(map(piece, line)) for line in found.lines],
            "recomputed": finite(found.recomputed),
            "stored": finite(found.stored),
        }

    header = {"entries": {key: entry(found) for key, found in entries.items()}, "names": names}
    return pack(header, {"values": torch.cat(values) if values else torch.zeros(0)})


def weighs(products: Products | None, one: Operand) -> bool:
    """Tells whether an operand is in the table already."""
    return products is not None and (one is products.left or one is products.right)


def terms(products: Products, names: Sequence[str]) -> dict[str, Any]:
    order, others, rest = products.largest(LISTED)
    left, right = products.left, products.right
    columns = torch.stack([left.values, right.values, products.values], dim=-1)

    def name(i: int) -> str:
        if left.axis == "key":
            return f"{names[i]} {str(i).translate(SUBSCRIPTS)}"
        return f"[{i}]" if products.group is None else f"head {i // products.group + 1}, {i % products.group}"

    return {
        "heads": [{"text": one.label, "role": one.role, "place": one.place} for one in (left, right)],
        "rows": [[name(i), *map(finite, row)] for i, row in zip(order, columns[order].tolist(), strict=True)],
        "others": others,
        "rest": finite(rest),
        "bias": None if products.bias is None else finite(products.bias),
    }


def piece(part: str | Span | Number) -> Any:
    """Text as it is, a name as {text, role}, a number as {value, form, strong, role}."""
    match part:
        case Span(text, role):
            return {"text": text, "role": role}
        case Number(value, form, strong, role):
            return {"value": finite(value), "form": form, "strong": strong, "role": role}
    return part


def finite(value: float) -> float | str:
    """A number, or what JavaScript's Number() reads where JSON has none."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
