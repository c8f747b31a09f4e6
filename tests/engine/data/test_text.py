"""Plain text: every character is kept, and what cannot be read is said in one sentence."""

from pathlib import Path

import pytest

from engine.data.text import chunks, python_reference, read_encoded, read_text, split

PARAGRAPHS = "\n\n".join(f"Paragraph {number}.\nIts second line." for number in range(200))


def test_line_ends_and_the_byte_order_mark_are_normalised(tmp_path: Path) -> None:
    file = tmp_path / "windows.txt"
    file.write_bytes("\ufeffGrüße\r\nand\rmore\n".encode())
    assert read_text(file) == "Grüße\nand\nmore\n"


def test_a_file_in_another_encoding_is_read_and_one_in_none_is_refused_with_the_byte(tmp_path: Path) -> None:
    file = tmp_path / "latin.txt"
    file.write_bytes("one\r\ncafé au lait, s’il vous plaît".encode("cp1252"))
    assert read_encoded(file) == ("one\ncafé au lait, s’il vous plaît", "Windows-1252")
    file.write_bytes(b"one\r\ncaf\xe9 \x81 lait")
    with pytest.raises(ValueError, match=r"latin\.txt must be UTF-8 .*, got 0xe9 in line 2 \(byte 9 of .*; correct"):
        read_text(file)


@pytest.mark.parametrize("content", [b"", b" \n\t\n", b"\xef\xbb\xbf"])
def test_a_file_without_text_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "blank.txt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"blank\.txt should contain text, but it is empty"):
        read_text(file)


def test_the_python_reference_is_large_and_the_same_each_time() -> None:
    text = python_reference()
    assert len(text) > 200_000
    assert text == python_reference()
    assert 'The "if" statement is used for conditional execution' in text


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5])
def test_the_split_loses_nothing_and_cuts_at_a_paragraph(share: float) -> None:
    train, held_out = split(PARAGRAPHS, share)
    assert train + held_out == PARAGRAPHS
    assert train.endswith("\n\n") and held_out.startswith("Paragraph ")
    assert abs(len(held_out) / len(PARAGRAPHS) - share) < 0.01


def test_without_paragraphs_the_split_falls_back_to_lines_then_to_characters() -> None:
    assert split("ab\ncd\nef\ngh\n", 0.25) == ("ab\ncd\nef\n", "gh\n")
    assert split("abcdefghij", 0.2) == ("abcdefgh", "ij")


@pytest.mark.parametrize(("text", "share"), [("ab", 0.0), ("ab", 1.0), ("a", 0.5), ("", 0.5)])
def test_a_split_with_an_empty_side_is_refused(text: str, share: float) -> None:
    with pytest.raises(ValueError, match="held_out should be|cannot be split"):
        split(text, share)


@pytest.mark.parametrize("longest", [1, 7, 100, 2000])
def test_chunks_fit_and_keep_every_letter(longest: int) -> None:
    text = PARAGRAPHS + "\n\n" + "x" * 500 + "\n\n\n\n" + "many words " * 50
    documents = chunks(text, longest)
    assert max(map(len, documents)) <= longest
    assert all(document.strip() for document in documents)
    assert "".join("".join(documents).split()) == "".join(text.split())


def test_whole_paragraphs_stay_together_while_they_fit() -> None:
    assert chunks("one\n\ntwo\n\nthree", 9) == ["one\n\ntwo", "three"]
    assert chunks("one two three", 8) == ["one two", "three"]


def test_chunks_of_no_length_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 character, but it is 0"):
        chunks("text", 0)
