"""A person's own files: what is read of each kind, and that a bad one is a sentence that names the row."""

from __future__ import annotations

import csv
import json
import resource
import time
from datetime import date
from decimal import Decimal
from io import BytesIO, StringIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet as arrow_parquet

from engine.budget import budget
from engine.data import table
from engine.data.table import KINDS, Table, parse_table, read_table

CELLS = st.text(st.characters(exclude_categories=["C"], exclude_characters="\u2028\u2029"), min_size=1, max_size=12)


def parquet(columns: dict[str, list[object]]) -> bytes:
    file = BytesIO()
    pandas.DataFrame(columns).to_parquet(file)
    return file.getvalue()


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_a_csv_is_read_whatever_separates_its_cells(separator: str) -> None:
    text = f'review{separator}stars\n"good{separator} really"{separator}5\n"two ""bad""\nlines"{separator}1\n\n'
    table = parse_table(text.encode(), "reviews.csv")
    assert table.columns == ("review", "stars") and table.count == 2
    assert table.texts("review") == (f"good{separator} really", 'two "bad"\nlines')
    assert table.texts("stars") == ("5", "1")


@given(st.lists(st.tuples(CELLS.filter(str.strip), CELLS.filter(str.strip)), min_size=1, max_size=8))
@settings(max_examples=25, deadline=None)
def test_what_pandas_writes_as_csv_jsonl_or_parquet_is_read_back(rows: list[tuple[str, str]]) -> None:
    frame = pandas.DataFrame(rows, columns=["some text", "label"])
    written = {
        ".csv": frame.to_csv(index=False).encode(),
        ".tsv": frame.to_csv(index=False, sep="\t").encode(),
        ".jsonl": frame.to_json(orient="records", lines=True).encode(),
        ".parquet": parquet({name: list(frame[name]) for name in frame}),
    }
    for kind, raw in written.items():
        table = parse_table(raw, f"rows{kind}")
        assert table.columns == ("some text", "label")
        assert list(zip(table.texts("some text"), table.texts("label"), strict=True)) == rows


def test_cells_that_a_writer_encloses_are_read_as_pandas_reads_them(subtests: pytest.Subtests) -> None:
    for extra, quoting, separator in product(
        ['said "no"', "a\tb", "two\nlines", '"', '"a"\t"b"\n', "word " * 30_000],
        [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC],
        [",", "\t"],
    ):
        with subtests.test(extra=extra[:20], quoting=quoting, separator=separator):
            frame = pandas.DataFrame(
                {"text": ["plain", extra, "“typographic”"], "label": ["x", "y", "x"], "n": [1, 2, 3]}
            )
            name = "x.tsv" if separator == "\t" else "x.csv"
            table = parse_table(frame.to_csv(index=False, sep=separator, quoting=quoting).encode(), name)
            assert table.texts("text") == tuple(frame["text"]) and table.texts("n") == ("1", "2", "3")
            if separator == "\t" and '"' in extra:
                assert table.format == "UTF-8, tabs between the columns, quotation marks around cells"


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize(
    "cells",
    [
        ['"It began', "and went on", 'until it ended"', "the next"],
        ['"It began', "and went on"],
        ['a 5" nail', "plain"],
        ['"Quoted," he said.', 'He said "yes."'],
        ['"All of it."', "plain"],
        ['"', '""', "plain"],
        ["word " * 30_000 + '"', "plain"],
    ],
)
def test_a_file_with_tabs_that_has_no_quoting_has_its_marks_as_letters(cells: list[str], header: bool) -> None:
    """As pandas reads it with quoting=csv.QUOTE_NONE, which is how GLUE's files are read."""
    raw = "text\tlabel\n" * header + "".join(f"{cell}\t{n}\n" for n, cell in enumerate(cells))
    told = {"sep": "\t", "quoting": csv.QUOTE_NONE, "dtype": str, "header": 0 if header else None}
    expected = pandas.read_csv(StringIO(raw), keep_default_na=False, **told)
    table = parse_table(raw.encode(), "x.tsv", header)
    assert table.rows == tuple(expected.itertuples(index=False, name=None)) and table.count == len(cells)
    assert table.format == "UTF-8, tabs between the columns, quotation marks are letters"


