"""Runs on long texts that keep a summary of a value in its place: of 1,024 tokens no pattern but the one on screen.

A layer of which no score is wanted takes the fused attention. A summary is made while the layer's values are there,
and these are dropped before the next layer makes its own, so that one layer's are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from engine.analysis.tiles import overview
from engine.edits import Edit
from engine.model.hooks import HookPoint, match_hooks
from engine.model.layers.attention import Attention
from engine.model.transformer import Transformer
from engine.runtime.batch import Input
from engine.runtime.recording import Recording, kept_names
from engine.runtime.run import encoder_layers, first_edited, layer_of, layers_of, run, stream
from engine.runtime.trace import Trace

T = TypeVar("T")
PATTERN = "blocks.0.attn.pattern"


class CaptureComplete(Exception):
    """Everything that was wanted has been seen."""


class ReducingRecording(Recording):
    """A recording that hands some values to a function and keeps, by hook name, what that returns."""

    def __init__(
        self,
        reduced: dict[str, Any],
        reductions: Mapping[str, Callable[[Tensor], Any]],
        stops: bool,
        model: Transformer,
        kept: frozenset[str],
        *given: Any,
    ) -> None:
        super().__init__(model, kept | reductions.keys(), *given)
        self.reduced, self.reductions, self.stops, self.whole = reduced, reductions, stops, kept

    def visit(self, hook: HookPoint, value: Tensor) -> Tensor:
        value = super().visit(hook, value)
        name = hook.name
        if name not in self.reductions:
            return value
        self.reduced[name] = self.reductions[name](value)
        if name not in self.whole:
            del self.values[name]
        if self.stops and self.reductions.keys() <= self.reduced.keys() | self.values.keys():
            raise CaptureComplete
        return value


def run_reduced(
    model: Transformer,
    encoding: Input,
    reductions: Mapping[str, Callable[[Tensor], T]],
    keep: str | Iterable[str] = "logits",
    edits: Sequence[Edit] = (),
    **options: Any,
) -> tuple[Trace, dict[str, T]]:
    """Runs the model once; of the trace `keep` is kept as `run` does, and of the hooks in `reductions` what their
    function returns.

    `reductions` is by hook name or pattern, and what comes back by full name. A function must copy what it returns of
    its argument: a view would keep all of it. `options` are run's `target`, `mask`, `cache`, `logits_at`.
    """
    found: dict[str, T] = {}
    recorder = partial(ReducingRecording, found, reductions_by_hook(model, reductions), False)
    return run(model, encoding, keep, edits, recorder=recorder, **options), found


def rerun_reduced(
    model: Transformer,
    encoding: Input,
    reductions: Mapping[str, Callable[[Tensor], T]],
    base: Trace,
    edits: Sequence[Edit] = (),
    **options: Any,
) -> dict[str, T]:
    """Reduces hooks as `run_reduced` does, from a run that kept `streams`, and stops once the last value was seen.

    What `base` holds is not computed again. Raises ValueError where it is a run of something else, or kept too little.
    """
    found: dict[str, T] = {}
    wanted = reductions_by_hook(model, reductions)
    try:
        run(model, encoding, (), edits, base, recorder=partial(ReducingRecording, found, wanted, True), **options)
    except CaptureComplete:
        pass
    return {name: found[name] if name in found else reduction(base[name]) for name, reduction in wanted.items()}


def with_values(base: Trace, values: Mapping[str, Tensor]) -> Trace:
    """A trace of the same run that holds `values` and nothing else."""
    return Trace(
        dict(values), base.hooks, base.ids, base.padding, base.encodings, base.edits, base.mask, base.logits_at,
        base.past, base.target, base.target_encodings, base.target_padding,
    )  # fmt: skip


def reductions_by_hook(
    model: Transformer, reductions: Mapping[str, Callable[[Tensor], T]]
) -> dict[str, Callable[[Tensor], T]]:
    """Resolves reductions to full hook names. Raises KeyError for a hook that the model does not have."""
    return {
        name: reduction
        for pattern, reduction in reductions.items()
        for name in sorted(kept_names((pattern,), model.hook_names, model.requested))
    }


def streams(model: Transformer) -> tuple[str, ...]:
    """The hooks that `rerun_reduced` starts from, one a layer: pos d_model each, and so no burden on a long text."""
    config = model.config
    if config.encoder is None:
        return tuple(stream(model, f"blocks.{layer}.") for layer in range(config.layers))
    stacks = {"encoder": config.encoder.layers, "decoder": config.layers}
    found = [stream(model, f"{side}.blocks.{layer}.") for side, count in stacks.items() for layer in range(count)]
    return (*found, *(["encoder.final_norm.out"] if "encoder.final_norm.out" in model.hooks else []))


@dataclass(frozen=True)
class Glance:
    """Holds, of the first text, all of one head, and every head of all layers as `overview` (u8 head pos key) by hook
    name.

    `trace` holds no pattern, but the `streams` from which another head can be had by `head_pattern`.
    """

    trace: Trace
    pattern: Tensor  # pos key
    overviews: dict[str, Tensor]


def glance(
    model: Transformer,
    encoding: Input,
    hook: str,
    head: int,
    cells: int = 64,
    keep: Iterable[str] = ("logits",),
    edits: Sequence[Edit] = (),
    base: Glance | None = None,
    **options: Any,
) -> Glance:
    """Computes what a page about a long text opens with, in one run: `hook` is the pattern whose `head` is on screen.

    An overview has at most `cells` along each side. Of `base`, a glance at the same text, only what the difference in
    edits can change is computed again. `options` are those of `reduced`. Raises ValueError for a hook that is not one
    pattern, or a head that its layer does not have, before anything is run.
    """
    name = pattern_with(model, hook, head)
    shown: list[Tensor] = []

    def small(pattern: Tensor) -> Tensor:
        return overview(pattern[0], cells)

    def shown_and_small(pattern: Tensor) -> Tensor:
        shown.append(one_head(pattern, head))
        return small(pattern)

    again = patterns_from(model, 0 if base is None else first_edited(base.trace.edits, edits, model))
    reductions = {hook: shown_and_small if hook == name else small for hook in again}
    before = None if base is None else base.trace
    trace, fresh = run_reduced(model, encoding, reductions, (*keep, *streams(model)), edits, base=before, **options)
    if base is None:
        return Glance(trace, shown[0], fresh)
    if not shown:
        shown.append(head_pattern(model, encoding, hook, head, base.trace, base.trace.edits, **options))
    return Glance(trace, shown[0], base.overviews | fresh)


def patterns_from(model: Transformer, layer: int) -> list[str]:
    """The patterns of that layer, counted through the encoder's first, and of those behind it."""
    layers, encoder = layers_of(model), encoder_layers(model)
    hooks = sorted(kept_names(("*attn.pattern",), model.hook_names, model.requested))
    return [hook for hook in hooks if layer_of(hook, layers, encoder) >= layer]


