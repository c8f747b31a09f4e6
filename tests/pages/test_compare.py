"""The page about comparisons without a browser: what its sides are, and what reaches the view."""

import io
import json
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from PIL import Image
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner

from engine.budget import budget
from engine.checkpoints import load
from engine.compiled.programs import compiled_programs
from engine.edits import SilenceHeads
from engine.edits.experiment import Experiment
from engine.inputs.readers import read_pixels
from engine.runtime import library
from engine.runtime.run import run
from pages.controls.compare.defaults import Sides, link_sides, values_of_example
from pages.controls.model_input.model_input import EXAMPLES
from pages.controls.what_if.experiment import EditTrial
from tests.pages.mounted import mounted, read_markdown, record
from tests.shipped import COMPILED
from views.core.payload import Named, unpack

ROOT = Path(__file__).parents[2]
COMPARE, WALKTHROUGH = "pages/explore/compare.py", "pages/explore/walkthrough.py"
SILENT = json.dumps([{"edit": "SilenceHeads", "layer": 3, "heads": [3]}])


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    return app.switch_page(COMPARE).run()


def view(app: AppTest) -> tuple[dict, dict[str, Named]]:
    assert not app.exception, app.exception
    (found, *_) = mounted(app, "compare")
    return unpack(found.bytes)


def texts(app: AppTest) -> list[str]:
    return [app.text_input(key=f"{letter}_text").value for letter in "ab"]


def test_the_texts_of_a_compiled_model_differ_in_one_token_and_in_the_last_answer() -> None:
    for name in COMPILED:
        checkpoint, program = library.checkpoint(name), compiled_programs()[name.partition("-")[2].replace("-", "_")]
        answers, read = [], [checkpoint.tokenizer.encode(values_of_example(name, two)["text"]) for two in (False, True)]
        assert sum(one != other for one, other in zip(read[0].ids, read[1].ids, strict=True)) == 1, name
        for encoding in read:
            assert len(encoding.ids) == checkpoint.config.context
            answers.append(program.answer(encoding.pieces[1:])[-1])
            best = run(checkpoint.model, encoding)["logits"][0, -1].argmax().item()
            assert checkpoint.tokenizer.piece(best) == answers[-1]
        assert answers[0] != answers[1], name


def test_it_opens_on_one_model_and_two_texts_and_both_runs_are_the_engines() -> None:
    app = opened()
    header, arrays = view(app)
    assert [side["title"] for side in header["sides"]] == ["stories", "stories"]
    model = library.checkpoint("stories").model
    for side in header["sides"]:
        trace = run(model, side["lanes"][""]["ids"])
        for layer in range(4):
            sent = arrays[f"{side['letter']}/blocks.{layer}.attn.pattern"].data
            assert torch.equal(torch.tensor(sent), trace[f"blocks.{layer}.attn.pattern"][0])
    first, second = texts(app)
    assert sorted(first.split()) != sorted(second.split()) or first != second


def test_a_side_whose_text_is_emptied_keeps_its_picture() -> None:
    app = opened(a_model="stories", b_model="stories", a_text="the dog", b_text="the cat sat")
    before = view(app)[0]
    app.text_input(key="b_text").set_value("").run()
    assert [one.value for one in app.info] == ["B has no text. Still showing its previous one."]
    after = view(app)[0]
    assert after["sides"] == before["sides"] and after["take"]["link"]["b_text"] == "the cat sat"
    app.text_input(key="b_text").set_value("a dog").run()
    assert not app.info and view(app)[0]["sides"] != before["sides"]


def test_a_sides_text_may_have_several_lines_and_the_browser_is_told_of_them() -> None:
    app = opened(a_model="stories", b_model="stories", a_text="the dog\nthe cat", b_text="the dog")
    (areas,) = mounted(app, "text_lines")
    assert unpack(areas.bytes)[0]["fields"] == {"a_text": "the dog\nthe cat", "b_text": ""}
    assert "\\n" in view(app)[0]["sides"][0]["lanes"][""]["pieces"]


