"""The positional share of the heads of a long text, a little at a time: one layer of one text after the other.

What comes of it is what `positional` gives. No text is read twice, and of all of them no more is in memory than what
leaves a layer and the mean of one layer's patterns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock

import torch
from torch import Tensor

from engine.analysis.positional import agreement, other_texts
from engine.analysis.recorded_patterns import side_of
from engine.analysis.summarised_run import rerun_reduced
from engine.edits import Edit
from engine.model.layers.mask import Mask
from engine.model.transformer import Transformer
from engine.runtime.batch import Input, batch
from engine.runtime.run import read_target, resolve_edits, stream
from engine.runtime.trace import Trace

See = Callable[[Tensor], None]


class OtherOrder:
    """Text in another order, as far as it has been read; `memory` is what a decoder has of its encoder."""

    def __init__(
        self,
        model: Transformer,
        read: Input,
        target: Input | None,
        edits: tuple[Edit, ...],
        mask: Mask | None,
        memory: dict[str, Tensor],
    ) -> None:
        self.model, self.read, self.target, self.mask, self.memory = model, read, target, mask, memory
        self.edits = resolve_edits(model, edits, read, target, mask=mask)  # once, and not again at each layer
        ids, padding, encodings = batch(read, model.device)
        written, target_padding, target_encodings = read_target(model, target, ids, padding)
        self.about = (ids, padding, encodings, self.edits, mask, slice(None), 0)
        self.about_target = (written, target_encodings, target_padding)
        self.left = dict(memory)

    def read_layer(self, pattern: str, after: str, see: See) -> None:
        """Reads the next layer, up to `after`: `see` is given its pattern, batch head pos key."""
        base = Trace(self.left, self.model.hooks, *self.about, *self.about_target)
        wanted: dict[str, Callable[[Tensor], Tensor | None]] = {pattern: see, after: Tensor.clone}
        found = rerun_reduced(self.model, self.read, wanted, base, self.edits, target=self.target, mask=self.mask)
        kept = found[after]
        assert kept is not None
        self.left = self.memory | {after: kept}


class PositionalSteps:
    """`advance` until `done` is `steps`; `shares` is layer head, NaN where no layer has been scored, or has no share.

    `trace` is a run of `model` on `read` (and `target`) under its edits that kept `streams`, as that of a `Glance`.
    """

    def __init__(
        self,
        model: Transformer,
        read: Input,
        trace: Trace,
        target: Input | None = None,
        side: str = "",
        texts: int = 8,
        seed: int = 0,
    ) -> None:
        side = side_of(trace, side)
        stack = model.config.encoder if side == "encoder" and model.config.encoder else model.config
        self.model, self.read, self.trace, self.target = model, read, trace, target
        self.blocks = [f"{side and side + '.'}blocks.{layer}." for layer in range(stack.layers)]
        self.others = other_texts(model, trace, side, False, texts, seed)
        self.memory = {n: trace[n] for n in trace if n.startswith("encoder.")} if side == "decoder" else {}
        self.shares = torch.full((stack.layers, stack.attention.heads), math.nan)
        self.steps = len(self.blocks) * (len(self.others) + 1) if self.others else 0
        self.done = 0
        self._readings: list[OtherOrder] = []
        self._mean: Tensor | None = None
        self._lock = Lock()  # several sessions may look at one text

    @property
    def scored_layers(self) -> int:
        """Layers, from the first on."""
        return self.done // (len(self.others) + 1) if self.others else len(self.blocks)

    @property
    def bytes(self) -> int:
        """Most that is in memory between two steps."""
        length, heads = self.trace[stream(self.model, self.blocks[0])].shape[1], self.shares.shape[1]
        width = self.model.config.d_model
        return 4 * (heads * length**2 + len(self.others) * length * width)

    @torch.no_grad()
    def advance(self) -> None:
        """Runs one of the other texts through one layer, or the text itself, and then scores the layer."""
        with self._lock:
            if self.done == self.steps:
                return
            layer, number = divmod(self.done, len(self.others) + 1)
            if number < len(self.others):
                self._read(layer, number)
            else:
                self._score(layer)
            self.done += 1

    def _read(self, layer: int, number: int) -> None:
        if layer == 0:
            read, target = self.others[number]
            edits, mask = self.trace.edits, self.trace.mask
            self._readings.append(OtherOrder(self.model, read, target, edits, mask, self.memory))

        def see(pattern: Tensor) -> None:
            self._mean = torch.zeros_like(pattern[0], dtype=torch.float32) if self._mean is None else self._mean
            self._mean.add_(pattern[0].float(), alpha=1 / len(self.others))

        block = self.blocks[layer]
        self._readings[number].read_layer(f"{block}attn.pattern", stream(self.model, block), see)

    def _score(self, layer: int) -> None:
        mean, last = self._mean, layer == len(self.blocks) - 1
        assert mean is not None

        def share(pattern: Tensor) -> Tensor:
            return agreement(pattern[0].float(), mean)

        hook = f"{self.blocks[layer]}attn.pattern"
        options = {"target": self.target, "mask": self.trace.mask}
        found = rerun_reduced(self.model, self.read, {hook: share}, self.trace, self.trace.edits, **options)
        self.shares[layer], self._mean = found[hook], None
        self._readings = [] if last else self._readings
