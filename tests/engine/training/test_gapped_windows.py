"""Gaps in windows of any running text: what is hidden, what decides it, what is held out, and that it is learned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.checkpoints import load
from engine.data.task import EVERY
from engine.inputs.readers import read_infill
from engine.scoring.examples import UNASKED
from engine.tokenizers import Encoding
from engine.training import Recipe, RunFolder, parse_recipe, read_recipe, train
from engine.training.probe.probe import default_probe
from engine.training.probe.question import question
from engine.training.recipe.recipe import Objective
from engine.training.sources import open_source
from engine.training.sources.gapped_windows import GappedWindows

LAB = Path(__file__).parents[3] / "assets" / "lab"
TEXT = "The quick brown fox jumps over the lazy dog, and every small bird sings of what it saw.\n"
COLOURS = "red orange yellow green blue violet grey brown\n"
HELD_OUT = 0.2


def recipe_of(
    folder: Path, text: str = 40 * TEXT, tokenizer: str = "word", context: int = 48, steps: int = 5
) -> Recipe:
    file = folder / "own.txt"
    file.write_text(text, encoding="utf-8")
    return parse_recipe(f"""
[model]
d_model = 32
layers = 2
attention = {{ heads = 2, mask = "prefix" }}
mlp = {{ d_mlp = 64 }}
positions = {{ kind = "rotary", axes = 2 }}
[data.text]
path = "{file}"
held_out = {HELD_OUT}
[data.tokenizer]
kind = "{tokenizer}"
[objective]
kind = "infill"
[optimiser]
lr = 1e-2
[schedule]
steps = {steps}
warmup = {steps // 10}
[batch]
size = 16
context = {context}
[log]
held_out_every = {steps}
snapshots = 2
[machine]
device = "cpu"
threads = 1
""")


def as_text(ids: list[int]) -> str:
    return f" {' '.join(map(str, ids))} "


def opened(recipe: Recipe, folder: Path) -> GappedWindows:
    found = open_source(recipe, folder)
    assert isinstance(found, GappedWindows)
    return found


@pytest.mark.parametrize("tokenizer", EVERY)
@pytest.mark.parametrize("part", ["train", "held_out"])
def test_the_spans_in_their_gaps_are_a_window_of_the_text(part: str, tokenizer: str, tmp_path: Path) -> None:
    source = opened(recipe_of(tmp_path, tokenizer=tokenizer, context=64), tmp_path / "run")
    marks, tokens = source.marks, source.corpus.train if part == "train" else source.corpus.held_out
    known, lengths = as_text(tokens.ids.tolist()), set()
    for step in range(1, 6):
        examples = source.batch(step) if part == "train" else list(source.held_out(step))[-1]
        assert examples.ids.shape[1] <= 64
        for ids, real, asked in zip(examples.ids, examples.inputs["padding"], examples.targets, strict=True):
            row = ids[real].tolist()
            begins = [place for place, id in enumerate(row) if id == marks.start]
            text = row[: begins[0]]
            spans = [row[a + 1 : b] for a, b in zip(begins, [*begins[1:], len(row)], strict=True)]
            assert text.count(marks.mask) == len(spans) <= (source.most if part == "train" else 1)
            assert asked[asked != UNASKED].tolist() == [id for span in spans for id in (*span, marks.end)]
            assert all(spans) and len(text) > len(spans)  # something is hidden everywhere, and something left
            waiting = iter(spans)
            whole = [each for id in text for each in (next(waiting) if id == marks.mask else [id])]
            assert as_text(whole) in known
            lengths.add(len(whole))
    assert max(lengths) == 64 - 2 * source.most and 14 <= min(lengths) < 24  # no gap is told by what is left


def test_gaps_are_words_and_short_and_long_ones_are_drawn(tmp_path: Path) -> None:
    source = opened(recipe_of(tmp_path, tokenizer="char", context=128), tmp_path / "run")
    words, shares = set(TEXT.split()), []
    for step in range(1, 20):
        for pieces in source.pieces("train", step):
            whole = sum(len(piece) for piece in pieces)
            shares.append(sum(len(span) for span in pieces[1::2]) / whole)
            for before, span in zip(pieces[0::2], pieces[1::2], strict=False):
                assert source.tokenizer is not None
                text = source.tokenizer.decode(span.tolist())
                assert text[0].isspace() or len(before) == 0  # it begins with a word ...
                assert set(text.split()[:-1]) <= words or len(before) == 0  # ... and holds whole ones
    assert 0.25 < sum(share > 0.48 for share in shares) / len(shares) < 0.6
    short = [share for share in shares if share < 0.45]
    assert 0.15 < sum(short) / len(short) < 0.4


def test_the_recipe_says_how_much_is_hidden(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, tokenizer="char", context=128)

    def shares(long_gaps: float, hidden: float) -> list[float]:
        asked = Objective("infill", 0.0, long_gaps, hidden)
        source = opened(replace(recipe, objective=asked), tmp_path / f"{long_gaps} {hidden}")
        drawn = [pieces for step in range(1, 20) for pieces in source.pieces("train", step)]
        return [sum(map(len, pieces[1::2])) / sum(map(len, pieces)) for pieces in drawn]

    assert min(shares(1.0, 0.1)) > 0.4  # one gap of half the words or more in all of them
    little, much = (sum(found) / len(found) for found in (shares(0.0, 0.1), shares(0.0, 0.6)))
    assert little < 0.3 and 0.5 < much < 0.7


def test_shares_that_nothing_would_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"objective.hidden must be a share in \[0, 1\], got 1.5"):
        Objective("infill", hidden=1.5)
    passages = read_recipe(LAB / "infill.toml")
    with pytest.raises(ValueError, match=r"objective.hidden are for gaps in running text; for \[data.infill\] set its"):
        replace(passages, objective=replace(passages.objective, hidden=0.5))


def test_a_text_without_spaces_has_gaps_between_its_letters(tmp_path: Path) -> None:
    source = opened(recipe_of(tmp_path, 400 * "abcdefghij", "char", 64), tmp_path / "run")
    spans = [len(span) for step in range(20) for _, span, _ in source.pieces("held_out", step)]
    assert 1 <= min(spans) and max(spans) <= 12 and len(set(spans)) > 4


def test_a_step_and_the_seed_alone_decide_the_gaps(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path)
    one = opened(recipe, tmp_path / "a")
    seventh = one.batch(7)
    one.batch(1)
    for folder in ("a", "b"):  # kept, and new
        again = opened(recipe, tmp_path / folder).batch(7)
        assert torch.equal(again.ids, seventh.ids) and torch.equal(again.targets, seventh.targets)
    other = opened(replace(recipe, seed=1), tmp_path / "c").batch(7)
    assert other.ids.shape != seventh.ids.shape or not torch.equal(other.ids, seventh.ids)


def test_a_run_that_was_left_goes_on_bit_for_bit(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path)
    recipe = replace(recipe, model=replace(recipe.model, dropout=0.1), log=replace(recipe.log, every=1, latest_every=2))
    for _ in train(recipe, tmp_path / "unbroken"):
        pass
    for step in train(recipe, tmp_path / "left"):
        if step.step == 3:
            break
    for _ in train(recipe, tmp_path / "left"):
        pass
    ours, theirs = (load(tmp_path / run / "checkpoint").model.state_dict() for run in ("unbroken", "left"))
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_held_out_gaps_are_of_text_that_is_never_learned_from(tmp_path: Path) -> None:
    ours, theirs = "".join(f"a{i} " for i in range(800)), "".join(f"b{i} " for i in range(200))
    cut = len(theirs) / len(ours + theirs)
    recipe = recipe_of(tmp_path, ours + theirs)
    recipe = replace(recipe, data=replace(recipe.data, table=replace(recipe.data.table, held_out=cut)))  # type: ignore[type-var]
    source = opened(recipe, tmp_path / "run")
    assert source.tokenizer is not None
    learned = {int(id) for step in range(40) for id in source.batch(step).ids.unique()}
    assert not any(source.tokenizer.piece(id).startswith("b") for id in learned)
    assert len(source.gaps(20)) == 20 and all(len(pieces) == 3 for pieces in source.gaps(20))


def test_a_little_model_learns_to_fill_the_gaps_of_a_repeated_text(tmp_path: Path) -> None:
    recipe, run = recipe_of(tmp_path, 60 * COLOURS, context=24, steps=500), RunFolder(tmp_path / "run")
    steps = list(train(recipe, run.path))
    found = load(run.checkpoint)
    assert found.tokenizer is not None and found.end_ids == (found.tokenizer.special_tokens["[eop]"],)
    assert found.card["measured"]["exact_spans"] > 0.6 and found.card["measured"]["gaps"] == 200
    assert steps[-1].held_out_loss is not None and steps[-1].held_out_loss < 0.6
    reading = read_infill(found, "red orange[gMASK]blue violet grey", "", 24)
    assert isinstance(reading.read, Encoding)
    assert found.tokenizer.decode(reading.read.ids).split("[sop]")[1].split() == ["yellow", "green"]
    probe = default_probe(recipe, open_source(recipe, run.path))
    assert probe.text is not None and probe.text.count("[gMASK]") == 1 and probe.target
    asked = question(probe, found, recipe)
    assert len(asked.read) <= 24 + 1 + len(asked.asked) and asked.asked[-1] == found.end_ids[0]


def test_what_has_no_room_for_a_gap_or_has_its_marks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="batch.context must be at least 4 for a gap, got 3"):
        open_source(recipe_of(tmp_path, context=3), tmp_path / "a")
    assert opened(recipe_of(tmp_path, context=4), tmp_path / "b").batch(1).tokens > 0
    marked = recipe_of(tmp_path, 40 * (TEXT + "[sop] "))
    with pytest.raises(ValueError, match=r"must have none of the marks \[gMASK\], \[sop\] and \[eop\], got one"):
        open_source(marked, tmp_path / "c")
