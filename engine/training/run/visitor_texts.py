"""What visitors brought to learn from lies beside the runs, and goes some days after it was brought."""

from __future__ import annotations

import time
from pathlib import Path
from shutil import rmtree

from engine.budget import budget

DATA = ".data"  # one folder a file, called by a digest of what is in it
PREFERENCES = ".preferences"  # a file a visitor, called by the hash of their cookie
DAY = 86_400.0  # seconds


def expire_texts(now: float | None = None) -> int:
    """Deletes what is older than `budget.texts_days` and what no run learns from; 0 days keep all. Returns how many."""
    runs = Path(budget.runs_folder).resolve()
    old = (time.time() if now is None else now) - DAY * budget.texts_days
    kept = [path for name in (DATA, PREFERENCES) if (runs / name).is_dir() for path in (runs / name).iterdir()]
    gone = [path for path in kept if path.stat().st_mtime < old] if budget.texts_days else []
    recipes = [path.read_text(errors="replace") for path in runs.glob("*/recipe.toml")] if gone else []
    gone = [path for path in gone if not any(path.name in recipe for recipe in recipes)]
    for path in gone:
        if path.is_dir():
            rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(gone)