def test_lines_of_a_text_file_are_rows_and_a_file_without_a_header_has_numbered_columns(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_bytes("\ufeffone\r\n\r\n  two  \n".encode())
    assert read_table(tmp_path / "lines.txt").texts("text") == ("one", "two")
    bare = parse_table(b"a,b\nc,d\n", "bare.csv", header=False)
    assert bare.columns == ("column 1", "column 2") and bare.texts("column 2") == ("b", "d")


@pytest.mark.parametrize(("encoding", "told"), [("utf-8", "UTF-8"), ("utf-16", "UTF-16"), ("cp1252", "Windows-1252")])
def test_a_text_is_read_in_the_encoding_that_it_has(encoding: str, told: str) -> None:
    table = parse_table("word;meaning\ncafé;coffee – or a place\n".encode(encoding), "words.csv")
    assert table.texts("word") == ("café",) and table.format.startswith(told)


SENTENCES = {
    "cp1251 koi8_r cp866 iso8859_5": ("Привет мир", "Очень хороший фильм", "Плохая книга о войне"),
    "cp1253 iso8859_7": ("Καλημέρα κόσμε", "Πολύ καλή ταινία", "Ένα βιβλίο"),
    "cp1255": ("שלום עולם", "סרט טוב מאוד"),
    "cp1256": ("مرحبا بالعالم", "فيلم جيد جدا"),
    "cp1250 iso8859_2": ("Bardzo dobry film i świetna książka", "Zażółć gęślą jaźń", "Nie żałuję"),
    "cp1250 iso8859_2 ": ("Příliš žluťoučký kůň úpěl", "velmi dobrý film, škoda že krátký"),
    "cp1254": ("çok güzel bir şey", "İyi bir kitap, ağaç ılık"),
    "cp932 euc_jp": ("こんにちは世界", "とても良い映画でした"),
    "gb18030": ("你好世界", "这部电影非常好看"),
    "big5": ("你好世界", "這部電影非常好看"),
    "cp949": ("안녕하세요 세계", "정말 좋은 영화였어요"),
    "cp1252": ("déjà vu à Noël", "schöne Grüße für Zoë", "mañana ¿qué? – não há ações"),
}


def test_an_encoding_is_recognised_by_what_it_says_or_refused(subtests: pytest.Subtests) -> None:
    for encodings, rows in SENTENCES.items():
        for encoding in encodings.split():
            with subtests.test(encoding):
                raw = "".join(f'{{"text": "{row}"}}\n' for row in rows).encode(encoding)
                assert parse_table(raw, "x.jsonl").texts("text") == rows
    for encoding in ("cp850", "mac_roman"):
        with pytest.raises(ValueError, match="UTF-8 throughout, got 0x8. in line 2 .byte 7 of the file"):
            parse_table("text\ndéjà vu à Noël\n".encode(encoding), "x.txt")


def test_a_nul_is_named_by_its_place() -> None:
    for raw in (b"text\na\0b\n", b"text\na\0\xe9\n", "text\na\0".encode("utf-16")):
        with pytest.raises(ValueError, match="got a NUL .0x00. in line 2 .character 7 of the file"):
            parse_table(raw, "x.csv")


def test_a_separator_is_found_in_the_whole_file() -> None:
    rows = "".join(f"a, b;{n}\n" for n in range(60))
    later = parse_table(f"one, two;n\n{rows}a;60\n".encode(), "x.csv")
    assert later.columns == ("one, two", "n") and later.count == 61
    with pytest.raises(ValueError, match="row 61 must have 2 cells .*, got 1; .* with semicolons in it"):
        parse_table(f"one, two;n\n{rows.replace(',', '')}a\n".encode(), "x.csv")


@pytest.mark.parametrize("sign", "\v\f\x1c\x1d\x1e\x85\u2028\u2029")
def test_a_line_ends_only_at_a_line_end(sign: str) -> None:
    """As open() and every CSV and JSON Lines reader have it; str.splitlines() knows ten more ends."""
    row = f"one{sign}still one{sign}"
    lines = f"{row}\r\ntwo\n"
    assert list(StringIO(lines, newline=None)) == [f"{row}\n", "two\n"]
    assert parse_table(lines.encode(), "x.txt").texts("text") == (row, "two")
    assert parse_table(f"text\ta\n{row}\t1\r\ntwo\t2\n".encode(), "x.tsv").texts("text") == (row, "two")
    assert parse_table(f'text,a\n"{row}",1\n'.encode(), "x.csv").texts("text") == (row,)
    if not sign.isascii():  # JSON has the others as escapes
        objects = f'{{"text": "{row}"}}\n{{"text": "two"}}\n'
        assert parse_table(objects.encode(), "x.jsonl").texts("text") == (row, "two")


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("sep=;\r\na;b\r\n1,5;2\r\n", "x.csv"),
        ("\ufeffSEP=;\na;b\n1,5;2\n", "x.csv"),
        ('"sep=^"\na^b\n"1,5"^2', "x.csv"),
        ("sep=\t\na\tb\n1,5\t2\n", "x.csv"),
        ('sep=,\na,b\n"1,5",2\n', "x.tsv"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_spreadsheets_first_line_names_what_stands_between_the_columns(raw: str, name: str, encoding: str) -> None:
    table = parse_table(raw.encode(encoding), name)
    assert table.columns == ("a", "b") and table.rows == (("1,5", "2"),)


def test_lines_are_counted_with_the_one_that_names_what_stands_between_the_columns() -> None:
    with pytest.raises(ValueError, match="row 1, line 3 of the file, must be cells with semicolons between them"):
        parse_table(b'sep=;\na;b\n1;"2" 3\n', "x.csv")
    assert parse_table(b"sep=a\nb\n", "x.txt").count == 2


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("é\n".encode() + b"na\xefve", "UTF-8 throughout, got 0xef in line 2 .byte 6 of the file."),
        (b"\xe9\xe8\xea\r" + "“".encode(), "UTF-8 throughout, got 0xe9 in line 1 .byte 1 of the file."),
        ("日本\r\n日".encode() + b"\x80", "UTF-8 throughout, got 0x80 in line 2 .byte 12 of the file."),
        (b"\xef\xbb\xbfa\n\xe9", "UTF-8 throughout, got 0xe9 in line 2 .byte 6 of the file."),
        (b"a\nhalf a pair: \xed\xa0\xbd", "UTF-8 throughout, got 0xed in line 2"),
        (b"caf\xe9 \x81", "UTF-8 throughout, got 0xe9 in line 1"),  # Windows-1252 has no 0x81
        ("a\n".encode("utf-16") + b"\x3d\xd8", "UTF-16 throughout, got 0x3d in line 2"),
        ("a\n".encode("utf-16") + b"\x3d", "UTF-16 throughout, got 0x3d in line 2"),
    ],
)
def test_a_stray_byte_is_named_and_turns_no_file_into_another_encoding(raw: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=f"^the file must be {said}.*; correct that place, or save"):
        parse_table(raw, "x.txt")


