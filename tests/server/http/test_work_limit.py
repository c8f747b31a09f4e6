"""The limit of what is computed for one visitor."""

from collections.abc import Iterator

import pytest

from engine import run
from engine.runtime.lru_cache import LruCache
from engine.runtime.shared_work import PARTS, SharedWork
from engine.work_limit import WorkLimitError, check_work, limit_work, suspend_limit
from server.http.streamlit_patches import limited_runs
from tests.engine import tiny


class Left(BaseException):
    """The visitor has left."""


def leave() -> None:
    raise Left


def test_a_pass_ends_at_its_limit_and_once_nobody_waits_for_it() -> None:
    model = tiny.model()
    with (
        limit_work(1e-9),
        pytest.raises(WorkLimitError, match="no more than 0 seconds here and was stopped"),
    ):
        run(model, [1, 2, 3])
    with limit_work(0, leave), pytest.raises(Left):
        run(model, [1, 2, 3])
    with limit_work(0):
        assert run(model, [1, 2, 3])["logits"].shape[1] == 3
    assert run(model, [1, 2, 3])["logits"].shape[1] == 3


def test_work_for_all_visitors_is_not_cut_off_by_one_of_them() -> None:
    def count() -> Iterator[int]:
        for number in range(PARTS):
            check_work()
            yield number

    shared = SharedWork(count(), PARTS, -1)
    with limit_work(0, leave):
        assert shared.reach() == PARTS - 1


def test_time_that_is_waited_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("engine.work_limit.monotonic", lambda: now[0])
    with limit_work(10):
        with suspend_limit():
            now[0] = 1_000.0
        check_work()
        now[0] += 11
        with pytest.raises(WorkLimitError, match="no more than 10 seconds"):
            check_work()


def test_what_is_kept_goes_before_the_memory_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = LruCache[int](100)
    cache.keep("a", 1, 60)
    free = [1, limited_runs.FREE_MEMORY]
    monkeypatch.setattr(limited_runs, "available_memory", lambda: free.pop(0) if free else 0)
    limited_runs.check_memory()
    assert cache.bytes == 0 and cache.find("a") is None
    with pytest.raises(WorkLimitError, match="must keep .* of its memory free, and less is left"):
        limited_runs.check_memory()
