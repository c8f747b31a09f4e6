"""WordPiece: the pieces BERT makes, the vocabulary that most frequent neighbours give, pairs as BERT reads them."""

from collections import Counter
from pathlib import Path

import pytest

from engine.data.stories import story
from engine.tokenizers import read_tokenizer, train

TEXTS = [story(1, index) for index in range(300)]
TRAINED = train("wordpiece", TEXTS, 400)
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def test_berts_five_come_first_and_have_their_roles() -> None:
    assert TRAINED.pieces[:5] == BERT
    roles = (TRAINED.pad_id, TRAINED.cls_id, TRAINED.sep_id, TRAINED.mask_id, TRAINED.end_id)
    assert roles == (0, 2, 3, 4, None)
    assert train("wordpiece", TEXTS, 100, special_tokens=("<end>", "[PAD]")).pieces[:6] == (*BERT, "<end>")


def test_a_pair_is_read_as_bert_reads_it() -> None:
    encoding = TRAINED.encode("The cat", "Sat!")
    cls, sep = 2, 3
    assert [id for id in encoding.ids if id in (cls, sep)] == [cls, sep, sep]
    middle = encoding.ids.index(sep)
    assert encoding.segments == (0,) * (middle + 1) + (1,) * (len(encoding) - middle - 1)
    assert (encoding.ids[0], encoding.ids[-1]) == (cls, sep)
    assert encoding.spans[0] == (0, 0) and encoding.spans[middle] == (7, 7) and encoding.spans[-1] == (12, 12)
    words = [encoding.text[start:end] for start, end in encoding.spans[middle + 1 : -1]]
    assert "".join(words) == "Sat!"


def test_a_piece_that_continues_a_word_is_marked_and_spans_its_letters() -> None:
    encoding = train("wordpiece", ["walk walking talk talking"], 100).encode("Talk, walkking", special=False)
    assert encoding.pieces == ("talk", "[UNK]", "walk", "##k", "##ing")
    assert encoding.spans == ((0, 4), (4, 5), (6, 10), (10, 11), (11, 14))


def test_each_entry_joins_the_most_frequent_neighbours_of_its_time() -> None:
    """Replays the learned entries in order; which of several equally frequent pairs is taken is left open."""
    words = Counter(word for text in TEXTS for word in split_as_bert(text))
    spelt = {word: [word[0], *("##" + letter for letter in word[1:])] for word in words}
    symbols = {symbol for pieces in spelt.values() for symbol in pieces} | {letter for word in words for letter in word}
    entries = TRAINED.pieces[5:]
    assert set(entries[: len(symbols)]) == symbols
    for entry in entries[len(symbols) :]:
        neighbours = Counter[tuple[str, str]]()
        for word, pieces in spelt.items():
            for pair in zip(pieces, pieces[1:], strict=False):
                neighbours[pair] += words[word]
        chosen = max(
            (pair for pair in neighbours if pair[0] + pair[1].removeprefix("##") == entry), key=neighbours.__getitem__
        )
        assert neighbours[chosen] == max(neighbours.values()), entry
        spelt = {word: merged(pieces, chosen, entry) for word, pieces in spelt.items()}


def merged(pieces: list[str], pair: tuple[str, str], entry: str) -> list[str]:
    result: list[str] = []
    for piece in pieces:
        if result and (result[-1], piece) == pair:
            result[-1] = entry
        else:
            result.append(piece)
    return result


def split_as_bert(text: str) -> list[str]:
    """The stories are plain English: lower case, split at spaces and around each punctuation mark."""
    return "".join(sign if sign.isalnum() or sign == " " else f" {sign} " for sign in text.lower()).split()


def test_the_words_of_a_story_come_back_in_lower_case() -> None:
    text = story(2, 0)
    encoding = TRAINED.encode(text)
    assert TRAINED.piece(1) not in encoding.pieces
    said = TRAINED.decode(encoding.ids, special=False)
    assert split_as_bert(said) == split_as_bert(text)


def test_a_character_without_room_makes_its_words_unknown() -> None:
    tokenizer = train("wordpiece", ["aaa aab z"], 5 + 3)
    assert tokenizer.pieces == (*BERT, "a", "##a", "##b")
    assert tokenizer.encode("aab z aaz", special=False).pieces == ("a", "##a", "##b", "[UNK]", "[UNK]")


@pytest.mark.parametrize("beside_a_bert", [False, True])
def test_transformers_reads_pairs_with_their_segments(tmp_path: Path, beside_a_bert: bool) -> None:
    transformers = pytest.importorskip("transformers")
    TRAINED.save(tmp_path)
    if beside_a_bert:
        (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    reference = transformers.AutoTokenizer.from_pretrained(tmp_path)
    first, second = "Ünknown 🦉 cat, [MASK]", "The dog's ball."
    encoding = TRAINED.encode(first, second)
    assert tuple(reference(first, second)["input_ids"]) == encoding.ids
    assert tuple(reference(first, second)["token_type_ids"]) == encoding.segments
    assert (reference.mask_token_id, reference.unk_token_id) == (TRAINED.mask_id, 1)
    again = read_tokenizer(tmp_path)
    assert again is not None and again.encode(first, second) == encoding
