"""A tokenizer.json of others: its steps are bounded before one runs, and what its library does is one sentence."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from engine.tokenizers import FastTokenizer, read_tokenizer
from engine.tokenizers.jsonfile import LARGEST_FILE
from engine.tokenizers.pipeline_limits import MOST_GROWTH, bound_growth

TEN = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}
CATASTROPHE = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Removed", "invert": False}
BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False}


def write(folder: Path, **parts: Any) -> Path:
    """A tokenizer of words, with other parts."""
    plain = tokenizers.Tokenizer(models.WordLevel({"a": 0, "b": 1, "<unk>": 2}, unk_token="<unk>"))
    (folder / "tokenizer.json").write_text(json.dumps(json.loads(plain.to_str()) | parts))
    return folder


def steps(*each: Any) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(each)}


def read(folder: Path) -> FastTokenizer:
    tokenizer = read_tokenizer(folder)
    assert tokenizer is not None
    return tokenizer


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ({"normalizer": steps(*[TEN] * 8)}, "a normalizer that can write 100,000,000 bytes for one, where 4,096"),
        ({"normalizer": steps(*[steps(TEN, TEN)] * 4)}, "a normalizer that can write 100,000,000"),
        ({"normalizer": steps(*[{"type": "NFC"}] * 100)}, "a normalizer of 100 steps"),
        ({"normalizer": {"type": "Prepend", "prepend": "x" * 10**6}}, "puts 1,000,000 bytes before each text"),
        ({"normalizer": TEN | {"content": "é" * 10**5}}, "can write 200,000 bytes for one"),
        ({"normalizer": TEN | {"pattern": {"Regex": "(?=.)"}, "content": "x" * 5000}}, "can write 10,001 bytes"),
        (
            {"normalizer": {"type": "Precompiled", "precompiled_charsmap": b64encode(bytes(4) + b"x" * 9**5).decode()}},
            "can write 59,049 bytes",
        ),
        (
            {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [BYTES] * 30}},
            "a pre_tokenizer that can write 1,000,000,000,000,000 bytes",
        ),
        ({"decoder": {"type": "Sequence", "decoders": [TEN, TEN]}}, "a decoder that can write 100 bytes for one"),
        (
            {
                "normalizer": TEN | {"content": "a" * 1000},
                "added_tokens": [
                    {"id": 3 + n, "content": f"{n}" * 1000, "normalized": True, "special": False, "lstrip": False}
                    for n in range(100)
                ],
            },
            "100 added tokens that become more than",
        ),
        (
            {
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 5000,
                    "pair": [],
                    "special_tokens": {},
                }
            },
            "a template of 5,000 parts, 5,000 of them texts",
        ),
        ({"model": {"type": "WordPiece", "vocab": {}, "max_input_chars_per_word": 10**400}}, "words of up to 1,000"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_file_that_lengthens_a_text_beyond_measure_is_refused_before_it_runs(
    parts: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    started = time.process_time()
    with pytest.raises(ValueError, match=r"tokenizer\.json to lengthen no text .*; do not trust") as raised:
        read_tokenizer(write(tmp_path, **parts))
    assert fault in str(raised.value) and len(str(raised.value)) < 300 + len(str(tmp_path))
    assert time.process_time() - started < 2


def test_an_expression_that_takes_too_many_tries_is_one_sentence_and_the_next_text_is_read(tmp_path: Path) -> None:
    tokenizer = read(write(tmp_path, pre_tokenizer=CATASTROPHE))
    with pytest.raises(ValueError, match=r"must write any text, and fails \(.*retry-limit.*\); fetch its files"):
        tokenizer.encode("a" * 40 + "b")
    assert tokenizer.encode("b").ids == (1,)


def test_an_expression_of_a_normalizer_a_decoder_and_an_added_token_is_one_sentence_too(tmp_path: Path) -> None:
    again = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "x"}
    letters = {"a" * 40 + "b": 0, "<unk>": 1}
    fast = tokenizers.Tokenizer(models.WordLevel(letters, unk_token="<unk>"))
    state = json.loads(fast.to_str())
    (tmp_path / "tokenizer.json").write_text(json.dumps(state | {"decoder": again}))
    with pytest.raises(ValueError, match="must read any of its tokens, and fails"):
        read(tmp_path).decode([0])
    added = {"id": 2, "content": "a" * 40 + "c", "normalized": True, "special": False, "lstrip": False}
    added |= {"rstrip": False, "single_word": False}
    (tmp_path / "tokenizer.json").write_text(json.dumps(state | {"normalizer": again, "added_tokens": [added]}))
    with pytest.raises(ValueError, match=r"Expected a tokenizer in .*tokenizer\.json, got something else"):
        read(tmp_path)
    del state["model"]["vocab"]["<unk>"]  # a closed vocabulary, whose words are looked up before
    (tmp_path / "tokenizer.json").write_text(json.dumps(state | {"normalizer": again}))
    with pytest.raises(ValueError, match="must find the words of any text, and fails"):
        read(tmp_path).encode("a" * 40 + "b")


def test_a_person_who_interrupts_is_heard(tmp_path: Path) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    tokenizer = read(write(tmp_path))
    tokenizer.fast = type("Fast", (), {"normalizer": None, "model": tokenizer.fast.model, "encode": interrupt})()
    with pytest.raises(KeyboardInterrupt):
        tokenizer.encode("a")


def test_a_text_that_really_becomes_long_is_refused_and_a_plain_one_of_that_length_is_read(tmp_path: Path) -> None:
    tokenizer = read(write(tmp_path, normalizer=steps(TEN, TEN, TEN)))
    assert len(tokenizer.encode("a").spans) == 1
    with pytest.raises(ValueError, match="makes at most .* letters of 100,000 bytes, got one that makes more; shorten"):
        tokenizer.encode("a" * 100_000)
    assert tokenizer.encode("b" * 100_000).spans[-1][1] == 100_000


def test_published_normalizers_are_far_from_the_limit() -> None:
    albert: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
        {"type": "NFKD"},
        {"type": "StripAccents"},
        {"type": "Lowercase"},
        {"type": "Precompiled", "precompiled_charsmap": b64encode(bytes(4) + b"x" * 33).decode()},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    ]
    assert bound_growth(list(albert)) == 12 * 33 * 3 < MOST_GROWTH["normalizer"] / 3


@pytest.mark.parametrize(
    "step",
    [
        normalizers.NFKD(),
        normalizers.NFC(),
        normalizers.Lowercase(),
        normalizers.BertNormalizer(),
        normalizers.ByteLevel(),
        normalizers.Prepend("ab"),
        normalizers.Replace(tokenizers.Regex("x*"), "yz"),
        pre_tokenizers.ByteLevel(),
        pre_tokenizers.Metaspace(),
    ],
    ids=lambda step: type(step).__name__,
)
def test_no_step_writes_more_than_its_bound(step: Any) -> None:
    bound = bound_growth([json.loads(step.__getstate__())])
    for character in ["a", "x", " ", "ﷺ", "ΐ", "İ", "中", "\x80", "ﬃ", "\U0001d161"]:
        if isinstance(step, pre_tokenizers.PreTokenizer):
            written = "".join(word for word, _ in step.pre_tokenize_str(character))
        else:
            written = step.normalize_str(character)
        assert len(written.encode()) <= bound * len(character.encode()), character


def test_a_file_that_is_too_large_or_of_too_many_lists_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text('{"a": [' + "[]," * 2**21 + "[]]}")
    with pytest.raises(ValueError, match=r"Expected JSON in .*, got something else \(2,097,1.. lists and objects\)"):
        read_tokenizer(tmp_path)
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    with pytest.raises(ValueError, match="Expected at most 67,108,864 bytes in .*, got 67,108,865; is it a tokenizer?"):
        read_tokenizer(tmp_path)
