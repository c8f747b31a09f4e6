"""Lenses that know what later layers do: the tuned lens and the Jacobian lens.

The logit lens reads a stream as if nothing came after it. The tuned lens (Belrose et al. 2023, section 3) first sends
it through an affine map of its layer, h + A h + b, learned so that what it says is what the model says in the end;
before a step is taken it is the logit lens. The Jacobian lens takes the mean, over texts and positions, of the
derivative of the last stream by that of the layer at the same position: J h in place of h, with nothing learned. A
published lens is one of either kind that others made (`published_lens.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from engine.analysis.logit_lens import Translators, check_lens, read_stream
from engine.analysis.published_lens import FOLDER, JACOBIANS, compare_translators, find_lens, read_lens
from engine.checkpoints import Checkpoint
from engine.inputs.readers import Reading
from engine.inputs.samples import samples
from engine.model.transformer import Transformer
from engine.runtime.lru_cache import LruCache
from engine.runtime.run import resume, run
from engine.runtime.shared_work import SharedWork
from engine.runtime.trace import Trace

LensKind = Literal["logit", "tuned", "Jacobian", "published"]

LR = 2e-3
CLIP = 1.0
LENGTH = 32  # tokens of a text that a lens is made of
TEXTS: dict[LensKind, int] = {"logit": 0, "tuned": 64, "Jacobian": 8, "published": 0}
PLACES = 4  # positions of a text for the Jacobian lens
HELD_OUT = 8  # texts that no lens is made of, on which each is measured
STEPS = 256
KEPT = 2**29  # bytes of lenses
TOGETHER = 64  # components of the last stream


def no_translators(model: Transformer) -> Translators:
    """The tuned lens before its first step: the logit lens."""
    layers, width = model.config.layers, model.config.d_model
    return Translators(torch.zeros(layers, width, width), torch.zeros(layers, width))


def prefix_of(model: Transformer) -> str:
    return "decoder." if model.config.encoder else ""


def tune_lens(model: Transformer, readings: Sequence[Reading], steps: int) -> Iterator[tuple[Translators, float]]:
    """After each of `steps` steps of Adam the lens so far, and KL(end || layer) in nats, the mean of all layers and
    positions; each step reads one of `readings`, in turns. Raises ValueError for a model without a lens."""
    check_lens(model.config)
    made = no_translators(model)
    learned = [made.matrix.requires_grad_(), made.bias.requires_grad_()]
    optimiser = torch.optim.Adam(learned, lr=LR)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, total_iters=steps)
    kept: dict[int, Trace] = {}
    for step in range(steps):
        at = step % len(readings)
        if at not in kept:
            reading = readings[at]
            kept[at] = run(model, reading.read, ["*resid_pre", "logits"], target=reading.target)
        with torch.enable_grad():
            loss = distance(model, kept[at], made)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(learned, CLIP)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        texts = min(step + 1, len(readings))
        yield Translators(made.matrix.detach(), made.bias.detach(), texts), float(loss.detach())


def distance(model: Transformer, trace: Trace, made: Translators) -> Tensor:
    """Mean of KL(end || layer) over layers and positions, in nats."""
    return distances(model, trace, made).mean()


def distances(model: Transformer, trace: Trace, made: Translators) -> Tensor:
    """Mean of KL(end || layer) over positions, in nats, layer."""
    end = trace["logits"][0].float().log_softmax(-1)
    found = []
    for layer in range(model.config.layers):
        said = read_stream(model, trace, layer, made=made)[0].float().log_softmax(-1)
        found.append((end.exp() * (end - said)).sum(-1).mean())
    return torch.stack(found)


def jacobian_lens(model: Transformer, readings: Iterable[Reading], places: int = PLACES) -> Iterator[Translators]:
    """After each of `readings` the mean Jacobian so far, of the stream behind the last block by that into each block,
    at `places` positions spread over the inside of each text: at the first one, where all attention is on itself, it is
    several times as large. `matrix` is J - 1 and `bias` 0. Raises ValueError for a model without a lens."""
    check_lens(model.config)
    width, layers = model.config.d_model, model.config.layers
    total, count = torch.zeros(layers, width, width), 0
    for texts, reading in enumerate(readings, 1):
        trace = run(model, reading.read, target=reading.target)
        length = trace[f"{prefix_of(model)}blocks.0.resid_pre"].shape[1]
        for pos in sorted({round(one) for one in torch.linspace(0, length - 1, places + 2)[1:-1].tolist()}):
            total += jacobian_at(model, trace, pos)
            count += 1
        yield Translators(total / count - torch.eye(width), torch.zeros(layers, width), texts, kind="Jacobian")


def jacobian_at(model: Transformer, trace: Trace, pos: int) -> Tensor:
    """d last / d stream of one position with itself, layer d_model d_model: a copy of the run for each component of
    the last stream, TOGETHER at a time."""
    encoder = model.config.encoder
    start, memory = (0, None) if encoder is None else (encoder.layers, resume(trace, encoder.layers, model).memory)
    first = trace[f"{prefix_of(model)}blocks.0.resid_pre"]
    blocks = list((model if encoder is None else model.decoder).blocks)
    streams: list[Tensor] = []
    hooks = [block.register_forward_pre_hook(lambda _block, given: streams.append(given[0])) for block in blocks]
    hooks.append(blocks[-1].register_forward_hook(lambda _block, _given, made: streams.append(made)))
    rows = []
    try:
        for part in torch.arange(model.config.d_model).split(TOGETHER):
            streams.clear()
            copies = len(part)
            beside = {"target": trace.target, "padding": trace.padding, "target_padding": trace.target_padding}
            with torch.enable_grad():
                model.forward_with_pooled(
                    trace.ids.expand(copies, *trace.ids.shape[1:]),
                    mask=trace.mask,
                    start=start,
                    resid=repeat(first, copies).requires_grad_(),
                    memory=repeat(memory, copies),
                    **{name: repeat(value, copies) for name, value in beside.items()},
                )
                *before, last = streams
                asked = last[torch.arange(copies), pos, part].sum()
                rows.append(torch.stack([one[:, pos] for one in torch.autograd.grad(asked, before)]))
    finally:
        for hook in hooks:
            hook.remove()
    return torch.cat(rows, 1)


def repeat(value: Any, copies: int) -> Any:
    return None if value is None else value.expand(copies, *value.shape[1:]).clone()


# --- of a checkpoint ---


learned = LruCache[SharedWork[Translators]](KEPT)
measured = LruCache[Tensor](2**20)
_given: WeakKeyDictionary[Transformer, Translators] = WeakKeyDictionary()


def learning_of(checkpoint: Checkpoint, kind: LensKind) -> SharedWork[Translators]:
    """The work that makes a lens of a checkpoint, of TEXTS of `samples`; that of a published one is done."""
    model, key = checkpoint.model, (checkpoint.model, kind)
    found = learned.find(key)
    if found is not None:
        return found
    readings, first = list(samples(checkpoint, TEXTS[kind], LENGTH)), no_translators(model)
    made = SharedWork(jacobian_lens(model, readings), len(readings), first)
    if kind == "published":
        made = SharedWork(iter(()), 0, find_published(checkpoint))
    elif kind == "tuned":
        made = SharedWork((lens for lens, _loss in tune_lens(model, readings, STEPS)), STEPS, first)
    return learned.keep(key, made, 2 * first.matrix.numel() * first.matrix.element_size())


def find_published(checkpoint: Checkpoint) -> Translators:
    """The lens that was given last, or else lies beside the weights. Raises ValueError where there is none, and as
    `read_lens` does."""
    if (given := _given.get(checkpoint.model)) is not None:
        return given
    place = None if checkpoint.source is None else find_lens(checkpoint.source)
    if place is None:
        raise ValueError(
            "This model has no published lens; put config.json and params.pt of the package tuned-lens into a folder "
            f"{FOLDER} beside its weights, or the file of a Jacobian lens into a folder {JACOBIANS}, or choose another."
        )
    return read_lens(place, checkpoint.model)


def give_lens(checkpoint: Checkpoint, place: Path, source: str) -> None:
    """Takes the lens at `place` for the published one of a checkpoint from now on; `source` says whence it is. Raises
    as `read_lens` does."""
    _given[checkpoint.model] = replace(read_lens(place, checkpoint.model), base=source)
    learned.drop((checkpoint.model, "published"))


def compare_published(checkpoint: Checkpoint) -> Tensor | None:
    """Cosine of the published lens with ours of its kind, layer; None until that is made."""
    published = learning_of(checkpoint, "published").results
    ours = learned.find((checkpoint.model, published.kind))
    if ours is None or ours.steps:
        return None
    return compare_translators(ours.results, published)


def measure_lens(checkpoint: Checkpoint, kind: LensKind) -> Tensor:
    """`distances` of the lens as it is by now, the mean of HELD_OUT texts that no lens is made of."""
    model, first = checkpoint.model, max(TEXTS.values())
    work = None if kind == "logit" else learning_of(checkpoint, kind)
    key = model, kind, work and (work.done, work.results.base)
    if (known := measured.find(key)) is not None:
        return known
    made = no_translators(model) if work is None else work.results
    unseen = list(samples(checkpoint, first + HELD_OUT, LENGTH))[first:]
    traces = (run(model, one.read, ["*resid_pre", "logits"], target=one.target) for one in unseen)
    with torch.no_grad():
        found = torch.stack([distances(model, trace, made) for trace in traces]).mean(0)
    return measured.keep(key, found, found.numel() * found.element_size())


def make_lens(checkpoint: Checkpoint, kind: LensKind) -> Translators | None:
    """The lens of that kind; None for the logit lens, which needs none."""
    return None if kind == "logit" else learning_of(checkpoint, kind).reach()
