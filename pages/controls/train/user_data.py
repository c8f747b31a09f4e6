"""A person's own data on the page about training: pasted, uploaded or from a hub, looked at, and made into a recipe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from engine.data.hub import INSTALL, Hub, has_datasets, read_hub
from engine.data.own import Rows
from engine.data.table import KINDS, Table, read_table
from engine.data.text import read_text
from engine.runtime import limits
from engine.training import Recipe
from engine.training.data_recipe import Text
from pages.controls.share.links import as_text
from pages.controls.train.data_columns import columns_of, first_rows, objective_of
from pages.controls.train.data_files import MIB, find_file, folder, store_file
from pages.controls.train.data_recipe import SHARE, objectives, of_table, of_text

SHARED = "data"  # the name in the address: which file of this Loupe it is
LEAST = 200  # characters that something can be learned from
SHOWN = 8  # lines
WIDTH = 400  # characters of a line that is shown
SAID, TURN, HUB = "said of data", "turn of data", "data of a hub"  # in the session state


@dataclass(frozen=True)
class Own:
    """`task` names the file, and what is learned from it, for the controls of its recipe."""

    task: str
    title: str
    recipe: Recipe


def own_data() -> Own | None:
    """Draws the controls; None as long as there is nothing to learn from."""
    state, shared = st.session_state, st.query_params.get(SHARED, "")
    file, hub = find_file(shared), state.get(HUB)
    if shared and file is None:
        say("The data of this link is not here any more; bring it once more.")
        del st.query_params[SHARED]
    with st.container(key="own data"):
        bring(file is None and hub is None)
        if state.get(SAID):
            st.warning(as_text(state[SAID]))
        try:
            if file is not None:
                return of_file(file)
            return None if hub is None else of_hub(hub)
        except ValueError as error:
            st.warning(as_text(str(error).replace(f"{folder()}/{shared}/", "")))
            return None


def bring(first: bool) -> None:
    """Offers the form at once where there is nothing yet, and behind a button where there is."""
    turn = st.session_state.setdefault(TURN, 0)
    with st.container(key="bring data") if first else st.popover("Other data", key="bring data"):
        left, right = st.columns(2, gap="medium")
        with left:
            st.text_area("paste a text", key=f"pasted {turn}", height=136, placeholder="Any text, in any language.")
            st.button("Learn from this text", on_click=read_pasted, key="use pasted")
        with right:
            st.file_uploader(
                f"or upload a file: {', '.join(KINDS)}, up to {limits.MAX_DATA // MIB:,} MiB", [k[1:] for k in KINDS],
                key=f"data file {turn}", on_change=read_uploaded, max_upload_size=max(1, limits.MAX_DATA // MIB),
            )  # fmt: skip
            from_a_hub()


def from_a_hub() -> None:
    if not has_datasets():
        st.caption(f"A data set by its name on the hub needs the package datasets where Loupe runs; {INSTALL}.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input("or a data set of the hub", key="hub name", placeholder="stanfordnlp/imdb", width=190)
        st.text_input("subset", key="hub subset", width=90)
        st.text_input("split", "train", key="hub split", width=90)
        st.number_input("rows", 2, 1_000_000, 10_000, 1_000, key="hub rows", width=120)
        st.button("Fetch", key="fetch", on_click=fetch)


def fetch() -> None:
    state = st.session_state
    asked: dict[str, Any] = {key: str(state[f"hub {key}"]).strip() for key in ("name", "subset", "split")}
    asked["rows"] = state["hub rows"]
    try:
        Hub(text="text", **asked)  # says what is no name
        with st.spinner("Asking the hub …"):
            read_hub(**asked)
    except ValueError as error:
        return say(str(error))
    st.query_params.pop(SHARED, None)
    state[HUB] = asked
    say("")


def read_pasted() -> None:
    text = st.session_state.get(f"pasted {st.session_state[TURN]}") or ""
    if len(text.strip()) < LEAST:
        return say(f"A text must have at least {LEAST} characters to learn from, got {len(text.strip())}; paste more.")
    take("pasted.txt", text.encode())


def read_uploaded() -> None:
    file = st.session_state.get(f"data file {st.session_state[TURN]}")
    if file is not None:
        take(file.name, file.getvalue())


def take(name: str, data: bytes) -> None:
    try:
        file = store_file(name, data)
    except (ValueError, OSError) as error:
        return say(str(error).replace(f"{folder()}/", ""))
    st.query_params[SHARED] = file.parent.name
    st.session_state.pop(HUB, None)
    st.session_state[TURN] += 1  # an empty box: the server need not keep the file twice
    say("")


def say(sentence: str) -> None:
    st.session_state[SAID] = sentence


def of_file(file: Path) -> Own:
    turn = f"own {file.parent.name}"
    if file.suffix.lower() == ".txt":
        text = text_in(str(file))
        if len(text) < LEAST:
            raise ValueError(f"{file.name} must have at least {LEAST} characters to learn from, got {len(text)}.")
        first_lines(file.name, text)
        data = Text(str(file), SHARE)
        objective = objective_of(objectives(data), turn)
        return Own(f"{turn} {objective}", file.name, of_text(data, objective, file.name, text))
    header = True
    if file.suffix.lower() in (".csv", ".tsv"):
        header = st.toggle("the first line names the columns", True, key=f"{turn} header")
    table = table_in(str(file), header)
    return of_rows(turn, file.name, table, lambda columns: rows_of(file, header, columns))


def of_hub(asked: dict[str, Any]) -> Own:
    turn, title = f"own {' '.join(map(str, asked.values()))}", asked["name"].replace("/", "-")
    return of_rows(turn, title, read_hub(**asked), lambda columns: Hub(**columns, **asked, held_out=SHARE))


def rows_of(file: Path, header: bool, columns: dict[str, Any]) -> Rows:
    return Rows(path=str(file), header=header, held_out=SHARE, **columns)


def of_rows(turn: str, title: str, table: Table, make: Callable[[dict[str, Any]], Rows | Hub]) -> Own:
    """`make` is given the names of the columns that are learned from."""
    first_rows(title, table)
    data = make(columns_of(table, turn))
    objective = objective_of(objectives(data), f"{turn} {data.form}")
    task = f"{turn} {objective} {sorted(asdict(data).items())}"
    return Own(task, title, of_table(data, objective, title, table))


@st.cache_resource(max_entries=4, show_spinner=False)
def text_in(path: str) -> str:
    return read_text(path)


@st.cache_resource(max_entries=4, show_spinner=False)
def table_in(path: str, header: bool) -> Table:
    return read_table(path, header)


def first_lines(name: str, text: str) -> None:
    lines = text.splitlines()
    st.caption(
        f"{as_text(name)} · {len(text):,} characters, {len(set(text)):,} different ones · {len(lines):,} lines · the "
        f"last {SHARE:.0%} are held out"
    )
    shown = [line if len(line) <= WIDTH else f"{line[:WIDTH]} …" for line in lines[:SHOWN]]
    with st.expander("The first lines", key="first lines"):
        st.code("\n".join(shown), language=None, line_numbers=True, wrap_lines=True)
