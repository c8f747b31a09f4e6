"""A person's own rows, from a file or the hub, learned in every way that their columns allow, with every tokenizer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.checkpoints import load
from engine.data.kinds import hub
from engine.data.kinds.hub import Hub, read_hub
from engine.data.kinds.rows import Rows
from engine.data.own import FORMS
from engine.data.own_tasks import OwnLabels, OwnPairs, OwnTags, held_out, task_of
from engine.data.task import EVERY
from engine.scoring.examples import UNASKED
from engine.training import Recipe, RunFolder, read_recipe, train
from engine.training.examples.token_classification import first_tokens
from engine.training.objectives import list_fitting
from engine.training.probe.probe import Probe, default_probe
from engine.training.probe.question import question
from engine.training.recipe.link import pack_recipe
from engine.training.sources import open_source
from engine.training.sources.masked_windows import MaskedWindows
from engine.training.sources.sequence_to_sequence import SequenceToSequence

pytestmark = pytest.mark.long

FULL = 'attention = { heads = 2, mask = "full" }\n'
MODELS = {
    "next": "attention = { heads = 2 }\n",
    "completion": "attention = { heads = 2 }\n",
    "masked": FULL + 'head = { kind = "masked" }\n',
    "infill": 'attention = { heads = 2, mask = "prefix" }\npositions = { kind = "rotary", axes = 2 }\n',
    "classification": FULL + 'tied = false\nhead = { kind = "sequence", classes = 2, read = "mean" }\n',
    "token_classification": FULL + 'tied = false\nhead = { kind = "token", classes = 2 }\n',
    "sequence_to_sequence": "attention = { heads = 2 }\n[model.encoder]\nlayers = 1\n" + FULL,
}
COLUMNS = {
    "next": 'text = "text"',
    "masked": 'text = "text"',
    "infill": 'text = "text"',
    "classification": 'text = "text"\nlabel = "label"',
    "completion": 'source = "text"\ntarget = "answer"',
    "sequence_to_sequence": 'source = "text"\ntarget = "answer"',
    "token_classification": 'tokens = "text"\ntags = "tags"',
}
ANIMALS, VERBS = ["cat", "dog", "owl", "fox"], ["sat", "ran", "slept", "jumped", "sang"]
ROWS: list[dict[str, Any]] = [
    {
        "text": f"the {animal} {verb} and the {other} {more} .",
        "answer": f"{verb} {animal}",
        "label": "same" if verb == more else "other",
        "tags": f"O B-{animal} O O O B-{other} O O",
    }
    for animal in ANIMALS
    for other in ANIMALS
    for verb in VERBS
    for more in VERBS
]
SIZES = {"char": None, "word": None, "byte": None, "bpe": 300, "bpe-characters": 60, "wordpiece": 80, "unigram": 60}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return tmp_path


def recipe_of(folder: Path, kind: str, tokenizer: str = "word", data: str = "") -> Recipe:
    size = SIZES[tokenizer]
    text = f"""
