"""One look at a model: what it makes of a probe. The run's process takes it, and so does who reads its snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.analysis.heads import cross_scores, head_scores, induction
from engine.analysis.recorded_patterns import patterns
from engine.checkpoints import Checkpoint
from engine.data.seeds import seed_for
from engine.generation.generate import generate
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.scoring.examples import UNASKED
from engine.tokenizers import Encoding
from engine.training.probe.frames import Frame
from engine.training.probe.question import Question

LISTED = 10  # candidates of a position
SEGMENT = 24  # tokens of the random sequence that is repeated to measure induction
SEEN = ("attn.pattern", "attn.mask", "resid_post", "mlp.post", "logits")


def record_frame(checkpoint: Checkpoint, question: Question, step: int, kept: bool = False) -> Frame:
    """Frame of what a person watches, at this step. The model must be in evaluation mode; nothing random is drawn."""
    trace, written = run_probe(checkpoint, question)
    return build_frame(trace, checkpoint, question, written, step, kept)


def run_probe(checkpoint: Checkpoint, question: Question) -> tuple[Trace, tuple[int, ...]]:
    """Runs the model on the probe; returns the trace and the ids that the model generates unaided.

    After an encoder, where no target is known, the decoder reads those ids. Where the model predicts every word of the
    target, they are the target, and nothing is generated.
    """
    model, target = checkpoint.model, question.target
    names = [name for name in model.hook_names if name.endswith(SEEN)]
    if target is None and model.config.encoder is not None and not model.config.rereads:
        written = generate_freely(checkpoint, question)
        begun = (model.config.encoder.start, *written)[: max(len(written), 1)]
        return run(model, question.read, names, target=Encoding.from_ids(begun)), written
    trace = run(model, question.read, names, target=target)
    return trace, correct_answer(trace, checkpoint, question) or generate_freely(checkpoint, question)


def correct_answer(trace: Trace, checkpoint: Checkpoint, question: Question) -> tuple[int, ...]:
    """Ids of the target up to its end, where each is the most likely token; empty otherwise."""
    answers = tuple(id for id in question.asked if id != UNASKED)
    if question.prompt is None or not answers or answers[-1] not in checkpoint.end_ids:
        return ()
    places = [place for place, id in enumerate(question.asked) if id != UNASKED]
    return answers if tuple(trace["logits"][0, places].argmax(-1).tolist()) == answers else ()


def generate_freely(checkpoint: Checkpoint, question: Question) -> tuple[int, ...]:
    """Ids that the model generates from the probe's prompt, by the most likely token each time."""
    if question.prompt is None:
        return ()
    steps = generate(checkpoint, question.prompt, question.room, greedy=True)
    return tuple(step.id for step in islice(steps, question.room))


def build_frame(
    trace: Trace, checkpoint: Checkpoint, question: Question, written: Sequence[int], step: int, kept: bool
) -> Frame:
    tensors = input_ids(trace) | attention_patterns(trace) | predictions(trace, question)
    tensors |= score_heads(trace, checkpoint)
    if question.prompt is not None:
        tensors["free.ids"] = torch.tensor(written, dtype=torch.int32)
    return Frame(step, {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, kept)


def input_ids(trace: Trace) -> dict[str, Tensor]:
    found = {} if trace.pictures else {"ids": trace.ids[0].int()}
    return found if trace.target is None else found | {"target.ids": trace.target[0].int()}


def attention_patterns(trace: Trace) -> dict[str, Tensor]:
    two = trace.target is not None
    sides = {"attn": ("decoder" if two else "", False)}
    sides |= {"encoder": ("encoder", False), "cross_attn": ("decoder", True)} if two else {}
    found = {name: patterns(trace, side, crosses) for name, (side, crosses) in sides.items()}
    return {f"patterns.{name}": to_bytes(torch.stack(one)) for name, one in found.items() if one}


def to_bytes(pattern: Tensor) -> Tensor:
    """Rounds values in [0, 1] to bytes, 0 to 255."""
    return (pattern.clamp(0, 1) * 255).round().to(torch.uint8)


def predictions(trace: Trace, question: Question) -> dict[str, Tensor]:
    """Most likely tokens or classes of each position, and the loss of the right one in nats."""
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


def score_heads(trace: Trace, checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Scores of each head on the probe, and of induction on a repeated random sequence where the model can read one."""
    if not checkpoint.config.layers:
        return {}
    found = prefix_names("", vars(head_scores(trace)))
    if trace.target is not None:
        found |= prefix_names("encoder.", vars(head_scores(trace, "encoder")))
        found |= prefix_names("cross.", {**vars(cross_scores(trace)), **alignment_scores(trace)})
    repeated = repeated_ids(checkpoint)
    return found if repeated is None else found | {"scores.induction": induction_scores(checkpoint, repeated)}


def prefix_names(side: str, scores: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"scores.{side}{name}": value.float() for name, value in scores.items()}


def alignment_scores(trace: Trace) -> dict[str, Tensor]:
    """Share of each cross-attention head on the source token at the same position, and at the same position from the
    end (layer head): heads that copy and that reverse. Empty where target and source differ in length."""
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


def induction_scores(checkpoint: Checkpoint, ids: Tensor) -> Tensor:
    """Induction score of each head on `ids` (layer head)."""
    trace = run(checkpoint.model, ids, [name for name in checkpoint.model.hook_names if name.endswith("attn.pattern")])
    return torch.stack([induction(pattern, trace.ids[0]) for pattern in patterns(trace)])


def repeated_ids(checkpoint: Checkpoint) -> Tensor | None:
    """Random segment of ordinary tokens, repeated once; the same for each vocabulary. None where the model reads no
    text from left to right."""
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
