"""The page Interventions without a browser: what a run is set against, what is said, and what cannot be shown."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import run
from engine.budget import budget
from engine.cli.main import main
from engine.compiled import find_answer_key
from engine.edits import ChangeToken, KeepParts, Patch
from engine.runtime import library
from engine.training.cluster.ray_kinds.pair_sweep import RayPairSweep
from pages.controls.train.user_data import store_file
from pages.controls.what_if.experiment_link import from_link
from views.interventions import pair_sets

APP = str(Path(__file__).parents[2] / "app.py")
TEXT = "Max gave the red ball to Anna. Anna gave the ball to"


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page("pages/analyse/interventions.py").run()
    assert not app.exception, app.exception
    return app


def id_of(token: str) -> str:
    return str(library.checkpoint("stories").tokenizer.ids(token, special=False)[0])


def told(app: AppTest) -> str:
    return "\n".join(one.value for kind in (app.markdown, app.caption, app.warning) for one in kind)


def test_a_swapped_token_is_followed_to_the_head_that_copies_it_and_into_compare() -> None:
    anna, tom = id_of(" Anna"), id_of(" Tom")
    app = opened(model="stories", text=TEXT, swapped="7", becomes="Tom", candidate=anna, against=tom)
    says = told(app)
    assert "The lead of “·Anna” over “·Tom” is **-" in says and "Below, each place of the other run takes, by" in says
    assert "Most of the residual stream: in front of block 4 at “·Tom”" in says
    assert "Most of the head output: block 4, head 4, **" in says
    assert "of 56 places both hold the same value (=)." in says
    link = next(one.value for one in app.markdown if one.value.startswith("[Compare with the run"))
    sides = parse_qs(link.partition("?")[2].rstrip(")").replace("\\", ""))
    made = [[type(entry.edit) for entry in from_link(sides[f"{side}_edits"][0])[0].entries] for side in "ab"]
    assert made == [[ChangeToken], [ChangeToken, Patch]]
    circuit = next(one.value for one in app.markdown if one.value.startswith("With "))
    compare, attention = re.findall(r"\[(?:Compare|Attention), alone\]\(\w+\?([^)]*)\)", circuit.replace("\\", ""))
    for link, name in ((compare, "b_edits"), (attention, "edits")):
        (kept,) = [entry.edit for entry in from_link(parse_qs(link)[name][0])[0].entries]
        assert isinstance(kept, KeepParts) and kept.how == "patch" and kept.kept["blocks.3.attn.z"] == [3]
    checkpoint = library.checkpoint("stories")
    logits = run(checkpoint.model, checkpoint.tokenizer.encode(TEXT), edits=[kept])["logits"][0, -1]
    assert f"alone the lead of “·Anna” over “·Tom” is **{float(logits[int(anna)] - logits[int(tom)]):.3f}**" in circuit
    heads = next(one.value for one in app.markdown if "[why it looks there]" in one.value)
    assert "block 4, head 4: [Attention](" in heads
    app.segmented_control(key="direction").set_value("break").run()
    assert not app.exception and "each place of this run takes, by itself" in told(app)
    app.segmented_control(key="other").set_value("zero").run()
    assert not app.exception and "Below, each place by itself is 0: by how much that changes" in told(app)
    app.segmented_control(key="other").set_value("mean").run()
    assert not app.exception and "is its mean over 16 texts" in told(app)
    app.segmented_control(key="other").set_value("drawn").run()
    assert not app.exception and "is what it is in 8 other texts, one at a time, in the mean" in told(app)
    app.segmented_control(key="metric").set_value("log-probability").run()
    assert not app.exception and "The log-probability of" in told(app)
    app.segmented_control(key="other").set_value("noise").run()
    assert not app.exception and "Most of the residual stream: in front of block" in told(app)
    app.segmented_control(key="reads").set_value("output").run()
    assert not app.exception and not app.warning


def test_another_text_may_be_of_another_length_but_for_patterns() -> None:
    app = opened(
        model="stories",
        text=TEXT,
        other="another text",
        other_text="Max gave the big red ball to Tom. Tom gave the ball to",
    )
    assert "Most of the residual stream" in told(app) and not app.warning
    app.segmented_control(key="value").set_value("pattern").run()
    assert "as many tokens for their pattern" in app.warning[0].value
    app = opened(model="stories", text=TEXT, other="another text", other_text=TEXT)
    assert "Both runs read the same" in app.warning[0].value


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("tales-bert", "in front of each sublayer, got after"),
        ("t5-tasks", "and this model has two"),
        ("digits-vit", ""),
        ("infill", ""),
        ("everyday", ""),
    ],
)
def test_every_kind_of_model_opens_and_says_which_charts_it_lacks(model: str, says: str) -> None:
    app = opened(model=model)
    assert "Most of the head output: block" in told(app) and bool(says) == bool(app.warning) and says in told(app)


def test_a_token_that_is_none_and_a_rank_are_told_in_a_sentence() -> None:
    app = opened(model="stories", text=TEXT, swapped="7", becomes="Anna")
    assert "“Anna” is the token that stands there" in app.warning[0].value
    app = opened(model="stories", text=TEXT, becomes="gobbledygook twice")
    assert app.warning and "token" in app.warning[0].value
    app = opened(model="stories", text=TEXT, metric="rank", swapped="7", becomes="Tom", candidate=id_of(" Tom"))
    assert "A rank goes by steps and has no gradient" in told(app)


def test_a_file_of_pairs_has_its_means_and_each_pair_behind_them() -> None:
    app = opened(model="stories", other="pairs")
    assert "Bring a file of pairs of prompts. Columns: clean, corrupted, answer, wrong" in app.warning[0].value
    lines = (
        "clean,corrupted,answer,wrong\nMax met Anna. Then Max gave the ball to,Max met Tom. Then Max gave the ball to,"
    )
    file = store_file("p.csv", f"{lines}Anna,Tom\nsame,same,a,b\n".encode())
    app = opened(model="stories", other="pairs", pairs=file.parent.name)
    assert "1 of 2 pairs of p.csv" in told(app) and "Row 2 is left out" in told(app)
    file = store_file("q.csv", b"clean,other\na,b\n")
    app = opened(model="stories", other="pairs", pairs=file.parent.name)
    assert "q.csv must have the columns clean, corrupted and answer" in app.warning[0].value


@pytest.fixture
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Writes what a recipe finds, and takes it as the page does."""
    lines = "clean,corrupted,answer\n" + "".join(
        f"Max gave the ball to {one}. Now the ball is with,Max gave the ball to Tom. Now the ball is with,{one}\n"
        for one in ("Anna", "Sara", "Tom")
    )
    (tmp_path / "pairs.csv").write_text(lines)

    def sweep(name: str = "found.parquet", **keys: str) -> str:
        said = {"model": "stories", "pairs": "pairs.csv", "out": name, **keys}
        (tmp_path / "s.toml").write_text("".join(f'{key} = "{value}"\n' for key, value in said.items()))
        assert main(["analyse", str(tmp_path / "s.toml")]) == 0
        return store_file(name, (tmp_path / name).read_bytes()).parent.name

    return sweep


