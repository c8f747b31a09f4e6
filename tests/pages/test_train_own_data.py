"""A person's own data on the page about training: brought, looked at, and made into a recipe that trains."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas
import pytest
from streamlit.testing.v1 import AppTest

from engine.budget import budget
from engine.data.kinds import hub
from engine.data.own_tasks import held_out
from engine.training import sources
from engine.training.launch.sizing import Sizing, find_size, known_size
from engine.training.recipe.recipe_file import write_recipe
from engine.training.run.card import describe_data
from pages.controls.train import user_data as own_data
from pages.controls.train import user_data as own_files
from pages.controls.train.recipe_plan import sizing_cache
from server import settings
from tests.pages.test_train import address, page, plan, recipe_of, told

HAMLET = "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n" * 20
REVIEWS = [(f"a {'good' if i % 2 else 'bad'} film, number {i}", "yes" if i % 2 else "no") for i in range(60)]


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path / "runs"))
    monkeypatch.setattr(Sizing, "begin", lambda self, recipe: False)
    sizing_cache.clear()
    yield tmp_path / "runs"


def csv(rows: list[tuple[str, ...]], *names: str) -> bytes:
    return pandas.DataFrame(rows, columns=list(names)).to_csv(index=False).encode()


def brought(name: str, data: bytes) -> AppTest:
    """The page with a file as its link says it, once it is kept."""
    return page(task="own-data", data=own_files.store_file(name, data).parent.name)


def prepared(app: AppTest, folder: Path) -> Any:
    """The source that the training of the page's recipe begins with."""
    recipe = recipe_of(app)
    source = sources.open_source(recipe, folder)
    source.complete_config(recipe.model)
    assert source.batch(1).tokens > 0
    return source


def test_nothing_is_trained_before_there_is_data() -> None:
    app = page(task="own-data")
    assert plan(app)["problem"].startswith("Paste a text or upload") and plan(app)["asks"] and not app.warning


def test_a_pasted_text_becomes_a_recipe_that_trains(tmp_path: Path) -> None:
    app = page(task="own-data")
    app.text_area(key="pasted 0").set_value("too short").run()
    app.button(key="use pasted").click().run()
    assert "at least 200 characters" in told(app)
    app.text_area(key="pasted 0").set_value(HAMLET).run()
    app.button(key="use pasted").click().run()
    assert not app.warning and Path(recipe_of(app).data.table.path).read_text() == HAMLET
    assert f"{len(HAMLET):,} characters" in " ".join(one.value for one in app.caption)
    tokenizer = prepared(app, tmp_path).tokenizer
    assert set(HAMLET) <= set(tokenizer.decode(list(range(tokenizer.vocab_size))))
    again = page(task="own-data", data=address(app, "data"))  # after the page was loaded anew
    assert recipe_of(again) == recipe_of(app) and "recipe" not in again.query_params


def test_the_text_of_the_recipe_does_not_tell_where_the_file_lies(tmp_path: Path) -> None:
    app = brought("hamlet.txt", HAMLET.encode())
    (area,) = (one for one in app.text_area if one.key.endswith(" text"))
    assert 'path = "hamlet.txt"' in area.value and str(tmp_path) not in area.value
    area.set_value(area.value.replace("steps = 800", "steps = 500")).run()
    next(one for one in app.button if one.key.endswith(" apply")).click().run()
    assert recipe_of(app).schedule.steps == 500 and Path(recipe_of(app).data.table.path).is_file()


def test_above_a_run_stands_what_it_learned_also_after_a_reload(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "runs_folder", str(runs))
    app = brought("reviews.csv", csv([(says, label) for label, says in REVIEWS], "a", "b"))
    usual = recipe_of(app)
    next(one for one in app.selectbox if one.label == "learn from").select(("text", "label")).run()
    next(one for one in app.selectbox if one.label == "column of the text").select("b").run()
    chosen = recipe_of(app)
    assert (usual.data.table.names, chosen.data.table.text, chosen.data.table.label) == (("text",), "b", "a")
    learned = replace(chosen, schedule=replace(chosen.schedule, steps=77))
    (runs / "mine").mkdir()
    (runs / "mine" / "recipe.toml").write_text(write_recipe(learned))
    again = page(task="own-data", data=address(app, "data"), run="mine")
    assert recipe_of(again) == learned == recipe_of(again.run())
    next(one for one in again.selectbox if one.label == "learn from").select(("text",)).run()
    assert recipe_of(again).data.table.names == ("text",)


@pytest.mark.parametrize("objective", ["next", "masked", "infill"])
def test_each_objective_of_a_text_trains(objective: str, tmp_path: Path) -> None:
    app = brought("hamlet.txt", HAMLET.encode())
    box = next(one for one in app.selectbox if one.label == "to be learned")
    box.select(objective).run()
    assert recipe_of(app).objective.kind == objective
    shares = [one for one in app.number_input if one.label in ("long gaps", "hidden")]
    assert len(shares) == (2 if objective == "infill" else 0)
    for share in shares:
        share.set_value(0.5)
    if shares:
        app.run()
        assert recipe_of(app).objective.cuts == (0.5, 0.5)
    prepared(app, tmp_path)