@pytest.mark.parametrize("text", ["Spaß… und Gruß» für Ä™", "l’élevé\xa0» était là", "naïve", "ÄÖÜ – “quoted”"])
def test_bytes_that_are_utf8_only_by_chance_leave_a_file_in_its_own_encoding(text: str) -> None:
    table = parse_table(text.encode("cp1252"), "x.txt")
    assert table.texts("text") == (text,) and table.format.startswith("Windows-1252")


SHORT = {
    "cp1252": ("naïve", "não", "l’élevé là", "café"),
    "cp1257": ("tā nav", "aš", "Šis ir labs filmas"),
    "cp1250": ("dość", "że", "ő", "ľud"),
    "iso8859_2": ("že", "ő", "żółw", "Škoda"),
    "cp1254": ("ış", "ağaç"),
}
LONG = (
    "Você não está só: há ações e maçãs, é só isso.",
    "El niño comió mañana aquí según él; ¿qué más?",
    "L'été à Noël, ça va où? Déjà la forêt, le cœur et la fête.",
    "Der Müller grüßt schön, Öl über Ähren.",
)


def test_an_encoding_that_a_few_letters_do_not_decide_is_told_with_the_first_of_them() -> None:
    for encoding, text in ((encoding, text) for encoding, texts in SHORT.items() for text in texts):
        try:
            table = parse_table(f"one\n{text}\n".encode(encoding), "x.txt")
        except ValueError:
            continue
        assert table.texts("text")[1] == text or " (a guess: the “" in table.format, (encoding, text)
    assert parse_table("one\ntā nav\n".encode("cp1257"), "x.txt").format == (
        "Windows-1252 (a guess: the “â” in line 2 is “ā” in Windows-1257; if it must be, save the file as UTF-8)"
    )
    assert {parse_table(text.encode("cp1252"), "x.txt").format for text in LONG} == {"Windows-1252"}


