"""Texts of the course in the language of the reader. A language is a folder of assets/learn.

Its lessons and glossary are Markdown; sentences of the code stand in its messages.po, by their English ones. What a
language lacks is English.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from babel import Locale
from babel.messages.pofile import read_po

CATALOGUE = Path(__file__).resolve().parents[3] / "assets" / "learn"
ENGLISH, CHOSEN = "en", "language"  # the latter in the session state
FENCE = "+++\n"  # around what a lesson says of itself, in TOML


def language() -> str:
    """The language that the address asks for, and the session was in before, as far as there is a folder of it."""
    asked = st.query_params.get("lang") or st.session_state.get(CHOSEN, ENGLISH)
    if asked not in languages(CATALOGUE):
        asked = ENGLISH
    st.session_state[CHOSEN] = asked
    return str(asked)


@cache
def languages(catalogue: Path) -> tuple[str, ...]:
    """Names of the folders that hold texts."""
    return tuple(sorted({path.parent.name for ending in ("md", "po") for path in catalogue.glob(f"*/*.{ending}")}))


def own_names() -> dict[str, str]:
    """What each language calls itself."""
    return {lang: (Locale.parse(lang).get_display_name(lang) or lang).title() for lang in languages(CATALOGUE)}


def set_language(lang: str) -> None:
    st.query_params["lang"] = st.session_state[CHOSEN] = lang


def translate(sentence: str) -> str:
    """The sentence in the reader's language; `{names}` in it stay for `format`."""
    return messages(CATALOGUE, language()).get(sentence) or sentence


@cache
def messages(catalogue: Path, lang: str) -> Mapping[str, str]:
    path = catalogue / lang / "messages.po"
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        found = read_po(file, abort_invalid=True)
    return {str(one.id): str(one.string) for one in found if one.id}


def read_text(name: str) -> tuple[dict[str, Any], str]:
    """What a text says of itself, and its Markdown."""
    return parse_text(CATALOGUE, language(), name)


@cache
def parse_text(catalogue: Path, lang: str, name: str) -> tuple[dict[str, Any], str]:
    path = next(path for path in (catalogue / lang / name, catalogue / ENGLISH / name) if path.is_file())
    said = path.read_text(encoding="utf-8")
    if not said.startswith(FENCE):
        return {}, said
    _, head, body = said.split(FENCE, 2)
    return tomllib.loads(head), body.strip()
