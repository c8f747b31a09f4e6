"""The page Adapt without a browser: what it would train, of which base, and what it says of what was trained."""

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import load, run
from engine.analysis.adaptation import caught, change_of, matrix_changes, pattern_changes, singular_values
from engine.analysis.answers import best_answer, where_answers_stand, words
from engine.budget import budget
from engine.model.transformer import Transformer
from engine.runtime import library, openings
from engine.training import Recipe, read_recipe, train, write_recipe
from engine.training.base.base import read_transfer
from engine.training.launch.sizing import Sizing, find_size
from engine.training.run.comparison import (
    held_out_examples,
    held_out_loss,
    old_model,
    recipe_of_base,
    texts_of,
    without_published,
)
from engine.training.run.control import read_order
from engine.training.run.folder import RunFolder
from engine.training.run.status import Status, write_status
from pages.controls.train import before_after, laboratory
from pages.controls.train.adapt_plan import FOLDER, describe_model, on_base
from pages.controls.train.held_out_rows import told_apart, walkthrough_link
from pages.controls.train.presets import presets
from pages.controls.train.session import ADAPTED, Session
from pages.controls.train.user_data import store_file
from tests.engine.conversations.test_conversations import TEMPLATES
from tests.engine.training.test_conversation import TALKS
from tests.engine.training.test_conversation import save_base as save_talker
from tests.pages.mounted import mounted, read_markdown, record
from views.core.payload import unpack

APP = str(Path(__file__).parents[2] / "app.py")


@pytest.fixture(autouse=True)
def few_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of what the base had learned; what the loss on them is, the engine's functions are asked."""
    monkeypatch.setattr(before_after, "BATCHES", 1)


def page(**query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=120).switch_page("pages/train/adapt.py")
    for name, value in query.items():
        app.query_params[name] = value
    return app


def plan(app: AppTest) -> Recipe | None:
    assert not app.exception, app.exception
    session: Session = record(app, Session)
    return session.plan


def told(app: AppTest) -> str:
    return " ".join(one.value for one in app.warning).replace("\\", "")


def test_a_visitor_meets_a_finished_run_and_the_recipe_that_made_it() -> None:
    app = page().run()
    recipe = plan(app)
    assert recipe is not None and (recipe.base, recipe.train.parts) == ("tales-bert", "all")
    made = read_recipe(ADAPTED / "recipe.toml")
    assert recipe == replace(made, machine=recipe.machine) and recipe.model.head.pooler and not app.warning
    assert load(RunFolder(ADAPTED).snapshot(200)).model.config.head.kind == "sequence"


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.toml"))])
def test_every_shipped_recipe_can_start(name: str) -> None:
    recipe = plan(page(adapt=name).run())
    assert recipe is not None and recipe.base == presets(FOLDER)[name].recipe.base


@pytest.mark.parametrize(
    ("query", "says", "demo"),
    [
        ({}, "The base, tales-bert, is an encoder that guesses hidden tokens: all of its weights learn.", True),
        ({"base": "stories"}, "The base, stories, is a decoder that writes text: all of its weights learn.", False),
        ({"way": "LoRA", "adapt": "sentiment"}, "and an adapter of rank 8 learns.", False),
        ({"adapt": "style-old"}, "Learns to write as somebody who speaks as people did long ago. The base", False),
        ({"way": "Preferences", "stage": "Policy"}, "The base, stories, is a decoder that writes text", True),
        ({"way": "Preferences", "stage": "Policy", "base": "everyday"}, "The base, everyday, is a decoder", False),
        ({"way": "Preferences", "stage": "Reward"}, "all of its weights learn", True),
        ({"way": "Preferences", "stage": "Policy", "base": "tales-bert"}, "", False),
    ],
)
def test_the_page_speaks_of_the_base_that_is_chosen(query: dict[str, str], says: str, demo: bool) -> None:
    app = page(**query).run()
    base = app.selectbox(key="base").value
    assert base == query.get("base", base)
    assert says in read_markdown(" ".join(one.value for one in app.caption))
    (top,), (trained,) = mounted(app, "bar"), mounted(app, "train")
    assert unpack(top.bytes)[0]["model"] == base
    assert bool(unpack(trained.bytes)[0]["recorded"]) == demo


