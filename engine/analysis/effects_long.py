"""What edits did to a run on a long text, of which no pattern is kept: a layer's patterns are there one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.analysis.summarised_run import patterns_from, rerun_reduced
from engine.model.layers.attention import Attention
from engine.model.transformer import Transformer
from engine.runtime.batch import Input
from engine.runtime.run import first_edited
from engine.runtime.trace import Trace


def pattern_change_long(
    model: Transformer, encoding: Input, hooks: Sequence[str], before: Trace, after: Trace, **options: Any
) -> Tensor:
    """layer head: as `engine.analysis.effects.pattern_change` of the first text, for the `hooks` of one attention.

    The traces are those of two glances at the text, `options` those they were made with. Layers in front of the first
    edit are not computed.
    """
    again = set(patterns_from(model, first_edited(before.edits, after.edits, model)))
    found = [head_shift(model, encoding, hook, before, after, **options) if hook in again else None for hook in hooks]
    heads = heads_of(model, hooks[0])
    return torch.stack([torch.zeros(heads) if one is None else one for one in found])


def head_shift(
    model: Transformer, encoding: Input, hook: str, before: Trace, after: Trace, **options: Any
) -> Tensor:
    """head: the total variation between a head's rows in both runs, the mean over the queries."""
    (old,) = rerun_reduced(model, encoding, {hook: first_text}, before, before.edits, **options).values()

    def distance(pattern: Tensor) -> Tensor:
        return (pattern[0] - old).abs().sum(-1).mean(-1) / 2

    (found,) = rerun_reduced(model, encoding, {hook: distance}, after, after.edits, **options).values()
    return found


def first_text(pattern: Tensor) -> Tensor:
    return pattern[0].clone()


def heads_of(model: Transformer, hook: str) -> int:
    owner = model.get_submodule(hook.rpartition(".")[0])
    assert isinstance(owner, Attention)
    return owner.heads
