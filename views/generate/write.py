"""A text that is written on: its next tokens, the step at which each was chosen, and branches that are put into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from engine.generation.generate import Step, is_over
from engine.generation.sampling import Sampling
from engine.generation.stopping import Stop, stopping_rules
from views.core.payload import pack
from views.core.questions import UNKNOWN
from views.core.table_files import Table
from views.generate.session import MOST, GenerationContext, Settings
from views.generate.steps import BITS, CUTS, STAGES, step_arrays, steps_payload, stop_header
from views.generate.streaming import pace_parts


@dataclass(frozen=True)
class TokenBatch:
    """Some tokens after `before` of them, the seconds the engine took for all, and what ended the text, if it has."""

    before: int
    steps: list[Step]
    seconds: float
    stop: Stop | None


def write_on(
    writing: GenerationContext, settings: Settings, begun: tuple[int, ...], goal: int, shared: bool
) -> Iterator[bytes]:
    """Parts of what is written after `begun` until the text has `goal` tokens. Raises ValueError with a sentence."""
    if not 0 < goal <= writing.prompt.tokens_left + MOST:
        raise ValueError(UNKNOWN)
    for found in write_parts(writing, settings, begun, goal, shared):
        yield written_payload(writing, found)


def write_parts(
    writing: GenerationContext, settings: Settings, begun: tuple[int, ...], goal: int, shared: bool
) -> Iterator[TokenBatch]:
    with writing.live.hold((writing.digest, settings, goal), PendingText) as text:
        turn = text.take_turn()
        before = begun
        for steps, seconds in pace_parts(text.behind(begun, turn, partial(writing.generate, settings, goal)), shared):
            if not steps and text.turn != turn:
                return
            ids = (*before, *(step.id for step in steps))
            stop = steps[-1].stopped if steps else find_stop(writing, settings, ids, goal)
            yield TokenBatch(len(before), steps, seconds, of_this_run(stop, settings))
            if stop is not None:
                return
            before = ids


def of_this_run(stop: Stop | None, settings: Settings) -> Stop | None:
    """A text that is written on has more tokens than were asked for last."""
    return replace(stop, count=settings.most) if stop is not None and stop.kind == "max_tokens" else stop


class PendingText:
    """Store of texts that wait to be written on. Who takes it may come while a rerun of the page that is broken
    off is still at it."""

    def __init__(self) -> None:
        self.ids: tuple[int, ...] | None = None  # behind which `last` comes
        self.last: Step | None = None
        self.coming: Iterator[Step] = iter(())
        self.turn = 0
        self.one_at_a_time = Lock()

    def take_turn(self) -> int:
        self.turn += 1
        return self.turn

    def behind(
        self, begun: tuple[int, ...], turn: int, begin: Callable[[tuple[int, ...]], Iterator[Step]]
    ) -> Iterator[Step]:
        """Until somebody else has taken it."""
        ids = begun
        while (step := self.step(ids, turn, begin)) is not None:
            yield step
            ids = (*ids, step.id)

    def step(self, ids: tuple[int, ...], turn: int, begin: Callable[[tuple[int, ...]], Iterator[Step]]) -> Step | None:
        """The one behind `ids`. Where it stands elsewhere, it begins anew, but for a token that nobody got."""
        with self.one_at_a_time:
            if turn != self.turn:
                return None
            if self.ids == ids and self.last is not None:
                return self.last
            if self.last is None or self.ids is None or (*self.ids, self.last.id) != ids:
                self.coming = begin(ids)
            self.ids, self.last = ids, next(self.coming, None)
            return self.last


def find_stop(writing: GenerationContext, settings: Settings, begun: tuple[int, ...], goal: int) -> Stop:
    """Says what ended a text behind which nothing follows."""
    ending = stopping_rules(writing.prompt, goal, True, settings.strings)
    before = (*writing.prompt.ids, *begun[:-1])
    return (ending.check(before, begun[-1], len(begun) - 1) if begun else None) or ending.limit


def written_payload(writing: GenerationContext, found: TokenBatch) -> bytes:
    header, arrays = steps_payload(writing, found.steps)
    own = {"before": found.before, "seconds": found.seconds, "stop": stop_header(found.stop)}
    return pack({**header, **own}, arrays)


def step_after(writing: GenerationContext, settings: Settings, begun: tuple[int, ...]) -> Step | None:
    """The step behind `begun`: the last one that is written only where the text is as long as was asked for, for an end
    that a checkpoint forces belongs there."""
    forced = writing.checkpoint.writing.constraints.forced_eos_token_id is not None
    goal = len(begun) + 1
    if forced and goal != settings.most:
        goal = settings.most if goal < settings.most else goal + 1
    return next(writing.generate(settings, goal, begun), None)


def step_payload(writing: GenerationContext, settings: Settings, begun: tuple[int, ...], chosen: int | None) -> bytes:
    """The step behind `begun`, at which `chosen` was, or where that is None nothing has been chosen yet."""
    step = step_after(writing, settings, begun)
    if step is None:
        stop = find_stop(writing, settings, begun, len(begun) + 1)
        return pack({"pieces": {}, "stop": stop_header(stop)}, {})
    own = step if chosen is None else replace(step, id=chosen)
    header, arrays = steps_payload(writing, [own])
    end = None if chosen is None else stop_header(own.stopped)
    return pack({**header, "chosen": chosen is not None, "stop": end}, arrays)


# --- a branch that another tab found ---


def replay(writing: GenerationContext, settings: Settings, begun: tuple[int, ...], ids: tuple[int, ...]) -> list[Step]:
    """Generates as `generate` under the settings, with the `ids` in place of what it chooses. It ends where the first
    of them ends the text."""
    ending = stopping_rules(writing.prompt, writing.prompt.tokens_left, True, settings.strings)
    if is_over(ending, begun):
        return []
    if settings.method == "contrastive":  # what it chooses among has to be read, token by token
        texts = [(*begun, *ids[:count]) for count in range(len(ids))]
        found = (next(writing.generate(settings, ending.room, text), None) for text in texts)
        steps = [replace(step, id=id) for step, id in zip(found, ids, strict=True) if step is not None]
    else:
        sampling, before = sampling_of(settings), (*writing.prompt.ids, *begun)
        rows = enumerate(zip(ids, logits_before(writing, begun, ids), strict=True))
        steps = [Step(len(begun) + at, id, logits, sampling, (*before, *ids[:at]), ending) for at, (id, logits) in rows]
    last = next((at for at, step in enumerate(steps) if step.stopped is not None), len(steps))
    return steps[: last + 1]


def sampling_of(settings: Settings) -> Sampling:
    if settings.method == "greedy":
        return Sampling(0.0, repetition_penalty=settings.repetition_penalty)
    return Sampling(
        settings.temperature,
        settings.top_k,
        settings.top_p,
        settings.min_p,
        settings.typical_p,
        settings.repetition_penalty,
    )


@torch.inference_mode()
def logits_before(writing: GenerationContext, begun: Sequence[int], ids: Sequence[int]) -> Tensor:
    """id vocab: what each of the ids follows from."""
    prompt, model = writing.prompt, writing.checkpoint.model
    read = torch.tensor([[*prompt.ids, *begun, *ids[:-1]]], device=model.device)
    at = slice(len(prompt.ids) + len(begun) - 1, None)
    if prompt.source:
        return model(torch.tensor([prompt.source], device=model.device), target=read, logits_at=at)[0]
    return model(read, logits_at=at)[0]


# --- to download ---


def token_table(writing: GenerationContext, ids: tuple[int, ...]) -> Table:
    """A row for each token of the branch that is looked at, by one run over all of it: the model's own distribution."""
    if not ids:
        raise ValueError("Nothing is written yet: write first.")
    logits = logits_of_ids(writing, ids)
    logs = logits.log_softmax(-1)
    chosen = torch.tensor(ids)[:, None]
    own = logs.gather(-1, chosen)[:, 0]
    columns: dict[str, Any] = {
        "position": [len(writing.prompt.ids) + index for index in range(len(ids))],
        "id": list(ids),
        "token": [writing.piece(id) for id in ids],
        "logit": logits.gather(-1, chosen)[:, 0].numpy(),
        "probability": own.exp().numpy(),
        "log_probability": own.numpy(),
        "rank": ((logits > logits.gather(-1, chosen)).sum(-1) + 1).numpy(),
        "entropy_bits": (-(logs.exp() * logs).nansum(-1) / BITS).numpy(),
    }
    return Table(columns, {"model": writing.name, "table": "tokens that were written"})


