"""Two runs of which one takes values from the other: which positions stand for one another, and which texts suit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.analysis.alignment import by_pieces
from engine.analysis.interventions.gradient import differentiate
from engine.analysis.interventions.metric import Metric
from engine.analysis.interventions.patching import Constant, FromRun, Resample
from engine.analysis.interventions.sites import SITES
from engine.checkpoints import Checkpoint
from engine.edits import Source
from engine.inputs.samples import UNSEEN, sample_input
from engine.model.hooks import HookPoint
from engine.model.transformer import Transformer
from engine.runtime.lru_cache import LruCache
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers import Tokenizer

TEXTS, LENGTH = 16, 64  # texts of a mean, tokens of each at most
DRAWS = 8  # texts of which each value is taken, one at a time


def take_from(base: Trace, source: Trace) -> FromRun:
    """Values of `source` for the positions of `base`: the same where both texts are of one length, else by a longest
    common subsequence of their tokens, as `by_pieces` aligns them. Raises ValueError for runs of two models, and for
    pictures of two sizes."""
    if base.hooks is not source.hooks:
        raise ValueError("both runs must be of one model; run the other text on the same.")
    partners = dict[str, Tensor]()
    for side, (own, theirs) in read_by_stack(base, source).items():
        if own.is_floating_point():
            if own.shape != theirs.shape:
                raise ValueError("both pictures must be of one size; choose another one.")
            return FromRun(source)
        partners[side] = align(*(list(map(str, one[0].tolist())) for one in (own, theirs)))
    return FromRun(source, partners)


def align(own: Sequence[str], theirs: Sequence[str]) -> Tensor:
    """Position there of each here, pos; -1: none."""
    if len(own) == len(theirs):
        return torch.arange(len(own))
    found, aligned = torch.full((len(own),), -1), by_pieces(own, theirs)
    for first, second in zip(aligned.first, aligned.second, strict=True):
        found[first[0]] = second[0]
    return found


def read_by_stack(base: Trace, source: Trace) -> dict[str, tuple[Tensor, Tensor]]:
    """What each stack read in both runs."""
    if base.target is None or source.target is None:
        return {"": (base.ids, source.ids)}
    return {"encoder": (base.ids, source.ids), "decoder": (base.target, source.target)}


def partner_row(base: Trace, source: Trace, row: int, rows: int) -> int:
    """The row of `source`'s logits that stands for one of `base`'s, of which there are `rows`: the last for the last.
    Raises ValueError where there is none."""
    own, theirs = list(read_by_stack(base, source).values())[-1]
    if own.is_floating_point() or rows != own.shape[-1]:
        return row  # of the whole text, or an answer's start or end
    if row == rows - 1:
        return theirs.shape[-1] - 1
    partners = take_from(base, source).partners
    partner = -1 if partners is None else int(list(partners.values())[-1][row])
    if partner < 0:
        raise ValueError(f"position {row + 1} has none in the other text that stands for it; choose the last one.")
    return partner


def nearest_token(model: Transformer, tokenizer: Tokenizer, id: int) -> int:
    """The token whose embedding has the largest cosine with that of `id`, none that is special or differs by case and
    blanks alone. Raises ValueError for a model that reads no tokens."""
    if model.table is None:
        raise ValueError("this model reads no tokens, so that none can be swapped; choose another kind of change.")
    table = model.table.float()
    likeness = torch.nn.functional.cosine_similarity(table, table[id, None], dim=-1)
    own, special = tokenizer.decode([id]).strip().lower(), {*tokenizer.special_tokens.values(), id}
    for other in likeness.argsort(descending=True).tolist():
        if other < tokenizer.vocab_size and other not in special and tokenizer.decode([other]).strip().lower() != own:
            return int(other)
    return id


def salient_position(model: Transformer, trace: Trace, row: int, candidate: int, left_out: Collection[int]) -> int:
    """The position whose embedding counts most for a logit to first order: |gradient · input| of the stream into the
    first block of the last stack (Shrikumar et al. 2017, section 2). Those `left_out` are passed over."""
    hook = f"{'encoder.' if model.config.encoder else ''}blocks.0.resid_pre"
    values, slopes = differentiate(model, trace, [hook], Metric("logit", candidate), row)
    counts = (values[hook] * slopes[hook])[0].sum(-1).abs()
    counts[[pos for pos in left_out if pos < len(counts)]] = -1
    return int(counts.argmax())


@dataclass(frozen=True)
class ValueSums:
    """Sums of every patched value over the positions of one text, by hook without batch and pos, and how many those
    are."""

    source: Source
    totals: Mapping[str, Tensor]
    positions: Mapping[str, int]


@torch.no_grad()
def sum_values(checkpoint: Checkpoint, index: int) -> ValueSums:
    """Sums over one text of `samples`."""
    model = checkpoint.model
    if (known := _sums.find((model, index))) is not None:
        return known
    hooks = [name for name, hook in model.hooks.items() if is_patched(hook)]
    reading = sample_input(checkpoint, index, min(LENGTH, model.config.context), UNSEEN)
    trace = run(model, reading.read, hooks, target=reading.target)
    totals = {name: trace[name][0].float().sum(0) for name in hooks}
    sums = ValueSums(source_of(trace), totals, {name: trace[name].shape[1] for name in hooks})
    return _sums.keep((model, index), sums, sum(one.numel() * 4 for one in totals.values()))


def mean_values(checkpoint: Checkpoint, count: int = TEXTS) -> Constant:
    """The mean of every patched value over the positions of `count` texts of `samples`."""
    each = [sum_values(checkpoint, index) for index in range(count)]
    means = {
        name: torch.stack([one.totals[name] for one in each]).sum(0) / sum(one.positions[name] for one in each)
        for name in each[0].totals
    }
    return Constant(means, tuple(one.source for one in each))


@torch.no_grad()
def resample_values(checkpoint: Checkpoint, base: Trace, count: int = DRAWS) -> Resample:
    """Values of as many texts of `samples` for the positions of `base`; a text that is shorter begins again."""
    model = checkpoint.model
    hooks = [name for name, hook in model.hooks.items() if is_patched(hook)]
    size = max(read.shape[-1] for read, _ in read_by_stack(base, base).values()) if not base.pictures else LENGTH
    found = list[FromRun]()
    for index in range(count):
        reading = sample_input(checkpoint, index, min(size, model.config.context), UNSEEN)
        trace = run(model, reading.read, hooks, target=reading.target)
        partners = None
        if not base.pictures:
            read = read_by_stack(base, trace)
            partners = {side: torch.arange(own.shape[-1]) % theirs.shape[-1] for side, (own, theirs) in read.items()}
        found.append(FromRun(trace, partners))
    return Resample(tuple(found))


def source_of(trace: Trace) -> Source:
    """The run of one text as edits name it."""
    target = None if trace.target is None else trace.target[0].tolist()
    edits: list[Mapping[str, Any]] = [edit.to_dict() for edit in trace.edits]
    if trace.pictures:
        return Source(pixels=trace.ids[0].tolist(), target=target, edits=edits)
    segments = [*trace.encodings[0].segments] if trace.encodings else []
    return Source(trace.ids[0].tolist(), target, edits, segments=segments if any(segments) else None)


def is_patched(hook: HookPoint) -> bool:
    """Tells whether a value at each position by itself belongs to a site."""
    parts = {part for site in SITES.values() for part in site.parts}
    within = hook.name.partition("blocks.")[2].partition(".")[2]
    return within in parts and hook.axes[:2] == ("batch", "pos")


_sums = LruCache[ValueSums](2**26)
