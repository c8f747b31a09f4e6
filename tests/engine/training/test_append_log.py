from pathlib import Path

from engine.training.run.append_log import LogPosition, read_appended, whole_lines
from engine.training.run.atomic import replace_atomically


def test_only_whole_lines_behind_the_place_are_read(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    assert read_appended(path, LogPosition(), whole_lines).data == b""
    path.write_bytes(b"one\ntwo\nhal")
    first = read_appended(path, LogPosition(), whole_lines)
    assert (first.data, first.anew) == (b"one\ntwo\n", False)
    with path.open("ab") as file:
        file.write(b"f\nfour\n")
    second = read_appended(path, first.place, whole_lines)
    assert (second.data, second.anew) == (b"half\nfour\n", False)
    assert read_appended(path, second.place, whole_lines).data == b""


def test_a_file_that_was_replaced_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"one\ntwo\nthree\n")
    place = read_appended(path, LogPosition(), whole_lines).place
    for text in (b"one\n", b"one\n2\n" + b"more and more\n" * 9):  # shorter, and longer but different
        with replace_atomically(path) as partial:
            partial.write_bytes(text)
        again = read_appended(path, place, whole_lines)
        assert (again.data, again.anew) == (text, True)


def test_a_file_that_was_rewritten_in_place_is_noticed_by_what_stood_before(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\nc\n")
    place = read_appended(path, LogPosition(), whole_lines).place
    path.write_bytes(b"x\ny\nz\nw\n")
    again = read_appended(path, place, whole_lines)
    assert (again.data, again.anew) == (b"x\ny\nz\nw\n", True)


def test_a_file_that_is_gone_is_an_empty_one_anew(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n")
    place = read_appended(path, LogPosition(), whole_lines).place
    path.unlink()
    again = read_appended(path, place, whole_lines)
    assert (again.data, again.place, again.anew) == (b"", LogPosition(), True)
