"""Markdown as Streamlit draws it, and the text of others in it: names, addresses, files, messages of exceptions.

A backslash keeps a character from being markup. What Streamlit, and GitHub's flavour, look for in the finished text
(links, icons, arrows) a backslash does not stop: an invisible WORD JOINER parts it.
"""

from __future__ import annotations

import re

JOINER = "\N{WORD JOINER}"
MARKUP = re.compile(
    r"[\\`*{}\[\]()<>#|~$&]|(?<![^\W_])_|_(?![^\W_])|:(?=\S|$)|^[-+](?=[-\s]|$)|^=|^\d+(?=\.(?:\s|$))", re.MULTILINE
)  # an underscore within a word is none
FOUND_IN_TEXT = re.compile(
    r"""(?<=:)(?=//|material/|[\w+-]+(?::|$))  # an address with its protocol, an icon, an emoji
    |(?<=\bwww)(?=\.)|(?<=@)(?=[\w-]+\.)       # an address without, and one of e-mail
    |(?<=(?<!\S)[-<>~])(?=(?:[-=>]|->)(?!\S))    # arrows and signs: -> <- <-> -- >= <= ~=""",
    re.IGNORECASE | re.VERBOSE,
)


class Markdown(str):
    """Markdown of Loupe's own, in which every text of others is escaped: `escape_markdown` leaves it as it is."""


def escape_markdown(text: object) -> Markdown:
    """Markdown that reads as the text itself, whatever stands in it; line breaks stay."""
    if isinstance(text, Markdown):
        return text
    lines = re.sub(r"\r\n?", "\n", str(text))
    unindented = re.sub(r"(?<=\n)[ \t]+|\A[ \t]*(?=[ \t])", "", lines).replace("\t", " ")
    return Markdown(MARKUP.sub(_escape, FOUND_IN_TEXT.sub(JOINER, unindented)))


def code_markdown(text: object) -> Markdown:
    """The text as code in a line; it may hold backticks itself."""
    line = " ".join(str(text).split("\n")).replace(":material/", f":{JOINER}material/")
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    padded = f" {line} " if line.startswith("`") or line.endswith("`") or not line.strip() else line
    return Markdown(fence + padded + fence)


def _escape(found: re.Match[str]) -> str:
    sign = found[0]
    return sign + "\\" if sign[-1].isdigit() else "\\" + sign