@pytest.mark.parametrize("name", library.names())
def test_every_model_is_described_by_its_config(name: str) -> None:
    assert re.fullmatch(r"an? (en|de)coder(-decoder)?( (that|of) [\w ]+)?", describe_model(load(name).config))


def test_the_base_of_the_address_is_that_of_every_way_until_another_is_chosen() -> None:
    app = page(way="Preferences", base="infill").run()
    assert app.selectbox(key="base").value == "infill" and app.query_params["base"] in ("infill", ["infill"])
    app.button_group(key="way").set_value("LoRA").run()
    assert app.selectbox(key="base").value == "infill"
    app.button_group(key="way").set_value("Preferences").run()
    assert app.selectbox(key="base").value == "infill"
    older = page(way="Preferences", start="everyday").run()
    assert older.selectbox(key="base").value == "everyday" and "start" not in older.query_params


def test_the_way_is_that_of_the_task_of_a_link_until_another_is_chosen() -> None:
    app = page(adapt="style-old").run()
    assert app.button_group(key="way").value == "LoRA"
    app.button_group(key="way").set_value("Fine-tune").run()
    assert (app.button_group(key="way").value, app.selectbox(key="adapt").value) == ("Fine-tune", "style-old")
    assert page(adapt="style-old", way="Fine-tune").run().button_group(key="way").value == "Fine-tune"


def test_what_of_a_link_cannot_be_used_is_named() -> None:
    wrong = {"base": "nobody", "judge": "nonsense", "recipe": "1xx", "data": "abc", "run": "gone"}
    app = page(way="Preferences", stage="Policy", learner="GRPO", **wrong).run()
    said = read_markdown(app.info[0].value)
    assert not app.exception and all(f"{name} is '{wrong[name]}'" in said for name in list(wrong)[:4])
    assert app.selectbox(key="base").value == "stories" and plan(app) is not None


def test_a_base_that_nobody_chose_follows_the_recipe() -> None:
    app = page().run()
    for way, base in (("Preferences", "stories"), ("Fine-tune", "tales-bert")):
        app.button_group(key="way").set_value(way).run()
        assert app.selectbox(key="base").value == base
    app.selectbox(key="adapt").set_value("style-old").run()
    assert app.selectbox(key="base").value == "everyday"
    gone = page(way="Preferences", base="nobody").run()
    assert gone.selectbox(key="base").value == "stories" and not gone.exception


def test_any_model_that_is_here_can_be_the_base_and_any_part_of_it_learn() -> None:
    app = page(adapt="sentiment", base="stories").run()
    recipe = plan(app)
    assert recipe is not None and recipe.base == "stories" and recipe.model.head.read == "last"  # a GPT's
    next(one for one in app.selectbox if one.label == "what learns").select("last 2 blocks").run()
    recipe = plan(app)
    assert recipe is not None and recipe.train.parts == "last 2 blocks"
    app.button_group(key="way").set_value("LoRA").run()
    next(one for one in app.multiselect).set_value(["attn.out"]).run()
    recipe = plan(app)
    assert recipe is not None and recipe.train.parts == "lora" and recipe.lora.targets == ("attn.out",)
    next(one for one in app.number_input if one.label == "rank").set_value(200).run()
    assert plan(app) is None and "must lie in 1..128, got 200" in told(app)
    app = page(adapt="tagging", base="infill").run()
    assert plan(app) is None and told(app)  # its mask cannot serve tags


def test_an_upload_stays_where_a_training_finds_it(tmp_path: Path) -> None:
    folder = TemporaryDirectory(dir=tmp_path)
    load("stories").save(Path(folder.name))
    name = library.offer(library.LoadOptions(Path(folder.name), title="mine", folder=folder))
    recipe = on_base(presets(FOLDER)["supervised"].recipe, name)
    assert recipe.base == name and recipe.model.head.language
    kept = library.LoadOptions.from_record(openings.find_path(budget.runs_folder, name) or {})
    assert Path(kept.source).is_dir() and not Path(kept.source).is_relative_to(tmp_path)


