"""Lets a file that is made when its button is pressed stay until a browser has fetched it. No session refers to such a
file, and Streamlit deletes it as the second run of whatever session ends: in a class that is at once, and the browser
reads that there is none."""

from __future__ import annotations

import time
from functools import wraps
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from streamlit.runtime.media_file_manager import MediaFileManager

READ = {
    "media_file_manager:MediaFileManager.execute_deferred": "76deaa6648ec3b09",
    "media_file_manager:MediaFileManager._get_inactive_file_ids": "5fae8eeb0e3b78d8",
    "media_file_manager:MediaFileManager.remove_orphaned_files": "e5f48ba97bbd125f",
}
KEPT = 120.0  # seconds


def apply() -> None:
    make, list_inactive = MediaFileManager.execute_deferred, MediaFileManager._get_inactive_file_ids

    @wraps(make)
    def make_and_keep(self: MediaFileManager, file_id: str) -> str:
        address = make(self, file_id)
        made = PurePosixPath(urlsplit(address).path).stem
        with self._lock:
            self.__dict__.setdefault("kept_until", {})[made] = time.monotonic() + KEPT
        return address

    @wraps(list_inactive)
    def list_fetched(self: MediaFileManager) -> set[str]:
        kept, now = self.__dict__.setdefault("kept_until", {}), time.monotonic()
        for made in [made for made, until in kept.items() if until < now]:
            kept.pop(made, None)
        return list_inactive(self) - kept.keys()

    MediaFileManager.execute_deferred = make_and_keep  # type: ignore[method-assign]
    MediaFileManager._get_inactive_file_ids = list_fetched  # type: ignore[method-assign]
