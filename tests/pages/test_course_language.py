"""Languages of the course: what each has to say as English does, and one that nobody speaks.

Every sentence of the latter stands in brackets, and no English is left outside of them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from string import Formatter

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import write_po
from streamlit.testing.v1 import AppTest

from pages.controls.learn import course, words
from pages.controls.learn.glossary import LINK, linked_terms
from pages.controls.menu import entries
from pages.controls.share.hiding import hideable_names
from tests.pages.test_course import APP, LESSONS, MOST_WORDS, opened, question_of
from views.core.markdown import Markdown, escape_markdown

ROOT = Path(APP).parent
LANGUAGES = [lang for lang in words.languages(words.CATALOGUE) if lang != words.ENGLISH]
SPACED = re.compile(r"[^\W\d_]")  # a word has a letter; French sets a space before its colon
LEFT, RIGHT = "⟦", "⟧"
GLOSSARY = "glossary"
SPOKEN = re.compile(r"[A-Za-z]{3,}")
# Names, which no language translates: of models, methods, formulas and materials of Streamlit.
NAMES = re.compile(
    r":material/\w+:|:red|:green|:small|`[^`]*`|\$[^$]*\$|\b(?:BPE|WordPiece|Unigram|RoPE|ALiBi|out|softmax|seed|stories(-bert)?|everyday)\b"
)


@pytest.fixture
def pseudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue and the lessons with a language xx beside English."""
    copytree(course.LESSONS, tmp_path / "lessons")
    copytree(words.CATALOGUE / "en", tmp_path / "xx")
    for path in [tmp_path / "xx" / "glossary.md", *(tmp_path / "lessons").glob("*/en.md")]:
        other = path if path.parent.name == "xx" else path.with_name("xx.md")
        other.write_text(bracket_text(path.read_text(encoding="utf-8")), encoding="utf-8")
    for path in (tmp_path / "lessons").glob("*/teacher.en.md"):
        note = re.sub("^## (.*)$", rf"## {LEFT}\1{RIGHT}", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        path.with_name("teacher.xx.md").write_text(bracket_paragraphs(note), encoding="utf-8")
    catalogue = Catalog()
    for text in extracted():
        one, *many = [text] if isinstance(text, str) else text
        catalogue.add(text, tuple(LEFT + each + RIGHT for each in text) if many else LEFT + one + RIGHT)
    with (tmp_path / "xx" / "messages.po").open("wb") as file:
        write_po(file, catalogue)
    monkeypatch.setattr(words, "CATALOGUE", tmp_path)
    monkeypatch.setattr(course, "LESSONS", tmp_path / "lessons")


def extracted() -> set[str | tuple[str, str]]:
    """What pybabel finds in the code for somebody who translates it: sentences, and those of one and of many."""
    found = extract_from_dir(ROOT / "pages", keywords={"_": None, "_n": (1, 2)})
    return menu_words() | {
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


# --- languages that are there ---


def texts(lang: str) -> dict[str, tuple[dict, str]]:
    """The glossary and the lessons that a language has, by their folders."""
    paths = [words.CATALOGUE / lang / "glossary.md", *(course.LESSONS / name / f"{lang}.md" for name in LESSONS)]
    there = {path.parent.name: path for path in paths if path.is_file()}
    return {name if name != lang else GLOSSARY: words.parse_text(path, lang) for name, path in there.items()}


def place_of(about: dict) -> dict:
    """What a text says of itself, but for what is to be read."""
    inside = {key: said for key, said in about.get("inside", {}).items() if key != "title"}
    return {key: said for key, said in about.items() if key != "title"} | {"inside": inside}


def terms_of(text: str) -> list[str]:
    return sorted(re.findall(r"^## ([^|\n]*[^|\s])", text, flags=re.MULTILINE))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_what_a_language_has_stands_at_the_place_of_english(lang: str) -> None:
    english, other = texts(words.ENGLISH), texts(lang)
    assert set(other) <= set(english)  # what it lacks is English
    for name, (about, text) in other.items():
        assert place_of(about) == place_of(english[name][0]), name
        if name == GLOSSARY:
            assert terms_of(text) == terms_of(english[name][1])
        else:
            spoken = re.sub(r"\$[^$]+\$", "", LINK.sub(r"\2", text.partition(course.DEEPER)[0]).replace("$$", "$"))
            assert len([one for one in spoken.split() if SPACED.search(one)]) <= MOST_WORDS, name
            assert about["title"] != english[name][0]["title"] and course.DEEPER in text, name
        linked = {found[1] for found in LINK.finditer(text)}
        assert linked == {found[1] for found in LINK.finditer(english[name][1])}, name


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_sentence_keeps_the_placeholders_of_its_english_one(lang: str) -> None:
    said = words.messages(words.CATALOGUE, lang)
    assert said and menu_words() <= set(said)
    every = [(one, form) for one, other in said.items() for form in ([other] if isinstance(other, str) else other)]
    assert [pair for pair in every if placeholders(pair[0]) != placeholders(pair[1])] == []


def placeholders(sentence: str) -> list[tuple[str, str | None, str | None]]:
    found = Formatter().parse(sentence) if "{" in sentence else ()
    return sorted({(name, spec, as_what) for _, name, spec, as_what in found if name is not None}, key=str)


def test_pybabel_finds_every_sentence_of_the_code() -> None:
    """It reads no f-string: a sentence in one stays English in every language."""
    found = extracted()
    for path in sorted((ROOT / "pages").rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("_", "_n"):
                said = tuple(map(ast.literal_eval, call.args[: len(call.func.id)]))  # of one, and with _n of many
                assert (said if call.func.id == "_n" else said[0]) in found, f"{path.name}:{call.lineno}"


def test_numbers_and_plurals_are_those_of_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(lang: str) -> list[str]:
        monkeypatch.setattr(words, "language", lambda: lang)
        many = [
            words.translate_count("{count} token of {size}", "{count} tokens of {size}", count) for count in (0, 1, 2)
        ]
        return [
            words.translate("mean {mean:.3g}").format(mean=-1234.5), words.numeral(1234567.25, ",.1f"),
            words.numerals([0.5, 2], ".1f"), words.numeral(0.256, ".1%"),
            *(one.format(count=2, size="7.0") for one in many),
        ]  # fmt: skip

    english = ["mean -1.23e+03", "1,234,567.2", "0.5, 2.0", "25.6%"]
    assert written("en") == [*english, "2 tokens of 7.0", "2 token of 7.0", "2 tokens of 7.0"]
    assert written("fr")[1:] == [
        "1\u202f234\u202f567,2", "0,5 ; 2,0", "25,6\xa0%", "2 jeton sur 7.0", "2 jeton sur 7.0", "2 jetons sur 7.0"
    ]  # fmt: skip
    assert written("fr")[0].endswith("-1,23e+03")


def test_a_sentence_escapes_texts_once_and_keeps_markdown() -> None:
    said = words.translate("{term} · {name} · {escaped}")
    link = Markdown("[token](/glossary?term=token)")
    assert said.format(term=link, name="a*b", escaped=escape_markdown("a*b")) == rf"{link} · a\*b · a\*b"
    lesson = course.read_lesson(LESSONS[0])
    app = opened(lesson=lesson.name)
    (shown,) = [one.value for one in app.markdown if one.value.startswith(":small[Terms: ")]
    assert linked_terms(lesson.terms, " · ") in shown


def test_a_lesson_speaks_french_and_the_map_offers_it() -> None:
    app = opened()
    choice = app.button_group(key="language choice")
    assert (choice.options, choice.value) == (["English", "Français"], "en")
    choice.set_value("fr").run()
    assert not app.exception and app.query_params["lang"] == "fr"
    assert any("Le cours" in one.value for one in app.markdown)

    app = opened(lesson="scaling", lang="fr")
    app.button(key=f"{question_of(app)} show").click().run()
    assert not app.exception
    assert app.info[0].value.startswith("Réponse\xa0: ")
    said = " ".join(sentences(app)).replace("\xa0", " ")
    assert "Un [score](/glossary?term=score" in said
    assert "Pour d = 64 :" in said and "deux entraînements" in said
