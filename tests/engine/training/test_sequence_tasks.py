"""Tasks on sequences: what a model reads of them and is asked, what is measured, and that one is learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.checkpoints import load
from engine.data.kinds.brackets import is_balanced
from engine.data.task import Pair
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.scoring.examples import UNASKED, Examples
from engine.scoring.score import score, shares_of
from engine.training import Recipe, RunFolder, parse_recipe, train
from engine.training.cluster.parallel import Peers
from engine.training.examples.completion import Marks, completion_examples, prompt
from engine.training.examples.padding import rows_of
from engine.training.launch.machine import Abilities, plan
from engine.training.measures.exact import asked_of, by_group, write_targets
from engine.training.measures.origins import one_a_symbol, weights
from engine.training.objectives import find_objective
from engine.training.sources import open_source
from engine.training.sources.completion import Completion
from engine.training.sources.label_texts import LabelledTexts
from engine.training.sources.pairs import TaughtPairs
from engine.training.sources.source import Source
from engine.training.trainer import Trainer

TWO = """
[model]
d_model = 32
layers = 1
attention = { heads = 2 }
mlp = { d_mlp = 64, activation = "relu" }
[model.encoder]
layers = 1
attention = { heads = 2, mask = "full" }
mlp = { d_mlp = 64, activation = "relu" }
[objective]
kind = "sequence_to_sequence"
"""
ONE = """
[model]
d_model = 32
layers = 1
attention = { heads = 2 }
[objective]
kind = "completion"
"""
CLASSES = """
[model]
d_model = 32
layers = 1
tied = false
attention = { heads = 2, mask = "full" }
head = { kind = "sequence", classes = 2, read = "mean" }
[objective]
kind = "classification"
"""
REVERSE = """
[data.rewriting]
rule = "reverse"
symbols = "abcdef"
shortest = 2
longest = 4
documents = 400
held_out = 60
[data.tokenizer]
kind = "char"
"""
MODULAR = """
[data.modular]
modulus = 11
[data.tokenizer]
kind = "word"
"""
BRACKETS = """
[data.brackets]
longest = 8
documents = 200
held_out = 50
[data.tokenizer]
kind = "char"
"""
REST = """
[optimiser]
lr = 5e-3
weight_decay = 0.01
[schedule]
steps = 250
warmup = 20
[batch]
size = 32
context = 10
[log]
every = 50
held_out_every = 250
snapshots = 2
[machine]
device = "cpu"
threads = 1
"""


def recipe(model: str, data: str) -> Recipe:
    return parse_recipe(model + data + REST)


def trainer(of: Recipe, folder: Path) -> Trainer:
    place = RunFolder(folder)
    place.adopt(of)
    made = Trainer(of, place, plan(of.machine, Abilities.of_this_machine()), Peers())
    made.model.eval()
    return made


def rows(examples: Examples) -> Iterator[tuple[list[int], list[int]]]:
    """What is read of each row, and what is asked."""
    padding = examples.inputs.get("padding", torch.ones_like(examples.ids, dtype=torch.bool))
    for ids, real, asked in zip(examples.ids, padding, examples.targets, strict=True):
        yield ids[real].tolist(), asked[asked != UNASKED].tolist()


def test_a_completion_reads_all_but_the_last_and_is_asked_what_stands_behind_the_separator() -> None:
    pairs = [(torch.tensor([5, 6]), torch.tensor([7, 8])), (torch.tensor([5]), torch.tensor([9]))]
    sources, targets = (rows_of([pair[i] for pair in pairs]) for i in (0, 1))
    ended = completion_examples(sources, targets, Marks(separator=1, end=2))
    assert ended.ids.tolist() == [[5, 6, 1, 7, 8], [5, 1, 9, 2, 2]]
    assert ended.inputs["padding"].tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert ended.targets.tolist() == [[UNASKED, UNASKED, 7, 8, 2], [UNASKED, 9, 2, UNASKED, UNASKED]]
    whole = completion_examples(sources, targets, Marks(separator=1, end=2), prompts=True)
    assert whole.targets.tolist() == [[6, 1, 7, 8, 2], [1, 9, 2, UNASKED, UNASKED]] and whole.ids.equal(ended.ids)
    alone = completion_examples(rows_of([pairs[0][0]]), rows_of([pairs[0][1]]), Marks(separator=1, end=2, asked=False))
    assert alone.ids.tolist() == [[5, 6, 1, 7]] and "padding" not in alone.inputs
    assert alone.targets.tolist() == [[UNASKED, UNASKED, 7, 8]]
    nothing = torch.tensor([], dtype=torch.long)
    empty = completion_examples(rows_of([nothing]), rows_of([torch.tensor([7])]), Marks(1, 2))
    assert empty.ids.tolist() == [[1, 7]] and empty.targets.tolist() == [[7, 2]]
    assert prompt(torch.tensor([5, 6]), Marks(1, 2)).tolist() == [5, 6, 1]


def taught(of: Recipe, folder: Path) -> TaughtPairs:
    source = open_source(of, folder)
    assert isinstance(source, TaughtPairs) and source.tokenizer is not None
    return source


@pytest.mark.parametrize("data", [REVERSE, MODULAR])
def test_rows_of_a_completion_are_the_source_and_its_target(data: str, tmp_path: Path) -> None:
    source = taught(recipe(ONE, data), tmp_path)
    known = {pair.source: pair.target for pair in source.task_examples("train")}
    end = "</s>" if source.task.ended else ""
    for read, asked in rows(source.batch(3)):
        question, _, begun = source.tokenizer.decode(read).partition("=")  # type: ignore[union-attr]
        answer = source.tokenizer.decode(asked)  # type: ignore[union-attr]
        assert answer == known[question] + end
        assert begun == (known[question] if end else "")


def test_rows_for_an_encoder_decoder_are_the_source_and_its_target(tmp_path: Path) -> None:
    source = taught(recipe(TWO, REVERSE), tmp_path)
    known = {pair.source: pair.target for pair in source.task_examples("train")}
    for read, asked in rows(source.batch(3)):
        assert source.tokenizer.decode(asked) == known[source.tokenizer.decode(read)] + "</s>"  # type: ignore[union-attr]


@pytest.mark.parametrize(("model", "data"), [(TWO, REVERSE), (ONE, REVERSE), (ONE, MODULAR), (CLASSES, BRACKETS)])
def test_what_is_held_out_is_measured_once_each_and_never_learned_from(model: str, data: str, tmp_path: Path) -> None:
    of = recipe(model, data)
    source: Source = open_source(of, tmp_path)

    def texts(examples: Examples) -> list[str]:
        read = [source.tokenizer.decode(ids) for ids, _ in rows(examples)]  # type: ignore[union-attr]
        return [text.split("=")[0] for text in read]

    learned = {text for step in range(1, 40) for text in texts(source.batch(step))}
    measured = [text for examples in source.held_out(1000) for text in texts(examples)]
    assert isinstance(source, TaughtPairs | LabelledTexts)
    told = [one.source if isinstance(one, Pair) else one.text for one in source.task_examples("held_out")]
    assert measured == told and not learned & set(told)
    assert sum(len(examples.targets) for examples in source.held_out(1)) == min(of.batch.size, len(told))


def test_a_labelled_text_is_read_as_its_tokenizer_reads_what_is_typed(tmp_path: Path) -> None:
    source = open_source(recipe(CLASSES, BRACKETS), tmp_path)
    assert source.labels == ("unbalanced", "balanced") and source.tokenizer is not None
    for read, label in rows(replace(source.batch(1), targets=source.batch(1).targets[:, None])):
        text = source.tokenizer.decode(read)
        assert list(source.tokenizer.encode(text).ids) == read
        assert label == [int(is_balanced(text, "()[]"))]
    with pytest.raises(ValueError, match="model.head.classes must be 2 for .data.brackets., with .*, got 3, None"):
        source.complete_config(recipe(CLASSES.replace("classes = 2", "classes = 3"), BRACKETS).model)


def test_a_tokenizer_that_does_not_suit_the_task_is_refused() -> None:
    with pytest.raises(ValueError, match='data.tokenizer.kind must be "char" for rewriting, got "bpe"'):
        recipe(ONE, REVERSE.replace('"char"', '"bpe"'))
    with pytest.raises(ValueError, match='must be "sequence_to_sequence" or "completion" for .data.rewriting., got'):
        recipe(ONE.replace("completion", "next"), REVERSE)


def test_exact_is_the_share_of_rows_without_a_mistake_and_shares_of_a_batch_add_up_to_it() -> None:
    logits = torch.zeros(3, 2, 4)
    targets = torch.tensor([[1, 2], [3, UNASKED], [1, 1]])
    logits[0, 0, 1] = logits[0, 1, 2] = logits[1, 0, 3] = logits[1, 1, 0] = logits[2, 0, 1] = 5.0  # the last is wrong
    whole = Examples({"ids": torch.zeros(3, 2, dtype=torch.long)}, targets, whole=True)
    assert float(score((logits, None), whole)["exact"]) == pytest.approx(2 / 3)
    parts = [whole.share(rank, 2) for rank in range(2)]
    shared = [
        score((logits[rank::2], None), part, shares_of(part.counts, whole.counts))["exact"]
        for rank, part in enumerate(parts)
    ]
    assert float(sum(shared)) == pytest.approx(2 / 3)
    assert "exact" not in score((logits, None), replace(whole, whole=False))


@pytest.mark.parametrize(("model", "data"), [(TWO, REVERSE), (ONE, REVERSE), (ONE, MODULAR)])
def test_what_is_written_greedily_is_right_as_often_as_teacher_forcing_says(
    model: str, data: str, tmp_path: Path
) -> None:
    made = trainer(recipe(model, data), tmp_path)
    for _ in range(60):  # enough to be right now and then
        made.advance()
    made.model.eval()
    kind = made.recipe.objective.kind
    measured = find_objective(kind).measure(made)
    assert measured["exact_match"] == pytest.approx(made.measure(1000)["exact"])
    assert 0 < measured["exact_match"] < 1
    assert sum(measured.get("by_length", {"": measured["exact_match"]}).values()) > 0
    source = made.source
    assert isinstance(source, TaughtPairs)
    asked = asked_of(source, 5)
    ids = [both for _, both in asked]
    assert [pair.source for pair, _ in asked] == [source.corpus.tokenizer.decode(one.tolist()) for one, _ in ids]
    for given, both in zip(write_targets(made, ids), ids, strict=True):  # one alone is as among others
        assert write_targets(made, [both])[0] == given[: len(write_targets(made, [both])[0])]


def test_groups_have_each_their_share() -> None:
    assert by_group([1, 2, 2, 1, 3], [True, False, True, True, False]) == {"1": 1.0, "2": 0.5, "3": 0.0}


@pytest.mark.parametrize("model", [TWO, ONE])
def test_weights_are_those_of_the_rows_that_predict_on_the_symbol_predicted(model: str, tmp_path: Path) -> None:
    made = trainer(recipe(model, REVERSE), tmp_path)
    source = made.source
    assert isinstance(source, TaughtPairs)
    ((pair, ids),) = asked_of(source, 1)
    found = weights(made, pair, ids)
    n = len(pair.source)
    assert one_a_symbol(source.task.origins(pair), ids) and found.shape == (1, 2, n)
    examples = source.laid_out(rows_of([ids[0]]), rows_of([ids[1]]))
    name = "blocks.0.attn.pattern" if isinstance(source, Completion) else "decoder.blocks.0.cross_attn.pattern"
    target = examples.inputs.get("target")
    pattern = run(made.model, examples.ids, keep=[name], target=target)[name][0]
    first = n if target is None else 0  # the separator, or the start
    expected = torch.stack([pattern[:, first + i, n - 1 - i] for i in range(n)], dim=-1)
    torch.testing.assert_close(found[0], expected)


def test_a_symbol_is_followed_only_where_it_is_a_token() -> None:
    two, three = torch.zeros(2), torch.zeros(3)
    assert one_a_symbol((1, 0), (two, two)) and not one_a_symbol((), (two, two))
    assert not one_a_symbol((1, 0), (two, three)) and not one_a_symbol((2, 0), (two, two))


def test_a_tiny_model_learns_to_reverse(tmp_path: Path) -> None:
    """Chance is one in 6 ** 4 for four letters; a few hundred steps take it to nearly all."""
    steps = list(train(recipe(TWO, REVERSE), tmp_path))
    assert steps[0].also["held_out_exact"] < 0.05
    assert steps[-1].also["held_out_exact"] > 0.8
    checkpoint = load(tmp_path / "checkpoint")
    measured = checkpoint.card["measured"]
    assert measured["exact_match"] > 0.8 and 0 < measured["attention_on_origin"]["weight"] <= 1
    assert checkpoint.card["exact"]["held_out"] == pytest.approx(steps[-1].also["held_out_exact"])


def test_two_models_of_one_seed_learn_the_same(tmp_path: Path) -> None:
    of = recipe(ONE, REVERSE)
    of = replace(of, schedule=replace(of.schedule, steps=30))
    for name in ("a", "b"):
        for _ in train(of, tmp_path / name):
            pass
    ours, theirs = (load(tmp_path / name).model.state_dict() for name in ("a", "b"))
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    other = initialise(Transformer(load(tmp_path / "a").config), 1).state_dict()
    assert not all(torch.equal(ours[key], other[key]) for key in ours)
