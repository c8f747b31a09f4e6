"""Span corruption: the example of the paper, T5's own counts, and texts that can be put together again."""

import random
import re

import pytest

from engine.data.kinds.spans import SENTINEL, TOKEN, Spans, corrupt, draw_lengths
from engine.data.kinds.text_to_text import TextToText
from engine.data.task import Pair
from engine.tokenizers import train

SENTINELS = tuple(map(SENTINEL.format, range(8)))


def put_together(pair: Pair) -> str:
    """The text that was corrupted."""
    parts = re.split(r"(?: |^)<extra_id_\d+>", pair.target)[1:-1]
    for sentinel, part in zip(SENTINELS, parts, strict=False):
        pair = Pair(re.sub(f"(?: |^){sentinel}", lambda _, part=part: part, pair.source), pair.target)  # type: ignore[misc]
    return pair.source.lstrip()


def test_the_example_of_the_paper() -> None:
    """Figure 2 of Raffel et al. 2020, whose X, Y and Z are the sentinels 0, 1 and 2."""
    tokens = TOKEN.findall(" Thank you for inviting me to your party last week.")
    assert corrupt(tokens, [2, 2, 4, 1, 2]) == Pair(
        "Thank you <extra_id_0> me to your party <extra_id_1> week.",
        "<extra_id_0> for inviting <extra_id_1> last <extra_id_2>",
    )
    assert corrupt(tokens, [0, 1, 9, 1, 0]) == Pair(
        "<extra_id_0> you for inviting me to your party last week <extra_id_1>",
        "<extra_id_0> Thank <extra_id_1>. <extra_id_2>",
    )


@pytest.mark.parametrize("count", [2, 3, 7, 20, 33, 100, 512])
def test_as_many_are_dropped_in_as_many_stretches_as_by_t5(count: int) -> None:
    """`random_spans_noise_mask` of T5's code: 77 tokens of 512 in 26 stretches."""
    chance = random.Random(0).random
    for _ in range(50):
        lengths = draw_lengths(count, 0.15, 3.0, chance)
        kept, dropped = lengths[::2], lengths[1::2]
        assert sum(lengths) == count and sum(dropped) == max(round(count * 0.15), 1)
        assert len(dropped) == max(round(sum(dropped) / 3), 1) == len(kept) - 1
        assert min(dropped) > 0 and min(kept[1:-1], default=1) > 0
    assert count != 512 or (sum(dropped), len(dropped)) == (77, 26)


def test_every_place_is_dropped_about_as_often() -> None:
    chance, counts = random.Random(1).random, [0] * 20
    for _ in range(4_000):
        first, dropped, _ = draw_lengths(20, 0.15, 3.0, chance)
        for place in range(first, first + dropped):
            counts[place] += 1
    assert 0.8 < min(counts[2:-2]) / (4_000 * 3 / 18) and max(counts) / (4_000 * 3 / 18) < 1.2


def test_what_was_dropped_goes_back_into_its_place_and_the_tokenizer_has_all_of_it_whole() -> None:
    told = list(Spans(documents=400).pairs("train", 0))
    texts = [text for one in told for text in (one.source, one.target)]
    tokenizer = train("word", [*texts, Spans().alphabet], special_tokens=("<pad>", "</s>", *SENTINELS))
    assert not {"<", ">", "extra_id_0"} & set(tokenizer.pieces)
    for one in told:
        assert "<extra" not in put_together(one) and one.source.count("<extra") == one.target.count("<extra") - 1
        for text in (one.source, one.target):
            assert tokenizer.decode(tokenizer.encode(text).ids) == text
    unknown = tokenizer.special_tokens["<unk>"]
    for pair in TextToText(held_out=2).pairs("held_out", 0):
        prefix = pair.source.partition(" ")[0]
        assert unknown not in tokenizer.encode(prefix).ids


def test_no_sentence_that_is_held_out_for_the_tasks_is_learned_from_here() -> None:
    learned = " ".join(map(put_together, Spans(documents=600).pairs("train", 0)))
    translated = [one for one in TextToText(held_out=300).pairs("held_out", 0) if one.source.startswith("translate")]
    assert translated
    for pair in translated:
        for text in (pair.source.partition(": ")[2], pair.target):
            assert not text.endswith(".") or text not in learned


def test_texts_are_english_and_french_in_turn() -> None:
    told = list(map(put_together, Spans(documents=200).pairs("train", 0)))
    english, french = set(" ".join(told[::2]).split()), set(" ".join(told[1::2]).split())
    assert {"the", "is"} <= english and {"le", "est"} <= french and not {"the", "is"} & french


def test_the_first_sentence_is_said_again_in_the_share_of_texts_that_is_asked_for() -> None:
    told = [put_together(one) for one in Spans(documents=400, most=1, again=0.75).pairs("train", 0)]
    twice = sum(text[: len(text) // 2] == text[len(text) // 2 + 1 :] for text in told)
    assert 0.65 < twice / len(told) < 0.85


@pytest.mark.parametrize("wrong", [{"longest": 3}, {"dropped": 1.0}, {"mean": 0.5}, {"most": 0}, {"again": 1.0}])
def test_options_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"^data.spans.{next(iter(wrong))} must be "):
        Spans(**wrong)  # type: ignore[arg-type]
