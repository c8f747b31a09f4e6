"""Ages in days that were noted, so that a clock set ahead makes nothing old: however far it went since the day before,
that is one day more.

What deletes old things notes the days on which it runs, beside them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from datetime import UTC, date, datetime
from pathlib import Path

DAY = 86_400.0  # seconds
FILE = ".days"
LINE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def is_old(written: float, days: float, noted: Collection[date]) -> bool:
    """Tells whether what was written then (seconds since 1970) is older than `days`, by the clock and by the days that
    were `noted` since."""
    now = time.time()
    since = sum(written < midnight(day) <= now for day in noted)
    return now - written > DAY * days and since >= days


def today() -> date:
    return datetime.fromtimestamp(time.time(), UTC).date()


def midnight(day: date) -> float:
    """Beginning of the day, in seconds since 1970."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def note_day(folder: Path) -> set[date]:
    """Notes today in a file of the folder, and returns all days that stand there; none where there is no folder."""
    file, noted = folder / FILE, set[date]()
    if not folder.is_dir():
        return noted
    said = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    for line in LINE.findall(said):
        try:
            noted.add(date.fromisoformat(line))
        except ValueError:  # a damaged line is no day
            continue
    if today() not in noted:
        with file.open("a", encoding="utf-8") as days:
            days.write(f"{today().isoformat()}\n")
    return noted | {today()}
