"""Adapt's third way: answers are ranked, a reward model is read, and a policy is planned and compared with its base."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.budget import budget
from engine.runtime import library
from engine.training import Recipe, read_recipe, train
from engine.training.launch.sizing import Sizing
from engine.training.policy.judge import rewards_of, running_rewards
from engine.training.policy.pairs import PreferencePair, read_pairs
from engine.training.policy.rules.happy_words import happy_words
from engine.training.recipe.recipe import Log, Machine, Schedule
from engine.training.run.control import read_order
from engine.training.run.folder import RunFolder
from engine.training.run.status import Status, write_status
from pages.controls.train import laboratory, rank
from pages.controls.train.preferences import FOLDER
from pages.controls.train.rank import Ranking, keep_ranking, read_ranking
from pages.controls.train.rewards import TEXT, judge_held_out, paint, worst_pairs
from pages.controls.train.session import Session
from tests.pages.mounted import record
from views.core.markdown import escape_markdown

APP = str(Path(__file__).parents[2] / "app.py")
QUESTIONS = tuple((f"Prompt {n}.", f" sad {n}", f" happy {n}") for n in range(5))


@pytest.fixture(autouse=True)
def ranking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A person at this machine who has ranked nothing; no recipe is tried out in the background."""
    monkeypatch.setattr(rank, "owner_name", lambda: "c" * 32)
    monkeypatch.setattr(laboratory, "on_this_machine", lambda: True)
    monkeypatch.setattr(Sizing, "begin", lambda self, recipe: False)
    rank.ranking_file().unlink(missing_ok=True)
    yield
    rank.ranking_file().unlink(missing_ok=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two updates of a reward model and of DPO, on a quarter of the shipped pairs."""
    few = tmp_path_factory.mktemp("pairs") / "few.jsonl"
    for kind in ("reward", "dpo"):
        recipe = read_recipe(FOLDER / f"{kind}.toml")
        rows = Path(recipe.data.table.path).read_text(encoding="utf-8").splitlines()[::4]
        few.write_text("\n".join(rows), encoding="utf-8")
        data = replace(recipe.data, table=replace(recipe.data.table, path=str(few)))
        short = replace(
            recipe, data=data, schedule=Schedule(2), log=Log(1, 1, 99, 2, 1), batch=replace(recipe.batch, size=4),
            machine=Machine("cpu", threads=1), preference=replace(recipe.preference, answer_tokens=4),
        )  # fmt: skip
        list(train(short, Path(budget.runs_folder) / f"short {kind}"))
    yield Path(budget.runs_folder)


def page(stage: str, **query: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=120).switch_page("pages/train/adapt.py")
    for name, value in {"way": "Preferences", "stage": stage, **query}.items():
        app.query_params[name] = value
    return app


def plan(app: AppTest) -> Recipe | None:
    assert not app.exception, app.exception
    found: Recipe | None = record(app, Session).plan
    return found


def told(app: AppTest) -> str:
    assert not app.exception, app.exception
    return " ".join(one.value for one in [*app.warning, *app.caption, *app.markdown]).replace("\\", "")


def test_answers_are_drawn_chosen_skipped_and_undone_and_a_reload_loses_nothing() -> None:
    app = page("Rank").run()
    app.number_input(key="rank tokens").set_value(16)
    app.button(key="draw answers").click().run()
    told(app)
    (first, *_), count = read_ranking().questions, len(read_ranking().questions)
    assert 5 < count <= 20 and read_ranking().drawn == 20
    app.button(key="choose 2").click().run()
    assert read_ranking().all_pairs == (PreferencePair(first[0], first[2], first[1]),)
    app.button(key="skip").click().run()
    assert len(read_ranking().all_pairs) == 1 and len(read_ranking().choices) == 2
    app.button(key="undo").click().run()
    app.button(key="undo").click().run()
    app.button(key="choose 1").click().run()
    again = page("Rank").run()  # another session of the same visitor
    assert read_ranking().all_pairs == (PreferencePair(*first),) and as_shown(again) == f"2 of {count}"
    again.button(key="rank by rule").click().run()
    by_rule = read_ranking().all_pairs[1:]
    assert by_rule and not read_ranking().rest
    assert all(happy_words(one.prompt, one.chosen) > happy_words(one.prompt, one.rejected) for one in by_rule)


def as_shown(app: AppTest) -> str:
    (bar,) = app.get("progress")
    return str(bar.proto.text).partition(".")[0]


def test_equal_and_empty_answers_are_not_asked_of() -> None:
    asked = Ranking().ask(["a", "b", "c"], [("x", "x"), (" ", "y"), ("x", "y")])
    assert asked.questions == (("c", "x", "y"),) and asked.drawn == 3


def test_a_ranking_is_that_of_one_visitor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank, "owner_name", lambda: "a" * 32)
    keep_ranking(Ranking(questions=QUESTIONS).choose(1))
    assert len(read_ranking().all_pairs) == 1
    monkeypatch.setattr(rank, "owner_name", lambda: "b" * 32)
    assert read_ranking() == Ranking()


def test_pairs_are_uploaded_or_it_is_said_what_is_wrong_and_cleared_after_asking() -> None:
    app = page("Rank").run()

    def upload(rows: str) -> None:
        (box,) = (one for one in app.file_uploader if str(one.key).startswith("pairs file"))
        box.set_value(("mine.csv", f"prompt,chosen,rejected\n{rows}\n".encode(), "text/csv")).run()

    upload("a,same,same")
    assert "row 1 must have two different answers" in told(app) and not read_ranking().all_pairs
    upload("a,,b")
    assert "row 1" in told(app) and not read_ranking().all_pairs
    upload("a,good,bad")
    assert read_ranking().all_pairs == (PreferencePair("a", "good", "bad"),) and not app.warning
    upload("a,good,bad")
    assert "1 of the 1 pair" in told(app) and len(read_ranking().all_pairs) == 1
    app.button(key="clear pairs").click().run()
    assert read_ranking() == Ranking()


def test_pairs_of_ones_own_are_what_is_learned_from_and_four_are_needed() -> None:
    keep_ranking(Ranking(questions=QUESTIONS).choose(1, 1, 0))
    app = page("Reward", pairs="mine").run()
    assert plan(app) is None and "at least 4 to learn from, got 3" in told(app)
    keep_ranking(read_ranking().choose(1))
    app.run()
    recipe = plan(app)
    assert recipe is not None and recipe.objective.kind == "reward" and recipe.model.head.classes == 1
    assert read_pairs(recipe.data.table.path) == read_ranking().all_pairs
    app.session_state["recipe open"] = True
    app.run()
    assert str(budget.runs_folder) not in " ".join(str(one.value) for one in [*app.text_area, *app.text_input])
    assert not any("runs" in value for values in app.query_params.values() for value in values)


@pytest.mark.parametrize("kind", ["dpo", "ppo", "grpo"])
def test_a_policy_is_planned_as_its_recipe_and_as_the_controls_say(kind: str) -> None:
    app = page("Policy", learner=kind.upper()).run()
    recipe, shipped = plan(app), read_recipe(FOLDER / f"{kind}.toml")
    assert recipe == shipped and not app.warning
    app.number_input(key=f"beta {kind} {shipped.preference.beta}").set_value(0.3)
    app.number_input(key=f"answer tokens {kind}").set_value(12)
    if kind != "dpo":
        app.selectbox(key="judge").set_value("shorter_than")
        app.selectbox(key=f"answers {kind}").select(4)
    app.run()
    changed = replace(shipped.preference, beta=0.3, answer_tokens=12)
    if kind != "dpo":
        changed = replace(changed, reward="shorter_than", answers=4)
    recipe = plan(app)
    assert recipe is not None and recipe.preference == changed


def test_a_base_that_cannot_write_and_a_reward_model_of_other_tokens_are_refused(runs: Path) -> None:
    app = page("Policy", learner="GRPO", base="tales-bert").run()
    assert plan(app) is None and "model.attention.mask" in told(app)
    app = page("Policy", learner="GRPO", base="everyday", judge="run:short reward").run()
    assert plan(app) is None and "has another vocabulary" in told(app)
    app = page("Policy", learner="GRPO", judge="run:short reward").run()
    recipe = plan(app)
    assert recipe is not None and recipe.preference.reward == "run:short reward"


def test_what_the_reward_model_says_is_what_the_engine_computes(runs: Path) -> None:
    app = page("Reward", run="short reward")
    app.session_state["before after"] = True  # as a click leaves it
    app.run()
    assert not app.warning
    checkpoint = library.checkpoint("run:short reward")
    last = RunFolder(runs / "short reward").read_metrics()[-1]
    file = library.run_weights("run:short reward")
    assert file is not None
    table, scores = judge_held_out(runs / "short reward" / "recipe.toml", file, 0)
    assert scores["accuracy"] == pytest.approx(last["held_out_accuracy"], abs=1e-6)
    assert scores["margin"] == pytest.approx(last["also"]["held_out_margin"], abs=1e-4)
    assert f"in {scores['accuracy']:.1%} of {len(table)}" in told(app) and f"{scores['margin']:+.4f}" in told(app)
    assert checkpoint.tokenizer is not None
    table = worst_pairs(table)
    shown = app.table[0].value
    assert shown["chosen"].tolist() == [escape_markdown(text) for text in table["chosen"]]
    assert shown["reward of rejected"].tolist() == table["reward of rejected"].tolist()
    row = table.iloc[0]
    for name in ("chosen", "rejected"):
        ids = checkpoint.tokenizer.encode(row["prompt"]).ids + checkpoint.tokenizer.encode(row[name]).ids
        found = rewards_of(checkpoint.model, torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.bool))
        assert float(found) == pytest.approx(row[f"reward of {name}"], abs=1e-5)
    beyond = table["reward of rejected"] - table["reward of chosen"]
    assert (beyond > 0).all() and beyond.is_monotonic_decreasing
    painted = paint(file, 0, TEXT)
    whole = torch.tensor(checkpoint.tokenizer.encode(TEXT).ids)
    assert painted["reward"].tolist() == pytest.approx(running_rewards(checkpoint.model, whole).tolist())


def test_answers_before_and_now_are_those_of_the_run_and_before_and_after_is_drawn(runs: Path) -> None:
    app = page("Policy", run="short dpo")
    app.session_state["before after"] = True  # as a click leaves it
    app.run()
    assert not app.exception and not app.warning
    samples = RunFolder(runs / "short dpo").read_samples()
    table: pd.DataFrame = next(one.value for one in app.table)
    for when, line in (("before", samples[0]), ("now", samples[-1])):
        for name in ("answer", "kl", "watched"):
            said = [escape_markdown(one[name]) if name == "answer" else one[name] for one in line["samples"]]
            assert table[f"{name} {when}"].tolist() == said


def test_beta_of_a_running_policy_is_a_slider_that_it_follows(runs: Path) -> None:
    run = RunFolder(runs / "steered")
    run.path.mkdir()
    run.recipe.write_bytes((runs / "short dpo" / "recipe.toml").read_bytes())
    write_status(run.status, Status("paused", 1, 2))
    app = page("Policy", run="steered").run()
    (slider,) = (one for one in app.slider if one.label.startswith("β of this run"))
    assert slider.value == 0.1
    slider.set_value(0.4).run()
    assert read_order(run.control).weight == 0.4
