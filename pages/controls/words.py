"""Texts of the course in the language of the reader. A language is a folder of assets/learn.

It has the glossary, and in messages.po the sentences of the code by their English ones; texts of a lesson stand in its
folder. What a language lacks is English.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from gettext import c2py
from pathlib import Path
from string import Formatter
from typing import Any

import streamlit as st
from babel import Locale, UnknownLocaleError
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from engine.places import ASSETS
from pages.controls.state.hidden import HIDDEN, HIDE
from pages.controls.state.session import SessionValue
from views.core.markdown import Markdown, escape_markdown

CATALOGUE = ASSETS / "learn"
ENGLISH = "en"
LANG = "{lang}"  # in the path of a text, for the language
CHOSEN = SessionValue("language", lambda: ENGLISH)
ASIDE = ContextVar("language of what is made outside of a session", default="")
FENCE = "+++\n"  # around what a lesson says of itself, in TOML


def language() -> str:
    """The language that the address asks for, and the session was in before, as far as there is a folder of it."""
    if aside := ASIDE.get():
        return aside
    before = CHOSEN.get()  # a page asks hundreds of times: nothing is written but a change
    asked = st.query_params.get("lang") or before
    lang = asked if asked in languages(CATALOGUE) else ENGLISH
    if lang != before:
        CHOSEN.set(lang)
    return lang


def kept_entries() -> dict[str, str]:
    """Entries of the address of every page of the course: the language, and what a class link hides."""
    entries = {"lang": language()} if "lang" in st.query_params or language() != ENGLISH else {}
    return entries | ({HIDE: ",".join(HIDDEN.get())} if HIDDEN.get() else {})


@cache
def languages(catalogue: Path) -> tuple[str, ...]:
    """Names of the folders that hold texts."""
    return tuple(sorted({path.parent.name for ending in ("md", "po") for path in catalogue.glob(f"*/*.{ending}")}))


def own_names() -> dict[str, str]:
    """Name of each language in the language itself, by its code."""
    return {lang: (Locale.parse(lang).get_display_name(lang) or lang).title() for lang in languages(CATALOGUE)}


def set_language(lang: str) -> None:
    CHOSEN.set(lang)
    st.query_params["lang"] = lang


@contextmanager
def use_language(lang: str) -> Iterator[None]:
    """The language of what this thread makes outside of a session."""
    token = ASIDE.set(lang)
    try:
        yield
    finally:
        ASIDE.reset(token)


class Sentence(Markdown):
    """A sentence whose `format` writes numbers as a language does, and escapes texts."""

    lang = ENGLISH

    def format(self, *args: object, **values: object) -> Markdown:
        return Markdown(LocalNumbers(self.lang).vformat(self, args, values))


class LocalNumbers(Formatter):
    def __init__(self, lang: str) -> None:
        self.lang = lang

    def format_field(self, value: Any, spec: str) -> str:
        if isinstance(value, Markdown) and not spec:
            return value
        written = super().format_field(value, spec)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return write_number(str(written), self.lang) if is_number else escape_markdown(written)


def translate(sentence: str) -> str:
    """The sentence in the reader's language; `{names}` in it stay for `format`."""
    lang = language()
    return in_language(messages(CATALOGUE, lang).get(sentence), sentence, lang)


def join_sentences(*sentences: str) -> Markdown:
    """Joins sentences as Markdown: what `format` has escaped is not escaped again."""
    return Markdown(" ".join(escape_markdown(sentence) for sentence in sentences if sentence))


def translate_count(one: str, many: str, count: int) -> str:
    """The sentence about so many things, in the form that the reader's language has for that number."""
    lang = language()
    forms = messages(CATALOGUE, lang).get(one)
    if not isinstance(forms, tuple):
        return in_language(None, one if count == 1 else many, lang)
    return in_language(forms[c2py(read_catalogue(CATALOGUE, lang).plural_expr)(count)], many, lang)


def in_language(found: str | tuple[str, ...] | None, english: str, lang: str) -> Sentence:
    sentence = Sentence(found if isinstance(found, str) and found else english)
    sentence.lang = lang
    return sentence


def numeral(value: float, spec: str = "") -> str:
    """A number as the reader's language writes it; `spec` as in `format`."""
    return write_number(format(value, spec), language())


def numerals(values: Iterable[float], spec: str = "") -> str:
    """Numbers in a row, with a semicolon between them where the comma is within them."""
    between = " ; " if read_locale(language()).number_symbols["latn"]["decimal"] == "," else ", "
    return between.join(numeral(value, spec) for value in values)


def write_number(written: str, lang: str) -> str:
    """Exchanges the English marks in a number for those of a language, as Babel knows them."""
    locale = read_locale(lang)
    symbols, percent = locale.number_symbols["latn"], locale.percent_formats[None].suffix[0]
    return written.translate({ord(","): symbols["group"], ord("."): symbols["decimal"], ord("%"): percent})


@cache
def read_locale(lang: str) -> Locale:
    """English stands in for what is no language that Babel knows."""
    try:
        return Locale.parse(lang)
    except (UnknownLocaleError, ValueError):
        return Locale.parse(ENGLISH)


@cache
def messages(catalogue: Path, lang: str) -> Mapping[str, str | tuple[str, ...]]:
    """Sentences by the English ones; of one about so many things, all its forms by the English one of one."""
    said = {one.id if isinstance(one.id, str) else one.id[0]: one.string for one in read_catalogue(catalogue, lang)}
    return {id: string if isinstance(string, str) else tuple(string or ()) for id, string in said.items() if id}


@cache
def read_catalogue(catalogue: Path, lang: str) -> Catalog:
    path = catalogue / lang / "messages.po"
    if not path.is_file():
        return Catalog()
    with path.open("rb") as file:
        return read_po(file, abort_invalid=True)


def read_text(path: Path) -> tuple[dict[str, Any], str]:
    """Metadata of a text, and its Markdown; nothing where neither the reader's language nor English has it."""
    return parse_text(path, language())


@cache
def parse_text(path: Path, lang: str) -> tuple[dict[str, Any], str]:
    paths = (Path(str(path).replace(LANG, one)) for one in (lang, ENGLISH))
    path = next((one for one in paths if one.is_file()), path)
    if not path.is_file():
        return {}, ""
    said = path.read_text(encoding="utf-8")
    if not said.startswith(FENCE):
        return {}, said
    _, head, body = said.split(FENCE, 2)
    return tomllib.loads(head), body.strip()
