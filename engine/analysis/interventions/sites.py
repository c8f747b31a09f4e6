"""Kinds of places whose values are put in place of others: of each block one hook."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.hooks import ADDED, HookPoint
from engine.model.transformer import Transformer


@dataclass(frozen=True)
class Site:
    """`parts` are the hooks of a block, of which the first that it has is meant; `by_head` tells whether its values
    belong to heads."""

    name: str
    title: str
    parts: tuple[str, ...]
    by_head: bool = False

    def hook(self, model: Transformer, layer: int, side: str = "") -> HookPoint:
        """Raises ValueError for a block, or a stack, that the model does not have."""
        block = f"{f'{side}.' if side else ''}blocks.{layer}"
        found = next((f"{block}.{part}" for part in self.parts if f"{block}.{part}" in model.hooks), None)
        if found is None:
            raise ValueError(f"{self.title} of {block} is no place of this model; choose another block or part.")
        return model.hooks[found]


SITES = {
    site.name: site
    for site in (
        Site("stream", "residual stream", ("resid_pre",)),
        Site("attention", "attention output", ADDED["attn"]),
        Site("MLP", "MLP output", ADDED["mlp"]),
        Site("z", "head output", ("attn.z",), True),
        Site("q", "queries", ("attn.q",), True),
        Site("k", "keys", ("attn.k",), True),
        Site("v", "values", ("attn.v",), True),
        Site("pattern", "attention pattern", ("attn.pattern",), True),
    )
}