@pytest.mark.parametrize("half", ["\\ud83d", "\\uDE00", "\\ude00\\ud83d"])
@pytest.mark.parametrize("line", ['{"text": "bad %s one"}', '{"text": ["a", "%s"]}', '{"%s": 1}', '{"a": {"b": "%s"}}'])
def test_half_a_surrogate_pair_is_named_by_its_row(half: str, line: str) -> None:
    raw = '{"text": "\\ud83d\\ude00"}\n' + line % half
    with pytest.raises(ValueError, match=r"^row 2 must be a JSON object: it has .ud..., half of a character"):
        parse_table(raw.encode(), "x.jsonl")
    assert parse_table(b'{"text": "\\ud83d\\ude00"}', "x.jsonl").texts("text") == ("😀",)


def test_an_object_of_lists_is_a_column_for_each_whose_first_cells_can_be_read() -> None:
    answers = [{"text": ["a cat", "cat"], "answer_start": [4, 6]}, {"text": ["b"], "answer_start": [0]}]
    table = parse_table("\n".join(json.dumps({"answers": one}) for one in answers).encode(), "rows.jsonl")
    assert table.columns == ("answers.text", "answers.answer_start")
    assert table.firsts("answers.text") == ("a cat", "b") and table.firsts("answers.answer_start") == ("4", "0")
    empty = parse_table(b'{"answers": {"text": []}}', "rows.jsonl")
    with pytest.raises(ValueError, match="^row 1 must have a text in the column 'answers.text', got nothing"):
        empty.firsts("answers.text")


def test_numbers_lists_and_what_is_missing_are_cells() -> None:
    lines = [{"n": 3, "words": ["a", "b"], "x": None}, {"n": 0.5, "words": "c d", "x": {"k": 1}, "late": True}]
    table = parse_table("\n".join(map(json.dumps, lines)).encode(), "rows.jsonl")
    assert table.columns == ("n", "words", "x", "late")
    assert table.rows == (("3", ("a", "b"), None, None), ("0.5", "c d", '{"k": 1}', "true"))
    assert table.words("words") == (("a", "b"), ("c", "d"))
    assert table.first(1) == ({"n": "3", "words": "a b", "x": "", "late": ""},)
    made = parse_table(parquet({"words": [["a", "b"]], "n": [7], "raw": [b"\x00"]}), "rows.parquet")
    assert made.columns == ("words", "n") and made.rows == ((("a", "b"), "7"),)
    assert made.format == "Parquet without 'raw', which no text can say"


def test_a_parquet_file_is_read_as_the_same_rows_in_json_lines() -> None:
    rows: list[dict[str, Any]] = [
        {
            "q": "Who é?", "n": 3, "x": 0.5, "yes": True, "none": None, "when": "2020-01-02", "price": "1.50",
            "answers": {"text": ["Ann", "a"], "start": [7, 0]}, "meta": {"lang": "é", "deep": {"k": [1, None]}},
            "turns": [{"role": "user", "say": "hé"}], "grid": [[1, 2], [3]], "scores": [0.5, 1.0], "map": {"a": 1},
        },
        {
            "q": None, "n": None, "x": None, "yes": None, "none": None, "when": None, "price": None,
            "answers": {"text": [], "start": []}, "meta": None, "turns": [], "grid": None, "scores": [], "map": None,
        },
    ]  # fmt: skip
    expected = parse_table("".join(json.dumps(row) + "\n" for row in rows).encode(), "x.jsonl")
    plain = pyarrow.Table.from_pylist(rows)
    dates = pyarrow.array([date(2020, 1, 2), None])
    kinds = {
        "q": plain["q"].combine_chunks().dictionary_encode(),
        "n": plain["n"].cast("int8"),
        "when": dates,
        "price": pyarrow.array([Decimal("1.50"), None]),
        "grid": plain["grid"].cast(pyarrow.large_list(pyarrow.list_(pyarrow.int32()))),
        "map": pyarrow.array([[("a", 1)], None], pyarrow.map_("string", "int64")),
    }
    named = {name: plain[name].combine_chunks() for name in plain.column_names}
    large = {name: each.cast(pyarrow.large_string()) if each.type == "string" else each for name, each in named.items()}
    for columns in (named, large | kinds):
        file = BytesIO()
        arrow_parquet.write_table(pyarrow.table(columns), file)
        found = parse_table(file.getvalue(), "x.parquet")
        assert (found.columns, found.rows, found.format) == (expected.columns, expected.rows, "Parquet")
    both = [{"a": {"b": ["x"]}, "a.b": "y"}]
    file = BytesIO()
    arrow_parquet.write_table(pyarrow.Table.from_pylist(both), file)
    assert parse_table(file.getvalue(), "x.parquet").rows == (('{"b": ["x"]}', "y"),)


