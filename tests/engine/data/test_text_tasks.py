"""Stories that end well or badly, and names in sentences: what is asked follows from what was written."""

from __future__ import annotations

import re
from collections import Counter

from engine.data.kinds.names import TAGS, Names, tables, tags_of
from engine.data.kinds.sentiment import BAD, GOOD, Sentiment, templates
from engine.training.measures.tagging import f1, in_bio, of_names, spans


def ends(text: str) -> list[bool]:
    """Whether something in it ends badly, and whether something ends well: all that is fixed of a sentence is there."""
    parts = [[re.split(r"\{\w\}", one[1 + how]) for one in templates()["happens"]] for how in (BAD, GOOD)]
    return [any(all(part.lower() in text.lower() for part in one) for one in of) for of in parts]


def test_a_story_about_one_child_ends_as_its_label_says() -> None:
    for one in Sentiment(others=0.0, documents=200).texts("train", 0):
        assert ends(one.text) == [one.label == BAD, one.label == GOOD], one.text


def test_where_another_thing_is_told_about_it_ends_otherwise_as_often() -> None:
    told = list(Sentiment(others=1.0, documents=400).texts("train", 0))
    assert Counter(one.label for one in told) == {GOOD: 200, BAD: 200}
    both = sum(all(ends(one.text)) for one in told)
    assert 0.4 < both / len(told) < 0.6  # a fair coin's 400 throws leave that once in 15,000


def test_words_and_tags_belong_together_and_names_are_whole() -> None:
    seen = Counter[str]()
    for one in Names(documents=600).sentences("train", 0):
        assert len(one.words) == len(one.tags) and set(one.tags) <= set(TAGS)
        assert one.text.split() == list(one.words)
        for start, stop, kind in spans(one.tags):
            name = " ".join(one.words[start:stop])
            seen[f"{kind} {name}"] += 1
            assert name[0].isupper() and (kind == "PERSON" or name in (*tables()["places"], *tables()["either"]))
    assert all(seen[f"{kind} {name}"] for name in tables()["either"] for kind in ("PERSON", "PLACE"))


def test_in_a_story_only_who_has_a_name_is_tagged() -> None:
    assert tags_of(["Lily", "'s", "mom", "smiled", "."], {"Lily"}) == ["B-PERSON", "O", "O", "O", "O"]


def test_spans_and_their_f1_are_those_of_the_shared_task() -> None:
    """The cases of conlleval (Tjong Kim Sang & De Meulder 2003), counted by hand."""
    tags = ["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-PER"]
    assert spans(tags) == {(0, 2, "PER"), (3, 4, "LOC"), (4, 5, "LOC"), (5, 6, "PER")}
    assert in_bio(["O", "B-PER"]) and not in_bio(["NOUN", "O"])
    found = of_names([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "B-LOC", "B-LOC"]])
    assert found["precision"] == 1 / 3 and found["recall"] == 1 / 2 and found["f1"] == 2 / 5
    assert found["f1_by_kind"] == {"LOC": 2 / 3, "PER": 0.0} and f1(0, 0, 0) == 1.0
