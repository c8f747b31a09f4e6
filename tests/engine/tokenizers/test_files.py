"""Tokenizers as checkpoints carry them: the same ids as the reference, and clear words about broken files."""

import json
import re
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from tokenizers import ByteLevelBPETokenizer

from engine.tokenizers import END, FastTokenizer, read_tokenizer, train
from engine.tokenizers.settings import KEYS

REAL = Path(__file__).parents[3].parent / "shared" / "real"
NASTY = "Hello  world\n\n naïve cafe\u0301 👩\u200d👩\u200d👧 中文 שלום عربي · a\u200bb <|endoftext|> don't\t1234"
NASTY_FOR_BERT = (
    f"{NASTY} Ünïcödé İstanbul ﬁx ＡＢＣ ½ [MASK][mask] [CLS] Straße ñ a\u0301 한국어 \x7f\u00ad ~`$^+ ##ing # "
    f"{'x' * 100} {'x' * 101}"
)
BERT_CONFIGS: list[dict[str, Any]] = [
    {},
    {"do_lower_case": False},
    {"do_lower_case": False, "strip_accents": True},
    {"strip_accents": False},
    {"tokenize_chinese_chars": False},
]
FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
GPT2 = ("<|endoftext|>", "<|padding|>", "</s>", "<pad>")
BERT_MARKS = ("[CLS]", "[SEP]", "[PAD]", "[MASK]")
OPT_MARKS = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "</s>") | {"pad_token": "<pad>"}
LEFT_SPACE = {"__type": "AddedToken", "content": "<mask>", "lstrip": True}
TEXTS = [
    "",
    " ",
    "a cat",
    "  The  CAT\n\n sat ",
    "naïve cafe\u0301 ÉTÉ",
    "中文 日本語x",
    "👩\u200d👧 🇫🇷",
    "don't\t1234 ``q''",
    "x <mask> y<mask>z [MASK] w",
    "<s>a</s> b<pad> [CLS]c[SEP] <|endoftext|> d",
    "\u00a0ﬁ ＡＢＣ ½ Ж♞",
    "<unk> [UNK]",
]
PAIRS = [("a cat", "the dog"), ("", "x"), ("a <mask>", "  b </s> ")]
BYTE_LEVEL: list[tuple[str, tuple[str, ...]]] = [
    ("gpt2", GPT2),
    ("opt", GPT2),
    ("gpt_neo", GPT2),
    ("gptj", GPT2),
    ("phi", GPT2),
    ("codegen", GPT2),
    ("starcoder2", GPT2),
    ("gpt_neox", GPT2),
    ("qwen2", GPT2),
    ("qwen3", GPT2),
    ("roberta", FAIRSEQ),
    ("bart", FAIRSEQ),
    ("deberta", ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")),
]
BYTE_CONFIGS: list[dict[str, Any] | None] = [
    None,
    {"add_prefix_space": True},
    {"add_bos_token": True},
    {"add_bos_token": True, "add_eos_token": True},
    {"truncation_side": "left", "split_special_tokens": True},
]
WORDS = {"milling": 0, "thread milling": 1, "thread": 2, "<EOS>": 3}


@pytest.fixture
def real() -> Path:
    if not REAL.exists():
        pytest.skip(f"no real checkpoints at {REAL}")
    return REAL


def read(folder: Path) -> FastTokenizer:
    tokenizer = read_tokenizer(folder)
    assert tokenizer is not None
    return tokenizer


@pytest.mark.parametrize("files", [["tokenizer.json"], ["vocab.json", "merges.txt"]])
def test_gpt2_gives_the_ids_of_transformers_from_either_form(real: Path, tmp_path: Path, files: list[str]) -> None:
    transformers = pytest.importorskip("transformers")
    for file in files:
        copy(real / "tokenizers" / "gpt2" / file, tmp_path)
    tokenizer = read(tmp_path)
    reference = transformers.GPT2TokenizerFast.from_pretrained(real / "tokenizers" / "gpt2")
    assert tokenizer.encode("Hello world").ids == (15496, 995)
    assert tokenizer.encode(NASTY).ids == tuple(reference(NASTY)["input_ids"])
    assert tokenizer.decode(tokenizer.encode(NASTY).ids) == NASTY
    assert (tokenizer.kind, tokenizer.vocab_size, tokenizer.end_id) == ("bpe", 50257, 50256)


def test_bert_adds_its_special_tokens_at_empty_spans_and_no_padding(real: Path) -> None:
    encoding = read(real / "tokenizers" / "bert-base-uncased").encode("Hello world!")
    assert encoding.ids == (101, 7592, 2088, 999, 102)
    assert encoding.pieces == ("[CLS]", "hello", "world", "!", "[SEP]")
    assert encoding.spans == ((0, 0), (0, 5), (6, 11), (11, 12), (12, 12))
    assert encoding.special == (True, False, False, False, True)


@pytest.mark.parametrize("config", BERT_CONFIGS)
def test_the_real_vocab_txt_gives_the_ids_of_transformers(real: Path, tmp_path: Path, config: dict[str, Any]) -> None:
    copy(real / "tokenizers" / "bert-base-uncased" / "vocab.txt", tmp_path)
    assert_reads_as_bert(tmp_path, config)
    tokenizer = read(tmp_path)
    assert (tokenizer.kind, tokenizer.vocab_size) == ("wordpiece", 30522)
    assert (tokenizer.mask_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id) == (103, 101, 102, 0)


@pytest.mark.parametrize("config", BERT_CONFIGS)
def test_a_vocab_txt_gives_the_ids_of_transformers(tmp_path: Path, config: dict[str, Any]) -> None:
    entries = train("wordpiece", [NASTY_FOR_BERT], 400).pieces
    (tmp_path / "vocab.txt").write_text("\n".join(entries), encoding="utf-8")
    assert_reads_as_bert(tmp_path, config)


def assert_reads_as_bert(folder: Path, config: dict[str, Any]) -> None:
    """The same as the tokenizer that transformers has now, and as the older one that is written in Python."""
    transformers = pytest.importorskip("transformers")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **config}))
    encoding = read(folder).encode(NASTY_FOR_BERT, "The [MASK] café.")
    assert len(set(encoding.ids)) >= 30
    reference = transformers.AutoTokenizer.from_pretrained(folder)(NASTY_FOR_BERT, "The [MASK] café.")
    assert encoding.ids == tuple(reference["input_ids"])
    assert encoding.segments == tuple(reference["token_type_ids"])
    older = transformers.BertTokenizerLegacy.from_pretrained(folder)
    assert encoding.ids == tuple(older(NASTY_FOR_BERT, "The [MASK] café.")["input_ids"])


