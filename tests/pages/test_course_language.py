"""A language that nobody speaks: every sentence of it stands in brackets, and no English is left outside of them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import write_po
from streamlit.testing.v1 import AppTest

from pages.controls.learn import course, words
from tests.pages.test_course import APP, LESSONS, question_of

ROOT = Path(APP).parent
LEFT, RIGHT = "⟦", "⟧"
SPOKEN = re.compile(r"[A-Za-z]{3,}")
# Names, which no language translates: of models, methods, formulas and materials of Streamlit.
NAMES = re.compile(
    r":material/\w+:|:red|:green|:small|`[^`]*`|\$[^$]*\$|\b(?:BPE|WordPiece|Unigram|RoPE|ALiBi|out|softmax|seed|stories(-bert)?)\b"
)


@pytest.fixture
def pseudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue with a language xx beside English."""
    (tmp_path / "xx").mkdir()
    (tmp_path / "en").symlink_to(words.CATALOGUE / "en")
    for path in (words.CATALOGUE / "en").glob("*.md"):
        (tmp_path / "xx" / path.name).write_text(bracket_text(path.read_text(encoding="utf-8")), encoding="utf-8")
    catalogue = Catalog()
    for _, _, message, _, _ in extract_from_dir(ROOT / "pages", keywords={"_": None}):
        text = message if isinstance(message, str) else message[0]
        catalogue.add(text, LEFT + text + RIGHT)
    with (tmp_path / "xx" / "messages.po").open("wb") as file:
        write_po(file, catalogue)
    monkeypatch.setattr(words, "CATALOGUE", tmp_path)


def bracket_text(said: str) -> str:
    """A text of the catalogue whose title and paragraphs stand in brackets."""
    said = re.sub(r'^title = "(.*)"', rf'title = "{LEFT}\1{RIGHT}"', said, flags=re.MULTILINE)
    _, head, body = said.split(words.FENCE, 2)
    heading = rf"## \1 | {LEFT}\1{RIGHT}\n" if "[pages]" in head else rf"## {LEFT}\1{RIGHT}\n"
    body = re.sub(r"^## (.*)$", heading, body.strip(), flags=re.MULTILINE)
    parts = [one if one.startswith("## ") else LEFT + one + RIGHT for one in re.split(r"\n\n+", body)]
    return words.FENCE + head + words.FENCE + "\n\n".join(parts)


def sentences(app: AppTest) -> Iterator[str]:
    """What a reader sees of words: not the data, which are the reader's own and the models'."""
    for kind in ("markdown", "caption", "info", "success", "warning"):
        yield from (one.value for one in getattr(app, kind))
    for kind in ("button", "text_input", "number_input", "selectbox", "slider", "select_slider", "toggle", "expander"):
        yield from (one.label or "" for one in app.get(kind))
    for group in app.button_group:
        if not (group.key or "").endswith(" said"):
            yield from group.options


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_says_nothing_that_a_language_cannot_say(name: str, pseudo: None) -> None:
    app = AppTest.from_file(APP, default_timeout=60)
    app.query_params["lesson"], app.query_params["lang"] = name, "xx"
    app.switch_page(course.COURSE).run()
    seen = set(sentences(app))
    app.button(key=f"{question_of(app)} show").click().run()
    seen |= set(sentences(app))
    views = next((group for group in app.button_group if (group.key or "").endswith(("-view", "-way"))), None)
    for option in views.options if views else []:
        app.button_group(key=views.key).set_value(option).run()
        assert not app.exception, app.exception
        seen |= set(sentences(app))
    assert any(LEFT in one for one in seen)
    assert [one for one in seen if SPOKEN.search(NAMES.sub("", without_brackets(one)))] == []


def without_brackets(said: str) -> str:
    """What stands outside of all brackets, which may stand in each other."""
    while (rest := re.sub(f"{LEFT}[^{LEFT}{RIGHT}]*{RIGHT}", "", said)) != said:
        said = rest
    return said
