"""Which answer is right, computed from what each learner's own page reads: two neighbours may have different ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.analysis.heads import head_scores
from engine.analysis.surprise import surprise
from engine.analysis.tiles import thumbnails
from engine.checkpoints import Checkpoint
from engine.classes.steps import SCALE, Kind, Step
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding

OFFERED = 4  # tokens to choose from
PICTURE = 24  # cells a side of what was handed in, at most
TOLERANCES: dict[Kind, float] = {"share": 0.05, "loss": 0.25}  # how far an estimate may be: of 1, in nats a token


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
    is the attention that was handed in (255 = 1.0). `elsewhere` says what the answer is about in place of the step's
    own, so that it does not count."""

    said: str
    truth: str = ""
    right: bool | None = None
    score: float | None = None
    number: float | None = None
    true: float | None = None
    picture: Sequence[Sequence[int]] = ()
    elsewhere: str = ""


def why_unsuited(kind: Kind, checkpoint: Checkpoint) -> str:
    """Says why a model cannot be asked about so; "" where it can."""
    config = checkpoint.model.config
    if kind in ("next", "share", "loss", "say"):
        if checkpoint.tokenizer is None or not config.generates or config.encoder or config.infill:
            return "this question is about a model that goes on writing a text; choose one, such as everyday."
    if kind == "head" and (config.encoder or config.attention.heads * config.layers < 2):
        return "this question is about a model of one stack with several heads; choose one, such as everyday."
    return ""


def next_tokens(given: Given) -> tuple[torch.Tensor, list[int]]:
    """Probabilities of what comes next (vocab), and the OFFERED likeliest, in an order that gives nothing away."""
    p = given.trace["logits"][0, -1].float().softmax(-1)
    best = p.topk(min(OFFERED, len(p))).indices.tolist()
    return p, sorted(best, key=lambda id: name(given, id))


def name(given: Given, id: int) -> str:
    assert given.checkpoint.tokenizer is not None
    return given.checkpoint.tokenizer.piece(id)


def options(step: Step, given: Given) -> Sequence[Any]:
    """What there is to choose from: ids of tokens, or layers and heads; empty for what is typed."""
    if step.kind == "next":
        return next_tokens(given)[1]
    if step.kind == "head":
        config = given.checkpoint.model.config
        return [(layer, head) for layer in range(config.layers) for head in range(config.attention.heads)]
    return ()


def option_name(step: Step, given: Given, option: Any) -> str:
    if step.kind == "next":
        return name(given, option)
    return f"block {option[0] + 1}, head {option[1] + 1}"


@torch.no_grad()
def grade(step: Step, given: Given, said: Any) -> Grade:
    """Grades an answer about a run: an id, a pair of layer and head, a number, or for "say" the text that is read.

    Raises ValueError, with a sentence, where the model cannot be asked so, or the answer is none of the options.
    """
    if why := why_unsuited(step.kind, given.checkpoint):
        raise ValueError(why)
    match step.kind:
        case "next":
            p, offered = next_tokens(given)
            best = int(p.argmax())
            if said not in offered:
                raise ValueError("choose one of the tokens that are offered.")
            truth = f"“{name(given, best)}” ({float(p[best]):.0%})"
            return Grade(name(given, said), truth, said == best)
        case "share":
            p, _offered = next_tokens(given)
            if not 0 <= float(said) <= 1:
                raise ValueError(f"a probability is from 0 to 1, got {float(said):g}; type it so, 0.5 for one half.")
            return estimate(step, float(said), float(p.max()), f"{float(said):.0%}", f"{float(p.max()):.1%}")
        case "loss":
            found = surprise(given.checkpoint, given.read.ids).mean
            return estimate(step, float(said), found, f"{float(said):.2f}", f"{found:.3f} nats a token")
        case "head":
            return grade_head(step, given, said)
        case "say":
            likely = probability_of(given, step.wanted)
            text = given.checkpoint.tokenizer.decode(list(given.read.ids), special=False)  # type: ignore[union-attr]
            return Grade(text, f"p of “{step.wanted}”: {likely:.1%}", score=likely)
        case _:
            raise ValueError(f"the question {step.kind!r} is about no run.")


def grade_alone(step: Step, said: Any) -> Grade:
    """Grades an answer that no run decides: words, the number of an option, a number of the scale.

    Raises ValueError, with a sentence, for what is no answer."""
    match step.kind:
        case "choice":
            if said not in range(len(step.options)):
                raise ValueError("choose one of the options.")
            truth = step.options[step.right] if step.right >= 0 else ""
            return Grade(step.options[said], truth, said == step.right if truth else None)
        case "scale":
            if said not in SCALE:
                raise ValueError(f"choose a number from {SCALE[0]} to {SCALE[-1]}.")
            return Grade(str(said), number=float(said))
        case _:
            return Grade(str(said))


def estimate(step: Step, said: float, true: float, shown: str, truth: str) -> Grade:
    return Grade(shown, truth, abs(said - true) <= TOLERANCES[step.kind], number=said, true=true)


def grade_head(step: Step, given: Given, said: tuple[int, int]) -> Grade:
    found = getattr(head_scores(given.trace), step.pattern).float()
    if bool(found.isnan().all()):
        raise ValueError("in this text no head can look so; write a longer one, or one in which a word comes twice.")
    best = found.nan_to_num(-1).argmax()
    layer, head = divmod(int(best), found.shape[1])
    if tuple(said) not in options(step, given):
        raise ValueError("choose a block and a head of this model.")
    truth = f"block {layer + 1}, head {head + 1} ({float(found[layer, head]):.0%})"
    right = bool(found[tuple(said)] == found[layer, head])
    score, picture = max(float(found[tuple(said)]), 0.0), small_pattern(given.trace, *said)
    return Grade(option_name(step, given, tuple(said)), truth, right, score, picture=picture)


def grade_page(given: Given, layer: int | None, head: int | None) -> Grade:
    """Text of a page and what comes next, with the head that it looks at, where it looks at one."""
    checkpoint = given.checkpoint
    said = "".join(given.read.pieces)
    if checkpoint.tokenizer is not None:
        said = checkpoint.tokenizer.decode(list(given.read.ids), special=False)
    if not why_unsuited("next", checkpoint):
        p, _offered = next_tokens(given)
        said += f" → {name(given, int(p.argmax()))} {float(p.max()):.0%}"
    return Grade(said, picture=small_pattern(given.trace, layer, head))


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