@pytest.mark.parametrize(("kind", "special"), [("mpnet", (*FAIRSEQ, "[UNK]")), ("nomic_bert", ("[UNK]", *BERT_MARKS))])
@pytest.mark.parametrize("settings", [{}, {"do_lower_case": False, "strip_accents": True}], ids=str)
def test_a_vocab_txt_is_read_by_the_class_of_its_model(
    tmp_path: Path, kind: str, special: tuple[str, ...], settings: dict[str, Any]
) -> None:
    entries = [one for one in train("wordpiece", [NASTY_FOR_BERT], 400).pieces if one not in BERT_MARKS + ("[UNK]",)]
    (tmp_path / "vocab.txt").write_text("\n".join([*special, *entries]), encoding="utf-8")
    write_settings(tmp_path, kind, settings)
    assert len(set(assert_reads_as_transformers(tmp_path).encode(NASTY_FOR_BERT).ids)) >= 30
    assert_reads_as_transformers(write_whole(tmp_path, kind, settings))


ESM = "<cls> <pad> <eos> <unk> L A G V S E R T I D P K Q N F Y M H W C X B U Z O . - <null_1> <mask>".split()
PROTEINS = ["MKTAYIAKQRQISFVKSH", "MKT LLA\n<mask>A", "mKt xyz é L", "M<null_1>K <cls>", "A.-B<eos>", "MK[MASK]<unk>T"]


