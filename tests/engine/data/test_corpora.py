"""The generated texts are to the last character those that the shipped checkpoints learnt from and are measured on.

The digests were taken before the words and sentences moved from Python to `corpora/`. An intended change of a corpus
changes its digests here, and the checkpoints that learnt from it have to be trained again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import astuple
from hashlib import sha256
from itertools import islice

import pytest

from engine.data import everyday, sentences
from engine.data.kinds.addition import Addition
from engine.data.kinds.answering import Answering
from engine.data.kinds.bilingual import Bilingual
from engine.data.kinds.brackets import Brackets
from engine.data.kinds.dates import Dates
from engine.data.kinds.in_context import rows
from engine.data.kinds.instructions import Instructions
from engine.data.kinds.modular import Modular
from engine.data.kinds.names import Names
from engine.data.kinds.rewriting import Rewriting
from engine.data.kinds.sentiment import Sentiment
from engine.data.kinds.spans import Spans
from engine.data.kinds.text_to_text import TextToText
from engine.data.kinds.translation import Translation
from engine.data.long_stories import long_story
from engine.data.stories import tell
from engine.data.task import Labelled
from engine.data.translation import pair

SEEDS = 0, 7


def stories(seed: int) -> Iterator[object]:
    return (astuple(tell(seed, index)) for index in range(2_000))


def translations(seed: int) -> Iterator[object]:
    return (astuple(pair(seed, index)) for index in range(1_000))


def passages(seed: int) -> Iterator[object]:
    for index in range(300):
        yield astuple(sentences.pair(seed, index)), astuple(sentences.span(seed, index))


def prompts(seed: int) -> Iterator[object]:
    for number in range(300):
        for part in ("train", "held_out"):
            yield list(islice(rows(part, 1_000_003 * seed + number), 8))  # type: ignore[arg-type]


def examples(task: object, method: str, count: int = 300) -> Callable[[int], Iterator[object]]:
    """Examples of a task, of what is trained on and of what is held out."""

    def both_parts(seed: int) -> Iterator[object]:
        for part in ("train", "held_out"):
            for example in islice(getattr(task, method)(part, seed), count):
                values = () if isinstance(example, str) else astuple(example)
                said = tuple(one for one in values if one is not False) or example
                yield said[:2] if isinstance(example, Labelled) and not example.pair else said

    return both_parts


def documents(seed: int) -> Iterator[object]:
    return (everyday.document(seed, index) for index in range(300))


def evenings(seed: int) -> Iterator[object]:
    return (long_story(seed, index) for index in range(300))


CORPORA: dict[str, Callable[[int], Iterator[object]]] = {
    "stories": stories,
    "long stories": evenings,
    "everyday": documents,
    "translations": translations,
    "passages": passages,
    "prompts": prompts,
    "names": examples(Names(), "sentences"),
    "sentiment": examples(Sentiment(), "texts", 1_000),
    "instructions": examples(Instructions(documents=300), "pairs"),
    "bilingual": examples(Bilingual(), "texts"),
    "translation task": examples(Translation(documents=300), "pairs"),
    "spans": examples(Spans(), "pairs", 500),
    "text to text": examples(TextToText(), "pairs", 500),
    "answering": examples(Answering(), "pairs", 500),
    "rewriting": examples(Rewriting(), "pairs"),
    "dates": examples(Dates(), "pairs", 1_000),
    "addition": examples(Addition(), "pairs"),
    "brackets": examples(Brackets(), "texts"),
    "modular": examples(Modular(), "pairs"),
}
DIGESTS = {
    "stories": ("a83cb7ae4fd63905", "4ec703cc457eb466"),
    "long stories": ("d1095fa16698fcc2", "8aeab54459299332"),
    "everyday": ("baca5b5fd2f2808e", "92136a9e983af0e4"),
    "translations": ("545eb233d269886a", "31e786dabfae56bb"),
    "passages": ("a58ff1bbef911174", "bf04a33449cb998a"),
    "prompts": ("8549406a0f599b5f", "a5e0f2c59d1ba146"),
    "names": ("52a3aa51bdc42c6a", "10c1ba83888d7d90"),
    "sentiment": ("94dceb1194e45d51", "3fe951be1f033774"),
    "instructions": ("86dca49b8f7aba48", "0828ba3bdd3282ef"),
    "bilingual": ("c326c49b068bcdee", "dfca52da9db13c9a"),
    "translation task": ("2a703bbcc76406d8", "e2c57943ef7f45dc"),
    "spans": ("57c6219123bb41bf", "3a8b20f2bf7b1a8b"),
    "text to text": ("e123f4e2f305fd6c", "2c60d3e274ecd9c8"),
    "answering": ("f70a52ccc067ecea", "8d0941c156539246"),
    "rewriting": ("a5dbac09115a3e7a", "7d0802875ba4c44c"),
    "dates": ("54f17ac03db59868", "9612b4397bc54348"),
    "addition": ("f78e3059f026b9d9", "d694b65737a9030b"),
    "brackets": ("928b8b707ab56417", "e8194884e9bbc5b9"),
    "modular": ("50d79efb90ab1e1c", "192cbf30d89bc4d2"),
}  # the first 16 digits of each, for each of SEEDS


def digest(texts: Iterator[object]) -> str:
    found = sha256()
    for text in texts:
        found.update(json.dumps(text, ensure_ascii=False).encode())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus_has_the_texts_it_always_had(name: str) -> None:
    assert tuple(digest(CORPORA[name](seed)) for seed in SEEDS) == DIGESTS[name]
