"""A checkpoint: opened, accounted for to the last tensor, looked at, and carried to the other pages."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st

from engine.attention_variants.material import suits
from engine.checkpoints import Checkpoint, IncompleteWeights
from engine.checkpoints.adapters.write import export_adapters
from engine.checkpoints.gguf.write import is_writable, write_gguf
from engine.checkpoints.report import UnknownNames
from engine.checkpoints.save import Form, export_checkpoint
from engine.runtime import library
from pages.controls.bar import bar
from pages.controls.checkpoint.assumed_config import correct
from pages.controls.checkpoint.card import card_section
from pages.controls.checkpoint.download import download
from pages.controls.checkpoint.embedding import embedding_section
from pages.controls.checkpoint.link import FORMER, adjust_to
from pages.controls.checkpoint.load_errors import SAID, load_sentence, sentence, warn
from pages.controls.checkpoint.open_form import NUMBERS, WANTED, open_row, reopen
from pages.controls.checkpoint.parameters import CHECKPOINT
from pages.controls.checkpoint.tensor_names import edit_names
from pages.controls.checkpoint.tensors import tensors_section
from pages.controls.checkpoint.weights import weights_section
from pages.controls.compare.defaults import format_edits
from pages.controls.model_input.model_input import look_at, looked_at, open_on_looked_at, sizes
from pages.controls.share.fragment import adopt_fragment
from pages.controls.share.links import honour_link
from pages.controls.visitor import recent, remember
from pages.controls.what_if.adapters import without_adapters
from server.settings import FIRST_MODEL
from views.charts.show import charts_wait
from views.checkpoint import checkpoint as drawn
from views.checkpoint.weights import matrix_rows

MENU = {"title": "Open a model", "address": "checkpoint", "place": 1, "opens": True}

WALKTHROUGH, ATTENTION = "pages/explore/walkthrough.py", "pages/explore/attention.py"
GENERATE, COMPARE = "pages/explore/generate.py", "pages/explore/compare.py"
ARCHITECTURE = "pages/inspect/architecture.py"
LONG, ADAPT = "pages/inspect/long_sequences.py", "pages/train/adapt.py"
LARGE = 50_000_000  # bytes of weights from which opening them is worth a word


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
        edit_names(name, error)
        tensors_section(here, error.report)
        return None


def export_bytes(checkpoint: Checkpoint, form: Form) -> bytes:
    with TemporaryDirectory(prefix="loupe-export-") as folder:
        return export_checkpoint(checkpoint, form, Path(folder)).read_bytes()


def gguf_bytes(checkpoint: Checkpoint, kind: str) -> bytes:
    with TemporaryDirectory(prefix="loupe-export-") as folder:
        write_gguf(checkpoint, Path(folder) / "model.gguf", kind)
        return (Path(folder) / "model.gguf").read_bytes()


def adapter_bytes(checkpoint: Checkpoint) -> bytes:
    with TemporaryDirectory(prefix="loupe-export-") as folder:
        return export_adapters(checkpoint, Path(folder)).read_bytes()


def carry(name: str, checkpoint: Checkpoint) -> None:
    """Links to the other pages, of Compare with the base beside what adapters made of it, and the menu of exports."""
    query, compared = {"model": name}, {"a_model": name}
    if checkpoint.adapters:
        compared |= {"b_model": name, "b_edits": format_edits(without_adapters(checkpoint))}
    st.page_link(WALKTHROUGH, label="Walkthrough", icon=":material/arrow_forward:", query_params=query)
    st.page_link(ATTENTION, label="Attention", icon=":material/arrow_forward:", query_params=query)
    if checkpoint.config.generates:
        st.page_link(GENERATE, label="Generate", icon=":material/arrow_forward:", query_params=query)
    st.page_link(COMPARE, label="Compare", icon=":material/arrow_forward:", query_params=compared)
    st.page_link(ARCHITECTURE, label="Anatomy", icon=":material/arrow_forward:", query_params=query)
    if suits(checkpoint):
        st.page_link(LONG, label="Long context", icon=":material/arrow_forward:", query_params=query)
    if checkpoint.tokenizer is not None:
        st.page_link(ADAPT, label="Fine-tune this", icon=":material/arrow_forward:", query_params={"base": name})
    with st.popover("Export"):
        stem = name.partition("~")[0].replace(":", "-").replace("/", "-")
        st.download_button(
            "Folder, zipped",
            lambda: export_bytes(checkpoint, "folder"),
            f"{stem}.zip",
            on_click="ignore",
            help="config.json, tokenizer and weights as transformers reads them, where it has such a model.",
        )
        st.download_button(
            "One safetensors file",
            lambda: export_bytes(checkpoint, "file"),
            f"{stem}.safetensors",
            on_click="ignore",
            help="The weights under Loupe's names, with config, tokenizer and card inside.",
        )
        says = is_writable(checkpoint.config, checkpoint.family)
        for kind, bits in (("F16", "16"), ("Q8_0", "8.5"), ("Q4_0", "4.5")) if says else ():
            st.download_button(
                f"GGUF, {kind}",
                partial(gguf_bytes, checkpoint, kind),
                f"{stem}.{kind}.gguf",
                on_click="ignore",
                help=f"For llama.cpp: {bits} bits a weight, with the tokenizer where GGUF has one of its kind.",
            )
        if checkpoint.adapters:
            st.download_button(
                "Adapter (PEFT)",
                lambda: adapter_bytes(checkpoint),
                f"{stem}-adapter.zip",
                on_click="ignore",
                help="adapter_config.json and adapter_model.safetensors, as peft reads them. The base is not in it.",
            )


here = CHECKPOINT.open()
listed = library.names(*recent(), here.begin("model"))
mine = [other for other in recent() if other in listed]
offered = list(dict.fromkeys([FIRST_MODEL, *mine, *listed]))
open_on_looked_at(here, offered)
wanted: str = here.begin("model")
offered += [wanted] if wanted.startswith(library.HUB) and wanted not in offered else []
honour_link({}, offered)  # of the rest what is opened knows the rules
with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
    name: str = here.menu(
        "model", offered, width="stretch", filter_mode="contains", on_change=CHECKPOINT.reset, args=("token",),
        help="Models that are here; those that you opened come first after the usual one.",
    )  # fmt: skip
    known = library.knows(name)
    kept = list(NUMBERS.values()).index(library.parse_name(name).dtype) if known else 0
    st.selectbox(
        "precision", list(NUMBERS), kept, key=f"numbers {name}", width=110, on_change=reopen, args=(name,),
        disabled=not known, help="Half precision is widened to float32, or kept as it is stored in half the memory.",
    )  # fmt: skip
    actions = st.container(
        horizontal=True, horizontal_alignment="right", vertical_alignment="center", width="content", key="actions"
    )

open_row()
if SAID.get():
    warn(SAID.get())
    SAID.set("")
if (typed := WANTED.get()) and download(typed):
    WANTED.set("")
    CHECKPOINT.rerun_with("model", typed)

try:
    if not library.knows(name) and name.startswith(library.HUB):
        if download(name):
            st.rerun()
        st.stop()
    checkpoint = open_checkpoint(name)
except FileNotFoundError as error:
    if not name.startswith(library.HUB):
        warn(load_sentence(name, error))
    elif download(name):  # a part of it was here
        st.rerun()
    st.stop()
except (ValueError, OSError) as error:
    warn(load_sentence(name, error))
    if isinstance(error, UnknownNames):
        edit_names(name, error)
    st.stop()
if checkpoint is None:
    st.stop()

remember(name)
look_at(name)
bar(name, looked_at()[1], sizes(checkpoint))
with actions:
    carry(name, checkpoint)
if checkpoint.report.assumed:
    correct(name, checkpoint.report.assumed)
adjust_to(here, checkpoint)
card_section(name, checkpoint)
if charts_wait():
    st.stop()
st.space("small")
weights_section(here, name, checkpoint)
st.space("small")
embedding_section(here, name, checkpoint)
st.space("small")
matrices = [row.name for row in matrix_rows(checkpoint.model)]
tensors_section(here, checkpoint.report, name, checkpoint, matrices)
adopt_fragment(FORMER, CHECKPOINT.take_former)
