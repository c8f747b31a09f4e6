"""Prompts from a table, and how often a model is right as their rows become more."""

from __future__ import annotations

from math import sqrt

import pytest
import torch

from engine import load
from engine.checkpoints import Checkpoint
from engine.data.drawing import is_held_out
from engine.data.kinds.in_context import LETTERS, SPLIT, french_words, kinds, known_words, opposites, signs
from engine.generation.few_shot import (
    KS,
    PromptTable,
    accuracy,
    add_instruction,
    answer,
    examples,
    few_shot,
    instructions,
    queries,
    table_of,
    tables,
)
from engine.tokenizers import train
from tests.engine import tiny

COLORS = table_of("sky: blue\ngrass: green\n\n  snow :  white \ncoal: black\n", "colors")


def test_a_table_is_read_line_by_line() -> None:
    assert COLORS.rows == (("sky", "blue"), ("grass", "green"), ("snow", "white"), ("coal", "black"))
    assert (COLORS.name, COLORS.most, COLORS.output("snow"), COLORS.output("sun")) == ("colors", 3, "white", None)
    assert table_of("time: 10:30\nday: Monday").rows[0] == ("time", "10:30")
    assert table_of("a: b\u2028c\x0cd\ne: f").rows == (("a", "b\u2028c\x0cd"), ("e", "f"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sky: blue\n\ngrass", r"^line 3 must be an input, a colon and an output, got 'grass'\.$"),
        ("sky: blue\n: green", "^line 2 must be"),
        ("sky: blue", "^a table must have at least 2 rows, .* got 1; add some.$"),
        ("sky: blue\nsky: grey", "^each input must stand in one row .* 'sky' stands in more; keep one.$"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table_of(text)


def test_a_prompt_is_examples_a_line_each_and_the_query_with_a_colon() -> None:
    assert few_shot(COLORS, 0, "sky") == "sky:"
    lines = few_shot(COLORS, 3, "sky").split("\n")
    assert lines[-1] == "sky:" and sorted(lines[:-1]) == ["coal: black", "grass: green", "snow: white"]
    assert few_shot(COLORS, 2, "sun", seed=5).count("\n") == 2


def test_examples_are_never_the_query_and_more_of_them_begin_with_the_same() -> None:
    table = tables()["reverse"]
    drawn = set()
    for query, output in table.rows:
        most = examples(table, table.most, query, seed=3)
        assert (query, output) not in most and sorted((*most, (query, output))) == sorted(table.rows)
        assert all(examples(table, k, query, seed=3) == most[:k] for k in KS)
        assert examples(table, 4, query, seed=4) != most[:4]
        drawn.add(most[0])
    assert len(drawn) > 5  # not the first rows each time


@pytest.mark.parametrize("k", [-1, 4])
def test_more_examples_than_a_table_has_are_refused(k: int) -> None:
    with pytest.raises(ValueError, match=rf"^the number of examples must be 0 to 3 in this table, got {k}\.$"):
        few_shot(COLORS, k, "sky")


def test_each_row_is_asked_before_one_is_asked_again_with_other_examples() -> None:
    asked = list(queries(COLORS, seed=2, n=6))
    assert sorted(query for query, _ in asked[:4]) == ["coal", "grass", "sky", "snow"]
    assert [query for query, _ in asked[4:]] == [query for query, _ in asked[:2]]
    assert [seed for _, seed in asked] == [2, 2, 2, 2, 3, 3]


def by_hand(checkpoint: Checkpoint, prompt: str) -> str:
    """The line that is written, with plain argmax and no cache."""
    assert checkpoint.tokenizer is not None
    ids = list(checkpoint.tokenizer.encode(prompt).ids)
    for _ in range(20):
        with torch.no_grad():
            ids.append(int(checkpoint.model(torch.tensor([ids]))[0, -1].argmax()))
        line = checkpoint.tokenizer.decode(ids).removeprefix(prompt)
        if "\n" in line:
            return line.partition("\n")[0].strip()
    return line.strip()


@pytest.mark.parametrize("name", ["English to French", "animal or food"])
def test_accuracy_is_what_counting_by_hand_gives(name: str) -> None:
    checkpoint, table = load("in-context"), tables()[name]
    for found in accuracy(checkpoint, table, ks=(0, 2), seed=1, n=12):
        right = 0
        for one, (query, seed) in zip(found.answers, queries(table, 1, 12), strict=True):
            assert one.prompt == few_shot(table, found.k, query, seed) and one.query == query
            written = by_hand(checkpoint, one.prompt)
            assert written.startswith(one.written) and one.expected == dict(table.rows)[query]
            right += written == dict(table.rows)[query]
        assert (found.n, found.right, found.share) == (12, right, right / 12)
        assert found.error == pytest.approx(sqrt(right / 12 * (1 - right / 12) / 12))


def test_one_number_of_examples_is_measured_at_a_time() -> None:
    found = accuracy(load("in-context"), COLORS, ks=(1, 99), n=2)
    assert next(found).k == 1
    with pytest.raises(ValueError, match="must be 0 to 3"):
        next(found)


def test_any_decoder_can_be_asked_and_what_it_writes_is_one_line() -> None:
    found = answer(load("stories"), COLORS, 2, "sky")
    assert "\n" not in found.written and found.written and not found.right


@pytest.mark.parametrize("name", ["tales-bert", "translate-en-fr", "infill", "digits-imagegpt"])
def test_a_model_that_does_not_go_on_with_a_text_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="^a prompt is for a model that goes on with a text"):
        next(accuracy(load(name), COLORS))


def test_a_prompt_that_fills_the_context_is_refused() -> None:
    tokenizer = train("char", [signs()])
    model = tiny.model(tiny.config(vocab_size=tokenizer.vocab_size))
    with pytest.raises(ValueError, match="reads at most 24 tokens, and this prompt has 2[5-9], .* give fewer examples"):
        answer(Checkpoint(model, tokenizer), COLORS, 2, "sky", seed=4)


def test_the_tables_say_what_their_rules_do() -> None:
    opposite = dict([*opposites(), *((second, first) for first, second in opposites())])
    kind_of = {word: kind for kind, words in kinds().items() for word in words}
    rules = {
        **{name: LETTERS[name] for name in ("reverse", "capitals", "last letter", "without the first letter")},
        "prefix mis": lambda word: f"mis{word}",
        "suffix lin": lambda word: f"{word}lin",
        "animal or food": lambda word: {"animal": "zog", "food": "kex"}[kind_of[word]],
        "clothes or colors": lambda word: {"clothes": "pip", "color": "muz"}[kind_of[word]],
        "English to French": dict(french_words()).__getitem__,
        "French to English": {french: english for english, french in french_words()}.__getitem__,
        "opposites": opposite.__getitem__,
        "what it is": kind_of.__getitem__,
    }
    assert rules.keys() == tables().keys()
    for name, rule in rules.items():
        assert all(output == rule(given) for given, output in tables()[name].rows)  # type: ignore[no-untyped-call]
        assert len(tables()[name].rows) >= 24 and set("".join(map("".join, tables()[name].rows))) <= set(signs())


def test_no_word_about_whose_letters_a_table_asks_and_no_label_was_ever_trained_on() -> None:
    letters = ("reverse", "capitals", "last letter", "without the first letter", "prefix mis", "suffix lin")
    words = {given for name in letters for given, _ in tables()[name].rows}
    assert all(is_held_out(one, SPLIT) for one in {*words, "mis", "lin", "zog", "kex", "pip", "muz"})
    assert len(words - set(known_words())) > 30  # and most of them nowhere else either


def test_more_examples_make_the_shipped_model_right() -> None:
    """Measured when it was trained, on 30 queries of each table: 19, 80, 90, 96 and 98 % with 0, 1, 2, 4 and 8."""
    checkpoint, shares = load("in-context"), dict.fromkeys((0, 1, 8), 0.0)
    for table in tables().values():
        for found in accuracy(checkpoint, table, ks=tuple(shares), n=12):
            shares[found.k] += found.share / len(tables())
    assert shares[0] < 0.3 and shares[1] > shares[0] + 0.4 and shares[8] > shares[1] + 0.1 and shares[8] > 0.9


@pytest.mark.parametrize("name", ["animal or food", "clothes or colors"])
def test_a_label_that_means_nothing_is_bound_to_its_kind_by_the_rows_above(name: str) -> None:
    """One row says one label, which is right for half of the words; both are known from a few."""
    one, eight = accuracy(load("in-context"), tables()[name], ks=(1, 8), n=20)
    assert one.share <= 0.7 and eight.share >= 0.85


def test_words_that_were_never_read_are_written_backwards_as_the_rows_above_are() -> None:
    (four,) = accuracy(load("in-context"), tables()["reverse"], ks=(4,), n=20)
    assert four.share >= 0.8


@pytest.mark.parametrize("name", ["what it is", "capitals", "last letter"])
def test_without_an_example_nobody_knows_what_is_asked_and_with_eight_it_is_plain(name: str) -> None:
    none, eight = accuracy(load("in-context"), tables()[name], ks=(0, 8), n=20)
    assert none.share <= 0.4 and eight.share >= 0.85


@pytest.mark.parametrize(
    ("text", "instruction", "expected"),
    [
        ("le chat noir dort", "[toEnglish]", "the black cat sleeps"),
        ("the black cat sleeps", "[toFrench]", "le chat noir dort"),
        ("La reine mange une pomme.", "[toEnglish]", "The queen eats an apple."),
        ("The queen eats an apple.", "[toFrench]", "La reine mange une pomme."),
        ("La reine mange une pomme.", "[toCode]", 'print("The queen eats an apple.")'),
        ("add 3 to total", "[toCode]", "total += 3"),
        ("total += 3", "[toFrench]", "ajoute 3 à total"),
    ],
)
def test_the_instruction_says_what_becomes_of_a_sentence(text: str, instruction: str, expected: str) -> None:
    from engine import generate

    checkpoint = load("instruct")
    assert instructions(checkpoint) == ("[toEnglish]", "[toFrench]", "[toCode]") and instructions(load("stories")) == ()
    prompt = add_instruction(text, instruction)
    (*_, last) = generate(checkpoint, prompt, greedy=True)
    assert last.text == f"{prompt} {expected}<|endoftext|>"


def test_a_table_of_rows_is_a_value() -> None:
    assert PromptTable("a", (("b", "c"), ("d", "e"))) == PromptTable("a", (("b", "c"), ("d", "e")))
