"""Early stopping: the held-out loss is watched, and the weights of its best step are kept as a snapshot.

All that is known follows from metrics.jsonl, so that a run that was killed goes on as one that was not.
"""

from __future__ import annotations

from collections.abc import Collection

from engine.training.base.adapter import adapter_file
from engine.training.run.folder import RunFolder


class Patience:
    """`limit` held-out measurements without a better one are enough; 0: there is no limit, and nothing is kept."""

    def __init__(self, run: RunFolder, limit: int) -> None:
        self.run, self.limit = run, limit
        self.begin()

    def begin(self) -> None:
        """Reads what was measured so far."""
        self.better: list[int] = []  # the steps that were the best when they were measured
        self.loss, self.waited = float("inf"), 0
        for line in self.run.read_metrics() if self.limit else ():
            self.see(line["step"], line["held_out_loss"])

    def see(self, step: int, loss: float | None) -> None:
        """Counts a measurement, in nats a target; None is none."""
        if not self.limit or loss is None:
            return
        if loss < self.loss:
            self.better.append(step)
            self.loss, self.waited = loss, 0
        else:
            self.waited += 1

    @property
    def best(self) -> int | None:
        """The step with the lowest held-out loss so far, the first of equals."""
        return self.better[-1] if self.better else None

    @property
    def is_exhausted(self) -> bool:
        return 0 < self.limit <= self.waited

    def prune(self, planned: Collection[int]) -> None:
        """Deletes the snapshots of steps that are the best no more, but those kept in any case. Called once latest/ is
        past the best step, so that no kill can bring an older one back."""
        for step in self.better[:-1]:
            if step not in planned:
                for file in (self.run.snapshot(step), adapter_file(self.run.snapshot(step))):
                    file.unlink(missing_ok=True)