@pytest.mark.parametrize("settings", [None, {"tokenizer_class": "EsmTokenizer"}, {"mask_token": "<null_1>"}], ids=str)
def test_the_letters_of_a_protein_are_read_as_transformers_reads_them(
    tmp_path: Path, settings: dict[str, Any] | None
) -> None:
    reference = pytest.importorskip("transformers").AutoTokenizer
    (tmp_path / "vocab.txt").write_text("\n".join(ESM), encoding="utf-8")
    write_settings(tmp_path, "esm", settings)
    theirs = reference.from_pretrained(tmp_path)
    assert_reads_as_transformers(tmp_path)
    tokenizer = read(tmp_path)
    for text, pair in [*((text, None) for text in PROTEINS), ("MK", "L A")]:
        encoding = tokenizer.encode(text, pair)
        assert list(encoding.ids) == theirs(text, pair)["input_ids"], text
    assert "".join(PROTEINS[0][start:end] for start, end in tokenizer.encode(PROTEINS[0]).spans) == PROTEINS[0]
    assert tokenizer.vocab_size == 33 and tokenizer.mask_id == theirs.mask_token_id
    tokenizer.save(tmp_path / "saved")
    assert read(tmp_path / "saved").encode(PROTEINS[1]).ids == tokenizer.encode(PROTEINS[1]).ids


def write_byte_level(folder: Path, special: tuple[str, ...]) -> None:
    """`vocab.json` and `merges.txt`."""
    folder.mkdir(exist_ok=True)
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator([NASTY, *TEXTS] * 3, vocab_size=400, special_tokens=[*special], show_progress=False)
    trained.save_model(str(folder))


def write_settings(folder: Path, kind: str | None, settings: dict[str, Any] | None) -> None:
    if kind is not None:
        (folder / "config.json").write_text(json.dumps({"model_type": kind}))
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def assert_reads_as_transformers(folder: Path) -> FastTokenizer:
    """Ids, segment ids, and what ids without an unknown one decode to."""
    reference = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(folder)
    tokenizer = read(folder)
    for text, pair in [*((text, None) for text in TEXTS), *PAIRS]:
        expected = reference(text, pair)
        encoding = tokenizer.encode(text, pair)
        assert list(encoding.ids) == expected["input_ids"], (text, pair)
        assert list(encoding.segments) == expected.get("token_type_ids", list(encoding.segments)), (text, pair)
        decoded = reference.decode(encoding.ids, skip_special_tokens=True)
        if reference.unk_token_id not in encoding.ids and "\ufffd" not in decoded:
            assert tokenizer.decode(encoding.ids, special=False) == decoded, (text, pair)
    return tokenizer


def write_whole(folder: Path, kind: str, settings: dict[str, Any] | None) -> Path:
    """The tokenizer.json that transformers makes of a folder, in a new one beside `settings`."""
    made = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(folder)
    (folder / "whole").mkdir()
    made.backend_tokenizer.save(str(folder / "whole" / "tokenizer.json"))
    write_settings(folder / "whole", kind, settings)
    return folder / "whole"


@pytest.mark.parametrize(("kind", "special"), BYTE_LEVEL, ids=[kind for kind, _ in BYTE_LEVEL])
@pytest.mark.parametrize("settings", BYTE_CONFIGS, ids=str)
def test_two_files_are_read_by_the_class_of_their_model(
    tmp_path: Path, kind: str, special: tuple[str, ...], settings: dict[str, Any] | None
) -> None:
    write_byte_level(tmp_path, special)
    write_settings(tmp_path, kind, settings)
    assert_reads_as_transformers(tmp_path)
    assert_reads_as_transformers(write_whole(tmp_path, kind, settings))


