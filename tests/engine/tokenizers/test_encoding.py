"""Encodings that come from raw ids, and cuts."""

import json
from itertools import product
from pathlib import Path

import pytest
from tokenizers.processors import TemplateProcessing

from engine.runtime import library
from engine.tokenizers import Encoding, read_tokenizer, train
from engine.tokenizers.fast import FastTokenizer


def test_raw_ids_are_drawn_by_number() -> None:
    encoding = Encoding.from_ids([17, 0])
    assert (encoding.ids, encoding.pieces, len(encoding)) == ((17, 0), ("#17", "#0"), 2)


def test_too_few_pieces_are_refused() -> None:
    with pytest.raises(ValueError, match="2, 1, 2, 2, 2"):
        Encoding.from_ids([17, 0], ["a"])


def test_a_cut_keeps_the_text_that_spans_index() -> None:
    whole = train("char", ["abc"]).encode("abc")
    cut = whole.truncate(2)
    assert (cut.text, cut.pieces, cut.spans) == ("abc", ("a", "b"), ((0, 1), (1, 2)))
    assert whole.truncate(99) == whole


TEMPLATES = {
    "BERT": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "RoBERTa": ("[CLS] $A [SEP]", "[CLS] $A [SEP] [SEP] $B [SEP]"),
    "T5": ("$A [SEP]", "$A [SEP] $B [SEP]"),
    "Llama": ("[CLS] $A", "[CLS] $A [CLS]:1 $B:1"),
    "GPT-2": ("$A", "$A $B"),
}


@pytest.mark.parametrize("template", TEMPLATES.values(), ids=TEMPLATES)
def test_a_cut_is_that_of_transformers(template: tuple[str, str]) -> None:
    """Whatever stands around the texts, a mark that is typed, and whichever of two texts is the longer one."""
    tokenizer = train("wordpiece", ["one two three four [SEP] five"] * 3, 60)
    assert isinstance(tokenizer, FastTokenizer)
    marks = [(name, tokenizer.special_tokens[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.fast.post_processor = TemplateProcessing(single=template[0], pair=template[1], special_tokens=marks)
    words = "one two [SEP] four five one two".split()
    for side, first, second, length in product(["left", "right"], range(0, 8, 3), range(0, 8), range(4, 16)):
        tokenizer.cut_left = side == "left"
        texts = [" ".join(words[:first]), " ".join(words[:second])]
        for given in (texts, texts[:1]):
            cut = tokenizer.encode(*given).truncate(length)
            tokenizer.fast.enable_truncation(length, direction=side)
            expected = tokenizer.fast.encode(*given)
            tokenizer.fast.no_truncation()
            assert (list(cut.ids), list(cut.segments)) == (expected.ids, expected.type_ids)


def test_the_first_tokens_are_those_whatever_they_are() -> None:
    whole = Encoding("a", (1, 2, 3), ("^", "a", "$"), ((0, 0), (0, 1), (1, 1)), (True, False, True), (0, 0, 0))
    assert whole.first(2).ids == (1, 2) and whole.truncate(2).ids == (1, 3)
    assert whole.truncate(1) == whole.first(1) and whole.first(9) == whole and not whole.truncate(0)
    with pytest.raises(ValueError, match="Expected a length of at least 0, got -1"):
        whole.truncate(-1)


def test_the_side_that_is_cut_is_the_one_that_the_files_name(tmp_path: Path) -> None:
    tokenizer = train("wordpiece", ["one two three"] * 3, 60)
    tokenizer.save(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"truncation_side": "left"}))
    read = read_tokenizer(tmp_path)
    theirs = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(tmp_path)
    assert read is not None
    read.save(tmp_path)
    for one in (read, read_tokenizer(tmp_path)):
        assert one is not None
        cut = one.encode("one two three", "two three one").truncate(7)
        assert list(cut.ids) == theirs("one two three", "two three one", truncation=True, max_length=7)["input_ids"]


def test_letters_that_several_tokens_hold_are_told_with_those_tokens() -> None:
    read = library.checkpoint("everyday").tokenizer.encode("a 🙂ê")
    face, accent = read.letters_in_parts()
    assert (face[2], accent[2]) == ("🙂", "ê") and face[1] == accent[0] and accent[1] == len(read)
    assert [f"<{byte:02X}>" for byte in "🙂ê".encode()] == list(read.pieces[face[0] :])
    assert library.checkpoint("everyday").tokenizer.encode("The cat sat.").letters_in_parts() == []
