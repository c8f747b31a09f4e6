"""Text, one token at a time: a generator of Steps over a KV cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from engine.checkpoints.generation_defaults import choose_setting
from engine.conversations import Conversation
from engine.edits import Edit
from engine.generation import contrastive
from engine.generation.constraints import constrain, require_token
from engine.generation.contrastive import Candidate, ContrastiveReader
from engine.generation.edited_reader import EditedReader, fit_edits
from engine.generation.prompt import Prompt, Reader, Text, begin, text_of
from engine.generation.sampling import Distribution, Sampling, distribution, draw, penalize, rank, skip_draws
from engine.generation.stopping import Stop, StopRules, stopping_rules

if TYPE_CHECKING:
    from engine.checkpoints import Checkpoint


@dataclass(frozen=True)
class Step:
    """New token: its `id`, the `logits` (vocab) it was chosen from, and the ids before it.

    Behind an encoder, `source` is what that read, and `before` what the decoder did: its start token, then the target
    so far. `run(model, before, edits=edits)`, there `run(model, source, target=before, edits=edits)`, shows how the
    token came about: `edits` are those of the generation, as they apply to a text that has grown beyond the prompt.
    Two kinds of rotary scaling (dynamic and longrope) turn by the length that is read. Beyond the trained one, `logits`
    are as transformers computes them, from keys that stay in the cache as they were turned when they were read (but for
    a Phi-3, of which it then reads the whole text anew); such a `run` turns all of them for the whole length, and gives
    other logits.
    `candidates` are those of contrastive search, the chosen one first. With another id, `replace(step, id=...)`, it is
    the step at which a branch begins.
    """

    index: int
    id: int
    logits: Tensor
    sampling: Sampling
    before: tuple[int, ...]
    stopping: StopRules
    edits: tuple[Edit, ...] = ()
    candidates: tuple[Candidate, ...] = ()

    @property
    def checkpoint(self) -> Checkpoint:
        return self.stopping.prompt.checkpoint

    @property
    def source(self) -> tuple[int, ...] | Tensor:
        prompt = self.stopping.prompt
        return prompt.source if prompt.sound is None else prompt.sound

    @cached_property
    def distribution(self) -> Distribution:
        penalty = self.sampling.repetition_penalty
        changed = constrain(self.logits, self.before, self.stopping, penalty)
        return distribution(self.logits, self.sampling, self.before, changed)

    @property
    def probability(self) -> float:
        """Probability of this token in the distribution it was drawn from."""
        return float(self.distribution.probabilities[self.id])

    @property
    def rank(self) -> int:
        """1 where no token has a greater logit."""
        return rank(self.logits, self.id)

    @cached_property
    def stopped(self) -> Stop | None:
        """Reason why the text ends with this token."""
        return self.stopping.check(self.before, self.id, self.index)

    @property
    def piece(self) -> str:
        tokenizer = self.checkpoint.tokenizer
        return f"#{self.id}" if tokenizer is None else tokenizer.piece(self.id)

    @property
    def text(self) -> str:
        """Everything so far, prompt included.

        Behind an encoder: the target so far, without special tokens. With a gap: the text, the gap filled by what was
        written so far. Of a picture: its pixels so far.
        """
        return text_of(self.checkpoint, (*self.before, self.id))


@torch.inference_mode()
def generate(
    checkpoint: Checkpoint,
    prompt: Text | Conversation | Prompt,
    max_tokens: int | None = None,
    *,
    target: Text | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    typical_p: float | None = None,
    repetition_penalty: float | None = None,
    penalty_alpha: float = 0.0,
    greedy: bool | None = None,
    seed: int = 0,
    stop_at_end: bool = True,
    stop_strings: str | Sequence[str] | None = None,
    begun: Sequence[int] = (),
    edits: Sequence[Edit] = (),
) -> Iterator[Step]:
    """Up to `max_tokens` Steps (None: as many as the checkpoint asks for, else 50, or the rest of a picture), ending
    early at one of the checkpoint's end tokens, where one of `stop_strings` was written, or when the model's context is
    full; the last says which.

    A setting that is not given is what the checkpoint asks for (`checkpoint.writing`), else temperature 1 without cuts
    or penalties; `greedy` is False where the checkpoint does not say, or where a setting of sampling is given. What it
    forces and forbids holds in any case.

    `prompt` is the text to continue. For an encoder-decoder it is the source, and `target` may begin what is written.
    For one that hears it is a sound, or its frames, 1 mel frame, and without a `target` the first tokens say language
    and task as the checkpoint asks. For a model that fills gaps it is a text with a gap mark in it. For a model of
    pictures it is the first pixels, row by row, or none. Start tokens are added where they are missing. Of a
    conversation the next turn is written, or the assistant's last one continued, up to the token with which the model's
    chat template ends a turn.

    `begun` are the first of the tokens to write, which are not yielded again: from there it goes on as it would had
    they been drawn, with the random numbers of the steps that follow (and logits equal to rounding, for they are read
    at once). So a branch is `begun` with its last token changed. Nothing follows where that one ends the text.

    With `penalty_alpha`, 0.6 say, and `top_k`, 4 say, it is contrastive search (Su et al. 2022).

    `edits` hold for what is written too, except where they name positions, which are the prompt's, or have its size (a
    drawn mask or pattern, values of another run): tokens behind it are then read as the model reads them. Raises
    ValueError for a model that writes no text, a prompt it cannot read or a setting out of range.
    """
    given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "typical_p": typical_p}
    sampling = settings_of(checkpoint, given, repetition_penalty, greedy, penalty_alpha)
    contrastive.check_settings(penalty_alpha, sampling)
    start = begin(checkpoint, prompt, target)
    ending = stopping_rules(start, max_tokens, stop_at_end, stop_strings)
    yield from steps(ending, sampling, seed, tuple(begun), fit_edits(start, edits), penalty_alpha)


def settings_of(
    checkpoint: Checkpoint,
    given: Mapping[str, float | None],
    repetition_penalty: float | None,
    greedy: bool | None,
    alpha: float,
) -> Sampling:
    """Sampling with what is `given`, and the checkpoint's own settings for the rest."""
    asked, usual = checkpoint.writing.sampling, Sampling()
    said = {name: value for name, value in given.items() if value is not None}
    greedy = asked.do_sample is False and not said if greedy is None else greedy
    penalty = choose_setting(repetition_penalty, asked.repetition_penalty, usual.repetition_penalty)
    if alpha or greedy:  # what is drawn from has no part in it
        own: dict[str, Any] = said if alpha else {**said, "temperature": 0.0}
        return replace(usual, **own, repetition_penalty=penalty)
    drawn = {name: choose_setting(value, getattr(asked, name), getattr(usual, name)) for name, value in given.items()}
    return Sampling(**drawn, repetition_penalty=penalty)


