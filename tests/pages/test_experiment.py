"""What if, without a browser: from the panel's request to the run that is drawn, its link, and what does not fit."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.budget import budget
from engine.edits import (
    AttentionTemperature,
    ChangeToken,
    Edit,
    PaintMask,
    PaintPattern,
    Patch,
    Replace,
    Scale,
    SilenceHeads,
    Source,
)
from engine.edits.experiment import Experiment
from engine.inputs.readers import read_text, read_translation
from engine.runtime import library
from engine.runtime.run import run
from pages.controls.model_input.model_input import Subject
from pages.controls.what_if import experiment as what_if
from pages.controls.what_if.experiment import EditTrial
from pages.controls.what_if.experiment_link import (
    BROKEN,
    PAINTED,
    PICTURED,
    from_link,
    linkable,
    to_link,
    unlinkable_sentence,
)
from tests.pages.mounted import mounted, record, try_edits
from views.core.lanes import digest, lanes
from views.core.payload import Named, unpack
from views.core.questions import Page
from views.core.run_context import RunContext
from views.what_if.questions import WHAT_IF

ROOT = Path(__file__).parents[2]
WALKTHROUGH, ATTENTION = "pages/explore/walkthrough.py", "pages/explore/attention.py"
QUIET = SilenceHeads(2, [1])


def made(*edits: Edit) -> Experiment:
    experiment = Experiment()
    for edit in edits:
        experiment = experiment.add(edit)
    return experiment


def opened(page: str = WALKTHROUGH, address: dict[str, str] | None = None, **state: Any) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in (address or {}).items():
        app.query_params[name] = value
    for name, value in state.items():
        if isinstance(value, str):
            app.query_params[name] = value
        elif isinstance(value, Experiment):
            try_edits(app, value)
        else:
            app.session_state[name] = value
    return app.switch_page(page).run()


def sent(app: AppTest, name: str) -> tuple[dict, dict[str, Named]]:
    assert not app.exception, app.exception
    (found, *_) = mounted(app, name)
    return unpack(found.bytes)


def link(app: AppTest) -> str:
    found = app.query_params["edits"]
    return found if isinstance(found, str) else found[0]


@pytest.mark.parametrize(("page", "name"), [(WALKTHROUGH, "walkthrough"), (ATTENTION, "attention")])
def test_without_edits_a_page_draws_the_model_as_it_is_and_the_panel_rests(page: str, name: str) -> None:
    app = opened(page)
    assert sent(app, name)[0]["edited"] == [] and sent(app, "effects")[0]["trace"] is None
    panel, _ = sent(app, "experiment")
    assert panel["entries"] == [] and not panel["undo"] and not panel["redo"] and "edits" not in app.query_params


@pytest.mark.parametrize(("page", "name"), [(WALKTHROUGH, "walkthrough"), (ATTENTION, "attention")])
def test_a_page_draws_the_edited_run_and_its_address_finds_it_again(page: str, name: str) -> None:
    app = opened(page, experiment=made(QUIET))
    header, arrays = sent(app, name)
    trace = run(library.checkpoint("stories").model, header["lanes"][""]["ids"], edits=[QUIET])
    assert torch.equal(torch.tensor(arrays["blocks.3.attn.pattern"].data), trace["blocks.3.attn.pattern"][0])
    assert header["edited"] == ["blocks.2.attn.z"]
    again = opened(page, {"edits": link(app)})
    assert sent(again, name)[0]["trace"] == header["trace"]
    assert sent(again, "experiment")[0]["entries"][0]["words"] == "block 3, head 2: silenced"


def test_edits_go_along_from_page_to_page_and_leave_the_address_with_the_last_of_them() -> None:
    app = opened(experiment=made(QUIET))
    app.switch_page(ATTENTION).run()
    assert sent(app, "attention")[0]["edited"] == ["blocks.2.attn.z"] and "edits" in app.query_params
    try_edits(app, record(app, EditTrial).experiment.remove(0))
    app.run()
    assert sent(app, "attention")[0]["edited"] == [] and "edits" not in app.query_params
    assert sent(app, "experiment")[0]["undo"]


def test_both_runs_that_are_compared_have_the_pages_own_attention_temperature() -> None:
    app = opened(ATTENTION, experiment=made(QUIET))
    app.slider(key="attention").set_value(2.0).run()
    header, arrays = sent(app, "effects")
    ids, model = sent(app, "attention")[0]["lanes"][""]["ids"], library.checkpoint("stories").model
    before = run(model, ids, edits=[AttentionTemperature(2.0)])["logits"][0, -1]
    after = run(model, ids, edits=[AttentionTemperature(2.0), QUIET])["logits"][0, -1]
    candidates = arrays["shift.id"].data[-1].tolist()
    expected = torch.stack([before[candidates], after[candidates]], -1)
    torch.testing.assert_close(torch.tensor(arrays["shift.logit"].data[-1]), expected, rtol=1e-5, atol=1e-5)
    assert header["took"]["start"] == 2


def test_an_edit_that_does_not_fit_stays_off_with_its_sentence_and_the_others_are_made() -> None:
    app = opened(experiment=made(PaintMask(rows=[200], layer=0), QUIET, Scale("blocks.9.mlp.out", 0.0)))
    entries = sent(app, "experiment")[0]["entries"]
    assert "rows 0..13, got 200" in entries[0]["sentence"] and "blocks.9.mlp.out" in entries[2]["sentence"]
    assert entries[0]["on"] and not entries[1]["sentence"]
    assert sent(app, "walkthrough")[0]["edited"] == ["blocks.2.attn.z"]
    app.text_input(key="text").set_value("Max gave the red ball to Anna. " * 30).run()
    entries = sent(app, "experiment")[0]["entries"]
    assert not entries[0]["sentence"] and entries[2]["sentence"]  # where it fits again it is on again


@pytest.mark.parametrize("model", ["tales-bert", "translate-en-fr", "infill", "digits-vit", "digits-imagegpt"])
@pytest.mark.parametrize("page", [WALKTHROUGH, ATTENTION])
def test_every_kind_of_model_can_be_edited(model: str, page: str) -> None:
    app = opened(page, {"model": model}, experiment=made(AttentionTemperature(2.0)))
    header, _ = sent(app, "effects")
    assert header["trace"] and header["head"] is not None and header["took"]["start"] == 0
    assert not any(entry["sentence"] for entry in sent(app, "experiment")[0]["entries"])


def test_a_broken_link_is_a_sentence_and_the_page_and_its_address_stay() -> None:
    app = opened(address={"edits": "not a link", "text": "the cat"})
    panel, _ = sent(app, "experiment")
    assert panel["broken"] == [BROKEN] and link(app) == "not a link"
    assert sent(app, "walkthrough")[0]["edited"] == [] and app.text_input(key="text").value == "the cat"


def test_of_a_link_with_one_broken_edit_the_others_are_restored() -> None:
    quiet, cold = '{"edit":"SilenceHeads","layer":2,"heads":[1]}', '{"edit":"AttentionTemperature","value":0}'
    experiment, sentences = from_link(f'[{quiet},{{"edit":"Silence"}},{cold}]')
    assert experiment == made(QUIET) and len(sentences) == 2
    assert "edit 2" in sentences[0] and "above 0" in sentences[1]


def test_links_are_short_survive_and_are_never_opened_without_end() -> None:
    experiment = made(QUIET, PaintMask(cells=[[5, 2], [6, 2]], layer=0), AttentionTemperature(2.0)).switch(1, False)
    short = to_link(experiment)
    assert from_link(short) == (experiment, []) and len(short) < 200
    assert short.replace("-", "").replace("_", "").isalnum()
    heavy = to_link(made(PaintMask(rows=[1] * 150_000)))
    assert len(heavy) < 1000 and from_link(heavy) == (Experiment(), [BROKEN])
    for wrong in ("", "[", "{}", "AAAA", "[1]", short[:-4], "é"):
        found, sentences = from_link(wrong)
        assert found == Experiment() and len(sentences) == 1, wrong


def test_a_link_brings_only_so_many_edits_and_says_how_many_it_had() -> None:
    many = [{"edit": "AttentionTemperature", "value": 1 + number} for number in range(budget.max_edits + 7)]
    found, sentences = from_link(json.dumps(many))
    assert len(found.entries) == budget.max_edits and f"has {budget.max_edits + 7} edits" in "".join(sentences)
    found, sentences = from_link(json.dumps([{"edit": "X"}] * 20))
    assert found == Experiment() and len(sentences) == 4 and sentences[-1].startswith("17 more")
    assert from_link(json.dumps([{"edit": "Scale", "hook": "x" * 300_000, "factor": 1}])) == (Experiment(), [BROKEN])
    _, (sentence,) = from_link(json.dumps([{"edit": "SilenceHeads", "layer": 0, "heads": "x" * 199}]))
    assert len(sentence) < 400


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (Scale("blocks.0.resid_post", 1e38), "values overflow at blocks.0.resid_post"),
        (Scale("logits", 1e38), "values overflow at logits"),
        (Replace("blocks.0.mlp.out", [{"a": 1}]), "must be a number or even lists of them, got [{'a': 1}]"),
        (Replace("blocks.0.mlp.out", [[1], [1, 2]]), "must be a number or even lists of them, got [[1], [1, 2]]"),
        (SilenceHeads(0, []), "must be one or more of 0..3, got none"),
    ],
)
def test_an_edit_that_no_run_can_bear_is_off_and_the_page_stands(edit: Edit, why: str) -> None:
    app = opened(experiment=made(edit, QUIET))
    first, second = sent(app, "experiment")[0]["entries"]
    assert why in first["sentence"] and not second["sentence"]
    assert sent(app, "walkthrough")[0]["edited"] == ["blocks.2.attn.z"]


def test_what_a_link_lost_is_said_as_text_and_only_the_first_of_it() -> None:
    app = opened(address={"hide": ",".join(["![x](http://a.example/b)", *map(str, range(30))])})
    (said,) = [info.value for info in app.info]
    assert r"!\[x\]\(http\:" in said and "http://" not in said.replace("\\", "")
    assert "and 26 more" in said


def test_what_the_panel_asks_changes_the_experiment() -> None:
    one, carry_out = made(QUIET), what_if.EDITS_OF_PAGE.carry_out
    assert carry_out(one, {"do": "switch", "number": 0, "on": False}).edits == ()
    assert carry_out(one, {"do": "all", "on": False}).edits == ()
    assert carry_out(one, {"do": "remove", "number": 0}) == Experiment()
    assert carry_out(one, {"do": "clear"}) == Experiment()
    assert carry_out(carry_out(one, {"do": "undo"}), {"do": "redo"}) == one
    for wrong in ({}, {"do": "add", "edit": "x"}, {"do": "remove", "number": 7}, {"do": "switch", "number": "0"}):
        with pytest.raises(ValueError, match=r"Reload and try again|counted from 0"):
            carry_out(one, wrong)


def test_what_cannot_be_written_under_edits_is_a_sentence() -> None:
    checkpoint = library.checkpoint("translate-en-fr")
    reading = read_translation(checkpoint, "The dog sees a small cat.", "", 24)
    before = run(checkpoint.model, reading.read, target=reading.target)
    late = Scale("decoder.blocks.0.resid_post", 2.0, {"pos": 3})
    after = run(checkpoint.model, reading.read, target=reading.target, edits=[late])
    stacks = lanes(checkpoint, reading)
    runs = [RunContext("translate-en-fr", checkpoint, trace, stacks) for trace in (before, after)]
    conducted = what_if.edits_context(Subject("translate-en-fr", checkpoint, reading, 24), *runs)
    asked = {"ask": "edit_continuation", "trace": digest("translate-en-fr", after)}
    page = Page((WHAT_IF, conducted))
    with pytest.raises(ValueError, match="wrote itself"):
        page.answer(asked)
    with pytest.raises(ValueError, match="have changed since"):
        page.answer(asked | {"trace": "another"})
    for wrong in ({"ask": "edit_shift", "row": "3"}, {"ask": "edit_shift", "row": 99}, {"ask": "edit_all"}):
        with pytest.raises(ValueError, match=r"must be|Unknown request"):
            page.answer(asked | wrong)


def test_an_edit_is_painted_on_the_run_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = library.checkpoint("stories")
    reading = read_text(checkpoint, "Max gave the red ball to Anna.", 24)
    painted = PaintPattern(1, [[6, 2]], [0.5], [0])
    experiment = made(SilenceHeads(0, [1]), painted)
    monkeypatch.setattr(what_if, "current", lambda: experiment)
    before = library.traces.trace("stories", reading.read, [])
    after = library.traces.trace("stories", reading.read, experiment.edits)
    stacks = lanes(checkpoint, reading)
    runs = [RunContext("stories", checkpoint, trace, stacks) for trace in (before, after)]
    conducted = what_if.edits_context(Subject("stories", checkpoint, reading, 24), *runs)
    asked = {"ask": "edit_ground", "focus": "attn", "side": "", "layer": 1, "head": 0}
    asked["trace"] = digest("stories", after)
    for without, edits in ((1, [SilenceHeads(0, [1])]), (0, [painted]), (None, experiment.edits)):
        found = unpack(Page((WHAT_IF, conducted)).answer(asked | {"without": without}))[1]["pattern"].data
        expected = run(checkpoint.model, reading.read, edits=edits)["blocks.1.attn.pattern"][0, 0]
        torch.testing.assert_close(torch.tensor(found), expected)


def test_edits_that_no_address_can_hold_are_said_to_be_lost_with_a_reload() -> None:
    heavy = made(PaintMask(cells=[[row, key] for row in range(14) for key in range(14)] * 200, layer=0))
    assert not linkable(heavy) and from_link(to_link(heavy)) == (Experiment(), [BROKEN])
    app = opened(experiment=heavy)
    panel, _ = sent(app, "experiment")
    assert panel["broken"] == [unlinkable_sentence(heavy)] and unlinkable_sentence(heavy).endswith(PAINTED)
    assert "edits" not in app.query_params and panel["entries"][0]["on"]


def test_of_a_picture_that_is_too_large_for_an_address_no_fewer_cells_are_advised() -> None:
    pixels = torch.rand(3, 96, 96, generator=torch.Generator().manual_seed(0)).tolist()
    patch = Patch("blocks.0.resid_post", Source(pixels=pixels, name="your own picture"))
    heavy = made(patch, PaintMask(cells=[[1, 0]], layer=0))
    assert not linkable(heavy)
    assert unlinkable_sentence(heavy).endswith(PICTURED) and PAINTED not in unlinkable_sentence(heavy)


def test_while_guesses_are_asked_the_page_shows_the_run_before_the_edits() -> None:
    app = opened(ATTENTION, {"predict": "edits"}, experiment=made(QUIET))
    header, _ = sent(app, "effects")
    assert header["hidden"] and sent(app, "attention")[0]["edited"] == []
    app.query_params["revealed"] = header["trace"]
    app.run()
    assert not sent(app, "effects")[0]["hidden"] and sent(app, "attention")[0]["edited"] == ["blocks.2.attn.z"]


def test_what_an_edit_does_at_its_place_leads_to_the_same_at_every_place() -> None:
    checkpoint = library.checkpoint("stories")
    other = Source(list(checkpoint.tokenizer.encode("Anna gave the ball to Max.").ids))
    tom = checkpoint.tokenizer.ids(" Tom", special=False)[0]
    edits = [QUIET, ChangeToken(3, tom), Patch("blocks.1.resid_pre", other), Scale("blocks.0.mlp.out", 0.5)]
    app = opened(experiment=made(*edits))
    silence, token, patch, scale = unpack(mounted(app, "experiment")[0].bytes)[0]["everywhere"]
    assert (silence["other"], token["other"], token["becomes"], scale) == ("zero", "token", "Tom", {})
    assert (patch["other_text"], patch["direction"]) == ("Anna gave the ball to Max.", "break")
    assert [type(entry.edit) for entry in from_link(token["edits"])[0].entries] == [SilenceHeads, Patch, Scale]
    app = opened("pages/analyse/interventions.py", {"model": "stories", **patch})
    assert any("each place of this run takes" in one.value for one in app.markdown)
