"""What visitors brought to learn from lies beside the runs, and goes some days after it was brought."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

from engine.ages import is_old, note_day
from engine.budget import budget

DATA = ".data"  # one folder a file, called by a digest of what is in it
PREFERENCES = ".preferences"  # a file a visitor, called by the hash of their cookie


def expire_texts() -> int:
    """Deletes what is older than `budget.texts_days` and what no run learns from; 0 days keep all. Returns how many."""
    runs = Path(budget.runs_folder).resolve()
    kept = [path for name in (DATA, PREFERENCES) if (runs / name).is_dir() for path in (runs / name).iterdir()]
    days, noted = budget.texts_days, note_day(runs)
    gone = [path for path in kept if is_old(path.stat().st_mtime, days, noted)] if days else []
    recipes = [path.read_text(errors="replace") for path in runs.glob("*/recipe.toml")] if gone else []
    gone = [path for path in gone if not any(path.name in recipe for recipe in recipes)]
    for path in gone:
        if path.is_dir():
            rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(gone)
