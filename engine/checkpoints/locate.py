"""Where a checkpoint is: a shipped name, a folder, or one weights file in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SHIPPED = Path(__file__).parents[2] / "assets" / "checkpoints"
WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
OF_A_RUN = ("latest", "snapshots")  # folders of a training run, whose tokenizer lies one folder up


@dataclass(frozen=True)
class Place:
    """`weights` is the file to open, `folders` where its config and tokenizer may be, nearest first."""

    name: str
    weights: Path
    folders: tuple[Path, ...]

    def find(self, file: str) -> Path | None:
        return next((folder / file for folder in self.folders if (folder / file).is_file()), None)


def shipped() -> list[str]:
    """The names of the checkpoints that come with Loupe."""
    return sorted(p.name for p in SHIPPED.iterdir() if p.is_dir()) if SHIPPED.is_dir() else []


def locate(name_or_path: str | Path) -> Place:
    """Raises FileNotFoundError, naming what there is instead."""
    if isinstance(name_or_path, str) and name_or_path in shipped():
        path = SHIPPED / name_or_path
    else:
        path = Path(name_or_path).expanduser()
    if path.is_file():
        return Place(path.stem, path, around(path.parent))
    if not path.is_dir():
        names = ", ".join(shipped()) or "none"
        raise FileNotFoundError(
            f"{str(name_or_path)!r} is no folder, no file and no shipped checkpoint (those are: {names})."
        )
    folder = path if any((path / file).is_file() for file in WEIGHTS) else path / "latest"
    weights = next((folder / file for file in WEIGHTS if (folder / file).is_file()), None)
    if weights is None:
        there = ", ".join(sorted(p.name for p in path.iterdir())[:20]) or "nothing"
        raise FileNotFoundError(f"a checkpoint folder must hold one of {', '.join(WEIGHTS)}; {path} holds {there}.")
    return Place(path.resolve().name, weights, around(folder))


def around(folder: Path) -> tuple[Path, ...]:
    return (folder, folder.parent) if folder.name in OF_A_RUN else (folder,)
