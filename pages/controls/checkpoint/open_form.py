"""Bringing a checkpoint in: typed as a name or a path, uploaded, or opened again with its numbers kept otherwise."""

from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st
import torch

from engine.budget import budget
from engine.checkpoints import Checkpoint, IncompleteWeights
from engine.checkpoints.locate import current_name
from engine.checkpoints.report import UnknownNames
from engine.checkpoints.trial import check_upload
from engine.checkpoints.unpack import unpack
from engine.runtime import library
from engine.runtime.device import list_places
from pages.controls.checkpoint.load_errors import SAID, load_sentence, sentence
from pages.controls.checkpoint.parameters import CHECKPOINT
from pages.controls.state.session import SessionValue, set_widget, widget_value
from pages.controls.visitor import on_this_machine, remember
from views.checkpoint import checkpoint as drawn

AS_STORED = "as stored"
NUMBERS = {"float32": torch.float32, AS_STORED: None}
FILES = [
    ".safetensors", ".gguf", ".bin", ".pt", ".pth", ".msgpack", ".h5", ".json", ".jinja", ".txt", ".model", ".spm",
    ".md", ".zip",
]  # fmt: skip
TYPED = "typed model"
WANTED = SessionValue("wanted of the hub", str)
UPLOADS = SessionValue("uploads", int)  # how often the box of files was emptied
# Names that say nothing.
USUAL = (
    "model",
    "adapter_model",
    "pytorch_model",
    "flax_model",
    "tf_model",
    "ckpt",
    "latest",
    "checkpoint",
    "0_Transformer",
)


def open_row() -> None:
    """The row of what opens another model: a path or a name on the hub, and files of one's own."""
    key = f"files {UPLOADS.get()}"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="open row"):
        st.text_input(
            "open another: a name on the hub, or a path",
            key=TYPED,
            on_change=read_typed,
            width="stretch",
            placeholder="hub:org/name, hub:org/name@revision, hub:org/name:Q4_K_M, or /path/of/a/folder/or/file",
            help="Paths are on the server and work only there.",
        )
        with st.popover("Your files", key="own files"):
            st.file_uploader(
                f"Weights, config and tokenizer, or a zip of them; up to {drawn.size(budget.max_upload)}",
                FILES,
                accept_multiple_files=True,
                key=key,
                on_change=take_upload,
                args=(key,),
            )


def read_typed() -> None:
    """Reads a name or a path, which then has a name. What is open stays so until another is: of a hub's name the page
    says first what its download takes, and where nothing is found it says so and keeps what was typed."""
    typed = current_name(str(widget_value(TYPED)).strip())
    WANTED.set("")
    if not typed:
        return
    if library.knows(typed):
        choose_model(typed)
    elif typed.startswith(library.HUB):
        WANTED.set(typed)
    elif not on_this_machine():
        SAID.set(f'No model named "{typed}". A path is opened for visitors on the server\'s own machine alone.')
    elif not (path := Path(typed).expanduser().absolute()).exists():
        SAID.set(f'No model or folder named "{typed}". The name of a model of a hub begins with hub:, as hub:org/name.')
    else:
        try_to_open(library.offer(library.LoadOptions(path, title=title(path))))


def try_to_open(name: str) -> None:
    """Opens a path in place of what is open, unless its files are of no model: whose names or tensors do not fit is
    opened, since its page is where they can be mapped."""
    try:
        library.checkpoint(name)
    except (IncompleteWeights, UnknownNames):
        pass
    except (ValueError, OSError) as error:
        return SAID.set(load_sentence(name, error))
    choose_model(name)


def choose_model(name: str) -> None:
    set_widget(TYPED, "")
    WANTED.set("")
    show(name)


def title(path: Path) -> str:
    """Name of an upload, different from that of every other."""
    own = path.stem if path.is_file() else path.name
    return path.parent.name if own in USUAL and path.parent.name else own


def show(name: str) -> None:
    """Chooses a checkpoint, from a callback."""
    remember(name)
    CHECKPOINT.choose("model", name)
    CHECKPOINT.reset("token")


def reopen(name: str) -> None:
    """The same checkpoint with its numbers kept otherwise."""
    show(library.rename_with(name, dtype=NUMBERS[widget_value(f"numbers {name}")]))


def choose_device(name: str, checkpoint: Checkpoint) -> None:
    """A menu of the devices that can compute a checkpoint, where there is another than the CPU."""
    places = list_places(checkpoint)
    if not places:
        return
    now, key = library.parse_name(name).device, f"device {name}"
    options = list(places) if now in places else [*places, now]
    st.selectbox(
        "computed on", options, options.index(now), key=key, format_func=lambda one: places.get(one, one),
        on_change=reopen_on, args=(name, key), help="What does not fit is computed on the CPU, and a note says so.",
    )  # fmt: skip


def reopen_on(name: str, key: str) -> None:
    show(library.rename_with(name, device=widget_value(key)))


def take_upload(key: str) -> None:
    """Into a folder of their own, which goes when nobody can ask for it any more."""
    files = widget_value(key) or []
    if not files:
        return
    try:
        folder = TemporaryDirectory(prefix="loupe-upload-", dir=budget.uploads_folder or None)
    except OSError as error:  # nothing of where that is
        told = str(error.strerror).lower()
        return SAID.set(f"The server must make a folder for an upload, and cannot ({told}); tell whoever runs Loupe.")
    try:
        found = unpack([(file.name, file) for file in files], Path(folder.name))
        check_upload(found.folder)
    except (ValueError, OSError) as error:
        return SAID.set(sentence(error, Path(folder.name)))
    finally:
        UPLOADS.set(UPLOADS.get() + 1)  # an empty box: the server need not keep the files twice
    kinds = (".zip", ".safetensors", ".gguf", ".pt", ".bin", ".msgpack", ".h5")
    weights_first = (file.name for file in files if file.name.endswith(kinds))
    title = Path(next(weights_first, "")).stem
    if found.notes:
        SAID.set(" ".join(found.notes))
    show(library.offer(library.LoadOptions(found.folder, title=title, folder=folder)))