@pytest.mark.parametrize(
    ("raw", "name", "said"),
    [
        (b"a,b\n1,2\n3\n", "x.csv", "row 2 must have 2 cells as the first line has, got 1"),
        (b'a,b\n1,2\n"3,4\n', "x.csv", "row 2, line 3 of the file, must be cells"),
        (b"a,a\n1,2\n", "x.csv", "each column must have a name of its own, and two are called 'a'"),
        (b"a,b\n", "x.csv", "x.csv must have at least one row of data, got none"),
        (b"", "x.csv", "must have at least one row of data"),
        (b'{"a": 1}\n\n[1]\n', "x.jsonl", "row 2 must be a JSON object, such as .* got '.1.'"),
        (b'{"a": 1}\n{"a": }\n', "x.jsonl", "row 2 must be a JSON object: Expecting value"),
        (b"[" * 100_000, "x.jsonl", "row 1 must be a JSON object: it nests too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "x.jsonl", "row 1 must be a JSON object: Exceeds the limit"),
        (b"PK\x03\x04 not parquet", "x.parquet", "the file must be a Parquet file, got"),
        (b"\x00\x01\x02", "x.txt", "the file must be a text, got a NUL .0x00. in line 1 .character 1 of"),
        (b"\x89PNG\r\n\x1a\n\x00", "x.csv", "the file must be a text"),
        (b"x", "x.xlsx", "data must be a file .txt, .csv, .tsv, .jsonl or .parquet, got 'x.xlsx'"),
        (b",".join([b"c"] * 2000), "x.csv", "may have 1,000 columns, got 2,000"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_a_sentence(raw: bytes, name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_table(raw, name)


@given(st.binary(max_size=200), st.sampled_from(KINDS))
@settings(max_examples=150, deadline=None)
def test_whatever_bytes_there_are_a_table_is_read_or_a_sentence_said(raw: bytes, kind: str) -> None:
    try:
        table = parse_table(raw, f"x{kind}")
    except ValueError as error:
        assert str(error).rstrip().endswith(".")
    else:
        assert table.count and all(len(row) == len(table.columns) for row in table.rows)


def test_a_column_is_chosen_and_a_bad_row_is_named_by_its_number() -> None:
    table = Table(("text", "tags"), (("a b", "X Y"), ("", ("Z", "with space")), (("p",), "")))
    with pytest.raises(ValueError, match="the column must be one of 'text', 'tags', got 'label'"):
        table.texts("label")
    with pytest.raises(ValueError, match="row 2 must have a text in the column 'text', got nothing"):
        table.texts("text")
    with pytest.raises(ValueError, match="row 2 must have words in the column 'tags', each .* got 'with space'"):
        table.words("tags")


def test_a_file_that_is_too_large_or_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "max_data", 2**16)
    (tmp_path / "large.txt").write_bytes(b"x" * (2**16 + 1))
    with pytest.raises(ValueError, match="a file of data may have 0 MiB, and large.txt has 0.1"):
        read_table(tmp_path / "large.txt")
    small = parquet({"text": ["x" * 1000] * 1000})
    assert len(small) < 2**16
    with pytest.raises(ValueError, match="and this one unpacks to more"):
        parse_table(small, "small.parquet")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must be a file that can be read, got No such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="must be a file, got a folder"):
        read_table(tmp_path)


def peak_memory() -> int:
    """Bytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def arrow_file(columns: dict[str, Any], **options: Any) -> bytes:
    file = BytesIO()
    arrow_parquet.write_table(pyarrow.table(columns), file, compression="zstd", **options)
    return file.getvalue()


ZEROS = pyarrow.array(np.zeros(2**20 - 2**16, dtype=np.int64))
OFTEN = pyarrow.DictionaryArray.from_arrays(np.zeros(5000, dtype=np.int32), ["x" * 2**20])  # 5 GB of text
LISTED = pyarrow.ListArray.from_arrays([0, 5000], OFTEN)
NOTHING = pyarrow.ListArray.from_arrays([0, 2**24], pyarrow.nulls(2**24, pyarrow.int64()))
PARQUETS = {
    "plain columns": (lambda: arrow_file({f"c{n}": ZEROS for n in range(9)}, use_dictionary=False), "unpacks to more"),
    "one text often": (lambda: arrow_file({"a": OFTEN}, store_schema=False), "unpacks to more"),
    "an Arrow dictionary": (lambda: arrow_file({"a": OFTEN}), "unpacks to more"),
    "one word often": (lambda: arrow_file({"a": LISTED}, store_schema=False), "unpacks to more"),
    "long lists": (lambda: arrow_file({"a": NOTHING}), "may have 16,000,000 cells and words"),
    "many columns": (
        lambda: arrow_file({f"c{n}": ZEROS for n in range(40)}),
        "may have 16,000,000 cells and words, got 39,3",
    ),
}


@pytest.mark.parametrize("kind", PARQUETS)
def test_a_parquet_that_unpacks_to_far_more_is_refused_by_its_sizes(kind: str) -> None:
    write, said = PARQUETS[kind]
    raw = write()
    assert len(raw) < 2**20
    before, started = peak_memory(), time.process_time()
    with pytest.raises(ValueError, match=said):
        parse_table(raw, "x.parquet")
    assert time.process_time() - started < 2 and peak_memory() - before < 2**28


def test_a_parquet_with_dictionaries_is_read_as_the_same_without() -> None:
    columns = {"a": ["x", None, "é" * 300, "x"], "w": [["p", "q"], [], None, ["p"]], "n": [1, 2, None, 1]}
    tables = [
        parse_table(arrow_file(columns, use_dictionary=dictionaries), "x.parquet") for dictionaries in (True, False)
    ]
    arrow = {name: pyarrow.array(values) for name, values in columns.items()}
    arrow["a"] = arrow["a"].dictionary_encode()
    tables.append(parse_table(arrow_file(arrow), "x.parquet"))
    rows = (("x", ("p", "q"), "1"), (None, (), "2"), ("é" * 300, None, None), ("x", ("p",), "1"))
    assert [table.rows for table in tables] == [rows] * 3


@pytest.mark.parametrize("at", [0, 4, 40, -1, -6, -8, -20, -100])
def test_a_damaged_parquet_is_one_sentence_without_the_librarys_words(at: int) -> None:
    raw = bytearray(arrow_file({"a": ["some text", "more"], "n": [1, 2]}))
    raw[at] ^= 0x55
    try:
        parse_table(bytes(raw), "x.parquet")
    except ValueError as error:
        assert str(error) == (
            "the file must be a Parquet file, got a damaged one or something else; write or fetch it again."
        )


@pytest.mark.parametrize(
    ("raw", "name", "said"),
    [
        (b"a\n" * 1_000_001, "x.txt", "may have 1,000,000 rows"),
        (b"\n" * 5_000_000, "x.txt", "may have 1,000,000 rows"),
        (b"," * 2**22, "x.csv", "may have 1,000 columns, got 4,194,305"),
        (b'{"a": [' + b"0," * 10_000 + b"0]}", "x.jsonl", "may have 10,000 cells and words, got 10,001"),
        (
            b"{" + b",".join(b'"%d":0' % n for n in range(1000)) + b"}\n" + b"{}\n" * 10,
            "x.jsonl",
            "may have 10,000 cells and words, got 11,000",
        ),
    ],
    ids=["lines", "blank lines", "columns", "words", "empty cells"],
)
def test_a_short_text_of_very_many_cells_is_refused(
    raw: bytes, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MAX_CELLS", 10_000)
    with pytest.raises(ValueError, match=said):
        parse_table(raw, name)


def test_a_footer_that_ends_the_process_which_reads_it_is_a_sentence() -> None:
    """Of these bytes Arrow aborts where it is asked for a column, in a list of which that is needed."""
    file = BytesIO()
    arrow_parquet.write_table(pyarrow.table({"text": [["a", "b"]] * 20, "n": list(range(20))}), file)
    raw = file.getvalue()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    ends = 0
    for at in range(start, len(raw) - 8, 29):
        damaged = raw[:at] + bytes([raw[at] ^ 74]) + raw[at + 1 :]
        try:
            assert parse_table(damaged, "x.parquet").columns
        except ValueError as error:
            ends += "damaged one" in str(error)
    assert ends
