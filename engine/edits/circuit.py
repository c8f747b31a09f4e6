"""A circuit alone: every other part of a model holds what says nothing of the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

from engine.edits.edit import Reach, merge_at
from engine.edits.heads import mean_over_text
from engine.edits.sources import RunSourcedEdit, Source, SourceRuns
from engine.model.hooks import HookPoint
from engine.plurals import count_words

How = Literal["zero", "mean", "patch"]
TEXTS, LONGEST = 64, 4096  # texts whose mean a part takes, and their tokens together, at most


@dataclass(frozen=True)
class KeepParts(RunSourcedEdit):
    """Of each hook named, let all but some heads hold other values (Wang et al. 2023, "Interpretability in the Wild",
    section 4: a circuit alone, or a model without it).

    `kept` are for each hook the heads that keep theirs; a hook without heads is replaced whole, and one that is not
    named keeps its own. The others are 0, with `patch` what `source` holds at the same positions, or their `mean` over
    all positions of that and of `further` runs. `source` None is this text's run without edits.
    """

    kept: Mapping[str, list[int]]
    how: How = "mean"
    source: Source | None = None
    further: list[Source] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.how not in get_args(How):
            raise ValueError(f"how must be one of {', '.join(get_args(How))}, got {self.how!r}.")
        if not self.kept:
            raise ValueError("a circuit alone must name the hooks whose parts are replaced, got none; name one.")
        if self.further and (self.source is None or self.how != "mean"):
            raise ValueError("further texts are for a mean over several; leave them out, or name the first of them.")
        size = sum(len(one.ids) for one in self.further)
        if len(self.further) >= TEXTS or size > LONGEST:
            raise ValueError(
                f"a mean is over at most {count_words(TEXTS, 'text')} of {LONGEST:,} tokens together, got "
                f"{len(self.further) + 1:,} of {size:,}; leave some out."
            )

    def touches(self) -> tuple[str, ...]:
        return tuple(self.kept)

    def fetch(self, runs: SourceRuns) -> Mapping[str, Tensor]:
        names = self.touches()
        for name in names:
            hook = runs.model.hooks.get(name)
            if hook is None or hook.axes[:2] != ("batch", "pos") or "key" in hook.axes:
                raise ValueError(f"{name} holds no value at each position of this model; name another hook.")
        if self.how == "zero":
            return {name: torch.zeros(1, device=runs.model.device) for name in names}
        traces = [runs.find(source, names) for source in (self.source, *self.further)]
        if self.how == "patch":
            return {name: traces[0][name] for name in names}
        if self.source is None:
            padding = traces[0].padding if traces[0].target is None else traces[0].target_padding
            return {name: mean_over_text(traces[0][name], padding) for name in names}
        return {name: torch.cat([trace[name][0] for trace in traces]).float().mean(0) for name in names}

    def put(self, hook: HookPoint, value: Tensor, fetched: Tensor) -> Tensor:
        heads = self.kept[hook.name]
        if heads and "head" not in hook.axes:
            raise ValueError(f"{hook.name} has no heads, of which {heads} could be kept; leave the hook out.")
        if self.how == "patch" and fetched.shape[1:] != value.shape[1:]:
            raise ValueError(
                f"the other text must have as many tokens, got {fetched.shape[1]} for {value.shape[1]}; choose its "
                "mean, or a text of this length."
            )
        changed = fetched.to(value).expand(value.shape)
        replaced = [] if not heads else sorted({*range(value.shape[hook.axes.index("head")])} - {*heads})
        if heads and not replaced:
            return value
        return merge_at(hook, value, {"head": replaced} if heads else {}, changed)

    def is_anchored(self, hook: HookPoint) -> bool:
        return self.how == "patch"

    def reach(self, hook: HookPoint) -> Reach:
        if self.how == "mean" and self.source is None:
            return "whole"
        return "prompt" if self.how == "patch" else "each"
