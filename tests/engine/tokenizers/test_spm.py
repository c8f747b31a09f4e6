"""SentencePiece's own files: the ids of the sentencepiece library and of transformers, spans, and hostile files."""

import io
import json
import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer, sentencepiece_model_pb2

from engine.data.stories import story
from engine.tokenizers import Encoding, FastTokenizer, read_tokenizer
from engine.tokenizers.charsmap import Charsmap, Normaliser

proto: Any = sentencepiece_model_pb2
REAL = Path(__file__).parents[3].parent / "shared" / "real"
STORIES = [line for index in range(150) for line in story(1, index).splitlines() if line]
FOREIGN = "naïve café 中文字符 日本語 한국어 שלום مرحبا हिन्दी 👩‍👩‍👧 🇫🇷 ﬁ ＡＢＣ ½ ① 3.14 <sep> <0x41> x<y>z"
BYTES = {"model_type": "bpe", "byte_fallback": True, "vocab_size": 600}
AS_IS = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
OPTIONS: dict[str, dict[str, Any]] = {
    "bpe": {"model_type": "bpe"},
    "bpe, bytes": BYTES,
    "bpe, as Llama": {**BYTES, **AS_IS},
    "bpe, as Gemma": {**BYTES, **AS_IS, "add_dummy_prefix": False, "user_defined_symbols": "<sep>,ab"},
    "unigram": {},
    "unigram, bytes": {"byte_fallback": True, "vocab_size": 600},
    "unigram, over spaces": {**AS_IS, "split_by_whitespace": False, "user_defined_symbols": "<sep>,<b>"},
    "unigram, case folded": {"normalization_rule_name": "nmt_nfkc_cf", "add_dummy_prefix": False},
    "characters": {"model_type": "char", "vocab_size": 2000},
}
T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
NASTY = [
    "",
    " ",
    "Hello world",
    "  leading,  double and trailing   ",
    "lines\n\n\tand\r\ntabs\x00and NUL \x07\x7f",
    "e\u0301 e\u0301\u0323 \u1112\u1161\u11ab Z\u0300\u0301\u0302\u0303\u0304 ﬁ ＡＢＣ ½ ① ﷺ",
    "中文 日本語テスト 한국어 ไทย हिन्दी שלום עולם مرحبا \u202eRTL\u202c",
    "👩\u200d👩\u200d👧 🏳️\u200d🌈 🇫🇷 👍🏽 a\u200bb\u00ad\ufeff",
    "<0x41> <0xZZ> ▁typed ▁▁ <sep>ab<b> unk",
    "x" * 3000,
    "ab" * 1500 + " " * 300 + "c",
]
ALPHABET = [*"aab bcdetho.  \n\t", *FOREIGN, *"\0\u00a0\u3000\u2581\u200b\u0301\u0323\u1112\u1161", "the ", "<0x41>"]


@cache
def trained(**options: Any) -> bytes:
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter([*STORIES, *[FOREIGN] * 3]),
        model_writer=model,
        minloglevel=2,
        num_threads=1,
        hard_vocab_limit=False,
        **{"vocab_size": 400, "model_type": "unigram", **options},
    )
    return model.getvalue()


def read(folder: Path) -> FastTokenizer:
    tokenizer = read_tokenizer(folder)
    assert tokenizer is not None
    return tokenizer


def written(folder: Path, model: bytes, name: str = "tokenizer.model", **config: Any) -> FastTokenizer:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(model)
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return read(folder)


def drawn_at_random(count: int) -> Iterator[str]:
    chance = random.Random(1)
    return ("".join(chance.choices(ALPHABET, k=chance.randint(1, 40))) for _ in range(count))


def assert_same_ids(ours: FastTokenizer, model: bytes) -> None:
    theirs = SentencePieceProcessor(model_proto=model)
    texts = [*NASTY, *drawn_at_random(300), *(story(2, index) for index in range(20))]
    found = [ours.encode(text) for text in texts]
    expected = theirs.encode(texts)
    for text, encoding, ids in zip(texts, found, expected, strict=True):
        assert list(encoding.ids) == ids, repr(text)
    assert len({id for ids in expected for id in ids}) > 60
    for text, ids in zip(texts, expected, strict=True):
        if theirs.unk_id() not in ids and "\u2581" not in text:  # a typed stand-in may come back as a space
            assert ours.decode(ids) == theirs.decode(ids), repr(text)


