"""latest/ of which a file was half-written, as by a disk that lost what it had promised: the run goes on from what is
whole."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError, safe_open

from engine.training.run.folder import RunFolder
from engine.training.run.fork import begin_from
from engine.training.run.latest import optimiser_file, read_progress


def mend(run: RunFolder, seed: int) -> str:
    """Puts the newest whole snapshot in the place of a damaged latest/. Returns a sentence about it, empty where
    nothing is damaged."""
    damaged = find_damaged(run.latest)
    if damaged is None:
        return ""
    for file in run.latest.glob("*.safetensors"):
        file.unlink()  # and not written over: a server may have opened it
    told = f"latest/{damaged.name} must be whole, and was cut off"
    for step in reversed(run.snapshot_steps()):
        try:
            begin_from(run, run, step, seed)
        except (ValueError, SafetensorError):
            continue
        return f"Mended: {told}; the run went on from step {step:,}, with the optimiser's memory begun anew."
    return f"Mended: {told}, as are all snapshots; the run began again at step 0."


def find_damaged(latest: Path) -> Path | None:
    """The file that is cut off or missing. Lengths alone are looked at, not what stands between."""
    file = latest / "model.safetensors"
    try:
        progress = read_progress(latest)
        if progress is None:
            return None
        file = optimiser_file(latest, progress.step)
        if not progress.fresh or file.exists():
            with safe_open(file, "pt"):
                pass
    except (SafetensorError, FileNotFoundError):
        return file
    return None
