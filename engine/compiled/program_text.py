"""A program as text: three lines of what it reads, then its lines as an answer key has them. Nothing of it is executed.

    tokens: a b c d
    longest: 7
    sees: causal
    previous = aggregate(select(positions, positions, is_one_before), tokens)
    follower = aggregate(select(previous, tokens, is_same), tokens)

The last line is what is predicted. Each function is one of engine/compiled/functions.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

from engine.compiled.compile import CompiledCheckpoint, compile_program
from engine.compiled.functions import MAPS, NUMBERS, WHERE
from engine.compiled.interpret import check_compiled, interpret
from engine.compiled.program import (
    START_TOKEN,
    Aggregate,
    Domain,
    Map,
    Program,
    Select,
    Step,
    Width,
    begin_domains,
    check_step,
)
from engine.plurals import count_words
from engine.tokenizers.special import UNKNOWN

LONGEST_TEXT = 2_000  # characters of a program
MOST_LINES, MOST_TOKENS, LONGEST_TOKEN, LONGEST_NAME = 8, 16, 12, 20
MOST_TEXTS = 25_000  # that it reads: a compiled model is held against its program on all of them
MOST_VALUES, MOST_COMBINATIONS, LARGEST_NUMBER = 32, 200, 9
SEES = "causal", "full"
SELECT = r"select\((?P<keys>\w+),(?P<queries>\w+),(?P<where>\w+)\)"
AGGREGATE = re.compile(rf"(?P<name>\w+)=aggregate\({SELECT},(?:(?P<number>\w+)\()?(?P<of>\w+)(?(number)\))\)", re.ASCII)
WIDTH = re.compile(rf"(?P<name>\w+)=width\({SELECT}\)", re.ASCII)
MAP = re.compile(r"(?P<name>\w+)=(?P<to>\w+)\((?P<inputs>\w+(?:,\w+)*)\)", re.ASCII)
FORMS = (
    "name = aggregate(select(keys, queries, where), values), name = width(select(keys, queries, where)) or "
    "name = function(variable)"
)


@dataclass(frozen=True)
class CheckedModel:
    """A model and the program that it equals on all `texts` of it, surely by `margin` logits or more."""

    program: Program
    checkpoint: CompiledCheckpoint
    texts: int
    margin: float


@lru_cache(maxsize=32)
def compile_text(text: str) -> CheckedModel:
    """Raises ValueError, a sentence, for what is no program, or has none that weights compute."""
    program = read_program(text)
    made = compile_program(program)
    return CheckedModel(program, made, *check_compiled(made, program))


def write_program(program: Program) -> str:
    """The text that `read_program` reads."""
    head = f"tokens: {' '.join(program.vocabulary)}", f"longest: {program.longest}", f"sees: {program.sees}"
    return "\n".join((*head, *map(str, program.steps)))


def read_program(text: str) -> Program:
    """Raises ValueError, one sentence with its line, for a text that is no program, or one that is too large."""
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"a program has at most {count_words(LONGEST_TEXT, 'character')}, got {len(text):,}; cut it.")
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not 4 <= len(lines) <= 3 + MOST_LINES:
        given = count_words(len(lines), "line")
        raise ValueError(
            f"a program begins with tokens:, longest: and sees:, and has 1 to {MOST_LINES} lines behind them, got "
            f"{given} in all."
        )
    vocabulary = read_vocabulary(*read_setting(*lines[0], "tokens"))
    longest = read_longest(*read_setting(*lines[1], "longest"), len(vocabulary))
    number, sees = read_setting(*lines[2], "sees")
    if sees not in SEES:
        raise ValueError(f"line {number}: sees is {' or '.join(SEES)}, got {sees[:20]!r}.")
    known, steps = begin_domains(vocabulary, longest), list[Step]()
    for number, line in lines[3:]:
        try:
            step = read_step(line)
            check_step(step, known)
            check_values(step, known)
            known[step.name] = step.find_domain(known, longest)
            if not known[step.name].codes and len(known[step.name].values) > MOST_VALUES:
                raise ValueError(f"{step.name} has more than {count_words(MOST_VALUES, 'value')}; make fewer.")
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        steps.append(step)
    if known[steps[-1].name].codes:
        raise ValueError(f"line {number}: {steps[-1].name} is a number and cannot be predicted; map it, as int does.")
    program = Program(
        "program", "A program that a person wrote.", vocabulary, longest, "causal" if sees == "causal" else "full",
        tuple(steps), steps[-1].name, answer=lambda tokens: interpret(program, [tuple(tokens)])[0], margin=0.0,
    )  # fmt: skip
    return program


def read_setting(number: int, line: str, name: str) -> tuple[int, str]:
    """The line's number, and what stands behind its colon."""
    said, colon, value = line.partition(":")
    if said.strip() != name or not colon:
        raise ValueError(f"line {number}: expected {name}: and what it is, got {line[:40]!r}.")
    return number, value.strip()


