"""Beam search: the most probable texts that are found by keeping a few at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from engine.checkpoints.generation_defaults import choose_setting
from engine.conversations import Conversation
from engine.generation.constraints import FORBIDDEN, constrain, require_token
from engine.generation.prompt import Prompt, Reader, Text, begin, text_of
from engine.generation.stopping import Stop, StopRules, stopping_rules

if TYPE_CHECKING:
    from engine.checkpoints import Checkpoint

EarlyStopping = bool | Literal["never"]


@dataclass(frozen=True)
class Hypothesis:
    """A text that was considered: `ids` are the tokens written, the prompt's left out.

    `log_probability` (nats) is the sum over them, and `score` that divided by their number to the power of the length
    penalty. `parent` says which of the hypotheses that the step before kept it continues; the first step's continue
    the prompt. It came up in step len(ids) - 1, the `rank`-th by log-probability (1 is the first) of the candidates.
    `stopped` is what ends it there.
    """

    ids: tuple[int, ...]
    log_probability: float
    score: float
    parent: int
    prompt: Prompt = field(repr=False)
    rank: int = 1
    stopped: Stop | None = None

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
        """Text of the step, as `Step.text` of `generate`."""
        return text_of(self.prompt.checkpoint, (*self.prompt.ids, *self.ids))


@dataclass(frozen=True)
class BeamStep:
    """Step of one token: the candidates, each list the most probable first.

    `kept` go on, `finished` ended here, `pruned` are given up. `best` are the finished of all steps so far, the
    highest score first; of these, too, only as many stay as there are `beams`.
    """

    index: int
    kept: tuple[Hypothesis, ...]
    finished: tuple[Hypothesis, ...]
    pruned: tuple[Hypothesis, ...]
    best: tuple[Hypothesis, ...]
    beams: int

    @property
    def candidates(self) -> tuple[Hypothesis, ...]:
        """All of them, the most probable first."""
        return tuple(sorted((*self.kept, *self.finished, *self.pruned), key=lambda one: one.rank))

    def margin(self, one: Hypothesis) -> float:
        """Nats by which one of the pruned is behind the last that was taken in its stead.

        One that would go on is behind the last that does. One that ends is behind the last of the first candidates, as
        many as there are beams, for only those may end.
        """
        last = self.candidates[min(self.beams, len(self.candidates)) - 1] if one.stopped else self.kept[-1]
        return last.log_probability - one.log_probability


@dataclass(frozen=True)
class BeamResult:
    """`hypotheses` are the n best, the highest score first; `steps` how they were found."""

    prompt: Prompt
    steps: tuple[BeamStep, ...]
    hypotheses: tuple[Hypothesis, ...]


@dataclass(frozen=True)
class Beam:
    """Settings of a beam search. `early_stopping` says when it may end, once as many texts as `beams` are finished.

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
    prompt: Text | Conversation | Prompt,
    beams: int | None = None,
    max_tokens: int | None = None,
    *,
    target: Text | None = None,
    length_penalty: float | None = None,
    early_stopping: EarlyStopping | None = None,
    n_best: int = 1,
    stop_at_end: bool = True,
    stop_strings: str | Sequence[str] | None = None,
) -> BeamResult:
    """The `n_best` texts found (fewer where fewer were), with the whole search.

    `prompt`, `target`, `max_tokens` and `stop_strings` are those of `generate`. A setting that is not given is what the
    checkpoint asks for, else that of `Beam`. Raises ValueError as `generate` does.
    """
    asked, usual = checkpoint.writing.beams, Beam()
    beams = choose_setting(beams, asked.num_beams, usual.beams)
    settings = Beam(
        beams,
        choose_setting(length_penalty, asked.length_penalty, usual.length_penalty),
        choose_setting(early_stopping, asked.early_stopping, usual.early_stopping),
    )
    if not 1 <= n_best <= beams:
        raise ValueError(f"n_best must lie in 1..{beams}, the number of beams, got {n_best}.")
    begun = begin(checkpoint, prompt, target)
    steps = tuple(search(stopping_rules(begun, max_tokens, stop_at_end, stop_strings), settings))
    return BeamResult(begun, steps, steps[-1].best[:n_best] if steps else ())


