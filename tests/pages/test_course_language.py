"""Languages of the course: what each has to say as English does."""

import ast
import re
from string import Formatter

import pytest

from pages.controls import words
from pages.controls.learn import course
from pages.controls.learn.glossary import LINK, linked_terms
from tests.pages.pseudo import ROOT, extracted, menu_words, sentences
from tests.pages.test_course import LESSONS, MOST_WORDS, opened, question_of
from views.core.markdown import Markdown, escape_markdown

LANGUAGES = [lang for lang in words.languages(words.CATALOGUE) if lang != words.ENGLISH]
SPACED = re.compile(r"[^\W\d_]")  # a word has a letter; French sets a space before its colon
GLOSSARY = "glossary"


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
            words.translate("mean {mean:.3g}").format(mean=-1234.5),
            words.numeral(1234567.25, ",.1f"),
            words.numerals([0.5, 2], ".1f"),
            words.numeral(0.256, ".1%"),
            *(one.format(count=2, size="7.0") for one in many),
        ]

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
    assert " Réponse\xa0: " in app.info[0].value
    said = " ".join(sentences(app)).replace("\xa0", " ")
    assert "Un [score](/glossary?term=score" in said
    assert "Pour d = 64 :" in said and "deux entraînements" in said
    app.query_params.clear()  # as the menu does
    app.switch_page("pages/learn/glossary.py").run()
    assert not app.exception and app.session_state[words.CHOSEN.name] == "fr"
