"""A checkpoint: opened, accounted for to the last tensor, looked at, and carried to the other pages."""

from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st

from engine.attention_variants.material import suits
from engine.checkpoints import Checkpoint, IncompleteWeights
from engine.checkpoints.report import UnknownNames
from engine.checkpoints.save import Form, export_checkpoint
from engine.runtime import library
from engine.runtime.limits import FIRST_MODEL, MAX_UPLOAD
from pages.controls.checkpoint.assumed_config import correct
from pages.controls.checkpoint.card import card_section
from pages.controls.checkpoint.download import download
from pages.controls.checkpoint.embedding import embedding_section
from pages.controls.checkpoint.link import ASKED, FORMER, arrive, say_lost
from pages.controls.checkpoint.load_errors import load_sentence, sentence, warn
from pages.controls.checkpoint.open_form import NUMBERS, read_address, remember, reopen, show, take_upload
from pages.controls.checkpoint.tensor_names import edit_names
from pages.controls.checkpoint.tensors import tensors_section
from pages.controls.checkpoint.weights import weights_section
from pages.controls.share.fragment import adopt_fragment
from pages.controls.share.links import honour_link
from views.charts.show import charts_wait
from views.checkpoint import checkpoint as drawn
from views.checkpoint.weights import matrix_rows

WALKTHROUGH, ATTENTION = "pages/explore/walkthrough.py", "pages/explore/attention.py"
GENERATE = "pages/explore/generate.py"
ARCHITECTURE = "pages/inspect/architecture.py"
LONG = "pages/inspect/long_sequences.py"
LARGE = 50_000_000  # bytes of weights from which opening them is worth a word
FILES = [".safetensors", ".bin", ".pt", ".pth", ".json", ".txt", ".model", ".spm", ".md", ".zip"]


def open_checkpoint(name: str) -> Checkpoint | None:
    """The checkpoint, or one sentence about why not, with the table of what it holds where that is known."""
    place = library.checkpoint_place(name)
    size = place.weights.stat().st_size
    try:
        if size > LARGE and not library.checkpoint.has(name):
            with st.spinner(f"Opening {drawn.size(size)} …"):
                return library.checkpoint(name)
        return library.checkpoint(name)
    except IncompleteWeights as error:
        warn(sentence(error, place.folders[0]))
        st.session_state.pop(ASKED, None)  # else the next rerun would choose what the link asked for again
        edit_names(name, error)
        tensors_section(error.report)
        return None


def export_bytes(checkpoint: Checkpoint, form: Form) -> bytes:
    with TemporaryDirectory(prefix="loupe-export-") as folder:
        return export_checkpoint(checkpoint, form, Path(folder)).read_bytes()


def carry(name: str, checkpoint: Checkpoint) -> None:
    """Links to the other pages, and the menu of exports."""
    query = {"model": name}
    st.page_link(WALKTHROUGH, label="Walkthrough", icon=":material/arrow_forward:", query_params=query)
    st.page_link(ATTENTION, label="Attention", icon=":material/arrow_forward:", query_params=query)
    if checkpoint.config.generates:
        st.page_link(GENERATE, label="Generate", icon=":material/arrow_forward:", query_params=query)
    st.page_link(ARCHITECTURE, label="Anatomy", icon=":material/arrow_forward:", query_params=query)
    if suits(checkpoint):
        st.page_link(LONG, label="Long context", icon=":material/arrow_forward:", query_params=query)
    with st.popover("Export"):
        stem = name.partition("~")[0].replace(":", "-").replace("/", "-")
        st.download_button(
            "Folder, zipped", lambda: export_bytes(checkpoint, "folder"), f"{stem}.zip", on_click="ignore",
            help="config.json, tokenizer and weights as transformers reads them, where it has such a model.",
        )  # fmt: skip
        st.download_button(
            "One safetensors file", lambda: export_bytes(checkpoint, "file"), f"{stem}.safetensors", on_click="ignore",
            help="The weights under Loupe's names, with config, tokenizer and card inside.",
        )  # fmt: skip


if "next_model" in st.session_state:
    show(st.session_state.pop("next_model"))
state = st.session_state
wanted = state.get("model") or st.query_params.get("model", FIRST_MODEL)
listed = library.names(*state.get("opened", ()), wanted)
offered = [FIRST_MODEL, *(other for other in listed if other != FIRST_MODEL)]
offered += [wanted] if wanted.startswith(library.HUB) and wanted not in offered else []
arrive()
honour_link({}, [wanted, st.query_params.get("model", "")])  # of a model that is not here the page itself says why
with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
    name = st.selectbox(
        "checkpoint", offered, key="model", bind="query-params", width="stretch",
        accept_new_options=True, on_change=read_address, filter_mode="contains",
        help="A name from the list; hub:org/name or hub:org/name@revision; on the server's own machine also a path, "
        "of a folder or a weights file.",
    )  # fmt: skip
    here = library.knows(name)
    kept = list(NUMBERS.values()).index(library.parse_name(name).dtype) if here else 0
    st.selectbox(
        "precision", list(NUMBERS), kept, key=f"numbers {name}", width=110, on_change=reopen, args=(name,),
        disabled=not here, help="Half precision is widened to float32, or kept as it is stored in half the memory.",
    )  # fmt: skip
    with st.popover("Your files", key="own files"):
        st.file_uploader(
            f"Weights, config and tokenizer, or a zip of them; up to {drawn.size(MAX_UPLOAD)}", FILES,
            accept_multiple_files=True, key=f"files {state.setdefault('uploads', 0)}", on_change=take_upload,
        )  # fmt: skip
    actions = st.container(
        horizontal=True, horizontal_alignment="right", vertical_alignment="center", width="content", key="actions"
    )

if "said" in state:
    warn(state.pop("said"))

try:
    if not library.knows(name) and name.startswith(library.HUB):
        download(name)
        st.stop()
    checkpoint = open_checkpoint(name)
except FileNotFoundError as error:
    if name.startswith(library.HUB):  # a part of it is here
        download(name)
    else:
        warn(load_sentence(name, error))
    st.stop()
except (ValueError, OSError) as error:
    state.pop(ASKED, None)  # else the next rerun would choose what the link asked for again
    warn(load_sentence(name, error))
    if isinstance(error, UnknownNames):
        edit_names(name, error)
    st.stop()
if checkpoint is None:
    st.stop()

remember(name)
with st.container(key="headline"):
    total = sum(parameter.numel() for parameter in checkpoint.model.parameters())
    st.caption(f"{drawn.plain(name)} · {total:,} parameters")
with actions:
    carry(name, checkpoint)
if checkpoint.report.assumed:
    correct(name, checkpoint.report.assumed)
say_lost(name, checkpoint)
card_section(name, checkpoint)
if charts_wait():
    st.stop()
st.space("small")
weights_section(name, checkpoint)
st.space("small")
embedding_section(name, checkpoint)
st.space("small")
matrices = [row.name for row in matrix_rows(checkpoint.model)]
tensors_section(checkpoint.report, name, checkpoint, matrices)
adopt_fragment(FORMER, ASKED)