@pytest.mark.parametrize("kind", OPTIONS)
def test_ids_are_those_of_sentencepiece(tmp_path: Path, kind: str) -> None:
    model = trained(**OPTIONS[kind])
    assert_same_ids(written(tmp_path, model), model)


@pytest.mark.parametrize(
    "file", ["tokenizers/tok512/tokenizer.model", "tokenizers/sentencepiece-unigram/test_model.model"]
)
def test_ids_of_the_real_models_are_those_of_sentencepiece(file: str) -> None:
    if not REAL.exists():
        pytest.skip(f"no real tokenizers at {REAL}")
    ours = read((REAL / file).parent)
    assert_same_ids(ours, (REAL / file).read_bytes())
    if "unigram" in file:
        assert ours.encode("Hello world").ids == (151, 88, 21, 887)
    assert (ours.end_id, ours.decode([2])) == (2, "</s>")


@pytest.mark.parametrize("rule", ["nmt_nfkc", "nfkc_cf"])
@pytest.mark.parametrize("one_space", [True, False])
def test_a_text_is_normalised_as_sentencepiece_does(rule: str, one_space: bool) -> None:
    model = proto.ModelProto.FromString(trained(normalization_rule_name=rule, remove_extra_whitespaces=one_space))
    theirs = SentencePieceProcessor(model_proto=model.SerializeToString())
    ours = Normaliser(Charsmap(model.normalizer_spec.precompiled_charsmap), one_space=one_space)
    ranges = (range(0x500), range(0x1100, 0x1200), range(0x2000, 0x2200), range(0xF900, 0x10000))
    texts = [f"a{chr(code)}b" for codes in ranges for code in codes]
    texts += [*drawn_at_random(500), *NASTY, "\x07", "\x07 "]
    assert [ours(text).text for text in texts] == theirs.normalize(texts)


def test_spans_point_into_the_text_as_it_was_typed(tmp_path: Path) -> None:
    tokenizer = written(tmp_path, trained(), tokenizer_class="T5Tokenizer")
    text = "  the ﬁ\u3000\u3000cafe\u0301  </s>dog\n"
    encoding = tokenizer.encode(text)
    assert encoding.text == text
    cut = [text[start:end] for start, end in encoding.spans]
    assert encoding.pieces[0] == "·the" and cut[0] == "the"
    assert cut[encoding.ids.index(tokenizer.special_tokens["</s>"])] == "</s>"
    assert "".join(cut).replace(" ", "").replace("\u3000", "") == "theﬁcafe\u0301</s>dog"
    assert encoding.spans[-1] == (len(text) - 1,) * 2 and encoding.special[-1]
    assert all(a <= b <= c for (a, b), (c, _) in zip(encoding.spans, encoding.spans[1:], strict=False))


def test_bytes_of_a_character_all_stand_where_it_does(tmp_path: Path) -> None:
    encoding = written(tmp_path, trained(**BYTES)).encode("a 🦉")
    assert encoding.pieces[-4:] == ("<F0>", "<9F>", "<A6>", "<89>")
    assert encoding.spans[-4:] == ((2, 3),) * 4


def test_spans_of_a_pair_follow_one_another(tmp_path: Path) -> None:
    tokenizer = written(tmp_path, trained(**T5), "spiece.model", tokenizer_class="T5Tokenizer")
    encoding = tokenizer.encode("the  dog", " the cat ")
    assert encoding.text == "the  dog\n the cat "
    assert [encoding.text[start:end].strip() for start, end in encoding.spans if end > start][0] == "the"
    second = encoding.ids.index(1) + 1
    assert encoding.spans[second] == (10, 13) and encoding.pieces[second] == "·the"
    long = tokenizer.encode("the dog " * 5, "the cat")
    cut = long.truncate(len(long) - 4)
    assert cut.ids == (*long.ids[: first_ends(long) - 4], *long.ids[first_ends(long) :])


def first_ends(pair: Encoding) -> int:
    """Place of the end mark of the first text."""
    return pair.ids.index(1)


def test_a_typed_special_token_counts_and_parts_are_read_as_texts_of_their_own(tmp_path: Path) -> None:
    model = trained(**BYTES, **AS_IS)
    theirs = SentencePieceProcessor(model_proto=model)
    ids = written(tmp_path, model).encode("the <s>dog</s> ran").ids
    assert list(ids) == [*theirs.encode("the "), 1, *theirs.encode("dog"), 2, *theirs.encode(" ran")]


