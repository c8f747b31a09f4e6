"""A language of the course that nobody speaks: every sentence stands in brackets, and no English outside of them."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import copytree

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import write_po
from streamlit.testing.v1 import AppTest

from pages.controls import words
from pages.controls.learn import course
from pages.controls.menu import entries
from pages.controls.share.hiding import hideable_names

ROOT = Path(__file__).parents[2]
LEFT, RIGHT = "⟦", "⟧"
SPOKEN = re.compile(r"[A-Za-z]{3,}")
# Names, which no language translates: of models, methods, formulas and materials of Streamlit.
NAMES = re.compile(
    r":material/\w+:|:red|:green|:small|`[^`]*`|\$[^$]*\$|\b(?:BPE|WordPiece|Unigram|RoPE|ALiBi|out|softmax|seed|stories(-bert)?|everyday)\b"
)


def write_texts(folder: Path) -> None:
    """Writes a catalogue into `folder`, and the lessons into its folder lessons, with a language xx beside English."""
    copytree(course.LESSONS, folder / "lessons")
    copytree(words.CATALOGUE / "en", folder / "xx")
    for path in [folder / "xx" / "glossary.md", *(folder / "lessons").glob("*/en.md")]:
        other = path if path.parent.name == "xx" else path.with_name("xx.md")
        other.write_text(bracket_text(path.read_text(encoding="utf-8")), encoding="utf-8")
    for path in (folder / "lessons").glob("*/teacher.en.md"):
        note = re.sub("^## (.*)$", rf"## {LEFT}\1{RIGHT}", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        path.with_name("teacher.xx.md").write_text(bracket_paragraphs(note), encoding="utf-8")
    catalogue = Catalog()
    for text in extracted():
        one, *many = [text] if isinstance(text, str) else text
        catalogue.add(text, tuple(LEFT + each + RIGHT for each in text) if many else LEFT + one + RIGHT)
    with (folder / "xx" / "messages.po").open("wb") as file:
        write_po(file, catalogue)


@cache
def extracted() -> frozenset[str | tuple[str, str]]:
    """What pybabel finds in the code for somebody who translates it: sentences, and those of one and of many."""
    found = extract_from_dir(ROOT / "pages", keywords={"_": None, "_n": (1, 2)})
    return frozenset(menu_words()) | {
        message if isinstance(message, str) else (message[0], message[1]) for _, _, message, _, _ in found
    }


def menu_words() -> set[str]:
    """Titles and groups of the menu, and what a class link of the course can hide."""
    hidden = {hideable_names()[key] for key in (course.FIELDS, course.SHOW, course.TEACHERS)}
    return {word for one in entries() for word in (one.title, one.group)} | hidden


def bracket_text(said: str) -> str:
    """A text of the catalogue whose title and paragraphs stand in brackets."""
    said = re.sub(r'^title = "(.*)"', rf'title = "{LEFT}\1{RIGHT}"', said, flags=re.MULTILINE)
    _, head, body = said.split(words.FENCE, 2)
    heading = rf"## \1 | {LEFT}\1{RIGHT}\n" if "[pages]" in head else rf"## {LEFT}\1{RIGHT}\n"
    body = re.sub(r"^## (.*)$", heading, body.strip(), flags=re.MULTILINE)
    return words.FENCE + head + words.FENCE + bracket_paragraphs(body)


def bracket_paragraphs(said: str) -> str:
    parts = re.split(r"\n\n+", said.strip())
    return "\n\n".join(one if one.startswith("## ") else LEFT + one + RIGHT for one in parts)


def sentences(app: AppTest) -> Iterator[str]:
    """What a reader sees of words: not the data, which are the reader's own and the models'."""
    for kind in ("markdown", "caption", "info", "success", "warning"):
        yield from (one.value for one in getattr(app, kind))
    for kind in ("button", "text_input", "number_input", "selectbox", "slider", "select_slider", "toggle", "expander"):
        yield from (one.label or "" for one in app.get(kind))
    for group in app.button_group:
        if not (group.key or "").endswith(" said"):
            yield from group.options


def english_of(said: str) -> list[str]:
    """Words of English outside of all brackets, which may stand in each other."""
    while (rest := re.sub(f"{LEFT}[^{LEFT}{RIGHT}]*{RIGHT}", "", said)) != said:
        said = rest
    return SPOKEN.findall(NAMES.sub("", said))
