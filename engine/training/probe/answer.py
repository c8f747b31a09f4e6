"""frames/<digest>.json: what a run's process says to a probe."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from engine.model.from_dict import build
from engine.training.probe.probe import Probe
from engine.training.probe.snapshot_frames import frame_files
from engine.training.run.atomic import read_json, write_json
from engine.training.run.folder import RunFolder


@dataclass(frozen=True)
class ProbeAnswer:
    """`error` says why it cannot be watched; otherwise `pieces` and `target_pieces` are its tokens as they are
    drawn."""

    probe: Probe
    error: str = ""
    pieces: tuple[str, ...] = field(default=())
    target_pieces: tuple[str, ...] = field(default=())


def write_answer(run: RunFolder, answer: ProbeAnswer) -> None:
    ours, _ = frame_files(run.path, answer.probe)
    write_json(ours.with_suffix(".json"), asdict(answer))


def read_answer(run: RunFolder, probe: Probe) -> ProbeAnswer:
    """The probe alone where the run's process has not looked at it yet."""
    ours, _ = frame_files(run.path, probe)
    data = read_json(ours.with_suffix(".json"))
    answer: ProbeAnswer = ProbeAnswer(probe) if data is None else build(ProbeAnswer, data)
    return answer
