"""What each value of a model is computed from: the hooks of a stack in the order in which one feeds the next."""

from __future__ import annotations

import re

import torch
from torch import Tensor

from engine.analysis.arithmetic.explanation import WHOLE, Index
from engine.model.hooks import ADDED
from engine.model.stack import Stack
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace

HOOK = re.compile(r"(?:(encoder|decoder)\.)?(?:blocks\.(\d+)\.)?(.+)")
ONE = "one"  # the last axis of what has a single element at each position or head
SUM = "embed.sum"  # what the parts of the embedding add up to, which no hook holds


class Source:
    """The stack that a hook belongs to, and the values of a trace that it is made of. `part` is the hook's own name."""

    def __init__(self, model: Transformer, trace: Trace, hook: str) -> None:
        found = HOOK.fullmatch(hook)
        if found is None or hook not in model.hooks:
            raise ValueError(f"this model has no hook {hook!r}; ask for one of model.hook_names.")
        side, layer, self.part = found.groups()
        if model.config.encoder is not None and side is None:
            side = "decoder"
        self.model, self.trace, self.hook = model, trace, hook
        self.prefix = f"{side}." if side else ""
        stack = model.get_submodule(side) if side else model
        assert isinstance(stack, Stack)
        self.stack, self.config = stack, stack.config
        self.layer = None if layer is None else int(layer)
        self.block = f"{self.prefix}blocks.{layer}."

    # --- values ---------------------------------------------------------------------------------------------------

    def row(self, hook: str, pos: int, head: int | None = None) -> Tensor:
        """Last axis of a recorded value, float64. All heads joined where `head` is None; grouped heads are shared."""
        if hook == self.prefix + SUM:
            return torch.stack([self.row(part, pos) for part in self.embedding_parts()]).sum(0)
        dims, value = self.axes(hook), self.value_of(hook)
        for axis in dims[:-1]:
            if axis in ("head", "slot") and head is None:
                break
            at = {"batch": 0, "slot": head or 0}.get(axis, pos)
            at = self.shared_head(head or 0, len(value)) if axis == "head" else at
            if not 0 <= at < len(value):
                raise ValueError(f"an index of {hook} must be in 0..{len(value) - 1}, got {at}.")
            value = value[at]
        value = value.double().flatten()
        if dims[-1] == "d_heads" and head is not None:
            width = self.config.d_head
            value = value.unflatten(0, (-1, width))[self.shared_head(head, len(value) // width)]
        return value

    def element(self, hook: str, pos: int, unit: int, head: int | None = None) -> float:
        row = self.row(hook, pos, head)
        if not 0 <= unit < len(row):
            raise ValueError(f"an index of {hook} must be in 0..{len(row) - 1}, got {unit}.")
        return float(row[unit])

    def axes(self, hook: str) -> tuple[str, ...]:
        """Names of the axes of `value_of`."""
        dims = self.model.hooks[hook].axes
        return (*dims, ONE) if dims[-1] in ("pos", "head") else dims

    def value_of(self, hook: str) -> Tensor:
        """A recorded value; what a position or a head has one of gets a last axis of that one element."""
        try:
            value = self.trace[hook]
        except KeyError as error:
            raise ValueError(str(error.args[0])) from None
        return value[..., None] if self.axes(hook)[-1] == ONE else value

    def index(self, hook: str, pos: int, head: int | None = None, unit: int | slice = WHOLE) -> Index:
        """Index of a row of a hook, or of an element, without the axis of the texts."""
        dims, value = self.axes(hook), self.value_of(hook)
        found: list[int | slice] = []
        for axis, size in zip(dims[:-1], value.shape, strict=False):
            if axis == "head":
                found.append(WHOLE if head is None else self.shared_head(head, size))
            elif axis == "slot":
                found.append(WHOLE if head is None else head)
            elif axis != "batch":
                found.append(pos)
        if dims[-1] == "d_heads" and head is not None and unit == WHOLE:
            width = self.config.d_head
            start = self.shared_head(head, value.shape[-1] // width) * width
            unit = slice(start, start + width)
        return tuple(found) if dims[-1] == ONE else (*found, unit)

    def shared_head(self, head: int, count: int) -> int:
        """The head of keys and values that query head `head` reads, of `count`."""
        heads = self.heads
        if not 0 <= head < heads:
            raise ValueError(f"a head must be in 0..{heads - 1}, got {head}.")
        return head * count // heads

    @property
    def heads(self) -> int:
        attention = self.config.cross_attention if "cross_attn" in self.part else self.config.attention
        return attention.heads

    def length(self) -> int:
        """Number of positions that the stack read."""
        return self.value_of(f"{self.prefix}blocks.0.resid_pre").shape[1]

    def ids(self) -> Tensor:
        """Token ids that the stack read, batch pos."""
        if self.prefix != "decoder.":
            return self.trace.ids
        if self.trace.target is None:
            raise ValueError("the decoder of this run read no target; pass one in run(..., target=...).")
        return self.trace.target

    # --- which hook feeds which -----------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        return name in self.model.hooks

    def first_of(self, *names: str) -> str:
        return next((name for name in names if self.has(name)), names[-1])

    def embedding_parts(self) -> list[str]:
        """Hooks that are added up to the first residual stream, or to what is then mapped to it."""
        embedding = self.config.embedding
        tokens = "mapped" if embedding.width is not None and embedding.mapped == "tokens" else "tokens"
        names = [
            f"{self.prefix}embed.{part}"
            for part in (tokens, "patches", "conv2.post", "segments", "positions", "within")
        ]
        return [name for name in names if self.has(name)]

    def embedding(self) -> str:
        """Hook of what the parts of the embedding add up to, after its norm where it has one."""
        parts = self.embedding_parts()
        return self.first_of(f"{self.prefix}embed.norm.out", parts[0] if len(parts) == 1 else self.prefix + SUM)

    def added_hook(self, sublayer: str) -> str:
        """Hook, within this one's block, of what a sublayer adds to the stream."""
        return next(name for name in ADDED[sublayer] if self.has(self.block + name))

    def norms_after(self) -> bool:
        return self.config.norm.place == "after" and self.config.norm.kind != "none"

    @property
    def crosses(self) -> bool:
        return self.config.encoder is not None

    @property
    def parallel(self) -> bool:
        return self.config.sublayers != "sequential"

    def after(self, layer: int) -> str:
        """The residual stream that leaves a block."""
        block = f"{self.prefix}blocks.{layer}."
        return block + ("norm2.out" if self.norms_after() and self.config.mlp else "resid_post")

    def last(self, normed: bool = True) -> str:
        """Hook of what leaves the stack, after its final norm unless that is what is asked for."""
        final = f"{self.prefix}final_norm.out"
        return final if normed and self.has(final) else self.after(self.config.layers - 1)

    def memory(self) -> str:
        """Hook of what cross-attention makes its keys and values of."""
        own = self.model.config.encoder_stack
        last = f"encoder.blocks.{own.layers - 1}."
        after = [last + "norm2.out"] if own.norm.place == "after" and own.norm.kind != "none" and own.mlp else []
        return self.first_of("encoder.final_norm.out", *after, last + "resid_post")

    def stream_of_mlp(self) -> str:
        """Hook of what the MLP of a block is added to."""
        if self.norms_after():
            return self.block + ("norm_cross.out" if self.crosses else "norm1.out")
        if self.parallel:
            return self.block + "resid_pre"
        return self.block + ("resid_cross" if self.crosses else "resid_mid")

    def query_input(self, cross: bool = False) -> str:
        """Hook of what queries are made of."""
        if cross:
            stream = self.block + ("norm1.out" if self.norms_after() else "resid_mid")
            return stream if self.norms_after() else self.first_of(self.block + "norm_cross.out", stream)
        stream = self.block + "resid_pre"
        return stream if self.norms_after() else self.first_of(self.block + "norm1.out", stream)

    def read_by_mlp(self) -> str:
        if self.config.sublayers == "parallel_one_norm":
            return self.query_input()
        stream = self.stream_of_mlp()
        return stream if self.norms_after() else self.first_of(self.block + "norm2.out", stream)

    def norm_input(self) -> str:
        """Hook of what the norm that this hook belongs to reads."""
        part, block, post = self.part.rpartition(".")[0], self.block, self.norms_after()
        if part.endswith(("q_norm", "k_norm", "keys_norm", "queries_norm")):
            return self.hook.rpartition("_norm.")[0]
        inside = {
            "norm1": "resid_mid" if post else "resid_pre",
            "norm_cross": "resid_cross" if post else "resid_mid",
            "norm2": "resid_post" if post else self.stream_of_mlp().removeprefix(block),
            "norm1_after": "attn.out",
            "norm2_after": "mlp.out",
        }
        if part in inside:
            return block + inside[part]
        parts = self.embedding_parts()
        outside = {
            "embed.norm": parts[0] if len(parts) == 1 else self.prefix + SUM,
            "final_norm": self.after(self.config.layers - 1),
            "head.norm": "head.post",
            "vector.probe.norm": "vector.probe.attended",
            "vector.norm": self.first_of("vector.pooled", self.last()),
        }
        return outside[part]

    def read_by_head(self) -> str:
        """Hook of what a part of the head reads: the stream, or what pooler, mean and the parts before it made of
        that."""
        head = self.config.head
        pooled = "pooler.out" if head.kind == "sequence" and head.pooler else self.last()
        if head.read == "vector":
            return self.first_of("vector.out")
        if self.part in ("head.cls", "head.distilled"):
            return self.last()
        behind = {"head.narrow": ["head.mean"], "head.pre": ["head.narrow", "head.mean"]}
        return self.first_of(*behind.get(self.part, ["head.norm.out", "head.post", "head.narrow", "head.mean"]), pooled)

    def origin(self, source: str, pos: int) -> int:
        """The row of `source` that row `pos` of this hook is made of.

        What a text has one of is made of the position that speaks for it; where only some positions have logits, rows
        are counted from those.
        """
        many = {"pos", "key", "patch"}
        if not many & set(self.axes(self.hook)[:-1]) and many & set(self.axes(source)[:-1]):
            return 1 if self.hook == "head.distilled" else self.speaker(source)
        if self.layer is None and self.prefix != "encoder." and "blocks." in source and self.model.reads_every_position:
            return range(self.length())[self.trace.logits_at][pos]
        return pos

    def speaker(self, source: str) -> int:
        """The position that speaks for the whole text: its first, or its last where only that has read all."""
        if self.config.head.read != "last":
            return 0
        padding = self.trace.padding if self.trace.target is None else self.trace.target_padding
        return int(self.model.find_last(self.value_of(source), padding, self.trace.ids)[0])
