"""Lists of tokens by rank, tiktoken's and tekken's: the ids that transformers makes of them, and damaged files."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from engine.tokenizers import FastTokenizer, read_tokenizer
from engine.tokenizers.pieces import BYTE_OF_LETTER
from engine.tokenizers.ranks import LLAMA_3_SPLIT
from tests.engine.tokenizers.test_spm import FOREIGN, NASTY, STORIES, drawn_at_random

TEXTS = [*NASTY, FOREIGN, *drawn_at_random(900), *STORIES]
TEXTS += [
    "I'LL don't 1234567 x1  \n\n  y",
    "<s>a</s>[INST] b",
    "a<|begin_of_text|>b<|eot_id|><|reserved_special_token_9|>",
]
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN_SPLIT = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
NAMED = [{"rank": rank, "token_str": name, "is_control": True} for rank, name in enumerate(["<unk>", "<s>", "</s>"])]


@cache
def learnt(pattern: str) -> list[bytes]:
    """Tokens of a small BPE by rank."""
    fast = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    fast.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=list(BYTE_OF_LETTER), show_progress=False)
    fast.train_from_iterator([*STORIES, *[FOREIGN] * 3], trainer)
    names = sorted(fast.get_vocab().items(), key=lambda item: item[1])
    return [bytes(BYTE_OF_LETTER[letter] for letter in name) for name, _ in names]


def as_tiktoken(tokens: list[bytes]) -> bytes:
    return b"".join(b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))


def as_tekken(tokens: list[bytes], **config: Any) -> dict[str, Any]:
    rows = [
        {"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None} for rank, token in enumerate(tokens)
    ]
    size = {"default_num_special_tokens": 30, "default_vocab_size": len(tokens) + 30, "version": "v11"}
    return {"config": {"pattern": TEKKEN_SPLIT, **size, **config}, "vocab": rows, "special_tokens": NAMED}


def written(folder: Path, data: bytes | Mapping[str, Any]) -> FastTokenizer:
    if isinstance(data, bytes):
        (folder / "tokenizer.model").write_bytes(data)
    else:
        (folder / "tekken.json").write_text(json.dumps(data))
    tokenizer = read_tokenizer(folder)
    assert tokenizer is not None
    return tokenizer


def check_against(theirs: Tokenizer, ours: FastTokenizer, begin: str) -> None:
    """Ids without marks, with the begin token that transformers' conversion leaves to the caller, and texts again."""
    assert len(TEXTS) > 1000
    for text in TEXTS:
        expected = theirs.encode(text).ids
        assert ours.ids(text, special=False) == expected, repr(text)
        assert list(ours.encode(text).ids) == [theirs.token_to_id(begin), *expected]
        assert ours.decode(expected) == text
    assert ours.vocab_size == theirs.get_vocab_size()


def check_saved(ours: FastTokenizer, folder: Path) -> None:
    """Opened again, here and by transformers, without the list."""
    auto = pytest.importorskip("transformers").AutoTokenizer
    ours.save(folder)
    assert not (folder / "tokenizer.model").exists() and not (folder / "tekken.json").exists()
    again, theirs = read_tokenizer(folder), auto.from_pretrained(folder)
    assert again is not None and (again.roles, again.special_tokens) == (ours.roles, ours.special_tokens)
    for text in TEXTS[::10]:
        assert again.encode(text) == ours.encode(text)
        assert theirs(text)["input_ids"] == list(ours.encode(text).ids)


@pytest.mark.parametrize("newer", [False, True])
def test_a_list_of_llama_3_gives_the_ids_of_transformers_and_is_saved_whole(tmp_path: Path, newer: bool) -> None:
    convert = pytest.importorskip("transformers.convert_slow_tokenizer")
    rope = {"rope_scaling": {"rope_type": "llama3"}} if newer else {}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **rope}))
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    tokens = learnt(LLAMA_3_SPLIT)
    ours = written(tmp_path, as_tiktoken(tokens))
    converter = convert.TikTokenConverter("", LLAMA_3_SPLIT, extra_special_tokens=[*ours.special_tokens])
    converter.load_tiktoken_bpe = lambda _: {token: rank for rank, token in enumerate(tokens)}  # without tiktoken
    check_against(converter.converted(), ours, "<|begin_of_text|>")
    names = [*ours.special_tokens]
    assert [*ours.special_tokens.values()] == [*range(len(tokens), len(tokens) + 256)]
    assert (names[9], names[-1]) == ("<|eot_id|>", f"<|reserved_special_token_{247 if newer else 250}|>")
    assert names[4:6] == (
        ["<|finetune_right_pad_id|>", "<|reserved_special_token_2|>"]
        if newer
        else [f"<|reserved_special_token_{number}|>" for number in (2, 3)]
    )
    check_saved(ours, tmp_path / "saved")
    assert (tmp_path / "saved" / "chat_template.jinja").is_file()


@pytest.mark.parametrize("named", [True, False])
def test_a_tekken_gives_the_ids_of_transformers_and_is_saved_whole(tmp_path: Path, named: bool) -> None:
    mistral = pytest.importorskip("transformers.integrations.mistral.tokenizer")
    state = as_tekken(learnt(TEKKEN_SPLIT), default_vocab_size=650)
    ours = written(tmp_path, state if named else {**state, "special_tokens": None})
    if not named:
        assert [*ours.special_tokens][11:21] == [
            *("<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]"),
            *("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]", "<SPECIAL_20>"),
        ]
        names = [{"rank": rank, "token_str": name} for name, rank in ours.special_tokens.items()]
        (tmp_path / "tekken.json").write_text(json.dumps({**state, "special_tokens": names}))
    check_against(mistral.MistralConverter(str(tmp_path / "tekken.json")).converted(), ours, "<s>")
    check_saved(ours, tmp_path / "saved")


