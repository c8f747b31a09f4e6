"""The plumbing under test: a view that shows what reaches it, a courier that may be slow or refuse."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import streamlit as st

from views.core import component
from views.core.payload import pack


@st.cache_resource
def modules() -> Path:
    """The plumbing's modules in one folder with the probe's, as a view of the app would stand beside them."""
    folder = Path(tempfile.mkdtemp(prefix="loupe-plumbing-"))
    shutil.copytree(component.MODULES, folder, dirs_exist_ok=True)
    shutil.copytree(Path(__file__).parent, folder / "probe")
    return folder


component.MODULES = modules()
probe = component.view("probe/probe", events=("pick",))
broken = component.view("probe/broken")

count = st.slider("count", 1, 9, 3, key="count", bind="query-params")
if st.button("rerun"):
    time.sleep(0.3)
if st.button("param"):
    st.query_params["text"] = f"two words & {len(st.query_params)}"
if not st.toggle("without probe"):
    ramp = np.arange(count, dtype="f4")
    picked = probe(pack({"count": count}, {"ramp": ramp}, {"ramp": ("pos",)}), key="probe")
    st.write(f"picked: {picked.pick}")
if st.toggle("show broken"):
    broken({"why": "on purpose"}, key="broken")
st.session_state["runs"] = st.session_state.get("runs", 0) + 1
st.write(f"run {st.session_state['runs']}")
st.write(f"answered: {st.session_state.get('answered', 0)}")
st.write(f"streamed from: {st.session_state.get('streamed', [])}")
st.html('<div id="above"></div>')


def answer(query: dict) -> bytes:
    st.session_state["answered"] = st.session_state.get("answered", 0) + 1
    time.sleep(query.get("delay", 0))
    if query["size"] > 100_000:
        raise ValueError(f"expected a size of at most 100000, got {query['size']}; ask for less")
    return pack({"size": query["size"]}, {"filled": np.full(query["size"], query["size"], "f4")})


def parts(query: dict) -> Iterator[bytes]:
    st.session_state["streamed"] = [*st.session_state.get("streamed", []), query["begun"]]
    for count in range(query["begun"], query["size"]):
        if count == query.get("refused"):
            raise ValueError(f"expected a count below {count}, got {count}; ask for less")
        while count == query.get("held") and not Path(query["until"]).exists():
            time.sleep(0.02)
        yield pack({"count": count}, {})
        time.sleep(0 if query["begun"] and query.get("once") else query.get("delay", 0))


component.courier("courier", answer, parts)
st.html('<div id="below"></div>')
