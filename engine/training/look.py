"""One look at a model: what it makes of a probe. The run's process takes it, and so does who reads its snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.analysis.heads import cross_scores, head_scores, induction
from engine.analysis.recorded import patterns
from engine.checkpoints import Checkpoint
from engine.data.seeds import seed_for
from engine.generation.generate import generate
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers import Encoding
from engine.training.frames import Frame
from engine.training.objectives import UNASKED
from engine.training.question import Question

LISTED = 10  # candidates of a position
SEGMENT = 24  # tokens of the random sequence that is repeated to measure induction
SEEN = ("attn.pattern", "attn.mask", "resid_post", "mlp.post", "logits")


def look(checkpoint: Checkpoint, question: Question, step: int, kept: bool = False) -> Frame:
    """The model must be in evaluation; it is left as it was, and nothing random is drawn."""
    trace, written = seen(checkpoint, question)
    return frame(trace, checkpoint, question, written, step, kept)


def seen(checkpoint: Checkpoint, question: Question) -> tuple[Trace, tuple[int, ...]]:
    """The run that a frame is made of, and what the model writes by itself. Behind an encoder, where no target is
    known, that is also what it reads. Where it knows every word of a target, it writes that, and need not be asked."""
    model, target = checkpoint.model, question.target
    names = [name for name in model.hook_names if name.endswith(SEEN)]
    if target is None and model.config.encoder is not None and not model.config.rereads:
        written = free_running(checkpoint, question)
        begun = (model.config.encoder.start, *written)[: max(len(written), 1)]
        return run(model, question.read, names, target=Encoding.from_ids(begun)), written
    trace = run(model, question.read, names, target=target)
    return trace, known(trace, checkpoint, question) or free_running(checkpoint, question)


def known(trace: Trace, checkpoint: Checkpoint, question: Question) -> tuple[int, ...]:
    """The right answers up to their end, where each is the most likely token; empty otherwise."""
    answers = tuple(id for id in question.asked if id != UNASKED)
    if question.prompt is None or not answers or answers[-1] not in checkpoint.end_ids:
        return ()
    places = [place for place, id in enumerate(question.asked) if id != UNASKED]
    return answers if tuple(trace["logits"][0, places].argmax(-1).tolist()) == answers else ()


def free_running(checkpoint: Checkpoint, question: Question) -> tuple[int, ...]:
    """What the model writes by itself, each word read again as it is."""
    if question.prompt is None:
        return ()
    steps = generate(checkpoint, question.prompt, question.room, greedy=True)
    return tuple(step.id for step in islice(steps, question.room))


def frame(
    trace: Trace, checkpoint: Checkpoint, question: Question, written: Sequence[int], step: int, kept: bool
) -> Frame:
    tensors = {**read(trace), **attention(trace), **predicted(trace, question), **scored(trace, checkpoint)}
    if question.prompt is not None:
        if not written and checkpoint.config.encoder is None:  # the prompt fills the context: one word is all there is
            written = [int(trace["logits"][0, len(question.prompt) - 1].argmax())]
        tensors["free.ids"] = torch.tensor(written, dtype=torch.int32)
    return Frame(step, {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, kept)


def read(trace: Trace) -> dict[str, Tensor]:
    found = {} if trace.pictures else {"ids": trace.ids[0].int()}
    return found if trace.target is None else found | {"target.ids": trace.target[0].int()}


def attention(trace: Trace) -> dict[str, Tensor]:
    two = trace.target is not None
    sides = {"attn": ("decoder" if two else "", False)}
    sides |= {"encoder": ("encoder", False), "cross_attn": ("decoder", True)} if two else {}
    found = {name: patterns(trace, side, crosses) for name, (side, crosses) in sides.items()}
    return {f"patterns.{name}": bytes_of(torch.stack(one)) for name, one in found.items() if one}


def bytes_of(pattern: Tensor) -> Tensor:
    """[0, 1] as 0 to 255."""
    return (pattern.clamp(0, 1) * 255).round().to(torch.uint8)


def predicted(trace: Trace, question: Question) -> dict[str, Tensor]:
    """The most likely tokens or classes, and what the right one costs."""
    if "logits" not in trace:
        return {}
    logits = torch.atleast_2d(trace["logits"][0].float().cpu())  # pos vocab, or one row of classes
    right = torch.full((len(logits),), UNASKED)
    right[: len(question.asked)] = torch.tensor(question.asked, dtype=torch.long)[: len(logits)]
    loss = cross_entropy(logits, right, ignore_index=UNASKED, reduction="none")
    chances = logits.softmax(-1)
    best = chances.topk(min(LISTED, chances.shape[-1]))
    found = {
        "top.ids": best.indices.int(),
        "top.p": best.values,
        "asked": right.int(),
        "loss": loss.masked_fill(right == UNASKED, torch.nan),
    }
    return found | ({"p": chances[0]} if trace["logits"].dim() == 2 else {})


def scored(trace: Trace, checkpoint: Checkpoint) -> dict[str, Tensor]:
    """What each head does on the probe; induction on a sequence of its own where the model can read one."""
    if not checkpoint.config.layers:
        return {}
    found = named("", vars(head_scores(trace)))
    if trace.target is not None:
        found |= named("encoder.", vars(head_scores(trace, "encoder")))
        found |= named("cross.", {**vars(cross_scores(trace)), **in_order(trace)})
    repeated = repeated_ids(checkpoint)
    return found if repeated is None else found | {"scores.induction": inducing(checkpoint, repeated)}


def named(side: str, scores: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"scores.{side}{name}": value.float() for name, value in scores.items()}


def in_order(trace: Trace) -> dict[str, Tensor]:
    """How much of a head's attention is on the source's token at the same place, and at the same place from its end:
    what copies and what reverses. Of the positions that predict the words of a target as long as its source."""
    assert trace.target is not None
    cross = torch.stack(patterns(trace, "decoder", crosses=True))  # layer head pos key
    words = cross.shape[-1]
    if cross.shape[-2] not in (words, words + 1):  # the end is predicted behind the last word
        return {}
    square = cross[..., :words, :]
    return {
        "aligned": square.diagonal(0, -2, -1).mean(-1),
        "mirrored": square.flip(-1).diagonal(0, -2, -1).mean(-1),
    }


def inducing(checkpoint: Checkpoint, ids: Tensor) -> Tensor:
    """layer head: the induction score on `ids`."""
    trace = run(checkpoint.model, ids, [name for name in checkpoint.model.hook_names if name.endswith("attn.pattern")])
    return torch.stack([induction(pattern, trace.ids[0]) for pattern in patterns(trace)])


def repeated_ids(checkpoint: Checkpoint) -> Tensor | None:
    """A random segment twice, of ordinary tokens, always the same for a vocabulary. None where the model reads no text
    from left to right."""
    config, tokenizer = checkpoint.config, checkpoint.tokenizer
    if tokenizer is None or config.encoder is not None or config.attention.mask != "causal":
        return None
    special = set(tokenizer.special_tokens.values())
    ordinary = torch.tensor([id for id in range(config.vocab_size) if id not in special])
    length = min(SEGMENT, config.context // 2, len(ordinary))
    if length < 2:
        return None
    chance = torch.Generator().manual_seed(seed_for(0, "induction", config.vocab_size))
    segment = ordinary[torch.randperm(len(ordinary), generator=chance)[:length]]
    return segment.repeat(2)