def test_what_stands_beside_a_list_counts(tmp_path: Path) -> None:
    size = len(learnt(LLAMA_3_SPLIT))
    added = {str(size + at): {"content": name, "special": True} for at, name in enumerate(["<|x|>", "<|y|>"])}
    said = {"added_tokens_decoder": added, "bos_token": "<|x|>", "eos_token": "<|y|>", "add_bos_token": False}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(said))
    ours = written(tmp_path, as_tiktoken(learnt(LLAMA_3_SPLIT)))
    assert (ours.vocab_size, ours.end_id, ours.encode("").ids) == (size + 2, size + 1, ())
    (tmp_path / "config.json").write_text('{"model_type": "llama4"}')
    with pytest.raises(ValueError, match=r"got one beside a 'llama4'.*tokenizer\.json"):
        read_tokenizer(tmp_path)


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    state = as_tekken(learnt(TEKKEN_SPLIT))
    change(state)
    return state


BYTES = [bytes([byte]) for byte in range(256)]
DAMAGED: list[tuple[bytes | Mapping[str, Any], str]] = [
    (b"IQ== 0\nIg== 1\n", "all 256 bytes"),
    (as_tiktoken([*BYTES, b"ab", b"ab"]), "each token once"),
    (as_tiktoken(BYTES) + b"YWI= 257\n", "rank 256, as entry 257"),
    (as_tiktoken(BYTES) + b"YWI 256\n", "in base64"),
    (as_tiktoken(BYTES) + b"Y\xff== 256\n", "in base64"),
    (as_tiktoken([*BYTES, b"a" * 2000]), "1 to 1,024 bytes"),
    (as_tiktoken([*BYTES, *(b"a" * count for count in range(2, 1025))]), "merges of 16,777,216 letters"),
    (as_tiktoken(BYTES) + b"\n" * 2000, "2,000 tokens"),
    (as_tiktoken(BYTES) + b" " * 2**20, "1,000,000 bytes"),
    ({"config": {}, "vocab": []}, "a config with a pattern"),
    (changed(lambda s: s["config"].update(pattern="(")), "got something else"),
    (changed(lambda s: s["config"].update(pattern="a" * 5000)), "a pattern of at most"),
    (changed(lambda s: s["config"].update(default_num_special_tokens=10**9)), "3 to 10,000 special"),
    (changed(lambda s: s["config"].update(default_num_special_tokens=2)), "3 to 10,000 special"),
    (changed(lambda s: s["config"].update(default_vocab_size=10**9)), "default_vocab_size"),
    (changed(lambda s: s["config"].update(default_vocab_size=True)), "default_vocab_size"),
    (changed(lambda s: s["vocab"].reverse()), "rank 0, as entry 1"),
    (changed(lambda s: s["vocab"][3].update(token_bytes=[1])), "rank 3, as entry 4"),
    (changed(lambda s: s["vocab"].insert(3, None)), "as entry 4"),
    (changed(lambda s: s.update(special_tokens=[*NAMED, {"rank": 3, "token_str": "<s>"}])), "a name of its own"),
    (changed(lambda s: s.update(special_tokens=[*NAMED, {"rank": 9, "token_str": "x"}])), "each rank from 0"),
    (changed(lambda s: s.update(special_tokens=[{"rank": 0, "token_str": "\ud800"}])), "got something else"),
    (changed(lambda s: s.update(special_tokens=7)), "each rank from 0"),
]  # fmt: skip


def test_what_cannot_be_read_is_named_in_one_sentence(
    tmp_path: Path, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, value in {
        "ranks.MOST_TOKENS": 2_000,
        "jsonfile.LARGEST_FILE": 10**6,
    }.items():
        monkeypatch.setattr(f"engine.tokenizers.{limit}", value)
    for data, wrong in DAMAGED:
        with subtests.test(wrong), pytest.raises(ValueError, match=rf"^Expected [^\n]*{wrong}[^\n]*[.?]$"):
            written(tmp_path, data)
        for file in tmp_path.iterdir():
            file.unlink()
    (tmp_path / "tekken.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nests too deeply"):
        read_tokenizer(tmp_path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1), cut=st.integers(0, 40), put=st.binary(max_size=12), tekken=st.booleans())
def test_a_damaged_file_is_read_whole_or_refused(tmp_path: Path, at: float, cut: int, put: bytes, tekken: bool) -> None:
    name = "tekken.json" if tekken else "tokenizer.model"
    data = json.dumps(as_tekken(BYTES)).encode() if tekken else as_tiktoken(BYTES)
    start = int(at * len(data))
    (tmp_path / "tekken.json").unlink(missing_ok=True)
    (tmp_path / name).write_bytes(data[:start] + put + data[start + cut :])
    try:
        tokenizer = read_tokenizer(tmp_path)
    except ValueError as error:
        assert str(error).startswith("Expected ") and name in str(error)
        return
    assert tokenizer is not None and tokenizer.decode(tokenizer.encode(FOREIGN, special=False).ids) == FOREIGN