@torch.inference_mode()
def logits_of_ids(writing: GenerationContext, ids: tuple[int, ...]) -> Tensor:
    """token vocab: the logits from which each of the `ids` followed."""
    prompt, model = writing.prompt, writing.checkpoint.model
    read = torch.tensor([[*prompt.ids, *ids[:-1]]], device=model.device)
    at = slice(len(prompt.ids) - 1, None)
    if prompt.source:
        source = torch.tensor([prompt.source], device=model.device)
        return model(source, target=read, logits_at=at)[0].float().cpu()
    return model(read, logits_at=at)[0].float().cpu()


def step_table(writing: GenerationContext, begun: tuple[int, ...], settings: Settings) -> Table:
    """A row for each token that is shown of the step that is looked at, a column for each stage."""
    step = step_after(writing, settings, begun)
    if step is None:
        raise ValueError("Nothing follows there, so there is no step; choose a token.")
    found = {name: value[0] for name, value in step_arrays([step]).items()}
    rows = found["top.id"][:-1]
    columns: dict[str, Any] = {"id": rows.numpy(), "token": [writing.piece(int(id)) for id in rows]}
    named = ("own", *STAGES, *CUTS)
    columns |= {name: found[f"top.{name}"][:-1].numpy() for name in named}
    return Table(columns, {"model": writing.name, "table": "one step, stage by stage", "begun": str(list(begun))})
