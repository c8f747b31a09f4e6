"""One forward pass with its intermediates kept, changed, or continued from an earlier one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from engine.batch import Input, batch
from engine.edits import Edit
from engine.hooks import HookPoint, active, matching
from engine.layers.cache import KVCache
from engine.layers.mask import Mask
from engine.model import Transformer
from engine.trace import Trace

ALL = "*"


@torch.no_grad()
def run(
    model: Transformer,
    encoding: Input,
    keep: str | Iterable[str] = ALL,
    edits: Sequence[Edit] = (),
    base: Trace | None = None,
    *,
    mask: Mask | None = None,
    cache: KVCache | None = None,
    logits_at: slice = slice(None),
) -> Trace:
    """Run `model` and return what `keep` names (hook names, aliases, shell-style patterns).

    `encoding` is one text, a batch of them, plain ids, or a tensor batch pos; unequal lengths are padded on
    the right and masked. With `base`, a run on the same input, only what the difference in edits can change
    is computed again. Raises ValueError for an input the model cannot read, KeyError for a hook it does not
    have.
    """
    ids, padding, encodings = batch(encoding, model.device)
    past = cache.tokens if cache is not None else 0
    model.check(ids, past)
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    recording = Recording(model, kept_names(keep, model.hook_names, requested(model)), edits, padding)
    trace = Trace(recording.values, model.hooks, ids, padding, encodings, tuple(edits), mask, logits_at, past)
    start, resid = 0, None
    if base is not None:
        check_base(base, trace, cache)
        start = first_layer(base, trace, recording.kept, model)
        recording.values.update(earlier(base, start, recording.kept, model))
        if start > model.config.layers:
            return trace
        resid = resume(base, start, model) if start > 0 else None
    with active(recording):
        model(ids, mask=mask, padding=padding, cache=cache, start=start, resid=resid, logits_at=logits_at)
    return trace


class Recording:
    """The active run: keeps what was asked for and applies edits as the values come by."""

    def __init__(self, model: Transformer, kept: frozenset[str], edits: Sequence[Edit], padding: Tensor | None) -> None:
        self.kept, self.padding = kept, padding
        self.values: dict[str, Tensor] = {}
        self.edits = edits_by_hook(edits, model)
        self.wanted = kept | self.edits.keys() if edits else kept

    def wants(self, hook: HookPoint) -> bool:
        return hook.name in self.wanted

    def visit(self, hook: HookPoint, value: Tensor) -> Tensor:
        name = hook.name
        if name not in self.wanted:
            return value
        for edit in self.edits.get(name, ()):
            value = edit.apply(hook, value, self.padding)
        if name in self.kept:
            self.values[name] = value
        return value


def edits_by_hook(edits: Iterable[Edit], model: Transformer) -> dict[str, list[Edit]]:
    found: dict[str, list[Edit]] = {}
    for edit in edits:
        for pattern in edit.touches():
            for name in matching(pattern, model.hook_names):
                found.setdefault(name, []).append(edit)
    return found


@lru_cache(maxsize=256)
def kept_names(keep: tuple[str, ...], names: tuple[str, ...], on_request: frozenset[str]) -> frozenset[str]:
    """The hooks that `keep` names; what is computed only on request takes more than a wildcard."""
    kept: set[str] = set()
    for pattern in keep:
        named = {n for n in matching(pattern, names) if n not in on_request or pattern.endswith(n.rsplit(".", 1)[-1])}
        kept |= named or set(matching(pattern, names))
    return frozenset(kept)


def requested(model: Transformer) -> frozenset[str]:
    return frozenset(name for name, hook in model.hooks.items() if hook.on_request)


def first_layer(base: Trace, trace: Trace, kept: frozenset[str], model: Transformer) -> int:
    """Where `trace` has to start: the first layer that is edited otherwise, or that `base` did not keep.

    layers = after the last block; layers + 1 = nothing to compute.
    """
    layers = model.config.layers
    if base.mask != trace.mask:
        return 0
    mine, theirs = edits_by_hook(trace.edits, model), edits_by_hook(base.edits, model)
    changed = [name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)]
    starts = [layer_of(name, layers) for name in changed]
    starts += [layer_of(name, layers) for name in kept if name not in base]
    if base.logits_at != trace.logits_at:
        starts.append(layers)
    return min(starts, default=layers + 1)


def check_base(base: Trace, trace: Trace, cache: KVCache | None) -> None:
    if base.hooks is not trace.hooks:
        raise ValueError("base must be a run of the same model; run this one once without edits and use that trace.")
    if not (same(base.ids, trace.ids) and same(base.padding, trace.padding)):
        raise ValueError("base must be a run on the same tokens; run once without edits and use that trace.")
    if base.past or cache is not None:
        raise ValueError("base must be a run on a whole text, without a cache; leave out one of the two.")


def same(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b or (a is not None and b is not None and a.shape == b.shape and torch.equal(a, b))


@lru_cache(maxsize=4096)
def layer_of(name: str, layers: int) -> int:
    """The layer that a hook stands in; `layers` for what comes after the last one, 0 for the embedding."""
    found = re.search(r"blocks\.(\d+)\.", name)
    if found:
        return int(found[1])
    return 0 if name.startswith("embed") else layers


def earlier(base: Trace, start: int, kept: frozenset[str], model: Transformer) -> Mapping[str, Tensor]:
    """What `base` recorded before layer `start`, of what is to be kept."""
    if start == 0:
        return {}
    layers = model.config.layers
    return {n: base[n] for n in base if n in kept and (layer_of(n, layers) < start or n.startswith("embed"))}


def resume(base: Trace, start: int, model: Transformer) -> Tensor:
    """What block `start` - 1 gave, batch pos d_model.

    Not what block `start` read: that, `base` may have edited.
    """
    normed = f"blocks.{start - 1}.norm2.out"
    after = model.config.norm.place == "after" and normed in model.hooks
    name = normed if after else f"blocks.{start - 1}.resid_post"
    if name not in base:
        raise ValueError(
            f"base must have recorded {name} to start from; run it with keep='*' or add that name to keep."
        )
    return base[name]