@pytest.mark.parametrize(
    ("settings", "special"),
    [
        ({"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True, **OPT_MARKS}, ("<pad>", "</s>")),
        ({"tokenizer_class": "RobertaTokenizerFast", "mask_token": LEFT_SPACE}, FAIRSEQ),
        ({"tokenizer_class": "LongformerTokenizer"}, FAIRSEQ),
        ({"tokenizer_class": "CodeGenTokenizer"}, GPT2),
        ({"tokenizer_class": "GPTNeoXTokenizerFast", "add_eos_token": True}, GPT2),
        ({"tokenizer_class": "RobertaTokenizer", "cls_token": "<pad>", "sep_token": "<unk>"}, FAIRSEQ),
    ],
    ids=str,
)
def test_two_files_are_read_by_the_class_that_is_named(
    tmp_path: Path, settings: dict[str, Any], special: tuple[str, ...]
) -> None:
    write_byte_level(tmp_path, special)
    write_settings(tmp_path, "gpt2", settings)
    assert_reads_as_transformers(tmp_path)
    assert_reads_as_transformers(write_whole(tmp_path, "gpt2", settings))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("llama", {"tokenizer_class": "LlamaTokenizerFast"}),
        ("gpt2", {"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": True, "add_bos_token": True}),
        ("phi3", {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True}),
        ("qwen2", {"tokenizer_class": "LlamaTokenizer"}),
        ("gpt2", {"additional_special_tokens": ["a"], "pad_token": "</s>", "eos_token": "<pad>"}),
    ],
    ids=str,
)
def test_the_class_that_a_tokenizer_json_is_read_by_is_that_of_transformers(
    tmp_path: Path, kind: str, settings: dict[str, Any]
) -> None:
    write_byte_level(tmp_path, FAIRSEQ + GPT2[:1])
    write_settings(tmp_path, "gpt2", {})
    assert_reads_as_transformers(write_whole(tmp_path, kind, settings))


def test_a_special_token_that_no_template_can_name_is_refused(tmp_path: Path) -> None:
    write_byte_level(tmp_path, ("$C:x",))
    write_settings(tmp_path, "gpt2", {"bos_token": "$C:x", "add_bos_token": True})
    with pytest.raises(ValueError, match=r"^Expected special tokens beside .*; name others\.$"):
        read_tokenizer(tmp_path)


def test_older_files_beside_say_which_tokens_take_the_space_before_them(tmp_path: Path) -> None:
    write_byte_level(tmp_path, FAIRSEQ)
    write_settings(tmp_path, "roberta", {"mask_token": "<unk>"})
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"mask_token": {"content": "<mask>", "lstrip": True}}))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<new>": read(tmp_path).vocab_size}))
    tokenizer = assert_reads_as_transformers(tmp_path)
    assert tokenizer.mask_id == 4
    assert len(tokenizer.encode("a <mask>", special=False)) == 2


@pytest.mark.parametrize("kind", ["bert", "distilbert", "electra", "mobilebert"])
@pytest.mark.parametrize("config", [*BERT_CONFIGS, {"clean_up_tokenization_spaces": True}, None], ids=str)
def test_case_and_accents_beside_a_tokenizer_json_are_obeyed(
    tmp_path: Path, kind: str, config: dict[str, Any] | None
) -> None:
    entries = dict.fromkeys([*train("wordpiece", [NASTY_FOR_BERT, *TEXTS], 400).pieces, "The", "CAT", "café", "ÉTÉ"])
    (tmp_path / "vocab.txt").write_text("\n".join(entries), encoding="utf-8")
    write_settings(tmp_path, kind, config)
    assert_reads_as_transformers(tmp_path)
    write_settings(tmp_path, kind, {})
    tokenizer = assert_reads_as_transformers(write_whole(tmp_path, kind, config))
    assert bool(tokenizer.notes) == bool(config and "clean_up_tokenization_spaces" not in config)
    tokenizer.save(tmp_path / "saved")
    assert read(tmp_path / "saved").encode(NASTY_FOR_BERT).ids == tokenizer.encode(NASTY_FOR_BERT).ids


def test_each_key_that_is_not_read_is_named_in_a_sentence(tmp_path: Path) -> None:
    train("wordpiece", ["the cat"], 60).save(tmp_path)
    assert read(tmp_path).notes == ()
    settings = dict.fromkeys(KEYS.keys() - {"added_tokens_decoder"}) | {
        "auto_map": ["a.B", None],
        "case_fold": True,
        "nothing": None,
    }
    write_settings(tmp_path, None, settings)
    (tmp_path / "special_tokens_map.json").write_text('{"image_token": "<image>", "pad_token": "<void>"}')
    notes = read(tmp_path).notes
    named = [next((key for key in (*settings, "image_token", "<void>") if repr(key) in note), None) for note in notes]
    assert named == ["auto_map", "case_fold", "image_token", "<void>"]
    assert all(re.fullmatch(r"[^.]*(\.json [^.]*)?\.", note) for note in notes)


