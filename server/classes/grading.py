"""Which answer is right, computed from what each learner's own page reads: two neighbours may have different ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from engine.analysis.heads import head_scores
from engine.analysis.tiles import thumbnails
from engine.checkpoints import Checkpoint
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from server.classes.steps import Pattern

OFFERED = 4  # tokens to choose from
PICTURE = 24  # cells a side of what was handed in, at most


@dataclass(frozen=True)
class Given:
    """What a learner's page shows: a model and its run."""

    checkpoint: Checkpoint
    read: Encoding
    trace: Trace


@dataclass(frozen=True)
class Grade:
    """`said` and `truth` as they are shown; `right` is None where nothing is, `score` is 0 to 1, or nats less than none
    of a run, and None where nothing is scored. `number` is an estimate, `true` what it estimates. `picture`, query key,
    is the attention that was handed in (255 = 1.0); `parts` are those that were named, and whether each is right.
    `elsewhere` says what the answer is about in place of the step's own, so that it does not count."""

    said: str
    truth: str = ""
    right: bool | None = None
    score: float | None = None
    number: float | None = None
    true: float | None = None
    picture: Sequence[Sequence[int]] = ()
    parts: Mapping[str, bool] = field(default_factory=dict)
    elsewhere: str = ""


def why_not_writing(checkpoint: Checkpoint) -> str:
    """Says why a model cannot be asked what comes next; "" where it can."""
    config = checkpoint.model.config
    if checkpoint.tokenizer is None or not config.generates or config.encoder or config.infill:
        return "this question is about a model that goes on writing a text; choose one, such as everyday."
    return ""


def next_tokens(given: Given) -> tuple[torch.Tensor, list[int]]:
    """Probabilities of what comes next (vocab), and the OFFERED likeliest, in an order that gives nothing away."""
    p = given.trace["logits"][0, -1].float().softmax(-1)
    best = p.topk(min(OFFERED, len(p))).indices.tolist()
    return p, sorted(best, key=lambda id: name(given, id))


def name(given: Given, id: int) -> str:
    assert given.checkpoint.tokenizer is not None
    return given.checkpoint.tokenizer.piece(id)


@torch.no_grad()
def grade_next(given: Given, said: Any) -> Grade:
    """Grades the id of a token. Raises ValueError for one that is not offered."""
    p, offered = next_tokens(given)
    best = int(p.argmax())
    if said not in offered:
        raise ValueError("choose one of the tokens that are offered.")
    return Grade(name(given, said), f"“{name(given, best)}” ({float(p[best]):.0%})", said == best)


def heads(given: Given) -> list[tuple[int, int]]:
    """Layer and head of each of a model of one stack."""
    config = given.checkpoint.model.config
    return [(layer, head) for layer in range(config.layers) for head in range(config.attention.heads)]


def head_name(place: tuple[int, int]) -> str:
    return f"block {place[0] + 1}, head {place[1] + 1}"


@torch.no_grad()
def grade_head(given: Given, pattern: Pattern, said: tuple[int, int]) -> Grade:
    """Grades the layer and head that are said to look most so. Raises ValueError, with a sentence, where none can."""
    found = getattr(head_scores(given.trace), pattern).float()
    if bool(found.isnan().all()):
        raise ValueError("in this text no head can look so; write a longer one, or one in which a word comes twice.")
    best = found.nan_to_num(-1).argmax()
    layer, head = divmod(int(best), found.shape[1])
    if said not in heads(given):
        raise ValueError("choose a block and a head of this model.")
    truth = f"{head_name((layer, head))} ({float(found[layer, head]):.0%})"
    score, picture = max(float(found[said]), 0.0), small_pattern(given.trace, *said)
    return Grade(head_name(said), truth, bool(found[said] == found[layer, head]), score, picture=picture)


def estimate(said: float, true: float, tolerance: float, shown: str, truth: str) -> Grade:
    return Grade(shown, truth, abs(said - true) <= tolerance, number=said, true=true)


def grade_page(given: Given, looked: Mapping[str, str]) -> Grade:
    """Text of a page and what comes next, with the layer and head that it looks at, where it looks at some."""
    checkpoint = given.checkpoint
    said = "".join(given.read.pieces)
    if checkpoint.tokenizer is not None:
        said = checkpoint.tokenizer.decode(list(given.read.ids), special=False)
    if not why_not_writing(checkpoint):
        p, _offered = next_tokens(given)
        said += f" → {name(given, int(p.argmax()))} {float(p.max()):.0%}"
    place = (read_index(looked.get(name, "")) for name in ("layer", "head"))
    return Grade(said, picture=small_pattern(given.trace, *place))


def read_index(said: str) -> int | None:
    return int(said) if said.isascii() and said.isdigit() and len(said) < 4 else None


def small_pattern(trace: Trace, layer: int | None = None, head: int | None = None) -> list[list[int]]:
    """Attention of a head, each cell the largest of its square, so that it has PICTURE cells a side at most. Of no
    layer, and of one that is not there, it is the last; of no head the mean over all."""
    hooks = [hook for hook in trace if hook.endswith(".attn.pattern")]
    if not hooks:
        return []
    stack = hooks[-1].rpartition("blocks.")[0]
    named = f"{stack}blocks.{layer}.attn.pattern"
    pattern = trace[named if named in hooks else hooks[-1]][0].float()
    shown = pattern.mean(0) if head is None or head >= len(pattern) else pattern[head]
    small: list[list[int]] = thumbnails(shown[None], PICTURE)[0].tolist()
    return small


def probability_of(given: Given, wanted: str) -> float:
    """Probability that a word comes next, behind a space or not: the product over its tokens, however it is cut.

    Raises ValueError for a word that the model cannot write.
    """
    assert given.checkpoint.tokenizer is not None
    size = given.checkpoint.model.config.vocab_size
    cuts = {given.checkpoint.tokenizer.encode(text, special=False).ids for text in (wanted, f" {wanted.strip()}")}
    cuts = {cut for cut in cuts if cut and max(cut) < size and given.checkpoint.tokenizer.unknown_id not in cut}
    if not cuts:
        raise ValueError(f"this model has no tokens for {wanted[:20]!r}; ask for another word.")
    return sum(probability_of_cut(given, cut) for cut in cuts)


def probability_of_cut(given: Given, ids: tuple[int, ...]) -> float:
    """Probability that these tokens come next."""
    trace, read = given.trace, given.read.ids
    if len(ids) > 1:
        whole = Encoding.from_ids((*read, *ids[:-1]))
        trace = run(given.checkpoint.model, whole, "logits", given.trace.edits)
    p = trace["logits"][0, len(read) - 1 :].double().softmax(-1)
    return float(p[range(len(ids)), list(ids)].prod())
