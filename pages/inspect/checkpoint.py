"""A checkpoint: opened, accounted for to the last tensor, looked at, and carried to the other pages."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st

from engine.attention_variants.material import suits
from engine.checkpoints import Checkpoint, IncompleteWeights
from engine.checkpoints.facts import read_facts
from engine.checkpoints.parity import available, parity
from engine.checkpoints.save import Form, export_checkpoint
from engine.inputs.readers import (
    GAP,
    Reading,
    kind,
    own_words,
    pictures,
    read_infill,
    read_picture,
    read_pixels,
    read_text,
    read_translation,
    readable,
)
from engine.runtime import library
from engine.runtime.limits import MAX_TOKENS, MAX_UPLOAD
from pages.controls.checkpoint.assumed_config import correct
from pages.controls.checkpoint.download import download
from pages.controls.checkpoint.export import of_checkpoint, of_matrix, of_tables, of_tensors
from pages.controls.checkpoint.load_errors import sentence, told, warn
from pages.controls.checkpoint.open_form import FIRST, NUMBERS, entered, remember, reopened, show, uploaded
from pages.controls.share.export import Answer
from pages.controls.share.links import honour_link
from views.checkpoint import checkpoint as drawn
from views.core.component import courier, view

TEXTS = tomllib.loads((Path(__file__).parents[2] / "assets/texts/examples.toml").read_text())
WALKTHROUGH, ATTENTION = "pages/explore/walkthrough.py", "pages/explore/attention.py"
GENERATE = "pages/explore/generate.py"
ARCHITECTURE = "pages/inspect/architecture.py"
LONG = "pages/inspect/long_sequences.py"
LARGE = 50_000_000  # bytes of weights from which opening them is worth a word
FILES = [".safetensors", ".bin", ".pt", ".pth", ".json", ".txt", ".model", ".spm", ".md", ".zip"]

card, weights = view("checkpoint"), view("checkpoint/weights")
table, tensors = view("checkpoint/projection"), view("checkpoint/tensors")


def opened(name: str) -> Checkpoint | None:
    """The checkpoint, or one sentence about why not, with the table of what it holds where that is known."""
    place = library.place(name)
    size = place.weights.stat().st_size
    try:
        if size > LARGE and not library.checkpoint.has(name):
            with st.spinner(f"Opening {drawn.size(size)} …"):
                return library.checkpoint(name)
        return library.checkpoint(name)
    except IncompleteWeights as error:
        warn(sentence(error, place.folders[0]))
        tensors(drawn.tensors(error.report), key="tensors")
        return None


def sample(name: str, checkpoint: Checkpoint) -> tuple[Reading, str]:
    """What both models are given to read, and what that is called."""
    config = checkpoint.config
    limit = min(MAX_TOKENS, config.context)
    text = TEXTS.get(name, TEXTS[FIRST])["text"] if "text" in TEXTS.get(name, TEXTS[FIRST]) else ""
    if not readable(checkpoint, text):
        text = own_words(checkpoint)
    match kind(checkpoint):
        case "picture":
            return read_picture(checkpoint, pictures()[0][0]), "a picture of a digit"
        case "pixels":
            return read_pixels(checkpoint, pictures()[0][0], 32, limit, {"temperature": 1.0}, 0), "a picture of a digit"
        case "translation":
            found = read_translation(checkpoint, text, "", min(limit, 24))
        case "infill":
            found = read_infill(checkpoint, text if GAP in text else f"{text} {GAP}", "", limit)
        case _:
            found = read_text(checkpoint, text, limit)
    return found, f"“{text}”"


def answer(query: Mapping[str, Any]) -> bytes:
    """What the views ask for, computed once for all sessions."""
    if query.get("checkpoint") != name or checkpoint is None:
        raise ValueError("Another checkpoint was opened since; click again.")
    shown = checkpoint
    return library.answers.of(query, lambda: computed(name, shown, query))


def computed(name: str, checkpoint: Checkpoint, query: Mapping[str, Any]) -> bytes:
    """Sizes of all matrices, figures of one, a table in the plane, the nearest rows, a comparison."""
    match query:
        case {"sizes": True}:
            return drawn.matrix_sizes(checkpoint.model)
        case {"matrix": str(matrix), "head": int() | None as head, "circuit": bool(through)}:
            return drawn.matrix_figures(checkpoint.model, matrix, head, through)
        case {"table": str(of), "how": str(how)}:
            return drawn.table_points(checkpoint, of, how)
        case {"table": str(of), "near": int(id)}:
            return drawn.table_neighbours(checkpoint, of, id)
        case {"compare": True}:
            reading, read = sample(name, checkpoint)
            opening = library.opening(name)
            return drawn.verdict(
                parity(checkpoint, None if opening.config else library.place(name).weights, reading), read
            )
    raise ValueError("The page asked for something it does not know; reload it.")


def taken(checkpoint: Checkpoint, form: Form) -> bytes:
    with TemporaryDirectory(prefix="loupe-export-") as folder:
        return export_checkpoint(checkpoint, form, Path(folder)).read_bytes()


def carry(name: str, checkpoint: Checkpoint) -> None:
    """To the other pages, and away."""
    query = {"model": name}
    st.page_link(WALKTHROUGH, label="Walkthrough", icon=":material/arrow_forward:", query_params=query)
    st.page_link(ATTENTION, label="Attention", icon=":material/arrow_forward:", query_params=query)
    if checkpoint.config.generates:
        st.page_link(GENERATE, label="Generate", icon=":material/arrow_forward:", query_params=query)
    st.page_link(ARCHITECTURE, label="Architecture", icon=":material/arrow_forward:", query_params=query)
    if suits(checkpoint):
        st.page_link(LONG, label="Long sequences", icon=":material/arrow_forward:", query_params=query)
    with st.popover("Export"):
        stem = name.partition("~")[0].replace(":", "-").replace("/", "-")
        st.download_button(
            "Folder, zipped", lambda: taken(checkpoint, "folder"), f"{stem}.zip", on_click="ignore",
            help="config.json, tokenizer and weights as transformers reads them, where it has such a model.",
        )  # fmt: skip
        st.download_button(
            "One safetensors file", lambda: taken(checkpoint, "file"), f"{stem}.safetensors", on_click="ignore",
            help="The weights under Loupe's names, with config, tokenizer and card inside.",
        )  # fmt: skip


if "next_model" in st.session_state:
    show(st.session_state.pop("next_model"))
state = st.session_state
wanted = state.get("model") or st.query_params.get("model", FIRST)
listed = library.names(*state.get("opened", ()), wanted)
offered = [FIRST, *(other for other in listed if other != FIRST)]
offered += [wanted] if wanted.startswith(library.HUB) and wanted not in offered else []
honour_link({}, [wanted, st.query_params.get("model", "")])  # of a model that is not here the page itself says why
with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="controls"):
    name = st.selectbox(
        "checkpoint", offered, key="model", bind="query-params", width="stretch",
        accept_new_options=True, on_change=entered, filter_mode="contains",
        help="A name from the list; hub:org/name or hub:org/name@revision; on the server's own machine also a path, "
        "of a folder or a weights file.",
    )  # fmt: skip
    here = library.knows(name)
    kept = list(NUMBERS.values()).index(library.opening(name).dtype) if here else 0
    st.selectbox(
        "numbers", list(NUMBERS), kept, key=f"numbers {name}", width=110, on_change=reopened, args=(name,),
        disabled=not here, help="Half precision is widened to float32, or kept as it is stored in half the memory.",
    )  # fmt: skip
    with st.popover("Your files", key="own files"):
        st.file_uploader(
            f"Weights, config and tokenizer, or a zip of them; up to {drawn.size(MAX_UPLOAD)}", FILES,
            accept_multiple_files=True, key=f"files {state.setdefault('uploads', 0)}", on_change=uploaded,
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
    checkpoint = opened(name)
except FileNotFoundError as error:
    if name.startswith(library.HUB):  # a part of it is here
        download(name)
    else:
        warn(told(name, error))
    st.stop()
except (ValueError, OSError) as error:
    warn(told(name, error))
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
told_of = read_facts(library.place(name), checkpoint.card)
answers: Answer = answer
made = of_tensors(name, checkpoint)
report = drawn.tensors(checkpoint.report, {"take": made.header})
answers = made.answering(report, answers)
made = of_tables(name, checkpoint)
points = drawn.tables(name, checkpoint, {"take": made.header})
if points is not None:
    answers = made.answering(points, answers)
made = of_matrix(name, checkpoint)
matrices = drawn.weights(name, checkpoint.model, {"take": made.header})
answers = made.answering(matrices, answers)
made = of_checkpoint(name, checkpoint)
payload = drawn.card(name, checkpoint, told_of, compares=available(), notes={"take": made.header})
answers = made.answering(payload, answers)
card(payload, key="card")
weights(matrices, key="weights")
if points is not None:
    table(points, key="table")
tensors(report, key="tensors")
courier("courier", answers)
