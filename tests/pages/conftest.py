"""What the tests of pages share."""

from collections.abc import Iterator
from functools import cache
from unittest.mock import patch

import pytest
from streamlit.components.v2 import manifest_scanner


@pytest.fixture(scope="session", autouse=True)
def one_scan() -> Iterator[None]:
    """Each AppTest looks through all packages that are installed for components, which takes longer than most pages do:
    what the first one found is what the others find."""
    with patch.object(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests)):
        yield