@torch.inference_mode()
def search(ending: StopRules, settings: Beam) -> Iterator[BeamStep]:
    """The search as it goes, a step for every token. What is unfinished at the last counts as finished."""
    prompt, room = ending.prompt, ending.room
    reader, new = Reader(prompt, room), [prompt.ids]
    kept: tuple[Hypothesis, ...] = (Hypothesis((), 0.0, 0.0, 0, prompt),)
    best: tuple[Hypothesis, ...] = ()
    for index in range(room):
        log_probabilities = constrain_rows(reader.read(new).float().log_softmax(-1), kept, ending)
        count = max(2, 1 + len(ending.ends)) * settings.beams  # so that enough go on, however many end
        candidates = continuations(kept, log_probabilities, count, settings, ending)
        step = decide(index, candidates, best, settings)
        if not step.kept and not step.best:
            require_token(log_probabilities[0], (*prompt.ids, *kept[0].ids), ending)
        yield step
        if settings.is_over(step, room):
            return
        parents = [one.parent for one in step.kept]
        if parents != list(range(len(kept))):
            reader.reorder(parents)
        kept, best = step.kept, step.best
        new = [(one.id,) for one in kept]


def constrain_rows(log_probabilities: Tensor, kept: Sequence[Hypothesis], ending: StopRules) -> Tensor:
    """hypothesis vocab, as the checkpoint changes it: what it forces and forbids, and its repetition penalty."""
    prompt, asked = ending.prompt, ending.prompt.checkpoint.writing
    penalty = choose_setting(None, asked.sampling.repetition_penalty, 1.0)
    if not asked.constraints.names and penalty == 1:
        return log_probabilities
    rows = []
    for row, one in zip(log_probabilities, kept, strict=True):
        rows.append(constrain(row, (*prompt.ids, *one.ids), ending, penalty))
    changed = torch.stack(rows)
    return changed.log_softmax(-1) if asked.beams.renormalize_logits else changed


def continuations(
    kept: Sequence[Hypothesis], log_probabilities: Tensor, count: int, settings: Beam, ending: StopRules
) -> list[Hypothesis]:
    """The `count` most probable ways to go on; `log_probabilities` is hypothesis vocab, of the next token."""
    so_far = torch.tensor([one.log_probability for one in kept], device=log_probabilities.device)
    total = (log_probabilities + so_far[:, None]).flatten()
    top = total.topk(min(count, len(total)))
    vocab, length, prompt = log_probabilities.shape[-1], len(kept[0].ids) + 1, ending.prompt
    found = []
    for rank, (value, place) in enumerate(zip(top.values.tolist(), top.indices.tolist(), strict=True), 1):
        if value == FORBIDDEN:
            break
        parent, id = divmod(place, vocab)
        ids = kept[parent].ids
        stopped = ending.check((*prompt.ids, *ids), id, len(ids))
        found.append(Hypothesis((*ids, id), value, settings.score(value, length), parent, prompt, rank, stopped))
    return found


def decide(index: int, candidates: Sequence[Hypothesis], best: Sequence[Hypothesis], settings: Beam) -> BeamStep:
    """Beams that go on, texts that are finished, and beams that are given up.

    A text counts as finished only where it is among the first, as many as there are beams.
    """
    finished = [one for one in candidates[: settings.beams] if one.stopped]
    kept = [one for one in candidates if not one.stopped][: settings.beams]
    taken = {one.rank for one in (*finished, *kept)}
    pruned = [one for one in candidates if one.rank not in taken]
    ranked = sorted((*best, *finished), key=lambda one: -one.score)[: settings.beams]
    return BeamStep(index, tuple(kept), tuple(finished), tuple(pruned), tuple(ranked), settings.beams)
