"""Everyday English keeps what it promises: right forms, nothing left unfilled, facts that stay unseen, whole words."""

import random
import re
from functools import cache

import pytest

from engine.data import everyday
from engine.data.corpora import read_corpus
from engine.data.everyday import PERSONS, Subject, Writer, document, facts, unseen_facts, words
from engine.tokenizers import train
from engine.training.measures.everyday import whole_share

CORPUS = "sentences", "topics", "talks", "plots", "words", "subjects"


@cache
def documents() -> list[str]:
    return [document(1, index) for index in range(600)]


@pytest.mark.parametrize(
    ("form", "word", "expected"),
    [
        ("past", "stop the car", "stopped the car"),
        ("past", "carry the bags", "carried the bags"),
        ("past", "go home", "went home"),
        ("done", "write a letter", "written a letter"),
        ("done", "play", "played"),
        ("ing", "make a cake", "making a cake"),
        ("ing", "lie in the sun", "lying in the sun"),
        ("ing", "see the sea", "seeing the sea"),
        ("third", "do some exercise", "does some exercise"),
        ("third", "catch a cold", "catches a cold"),
        ("third", "study math", "studies math"),
        ("plural", "piece of cake", "pieces of cake"),
        ("plural", "bus stop", "bus stops"),
        ("plural", "mouse", "mice"),
        ("er", "big", "bigger"),
        ("er", "happy", "happier"),
        ("er", "good", "better"),
        ("est", "interesting", "most interesting"),
        ("est", "nice", "nicest"),
    ],
)
def test_words_take_their_forms(form: str, word: str, expected: str) -> None:
    assert everyday.FORMS[form](word) == expected


def test_numbers_are_spelt_out() -> None:
    assert [everyday.spell(value) for value in (0, 13, 20, 21, 99, 100)] == [
        "zero", "thirteen", "twenty", "twenty-one", "ninety-nine", "one hundred",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("person", "expected"),
    [
        ("i", "I am glad and wash my hands."),
        ("she", "Anna is glad and washes her hands."),
        ("they", "Anna are glad and wash their hands."),
    ],
)
def test_a_verb_agrees_with_its_subject(person: str, expected: str) -> None:
    writer = Writer(random.Random(0).random)
    who = Subject("I" if person == "i" else "Anna", PERSONS[person])
    fields = {"who": who, "do": "wash {his} hands"}
    assert writer.line("{who} {who.be} glad and {pres:do}.", **fields) == expected


def test_articles_and_short_forms_are_put_right() -> None:
    assert everyday.typeset_line("a apple, a unicorn, a hour and a useful uncle.") == (
        "An apple, a unicorn, an hour and a useful uncle."
    )
    assert everyday.contract("I do not know. It is late. Yes, I am.") == "I don't know. It's late. Yes, I am."


def test_every_template_and_entry_can_be_filled() -> None:
    topics, frames = read_corpus("everyday/topics"), read_corpus("everyday/sentences")
    writer = Writer(random.Random(0).random)
    entries = [text for table in words().values() for text in table if isinstance(text, str)]
    for number, topic in enumerate(topics.values()):
        writer.topic = topic
        tables = [*topic.values(), *(table for name, table in frames.items() if name != "shares" and number == 0)]
        for text in (text for table in [*tables, entries if number == 0 else []] for text in table):
            filled = writer.line(text)
            assert not re.search(r"[{}_]|  | ,", filled), text
    for name in ("plots", "talks"):
        writer.pick_topic()
        for text in (
            text for steps in read_corpus(f"everyday/{name}")[name] for step in steps for text in step if text
        ):
            assert not re.search(r"[{}_]|  ", writer.line(text)), text


def test_documents_are_clean_english() -> None:
    assert len(set(documents())) > 590
    for text in documents():
        assert not re.search(r"[{}_]|  |\b[Aa] [aeio]\w|\bI (is|has|was not were)\b", text), text
        assert not re.search(r"\b(he|she|it) (are|have|do|were|am)\b|\b(we|they) (is|has|does|was|am)\b", text), text
        assert all(line[0].isupper() or line[0] == '"' for line in text.split("\n")), text
    assert {'"' in text for text in documents()} == {True, False}
    assert sum("n't " in text for text in documents()) > 20


def test_no_facts_state_what_is_kept_to_be_asked() -> None:
    kept = {f"{fact.prompt} {fact.answer}." for fact in unseen_facts()}
    assert 300 < len(kept) < 1_000
    assert {"capitals", "opposites", "adding", "days"} <= {fact.kind for fact in unseen_facts()}
    writer = Writer(random.Random(1).random)
    told = {line for _ in range(400) for line in everyday.write_facts(writer).split("\n")}
    assert len(told) > 1_000
    assert not told & kept


def test_sums_are_right() -> None:
    value = {everyday.spell(number): number for number in range(101)}
    assert all(value[row["x"]] + value[row["y"]] == value[row["sum"]] for row in facts()["adding"])
    assert all(value[row["x"]] * value[row["y"]] == value[row["product"]] for row in facts()["multiplying"])
    assert {"before": "Sunday", "day": "Monday", "after": "Tuesday"} in facts()["days"]


def test_no_template_has_a_visitor_s_sentence() -> None:
    visitors = set(read_corpus("everyday/visitors")["sentences"])
    assert len(visitors) == 300
    written = {text for name in CORPUS for text in strings(read_corpus(f"everyday/{name}"))}
    assert not visitors & written
    assert not any(line in visitors for text in documents() for line in re.split(r"\n|(?<=[.?!]) ", text))


def strings(table: object) -> list[str]:
    if isinstance(table, str):
        return [table]
    inside = table.values() if isinstance(table, dict) else table if isinstance(table, list) else ()
    return [text for each in inside for text in strings(each)]


def test_a_small_vocabulary_keeps_most_words_of_visitors_whole() -> None:
    tokenizer = train("bpe", documents(), 2048)
    visitors = read_corpus("everyday/visitors")["sentences"]
    assert whole_share(tokenizer, "It can't xyzzy") == pytest.approx(2 / 3)
    assert sum(whole_share(tokenizer, text) >= 0.8 for text in visitors) / len(visitors) > 0.5


def test_a_style_is_the_same_document_in_other_words() -> None:
    plain, styled = everyday.document(5, 1), everyday.styled_document(5, 1, "pirate")
    assert "French is exciting." in plain and "French be exciting, arr!" in styled
    assert styled.count("\n") == plain.count("\n")
    assert "begins now, in sooth." in everyday.styled_document(5, 4, "old")
    for style in everyday.STYLES:
        assert all(everyday.styled_document(7, i, style) != everyday.document(7, i) for i in range(20))
