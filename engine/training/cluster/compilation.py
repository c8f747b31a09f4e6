"""Compiles a model's forward pass where that pays within a run, and goes back where it does not.

eager updates, timed --> does it pay? --> compiled updates, timed --> is it faster? it stays
                             no: eager         it fails: eager            no: eager
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Literal, TypeVar

import torch

from engine.plurals import count_words
from engine.scoring.score import Outputs
from engine.training.cluster.parallel import Peers

T = TypeVar("T")
Forward = Callable[..., Outputs]

TIMED = 15  # updates whose median is a pace: of the compiled ones, the first few compile
COST = 60.0  # seconds that compiling takes, forward and backward
SAVED = 0.3  # share of the time of an update that it is expected to save


class Compilation:
    """`forward` is what an update has to call. Without `allowed` it is always the eager one; `at_once` compiles it in
    the first update, and keeps it whatever its pace is. `notes` are sentences about what came of it.

    Of several processes all do as the first one does, but where compiling fails in one of them.
    """

    def __init__(
        self, forward: Forward, device: torch.device, peers: Peers, allowed: bool, at_once: bool = False
    ) -> None:
        self.eager = self.forward = forward
        self.device, self.peers = device, peers
        self.stage: Literal["eager", "compiled", "settled"] = "eager" if allowed else "settled"
        self.eager_pace = math.inf  # seconds of forward and backward
        self.times: list[float] = []
        self.notes: list[str] = []
        self.failed = False
        if allowed and at_once:
            self.stage = "compiled"

    def update(self, backward: Callable[[], T], restart: Callable[[], None], left: int) -> T:
        """Result of `backward`, an update's forward and backward pass, where `left` updates are to come. Where
        compiling fails in it, `restart` takes away what it has left, and it is called again."""
        if self.stage == "settled":
            return backward()
        began = self._now()
        found = self._attempt(backward, restart) if self.stage == "compiled" and not self.failed else backward()
        self.times.append(self._now() - began)
        if len(self.times) == TIMED:
            self._decide(median(self.times), left)
        return found

    def _attempt(self, backward: Callable[[], T], restart: Callable[[], None]) -> T:
        try:
            if self.forward is self.eager:
                self.forward = torch.compile(self.eager)
            return backward()
        except RuntimeError as error:  # as all of TorchDynamo's and of its backends' are; another comes again
            self.forward, self.failed = self.eager, True
            why = str(error).strip().partition("\n")[0]
            failure = f"{type(error).__name__}: {why:.200}"
        restart()
        found = backward()
        self.notes.append(f"Uncompiled after all: compiling failed ({failure}).")
        return found

    def _decide(self, pace: float, left: int) -> None:
        self.times = []
        if self.stage == "eager":
            self.eager_pace = pace
            if self.peers.agree(left * pace * SAVED > COST):
                self.stage = "compiled"
                return
            self._settle(
                f"Uncompiled: {count_words(left, 'more step')} at {pace * 1e3:.3g} ms would not win back the {COST:g} "
                "s or so that compiling takes."
            )
        elif self.peers.agree(pace < self.eager_pace and not self.failed):
            timed = self.eager_pace < math.inf
            self._settle(f"Compiled by now: {self._compare(pace)}." if timed else "")
        else:
            self.forward = self.eager
            self._settle(f"Uncompiled after all: compiled, {self._compare(pace)}.")

    def _compare(self, pace: float) -> str:
        return f"forward and backward take {pace * 1e3:.3g} ms instead of {self.eager_pace * 1e3:.3g}"

    def _settle(self, note: str) -> None:
        self.stage = "settled"
        if note and not self.failed:
            self.notes.append(note)

    def _now(self) -> float:
        """Seconds, after all that the device was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return perf_counter()
