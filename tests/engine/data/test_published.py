"""Texts that others have published: where a recipe finds them, how they are mixed, and what is said where they lack."""

import lzma
from hashlib import sha256
from pathlib import Path

import pytest

from engine.budget import budget
from engine.data import mixture
from engine.data.kinds.everyday import Everyday
from engine.data.kinds.rows import Rows
from engine.data.own_tasks import OwnPairs, task_of
from engine.data.published import describe, locate, unpack
from engine.data.text import read_text
from engine.training.recipe.data_recipe import Data
from engine.training.run.card import describe_corpora

PARAGRAPHS = [[f"Book {book}, paragraph {n}: {'a word ' * (20 + n)}end." for n in range(30)] for book in range(3)]
TALES = "\n\n".join("\n".join(book) for book in PARAGRAPHS)
PAIRS = "".join(f'Sentence {n} is "new".\tPhrase {n}, {way}.\n' for n in range(100) for way in ("un", "deux"))


@pytest.fixture(autouse=True)
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tales.txt.xz").write_bytes(lzma.compress(TALES.encode()))
    (tmp_path / "eng-fra.tsv").write_text(PAIRS, encoding="utf-8")
    monkeypatch.setattr(budget, "corpora_folder", str(tmp_path))
    mixture.tales.cache_clear()
    mixture.pairs.cache_clear()
    return tmp_path


def test_a_published_text_is_read_packed_or_not(corpora: Path) -> None:
    assert read_text(locate("corpora:tales.txt.xz")) == TALES
    assert read_text(locate("corpora:eng-fra.tsv.xz")) == PAIRS
    assert locate("elsewhere/tales.txt") == Path("elsewhere/tales.txt")


def test_where_one_lacks_a_sentence_says_where_it_can_be_had(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (corpora / "eng-fra.tsv").unlink()
    with pytest.raises(ValueError, match=r"eng-fra\.tsv\.xz .*Tatoeba.*manythings\.org/anki, CC BY 2\.0 FR.*CORPORA="):
        Rows(path="corpora:eng-fra.tsv.xz", header=False, source="column 1", target="column 2").table()
    monkeypatch.setattr(budget, "corpora_folder", "")
    with pytest.raises(ValueError, match=r"tales\.txt\.xz .*gutenberg\.org.*and no folder is named"):
        mixture.tales("corpora:tales.txt.xz")


def test_a_name_leads_to_no_other_folder_and_a_page_opens_no_file_of_the_server() -> None:
    with pytest.raises(ValueError, match="a file without folders, got '../secret.txt'"):
        locate("corpora:../secret.txt")
    with pytest.raises(ValueError, match='tales must be "corpora:" and the name of a file'):
        Everyday(tales="/etc/passwd")


def test_a_damaged_cut_or_too_large_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = lzma.compress(b"word " * 10_000)
    for raw, told in ((b"no such file", "packed by xz"), (packed[:-40], "only its beginning")):
        with pytest.raises(ValueError, match=told):
            unpack(raw, "a.txt.xz")
    monkeypatch.setattr(budget, "max_data", 1_000)
    with pytest.raises(ValueError, match="unpacked"):
        unpack(packed, "a.txt.xz")


def test_a_document_of_tales_is_whole_paragraphs_of_one_book() -> None:
    found = mixture.tales("corpora:tales.txt.xz")
    assert "\n".join(found) == TALES.replace("\n\n", "\n") and max(map(len, found)) <= mixture.TALE
    assert all(len({line.split(",")[0] for line in one.split("\n")}) == 1 for one in found)


def test_what_is_held_out_is_in_no_document_and_the_same_for_a_translator() -> None:
    everyday = Data(Everyday(30, 5, tales="corpora:tales.txt.xz", sentences="corpora:eng-fra.tsv.xz"))
    told = everyday.table.make_documents(0)
    ours, theirs = ([one.texts[0] for one in part()] for part in (told.train, told.held_out))
    options = Rows(
        path="corpora:eng-fra.tsv.xz", header=False, source="column 1", target="column 2", held_out=mixture.SHARE
    )
    task = task_of(options)
    assert isinstance(task, OwnPairs)
    unseen = {pair.source for pair in task.pairs("held_out", 0)}
    assert len(unseen) == 5 and all(any(text in one for one in theirs) for text in unseen)
    assert not any(text in one for one in ours for text in unseen)
    for text in {pair.source for pair in task.pairs("train", 0)}:
        assert sum(f"{text}\n" in f"{one}\n" or f"{text} " in f"{one} " for one in ours) == 2  # a line, and in a row
    assert ours == [one.texts[0] for one in everyday.table.make_documents(0).train()]
    assert describe_corpora(everyday) == [describe("corpora:tales.txt.xz"), describe("corpora:eng-fra.tsv.xz")]


def test_a_card_says_source_licence_size_and_hash_of_what_was_unpacked() -> None:
    said = describe("corpora:tales.txt.xz")
    assert said["file"] == "tales.txt" and said["licence"] == "public domain in the USA"
    assert said["bytes"] == len(TALES) and said["sha256"] == sha256(TALES.encode()).hexdigest()


def test_two_pairs_in_a_row_are_learned_from_and_never_measured_on() -> None:
    columns = {"source": "column 1", "target": "column 2", "header": False}
    plain, joined = (
        OwnPairs(options, options.table())
        for options in (Rows(path="corpora:eng-fra.tsv.xz", joined=share, **columns) for share in (0.0, 0.25))  # type: ignore[arg-type]
    )
    assert list(plain.pairs("held_out", 0)) == list(joined.pairs("held_out", 0))
    whole = list(joined.pairs("train", 0))
    single, more = whole[: len(whole) * 4 // 5], whole[len(whole) * 4 // 5 :]
    assert single == list(plain.pairs("train", 0)) and len(more) == len(single) // 4
    first, second = more[0].source.split(". ")
    assert f"{first}." in {one.source for one in single} and second in {one.source for one in single}
    assert more[0].target.count("Phrase") == 2