def test_what_a_recipe_found_is_shown_without_being_measured_again(
    swept: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, counted = swept(site="q", metric="KL", direction="break"), []
    measure = pair_sets.sweep_pairs

    def count(*given: Any) -> Any:
        counted.append(given[1])
        return measure(*given)

    monkeypatch.setattr(pair_sets, "sweep_pairs", count)
    app = opened(model="stories", other="pairs", pairs=found)
    assert "2 of 3 pairs of found.parquet" in told(app) and "nothing was measured again" in told(app)
    assert "Row 3 is left out. Both runs read the same" in told(app) and not counted
    chosen = [app.segmented_control(key=key).value for key in ("metric", "direction", "value")]
    assert chosen == ["KL", "break", "q"] and len(app.get("vega_lite_chart")) == 2
    app.segmented_control(key="metric").set_value("logit").run()
    assert "2 of 3 pairs" in told(app) and "nothing was" not in told(app) and len(counted) == 3
    app.segmented_control(key="metric").set_value("KL").run()
    assert "nothing was measured again" in told(app) and len(counted) == 3

    app = opened(model="everyday", other="pairs", pairs=found)
    assert "got a sweep of stories with other weights" in app.warning[0].value and len(counted) == 3
    app.button(key="measure anew").click().run()
    assert not app.exception and "of 3 pairs of found.parquet" in told(app) and len(counted) == 6
    app = opened(model="stories", other="pairs", pairs=swept(site="stream"))
    assert "has effects of stream by pos" in told(app) and "2 of 3 pairs" in told(app) and len(counted) == 9
    app = opened(model="stories", other="pairs", pairs=swept("found.csv"))
    assert "2 of 2 pairs of found.csv" in told(app) and "nothing was" not in told(app)
    raw = b"PAR1" + bytes(99)
    app = opened(model="stories", other="pairs", pairs=store_file("x.parquet", raw).parent.name)
    assert "must be a Parquet file, got a damaged one" in app.warning[0].value


def test_pairs_wait_for_their_cluster_and_are_swept_here_where_that_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "ray_address", "http://head")
    monkeypatch.setattr(budget, "heavy", 0)
    monkeypatch.setattr(RayPairSweep, "_ask", lambda work: "waits for a node with 1 CPU")
    lines = "clean,corrupted,answer\n" + "Ben met Anna. Then Ben saw,Ben met Tom. Then Ben saw,Anna\n" * 9
    address = {"model": "stories", "other": "pairs", "pairs": store_file("ray.csv", lines.encode()).parent.name}
    app = opened(**address)
    assert app.caption[-1].value == "waits for a node with 1 CPU" and not app.get("vega_lite_chart")

    def give_up(work: RayPairSweep) -> str:
        raise ValueError("Ray does not answer; try again.")

    monkeypatch.setattr(RayPairSweep, "_ask", give_up)
    app = opened(**address)
    assert "9 of 9 pairs of ray.csv" in told(app) and "Ray does not answer" in app.warning[0].value
    assert len(app.get("vega_lite_chart")) == 2


