"""What the tests in a browser share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs a test that fails in a browser once more, and names it in the summary: a busy machine can hold a page up for
    longer than a test waits. A fault of a page fails both times."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """As in the server, so that sums are taken in the same order and every number is equal to the last bit."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