def test_sides_can_be_swapped_and_copied_and_one_more_added_and_removed() -> None:
    app = opened()
    first, second = texts(app)
    app.button(key="swap").click().run()
    assert texts(app) == [second, first]
    app.button(key="copy").click().run()
    assert texts(app) == [second, second] and view(app)[0]["pairs"]["B"]["same"]
    app.button(key="more").click().run()
    assert [side["letter"] for side in view(app)[0]["sides"]] == ["A", "B", "C"]
    app.button(key="remove C").click().run()
    assert [side["letter"] for side in view(app)[0]["sides"]] == ["A", "B"]


def test_the_address_says_models_texts_and_edits_of_every_side() -> None:
    third = {"c_model": "stories", "c_text": "A cat", "c_edits": SILENT}
    app = opened(a_text="The dog sat", b_model="induction", b_text="1 2 1 2", **third)
    header, _ = view(app)
    assert [side["title"] for side in header["sides"]] == ["stories", "induction", "stories"]
    assert texts(app) == ["The dog sat", "1 2 1 2"] and app.text_input(key="c_text").value == "A cat"
    assert header["sides"][2]["edits"] == 1 and header["sides"][2]["silenced"][0]["heads"] == [3]


def test_the_run_of_a_side_opens_on_another_page_by_its_address() -> None:
    header, _ = view(opened(b_model="stories", b_text="Lily was sad", b_edits=SILENT))
    for side in header["sides"]:
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for name, text in header["addresses"][side["letter"]].items():
            app.query_params[name] = text
        (found, *_) = mounted(app.switch_page(WALKTHROUGH).run(), "walkthrough")
        assert unpack(found.bytes)[0]["trace"] == side["trace"]


def test_an_edit_changes_one_side_alone() -> None:
    header, arrays = view(opened(a_text="The dog sat on the mat", b_text="The dog sat on the mat", b_edits=SILENT))
    model, ids = library.checkpoint("stories").model, header["sides"][0]["lanes"][""]["ids"]
    logits = [run(model, ids, edits=edits)["logits"][0, -1].softmax(-1) for edits in ([], [SilenceHeads(3, [3])])]
    chosen = torch.tensor(arrays["B:says.ids"].data[-1]).long()
    for name, expected in (("first", logits[0]), ("second", logits[1])):
        said = torch.tensor(arrays[f"B:says.{name}"].data[-1])
        torch.testing.assert_close(said, expected[chosen], atol=1e-6, rtol=1e-4)
    assert not arrays["B:attn.change"].data.any()  # a head's z is silent, no pattern changed


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ("no list", "could not be read"),
        ("[", "could not be read"),
        ('[{"edit": "SilenceHeads", "layer": 99, "heads": [0]}]', "does not fit"),
        ('[{"edit": "Nonsense"}]', "could not be read"),
    ],
)
def test_edits_that_make_no_sense_are_a_sentence_and_the_rest_is_compared(edits: str, said: str) -> None:
    header, _ = view(opened(b_edits=edits))
    assert said in header["sides"][1]["notice"] and header["sides"][1]["edits"] == 0


def test_a_model_that_is_not_here_is_a_sentence() -> None:
    app = opened(b_model="nothing")
    assert "no model called “nothing”" in app.warning[0].value
    assert view(app)[0]["sides"][1]["title"] == "stories"


def test_another_model_reads_the_same_text_where_it_can() -> None:
    app = opened(a_text="Max has a ball", b_text="Max has a ball")
    app.selectbox(key="b_model").set_value("tales-bert").run()
    header, _ = view(app)
    assert app.text_input(key="b_text").value == "Max has a ball"
    assert header["pairs"]["B"]["says"]["sentence"].startswith("Their vocabularies differ")
    link = header["take"]["link"]
    assert [link[name] for name in ("a_model", "b_model", "b_text")] == ["stories", "tales-bert", "Max has a ball"]
    app.selectbox(key="b_model").set_value("digits-vit").run()
    link = view(app)[0]["take"]["link"]
    assert "b_text" not in link and link["b_picture"] == "0"
    assert view(app)[0]["pairs"]["B"]["attentions"][0]["queries"] == []


def test_a_comparison_begins_with_what_was_looked_at_and_stays_as_it_was_left() -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).switch_page(WALKTHROUGH).run()
    app.text_input(key="text").set_value("a text of one’s own").run()
    app.switch_page(COMPARE).run()
    assert texts(app) == ["a text of one’s own"] * 2
    app.text_input(key="b_text").set_value("another one").run()
    app.switch_page(WALKTHROUGH).run().switch_page(COMPARE).run()
    assert texts(app) == ["a text of one’s own", "another one"]


