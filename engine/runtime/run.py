"""One forward pass with its intermediates kept, changed, or continued from an earlier one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter

import torch
from torch import Tensor

from engine.edits import Edit, Source, SourceRuns, resolve
from engine.model.hooks import active
from engine.model.layers.cache import KVCache
from engine.model.layers.mask import Mask
from engine.model.transformer import Transformer
from engine.runtime.batch import Input, batch, segments
from engine.runtime.recording import Recording, edits_by_hook, kept_names
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding

ALL = "*"


@torch.no_grad()
def run(
    model: Transformer,
    encoding: Input,
    keep: str | Iterable[str] = ALL,
    edits: Sequence[Edit] = (),
    base: Trace | None = None,
    *,
    target: Input | None = None,
    mask: Mask | None = None,
    cache: KVCache | None = None,
    logits_at: slice = slice(None),
    recorder: Callable[..., Recording] | None = None,
) -> Trace:
    """Run `model` and return what `keep` names (hook names, aliases, shell-style patterns).

    `encoding` is one text, a batch of them, plain ids, or a tensor batch pos; unequal lengths are padded on the right
    and masked. A model of pictures takes pixels, batch channel height width, one of sounds log-mel frames, batch mel
    frame. `target` is what the decoder of an
    encoder-decoder reads, its start token first; None is that token alone, or the token in front of the text where the
    decoder reads that again (`ModelConfig.rereads`). Positions that edits name count within the tokens that are read.
    With `base`, a run on the same input, only what the difference in edits can change is computed again. `recorder` is
    called with the arguments of `Recording`, for one that does more. Raises ValueError for an input the model cannot
    read, KeyError for a hook it does not have.
    """
    begun = perf_counter()
    ids, padding, encodings = batch(encoding, model.device)
    past = cache.tokens if cache is not None else 0
    written, target_padding, target_encodings = read_target(model, target, ids, padding)
    model.check(ids, 0 if written is not None else past)
    if written is not None:
        model.check_tokens(written, past)
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    kept = kept_names(keep, model.hook_names, model.requested)
    made = resolve_edits(model, edits, encoding, target, mask=mask, base=base, cache=cache)
    recording = (recorder or Recording)(model, kept, made, padding, target_padding)
    trace = Trace(
        recording.values, model.hooks, ids, padding, encodings, tuple(edits), mask, logits_at, past,
        written, target_encodings, target_padding,
    )  # fmt: skip
    begin = RunStart() if base is None else continue_run(base, trace, recording, model, cache)
    if begin is None:
        return trace
    kinds = segments(encodings, ids) if model.config.embedding.segments else None
    with active(recording):
        model.forward_with_pooled(
            ids, target=written, segments=kinds, mask=mask, padding=padding, target_padding=target_padding,
            cache=cache, start=begin.start, resid=begin.resid, memory=begin.memory, logits_at=logits_at,
        )  # fmt: skip
    trace.seconds = perf_counter() - begun
    return trace


def read_target(
    model: Transformer, target: Input | None, ids: Tensor, real: Tensor | None
) -> tuple[Tensor | None, Tensor | None, tuple[Encoding, ...]]:
    """Input of the decoder after an encoder: ids, what of them is real, encodings."""
    if model.config.encoder is None:
        if target is not None:
            raise ValueError("a target is for an encoder-decoder, and this model has one stack; leave the target out.")
        return None, None, ()
    if target is None:
        return *model.begin(ids, real), ()
    written, padding, encodings = batch(target, model.device)
    if len(written) != len(ids):
        raise ValueError(f"there must be one target for each text, got {len(written)} for {len(ids)}.")
    return written, padding, encodings


def resolve_edits(
    model: Transformer,
    edits: Sequence[Edit],
    encoding: Input,
    target: Input | None = None,
    *,
    mask: Mask | None = None,
    base: Trace | None = None,
    cache: KVCache | None = None,
) -> tuple[Edit, ...]:
    """The edits of a run, those that name another run's values or a token's vector holding them."""

    def read(source: Source | None, keep: tuple[str, ...]) -> Trace:
        if source is not None:
            return run(model, source.read, keep, source.as_edits(), target=source.target)
        if cache is not None:
            raise ValueError("behind a cache there is no whole text to take values from; give the edit a source.")
        if base is not None and not base.edits and base.mask == mask and all(name in base for name in keep):
            return base
        return run(model, encoding, keep, target=target, mask=mask)

    return resolve(edits, SourceRuns(model, read))


@dataclass(frozen=True)
class RunStart:
    """Start of a run: the block, what it reads, and what the encoder gave where that is passed over."""

    start: int = 0
    resid: Tensor | None = None
    memory: Tensor | None = None


def continue_run(
    base: Trace, trace: Trace, recording: Recording, model: Transformer, cache: KVCache | None
) -> RunStart | None:
    """Takes over what `base` has and tells `trace` where it starts; None where nothing is left to compute."""
    check_base(base, trace, cache)
    start = trace.start = first_layer(base, trace, recording.kept, model)
    recording.values.update(earlier(base, start, recording.kept, model))
    return None if start > layers_of(model) else resume(base, start, model)


def layers_of(model: Transformer) -> int:
    """Blocks counted through, the encoder's first."""
    config = model.config
    return config.layers + (config.encoder.layers if config.encoder else 0)


