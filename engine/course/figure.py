"""A transformer as it is drawn, after figure 1 of Vaswani et al. 2017: what the vector of one token is at each box, in
the order in which the model computed them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from torch import Tensor

from engine.runtime.trace import Trace

Part = Literal[
    "tokens", "embedding", "positions", "stream", "norm", "attention", "cross-attention", "MLP", "add", "final norm",
    "next token",
]  # fmt: skip
AROUND: dict[str, Part] = {
    "embed.tokens": "embedding", "embed.positions": "positions", "final_norm.out": "final norm", "logits": "next token",
}  # fmt: skip
WITHIN: dict[str, Part] = {
    "resid_pre": "stream", "norm1.out": "norm", "attn.out": "attention", "resid_mid": "add", "norm_cross.out": "norm",
    "cross_attn.out": "cross-attention", "resid_cross": "add", "norm2.out": "norm", "mlp.out": "MLP",
    "resid_post": "add",
}  # fmt: skip
READERS = {"norm1.out": "attn.out", "norm_cross.out": "cross_attn.out", "norm2.out": "mlp.out"}


class Stop(NamedTuple):
    """A box: its `part` of the model, the vector there, whether it stands on a `branch` beside the residual stream, and
    whether within the block. `made_of` is what an addition adds: what the stream was, and the branch."""

    part: Part
    hook: str
    vector: Tensor
    branch: bool
    inside: bool
    made_of: tuple[Tensor, ...] = ()


def walk(trace: Trace, layer: int, at: int, stack: str = "") -> list[Stop]:
    """The stops of the token `at` through one block of a `stack` ("", "encoder." or "decoder.") and around it."""
    found: list[Stop] = []
    for stop in _stops(trace, layer, at, stack):
        if stop.part == "add":
            if not found[-1].branch:
                continue  # of a sublayer that the model has not
            *_earlier, before = [one for one in found if not one.branch]
            stop = stop._replace(made_of=(before.vector, found[-1].vector))
        found.append(stop)
    return found


def _stops(trace: Trace, layer: int, at: int, stack: str) -> Iterator[Stop]:
    block = f"{stack}blocks.{layer}."
    names = [hook.removeprefix(block) for hook in trace if hook.startswith(block)]
    for hook in trace:
        if hook.startswith(block):
            if (name := hook.removeprefix(block)) in WITHIN:
                part, reader = WITHIN[name], READERS.get(name)
                reads = reader in names and names.index(name) < names.index(reader)
                branch = reads or part in ("attention", "cross-attention", "MLP")
                yield Stop(part, hook, trace[hook][0, at], branch, True)
        elif hook.startswith(stack) and (name := hook.removeprefix(stack)) in AROUND:
            yield Stop(AROUND[name], hook, trace[hook][0, at], name == "embed.positions", False)
        elif hook == "logits" and stack == "decoder.":
            yield Stop("next token", hook, trace[hook][0, at], False, False)