def head_pattern(
    model: Transformer,
    encoding: Input,
    hook: str,
    head: int,
    base: Trace,
    edits: Sequence[Edit] = (),
    **options: Any,
) -> Tensor:
    """Another head of a text that was glanced at, pos key: its layer as far as the pattern, and no more.

    `base` is the `Glance.trace`, `edits` and `options` those it was made with; refuses what `glance` refuses.
    """
    name = pattern_with(model, hook, head)
    return rerun_reduced(model, encoding, {name: partial(one_head, head=head)}, base, edits, **options)[name]


def one_head(pattern: Tensor, head: int) -> Tensor:
    """Pattern of the first text, pos key; a copy, so that the others' memory is free."""
    return pattern[0, head].clone()


def mean_head(pattern: Tensor) -> Tensor:
    """The mean of all heads of the first text, pos key."""
    return pattern[0].mean(0, dtype=torch.float64).float()


def pattern_with(model: Transformer, hook: str, head: int) -> str:
    """The full name of a pattern that has such a head."""
    found = match_hooks(hook, model.hook_names)
    if len(found) > 1 or not found[0].endswith("attn.pattern"):
        raise ValueError(f"one head on screen is of one layer's pattern, got {hook!r}; name one, as {PATTERN!r}.")
    owner = model.get_submodule(found[0].rpartition(".")[0])
    assert isinstance(owner, Attention)
    heads = owner.heads
    if not 0 <= head < heads:
        raise ValueError(f"a head of {found[0]} must be in 0..{heads - 1}, got {head}.")
    return found[0]
