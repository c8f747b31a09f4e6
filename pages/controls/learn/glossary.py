"""The glossary: what a term means, in one place. `[[term]]` in a text is a link to it, whose title says so too."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pages.controls.learn.words import read_text

PAGE = "/glossary"
LINK = re.compile(r"\[\[([^\]|]+)(?:\|([^\]]+))?\]\]")  # [[term]] or [[term|as it reads]]


def terms() -> Mapping[str, str]:
    """Term -> its meaning, in Markdown, in the order of the alphabet."""
    _, text = read_text("glossary.md")
    entries = [part.partition("\n") for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]
    return {name.strip(): body.strip() for name, _, body in sorted(entries, key=lambda one: one[0].lower())}


def link_terms(text: str) -> str:
    """Markdown in which each `[[term]]` is a link. Raises KeyError for a term that the glossary lacks."""
    known = terms()

    def link(found: re.Match[str]) -> str:
        term, shown = found[1], found[2] or found[1]
        meaning = as_title(known[term])
        return f'[{shown}]({PAGE}?term={term.replace(" ", "%20")} "{meaning}")'

    return LINK.sub(link, text)


def as_title(meaning: str) -> str:
    """One line without marks, as a title can have it."""
    bare = LINK.sub(lambda found: found[2] or found[1], meaning)
    return re.sub(r"[*`$\\]", "", " ".join(bare.split())).replace('"', "”")
