"""What every trained kind must keep: the text, the place of each token in it, and the same ids every time."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.tokenizers import END, FastTokenizer, draw_piece, read_tokenizer, tokenizer_kinds, train

NASTY = (
    "The cat's  mat,\tnaïve — don't (ever)!\r\n\n café cafe\u0301 👩\u200d👩\u200d👧 🇫🇷❤\ufe0f "
    "中文字。 ไทย שלום עולם مرحبا\u064b \u202eabc\u202c a\u200bb "
    "· \\n <b>&amp;</b> \0\ufeff\ufffd 𝔘𝔫𝔦 x=1; "
)
TEXTS = [NASTY, "the cat sat on the mat", "the dog sat, too."]
KINDS = {kind: train(kind, TEXTS) for kind in tokenizer_kinds()}
OF_BYTES = [KINDS["byte"], KINDS["bpe"]]
OF_CHARACTERS = ["char", "word", "bpe-characters"]
NORMALISING = {"wordpiece", "unigram"}  # not every text comes back from these, see their own tests
SIZES = {"byte": None, "unigram": 500}

every_kind = pytest.mark.parametrize("kind", KINDS)
exact_kind = pytest.mark.parametrize("kind", sorted(KINDS.keys() - NORMALISING))
any_text = st.text(st.characters(exclude_categories=["Cs"]))


@exact_kind
@pytest.mark.parametrize("text", [NASTY, "", " ", "   ", "\0", f"the cat{END}the dog"])
def test_text_survives_encoding_and_its_tokens_cover_it_in_order(kind: str, text: str) -> None:
    encoding = KINDS[kind].encode(text)
    assert KINDS[kind].decode(encoding.ids) == text
    assert_spans_cover(text, encoding.spans, between_words=" " if kind == "word" else "")


@every_kind
def test_ids_alone_are_those_of_the_encoding(kind: str) -> None:
    for special in (True, False):
        text = f"the cat{END}the [MASK] dog"
        assert KINDS[kind].ids(text, special=special) == list(KINDS[kind].encode(text, special=special).ids)
    with pytest.raises(ValueError, match="lone surrogate"):
        KINDS[kind].ids("a \ud800 b")


@pytest.mark.parametrize("kind", OF_CHARACTERS)
def test_the_span_of_a_token_holds_exactly_its_piece(kind: str) -> None:
    encoding = KINDS[kind].encode(NASTY)
    assert encoding.pieces == tuple(draw_piece(NASTY[start:end]) for start, end in encoding.spans)


@given(any_text)
@example("\ufeff\u0301 ·\u2028Ġ")
def test_bytes_spell_any_unicode_and_parts_of_a_character_span_it(text: str) -> None:
    for tokenizer in OF_BYTES:
        encoding = tokenizer.encode(text)
        assert tokenizer.decode(encoding.ids) == text
        assert_spans_cover(text, encoding.spans)


@settings(max_examples=50, deadline=None)
@given(any_text.filter(bool))
@example("a  b , c\nd e\u0301 \u0301 ' 'x' don't  中 文")
@example(":\u0301a ❤\ufe0fb ❤\ufe0f b")
def test_words_decode_exactly_whatever_the_text(text: str) -> None:
    tokenizer = train("word", [text])
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_words_keep_punctuation_apart_and_leave_out_the_space_between_words() -> None:
    assert KINDS["word"].encode("the cat's mat, too.").pieces == ("the", "cat's", "mat", ",", "·", "too", ".")


def test_an_emoji_with_its_joiners_is_one_word() -> None:
    family = "👩\u200d👩\u200d👧"
    assert KINDS["word"].encode(f"cat {family}").spans == ((0, 3), (3, 4), (4, 4 + len(family)))


def test_a_byte_token_is_its_byte() -> None:
    assert KINDS["byte"].encode("é\0").ids == (0xC3, 0xA9, 0)
    assert KINDS["byte"].encode("é").pieces == ("<C3>", "<A9>")
    assert KINDS["byte"].end_id == 256


@pytest.mark.parametrize(
    ("kind", "text", "unknown_span"),
    [
        ("char", "the 🦉 sat", (4, 5)),
        ("word", "the owl sat", (4, 7)),
        ("bpe-characters", "the 🦉 sat", (4, 5)),
    ],
)
def test_what_was_never_seen_becomes_unknown_where_it_stands(
    kind: str, text: str, unknown_span: tuple[int, int]
) -> None:
    encoding = KINDS[kind].encode(text)
    at = encoding.pieces.index("<unk>")
    assert encoding.spans[at] == unknown_span
    assert not encoding.special[at]
    assert KINDS[kind].decode(encoding.ids) == text[: unknown_span[0]] + "<unk>" + text[unknown_span[1] :]


@every_kind
def test_a_lone_surrogate_is_refused_with_its_place(kind: str) -> None:
    with pytest.raises(ValueError, match=r"U\+D800 at index 3"):
        KINDS[kind].encode("cat\ud800")


@every_kind
def test_the_same_texts_give_the_same_ids(kind: str) -> None:
    many_ties = ["".join(map(chr, range(0x4E00, 0x4F00))), *TEXTS]
    vocabularies = {train(kind, many_ties, SIZES.get(kind, 300)).pieces for _ in range(4)}
    assert len(vocabularies) == 1


@pytest.mark.parametrize("kind", ["char", "word", "bpe", "bpe-characters"])
def test_a_vocabulary_is_as_large_as_asked_for_or_refused(kind: str) -> None:
    assert train(kind, TEXTS, 265 if kind == "bpe" else 9).vocab_size == (265 if kind == "bpe" else 9)
    with pytest.raises(ValueError, match="raise vocab_size"):
        train(kind, TEXTS, 1)


@every_kind
def test_saving_keeps_kind_ids_and_end(kind: str, tmp_path: Path) -> None:
    before = KINDS[kind]
    before.save(tmp_path)
    after = read_tokenizer(tmp_path)
    assert after is not None
    assert (after.kind, after.end_id, after.pieces) == (before.kind, before.end_id, before.pieces)
    assert after.encode(NASTY) == before.encode(NASTY)


@every_kind
def test_transformers_reads_the_same_ids_and_text(kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    KINDS[kind].save(tmp_path)
    reference = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ids = KINDS[kind].encode(NASTY).ids
    assert tuple(reference(NASTY)["input_ids"]) == ids
    assert reference.decode(ids) == (KINDS[kind].decode(ids) if kind in NORMALISING else NASTY)
    assert reference.eos_token_id == KINDS[kind].end_id


@every_kind
@pytest.mark.parametrize("text", ["a" * 10_000, NASTY * 40])
def test_ten_thousand_characters_are_read_to_their_end(kind: str, text: str) -> None:
    spans = KINDS[kind].encode(text, special=False).spans
    read = text.rstrip() if kind == "wordpiece" else text
    assert spans[0][0] == 0 and spans[-1][1] == len(read)


def test_special_tokens_are_flagged_and_can_be_left_out() -> None:
    tokenizer: FastTokenizer = train("char", TEXTS, special_tokens=("<start>", END))
    encoding = tokenizer.encode(f"<start>the{END}")
    assert encoding.special == (True, False, False, False, True)
    assert tokenizer.decode(encoding.ids, special=False) == "the"


def test_an_id_outside_the_vocabulary_is_shown_not_dropped() -> None:
    tokenizer = KINDS["byte"]
    assert tokenizer.piece(999) == "#999"
    assert tokenizer.decode([104, 105, 999, 104, 0xF0]) == "hi#999h<F0>"


def assert_spans_cover(text: str, spans: tuple[tuple[int, int], ...], between_words: str = "") -> None:
    covered = 0
    previous = (0, 0)
    for start, end in spans:
        assert previous[0] <= start < end and previous[1] <= end
        assert start <= covered or text[covered:start] == between_words
        covered, previous = end, (start, end)
    assert covered == len(text)


@every_kind
def test_typed_names_of_special_tokens_are_those_tokens_and_drawn_as_they_are(kind: str) -> None:
    names = ("[gMASK]", "[sop]", "[eop]", "[MASK]")
    tokenizer = train(kind, TEXTS, special_tokens=names)
    encoding = tokenizer.encode("the [gMASK] sat[sop]cat[eop] [MASK].")
    found = [(piece, id) for piece, id in zip(encoding.pieces, encoding.ids, strict=True) if piece in names]
    assert found == [(name, tokenizer.special_tokens[name]) for name in names]
    for name in names:
        at = encoding.pieces.index(name)
        assert encoding.special[at]
        assert encoding.text[slice(*encoding.spans[at])] == name
    assert tokenizer.mask_id == tokenizer.special_tokens["[MASK]"]


@every_kind
def test_the_tokens_of_a_pair_stand_in_the_text_of_both(kind: str) -> None:
    tokenizer = KINDS[kind]
    first, second = "the dog sat, too.", "the cat"
    both = tokenizer.encode(first, second, special=False)
    assert both.text == "the dog sat, too.\nthe cat"
    assert both.ids == tokenizer.encode(first, special=False).ids + tokenizer.encode(second, special=False).ids
    of_second = [span for span, segment in zip(both.spans, both.segments, strict=True) if segment == 1]
    alone = tokenizer.encode(second, special=False).spans
    assert of_second == [(start + len(first) + 1, end + len(first) + 1) for start, end in alone]


def test_a_lone_surrogate_in_the_second_text_is_refused() -> None:
    with pytest.raises(ValueError, match=r"U\+D800 at index 1"):
        KINDS["byte"].encode("cat", "c\ud800")


def test_a_tokenizer_without_roles_has_no_tokens_for_them() -> None:
    tokenizer = KINDS["char"]
    assert (tokenizer.mask_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.pad_id) == (None,) * 4
