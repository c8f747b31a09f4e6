"""A download that is made when it is asked for outlives the runs of others, and not for ever."""

import pytest
from streamlit.runtime import media_file_manager
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.runtime.media_file_storage import MediaFileStorageError
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage

from server.http.streamlit_patches import kept_downloads


def test_a_file_that_was_made_for_a_press_is_there_until_a_browser_has_fetched_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(kept_downloads.time, "monotonic", lambda: now)
    monkeypatch.setattr(media_file_manager, "_get_session_id", lambda: "a")
    storage = MemoryMediaFileStorage("/media")
    manager = MediaFileManager(storage)
    placeholder = manager.add_deferred(lambda: b"PK", "application/zip", "1.0", "run.zip")
    address = manager.execute_deferred(placeholder)
    for _ in range(3):  # runs of others that end
        manager.remove_orphaned_files()
    assert storage.get_file(address.rpartition("/")[2]).content == b"PK"
    now += kept_downloads.KEPT + 1
    for _ in range(2):
        manager.remove_orphaned_files()
    with pytest.raises(MediaFileStorageError):
        storage.get_file(address.rpartition("/")[2])