@pytest.mark.parametrize(
    ("file", "objective", "columns"),
    [
        ("reviews.csv", "classification", {"text": "review", "label": "sentiment"}),
        ("pairs.jsonl", "sequence_to_sequence", {"source": "source", "target": "target"}),
        ("words.parquet", "token_classification", {"tokens": "tokens", "tags": "tags"}),
        ("entailed.jsonl", "classification", {"text": "premise", "pair": "hypothesis", "label": "gold_label"}),
        ("asked.jsonl", "span", {"question": "query", "context": "text", "answer": "answer", "start": "answer_start"}),
    ],
)
def test_columns_decide_what_can_be_learned(file: str, objective: str, columns: dict[str, str], tmp_path: Path) -> None:
    pairs = [{"source": f"{i} cats", "target": f"{i} chats"} for i in range(40)]
    entailed = [{"premise": f"{i} cats", "hypothesis": f"{i} dogs", "gold_label": "ab"[i % 2]} for i in range(40)]
    asked = [{"text": f"{i} cats ran", "query": f"who ran {i}", "answer": "cats", "answer_start": 2} for i in range(10)]
    asked += [one | {"text": f"{one['text']} again", "query": f"and {one['query']}"} for one in asked * 3]
    words = [{"tokens": ["Ann", "sees", f"x{i}"], "tags": ["B-PER", "O", "O"]} for i in range(40)]
    pandas.DataFrame(words).to_parquet(tmp_path / "words")
    data = {
        "reviews.csv": csv(REVIEWS, "review", "sentiment"),
        "pairs.jsonl": "\n".join(map(json.dumps, pairs)).encode(),
        "words.parquet": (tmp_path / "words").read_bytes(),
        "entailed.jsonl": "\n".join(map(json.dumps, entailed)).encode(),
        "asked.jsonl": "\n".join(map(json.dumps, asked)).encode(),
    }
    app = brought(file, data[file])
    recipe = recipe_of(app)
    assert recipe.objective.kind == objective
    assert {name: getattr(recipe.data.table, name) for name in columns} == columns
    source = prepared(app, tmp_path)
    two = recipe.data.table.two_texts
    assert recipe.model.embedding.segments == 2 * two and ("segments" in source.batch(1).inputs) == two
    assert f"{60 if file == 'reviews.csv' else 40} rows" in " ".join(one.value for one in app.caption)
    assert len(app.dataframe[0].value) == 6


def test_data_that_comes_split_is_learned_and_measured_as_it_comes(tmp_path: Path) -> None:
    learned = own_files.store_file("train.csv", csv(REVIEWS, "review", "sentiment"))
    measured = [(label, f"{text}, once more") for text, label in REVIEWS[:8]]  # the columns in another order
    held = own_files.store_file("dev.csv", csv(measured, "sentiment", "review"))
    app = page(task="own-data", data=learned.parent.name, held_out_data=held.parent.name)
    captions = " ".join(one.value for one in app.caption)
    assert "60 rows" in captions and "8 rows held out" in captions and "dev.csv is measured on" in captions
    source = prepared(app, tmp_path)
    texts = [[one.text for one in source.task_examples(part)] for part in ("train", "held_out")]
    assert texts == [[text for text, _ in REVIEWS], [text for _, text in measured]]
    assert str(tmp_path) not in str(describe_data(recipe_of(app).data))
    other = own_files.store_file("other.csv", csv(REVIEWS, "a", "b"))
    app.query_params["held_out_data"] = other.parent.name
    assert "other.csv must have the columns of the data" in app.run().warning[0].value
    next(one for one in app.button if one.label == "Hold out a share instead").click().run()
    assert not app.warning and "held_out_data" not in app.query_params
    assert recipe_of(app).data.table.held_out_path == ""


def test_pairs_that_are_too_long_for_the_context_are_counted_on_the_page() -> None:
    pairs = [{"source": f"{i} cats" + " and dogs" * (60 if i < 2 else 0), "target": f"{i} chats"} for i in range(200)]
    app = brought("pairs.jsonl", "\n".join(map(json.dumps, pairs)).encode())
    recipe = recipe_of(app)
    size = find_size(recipe)
    assert (size.rows, size.left_out, recipe.objective.kind) == (200, 2, "sequence_to_sequence")
    said = (
        f"Left out: 2 of 200 rows, with more tokens than the context of {recipe.batch.context}: raise the "
        "context, or shorten them."
    )
    assert said not in [one.value for one in app.caption]
    assert said in [one.value for one in app.run().caption]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("", "no"), "row 7 must have a text in the column 'text', got nothing"),
        (("a film", ""), "row 7 must have a text in the column 'label', got nothing"),
    ],
)
def test_a_bad_row_is_named_by_its_number(row: tuple[str, str], said: str) -> None:
    app = brought("reviews.csv", csv([*REVIEWS[:6], row, *REVIEWS[6:]], "text", "label"))
    assert said in told(app) and plan(app)["problem"]


