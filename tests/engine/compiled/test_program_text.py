"""A program that a person writes: it is read as it is printed, its weights equal it, and nothing of it runs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

import pytest

from engine.compiled import Program, compile_program
from engine.compiled.interpret import check_compiled, interpret
from engine.compiled.program_text import read_program, write_program
from engine.compiled.programs import compiled_programs
from tests.engine import tiny  # noqa: F401 - one thread

HEAD = "tokens: a b c d\nlongest: 5\nsees: causal\n"
REPEATS = HEAD + (
    "before = aggregate(select(positions, positions, is_one_before), tokens)\n"
    "  again=compare( before ,tokens )\n\n"
    "count = width(select(again, again, is_same))\n"
    "parity = is_even(count)"
)
MEANS = """tokens: 0 3 8
longest: 6
sees: full
mean = aggregate(select(tokens, tokens, is_any), int(tokens))
whole = int(mean)"""


@pytest.mark.parametrize("program", compiled_programs().values(), ids=lambda program: program.name)
def test_a_shipped_program_is_read_as_it_is_printed_and_interpreted_as_it_answers(program: Program) -> None:
    read = read_program(write_program(program))
    same = {name: getattr(program, name) for name in ("name", "title", "answer", "margin", "read_from")}
    assert replace(read, **same) == program and read.answer(program.vocabulary) is not None
    for _, group in groupby(program.list_texts(), key=len):
        texts = [*group]
        for text, found in zip(texts, interpret(read, texts), strict=True):
            assert found[program.read_from :] == [*program.answer(text)][program.read_from :], text


def find_repeats(tokens: Sequence[str]) -> list[str]:
    again = [at > 0 and tokens[at - 1] == one for at, one in enumerate(tokens)]
    return ["odd" if again[: at + 1].count(one) % 2 else "even" for at, one in enumerate(again)]


def find_means(tokens: Sequence[str]) -> list[str]:
    return [str(sum(map(int, tokens)) // len(tokens))] * len(tokens)


@pytest.mark.parametrize(("text", "answer", "texts"), [(REPEATS, find_repeats, 1364), (MEANS, find_means, 1092)])
def test_the_weights_of_an_own_program_equal_it_on_every_text(
    text: str, answer: Callable[[Sequence[str]], list[str]], texts: int
) -> None:
    program = read_program(text)
    assert all([*program.answer(one)] == answer(one) for one in program.list_texts())
    made = compile_program(program)
    count, margin = check_compiled(made, program)
    assert count == texts and margin > 0
    constant = replace(program.steps[-1], to=lambda *values: program.vocabulary[0])
    other = replace(program, steps=(*program.steps[:-1], constant))
    with pytest.raises(ValueError, match="the weights do not predict"):
        check_compiled(made, other)


def lines(*said: str) -> str:
    return HEAD + "\n".join(said)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "begins with tokens:"), (HEAD, "1 to 8 lines"), ("x = y\n" * 300, "1 to 8 lines"),
        (lines("x = int(" + "tokens" * 20_000 + ")"), "at most 2,000 characters"),
        (lines("x = int(" + "n" * 900 + ")"), "line 4: a variable has a name"),
        (lines("x = __import__(tokens)"), "line 4: there is no '__import__'"),
        (lines("x = tokens.upper()"), "line 4: expected name = aggregate"),
        (lines("x = compare(y, tokens)", "y = compare(x, tokens)"), "line 4: .* reads y, which no line before"),
        (lines("x = int(tokens)"), "line 4: int makes nothing of 'a'"),
        (lines("x = compare(tokens)"), "line 4: compare takes 2 variables, got 1"),
        (lines("tokens = is_even(positions)"), "line 4: .* a second time"),
        (lines("n = width(select(tokens, tokens, is_any))"), "line 4: n is a number"),
        (lines("n = width(select(tokens, tokens, is_any))", "x = compare(n, tokens)"), "line 5: .* is a number"),
        (lines("x = pair(tokens, positions)", "y = pair(x, x)"), "line 5: pair would be made of 400 combinations"),
        (lines("x = pair(tokens, tokens)", "y = pair(tokens, x)"), "line 5: y has more than 32 values"),
        (lines("x = aggregate(select(tokens, positions, comes_first), tokens)"), "comes_first makes nothing of 'a'"),
        (lines("x = aggregate(select(tokens, tokens, is_same), int(tokens))"), "int makes nothing of 'a'"),
        (lines("x = aggregate(select(positions, positions, is_one_before), tokens)",
               "y = aggregate(select(tokens, tokens, is_any), weigh(x))"), "nothing selected|got None of None"),
        (lines(f"{'x' * 21} = is_even(positions)"), "line 4: a variable has a name"),
        (HEAD.replace("a b", "a a") + "x = is_even(positions)", "line 1: a program has 2 to 16 tokens"),
        (HEAD.replace("a b", "<start> b") + "x = is_even(positions)", "line 1: a token has"),
        (HEAD.replace("5", "8") + "x = is_even(positions)", "line 2: .* at most 25,000 texts"),
        (HEAD.replace("5", "9" * 500) + "x = is_even(positions)", "line 2: .* at most 25,000 texts"),
        (HEAD.replace("causal", "all") + "x = is_even(positions)", "line 3: sees is causal or full"),
        (HEAD.replace("longest", "most") + "x = is_even(positions)", "line 2: expected longest:"),
    ],
)  # fmt: skip
def test_what_is_no_program_is_a_sentence_with_its_line(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        read_program(text)
    assert len(str(caught.value)) < 400 and "\n" not in str(caught.value)


def test_a_variable_with_several_values_at_once_is_read_by_no_line() -> None:
    share = "share = aggregate(select(tokens, tokens, is_any), tokens)"
    program = read_program(lines(share, "x = compare(share, tokens)"))
    with pytest.raises(ValueError, match="reads share, which has several values at once in 'a b'"):
        check_compiled(compile_program(program), program)
    assert read_program(lines(share)).answer(["b", "a", "b"]) == ["b", "a", "b"]