def test_a_class_that_is_not_known_is_named_and_its_tokenizer_json_read(tmp_path: Path) -> None:
    tokenizer = train("bpe", ["the cat"], 262)
    tokenizer.save(tmp_path)
    write_settings(tmp_path, None, {"tokenizer_class": "FunnelTokenizer"})
    (note,) = read(tmp_path).notes
    assert "FunnelTokenizer" in note and read(tmp_path).encode("the").ids == tokenizer.encode("the").ids


def test_a_mark_that_the_vocabulary_lacks_is_named(tmp_path: Path) -> None:
    write_byte_level(tmp_path, ())
    write_settings(tmp_path, "opt", {"add_bos_token": True})
    (note,) = read(tmp_path).notes
    assert "'<|endoftext|>'" in note


def test_segment_ids_are_left_out_where_the_files_say_so(tmp_path: Path) -> None:
    train("wordpiece", ["the cat"], 60).save(tmp_path)
    write_settings(tmp_path, None, {"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids"]})
    tokenizer = read(tmp_path)
    assert set(tokenizer.encode("the", "cat").segments) == {0}
    tokenizer.save(tmp_path)
    assert set(read(tmp_path).encode("the", "cat").segments) == {0}


def test_spaces_before_marks_are_taken_away_where_the_files_say_so(tmp_path: Path) -> None:
    train("unigram", ["the cat . a dog ' s , no"] * 9, 60).save(tmp_path)
    file = tmp_path / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"clean_up_tokenization_spaces": True}))
    tokenizer = assert_reads_as_transformers(tmp_path)
    assert tokenizer.decode(tokenizer.encode("the cat . a dog 's , no").ids) == "the cat. a dog's, no"


