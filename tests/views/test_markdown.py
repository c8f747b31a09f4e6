"""Texts of others as Markdown: none of them becomes markup, and each reads as it was written."""

import re

import pytest

from views.core.markdown import JOINER, Markdown, code_markdown, escape_markdown

HOST = "http://elsewhere.example"
LINKS = [
    f"![x]({HOST}/p.png)",
    f"[x]({HOST})",
    f"[x][1]\n\n[1]: {HOST}",
    f"<{HOST}>",
    HOST,
    "https://elsewhere.example/a?b=c",
    "www.elsewhere.example",
    "WWW.elsewhere.example",
    "a@elsewhere.example",
    "<a@elsewhere.example>",
    f"({HOST})",
    f"mailto:a@elsewhere.example {HOST}",
    f"![{HOST}][{HOST}]",
    f"[![a]({HOST}/a.png)]({HOST})",
    "//elsewhere.example",
]
DRAWN = [
    ":material/home:",
    ":material/home",
    ":streamlit:",
    ":smile:",
    ":+1:",
    ":-1:",
    "a:smile:b",
    "x :red[y]",
    ":red-background[y]",
    ":small[y]",
    ":color[y]{foreground='red'}",
    ":blue-badge[y]",
    "::name[x]",
    ":::note\nx\n:::",
    "-> x",
    "<- x",
    "x <-> y",
    "x -- y",
    "x >= y",
    "x <= y",
    "x ~= y",
    "--",
    "->",
]
MARKED = [
    "$x^2$",
    "$$x$$",
    r"\(x\)",
    "<b>x</b>",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "&lt;",
    "&#33;",
    "`x`",
    "```\nx\n```",
    "~~~\nx\n~~~",
    "~~x~~",
    "~x~",
    "*x*",
    "**x**",
    "_x_",
    "__x__",
    "# x",
    "###### x",
    "x\n===",
    "x\n---",
    "---",
    "***",
    "___",
    "- x",
    "+ x",
    "* x",
    "1. x",
    "12) x",
    "> x",
    "| a | b |\n|--|--|\n| c | d |",
    "a|b",
    "    x",
    "x\n    y",
    "x\n\n\ty",
    "[^1]",
    "[ ] x",
    "- [x] y",
    "\\",
    "\\*x\\*",
    "x\\",
    "*",
    "_",
    "a_b_c",
    "[",
    "]",
    "![",
]
PAYLOADS = [*LINKS, *DRAWN, *MARKED, *(f"{one} {other}" for one, other in zip(LINKS, MARKED, strict=False))]


def read(markdown: str) -> str:
    """The text that CommonMark makes of Markdown in which nothing is markup."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown)


def test_a_text_reads_as_it_is_and_holds_no_markup(subtests: pytest.Subtests) -> None:
    for payload in PAYLOADS:
        with subtests.test(payload=payload):
            escaped = escape_markdown(payload)
            assert read(escaped).replace(JOINER, "") == re.sub(r"(?<=\n)[ \t]+|^ +(?= )", "", payload)
            bare = r"(?<!\\)(?:\\\\)*[`*{}\[\]()<>#|~$&]|(?<![^\W_]|\\)_|(?<!\\)_(?![^\W_])|(?<!\\):\S"
            assert not re.search(bare, escaped), "a sign without its backslash"
            assert not re.search(r"^\s*(?:[-+](?:\s|$)|--|=|\d+[.)](?:\s|$))", escaped, re.MULTILINE), (
                "a list, or the line below a heading"
            )
            found_in_text = r"https?://|\bwww\.|@[\w-]+\.|:material/|:[\w+-]+:|(?<!\S)(?:<->|->|<-|--|>=|<=|~=)(?!\S)"
            assert not re.search(found_in_text, read(escaped), re.IGNORECASE), (
                "what Streamlit looks for in the finished text"
            )


def test_code_ends_where_it_is_meant_to(subtests: pytest.Subtests) -> None:
    for payload in PAYLOADS:
        with subtests.test(payload=payload):
            fence = (code := code_markdown(payload))[: len(code) - len(code.lstrip("`"))]
            inner = code[len(fence) : -len(fence)]
            assert code.endswith(fence) and len(fence) not in map(len, re.findall("`+", inner)) and "\n" not in code
            assert not inner.startswith("`") and not inner.endswith("`")


def test_what_is_escaped_is_not_escaped_again() -> None:
    once = escape_markdown("a_b")
    assert escape_markdown(once) is once and escape_markdown(Markdown("**a**")) == "**a**"
    assert escape_markdown(ValueError("a*b")) == r"a\*b"
    assert escape_markdown("1.667") == "1.667" and escape_markdown("-2") == "-2"
    assert JOINER not in escape_markdown("hub:org/name, run: name@11, 1.5 - 2"), "what is copied from a message stays"
