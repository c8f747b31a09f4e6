"""The teacher's note of a lesson: its goal, a plan of ten minutes, the misconception that it removes, two exercises."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from markdown_it import MarkdownIt

PRINTED = """<!doctype html>
<html lang="{lang}">
<meta charset="utf-8">
<title>Loupe</title>
<style>
@page {{ size: A4; margin: 20mm }}
body {{ font: 11pt/1.45 Georgia, serif; max-width: 40em; margin: 2em auto; color: #111; background: #fff }}
h1 {{ font-size: 16pt; border-bottom: 1px solid #999; padding-bottom: 4pt }}
h2 {{ font-size: 12pt; margin: 14pt 0 2pt; break-after: avoid }}
article {{ break-after: page }}
article:last-child {{ break-after: auto }}
code {{ font-size: 10pt }}
</style>
{notes}
</html>
"""


def print_notes(notes: Iterable[tuple[str, str]], lang: str) -> str:
    """A page of HTML for the printer: each (title, note in Markdown) on a sheet of its own."""
    render = MarkdownIt("commonmark").render
    articles = (f"<article><h1>{escape(title)}</h1>\n{render(note)}</article>" for title, note in notes)
    return PRINTED.format(lang=lang, notes="\n".join(articles))