def test_what_follows_an_added_token_is_shown_whole(tmp_path: Path) -> None:
    made = ByteLevelBPETokenizer()
    made.train_from_iterator(["the cat sat on the mat"] * 5, 300, special_tokens=["<s>", "<pad>", "</s>", "<unk>"])
    made.add_special_tokens(["<dev>"])
    made.save(str(tmp_path / "tokenizer.json"))
    write_settings(tmp_path, "roberta", {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": True})
    tokenizer = read(tmp_path)
    for text in ("the <dev>cat", "<dev>the cat<dev>sat", "a<dev>a<dev>a", "<dev> mat  a"):
        found = tokenizer.encode(text, special=False)
        for id, (start, end) in zip(found.ids, found.spans, strict=True):
            assert tokenizer.decode([id]).strip() == text[start:end].strip(), text


def test_white_space_at_the_end_of_a_line_of_a_vocab_txt_is_left_away(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the ", "cat\t", "sat\r", "on\u3000", "mat\x1f", "a\xa0 "]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", newline="")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    text = "the cat sat on mat a"
    reference = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(tmp_path)
    assert list(read(tmp_path).encode(text).ids) == reference(text)["input_ids"]


def test_of_an_entry_that_stands_twice_in_a_vocab_txt_the_later_line_counts(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\ncat\ndog\ncat\n", encoding="utf-8")
    tokenizer = read(tmp_path)
    assert tokenizer.encode("cat dog").ids == (3, 2)
    assert tokenizer.pieces == ("[UNK]", "#1", "dog", "cat")


def test_a_vocab_txt_of_another_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\ncat\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertJapaneseTokenizer"}')
    with pytest.raises(ValueError, match="got a BertJapaneseTokenizer; "):
        read_tokenizer(tmp_path)


def test_bert_spans_point_into_the_text_before_its_accents_were_stripped(real: Path) -> None:
    text = "Cafe\u0301 ÉTÉ"
    encoding = read(real / "tokenizers" / "bert-base-uncased").encode(text, special=False)
    assert [text[start:end] for start, end in encoding.spans][0].startswith("Cafe")
    assert encoding.pieces[0] == "cafe"
    assert text[encoding.spans[1][0] :] == "ÉTÉ"


def test_a_plain_vocabulary_reads_words_phrases_and_special_names(real: Path) -> None:
    tokenizer = read(real / "capp-gpt2")
    part = "geometry_prismatic holes_normal external_threads_yes surface_finish_normal tolerance_medium"
    encoding = tokenizer.encode(f"{part} batch_size_small <SOS> Milling Thread Milling")
    assert encoding.ids == (2, 8, 14, 17, 22, 25, 49, 30, 40)
    assert encoding.special == (False,) * 6 + (True, False, False)
    assert tokenizer.end_id == 51


def test_an_unknown_word_of_a_plain_vocabulary_is_named_beside_known_ones(tmp_path: Path) -> None:
    (tmp_path / "token_mappings.json").write_text(json.dumps({"token2id": WORDS}))
    tokenizer = read(tmp_path)
    assert tokenizer.encode("thread  milling thread milling\n<EOS>").ids == (2, 0, 1, 3)
    with pytest.raises(ValueError, match="got 'drilling'.*'milling'"):
        tokenizer.encode("milling drilling")


def test_a_plain_vocabulary_survives_saving(tmp_path: Path) -> None:
    (tmp_path / "token_mappings.json").write_text(json.dumps({"token2id": WORDS}))
    read(tmp_path).save(tmp_path / "saved")
    assert read(tmp_path / "saved").encode("thread milling <EOS>").ids == (1, 3)
    with pytest.raises(ValueError, match="drilling"):
        read(tmp_path / "saved").encode("drilling")


def test_an_unknown_token_in_a_plain_vocabulary_takes_unknown_words(tmp_path: Path) -> None:
    (tmp_path / "token_mappings.json").write_text(json.dumps({"token2id": {"<unk>": 0, "milling": 1}}))
    assert read(tmp_path).encode("milling drilling").ids == (1, 0)


def test_special_tokens_named_beside_the_vocabulary_are_honoured(tmp_path: Path) -> None:
    train("bpe", ["the cat"], 262, special_tokens=("<stop>",)).fast.model.save(str(tmp_path))
    assert read(tmp_path).special_tokens == {}
    (tmp_path / "special_tokens_map.json").write_text(
        json.dumps({"eos_token": {"content": "<stop>"}, "bos_token": "<s>"})
    )
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<image>": 262}))
    config = {
        "additional_special_tokens": ["!"],
        "added_tokens_decoder": {"263": {"content": "<pad>", "special": True}},
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = read(tmp_path)
    assert tokenizer.special_tokens.keys() == {"<stop>", "<pad>", "!"}
    assert tokenizer.end_id == 0
    assert tokenizer.encode("<image><pad><stop>").ids == (262, 263, 0)


def test_an_added_token_at_an_impossible_id_is_refused(tmp_path: Path) -> None:
    train("byte", []).save(tmp_path)
    (tmp_path / "added_tokens.json").write_text('{"<image>": 999}')
    with pytest.raises(ValueError, match="'<image>'.*999.*257"):
        read_tokenizer(tmp_path)


def test_a_folder_without_a_tokenizer_has_none(tmp_path: Path) -> None:
    assert read_tokenizer(tmp_path) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", "{"),
        ("tokenizer.json", "[]"),
        ("tokenizer.json", '{"model": 3}'),
        ("tokenizer.json", '{"model": {"type": "WordLevel", "vocab": {"a": 4000000000}, "unk_token": ""}}'),
        ("vocab.json", '{"a": 0}'),
        ("vocab.txt", "cat\ndog\n"),
        ("token_mappings.json", "{}"),
        ("token_mappings.json", '{"token2id": {"a": 0, "b": 0}}'),
        ("token_mappings.json", '{"token2id": {"a": "0"}}'),
        ("token_mappings.json", '{"token2id": {"a": 5000000000}}'),
    ],
)
def test_a_malformed_file_is_named_in_one_sentence(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=r"^Expected .*, (got|found) .*; .*\.$"):
        read_tokenizer(tmp_path)


def test_a_vocab_txt_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(b"[UNK]\n\xff\n")
    with pytest.raises(ValueError, match=r"vocab\.txt"):
        read_tokenizer(tmp_path)


def test_merges_that_do_not_fit_the_vocabulary_are_refused(tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    with pytest.raises(ValueError, match=r"merges\.txt"):
        read_tokenizer(tmp_path)


def test_entries_that_look_like_markup_are_just_text(tmp_path: Path) -> None:
    tokenizer = train("word", ["<script>alert(1)</script>"], special_tokens=("<img onerror=x>", END))
    assert tokenizer.pieces[1] == "<img·onerror=x>"
    assert tokenizer.decode(tokenizer.encode("<img onerror=x>").ids) == "<img onerror=x>"
