"""What the page Open a model tells a person: quoting a file, but not where it lies on the server."""

import os
from pathlib import Path

import streamlit as st

from engine.runtime import library
from pages.controls.state.session import SessionValue
from views.core.markdown import escape_markdown

SAID = SessionValue("said", str)  # above the page, once


def sentence(error: Exception, folder: Path | None = None) -> str:
    """Describes what went wrong, without where the files lie on the server."""
    text = str(error)
    if folder is None:
        return text
    beside = folder.parent if folder.is_file() else folder
    return text.replace(f"{beside}{os.sep}", "").replace(str(beside), "the folder")


def load_sentence(name: str, error: Exception) -> str:
    source = library.parse_name(name).source if library.knows(name) else None
    return sentence(error, source if isinstance(source, Path) else None)


def warn(text: str) -> None:
    """Shows a message; it may quote a file, so nothing of it is Markdown."""
    st.warning(escape_markdown(text))
