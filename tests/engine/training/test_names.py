"""Which words of the world a run and a file of data may be called by."""

from pathlib import Path

import pytest

from engine.training.run.names import LONGEST, check_name, unused_name
from pages.controls.train.user_data import file_name

WORDS = ("हिन्दी", "ภาษาไทย", "தமிழ்", "বাংলা", "العَرَبِيَّة", "علی‌رضا", "ක්‍රිෂාන්", "日本語 1", "résumé", "_a-b.c", "Ελένη")


@pytest.mark.parametrize("name", WORDS)
def test_a_word_with_its_marks_is_a_name(name: str, tmp_path: Path) -> None:
    shown = check_name(name)
    assert check_name(f" {shown} ") == shown and file_name(f"a/{shown}.csv") == f"{shown}.csv"
    (tmp_path / shown).mkdir()
    assert check_name(unused_name(shown, tmp_path)) == f"{shown} 2"


NO_WORDS = ("", ".", "a/b", "a.", "-a", "a\u200bb", "a\u200db", "a\u202eb", "\u3164", "a\nb", "🙂", "\u0301a")


@pytest.mark.parametrize("name", NO_WORDS)
def test_what_is_no_word_is_no_name_and_in_that_of_a_file_a_space(name: str) -> None:
    with pytest.raises(ValueError, match="letters, digits, spaces"):
        check_name(name)
    assert not set(file_name(name)) & set("/\u200b\u200d\u202e\u3164\n🙂")


def test_a_name_is_as_long_as_it_reads_and_as_a_disk_takes(tmp_path: Path) -> None:
    for name in ("x" * LONGEST, "é" * LONGEST, "漢" * LONGEST, "कि" * 40, "𝒜" * LONGEST):
        assert check_name(name) == name
        (tmp_path / name).mkdir()
        (tmp_path / file_name(f"{name}.csv")).touch()
        assert check_name(unused_name(name, tmp_path)).endswith(" 2")
    for name in ("x" * (LONGEST + 1), "कि" * 50):
        with pytest.raises(ValueError, match="60 characters and 240 bytes, .*; shorten it"):
            check_name(name)