def test_a_comparison_begins_with_the_model_beside_itself_under_the_edits_that_are_tried() -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    record(app, EditTrial).experiment = Experiment().add(SilenceHeads(3, [3]))
    header, _ = view(app.run().switch_page(COMPARE).run())
    assert [side["edits"] for side in header["sides"]] == [0, 1] and len(set(texts(app))) == 1


def png(level: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((8, 8), level, np.uint8)).save(file, "PNG")
    return file.getvalue()


def test_each_side_can_read_a_picture_of_ones_own_which_is_swapped_and_put_away() -> None:
    app = opened(a_model="digits-vit", b_model="digits-imagegpt", b_given="8")
    own = record(app, Sides).pictures
    own |= {"A": png(255), "B": png(0)}
    _, arrays = view(app.run())
    assert arrays["A/picture"].data.min() == 1 and app.number_input(key="a_picture").disabled
    drawn = read_pixels(library.checkpoint("digits-imagegpt"), Image.new("L", (8, 8)), 8, 256, {}, 0)
    ids = view(app)[0]["sides"][1]["lanes"][""]["ids"]
    assert ids[:9] == list(drawn.read.ids[:9])
    app.button(key="swap").click().run()
    assert own == {"B": png(255), "A": png(0)}
    header, _ = view(app.button(key="numbered B").click().run())
    assert "one’s own" in header["take"]["read"] and not app.number_input(key="b_picture").disabled
    assert "a_own" not in app.query_params


def test_a_file_that_is_no_picture_is_a_sentence_and_an_address_is_none() -> None:
    app = opened(a_model="digits-vit", b_model="digits-vit", a_own="nonsense")
    assert view(app)[0]["sides"][0]["title"] == "digits-vit"
    record(app, Sides).pictures["A"] = b"no picture"
    app.run()
    assert "Expected a picture such as PNG or JPEG" in app.warning[0].value


def test_a_comparison_that_was_opened_from_the_menu_opens_the_same_again_from_its_address() -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params |= {"model": "everyday", "text": "a text of one’s own"}
    app.switch_page(WALKTHROUGH).run().switch_page(COMPARE).run()
    again = opened(**app.query_params)
    assert texts(again) == ["a text of one’s own"] * 2 and view(again)[0]["trace"] == view(app)[0]["trace"]
    app.button(key="more").click().run()
    assert len(view(opened(**app.query_params))[0]["sides"]) == 3
    app.button(key="remove C").click().run().run()
    assert len(view(app)[0]["sides"]) == 2 and not [name for name in app.query_params if name.startswith("c_")]


def test_a_picture_that_the_address_does_not_name_is_the_first_again() -> None:
    app = opened(a_model="digits-vit", a_picture="1", b_model="digits-vit")
    assert [app.number_input(key=f"{letter}_picture").value for letter in "ab"] == [1, 0]


def go(app: AppTest, query: dict[str, str], back: bool) -> list[str]:
    """Leads the browser to an address, by its history or by a link to the page that is shown; titles of the sides."""
    app.query_params = dict(query)
    with patch.object(local_script_runner, "RerunData", partial(RerunData, is_history_navigation=back)):
        app.run() if back else app._run(WidgetStates())
    return [side["title"] for side in view(app)[0]["sides"]]


def test_history_and_links_to_the_page_that_is_shown_lead_to_the_sides_that_they_say() -> None:
    app = opened(a_model="stories", b_model="tales-bert", a_text="Max has a ball")
    first = dict(app.query_params)
    app.text_input(key="b_text").set_value("the dog").run()
    app.button(key="more").click().run()
    third = dict(app.query_params)
    assert go(app, first, back=True) == ["stories", "tales-bert"] and texts(app) == ["Max has a ball"] * 2
    assert len(go(app, third, back=True)) == 3
    said = {"a_model": "everyday", "b_model": "stories", "a_text": "the dog", "b_text": "the cat"}
    assert go(app, said | {"c_model": "stories"}, back=False) == ["everyday", "stories", "stories"]
    assert texts(app) == ["the dog", "the cat"]