def test_begin_and_end_tokens_are_added_as_the_config_says(tmp_path: Path) -> None:
    model = trained(**BYTES, **AS_IS)
    plain = SentencePieceProcessor(model_proto=model).encode("the dog")
    assert list(written(tmp_path / "none", model).encode("the dog").ids) == plain
    llama = written(tmp_path / "llama", model, tokenizer_class="LlamaTokenizer")
    assert list(llama.encode("the dog").ids) == plain  # as in transformers 5, and said in the report
    assert "add_bos_token" in llama.notes[0]
    llama = written(tmp_path / "llama", model, tokenizer_class="LlamaTokenizer", add_bos_token=True)
    assert not llama.notes and list(llama.encode("the dog").ids) == [1, *plain]
    assert list(llama.encode("the dog", special=False).ids) == plain
    asked: dict[str, Any] = {"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": False, "add_eos_token": True}
    assert list(written(tmp_path / "asked", model, **asked).encode("the dog").ids) == [*plain, 2]
    (tmp_path / "none" / "config.json").write_text('{"model_type": "llama"}')
    assert list(read(tmp_path / "none").encode("the dog").ids) == [1, *plain]


def test_sentinels_of_t5_are_numbered_from_the_end(tmp_path: Path) -> None:
    model = trained(**T5)
    size = SentencePieceProcessor(model_proto=model).get_piece_size()
    tokenizer = written(tmp_path, model, "spiece.model", tokenizer_class="T5Tokenizer")
    assert tokenizer.vocab_size == size + 100
    assert tokenizer.special_tokens["<extra_id_0>"] == size + 99
    assert tokenizer.special_tokens["<extra_id_99>"] == size
    assert (tokenizer.pad_id, tokenizer.end_id) == (0, 1)
    assert tokenizer.encode("the <extra_id_0> ran").ids.count(size + 99) == 1
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer", "extra_ids": 1e9}')
    with pytest.raises(ValueError, match="extra_ids"):
        read(tmp_path)


TEXTS = ["Hello world", "The <extra_id_0> dog <extra_id_1> ran", "  a  b \n c", "ﬁ 中文 e\u0301", "<pad></s>x y", ""]


@pytest.mark.parametrize(
    ("kind", "file", "options"),
    [("T5", "spiece.model", T5), ("Pegasus", "spiece.model", T5), ("XLMRoberta", "sentencepiece.bpe.model", {})],
)
def test_ids_and_pairs_are_those_of_transformers(tmp_path: Path, kind: str, file: str, options: dict[str, int]) -> None:
    transformers = pytest.importorskip("transformers")
    ours = written(tmp_path, trained(**options), file, tokenizer_class=f"{kind}Tokenizer")
    theirs = getattr(transformers, f"{kind}Tokenizer").from_pretrained(tmp_path)
    assert [list(ours.encode(text).ids) for text in TEXTS] == [theirs(text)["input_ids"] for text in TEXTS]
    assert list(ours.encode("the dog", "a cat").ids) == theirs("the dog", "a cat")["input_ids"]
    assert (ours.end_id, ours.pad_id) == (theirs.eos_token_id, theirs.pad_token_id)
    assert ours.vocab_size == len(theirs)