def test_what_has_changed_is_what_the_two_models_say() -> None:
    base = load("tales-bert").model
    recipe = read_recipe(ADAPTED / "recipe.toml")
    result = load(RunFolder(ADAPTED).snapshot(200)).model
    (examples,) = held_out_examples(recipe, 1)
    texts = texts_of(examples, 2)
    moved = pattern_changes(base, result, texts)
    by_hand = torch.cat(
        [
            (run(result, text).stack("attn.pattern") - run(base, text).stack("attn.pattern")).abs().sum(-1)[:, 0] / 2
            for text in texts
        ],
        -1,
    ).mean(-1)
    torch.testing.assert_close(moved.float(), by_hand, rtol=1e-4, atol=1e-6)
    (one,) = (each for each in matrix_changes(base, result) if each.name == "blocks.1.attn.q")
    before, change = change_of(base, result, one.name)
    assert one.relative == pytest.approx(float(change.norm() / before.norm()), rel=1e-5)
    shares = caught(singular_values(change))
    u, s, v = torch.linalg.svd(change.double())
    best = (u[:, :3] * s[:3]) @ v[:3]
    left = (change.double() - best).norm() ** 2 / change.double().norm() ** 2
    assert float(shares[2]) == pytest.approx(1 - float(left), abs=1e-9) and float(shares[-1]) == pytest.approx(1)


def test_what_was_forgotten_is_the_old_loss_under_the_old_head() -> None:
    base, old = load("tales-bert").model, recipe_of_base("tales-bert")
    assert old is not None and recipe_of_base("nobody") is None
    examples = held_out_examples(without_published(old), 1)
    same = held_out_loss(old_model(base, base), examples)
    assert same == held_out_loss(base, examples) and 0 < same < 5
    result = load(RunFolder(ADAPTED).snapshot(200)).model
    assert held_out_loss(old_model(base, result), examples) > same


def test_of_published_texts_nothing_is_cut_again() -> None:
    old = recipe_of_base("tales-bert")
    assert old is not None and (table := old.data.table).kind == "sentence_pairs" and table.tales and table.sentences
    left = without_published(old)
    assert left.data.table == replace(table, tales="", sentences="") and without_published(left) == left
    alone = replace(old, data=replace(old.data, table=replace(table, documents=0)))
    assert without_published(alone) == alone  # nothing else is there


def test_lambda_of_a_running_training_is_a_slider_that_it_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laboratory, "on_this_machine", lambda: True)
    run = RunFolder(Path(budget.runs_folder) / "weighed")
    run.path.mkdir(parents=True)
    run.recipe.write_text(write_recipe(presets(FOLDER)["supervised"].recipe), encoding="utf-8")
    write_status(run.status, Status("paused", 3, 200))
    app = page(run="weighed").run()
    (slider,) = (one for one in app.slider if one.label.startswith("λ of this run"))
    assert slider.value == 0.5
    slider.set_value(1.5).run()
    assert read_order(run.control).weight == 1.5


def test_held_out_rows_are_told_apart_as_the_model_does_and_f1_is_that_of_its_definition() -> None:
    file = RunFolder(ADAPTED).snapshot(200)
    table, f1 = told_apart(str(ADAPTED / "recipe.toml"), file, 0)
    checkpoint = load(file)
    row = table.iloc[0]
    assert checkpoint.tokenizer is not None
    logits = run(checkpoint.model, checkpoint.tokenizer.encode(row["text"]))["logits"].flatten()
    assert row["predicted"] == checkpoint.labels[int(logits.argmax())]
    assert row["probability"] == pytest.approx(float(logits.softmax(-1).max()), rel=1e-4)
    pairs = list(zip(table["label"], table["predicted"], strict=True))
    found = []
    for name in set(table["label"]):
        hits = sum(a == b == name for a, b in pairs)
        precision, recall = hits / sum(b == name for _, b in pairs), hits / sum(a == name for a, _ in pairs)
        found.append(2 * precision * recall / (precision + recall))
    assert f1 == pytest.approx(sum(found) / len(found)) and len(table) == 128