[model]
d_model = 16
layers = 1
{MODELS[kind]}
[data.rows]
path = "rows.jsonl"
{COLUMNS[kind]}
[data.tokenizer]
kind = "{tokenizer}"
{"" if size is None else f"vocab_size = {size}"}
special_tokens = ["<user>", "<model>"]
[objective]
kind = "{kind}"
[schedule]
steps = 3
[batch]
size = 4
context = {64 if tokenizer in ("char", "byte") else 32}
[log]
snapshots = 2
[machine]
device = "cpu"
threads = 1
"""
    file = folder / "recipe.toml"
    file.write_text(text, encoding="utf-8")
    return read_recipe(file)


@pytest.mark.parametrize("tokenizer", EVERY)
@pytest.mark.parametrize("kind", MODELS)
def test_every_objective_learns_from_own_rows_with_every_tokenizer(kind: str, tokenizer: str, folder: Path) -> None:
    recipe, run = recipe_of(folder, kind, tokenizer), RunFolder(folder / "run")
    steps = list(train(recipe, run.path))
    assert steps[-1].step == 3 and steps[-1].loss is not None
    found = load(run.checkpoint)
    assert found.tokenizer is not None
    size, names = found.tokenizer.vocab_size, found.tokenizer.special_tokens
    assert found.config.vocab_size == size and size <= (SIZES[tokenizer] or size)  # fewer where texts have no more
    assert {"<user>", "<model>"} <= names.keys()
    typed = found.tokenizer.encode("<user>the cat<model>", special=False)
    assert typed.ids[0] == names["<user>"] and typed.ids[-1] == names["<model>"]
    source = open_source(recipe, run.path)
    probe = default_probe(recipe, source)
    asked = question(probe, found, recipe)
    assert any(one != UNASKED for one in asked.asked)  # what is right is known of the example that is shown


@pytest.mark.parametrize("tokenizer", EVERY)
def test_a_masked_text_stands_between_its_marks_as_one_that_is_typed(tokenizer: str, folder: Path) -> None:
    source = open_source(recipe_of(folder, "masked", tokenizer), folder / "run")
    assert isinstance(source, MaskedWindows) and source.tokenizer is not None
    examples, marks = source.batch(1), source.marks
    assert examples.ids.shape == (4, source.recipe.batch.context) and "segments" not in examples.inputs
    assert (examples.ids[:, 0] == marks.cls).all() and (examples.ids[:, -1] == marks.sep).all()
    typed = source.tokenizer.encode("the cat").ids
    assert typed[0] == marks.cls and typed[-1] == marks.sep and source.tokenizer.mask_id == marks.mask
    asked = examples.targets != UNASKED
    share = asked.float().mean(1) * source.recipe.batch.context / (source.recipe.batch.context - 2)
    assert ((share > 0.1) & (share < 0.21)).all()
    assert (examples.ids[asked] == marks.mask).float().mean() > 0.5
    specials = set(source.tokenizer.special_tokens.values())
    assert not specials & set(examples.targets[asked].tolist())


@pytest.mark.parametrize("tokenizer", ["wordpiece", "unigram", "byte"])
def test_a_source_and_its_target_stand_between_start_end_and_filling(tokenizer: str, folder: Path) -> None:
    source = open_source(recipe_of(folder, "sequence_to_sequence", tokenizer), folder / "run")
    assert isinstance(source, SequenceToSequence) and source.tokenizer is not None
    examples, marks = source.batch(1), source.marks
    assert len({marks.start, marks.end, marks.pad}) == 3
    known = {row["text"]: row["answer"] for row in ROWS}
    for ids, real, asked in zip(examples.ids, examples.inputs["padding"], examples.targets, strict=True):
        read, target = ids[real].tolist(), asked[asked != UNASKED].tolist()
        text = next(text for text in known if list(source.tokenizer.encode(text).ids) == read)
        assert target == [*source.tokenizer.encode(known[text]).ids, marks.end]


@pytest.mark.parametrize("tokenizer", EVERY)
def test_a_word_is_asked_once_at_its_first_token(tokenizer: str, folder: Path) -> None:
    source = open_source(recipe_of(folder, "token_classification", tokenizer), folder / "run")
    assert source.labels == ("B-cat", "B-dog", "B-fox", "B-owl", "O") and source.tokenizer is not None
    encoding = source.tokenizer.encode("the cat slept and the owl ran .")
    places = first_tokens(encoding)
    assert None not in places and len(set(places)) == 8
    for place, word in zip(places, encoding.text.split(), strict=True):
        start, stop = encoding.spans[place]  # type: ignore[index]
        mark = tokenizer == "unigram" and encoding.pieces[place] == "·"  # type: ignore[index]
        assert (mark or encoding.text[start:stop].strip()) and word.startswith(encoding.text[start:stop].strip())
    examples = source.batch(1)
    assert (examples.targets != UNASKED).sum(1).tolist() == [8] * 4


def test_no_text_is_both_learned_from_and_held_out_and_the_seed_says_which(folder: Path) -> None:
    for kind, expected in (("classification", OwnLabels), ("completion", OwnPairs), ("token_classification", OwnTags)):
        task = task_of(recipe_of(folder, kind).data.table)
        assert isinstance(task, expected)
        tell: Any = {OwnLabels: "texts", OwnPairs: "pairs", OwnTags: "sentences"}[expected]

        def texts(part: str, seed: int, tell: str = tell, task: Any = task) -> list[str]:
            return [getattr(one, "source", None) or one.text for one in getattr(task, tell)(part, seed)]

        ours, theirs = texts("train", 0), texts("held_out", 0)
        assert not set(ours) & set(theirs) and sorted(ours + theirs) == sorted(row["text"] for row in ROWS)
        assert len(set(theirs)) == round(0.1 * len({row["text"] for row in ROWS})) and theirs != texts("held_out", 1)
    assert len(held_out(["a", "b"], 0.1, 0)) == 1 == len(held_out(["a", "b"], 0.9, 0))
    with pytest.raises(ValueError, match="at least 2 rows with different texts to read, .*, got 1 in 2; add rows"):
        held_out(["a", "a"], 0.5, 0)


def test_columns_that_do_not_go_together_or_with_the_objective_are_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="data.rows.text must name the column of the texts, .* got text and source"):
        Rows(path="x.csv", text="a", source="b")
    with pytest.raises(ValueError, match="got none"):
        Rows(path="x.csv")
    recipe = recipe_of(folder, "next")
    with pytest.raises(ValueError, match='"next" or "masked" or "infill" for text, got "completion"'):
        replace(recipe, objective=replace(recipe.objective, kind="completion"))
    assert {kind for form in FORMS.values() for kind in list_fitting(form)} == MODELS.keys() | {"span", "conversation"}
    with pytest.raises(ValueError, match="is a place on one machine"):
        pack_recipe(recipe)


def test_a_bad_row_or_file_is_a_sentence_when_the_run_opens_it(folder: Path) -> None:
    recipe = recipe_of(folder, "token_classification")
    rows = [{**ROWS[0]}, {**ROWS[1], "tags": "O O"}]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ValueError, match="row 2 must have a tag for each token, got 8 tokens and 2 tags"):
        open_source(recipe, folder / "run")
    (folder / "rows.jsonl").unlink()
    with pytest.raises(ValueError, match="data.rows.path: .*rows.jsonl must be a file that can be read"):
        open_source(recipe, folder / "run")


class Stream:
    """A data set as `datasets` streams it, which must not be read further than asked."""

    def __init__(self, most: int) -> None:
        self.features = {"label": SimpleNamespace(names=["bad", "good"]), "text": SimpleNamespace()}
        self.most = most

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for n in range(self.most):
            yield {"text": f"text {n}", "label": n % 2}
        raise AssertionError("read too far")


@pytest.fixture
def datasets(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []

    def load_dataset(name: str, subset: str | None, **rest: Any) -> Stream:
        asked.append((name, subset, rest))
        if name == "not/there":
            raise FileNotFoundError("Dataset 'not/there' doesn't exist on the Hub")
        return Stream(6)

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))  # type: ignore[arg-type]
    read_hub.cache_clear()
    return asked


def test_a_data_set_is_read_by_its_hub_name_as_far_as_asked_and_classes_by_name(datasets: list[Any]) -> None:
    table = Hub(name="some/reviews", split="test", rows=6, text="text", label="label").table()
    assert datasets == [("some/reviews", None, {"split": "test", "streaming": True})]
    assert table.columns == ("text", "label") and table.count == 6
    assert table.texts("label") == ("bad", "good") * 3
    with pytest.raises(ValueError, match="not/there .split train. must be one of the hub's .* got: Dataset 'not"):
        read_hub("not/there")


def test_a_hub_name_that_is_a_path_and_a_missing_package_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("/etc/passwd", "../data", "a/b/c", "", "a b", "x/..", "https://host/x"):
        with pytest.raises(ValueError, match="data.hub.name must be a name on the hub, such as stanfordnlp/imdb"):
            Hub(name=name, text="text")
    monkeypatch.setitem(sys.modules, "datasets", None)
    read_hub.cache_clear()
    with pytest.raises(ValueError, match="needs the package datasets, which is not here; install it with: pip install"):
        Hub(name="some/reviews", text="text").table()
    monkeypatch.setattr(hub, "find_spec", lambda name: None)
    assert not hub.has_datasets()


def test_a_recipe_from_the_hub_learns(datasets: list[Any], folder: Path) -> None:
    recipe = recipe_of(folder, "classification")
    data = replace(recipe.data, table=Hub(name="some/reviews", rows=6, text="text", label="label"))
    found = list(train(replace(recipe, data=data), folder / "run"))
    assert found[-1].step == 3 and load(folder / "run" / "checkpoint").labels == ("bad", "good")


def test_a_probe_names_a_class_for_each_of_its_words(folder: Path) -> None:
    recipe = recipe_of(folder, "token_classification", "bpe")
    for _ in train(recipe, folder / "run"):
        pass
    found = load(folder / "run" / "checkpoint")
    made = question(Probe("the cat ran", "O B-cat O"), found, recipe)
    assert [found.labels[one] for one in made.asked if one != UNASKED] == ["O", "B-cat", "O"]
    with pytest.raises(ValueError, match="a class for each word, 3 classes, got 2"):
        question(Probe("the cat ran", "O O"), found, recipe)
    with pytest.raises(ValueError, match="must be one of B-cat, .* got 'PLACE'"):
        question(Probe("the cat ran", "O PLACE O"), found, recipe)
