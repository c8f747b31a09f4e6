"""Bringing a checkpoint in: typed as a name or a path, uploaded, or opened again with its numbers kept otherwise."""

from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st
import torch

from engine.checkpoints.trial import check_upload
from engine.checkpoints.unpack import unpack
from engine.runtime import library
from engine.runtime.limits import FIRST_MODEL
from pages.controls.checkpoint.load_errors import say, sentence
from pages.controls.share.visitor import on_this_machine

AS_STORED = "as stored"
NUMBERS = {"float32": torch.float32, AS_STORED: None}
USUAL = ("model", "pytorch_model", "ckpt", "latest", "checkpoint", "0_Transformer")  # names that say nothing


def remember(name: str) -> None:
    """All pages of this session offer it from now on."""
    opened = st.session_state.setdefault("opened", [])
    if name not in opened and name not in library.names():
        opened.append(name)


def read_address() -> None:
    """Reads what was typed: a name, or a path, which then has a name."""
    typed = str(st.session_state.model or FIRST_MODEL).strip()
    st.session_state.model = typed
    if library.knows(typed) or typed.startswith(library.HUB):
        return
    if not on_this_machine():
        say(f'No model named "{typed}". A path is opened for visitors on the server\'s own machine alone.')
        st.session_state.model = FIRST_MODEL
        return
    path = Path(typed).expanduser().absolute()
    if not path.exists():
        say(f'No model or folder named "{typed}". The name of a model of a hub begins with hub:, as hub:org/name.')
        st.session_state.model = FIRST_MODEL
        return
    show(library.offer(library.Opening(path, title=title(path))))


def title(path: Path) -> str:
    """Name of an upload, different from that of every other."""
    own = path.stem if path.is_file() else path.name
    return path.parent.name if own in USUAL and path.parent.name else own


def show(name: str) -> None:
    """Chooses a checkpoint in the box and in the address; for callbacks."""
    remember(name)
    st.session_state.model = name


def reopen(name: str) -> None:
    """The same checkpoint with its numbers kept otherwise."""
    show(library.rename_with(name, dtype=NUMBERS[st.session_state[f"numbers {name}"]]))


def take_upload() -> None:
    """Into a folder of their own, which goes when nobody can ask for it any more."""
    turn = st.session_state.setdefault("uploads", 0)
    files = st.session_state.get(f"files {turn}") or []
    if not files:
        return
    folder = TemporaryDirectory(prefix="loupe-upload-")
    try:
        found = unpack([(file.name, file) for file in files], Path(folder.name))
        check_upload(found.folder)
    except (ValueError, OSError) as error:
        return say(sentence(error, Path(folder.name)))
    finally:
        st.session_state.uploads = turn + 1  # an empty box: the server need not keep the files twice
    weights_first = (file.name for file in files if file.name.endswith((".zip", ".safetensors", ".pt", ".bin")))
    title = Path(next(weights_first, "")).stem
    if found.notes:
        say(" ".join(found.notes))
    show(library.offer(library.Opening(found.folder, title=title, folder=folder)))