@pytest.mark.filterwarnings("ignore:Recommended")
def test_marian_numbers_the_pieces_of_two_languages_by_its_vocabulary(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    source, target = trained(), trained(vocab_size=300)
    names = ["</s>", "<unk>"]
    for model in (source, target):
        processor = SentencePieceProcessor(model_proto=model)
        names += [processor.id_to_piece(id) for id in range(3, processor.get_piece_size())]
    names = list(dict.fromkeys([*names, "Ж", "▁Жe", "<pad>", ">>fra<<"]))
    (tmp_path / "vocab.json").write_text(json.dumps({name: id for id, name in enumerate(names)}))
    (tmp_path / "target.spm").write_bytes(target)
    ours = written(tmp_path, source, "source.spm", tokenizer_class="MarianTokenizer")
    theirs = transformers.MarianTokenizer.from_pretrained(tmp_path)
    texts = [*TEXTS, "Жe", ">>fra<< the dog"]
    assert [list(ours.encode(text).ids) for text in texts] == [theirs(text)["input_ids"] for text in texts]
    assert (ours.end_id, ours.pad_id, ours.vocab_size) == (0, len(names) - 2, len(names))


@pytest.mark.parametrize("kind", ["bpe, as Llama", "unigram"])
def test_what_is_saved_gives_the_same_ids_to_us_and_to_transformers(tmp_path: Path, kind: str) -> None:
    transformers = pytest.importorskip("transformers")
    ours = written(tmp_path, trained(**OPTIONS[kind]), tokenizer_class="LlamaTokenizer")
    ours.save(tmp_path / "saved")
    again = read(tmp_path / "saved")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    for text in [*TEXTS, *NASTY[:5], NASTY[7]]:
        assert again.encode(text).ids == ours.encode(text).ids, repr(text)
        assert tuple(theirs(text)["input_ids"]) == ours.encode(text).ids, repr(text)
    assert again.roles == ours.roles


@pytest.mark.parametrize("rule", ["identity", "nfkc", "nmt_nfkc"])
def test_what_is_saved_keeps_all_white_space_but_spaces_at_the_ends_of_a_text(tmp_path: Path, rule: str) -> None:
    model = trained(normalization_rule_name=rule, **BYTES)
    ours = written(tmp_path, model)
    ours.save(tmp_path / "saved")
    again = read(tmp_path / "saved")
    theirs = SentencePieceProcessor(model_proto=model)
    spaces = ["\n", "\t", "\r\n", "\u00a0", "\u3000", "\u2028", " ", "  \n ", "\n  ", "\u2581", " \u2581", "\u2581 "]
    texts = [f"{space}{text}{end}" for space in spaces for text in ("the dog", "") for end in (space, "", " ")]
    for text in texts:
        assert list(ours.encode(text).ids) == theirs.encode(text), repr(text)
        assert again.encode(text).ids == ours.encode(text).ids, repr(text)


ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": "[CLS],[SEP],[MASK]"}
GEMMA = {**BYTES, **AS_IS, "add_dummy_prefix": False, "pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3}
GEMMA |= {"bos_piece": "<bos>", "eos_piece": "<eos>", "control_symbols": "<mask>"}
DEBERTA = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "pad_piece": "[PAD]", "bos_piece": "[CLS]"}
DEBERTA |= {"eos_piece": "[SEP]", "unk_piece": "[UNK]"}
DEBERTA_SETTINGS = [None, {"vocab_type": "spm", "do_lower_case": True}, {"split_by_punct": True}]
CLASSES: list[tuple[str, str, dict[str, Any], list[dict[str, Any] | None]]] = [
    ("camembert", "sentencepiece.bpe.model", {}, [None, {}, {"add_prefix_space": False}]),
    ("xlm-roberta", "sentencepiece.bpe.model", {}, [None, {"add_prefix_space": False}]),
    ("albert", "spiece.model", ALBERT, [None, {"do_lower_case": False}, {"keep_accents": True}]),
    ("deberta-v2", "spm.model", DEBERTA, [*DEBERTA_SETTINGS, {"add_prefix_space": False}]),
    ("t5", "spiece.model", T5, [None, {"extra_ids": 3}]),
    ("mt5", "spiece.model", T5, [{"extra_ids": 0}]),
    ("pegasus", "spiece.model", T5, [None]),
    ("gemma", "tokenizer.model", GEMMA, [None, {"add_bos_token": True, "add_eos_token": True}]),
    ("llama", "tokenizer.model", BYTES | AS_IS, [{"tokenizer_class": "LlamaTokenizer"}]),
    ("llama", "tokenizer.model", BYTES | AS_IS, [{"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": True}]),
    ("llama", "tokenizer.model", BYTES | AS_IS, [{"tokenizer_class": "LlamaTokenizer", "legacy": True}]),
    ("llama", "tokenizer.model", BYTES | AS_IS, [{"tokenizer_class": "LlamaTokenizer", "add_prefix_space": False}]),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "file", "options", "settings"),
    [(kind, file, options, each) for kind, file, options, several in CLASSES for each in several],
)
def test_a_class_makes_the_same_of_its_file_and_of_a_tokenizer_json_as_in_transformers(
    tmp_path: Path, kind: str, file: str, options: dict[str, Any], settings: dict[str, Any] | None
) -> None:
    transformers = pytest.importorskip("transformers")
    (tmp_path / file).write_bytes(trained(**options))
    for folder in (tmp_path, tmp_path / "whole"):
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"model_type": kind}))
        if settings is not None:
            (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
        ours = read(folder)
        texts = [
            *TEXTS,
            *NASTY[:5],
            *NASTY[6:9],
            "x <mask>y [MASK] z",
            "ÉTÉ ``q'' ''",
            "<s>the</s> <bos>dog <eos>[SEP]",
        ]
        for text in texts:
            assert list(ours.encode(text).ids) == theirs(text)["input_ids"], text
            if theirs.unk_token_id not in (ids := ours.encode(text).ids):
                assert ours.decode(ids, special=False) == theirs.decode(ids, skip_special_tokens=True), text
        assert list(ours.encode("the dog", "a <mask>").ids) == theirs("the dog", "a <mask>")["input_ids"]
        theirs.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
        if folder is tmp_path:
            (tmp_path / "whole").mkdir()
            (tmp_path / "tokenizer.json").rename(tmp_path / "whole" / "tokenizer.json")


def test_a_class_that_numbers_its_pieces_otherwise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got a MBartTokenizer"):
        written(tmp_path, trained(), tokenizer_class="MBartTokenizer")


def test_a_tokenizer_json_is_believed_before_a_model_file(tmp_path: Path) -> None:
    written(tmp_path / "one", trained()).save(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(b"no model")
    assert read(tmp_path).kind == "unigram"


def changed(change: Callable[[Any], None]) -> bytes:
    model = proto.ModelProto.FromString(trained(**BYTES))
    change(model)
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (lambda m: m.ClearField("trainer_spec"), "cut off"),
        (lambda m: m.ClearField("pieces"), "0 pieces"),
        (lambda m: m.pieces.add(piece="a", score=0), "there twice"),
        (lambda m: m.pieces.add(piece="x" * 10_000, score=0), "512 characters"),
        (lambda m: m.pieces.add(piece="qqq", score=float("nan")), "no number"),
        (lambda m: m.pieces.add(piece="qqq", score=0, type=2), "unknown piece"),
        (lambda m: m.pieces.add(piece="qqq", score=0, type=5), "not to be used"),
        (lambda m: m.pieces.add(piece="<0x1FF>", score=0, type=6), "bytes"),
        (lambda m: setattr(m.trainer_spec, "model_type", 3), "whole words"),
        (lambda m: setattr(m.trainer_spec, "treat_whitespace_as_suffix", True), "marks spaces"),
        (lambda m: setattr(m.normalizer_spec, "precompiled_charsmap", b"\xff\xff\xff\xff\0"), "damaged"),
        (
            lambda m: setattr(m.normalizer_spec, "precompiled_charsmap", b"\4\0\0\0\0\0\0\0" + b"x" * 999 + b"\0"),
            "damaged",
        ),
    ],
)
def test_what_cannot_be_read_is_named_in_one_sentence(
    tmp_path: Path, change: Callable[[Any], None], wrong: str
) -> None:
    with pytest.raises(ValueError, match=rf"^Expected .*tokenizer\.model, got .*{wrong}.*; .*\.$"):
        written(tmp_path, changed(change))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.floats(0, 1), cut=st.integers(0, 40), put=st.binary(max_size=12), charsmap=st.booleans())
@example(at=0.0, cut=10**9, put=b"", charsmap=False)
@example(at=0.5, cut=10**9, put=b"", charsmap=False)
def test_a_damaged_file_is_read_whole_or_refused(
    tmp_path: Path, at: float, cut: int, put: bytes, charsmap: bool
) -> None:
    def damaged(data: bytes) -> bytes:
        start = int(at * len(data))
        return data[:start] + put + data[start + cut :]

    if charsmap:
        model = proto.ModelProto.FromString(trained())
        model.normalizer_spec.precompiled_charsmap = damaged(model.normalizer_spec.precompiled_charsmap)
        data = model.SerializeToString()
    else:
        data = damaged(trained(**BYTES))
    try:
        tokenizer = written(tmp_path, data)
    except ValueError as error:
        assert "tokenizer.model" in str(error) and str(error).startswith("Expected ")
        return
    encoding = tokenizer.encode(FOREIGN)
    assert all(0 <= id < tokenizer.vocab_size for id in encoding.ids)
    assert tokenizer.decode(encoding.ids)
