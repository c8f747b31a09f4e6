"""Each kind of data as batches: what they hold, that a step alone decides them, and what is held out."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.data.digits import invert, split
from engine.data.kinds.digits import Digits
from engine.data.kinds.infill import Gaps
from engine.data.kinds.sentence_pairs import SentencePairs
from engine.data.kinds.translation import Translation
from engine.data.seeds import seed_for
from engine.data.sentences import pair as passages
from engine.data.sentences import span
from engine.data.stories import words
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.scoring.examples import UNASKED
from engine.training import Recipe, read_recipe, sources
from engine.training.sources import open_source
from engine.training.sources.digits import DigitPixels
from engine.training.sources.sequence_to_sequence import SequenceToSequence
from engine.training.sources.shelf import POOL, Shelf, make_shelf
from engine.training.sources.source import Source

RECIPES = Path(__file__).parents[3] / "assets" / "recipes"
SMALL = {
    "tales-bert": {"table": SentencePairs(80, 20), "tokenizer": TokenizerRecipe("wordpiece", 400)},
    "translate-en-fr": {
        "table": Translation(80, 20),
        "tokenizer": TokenizerRecipe("word", sample=80),
    },
    "infill": {"table": Gaps(80, 20), "tokenizer": TokenizerRecipe("bpe", 400)},
    "digits-vit": {"table": Digits()},
    "digits-imagegpt": {"table": Digits()},
}


def small(name: str) -> Recipe:
    recipe = read_recipe(RECIPES / f"{name}.toml")
    return replace(recipe, data=replace(recipe.data, **SMALL[name]), batch=replace(recipe.batch, size=4))


def source(name: str, folder: Path) -> Source:
    return open_source(small(name), folder)


def inputs(of: Source, step: int) -> list[torch.Tensor]:
    examples = of.batch(step)
    return [*examples.inputs.values(), examples.targets]


@pytest.mark.parametrize("name", SMALL)
def test_a_step_alone_decides_its_batch(name: str, tmp_path: Path) -> None:
    one = source(name, tmp_path / "a")
    seventh = inputs(one, 7)
    one.batch(1)
    kept, new = source(name, tmp_path / "a"), source(name, tmp_path / "b")
    for again in (inputs(one, 7), inputs(kept, 7), inputs(new, 7)):
        assert all(torch.equal(a, b) for a, b in zip(seventh, again, strict=True))
    assert not torch.equal(inputs(one, 8)[-1], seventh[-1]) or not torch.equal(inputs(one, 8)[0], seventh[0])
    recipe = small(name)
    other = open_source(replace(recipe, seed=recipe.seed + 1, split=recipe.seed), tmp_path / "c")
    measured = [[*each.inputs.values(), each.targets] for of in (one, other) for each in of.held_out(1)]
    assert all(torch.equal(a, b) for a, b in zip(*measured, strict=True))  # on the same rows
    assert not torch.equal(inputs(other, 7)[0], seventh[0])


def test_what_is_data_is_chosen_by_the_split_and_only_batches_by_the_seed() -> None:
    for file in Path(sources.__file__).parent.glob("*.py"):
        assert all(
            line.endswith('"batch", step))') or '"batch", step)' in line
            for line in file.read_text().split("\n")
            if "recipe.seed" in line
        ), file.name


@pytest.mark.parametrize("name", SMALL)
def test_the_model_gets_from_the_data_what_its_recipe_cannot_know(name: str, tmp_path: Path) -> None:
    of = source(name, tmp_path)
    config = of.complete_config(small(name).model)
    if of.tokenizer is not None:
        assert config.vocab_size == of.tokenizer.vocab_size > 1
        named = of.tokenizer.special_tokens
        if config.encoder is not None:
            assert config.encoder.start == named["<s>"] and of.tokenizer.end_id == named["</s>"]
        if config.infill is not None:
            assert (config.infill.mask, config.infill.start) == (named["[gMASK]"], named["[sop]"])
            assert of.end_ids == (named["[eop]"],)
    if isinstance(of, DigitPixels):
        assert (config.vocab_size, config.outputs, config.context) == (18, 17, 65)


def test_rows_of_a_pair_are_the_passages_and_their_label(tmp_path: Path) -> None:
    of = source("tales-bert", tmp_path)
    assert of.tokenizer is not None
    seed = seed_for(0, "sentence pairs")
    expected = {}
    for index in range(80):
        one = passages(seed, index)
        expected[of.tokenizer.encode(one.first, one.second).ids] = 0 if one.follows else 1
    examples = of.batch(1)
    whole = torch.where(examples.targets == UNASKED, examples.ids, examples.targets)
    real = examples.inputs["padding"]
    assert examples.second is not None
    for row, those, label in zip(whole, real, examples.second.tolist(), strict=True):
        assert expected[tuple(row[those].tolist())] == label


def test_rows_of_a_translation_are_the_two_sentences_and_held_out_ones_are_unseen(tmp_path: Path) -> None:
    of = source("translate-en-fr", tmp_path)
    assert isinstance(of, SequenceToSequence) and of.tokenizer is not None
    french = {one.source: one.target for one in of.task_examples("train")}
    examples = of.batch(1)
    for row, those, target in zip(examples.ids, examples.inputs["padding"], examples.targets, strict=True):
        english = of.tokenizer.decode(row[those].tolist())
        assert of.tokenizer.decode(target[target != UNASKED].tolist()) == f"{french[english]}</s>"
    held_out = [one.source for one in of.task_examples("held_out")]
    assert len(held_out) == 20 and not set(held_out) & set(french)


def test_rows_with_a_gap_are_the_passage_and_its_span(tmp_path: Path) -> None:
    of = source("infill", tmp_path)
    assert of.tokenizer is not None
    seed = seed_for(0, "held-out infill")
    told = {(one.before, one.span, one.after) for one in (span(seed, index) for index in range(20))}
    (examples,) = of.held_out(1)
    for row, those, target in zip(examples.ids, examples.inputs["padding"], examples.targets, strict=True):
        text = of.tokenizer.decode(row[those].tolist())
        context, written = text.split("[sop]")
        before, after = context.split("[gMASK]")
        assert (before, written, after) in told
        assert of.tokenizer.decode(target[target != UNASKED].tolist()) == f"{written}[eop]"


def test_gaps_drawn_in_training_hide_whole_words_and_filled_again_are_the_passage(tmp_path: Path) -> None:
    of = source("infill", tmp_path)
    assert of.tokenizer is not None
    seed = seed_for(0, "infill")
    told = {one.before + one.span + one.after for one in (span(seed, index) for index in range(80))}
    counts, hidden, whole = [], 0, 0
    for step in range(1, 20):
        examples = of.batch(step)
        for row, those, target in zip(examples.ids, examples.inputs["padding"], examples.targets, strict=True):
            context, *spans = of.tokenizer.decode(row[those].tolist()).split("[sop]")
            assert of.tokenizer.decode(target[target != UNASKED].tolist()) == "".join(f"{one}[eop]" for one in spans)
            for one in spans:
                context = context.replace("[gMASK]", one, 1)
            assert context in told
            counts.append(len(spans))
            hidden, whole = hidden + sum(len(one.split()) for one in spans), whole + len(context.split())
    assert 1 <= min(counts) and 6 <= max(counts) <= 12
    assert 0.25 < hidden / whole < 0.55


def test_a_hidden_word_that_recurs_still_stands_elsewhere(tmp_path: Path) -> None:
    recipe = small("infill")
    recipe = replace(recipe, data=replace(recipe.data, table=Gaps(80, 20, own=0.0, long=0.0, recurring=1.0)))
    of = open_source(recipe, tmp_path)
    assert of.tokenizer is not None
    hidden: Counter[str] = Counter()
    for step in range(1, 12):
        examples = of.batch(step)
        for row, those in zip(examples.ids, examples.inputs["padding"], strict=True):
            context, *spans = of.tokenizer.decode(row[those].tolist()).split("[sop]")
            single = [one.strip() for one in spans if " " not in one.strip()]
            if len(single) == len(spans):  # else no word recurs in it, and the gaps are others
                assert all(re.search(rf"\b{one}\b", context) for one in single), (spans, context)
                hidden.update(single)
    assert hidden.total() > 60 and not {"the", "and", "was", "to"} & hidden.keys()
    assert any(name in hidden for name in (*words()["girls"], *words()["boys"]))


def test_all_test_digits_are_measured_once_and_as_they_are(tmp_path: Path) -> None:
    drawn = split(0)
    pixels = source("digits-imagegpt", tmp_path)
    seen = torch.cat([examples.ids for examples in pixels.held_out(10_000)])
    assert torch.equal(seen[:, 1:], drawn.test_images.flatten(1).long()) and set(seen[:, 0].tolist()) == {17}
    named = list(source("digits-vit", tmp_path).held_out(10_000))
    assert torch.equal(torch.cat([examples.targets for examples in named]), drawn.test_labels)
    levels = torch.cat([examples.ids for examples in named])[:, 0]  # from -1 for 0 to 1 for 16
    torch.testing.assert_close(levels, drawn.test_images / 8.0 - 1)


def test_the_share_of_moved_pictures_is_the_recipes(tmp_path: Path) -> None:
    known = {tuple(row) for row in split(0).train_images.flatten(1).tolist()}

    def kept(moved: float) -> float:
        recipe = small("digits-imagegpt")
        digits = Digits(moved=moved)
        recipe = replace(recipe, data=replace(recipe.data, table=digits), batch=replace(recipe.batch, size=300))
        rows = open_source(recipe, tmp_path).batch(1).ids[:, 1:].tolist()
        return sum(tuple(row) in known for row in rows) / 300

    assert kept(0.0) == 1.0 and kept(1.0) == 0.0
    assert kept(0.5) == pytest.approx(0.5, abs=0.1)


def test_the_share_of_pictures_on_the_other_ground_is_the_recipes(tmp_path: Path) -> None:
    images = split(0).train_images
    known, dark = ({tuple(row) for row in rows.flatten(1).tolist()} for rows in (images, invert(images)))

    def drawn(inverted: float) -> list[tuple[int, ...]]:
        recipe = small("digits-imagegpt")
        digits = Digits(moved=0.0, inverted=inverted)
        recipe = replace(recipe, data=replace(recipe.data, table=digits), batch=replace(recipe.batch, size=300))
        return [tuple(row) for row in open_source(recipe, tmp_path).batch(1).ids[:, 1:].tolist()]

    some = drawn(0.3)
    assert known.issuperset(drawn(0.0)) and dark.issuperset(drawn(1.0)) and some == drawn(0.3)
    assert sum(row in dark for row in some) / 300 == pytest.approx(0.3, abs=0.1)


def test_a_judge_that_is_not_there_is_refused_before_the_training(tmp_path: Path) -> None:
    recipe = small("digits-imagegpt")
    recipe = replace(recipe, data=replace(recipe.data, table=Digits(judge="nobody")))
    with pytest.raises(ValueError, match="data.digits.judge must be a shipped checkpoint, got 'nobody'"):
        open_source(recipe, tmp_path)


def test_documents_of_like_length_are_drawn_together_and_each_as_often(tmp_path: Path) -> None:
    of = source("infill", tmp_path)
    tokens = of.corpus.train  # type: ignore[attr-defined]
    long = make_shelf(tokens, tokens.lengths.sum(1), 60)
    assert int(long.lengths.max()) <= 60 < int(tokens.lengths.sum(1).max())
    chance = torch.Generator().manual_seed(0)
    even = Shelf(tokens, torch.arange(80), torch.arange(80))
    counts, spread = torch.zeros(80), []
    for _ in range(1000):
        drawn = even.draw(4, chance)
        counts[drawn] += 1
        spread.append(max(drawn) - min(drawn))
    assert counts.min() > 20 and counts.max() < 85  # 50 each, deviation 7
    assert sum(spread) / 1000 < 80 / POOL
    with pytest.raises(ValueError, match="batch.context must fit a document, got 2; the shortest has"):
        make_shelf(tokens, tokens.lengths.sum(1), 2)
