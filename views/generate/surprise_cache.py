"""Texts whose surprise is measured step by step, as the tab Surprise asks, and nothing of them twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from engine.analysis.pseudo import asked_of, pseudo_surprise, scores
from engine.analysis.surprise import Surprise, Window, join_windows, of_window, windows_of
from engine.generation.prompt import Prompt

WORK = 4_000_000_000  # multiply-adds of a step, at most: a fraction of a second
MOST = 2  # texts of one visit; each holds its model
ROWS = 16  # masked tokens of a step, at most

STRIDES: Mapping[str, Callable[[int], int]] = {  # from window to window, of a context
    "half": lambda context: max(1, context // 2),
    "quarter": lambda context: max(1, context // 4),
    "whole": lambda context: max(1, context - 1),  # the last token of one is the first of the next
}

Key = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], int]


@dataclass
class Measurement:
    """Text as far as it has been measured: `steps` are its windows, or batches of tokens that are masked in turn.
    `ids` are what is read, `asked` how many of them are predicted, or None where only the first step tells, `parts`
    what each step that is done gave.
    """

    steps: Sequence[Callable[[], Surprise]]
    ids: tuple[int, ...]
    windows: tuple[Window, ...]
    asked: int | None = None
    parts: list[Surprise] = field(default_factory=list)
    one_at_a_time: Lock = field(default_factory=Lock)

    @property
    def count(self) -> int:
        return len(self.parts)

    @property
    def is_over(self) -> bool:
        return self.count >= len(self.steps)

    def go_on(self) -> None:
        behind = self.count
        with self.one_at_a_time:
            if self.count == behind and not self.is_over:
                self.parts.append(self.steps[behind]())

    def between(self, first: int, end: int) -> Surprise:
        """Results of the steps `first` to `end`, measured as far as they have not been."""
        while self.count < min(end, len(self.steps)):
            self.go_on()
        return join_windows(self.parts[first:end])

    @property
    def read(self) -> list[int]:
        """Ids that the decoder reads; all of a text that is read in several steps."""
        if self.asked is not None:
            return list(self.ids)
        one = self.between(0, 1).examples[0]
        inputs = one.inputs.get("target", one.ids)
        return list(inputs[0].tolist())


def measurement_of(prompt: Prompt, ids: tuple[int, ...], stride: int) -> Measurement:
    """Reading of the prompt with what was written behind it, which are its `ids` then."""
    checkpoint = prompt.checkpoint
    if scores(checkpoint):
        places = asked_of(checkpoint, ids)
        weights = sum(one.numel() for one in checkpoint.model.parameters())
        rows = max(1, min(ROWS, WORK // (weights * len(ids))))
        batches = [places[at : at + rows] for at in range(0, len(places), rows)] or [()]
        steps = [lambda b=batch: pseudo_surprise(checkpoint, ids, prompt.segments, b) for batch in batches]
        return Measurement(steps, ids, (Window(0, 0, len(ids)),), len(places))
    windows = windows_of(checkpoint, ids, stride)
    steps = [lambda w=window: of_window(checkpoint, ids, w, prompt.source) for window in windows]
    return Measurement(steps, ids, windows, len(ids) - 1 if len(windows) > 1 else None)


class SurpriseCache:
    """Store by the model and what it reads; those not used longest go."""

    def __init__(self) -> None:
        self.kept: OrderedDict[Key, Measurement] = OrderedDict()
        self.one_at_a_time = Lock()

    def measure(self, prompt: Prompt, written: tuple[int, ...], apart: str = "half") -> Measurement:
        """`apart` is one of STRIDES."""
        ids, stride = (*prompt.ids, *written), STRIDES[apart](prompt.checkpoint.config.context)
        key = (id(prompt.checkpoint.model), ids, prompt.source, prompt.segments, stride)
        with self.one_at_a_time:
            found = self.kept.pop(key, None) or measurement_of(prompt, ids, stride)
            self.kept[key] = found
            while len(self.kept) > MOST:
                self.kept.popitem(last=False)
        return found
