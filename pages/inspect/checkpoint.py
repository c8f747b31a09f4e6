"""A checkpoint: opened, accounted for to the last tensor, looked at, and carried to the other pages."""

import json
import os
import time
import tomllib
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import streamlit as st
import torch

from engine import library
from engine.checkpoints import Checkpoint, IncompleteWeights
from engine.checkpoints.about import about
from engine.checkpoints.export import Form, exported
from engine.checkpoints.report import Assumed
from engine.checkpoints.unpack import unpack
from engine.limits import MAX_DOWNLOAD, MAX_TOKENS, MAX_UPLOAD
from engine.long.material import suits
from engine.parity import available, parity
from engine.reading import (
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
from pages.controls.links import honour_link
from pages.controls.take import Answer
from pages.controls.take_checkpoint import of_checkpoint, of_matrix, of_tables, of_tensors
from views import checkpoint as drawn
from views.component import courier, view

FIRST = "stories"
TEXTS = tomllib.loads((Path(__file__).parents[2] / "assets/texts/examples.toml").read_text())
WALKTHROUGH, ATTENTION = "pages/explore/walkthrough.py", "pages/explore/attention.py"
GENERATE = "pages/explore/generate.py"
ARCHITECTURE = "pages/inspect/architecture.py"
LONG = "pages/inspect/long_sequences.py"
AS_STORED = "as stored"
NUMBERS = {"float32": torch.float32, AS_STORED: None}
PATIENCE = 0.25  # seconds between two drawings of a progress
LARGE = 50_000_000  # bytes of weights from which opening them is worth a word
USUAL = ("model", "pytorch_model", "ckpt", "latest", "checkpoint", "0_Transformer")  # names that say nothing
FORWARDED = ("x-forwarded-for", "x-real-ip", "forwarded")
FILES = [".safetensors", ".bin", ".pt", ".pth", ".json", ".txt", ".model", ".spm", ".md", ".zip"]

card, weights, table, tensors = view("checkpoint"), view("weights"), view("projection"), view("tensors")


def on_this_machine() -> bool:
    """Whether the visitor's browser runs where the server does, with nobody in between who could be another one."""
    address = st.context.ip_address
    if any(name in st.context.headers for name in FORWARDED):
        return False
    try:
        return address is None or ip_address(address).is_loopback
    except ValueError:
        return False


def remember(name: str) -> None:
    """All pages of this session offer it from now on."""
    opened = st.session_state.setdefault("opened", [])
    if name not in opened and name not in library.names():
        opened.append(name)


def entered() -> None:
    """What was typed: a name, or a path, which then has a name."""
    typed = str(st.session_state.model or FIRST).strip()
    st.session_state.model = typed
    if library.knows(typed) or typed.startswith(library.HUB):
        return
    if not on_this_machine():
        say(f"There is no model called {typed!r}. A path is opened for visitors on the server's own machine alone.")
        st.session_state.model = FIRST
        return
    path = Path(typed).expanduser().absolute()
    if not path.exists():
        say(f"{typed!r} is no model here and no path of this machine; a hub's name begins with hub:, as hub:org/name.")
        st.session_state.model = FIRST
        return
    show(library.offer(library.Opening(path, title=title(path))))


def title(path: Path) -> str:
    """What it is called: not as every other one is."""
    own = path.stem if path.is_file() else path.name
    return path.parent.name if own in USUAL and path.parent.name else own


def show(name: str) -> None:
    """In the box and in the address. For callbacks."""
    remember(name)
    st.session_state.model = name


def say(sentence: str) -> None:
    """Above the page, once."""
    st.session_state.said = sentence


def sentence(error: Exception, folder: Path | None = None) -> str:
    """What went wrong, without where the files lie on the server."""
    text = str(error)
    if folder is None:
        return text
    beside = folder.parent if folder.is_file() else folder
    return text.replace(f"{beside}{os.sep}", "").replace(str(beside), "the folder")


def told(name: str, error: Exception) -> str:
    source = library.opening(name).source if library.knows(name) else None
    return sentence(error, source if isinstance(source, Path) else None)


def warn(text: str) -> None:
    """It may quote a file: nothing of it is Markdown."""
    st.warning(drawn.plain(text))


def reopened(name: str) -> None:
    """The same checkpoint with its numbers kept otherwise."""
    show(library.changed(name, dtype=NUMBERS[st.session_state[f"numbers {name}"]]))


def uploaded() -> None:
    """Into a folder of their own, which goes when nobody can ask for it any more."""
    turn = st.session_state.setdefault("uploads", 0)
    files = st.session_state.get(f"files {turn}") or []
    if not files:
        return
    folder = TemporaryDirectory(prefix="loupe-upload-")
    try:
        found = unpack([(file.name, file) for file in files], Path(folder.name))
    except (ValueError, OSError) as error:
        return say(sentence(error, Path(folder.name)))
    finally:
        st.session_state.uploads = turn + 1  # an empty box: the server need not keep the files twice
    weights_first = (file.name for file in files if file.name.endswith((".zip", ".safetensors", ".pt", ".bin")))
    title = Path(next(weights_first, "")).stem
    if found.notes:
        say(" ".join(found.notes))
    show(library.offer(library.Opening(found.folder, title=title, folder=folder)))


def begin(name: str) -> None:
    """The download that is shown, in the run after the click."""
    st.session_state.downloads = name


def download(name: str) -> None:
    """What a hub's checkpoint takes, and once it was asked for the download itself."""
    from engine.checkpoints.hub import fetch, parse, plan  # what speaks to a network is slow to import

    try:
        with st.spinner("Asking the hub …"):
            found = plan(parse(name))
    except (ValueError, OSError) as error:
        warn(str(error))
        return
    st.markdown(f"#### {drawn.plain(str(found.name))}")
    left, right = st.columns([1, 2], gap="medium")
    facts = [f"licence **{drawn.plain(found.licence or 'not stated')}**", f"commit `{found.commit[:7]}`"]
    facts += ["**gated**: its makers want to be asked for access"] if found.gated else []
    facts += ["private"] if found.private else []
    left.markdown(drawn.sizes([(file.name, file.size) for file in found.files]))
    right.markdown("  \n".join(facts))
    label = f"Download {drawn.size(found.missing)}" if found.missing else "Open"
    here = found.bytes - found.missing
    if here and found.missing:
        right.caption(f"{drawn.size(here)} are here already; the download continues from there.")
    if st.session_state.pop("downloads", "") != name:
        right.button(label, type="primary", key="download", on_click=begin, args=(name,))
        return
    right.button("Stop", key="stop", help="What has come is kept.")
    progress = right.progress(0.0, "…")
    drawn_at = 0.0
    try:
        for step in fetch(found, MAX_DOWNLOAD):
            if time.monotonic() - drawn_at > PATIENCE:
                drawn_at = time.monotonic()
                of = f"{drawn.size(step.done_bytes)} of {drawn.size(step.total_bytes)}, {drawn.plain(step.file)}"
                progress.progress(step.done_bytes / max(1, step.total_bytes), of)
    except (ValueError, OSError) as error:
        right.warning(drawn.plain(str(error)))
        return
    st.rerun()


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


def correct(name: str, assumed: tuple[Assumed, ...]) -> None:
    """What stands in for a config.json that is not there, to be changed."""
    guessed, shown = ([one for one in assumed if one.certain is certain] for certain in (False, True))
    label = f"Opened without a config.json: {', '.join(f'{one.key} {one.value}' for one in guessed)} assumed"
    with st.expander(drawn.plain(label), key="assumed"), st.form("assumed values", border=False):
        for said, ones in (("No tensor shows these:", guessed), ("The tensors show these:", shown)):
            st.caption(said)
            with st.container(horizontal=True, gap="small"):
                for one in ones:
                    st.text_input(one.key, written(one.value), help=drawn.plain(one.why), width=170,
                                  key=f"assumed {one.key} {name}")  # fmt: skip
        if not st.form_submit_button("Open with these"):
            return
        given = {one.key: read(st.session_state[f"assumed {one.key} {name}"]) for one in assumed}
        changes = {one.key: given[one.key] for one in assumed if given[one.key] != one.value}
        if changes:
            before = library.opening(name).config
            st.session_state.next_model = library.changed(name, config={**before, **changes})
            st.rerun()


def written(value: Any) -> str:
    """As in config.json, a text without its quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


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
        return exported(checkpoint, form, Path(folder)).read_bytes()


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
told_of = about(library.place(name), checkpoint.card)
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
