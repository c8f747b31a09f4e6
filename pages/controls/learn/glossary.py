"""The glossary: what a term means, in one place. `[[term]]` in a text is a link to it, whose title says so too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from unicodedata import normalize
from urllib.parse import quote, urlencode

import streamlit as st

from pages.controls.learn import words
from pages.controls.learn.words import kept_entries
from pages.controls.learn.words import translate as _
from views.core.markdown import Markdown

PAGE = "/glossary"
SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[^\W\d_a-z])")
LINK = re.compile(r"\[\[([^\]|]+)(?:\|([^\]]+))?\]\]")  # [[term]] or [[term|as it reads]]


class Term(NamedTuple):
    """`name` is what it is called in the reader's language, `meaning` Markdown."""

    name: str
    meaning: Markdown


def terms() -> Mapping[str, Term]:
    """Terms by what links call them, in the order of the alphabet. An entry begins with `## term`, or, where a language
    calls it otherwise, with `## term | its name`."""
    return parse_terms(read_glossary()[1])


def read_glossary() -> tuple[dict[str, Any], str]:
    return words.read_text(words.CATALOGUE / words.LANG / "glossary.md")


@lru_cache(maxsize=8)  # one a language: every page has terms, at every rerun
def parse_terms(text: str) -> Mapping[str, Term]:
    found = {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _line, meaning = part.partition("\n")
        term, _bar, name = heading.partition(" | ")
        found[term.strip()] = Term(name.strip() or term.strip(), Markdown(meaning.strip()))
    return dict(sorted(found.items(), key=lambda entry: normalize("NFD", entry[1].name.lower())))


def draw_terms(page: str) -> None:
    """The terms that stand undefined on a page, each with its meaning under the pointer and a link to its entry."""
    about, _text = read_glossary()
    if named := about["pages"].get(page):
        said = _("Terms on this page: {terms}").format(terms=linked_terms(named, " · "))
        st.markdown(f":small[{said}]")


def link_terms(text: Markdown) -> Markdown:
    """Markdown in which each `[[term]]` is a link. Raises KeyError for a term that the glossary lacks."""
    known = terms()

    def link(found: re.Match[str]) -> str:
        term = found[1]
        shown, meaning = found[2] or known[term].name, as_title(known[term].meaning)
        return f'[{shown}]({entry_address(term)} "{meaning}")'

    return Markdown(LINK.sub(link, text))


def entry_address(term: str) -> str:
    return f"{PAGE}?{urlencode({'term': term, **kept_entries()}, quote_via=quote)}"


def title_terms() -> dict[str, dict[str, str]]:
    """What links in titles of views need of every term, which are English there: its entry's address, and the first
    sentence of its meaning."""
    return {
        term: {"address": entry_address(term), "meaning": SENTENCE_END.split(as_title(one.meaning))[0]}
        for term, one in terms().items()
    }


def linked_terms(terms: Iterable[str], between: str = ", ") -> Markdown:
    return link_terms(Markdown(between.join(f"[[{term}]]" for term in terms)))


def as_title(meaning: str) -> str:
    """Formats a meaning as a single line without markup, which a title can hold."""
    bare = LINK.sub(lambda found: found[2] or found[1], meaning)
    return re.sub(r"[*`$\\]", "", " ".join(bare.split())).replace('"', "”")
