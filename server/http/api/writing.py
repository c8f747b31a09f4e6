"""What a model writes behind a prompt, in parts that are text: cut at a stop string, never within a character."""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from engine import run
from engine.checkpoints import Checkpoint
from engine.edits import Edit
from engine.generation.generate import Step


@dataclass(frozen=True)
class Score:
    """A token as the `data` of its text, its natural log-probability in the model's own distribution (None: nothing
    stands before it), the most probable ones at its place, and where it begins in the reply's text, in characters, and
    in what was written, in bytes."""

    data: bytes
    logprob: float | None
    best: tuple[tuple[bytes, float], ...]
    offset: int
    start: int = 0


@dataclass(frozen=True)
class Part:
    """`finish` is there with the last part: "stop" at an end token or a stop string, else "length"."""

    text: str
    scores: list[Score] = field(default_factory=list)
    finish: str | None = None
    tokens: int = 0  # written so far


def spell(checkpoint: Checkpoint, before: int | None, id: int) -> bytes:
    """What a token adds to a text that ends with the token `before`."""
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        return f"{id}".encode() if before is None else f" {id}".encode()
    if before is None:
        return tokenizer.to_bytes((id,))
    both, first = tokenizer.to_bytes((before, id)), tokenizer.to_bytes((before,))
    return both.removeprefix(first) if both.startswith(first) else tokenizer.to_bytes((id,))


def score(logits: Tensor, id: int, top: int, checkpoint: Checkpoint, before: int, **place: Any) -> Score:
    """`logits` (vocab) are those from which `id` followed, behind the token `before`."""
    logs = logits.log_softmax(-1)
    most = logs.topk(min(top, len(logs)))
    named = zip(most.indices.tolist(), most.values.tolist(), strict=True)
    best = tuple((spell(checkpoint, before, one), log) for one, log in named)
    return Score(spell(checkpoint, before, id), float(logs[id]), best, **place)


def write(steps: Iterator[Step], top: int | None, before: str = "") -> Iterator[Part]:
    """Parts of a text that grows, the last with a `finish`; with `top`, its tokens have scores, and so many of the most
    probable ones beside each. `before` is what of the reply's text stands before."""
    data, sent, count, finish = b"", 0, 0, "length"
    waiting = list[Score]()
    cut: int | None = None
    for count, step in enumerate(steps, 1):
        stop, checkpoint, last = step.stopped, step.checkpoint, step.before[-1]
        if stop is not None and stop.kind == "end":
            finish = "stop"
            break
        more = spell(checkpoint, last, step.id)
        if top is not None:
            offset = len(before) + len(data.decode("utf-8", "ignore"))
            waiting.append(score(step.logits, step.id, top, checkpoint, last, offset=offset, start=len(data)))
        data += more
        if stop is not None and stop.kind == "string":
            places = [data.find(one.encode()) for one in step.stopping.strings]
            cut = max(min((place for place in places if place >= 0), default=0), sent)  # 0: it began in the prompt
            finish = "stop"
            break
        text, read = utf_8_decode(data[sent : len(data) - count_held(data, step.stopping.strings)], "replace", False)
        if text:
            sent += read
            yield Part(text, take_before(waiting, sent), None, count)
    rest = data[sent:cut].decode("utf-8", "replace")
    yield Part(rest, waiting if cut is None else take_before(waiting, cut), finish, count)


def take_before(waiting: list[Score], end: int) -> list[Score]:
    """Takes the scores of tokens that begin before `end`."""
    taken = [one for one in waiting if one.start < end]
    del waiting[: len(taken)]
    return taken


def count_held(data: bytes, stops: Sequence[str]) -> int:
    """Bytes at the end with which a stop string may have begun."""
    begun = ((one.encode(), size) for one in stops for size in range(1, len(one.encode())))
    return max((size for one, size in begun if data.endswith(one[:size])), default=0)


@torch.inference_mode()
def repeat(checkpoint: Checkpoint, ids: Sequence[int], edits: Sequence[Edit], top: int | None) -> Part:
    """The prompt as the first part of a reply."""
    spelt = [spell(checkpoint, before, id) for before, id in zip((None, *ids), ids, strict=False)]
    text, scores = b"", list[Score]()
    logits = None if top is None else run(checkpoint.model, list(ids), "logits", edits)["logits"][0]
    for at, (id, data) in enumerate(zip(ids, spelt, strict=True)):
        offset = len(text.decode("utf-8", "ignore"))
        if top is not None and logits is not None:
            first = Score(data, None, (), offset)
            scores.append(score(logits[at - 1], id, top, checkpoint, ids[at - 1], offset=offset) if at else first)
        text += data
    return Part(text.decode("utf-8", "replace"), scores)
