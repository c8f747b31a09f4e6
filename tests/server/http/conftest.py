"""Streamlit as Loupe changes it."""

import pytest

from server.http.streamlit_patches import patch_streamlit


@pytest.fixture(autouse=True)
def patched() -> None:
    patch_streamlit()
    patch_streamlit()  # does nothing more