def test_a_long_measurement_says_how_long_the_rest_takes_and_begins_once_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("QUICK", "KNOWN", "TOLD", "ASKED", "SLICE", "CACHED"):
        monkeypatch.setattr(f"pages.controls.share.measure.{name}", 1e-6)
    rows = "Max met Anna. Then Max saw,Max met Tom. Then Max saw,Anna\n" * 9
    file = store_file("p.csv", f"clean,corrupted,answer\n{rows}".encode())
    app = opened(model="stories", other="pairs", pairs=file.parent.name)
    assert [one.label for one in app.button if one.label in ("Stop", "Go on")] == ["Go on"]
    next(one for one in app.button if one.label == "Go on").click().run()
    while [one for one in app.button if one.label == "Stop"]:
        app.run()
    assert "9 of 9 pairs of p.csv" in told(app)


def test_an_own_program_becomes_a_model_with_its_key() -> None:
    app = opened(model="compiled-histogram", text="a b a")
    app.session_state["own program open"] = True
    app.run()
    assert app.text_area(key="own program").value.startswith("tokens: a b c d\nlongest: 7")
    app.selectbox(key="own program begun").set_value("brackets").run()
    assert "all 8,190 texts" in told(app)
    app.text_area(key="own program").set_value("tokens: a b\nlongest: 3\nsees: causal\nx = is_even(x)").run()
    assert "reads x, which no line before it makes" in told(app)
    assert app.button(key="own program make").disabled
    app.text_area(key="own program").set_value("tokens: a b\nlongest: 3\nsees: causal\nx = is_even(positions)").run()
    app.button(key="own program make").click().run()
    assert not app.exception, app.exception
    (name,) = {parse_qs(one.proto.query_string)["model"][0] for one in app.get("page_link")
               if "model=program" in one.proto.query_string}  # fmt: skip
    made = library.checkpoint(name)
    key = find_answer_key(made)
    assert key is not None and [line.text for line in key.lines] == ["x = is_even(positions)"]
    assert made.model(torch.tensor([made.tokenizer.ids("a b a")])).argmax(-1).shape == (1, 4)
    shown = told(opened(model=name, text="a b a")).replace("\\", "")
    assert "x = is_even(positions): block 1, MLP" in shown and "One token must change what is predicted" in shown
