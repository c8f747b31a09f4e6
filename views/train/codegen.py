"""The lines of Python that look at a training's example again, at any step: by its weights, or by what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.training.probe.probe import Probe
from views.core.codegen import quote


@dataclass(frozen=True)
class WatchedHead:
    """Choice of one head of one attention, named as in a frame, and the position that is looked at, all counted from
    0."""

    attention: str
    layer: int
    head: int
    position: int | None = None


def training_lines(
    folder: Path, probe: Probe, step: int, kept: bool, files: Sequence[Path], at: WatchedHead | None
) -> str:
    """Writes the lines that bind `frame`, and `pattern` where a head is looked at. `kept`: the run has the weights of
    that step; otherwise the frame is read from its `files`, relative to `folder`."""
    near = not folder.is_absolute()  # in Loupe's folder, wherever the lines are run
    place = f"{'ROOT / ' if near else ''}{quote(folder.as_posix())}"
    opening = by_weights(place, probe, step) if kept else by_frames(place, step, files)
    if near:
        opening.insert(1 if kept else 2, "from engine.places import ROOT")
    return "\n".join([*opening, *head_lines(at)]) + "\n"


def by_weights(place: str, probe: Probe, step: int) -> list[str]:
    said = {"text": probe.text, "target": probe.target}
    parts = [f"{name}={quote(text)}" for name, text in said.items() if text is not None]
    parts += [] if probe.picture is None else [f"picture={probe.picture}"]
    return [
        "from engine import load",
        "from engine.training.run.folder import RunFolder",
        "from engine.training.probe.probe_frame import record_frame",
        "from engine.training.probe.probe import Probe",
        "from engine.training.probe.question import question",
        "from engine.training.recipe.recipe_file import read_recipe",
        "",
        f"run = RunFolder({place})",
        f"checkpoint = load(run.snapshot({step}))",
        f"asked = question(Probe({', '.join(parts)}), checkpoint, read_recipe(run.recipe))",
        f"frame = record_frame(checkpoint, asked, {step}).tensors",
    ]


def by_frames(place: str, step: int, files: Sequence[Path]) -> list[str]:
    return [
        "from pathlib import Path",
        "",
        "from engine.training.probe.frames import read_frames",
        "",
        f"# of step {step} the run kept what was seen of the example, but no weights",
        f"run = Path({place})",
        f"files = [{', '.join(quote(file.as_posix()) for file in files)}]",
        "seen = {one.step: one.tensors for file in files for one in read_frames(run / file).frames}",
        f"frame = seen[{step}]",
    ]


def head_lines(at: WatchedHead | None) -> list[str]:
    if at is None:
        return ["print(sorted(frame))"]
    found = [f'pattern = frame["patterns.{at.attention}"][{at.layer}, {at.head}] / 255  # query key', "print(pattern)"]
    if at.position is not None:
        found += [
            f'print(frame["loss"][{at.position}].item())  # nats, at position {at.position}',
            f'print(frame["top.ids"][{at.position}].tolist(), frame["top.p"][{at.position}].tolist())',
        ]
    return found
