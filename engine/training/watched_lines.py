"""watch.jsonl: its writer keeps it bounded, and forgets what came after the step that a run goes on from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.training.atomic import replacing
from engine.training.watch import Watched, line

FILE = "watch.jsonl"
MOST = 600  # lines; then every second one that belongs to no snapshot goes, or of all where that is not enough


class WatchedLines:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.count, self.last = 0, -1  # lines, and the step of the last

    def append(self, watched: Watched) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line(watched)) + "\n")
        self.count, self.last = self.count + 1, watched.step
        if self.count > MOST:
            told = read_lines(self.path)
            for kept_too in (False, True):
                spare = [i for i, one in enumerate(told[:-1]) if kept_too or not one["kept"]]
                dropped = set(spare[::2]) if len(told) > MOST * 3 // 4 else set()
                told = [one for i, one in enumerate(told) if i not in dropped]
            self._replace(told)

    def rewind(self, step: int) -> None:
        """Forget what was measured after `step`."""
        if self.path.exists():
            self._replace([one for one in read_lines(self.path) if one["step"] <= step])

    def _replace(self, told: list[dict[str, Any]]) -> None:
        with replacing(self.path) as partial:
            partial.write_text("".join(json.dumps(one) + "\n" for one in told), encoding="utf-8")
        self.count, self.last = len(told), told[-1]["step"] if told else -1


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A last line that is still being written is left out."""
    try:
        return [json.loads(one) for one in path.read_text(encoding="utf-8").split("\n")[:-1]]
    except FileNotFoundError:
        return []