@pytest.mark.parametrize(("model", "edits", "alike"), [("everyday", "", False), ("everyday", SILENT, True)])
def test_a_link_to_a_model_beside_itself_reads_two_texts_unless_edits_are_compared(
    model: str, edits: str, alike: bool
) -> None:
    app = opened(a_model=model, b_model=model, **({"b_edits": edits} if edits else {}))
    assert (len(set(texts(app))) == 1) is alike


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run that kept two steps: the shipped model, and one with its embedding doubled."""
    checkpoint = load("stories")
    folder = tmp_path / "runs" / "twice"
    checkpoint.save(folder)
    weights = folder / "model.safetensors"
    (folder / "snapshots").mkdir()
    weights.rename(folder / "snapshots" / "step-0000010.safetensors")
    with torch.no_grad():
        checkpoint.model.embed.tokens.weight.mul_(2)
    checkpoint.save(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").rename(folder / "snapshots" / "step-0000300.safetensors")
    (tmp_path / "runs" / "empty").mkdir()
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path / "runs"))
    library.checkpoint.cache_clear()
    return tmp_path / "runs"


def test_the_snapshots_of_a_run_are_listed_by_step(runs: Path) -> None:
    assert library.kept_runs() == {"twice": [10, 300]}
    assert library.kept_steps("twice") == [10, 300] and library.kept_steps("../runs/twice") == []


@pytest.mark.parametrize("named", ["run: twice", "run:twice"])
def test_a_run_without_a_step_is_its_last_and_both_sides_read_one_text(runs: Path, named: str) -> None:
    (runs / "twice" / "snapshots" / "step-0000010.safetensors").rename(
        runs / "twice" / "snapshots" / "step-0000000.safetensors"
    )
    app = opened(a_model="stories", b_model=named)
    header, arrays = view(app)
    assert [side["title"] for side in header["sides"]] == ["stories", "twice · step 300"]
    assert texts(app)[0] == texts(app)[1]
    assert arrays["B:attn.relative"].data[0].min() > 0.1
    app.selectbox(key="b_step").set_value(0).run()
    app.selectbox(key="a_model").set_value("run: twice").run()
    assert (app.selectbox(key="a_step").value, app.selectbox(key="b_step").value) == (300, 0)


def test_what_another_page_looks_at_is_compared_as_its_last_step(runs: Path) -> None:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params["model"] = "run:twice"
    assert not app.switch_page(WALKTHROUGH).run().exception
    app.switch_page(COMPARE).run()
    assert [app.selectbox(key=f"{letter}_step").value for letter in "ab"] == [300, 300]


def test_a_link_to_a_model_beside_another_carries_one_text(runs: Path) -> None:
    link = link_sides("stories", "run:twice")
    assert link["a_text"] == link["b_text"] == EXAMPLES["stories"]["text"]
    header, _ = view(opened(**link))
    assert [side["title"] for side in header["sides"]] == ["stories", "twice · step 300"]
    assert not {"a_text", "b_text"} & set(link_sides("stories", "digits-vit"))


def test_a_step_as_other_pages_call_it_is_its_run_and_its_step(runs: Path) -> None:
    app = opened(a_model="run:twice@10", a_text="The dog sat", b_model="run:twice", b_text="The dog sat")
    header, arrays = view(app)
    assert [side["title"] for side in header["sides"]] == ["twice · step 10", "twice · step 300"]
    assert arrays["B:attn.relative"].data[0].min() > 0.1
    assert (app.selectbox(key="a_model").value, app.selectbox(key="a_step").value) == ("run: twice", 10)
    assert "no model called “run:twice@11”" in read_markdown(opened(a_model="run:twice@11").warning[0].value)


def test_steps_of_a_training_are_compared(runs: Path) -> None:
    address = {"a_model": "run: twice", "a_step": "10", "b_model": "run: twice", "b_step": "300"}
    app = opened(**address, a_text="The dog sat", b_text="The dog sat")
    header, arrays = view(app)
    assert [side["title"] for side in header["sides"]] == ["twice · step 10", "twice · step 300"]
    ids = header["sides"][0]["lanes"][""]["ids"]
    plain = run(library.checkpoint("stories").model, ids)["blocks.0.attn.pattern"][0]
    assert torch.equal(torch.tensor(arrays["A/blocks.0.attn.pattern"].data), plain)
    assert arrays["B:attn.relative"].data[0].min() > 0.1
    app.selectbox(key="b_step").set_value(10).run()
    assert not view(app)[1]["B:attn.change"].data.any()
