"""What every task on sequences keeps to: an example is known by its number, and nothing held out is learned from."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.data.drawing import HELD_OUT, Part, draw_indexed, is_held_out, number
from engine.data.kinds import data_kinds
from engine.data.kinds.addition import Addition
from engine.data.kinds.answering import Answering
from engine.data.kinds.brackets import Brackets
from engine.data.kinds.dates import Dates
from engine.data.kinds.instructions import Instructions
from engine.data.kinds.modular import Modular
from engine.data.kinds.names import Names
from engine.data.kinds.rewriting import Rewriting
from engine.data.kinds.sentiment import Sentiment
from engine.data.kinds.spans import Spans
from engine.data.kinds.text_to_text import TextToText
from engine.data.kinds.translation import Translation
from engine.data.task import LabelTask, PairTask, TagTask

SMALL: dict[str, PairTask | LabelTask | TagTask] = {
    "rewriting": Rewriting(symbols="abc", shortest=1, longest=5, documents=2_000, held_out=300),
    "modular": Modular(modulus=13),
    "addition": Addition(digits=2, documents=2_000, held_out=300),
    "dates": Dates(1990, 1999, documents=2_000, held_out=300),
    "translation": Translation(documents=200, held_out=50),
    "instructions": Instructions(documents=200, held_out=50),
    "spans": Spans(documents=200, held_out=50),
    "text_to_text": TextToText(documents=300, held_out=60),
    "answering": Answering(documents=300, held_out=60),
    "brackets": Brackets(shortest=2, longest=8, documents=2_000, held_out=300),
    "sentiment": Sentiment(documents=1_000, held_out=300),
    "names": Names(documents=600, held_out=200),
}


def told(task: PairTask | LabelTask | TagTask, part: str, seed: int) -> list[tuple[str, object]]:
    if isinstance(task, TagTask):
        return [(one.text, one.tags) for one in task.sentences(part, seed)]  # type: ignore[arg-type]
    if isinstance(task, PairTask):
        return [(pair.source, pair.target) for pair in task.pairs(part, seed)]  # type: ignore[arg-type]
    return [(one.text, one.label) for one in task.texts(part, seed)]  # type: ignore[arg-type]


def test_every_task_is_tried_here() -> None:
    asked = PairTask | LabelTask | TagTask
    assert set(SMALL) == {name for name, kind in data_kinds().items() if issubclass(kind, asked)}


@pytest.mark.parametrize("name", SMALL)
def test_nothing_held_out_is_learned_from_and_a_seed_tells_the_same_again(name: str) -> None:
    task = SMALL[name]
    ours, theirs = told(task, "train", 3), told(task, "held_out", 3)
    assert ours and theirs
    assert not {source for source, _ in ours} & {source for source, _ in theirs}
    assert ours == told(task, "train", 3) and theirs == told(task, "held_out", 3)
    assert theirs != told(task, "held_out", 4)


@pytest.mark.parametrize("name", [name for name, task in SMALL.items() if hasattr(task, "documents")])
def test_a_task_tells_as_many_as_it_is_asked_for_and_fewer_are_the_first_of_them(name: str) -> None:
    task = SMALL[name]
    fewer = replace(task, documents=20, held_out=5)  # type: ignore[type-var]
    assert told(fewer, "train", 0) == told(task, "train", 0)[:20]
    assert told(fewer, "held_out", 0)[:5] == told(fewer, "held_out", 0)


@pytest.mark.parametrize("name", SMALL)
def test_the_alphabet_has_all_that_is_written(name: str) -> None:
    task = SMALL[name]
    if isinstance(task, TagTask | Spans) or not task.alphabet:
        words = ("translation", "instructions", "spans", "text_to_text", "answering", "sentiment", "names")
        assert name in words  # theirs are those of the examples
        return
    written = {character for text, answer in told(task, "held_out", 1) for character in f"{text}{answer}"}
    written -= set("01") if isinstance(task, LabelTask) else set()  # the labels are no text
    assert written <= set(task.alphabet)


def test_a_tenth_is_held_out_and_another_seed_holds_out_others() -> None:
    ours, others = ({text for text in map(str, range(20_000)) if is_held_out(text, seed)} for seed in (0, 1))
    assert len(ours) / 20_000 == pytest.approx(HELD_OUT, abs=0.007)  # 3 standard deviations are 0.0064
    assert len(ours & others) / len(ours) == pytest.approx(HELD_OUT, abs=0.025)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["train", "held_out"]))
def test_an_example_is_known_by_its_number_alone_and_belongs_to_its_part(seed: int, index: int, part: Part) -> None:
    one, again = (draw_indexed(lambda chance: str(number(chance, 0, 10**9)), str, part, seed, index) for _ in range(2))
    assert one == again and is_held_out(one, seed) == (part == "held_out")


def test_too_few_different_examples_to_hold_any_out_are_refused() -> None:
    seed = next(seed for seed in range(100) if not any(is_held_out(text, seed) for text in ("a", "b")))
    with pytest.raises(ValueError, match="too few different examples to hold some of them out"):
        told(Rewriting(symbols="ab", shortest=1, longest=1), "held_out", seed)


def test_numbers_are_drawn_evenly_from_both_ends_on() -> None:
    chance = random.Random(0).random
    counts = Counter(number(chance, 3, 5) for _ in range(3000))
    assert set(counts) == {3, 4, 5} and min(counts.values()) > 900