def first_layer(base: Trace, trace: Trace, kept: frozenset[str], model: Transformer) -> int:
    """Start of `trace`: the first layer that is edited otherwise, or that `base` did not keep.

    layers = after the last block; layers + 1 = nothing to compute.
    """
    layers, first = layers_of(model), encoder_layers(model)
    if base.mask != trace.mask:
        return first
    starts = [first_edited(base.edits, trace.edits, model)]
    starts += [layer_of(name, layers, first) for name in kept if name not in base]
    if base.logits_at != trace.logits_at:
        starts.append(layers)
    return min(starts)


def first_edited(before: Sequence[Edit], after: Sequence[Edit], model: Transformer) -> int:
    """The first layer in which two lists of edits do something else; layers + 1 where they do the same."""
    layers, first = layers_of(model), encoder_layers(model)
    mine, theirs = edits_by_hook(after, model), edits_by_hook(before, model)
    changed = [name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)]
    return min((layer_of(name, layers, first) for name in changed), default=layers + 1)


def encoder_layers(model: Transformer) -> int:
    return model.config.encoder.layers if model.config.encoder else 0


def check_base(base: Trace, trace: Trace, cache: KVCache | None) -> None:
    if base.hooks is not trace.hooks:
        raise ValueError("base must be a run of the same model; run this one once without edits and use that trace.")
    if not (same(base.ids, trace.ids) and same(base.padding, trace.padding) and same(base.target, trace.target)):
        raise ValueError("base must be a run on the same tokens; run once without edits and use that trace.")
    if "embed.segments" in trace.hooks and not torch.equal(segment_ids(base), segment_ids(trace)):
        raise ValueError("base must be a run with the same segments; run once without edits and use that trace.")
    if base.past or cache is not None:
        raise ValueError("base must be a run on a whole text, without a cache; leave out one of the two.")


def segment_ids(trace: Trace) -> Tensor:
    """The segments of a run, batch pos."""
    kinds = segments(trace.encodings, trace.ids)
    return torch.zeros_like(trace.ids) if kinds is None else kinds


def same(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b or (a is not None and b is not None and a.shape == b.shape and torch.equal(a, b))


@lru_cache(maxsize=4096)
def layer_of(name: str, layers: int, encoder: int = 0) -> int:
    """The layer that a hook stands in; `layers` for what comes after the last one, 0 for the embedding.

    Of two stacks the first `encoder` layers are the encoder's, and what comes after those is part of the last of them.
    """
    found = re.search(r"blocks\.(\d+)\.", name)
    side, _, part = name.rpartition("coder.")
    first = part == "tokens" or part.startswith("embed.")
    if side == "en":
        return int(found[1]) if found else 0 if first else max(encoder - 1, 0)
    if found:
        return encoder + int(found[1])
    return encoder if first else layers


def earlier(base: Trace, start: int, kept: frozenset[str], model: Transformer) -> Mapping[str, Tensor]:
    """Values that `base` recorded before layer `start`, of what is to be kept."""
    layers, first = layers_of(model), encoder_layers(model)
    return {n: base[n] for n in base if n in kept and layer_of(n, layers, first) < start}


def resume(base: Trace, start: int, model: Transformer) -> RunStart:
    """Outputs of block `start` - 1, and of the encoder where it is over.

    Not what block `start` read: that, `base` may have edited.
    """
    first = encoder_layers(model)
    if first == 0 or start < first:
        side = "encoder." if first else ""
        return RunStart(start, recorded_value(base, stream(model, f"{side}blocks.{start - 1}.")) if start else None)
    final = "encoder.final_norm.out"
    memory = recorded_value(base, final if final in model.hooks else stream(model, f"encoder.blocks.{first - 1}."))
    if start == first:
        return RunStart(start, None, memory)
    return RunStart(start, recorded_value(base, stream(model, f"decoder.blocks.{start - first - 1}.")), memory)


def stream(model: Transformer, block: str) -> str:
    """The hook that holds what a block passes on."""
    after = model.config.norm.place == "after"
    normed = f"{block}norm2.out"
    return normed if after and normed in model.hooks else f"{block}resid_post"


def recorded_value(base: Trace, name: str) -> Tensor:
    if name not in base:
        raise ValueError(
            f"base must have recorded {name} to start from; run it with keep='*' or add that name to keep."
        )
    return base[name]
