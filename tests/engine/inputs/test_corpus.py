"""A file of texts is read by paragraphs, lines or a column, and what cannot be read is one sentence."""

from pathlib import Path

import pytest

from engine.checkpoints import load
from engine.inputs.corpus import MOST, Corpus, corpus_readings, legible_texts, read_corpus


@pytest.mark.parametrize(
    ("name", "text", "texts"),
    [
        ("a.txt", "One\ntwo.\n\n \nThree.\n", ("One\ntwo.", "Three.")),
        ("a.txt", "One.\nTwo.\n", ("One.", "Two.")),
        ("a.csv", "n,review\n1,Good\n2,Bad\n", ("Good", "Bad")),
        ("a.jsonl", '{"n": 1, "review": "Good"}\n', ("Good",)),
    ],
)
def test_texts_are_paragraphs_lines_or_a_column(name: str, text: str, texts: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_corpus(tmp_path / name, "review").texts == texts


@pytest.mark.parametrize(
    ("name", "raw", "sentence"),
    [
        ("a.txt", b" \n", "it is empty; choose a file with text in it"),
        ("a.txt", b"\xff\xfe\x00", "must be UTF-16 throughout, got 0x00"),
        ("a.csv", b"text\n", "must have at least one row of data"),
        ("a.png", b"text", "save it as one of them"),
    ],
)
def test_a_file_without_texts_is_one_sentence(name: str, raw: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(ValueError, match=sentence):
        read_corpus(tmp_path / name)


def test_of_a_text_without_end_no_more_is_cut_into_tokens_than_is_looked_at() -> None:
    checkpoint = load("stories")
    (text,) = legible_texts(checkpoint, Corpus("a.txt", ("the dog " * 5_000_000,)), 4)
    assert len(text) == MOST
    (reading,) = corpus_readings(checkpoint, [text], 128)
    assert len(reading.read) == 128
