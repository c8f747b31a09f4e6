"""Prompts as a task: rows of one table, each a word, what stands beside it, and a line break."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import ClassVar

from engine.data.drawing import Chance, Part
from engine.data.in_context.relations import RULES, Relation
from engine.data.in_context.words import FRENCH

BETWEEN, BEHIND = ": ", "\n"
SIGNS = f"{BEHIND}{BETWEEN}{string.ascii_letters}" + "".join(
    sorted({sign for _, french in FRENCH for sign in french} - set(string.ascii_letters))
)
SPLIT = 0  # by which words are held out, whatever the recipe's seed, so that tables that are written down stay so
TRIES = 20  # words drawn for a row before one that the prompt has already is taken again
EDGES = tuple(accumulate(often for _, often in RULES.values()))


@dataclass(frozen=True)
class InContext:
    """Prompts without end, in characters. Those that are held out have other words, labels, prefixes and suffixes, but
    in the tables that must be known by heart."""

    tokenizers: ClassVar[tuple[str, ...]] = ("char",)


def rows(part: Part, seed: int) -> Iterator[tuple[str, str]]:
    """One prompt, row by row and without end; no word comes twice while there are others."""
    chance = Random(f"{seed}:{part}").random
    relation = drawn(chance, part)
    seen: set[str] = set()
    while True:
        word = next((one for one in (relation.word(chance) for _ in range(TRIES)) if one not in seen), "")
        word = word or relation.word(chance)
        seen.add(word)
        yield word, relation.answer(word)


def drawn(chance: Chance, part: Part) -> Relation:
    place = chance() * EDGES[-1]
    rule, _ = next(entry for entry, edge in zip(RULES.values(), EDGES, strict=True) if place < edge)
    return rule(chance, part, SPLIT)


def line(word: str, answer: str) -> str:
    return f"{word}{BETWEEN}{answer}{BEHIND}"