def read_vocabulary(number: int, said: str) -> tuple[str, ...]:
    tokens = tuple(said.split())
    if not 2 <= len(tokens) <= MOST_TOKENS or len(set(tokens)) < len(tokens):
        raise ValueError(f"line {number}: a program has 2 to {MOST_TOKENS} tokens, each another, got {len(tokens)}.")
    for token in tokens:
        if len(token) > LONGEST_TOKEN or token in (START_TOKEN, UNKNOWN):
            raise ValueError(
                f"line {number}: a token has 1 to {LONGEST_TOKEN} characters and is neither {START_TOKEN} nor "
                f"{UNKNOWN}, got {token[:40]!r}."
            )
    return tokens


def read_longest(number: int, said: str, tokens: int) -> int:
    longest = int(said) if re.fullmatch("[0-9]{1,2}", said) else 0
    texts = sum(tokens**length for length in range(1, longest + 1)) if longest <= MOST_TEXTS.bit_length() else 0
    if not longest or not 0 < texts <= MOST_TEXTS:
        raise ValueError(
            f"line {number}: the longest text has 1 token or more, so few that there are at most {MOST_TEXTS:,} texts "
            f"of {count_words(tokens, 'token')}, got {said[:20]!r}."
        )
    return longest


def read_step(line: str) -> Step:
    compact = re.sub(r"\s*([(),=])\s*", r"\1", line)
    if found := AGGREGATE.fullmatch(compact):
        number = find_function(found["number"], NUMBERS, "numbers") if found["number"] else None
        step: Step = Aggregate(found["name"], read_select(found), found["of"], number)
    elif found := WIDTH.fullmatch(compact):
        step = Width(found["name"], read_select(found))
    elif found := MAP.fullmatch(compact):
        step = Map(found["name"], tuple(found["inputs"].split(",")), find_function(found["to"], MAPS, "maps"))
        takes = MAPS[step.to][0]
        if len(step.inputs) != takes:
            raise ValueError(f"{found['to']} takes {count_words(takes, 'variable')}, got {len(step.inputs)}.")
    else:
        raise ValueError(f"expected {FORMS}, got {line[:60]!r}.")
    for name in (step.name, *step.inputs):
        if len(name) > LONGEST_NAME or not name[0].isalpha():
            raise ValueError(f"a variable has a name of 1 to {LONGEST_NAME} letters, got {name[:40]!r}.")
    return step


def read_select(found: re.Match[str]) -> Select:
    return Select(found["keys"], found["queries"], find_function(found["where"], WHERE, "conditions"))


def find_function(name: str, functions: Iterable[Callable[..., Any]], kinds: str) -> Callable[..., Any]:
    known = {one.__name__: one for one in functions}
    if name not in known:
        raise ValueError(f"there is no {name[:40]!r} among the {kinds}, which are {', '.join(known)}.")
    return known[name]


def check_values(step: Step, known: Mapping[str, Domain]) -> None:
    """Raises ValueError for a function that makes nothing of some value that it may get, or of too many values."""
    if isinstance(step, Map):
        values = [known[name].values for name in step.inputs]
        if not known[step.inputs[0]].codes and (size := prod(map(len, values))) > MOST_COMBINATIONS:
            raise ValueError(
                f"{step.to.__name__} would be made of {size:,} combinations of values, of which there may be "
                f"{MOST_COMBINATIONS:,}; take variables with fewer."
            )
        for one in product(*values):
            apply(step.to, one)
        return
    of_key, of_query = known[step.select.keys].values, known[step.select.queries].values
    for pair in product(of_key, of_query):
        if None not in pair:
            apply(step.select.where, pair)
    if isinstance(step, Aggregate) and step.number is not None:
        for value in known[step.of].values:
            made = None if value is None else apply(step.number, (value,))
            if made is None or abs(made) > LARGEST_NUMBER:
                raise ValueError(
                    f"{step.number.__name__} must make a number of -{LARGEST_NUMBER} to {LARGEST_NUMBER} of all that "
                    f"{step.of} can be, got {made} of {value!r:.20}."
                )


def apply(function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    try:
        return function(*values)
    except (TypeError, ValueError, ArithmeticError):
        said = " and ".join("nothing selected" if one is None else f"{one!r:.20}" for one in values)
        raise ValueError(f"{function.__name__} makes nothing of {said}; take another function or variable.") from None