def test_labels_that_cannot_be_learned_are_said_before_training() -> None:
    app = brought("reviews.csv", csv([(text, "yes") for text, _ in REVIEWS], "text", "label"))
    assert "the column of the labels must have 2 to 1,000 different ones, got only 'yes'" in told(app)
    texts = [text for text, _ in REVIEWS]
    theirs = held_out(texts, own_data.SHARE, 0)
    rows = [(text, "rare" if text in theirs else label) for text, label in REVIEWS]
    app = brought("reviews.csv", csv(rows, "text", "label"))
    find_size(recipe_of(app))
    app.run()
    assert "got 'rare' in the held-out rows alone; add rows with it" in plan(app)["problem"]
    seed = next(one for one in app.number_input if one.label == "seed")
    seed.set_value(1).run()
    find_size(recipe_of(app))
    app.run()
    assert not plan(app)["problem"]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("noise.txt", b"\xff\xfe\x00\xd8" * 80, "UTF-8"),
        ("empty.csv", b"text,label\n", "at least one row"),
        ("broken.jsonl", b'{"text": "a"}\n{"text": \n', "2"),
        ("noise.parquet", b"PAR1 is not enough", "must be a Parquet file"),
        ("short.txt", b"hello", "at least 200"),
    ],
)
def test_a_file_that_does_not_read_is_one_sentence(name: str, data: bytes, said: str, runs: Path) -> None:
    app = brought(name, data)
    assert plan(app)["problem"] and len(app.warning) == 1
    assert said in told(app) and str(runs) not in told(app)


def test_a_link_to_data_that_is_not_here_says_so() -> None:
    for digest in ("0" * 32, "../../etc", ""):
        app = page(task="own-data", data=digest)
        assert plan(app)["problem"]
        assert ("upload this link's data" in told(app)) == bool(digest)


def test_names_of_files_are_only_names(runs: Path) -> None:
    for name in ("../../evil.txt", "C:\\x\\evil.txt", "a\0b/evil.txt", "evil.txt"):
        file = own_files.store_file(name, name.encode())
        assert file.name == "evil.txt" and file.parent.parent == runs.resolve() / ".data"
    assert len(own_files.file_name("x" * 500 + ".csv")) <= 64 and own_files.file_name("...") == "data"


def test_what_no_run_learns_from_goes_where_room_is_needed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "max_data", 100)
    monkeypatch.setattr(settings, "DATA_DISK", 250)
    with pytest.raises(ValueError, match="LOUPE_MAX_DATA_MIB"):
        own_files.store_file("large.txt", b"x" * 101)
    used, unused = own_files.store_file("a.txt", b"a" * 100), own_files.store_file("b.txt", b"b" * 100)
    (runs / "run").mkdir()
    (runs / "run" / "recipe.toml").write_text(f'path = "{used}"')
    own_files.store_file("c.txt", b"c" * 100)
    assert used.is_file() and not unused.exists()
    (runs / "run" / "recipe.toml").write_text("".join(map(str, own_files.folder().iterdir())))
    with pytest.raises(ValueError, match="LOUPE_DATA_DISK_MIB"):
        own_files.store_file("d.txt", b"d" * 100)


def test_a_hub_needs_its_package_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_data, "has_datasets", lambda: False)
    assert "pip install datasets" in " ".join(one.value for one in page(task="own-data").caption)


def test_a_data_set_of_the_hub_is_looked_at_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text": text, "label": label} for text, label in REVIEWS]
    fake = SimpleNamespace(load_dataset=lambda name, subset, split, streaming: rows)
    monkeypatch.setattr(hub, "import_module", lambda name: fake)
    monkeypatch.setattr(own_data, "has_datasets", lambda: True)
    hub.read_hub.cache_clear()
    app = page(task="own-data")
    app.text_input(key="hub name").set_value("../x").run()
    app.button(key="fetch").click().run()
    assert "must be a name on the hub" in told(app)
    app.text_input(key="hub name").set_value("org/reviews").run()
    app.button(key="fetch").click().run()
    found = recipe_of(app)
    assert (found.data.table.name, found.data.table.label) == ("org/reviews", "label")
    assert found.objective.kind == "classification"
    hub.read_hub.cache_clear()


# What is tried out before a training.


def test_what_a_source_refuses_is_said_before_it_is_trained(runs: Path) -> None:
    app = page(task="brackets")
    recipe = recipe_of(app)
    small = replace(recipe.data.table, documents=100, held_out=20)
    recipe = replace(recipe, data=replace(recipe.data, table=small))
    assert known_size(recipe) is None
    assert find_size(recipe).vocab_size == known_size(recipe).vocab_size == 7  # four brackets, pad, end, unknown
    wrong = replace(recipe, model=replace(recipe.model, head=replace(recipe.model.head, classes=3)))
    assert known_size(wrong) is None
    assert "model.head.classes must be 2" in find_size(wrong).problem
    (runs / ".sizes.json").write_text("[broken")
    assert known_size(recipe) is None and find_size(recipe).vocab_size == 7


def test_conversations_ask_for_a_base() -> None:
    talk = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
    app = brought("talks.jsonl", (json.dumps(talk) + "\n").encode() * 3)
    assert plan(app)["problem"].startswith("base must name a model with a chat template")