def steps(
    ending: StopRules,
    sampling: Sampling,
    seed: int = 0,
    begun: tuple[int, ...] = (),
    edits: tuple[Edit, ...] = (),
    alpha: float = 0.0,
) -> Iterator[Step]:
    prompt = ending.prompt
    if alpha:
        ending = contrastive.readable(ending, len(begun))
    if is_over(ending, begun):
        return
    reader = reader_of(ending, edits, alpha)
    generator = torch.Generator().manual_seed(seed)
    ids = new = prompt.ids + begun
    for index in range(len(begun), ending.room):
        logits = reader.read([new])[0]
        if new is ids and sampling.temperature > 0:
            skip_draws(len(begun), logits.cpu(), generator)
        changed = constrain(logits, ids, ending, sampling.repetition_penalty)
        require_token(changed, ids, ending)
        if isinstance(reader, ContrastiveReader):
            candidates = reader.choose(distribution(logits, sampling, ids, changed).shares, sampling.top_k)
            token = candidates[0].id
        else:
            candidates, token = (), choose(logits, sampling, generator, ids, changed)
        step = Step(index, token, logits, sampling, ids, ending, edits, candidates)
        yield step
        if step.stopped is not None:
            return
        new = (token,)
        ids += new


def is_over(ending: StopRules, begun: tuple[int, ...]) -> bool:
    """True if there is no room, or what was `begun` has ended. Raises ValueError for ids that no text has."""
    if len(begun) >= ending.room:
        return True
    prompt = ending.prompt
    if not begun:
        return False
    prompt.checkpoint.model.check_tokens(torch.tensor([[*prompt.ids, *begun]]))
    return ending.check((*prompt.ids, *begun[:-1]), begun[-1], len(begun) - 1) is not None


def reader_of(ending: StopRules, edits: tuple[Edit, ...], alpha: float) -> Reader | EditedReader | ContrastiveReader:
    if alpha:
        return ContrastiveReader(ending.prompt, ending.room, edits, alpha)
    return EditedReader(ending.prompt, ending.room, edits) if edits else Reader(ending.prompt, ending.room)


def choose(
    logits: Tensor,
    sampling: Sampling,
    generator: torch.Generator,
    before: Sequence[int] = (),
    constrained: Tensor | None = None,
) -> int:
    if sampling.temperature == 0:
        changed = penalize(logits, sampling.repetition_penalty, before) if constrained is None else constrained
        return int(changed.argmax())
    return draw(distribution(logits, sampling, before, constrained).probabilities.cpu(), generator)
