"""Beam search: the most probable texts that are found by keeping a few at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from engine.prompt import Prompt, Reader, Text, begin, text_of

if TYPE_CHECKING:
    from engine.checkpoints import Checkpoint

EarlyStopping = bool | Literal["never"]


@dataclass(frozen=True)
class Hypothesis:
    """A text that was considered: `ids` are the tokens written, the prompt's left out.

    `log_probability` (nats) is the sum over them, and `score` that divided by their number to the power of the length
    penalty. `parent` says which of the hypotheses that the step before kept it continues; the first step's continue
    the prompt. It came up in step len(ids) - 1.
    """

    ids: tuple[int, ...]
    log_probability: float
    score: float
    parent: int
    prompt: Prompt = field(repr=False)

    @property
    def id(self) -> int:
        """Its last token."""
        return self.ids[-1]

    @property
    def piece(self) -> str:
        tokenizer = self.prompt.checkpoint.tokenizer
        return f"#{self.id}" if tokenizer is None else tokenizer.piece(self.id)

    @property
    def text(self) -> str:
        """As `Step.text` of `generate`."""
        return text_of(self.prompt.checkpoint, (*self.prompt.ids, *self.ids))


@dataclass(frozen=True)
class BeamStep:
    """One token further: the candidates, each list the most probable first.

    `kept` go on, `finished` ended here, `pruned` are given up. `best` are the finished of all steps so far, the
    highest score first; of these, too, only as many stay as there are beams.
    """

    index: int
    kept: tuple[Hypothesis, ...]
    finished: tuple[Hypothesis, ...]
    pruned: tuple[Hypothesis, ...]
    best: tuple[Hypothesis, ...]


@dataclass(frozen=True)
class BeamResult:
    """`hypotheses` are the n best, the highest score first; `steps` how they were found."""

    prompt: Prompt
    steps: tuple[BeamStep, ...]
    hypotheses: tuple[Hypothesis, ...]


@dataclass(frozen=True)
class Beam:
    """How a search goes. `early_stopping` says when it may end, once as many texts as `beams` are finished.

    True: at once. False: when the best one that goes on, scored at its present length, is behind the worst of them.
    "never": the same, scored at the greatest length where the penalty favours long texts; only this is exact.
    """

    beams: int = 4
    length_penalty: float = 1.0
    early_stopping: EarlyStopping = False

    def __post_init__(self) -> None:
        if self.beams < 1:
            raise ValueError(f"beams must be at least 1, got {self.beams}.")
        if not math.isfinite(self.length_penalty):
            raise ValueError(f"the length penalty must be a finite number, got {self.length_penalty}.")
        if self.early_stopping not in (True, False, "never"):
            raise ValueError(f'early stopping must be True, False or "never", got {self.early_stopping!r}.')

    def score(self, log_probability: float, length: int) -> float:
        """Wu et al. 2016 (GNMT), section 7, with the penalty as transformers has it: length to a power."""
        return log_probability / length**self.length_penalty

    def is_over(self, step: BeamStep, room: int) -> bool:
        if not step.kept:
            return True
        if len(step.best) < self.beams:
            return False
        if self.early_stopping is True:
            return True
        favours_long = self.early_stopping == "never" and self.length_penalty > 0
        length = room if favours_long else step.index + 1
        return self.score(step.kept[0].log_probability, length) <= step.best[-1].score


def beam(
    checkpoint: Checkpoint,
    prompt: Text,
    beams: int = 4,
    max_tokens: int | None = None,
    *,
    target: Text | None = None,
    length_penalty: float = 1.0,
    early_stopping: EarlyStopping = False,
    n_best: int = 1,
    stop_at_end: bool = True,
) -> BeamResult:
    """The `n_best` texts found (fewer where fewer were), with the whole search.

    `prompt`, `target` and `max_tokens` are those of `generate`. Raises ValueError as that does.
    """
    settings = Beam(beams, length_penalty, early_stopping)
    if not 1 <= n_best <= beams:
        raise ValueError(f"n_best must lie in 1..{beams}, the number of beams, got {n_best}.")
    begun = begin(checkpoint, prompt, target)
    steps = tuple(search(begun, settings, max_tokens, stop_at_end))
    return BeamResult(begun, steps, steps[-1].best[:n_best] if steps else ())


@torch.inference_mode()
def search(
    prompt: Prompt, settings: Beam, max_tokens: int | None = None, stop_at_end: bool = True
) -> Iterator[BeamStep]:
    """The search as it goes, a step for every token. What is unfinished at the last counts as finished."""
    room = prompt.room(max_tokens)
    ends = prompt.checkpoint.end_ids if stop_at_end else ()
    reader, new = Reader(prompt, room), [prompt.ids]
    kept: tuple[Hypothesis, ...] = (Hypothesis((), 0.0, 0.0, 0, prompt),)
    best: tuple[Hypothesis, ...] = ()
    for index in range(room):
        log_probabilities = reader.read(new).float().log_softmax(-1)
        count = max(2, 1 + len(ends)) * settings.beams  # so that enough go on, however many end
        candidates = continuations(kept, log_probabilities, count, settings)
        step = decide(index, candidates, best, settings, ends, last=index == room - 1)
        yield step
        if settings.is_over(step, room):
            return
        parents = [one.parent for one in step.kept]
        if parents != list(range(len(kept))):
            reader.reorder(parents)
        kept, best = step.kept, step.best
        new = [(one.id,) for one in kept]


def continuations(
    kept: Sequence[Hypothesis], log_probabilities: Tensor, count: int, settings: Beam
) -> list[Hypothesis]:
    """The `count` most probable ways to go on; `log_probabilities` is hypothesis vocab, of the next token."""
    so_far = torch.tensor([one.log_probability for one in kept], device=log_probabilities.device)
    total = (log_probabilities + so_far[:, None]).flatten()
    top = total.topk(min(count, len(total)))
    vocab, length = log_probabilities.shape[-1], len(kept[0].ids) + 1
    found = []
    for value, place in zip(top.values.tolist(), top.indices.tolist(), strict=True):
        parent, id = divmod(place, vocab)
        one = kept[parent]
        found.append(Hypothesis((*one.ids, id), value, settings.score(value, length), parent, one.prompt))
    return found


def decide(
    index: int,
    candidates: Sequence[Hypothesis],
    best: Sequence[Hypothesis],
    settings: Beam,
    ends: Sequence[int],
    last: bool,
) -> BeamStep:
    """What goes on, what is finished, and what is given up.

    A text counts as finished only where it is among the first, as many as there are beams.
    """
    finished = [one for one in candidates[: settings.beams] if last or one.id in ends]
    kept = [one for one in candidates if not last and one.id not in ends][: settings.beams]
    taken = {one.ids for one in (*finished, *kept)}
    pruned = [one for one in candidates if one.ids not in taken]
    ranked = sorted((*best, *finished), key=lambda one: -one.score)[: settings.beams]
    return BeamStep(index, tuple(kept), tuple(finished), tuple(pruned), tuple(ranked))
