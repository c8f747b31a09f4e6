"""The glossary: what a term means, in one place. `[[term]]` in a text is a link to it, whose title says so too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from unicodedata import normalize
from urllib.parse import quote, urlencode

import streamlit as st

from pages.controls import words
from pages.controls.words import kept_entries
from pages.controls.words import translate as _
from views.core.markdown import Markdown

PAGE = "/glossary"
SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[^\W\d_a-z])")
FORMULA = re.compile(r"\$([^$]+)\$")
PLAIN = (  # of TeX, one after the other
    (r"\\text\{([^{}]*)\}", r"\1"), (r"\\sqrt\{(\w+)\}", r"√\1"), (r"\\,", " "), (r"\\sum", "Σ"), (r"\^\\top", "ᵀ"),
    (r"\^\{([^\W_]+)\}", r"^\1"), (r"\^\{([^{}]+)\}", r"^(\1)"), (r"\\([a-z]+)", r"\1"),
)  # fmt: skip
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
    known, kept = terms(), kept_entries()

    def link(found: re.Match[str]) -> str:
        term = found[1]
        shown, meaning = found[2] or known[term].name, as_title(known[term].meaning)
        return f'[{shown}]({entry_address(term, kept)} "{meaning}")'

    return Markdown(LINK.sub(link, text))


def entry_address(term: str, kept: Mapping[str, str]) -> str:
    """`kept` are the `kept_entries()`."""
    return f"{PAGE}?{urlencode({'term': term, **kept}, quote_via=quote)}"


def title_terms() -> dict[str, dict[str, str]]:
    """Entries for links in titles of views, of every term, which are English there: its entry's address, and the first
    sentence of its meaning."""
    return parse_titles(read_glossary()[1], tuple(kept_entries().items()))


@lru_cache(maxsize=32)  # every page has them, at every rerun
def parse_titles(text: str, kept: tuple[tuple[str, str], ...]) -> dict[str, dict[str, str]]:
    return {
        term: {"address": entry_address(term, dict(kept)), "meaning": SENTENCE_END.split(as_title(one.meaning))[0]}
        for term, one in parse_terms(text).items()
    }


def linked_terms(terms: Iterable[str], between: str = ", ") -> Markdown:
    return link_terms(Markdown(between.join(f"[[{term}]]" for term in terms)))


def as_title(meaning: str) -> str:
    """Formats a meaning as a single line without markup, which a title can hold."""
    bare = LINK.sub(lambda found: found[2] or found[1], meaning)
    plain = FORMULA.sub(lambda found: as_plain_formula(found[1]), bare)
    return re.sub(r"[*`]", "", " ".join(plain.split())).replace('"', "”")


def as_plain_formula(tex: str) -> str:
    """The TeX of the glossary as letters and signs in one line: `\\sqrt{d_\\text{head}}` as √d_head."""
    for sought, sign in PLAIN:
        tex = re.sub(sought, sign, tex)
    return tex
