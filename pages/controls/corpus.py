"""A corpus of one's own: the control that takes a file of texts, and what a link holds of it."""

from __future__ import annotations

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
from views.core.markdown import escape_markdown

PARAMETERS = (
    Text("corpus", "", READABLE, rule=data_rule, hidden_as="your texts", element=".st-key-own-corpus"),
    Text("text_column", "", READABLE, label="column"),
)


class CorpusUpload(Brought):
    """State of the form, apart from that of the page about training."""


def choose_corpus(here: Here) -> tuple[Corpus | None, str]:
    """The texts of the file that is given, and the column that they stand in; None, for the shipped data, where there
    is none, or where it cannot be read, which is said."""
    digest, upload = here.begin("corpus"), find_record(CorpusUpload)
    file, key = find_file(digest), f"corpus file {upload.turn}"

    def keep() -> None:
        if (given := widget_value(key)) is not None:
            upload.keep(here.state, given.name, given.getvalue(), "corpus")

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="own corpus"):
        with st.popover("Other texts" if file else "Texts of your own", key="bring corpus"):
            st.file_uploader(
                f"a file of texts: {', '.join(KINDS)}, up to {budget.max_data // MIB:,} MiB",
                [k[1:] for k in KINDS],
                key=key,
                on_change=keep,
                max_upload_size=max(1, budget.max_data // MIB),
                help="A .txt file is read by its paragraphs, or by its lines where no empty line parts it.",
            )
        if upload.problem:
            st.warning(escape_markdown(upload.problem))
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
            st.warning(escape_markdown(str(error).replace(f"{folder()}/{digest}/", "")))
            corpus = None
        st.button("Shipped texts", key="no corpus", type="tertiary", on_click=here.state.choose, args=("corpus", ""))
        return corpus, column