def test_the_section_of_the_recorded_run_is_drawn_whole() -> None:
    transfer = read_transfer(ADAPTED)
    assert transfer is not None and (len(transfer.taken), transfer.family) == (103, "bert")
    app = page()
    app.session_state["before after"] = True  # as a click leaves it
    app.run()
    assert not app.exception and not app.warning
    said = " ".join(one.value for one in [*app.caption, *app.markdown]).replace("\\", "")
    assert str(transfer) in said and "macro F1" in said
    assert "(masked, without its published texts), its held-out loss under its own head" in said
    assert len(app.get("vega_lite_chart")) == 4 and len(app.get("plotly_chart")) == 1  # matrices, heads, classes, ranks


ANIMALS, PLACES = "cat dog owl fox hen cow".split(), "garden forest kitchen river".split()
LONG = " and then it slept" * 40


def rows_of(form: str) -> list[dict[str, Any]]:
    """Sixty rows, of which the first is longer than the base reads."""
    random, rows = Random(0), list[dict[str, Any]]()
    for number in range(60):
        animal, place = random.choice(ANIMALS), random.choice(PLACES)
        parts = random.sample([f"number {number}", f"the {animal}", f"a {place}", "it was there"], 4)
        text = " and ".join(parts) + (LONG if not number else "")
        names = {animal: "B-WHO", place: "B-WHERE"}
        found: dict[str, dict[str, Any]] = {
            "tagged": {"words": text.split(), "tags": [names.get(word, "O") for word in text.split()]},
            "two texts": {"sentence1": text, "sentence2": f"{animal} {number}", "label": "ab"[number % 2]},
            "answers": {"question": f"who is {number} ?", "context": text},
        }
        found["answers"]["answers"] = {"text": [animal], "answer_start": [text.index(animal)]}  # as SQuAD has them
        rows.append(found[form])
    return rows


