"""Pairs read and written, what is refused, and the rules that make them."""

import inspect
import json
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.training.policy.pairs import PreferencePair, format_csv, format_jsonl, parse_pairs, read_pairs
from engine.training.policy.rule import rank_by_score, rules
from engine.training.policy.rules.happy_words import happy_words
from engine.training.policy.rules.shorter_than import shorter_than

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ANSWERS = st.tuples(TEXTS, TEXTS, TEXTS).filter(lambda one: one[1].strip() and one[2].strip() and one[1] != one[2])
ANSWERED = ("assistant", "Yes."), ("assistant", "No.")
PAIRS = st.lists(ANSWERS.map(lambda one: PreferencePair(*one)), min_size=1, max_size=6).map(tuple)


@given(PAIRS)
@settings(deadline=None, max_examples=50)
def test_what_is_written_as_jsonl_is_read_back(pairs: tuple[PreferencePair, ...]) -> None:
    assert parse_pairs(format_jsonl(pairs).encode(), "pairs.jsonl") == pairs


@given(PAIRS.filter(lambda pairs: not set("\r\0") & set(format_csv(pairs))))
@settings(deadline=None, max_examples=50)
def test_what_is_written_as_csv_is_read_back(pairs: tuple[PreferencePair, ...]) -> None:
    assert parse_pairs(format_csv(pairs).encode(), "pairs.csv") == pairs


def test_columns_may_stand_in_any_order_with_others_between(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_bytes("rejected;judge;prompt;chosen\nno, never;ann;;caf\xe9\n".encode("cp1252"))
    assert read_pairs(tmp_path / "pairs.csv") == (PreferencePair("", "café", "no, never"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prompt,better,worse\na,b,c\n", "columns prompt, chosen and rejected, and this table has 'prompt', 'better'"),
        ("prompt,chosen,rejected\na,b,c\na,d e,d e\n", "row 2 must have two different answers, got 'd e' twice"),
        ("prompt,chosen,rejected\na,b,c\na,,d\n", "row 2 must have a text in the column 'chosen', got nothing"),
        ("prompt,chosen,rejected\na,b,c\na,d, \n", "row 2 must have a text in the column 'rejected', got nothing"),
        ("prompt,chosen,rejected\n", "must have at least one row"),
    ],
)
def test_a_bad_table_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        parse_pairs(text.encode(), "pairs.csv")
    assert str(caught.value).count(". ") == 0 and str(caught.value).endswith(".")


def test_a_list_is_no_prompt() -> None:
    with pytest.raises(ValueError, match="row 1 must have a text or nothing as its prompt, got a list"):
        parse_pairs(b'{"prompt": ["a"], "chosen": "b", "rejected": "c"}', "pairs.jsonl")


def test_conversations_are_read_back_and_a_pair_that_does_not_answer_is_named() -> None:
    user, yes, no = ({"role": role, "content": said} for role, said in (("user", "So?"), *ANSWERED))
    rows = [{"prompt": [user], "chosen": [yes], "rejected": [no]}, {"chosen": [user, no], "rejected": [user, yes]}]
    pairs = parse_pairs("\n".join(map(json.dumps, rows)).encode(), "pairs.jsonl")
    assert [pair.form for pair in pairs] == ["messages"] * 2 and pairs[0].prompt == pairs[1].prompt
    assert parse_pairs(format_jsonl(pairs).encode(), "pairs.jsonl") == pairs
    assert parse_pairs(format_csv(pairs).encode(), "pairs.csv") == pairs
    for row, wrong in (
        ({"chosen": [user, yes], "rejected": [user, yes]}, "row 2 must have two different answers of the assistant"),
        ({"chosen": [user, yes], "rejected": "no"}, "row 2 must have lists of messages as its answers, got 'no'"),
        ({"chosen": [user, yes], "rejected": [user, {**no, "content": 3}]}, "row 2: the content of message 0 must be"),
    ):
        with pytest.raises(ValueError, match=wrong):
            parse_pairs("\n".join(map(json.dumps, (rows[1], row))).encode(), "pairs.jsonl")


@pytest.mark.parametrize(
    ("name", "answer", "expected"),
    [
        ("happy_words", "She was Happy, happy and so glad. Unhappy?", 3.0),
        ("happy_words", "", 0.0),
        ("ends_with_question", 'He asked: "Why?"\n', 1.0),
        ("ends_with_question", "Why? Because.", 0.0),
        ("shorter_than", "one two three", 1.0),
        ("shorter_than", "word " * 20, 0.0),
    ],
)
def test_a_rule_scores_the_answer(name: str, answer: str, expected: float) -> None:
    score = rules()[name].score("A happy prompt?", answer)
    assert score == expected and isinstance(score, float)


def test_every_rule_is_named_as_its_file_which_shows_its_source() -> None:
    for name, rule in rules().items():
        assert rule.score.__module__ == f"engine.training.policy.rules.{name}"
        assert f"def {name}(prompt: str, answer: str" in inspect.getsource(rule.score)


def test_a_rule_ranks_two_answers_or_neither() -> None:
    assert rank_by_score(happy_words, "a sad day", "a happy day") == ("a happy day", "a sad day")
    assert rank_by_score(happy_words, "a happy day", "a sad day") == ("a happy day", "a sad day")
    assert rank_by_score(happy_words, "a glad day", "a happy day") is None
    assert rank_by_score(partial(shorter_than, words=2), "one", "one two") == ("one", "one two")
    assert rank_by_score(lambda prompt, answer: float(prompt in answer), "a", "b", prompt="b") == ("b", "a")
