"""Two pages with a courier each, one of which answers slowly."""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import streamlit as st

from views.core import component
from views.core.payload import pack


@st.cache_resource
def modules() -> Path:
    """The plumbing's modules in one folder with the probe's."""
    folder = Path(tempfile.mkdtemp(prefix="loupe-turning-"))
    shutil.copytree(component.MODULES, folder, dirs_exist_ok=True)
    shutil.copytree(Path(__file__).parents[1] / "plumbing", folder / "probe")
    return folder


def answer(query: dict) -> bytes:
    time.sleep(query.get("delay", 0))
    return pack({"size": query["size"]}, {})


def drawn(count: int) -> bytes:
    return pack({"count": count}, {"ramp": np.arange(count, dtype="f4")}, {"ramp": ("pos",)})


def slow() -> None:
    st.write("the slow page")
    probe(drawn(1), key="probe")
    component.courier("courier", answer)


def other() -> None:
    time.sleep(0.5)
    st.write("the other page")
    probe(drawn(2), key="probe")
    component.courier("courier", answer)


component.MODULES = modules()
probe = component.view("probe/probe")
time.sleep(0.5)  # as on a busy server: so long the browser does not know that the page is turned
page = st.navigation([st.Page(slow, title="Slow", default=True), st.Page(other, title="Other")], position="top")
st.session_state.page = page.url_path
page.run()