@pytest.fixture(scope="module")
def little_bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An opened model: the first block of tales-bert, which reads 96 tokens."""
    whole, folder = load("tales-bert"), tmp_path_factory.mktemp("little")
    model = Transformer(replace(whole.config, layers=1, context=96))
    learned = {name: value[:96] if "positions" in name else value for name, value in whole.model.state_dict().items()}
    model.load_state_dict({name: learned[name] for name in model.state_dict()})
    replace(whole, model=model).save(folder)
    return library.offer(library.LoadOptions(folder, title="little"))


@pytest.mark.parametrize("form", ["tagged", "two texts", "answers"])
def test_own_rows_are_learned_and_the_wrong_ones_lead_to_walkthrough(
    form: str, little_bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sizing, "begin", lambda self, recipe: False)
    file = store_file(f"{form}.jsonl", "\n".join(map(json.dumps, rows_of(form))).encode())
    app = page(adapt="own-data", base=little_bert, data=file.parent.name).run()
    recipe = plan(app)
    assert recipe is not None and recipe.base == little_bert and not app.warning
    kinds = {"tagged": "token_classification", "two texts": "classification", "answers": "span"}
    assert recipe.objective.kind == kinds[form]
    assert find_size(recipe).left_out == 1
    app.run()
    context = recipe.batch.context
    said = f"Left out: 1 of 60 rows, with more tokens than the context of {context}: raise the context, or"
    assert any(one.value.replace("\\", "").startswith(said) for one in app.caption) and context < 128

    name = f"own {form}"
    folder = RunFolder(Path(budget.runs_folder) / name)
    slow = replace(recipe.optimiser, lr=1e-6)  # two steps teach it all otherwise
    quick = replace(recipe, schedule=replace(recipe.schedule, steps=2, warmup=1), optimiser=slow)
    list(train(quick, folder.path))
    measured = load(folder.checkpoint).card["measured"]
    shown = page(adapt="own-data", base=little_bert, data=file.parent.name, run=name)
    shown.session_state["before after"] = True
    shown.run()
    assert not shown.exception and not shown.warning
    marked = next(one.value for one in shown.markdown if one.value.startswith("**Held-out rows**"))
    for key in ("test_accuracy", "precision", "recall", "f1", "exact"):
        if key in measured:
            written = f"{measured[key]:.1%}" if key in ("test_accuracy", "exact") else f"{measured[key]:.4f}"
            assert written in marked, (key, marked)

    wrong = next(one.value for one in shown.dataframe if "walkthrough" in one.value)
    row = wrong.iloc[0]
    query = {key: value for key, (value,) in parse_qs(urlsplit(row["walkthrough"]).query).items()}
    first, second = {"answers": ("question", "context")}.get(form, ("text", "pair"))
    assert (query["text"], query.get("second")) == (row[first], row.get(second))
    checkpoint = load(folder.checkpoint)
    assert checkpoint.tokenizer is not None
    read = checkpoint.tokenizer.encode(query["text"], query.get("second"))
    logits = run(checkpoint.model, read)["logits"][0]
    if form == "answers":
        assert words(read, best_answer(logits, where_answers_stand(read, query["text"]))) == row["predicted"]
    elif form == "two texts":
        assert checkpoint.labels[int(logits.argmax())] == row["predicted"] != row["label"]
    else:
        assert row["predicted"] != row["tags"] and len(row["predicted"].split()) == len(row["tags"].split())
    walk = AppTest.from_file(APP, default_timeout=120).switch_page("pages/explore/walkthrough.py")
    for key, value in query.items():
        walk.query_params[key] = value
    walk.run()
    assert not walk.exception and query["model"] == f"run:{name}"
    assert {key: walk.session_state[key] for key in query} == query


def test_two_texts_lead_to_walkthrough_only_where_it_reads_the_same_tokens() -> None:
    two = walkthrough_link(load("tales-bert"), "mine", "Who sat?", "A cat.")
    assert two == "/walkthrough?model=run%3Amine&text=Who+sat%3F&second=A+cat."
    stories = load("stories")
    assert walkthrough_link(stories, "mine", "Who sat?", "A cat.") is None  # nothing stands between them in a GPT
    assert walkthrough_link(stories, "mine", "Who sat?") == "/walkthrough?model=run%3Amine&text=Who+sat%3F"


def test_own_conversations_are_learned_by_a_base_that_has_a_template(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sizing, "begin", lambda self, recipe: False)
    folder = save_talker(tmp_path / "base", TEMPLATES["chatml"])
    base = library.offer(library.LoadOptions(folder, title="talker"))
    rows = [{"messages": talk} for talk in TALKS]
    file = store_file("talks.jsonl", "\n".join(map(json.dumps, rows)).encode())
    app = page(adapt="own-data", base=base, data=file.parent.name).run()
    recipe = plan(app)
    assert recipe is not None and not app.warning and recipe.objective.kind == "conversation"
    assert recipe.data.table.messages == "messages" and find_size(recipe).left_out == 0
    name = "own talks"
    list(
        train(
            replace(recipe, schedule=replace(recipe.schedule, steps=2, warmup=1)),
            RunFolder(Path(budget.runs_folder) / name).path,
        )
    )
    shown = page(adapt="own-data", base=base, data=file.parent.name, run=name)
    shown.session_state["before after"] = True
    shown.run()
    assert not shown.exception and not shown.warning
    silent = page(adapt="own-data", base="stories", data=file.parent.name).run()
    assert plan(silent) is None and "base must have a chat template" in told(silent)
    bad = store_file("bad.jsonl", "\n".join(map(json.dumps, [*rows, {"messages": TALKS[0][:1]}])).encode())
    assert "row 5 must have a message of the assistant" in told(
        page(adapt="own-data", base=base, data=bad.parent.name).run()
    )
