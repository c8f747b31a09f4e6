"""A corpus of one's own: the control that takes a file of texts, and what a link holds of it."""

from __future__ import annotations

from pathlib import Path
from typing import LiteralString

import streamlit as st

from engine.budget import budget
from engine.data.table import KINDS, read_table
from engine.inputs.corpus import Corpus, read_corpus
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import Here
from pages.controls.state.parameter import Text
from pages.controls.state.session import find_record, widget_value
from pages.controls.train.parameters import data_rule
from pages.controls.train.user_data import MIB, Brought, find_file, folder, guess_columns
from views.core.markdown import Markdown, escape_markdown

PARAMETERS = (
    Text("corpus", "", READABLE, rule=data_rule, hidden_as="your texts", element=".st-key-own-corpus"),
    Text("text_column", "", READABLE, label="column"),
)


class CorpusUpload(Brought):
    """State of the form, apart from that of the page about training."""


class PairsUpload(Brought):
    """State of the form of a file of pairs."""


def take_file(
    here: Here, name: str, label: LiteralString, help: LiteralString | Markdown, record: type[Brought],
    bring: LiteralString,
) -> Path | None:  # fmt: skip
    """Draws the box that takes the file whose digest the parameter `name` is, and what was wrong with one."""
    upload = find_record(record)
    file, key = find_file(here.begin(name)), f"{name} file {upload.turn}"

    def keep() -> None:
        if (given := widget_value(key)) is not None:
            upload.keep(here.state, given.name, given.getvalue(), name)

    with st.popover("Other file" if file else bring, key=f"bring {name}"):
        st.file_uploader(
            f"{label}: {', '.join(KINDS)}, up to {budget.max_data // MIB:,} MiB",
            [k[1:] for k in KINDS],
            key=key,
            on_change=keep,
            max_upload_size=max(1, budget.max_data // MIB),
            help=help,
        )
    if upload.problem:
        st.warning(escape_markdown(upload.problem))
    return file


def tell_problem(here: Here, name: str, error: ValueError) -> None:
    """Says what is wrong with a file that was taken, by its own name."""
    st.warning(escape_markdown(str(error).replace(f"{folder()}/{here[name]}/", "")))


def choose_corpus(here: Here, without: LiteralString = "Shipped texts") -> tuple[Corpus | None, str]:
    """The texts of the file that is given, and the column that they stand in; None, for the shipped data, where there
    is none, or where it cannot be read, which is said. What one then goes on with is called `without`."""
    help = "A .txt file is read by its paragraphs, or by its lines where no empty line parts it."
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="own corpus"):
        file = take_file(here, "corpus", "a file of texts", help, CorpusUpload, "Texts of your own")
        if file is None:
            return None, ""
        column = ""
        try:
            if file.suffix.lower() != ".txt":
                table = read_table(file)
                here.set_defaults(text_column=guess_columns(table, ("text",)).get("text", table.columns[0]))
                column = here.menu("text_column", table.columns, width=176)
            corpus = read_corpus(file, column)
        except ValueError as error:
            tell_problem(here, "corpus", error)
            corpus = None
        st.button(without, key="no corpus", type="tertiary", on_click=here.state.choose, args=("corpus", ""))
        return corpus, column
