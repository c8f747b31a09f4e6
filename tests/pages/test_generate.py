"""The page Generate without a browser: its controls, what it refuses, and what it gives away."""

import base64
import gzip
import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.analysis.caching import multiply_adds_again
from engine.analysis.surprise import surprise
from engine.budget import budget
from engine.checkpoints import load
from engine.generation import few_shot
from engine.generation.generate import generate
from engine.generation.prompt import begin
from engine.inputs.readers import pictures
from engine.model.config import RotaryScaling
from engine.model.transformer import Transformer
from engine.runtime import library
from engine.runtime.run import run
from pages.controls.generate.tabs import WritingRecord
from tests.pages.mounted import answered, mounted
from tests.pages.test_take import ran
from views.core.payload import Named, unpack
from views.generate.codegen import temperature_lines
from views.generate.session import Call, GenerationContext, Settings

ROOT = Path(__file__).parents[2]
GENERATE, ATTENTION = "pages/explore/generate.py", "pages/explore/attention.py"
TRAIN = "The train was late again, so we missed the beginning of the film."


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    return app.switch_page(GENERATE).run()


def test_beyond_the_trained_length_the_page_says_which_logits_are_whose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With rotary angles that change with the length, the cache keeps old ones and a run has new ones."""
    found = library.checkpoint("in-context")
    scaled = replace(found.config.positions, scaling=RotaryScaling("dynamic", 4.0, 12))
    model = Transformer(replace(found.config, positions=scaled))
    model.load_state_dict(found.model.state_dict())
    replace(found, model=model.requires_grad_(False).eval()).save(tmp_path / "scaled")
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    steps = list(generate(library.checkpoint("scaled"), [5, 9, 7, 9, 5, 8], 14, greedy=True, stop_at_end=False))
    same = [torch.allclose(run(model, step.before)["logits"][0, -1], step.logits, atol=1e-4) for step in steps]
    assert all(same[:7]) and not any(same[7:])  # of 12 tokens and fewer, and of more
    text = found.tokenizer.decode([5, 9, 7, 9, 5, 8])
    said = [one.value for one in opened(model="scaled", text=text).caption]
    assert any(one.startswith("Beyond the 12 tokens that this model was trained for") for one in said)
    assert not any("Beyond" in one.value for one in opened(model="in-context", text=text).caption)


def view(app: AppTest, name: str = "generate") -> tuple[dict[str, Any], dict[str, Named]]:
    assert not app.exception, app.exception
    (found, *_) = mounted(app, name)
    return unpack(found.bytes)


def asked(app: AppTest, **query: Any) -> tuple[dict[str, Any], dict[str, Named]]:
    return answered(app, {"trace": view(app)[0]["trace"], **query})


def streamed(app: AppTest, **query: Any) -> list[tuple[dict[str, Any], dict[str, Named]]]:
    """The parts of an answer."""
    asked = {"id": 1, "query": {"trace": view(app)[0]["trace"], **query}, "streamed": True}
    app.session_state["courier asked"] = [asked]
    app.run()
    found, ended = [], {}
    for element in app.get("bidi_component"):
        if element.proto.component_name.rsplit(".", 1)[0].endswith(".courier_part"):
            header, carried = unpack(element.proto.bytes)
            if header["ended"]:
                ended = header
            else:
                found.append(unpack(carried["part"].data.tobytes()))
    assert "sentence" not in ended, ended
    return found


def keys(app: AppTest) -> set[str]:
    drawn = [*app.slider, *app.number_input, *app.text_input, *app.selectbox]
    return {one.key for one in drawn}


def charts(app: AppTest) -> list[tuple[dict[str, Any], dict[str, pd.DataFrame]]]:
    """The spec of every Vega chart of the page, and its data by name."""
    assert not app.exception, app.exception
    protos = [one.proto for one in app.get("vega_lite_chart")]
    return [
        (json.loads(one.spec), {each.name: pa.ipc.open_stream(each.data.data).read_pandas() for each in one.datasets})
        for one in protos
    ]


def exported(app: AppTest, what: str, of: dict[str, Any], **more: Any) -> tuple[dict[str, Any], dict[str, Named]]:
    """Lines of Python, or a file, of a question."""
    return asked(app, ask=f"export_{what}", of=of, **more)


def test_each_model_that_writes_is_offered_with_what_it_begins_from() -> None:
    ids = {}
    for model in ("stories", "induction", "infill", "translate-en-fr", "digits-imagegpt"):
        header, _ = view(opened(model=model))
        ids[model] = header["prompt"]["ids"]
        assert header["model"] == model and header["left"] > 0 and header["settings"]["method"] == "sample"
    tokenizer = library.checkpoint("stories").tokenizer
    assert ids["stories"] == list(tokenizer.encode('Max gave the red ball to Anna. "Thank you," said').ids)
    pixels = library.checkpoint("digits-imagegpt").processor.ids(pictures()[0][0]).flatten()
    assert ids["digits-imagegpt"][1:] == pixels[:32].tolist()
    assert len(ids["translate-en-fr"]) == 1


def test_a_model_that_neither_writes_nor_masks_is_refused_with_the_names_of_those_that_write() -> None:
    app = opened(model="digits-vit")
    (said,) = [one.value for one in app.warning]
    assert "stories" in said and "translate-en-fr" in said and "tales-bert" not in said.split(":")[-1]
    assert not [e for e in app.get("bidi_component") if e.proto.component_name.rsplit(".", 1)[0].endswith(".generate")]


def test_a_text_without_a_gap_is_refused_with_a_sentence() -> None:
    (said,) = [one.value for one in opened(text="no gap", model="infill").warning]
    assert r"\[gMASK\]" in said and said[0].isupper()


def test_an_emptied_text_keeps_what_was_continued() -> None:
    app = opened(model="stories", text="The dog was")
    before = view(app)[0]["prompt"]
    app.text_input(key="text").set_value("").run()
    assert "No text. Still showing" in app.info[0].value and view(app)[0]["prompt"] == before
    of = {"ask": "written", "ids": write(app, 2, method="greedy"), "begun": 0, "settings": {"method": "greedy"}}
    assert '"The dog was"' in exported(app, "python", of)[0]["lines"]
    app = opened(model="translate-en-fr")
    app.text_input(key="text").set_value("").run()
    assert app.info and len(view(app)[0]["prompt"]["ids"]) == 1  # of its source before


def test_a_target_and_a_gap_that_are_begun_are_part_of_the_prompt() -> None:
    header, _ = view(opened(model="translate-en-fr", text="the dog sleeps .", target="le chien"))
    checkpoint = library.checkpoint("translate-en-fr")
    assert header["prompt"]["ids"] == list(checkpoint.target("le chien").ids)
    header, _ = view(opened(model="infill", text="A [gMASK] sat.", span=" the dog"))
    assert "".join(header["prompt"]["pieces"]).endswith("[sop]·the·dog")


def test_only_what_a_method_uses_is_there_and_its_settings_reach_the_view() -> None:
    app = opened(temperature="0.7", top_k="12")
    assert {"temperature", "top_k", "top_p", "min_p", "typical_p", "seed"} <= keys(app)
    assert view(app)[0]["settings"] | {"temperature": 0.7, "top_k": 12} == view(app)[0]["settings"]
    app.selectbox(key="method").set_value("contrastive").run()
    assert {"penalty_alpha", "candidates"} <= keys(app) and not {"temperature", "top_k", "seed"} & keys(app)
    app.selectbox(key="method").set_value("greedy").run()
    assert "repetition_penalty" in keys(app) and "penalty_alpha" not in keys(app)
    app.selectbox(key="method").set_value("sample").run()
    assert view(app)[0]["settings"]["temperature"] == 0.7


def test_a_setting_leaves_the_prompt_the_same_and_outlives_the_page() -> None:
    app = opened()
    before = view(app)[0]["trace"]
    app.slider(key="temperature").set_value(0.4).run()
    app.number_input(key="most").set_value(7).run()
    assert view(app)[0]["trace"] == before
    app.switch_page(ATTENTION).run()
    app.switch_page(GENERATE).run()
    assert view(app)[0]["settings"] == vars(Settings(temperature=0.4, most=7)) and view(app)[0]["trace"] == before


def test_a_setting_at_its_usual_value_stands_in_no_address_and_another_is_written_there_by_its_control_alone() -> None:
    """For what a script sets Streamlit writes the whole address, with texts as they were when the page was opened."""
    app = opened(text="the dog")
    app.text_input(key="text").set_value("the dog ran").run()
    app.slider(key="temperature").set_value(0.4).run()
    app.text_input(key="text").set_value("the dog ran to").run()
    assert not set(app.query_params) & {"temperature", "top_p", "typical_p", "repetition_penalty", "most"}
    assert view(app)[0]["settings"] == vars(Settings(temperature=0.4))


def test_a_link_restores_the_settings_and_says_what_it_could_not() -> None:
    address = {"method": "contrastive", "penalty_alpha": "0.3", "most": "9", "stop_at": "."}
    header, _ = view(opened(**address))
    assert header["settings"] == vars(Settings(method="contrastive", penalty_alpha=0.3, most=9, stop_at="."))
    assert {**header["take"]["link"], **address} == header["take"]["link"]
    app = opened(method="beam", temperature="99", most="-3", min_p="x", seed="y")
    (said,) = [one.value for one in app.info]
    for name in ("method", "temperature", "most", "min_p", "seed"):
        assert name in said.replace("\\", "")
    assert view(app)[0]["settings"] == vars(Settings())


def test_a_link_can_hide_the_settings() -> None:
    app = opened(hide="method,seed")
    (style,) = [one.value for one in app.get("html") if "st-key-method" in str(one.value)] or [""]
    assert ".st-key-seed" in style


def write(app: AppTest, count: int, **settings: Any) -> list[int]:
    parts = streamed(app, ask="write", begun=[], settings=settings, goal=count)
    return [int(id) for _, arrays in parts for id in arrays["id"].data]


@pytest.mark.parametrize("model", ["stories", "translate-en-fr", "infill", "digits-imagegpt", "induction"])
def test_the_lines_write_the_text_that_the_page_wrote(model: str) -> None:
    app = opened(model=model)
    settings = {"temperature": 0.8, "top_k": 20, "seed": 5, "repetition_penalty": 1.1}
    ids = write(app, 6, **settings)
    of = {"ask": "written", "ids": ids, "begun": 0, "settings": settings}
    script = exported(app, "python", of)[0]["lines"]
    assert [step.id for step in ran(script)["steps"]] == ids
    if len(ids) > 3:
        of = {"ask": "written", "ids": ids, "begun": 2, "settings": settings}
        script = exported(app, "python", of)[0]["lines"]
        assert "begun=" in script and [step.id for step in ran(script)["steps"]] == ids[2:]


def test_the_lines_of_a_temperature_give_its_distribution() -> None:
    app = opened()
    ids = write(app, 3)
    prompt = view(app)[0]["prompt"]["ids"]
    checkpoint = library.checkpoint("stories")
    text = 'Max gave the red ball to Anna. "Thank you," said'
    one = GenerationContext("stories", checkpoint, begin(checkpoint, text), Call(repr(text)))
    assert list(one.prompt.ids) == prompt
    found = ran(temperature_lines(one, tuple(ids), 2.5))
    step = next(generate(library.checkpoint("stories"), prompt, 4, begun=ids))
    torch.testing.assert_close(found["found"].probabilities, (step.logits / 2.5).softmax(-1))


def test_the_temperature_of_a_finished_text_is_that_of_its_end() -> None:
    app = opened(model="translate-en-fr", text="The dog sees a cat .")
    ids = write(app, 20, method="greedy")
    assert ids[-1] in library.checkpoint("translate-en-fr").end_ids
    branch = {view(app)[0]["trace"]: (tuple(ids), None)}
    app.session_state[f"{WritingRecord.__module__}.{WritingRecord.__qualname__}"] = WritingRecord(branches=branch)
    app.segmented_control(key="view").set_value("temperature").run()
    (place,) = [one for one in app.number_input if one.label == "tokens written before it"]
    assert place.value == place.max == len(ids) - 1 and not app.warning and len(charts(app)) == 2


@pytest.mark.parametrize("model", ["stories", "translate-en-fr", "digits-imagegpt"])
def test_the_tables_hold_the_tokens_and_the_stages(model: str) -> None:
    app = opened(model=model)
    ids = write(app, 5, temperature=0.9)
    settings = {"temperature": 0.9}
    tokens, step = (
        pd.read_csv(io.BytesIO(exported(app, "data", of, format="csv")[1]["file"].data.tobytes()))
        for of in (
            {"ask": "written", "ids": ids, "settings": settings},
            {"ask": "step", "begun": ids[:1], "settings": settings},
        )
    )
    assert tokens["id"].tolist() == ids
    _, arrays = asked(app, ask="step", begun=ids[:1], id=ids[1], settings={"temperature": 0.9})
    row = arrays["top.own"].data[0, -1]
    assert tokens["probability"][1] == pytest.approx(float(row), rel=1e-4)
    np.testing.assert_allclose(step["probabilities"], arrays["top.probabilities"].data[0, :-1], atol=1e-6)
    with pytest.raises(ValueError, match="write first"):
        exported(app, "data", {"ask": "written", "ids": []}, format="csv")


def test_the_file_holds_what_was_written_and_the_answers_to_its_steps() -> None:
    app = opened()
    ids = write(app, 3)
    made = view(app)[0]["trace"]
    steps = [{"trace": made, "ask": "step", "begun": ids[:i], "settings": {}, "id": ids[i]} for i in range(3)]
    kept = {"nodes": [[i, id, "x", 1, -1, 1, 1, 0, 0, False, None] for i, id in enumerate(ids)], "asks": steps}
    answer = asked(app, ask="export_html", of={"kept": kept, "branch": ids}, state="", asked=[])[1]
    text = answer["file"].data.tobytes().decode()
    given = json.loads(text.split('id="given">')[1].split("</script>")[0])
    queries = [one["query"] for one in given["answers"]]
    assert [query for query in queries if query["ask"] == "step"] == steps
    assert {"beam", "cache", "surprise"} <= {query["ask"] for query in queries}
    header, _ = unpack(gzip.decompress(base64.b64decode(given["payload"])))
    assert [row[1] for row in header["kept"]["nodes"]] == ids


def test_what_cannot_be_taken_is_refused_with_a_sentence() -> None:
    app = opened()
    for query in (
        {"ask": "export_python", "of": {"ask": "nothing"}},
        {"ask": "export_python", "of": {"ask": ["written"], "ids": []}},
        {"ask": "export_data", "of": {"ask": "nothing"}, "format": "csv"},
        {"ask": "export_data", "of": {"ask": "written", "ids": [10**9]}, "format": "csv"},
        {"ask": "export_html", "of": {"kept": 5, "branch": []}, "state": "", "asked": []},
    ):
        with pytest.raises(ValueError, match=r"\w+ .*\."):
            asked(app, **query)


def test_a_tab_that_is_not_there_is_refused_by_the_names_of_those_that_are() -> None:
    app = opened(view="nothing")
    assert "one of write, beam, temperature, prompting, cache, surprise." in app.info[0].value


def test_the_temperature_charts_hold_the_distribution_of_numbers_and_of_the_models_logits() -> None:
    app = opened(view="temperature", t="2")
    (numbers, logits) = charts(app)
    curves = numbers[1]["curves"]
    assert {one["name"]: one.get("value") for one in numbers[0]["params"]}["temperature"] == 2
    at_five = curves[curves["temperature"] == 5]["probability"].to_numpy()
    np.testing.assert_allclose(at_five, (torch.tensor([2.0, 4.0, 5.0]) / 5).softmax(-1), atol=1e-6)
    step = next(generate(library.checkpoint("stories"), view(app)[0]["prompt"]["ids"], 1))
    curves = logits[1]["curves"]
    at_two = curves[curves["temperature"] == 2]["probability"].to_numpy()
    expected = (step.logits / 2).softmax(-1)[step.logits.topk(8).indices]
    np.testing.assert_allclose(at_two[:8], expected, atol=1e-6)
    assert at_two.sum() == pytest.approx(1, abs=1e-5)
    app.text_input(key="numbers").set_value("1, x").run()
    assert "2 to 8 numbers" in app.warning[0].value and len(charts(app)) == 1


def test_a_few_shot_prompt_is_answered_and_measured_as_by_the_engine() -> None:
    app = opened(view="prompting", p_table="reverse", p_k="2", p_n="10", p_query="carry")
    loaded, table = library.checkpoint("in-context"), few_shot.tables()["reverse"]
    found = few_shot.answer(loaded, table, 2, "carry", 0)
    said = [one.value for one in (*app.success, *app.error)]
    assert said == (["Right."] if found.right else ["Wrong: “yrrac” was expected."])
    (bars, _), (_, shares) = charts(app)[0], charts(app)[-1]
    assert not len(shares["shares"]) and bars["layer"]
    next(one for one in app.button if one.label == "Measure").click().run()
    wanted = [(one.k, one.share, one.n) for one in few_shot.accuracy(loaded, table, seed=0, n=10)]
    measured = charts(app)[-1][1]["shares"]
    rows = measured[["K", "right", "queries"]].itertuples(index=False)
    assert [(k, pytest.approx(share), n) for k, share, n in wanted] == [tuple(row) for row in rows]
    assert "Measure again" in [one.label for one in app.button]


def test_rows_of_ones_own_without_sense_are_refused_with_a_sentence_whatever_else_a_link_says() -> None:
    app = opened(view="prompting", p_table="your own", p_rows="no colon", p_k="3", p_query="red", p_n="10")
    assert not app.exception
    assert len(app.warning) == 1 and app.text_area(key="p_rows").value == "no colon"
    app.text_area(key="p_rows").set_value("red: rouge\nblue: bleu\ngreen: vert\nwhite: blanc").run()
    assert not app.exception and not app.warning
    assert (app.session_state["p_k"], app.session_state["p_query"]) == (3, "red")


def test_the_costs_of_the_cache_are_drawn_and_the_time_of_a_token_is_measured() -> None:
    app = opened(view="cache")
    work, memory = (data["costs"] for _, data in charts(app))
    config = library.checkpoint("stories").config
    again = work[work["series"] == "without"]
    assert again["value"].tolist() == [multiply_adds_again(config, int(n)) for n in again["length"]]
    assert set(memory["series"]) == {"this model", "GPT-2 small"}
    next(one for one in app.button if one.label == "Measure").click().run(timeout=120)
    times = charts(app)[-1][1]["costs"]
    assert len(times) == 2 * 9 and (times["value"] > 0).all()


def test_the_surprise_of_a_text_is_drawn_along_it() -> None:
    app = opened(view="surprise", text="Max gave the red ball to Anna.")
    ((_, data),) = charts(app)
    loaded = library.checkpoint("stories")
    found = surprise(loaded, begin(loaded, "Max gave the red ball to Anna.").ids)
    bits = (-found.log_probabilities / math.log(2)).tolist()
    assert data["tokens"]["surprise"].tolist() == pytest.approx(bits, rel=1e-5)
    assert data["tokens"]["is_picked"].tolist() == [one == max(bits) for one in bits]


def test_the_settings_stand_on_the_tab_that_writes_and_hold_on_every_other() -> None:
    app = opened(top_k="40", min_p="0.1", seed="7")
    row = {"method", "temperature", "most"}
    behind = {"top_k", "top_p", "min_p", "typical_p", "repetition_penalty", "stop_at", "seed"}
    assert row | behind <= keys(app)
    assert "top-k 40 · min-p 0.1 · seed 7" in [caption.value for caption in app.caption]
    app.slider(key="top_p").set_value(0.9).run()
    for tab in ("cache", "temperature", "surprise", "beam"):
        app.get("button_group")[0].set_value(tab).run()
        assert not (row | behind) - {"stop_at"} & keys(app), tab
        assert ("stop_at" in keys(app)) == (tab == "beam")
        header = view(app)[0]["settings"]
        assert (header["top_k"], header["top_p"], header["min_p"], header["seed"]) == (40, 0.9, 0.1, 7), tab
    app.get("button_group")[0].set_value("write").run()
    assert (app.slider(key="top_k").value, app.slider(key="top_p").value) == (40, 0.9)


def test_a_tab_keeps_its_controls_and_an_address_without_sense_opens_the_usual() -> None:
    app = opened(view="beam", beam_tokens="6")
    assert view(app)[0]["view"] == "beam" and view(app)[0]["beam"]["tokens"] == 6
    app.number_input(key="beam_beams").set_value(2).run()
    assert view(app)[0]["beam"]["beams"] == 2 and view(app)[0]["beam"]["best"] == 2
    app.get("button_group")[0].set_value("cache").run()
    app.get("button_group")[0].set_value("beam").run()
    assert view(app)[0]["beam"] | {"beams": 2, "tokens": 6} == view(app)[0]["beam"]
    assert view(app)[0]["take"]["link"] | {"view": "beam", "beam_beams": "2"} == view(app)[0]["take"]["link"]
    app = opened(view="nothing", beam_beams="99", t="hot", numbers="1", p_k="x")
    assert view(app)[0]["view"] == "write" and view(app)[0]["beam"]["beams"] == 4
    (said,) = [one.value for one in app.info]
    for name in ("view", "beam_beams", "t", "numbers", "p_k"):
        assert f"{name} is" in said.replace("\\", "") or "more" in said


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Makes a copy of a shipped model, of that name, whose generation_config.json asks for so much."""

    def make(name: str, **asked: Any) -> None:
        load("stories").save(tmp_path / name)
        (tmp_path / name / "generation_config.json").write_text(json.dumps(asked))

    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    library.checkpoint.cache_clear()
    yield make
    library.checkpoint.cache_clear()


def test_the_settings_open_at_what_the_checkpoint_asks_for(asking: Callable[..., None]) -> None:
    asked = {"do_sample": True, "temperature": 0.6, "top_k": 12, "max_new_tokens": 7, "repetition_penalty": 1.2}
    asking("one", **asked, no_repeat_ngram_size=3, num_beams=3, length_penalty=2.0)
    app = opened(model="one")
    settings = view(app)[0]["settings"]
    assert [settings[name] for name in ("temperature", "top_k", "most", "repetition_penalty")] == [0.6, 12, 7, 1.2]
    said = " ".join(one.value for one in app.caption)
    assert "is obeyed" in said and "3 beams" in said and "top-k 12" in said
    app.slider(key="temperature").set_value(1.0).run()  # Loupe's own default is a setting like any other
    assert Settings(**view(app)[0]["settings"]).options(library.checkpoint("one")) == {"temperature": 1.0}
    app = opened(model="one", view="beam")
    assert (app.number_input(key="beam_beams").value, app.number_input(key="beam_penalty").value) == (3, 2.0)


def test_another_checkpoint_opens_at_its_own_settings(asking: Callable[..., None]) -> None:
    asking("one", do_sample=False, max_new_tokens=9)
    asking("two", top_p=0.5, max_length=30)
    app = opened(model="one")
    app.number_input(key="most").set_value(11).run()
    assert view(app)[0]["settings"]["method"] == "greedy"
    app.selectbox(key="model").set_value("two").run()
    settings = view(app)[0]["settings"]
    assert (settings["method"], settings["top_p"], settings["most"]) == ("sample", 0.5, 11)
    assert any("30 tokens, prompt included" in one.value for one in app.caption)


def test_a_prompt_unlike_all_that_the_model_knows_is_said_to_be_by_measure() -> None:
    said = [view(opened(model=name, text=TRAIN))[0]["notice"] for name in ("stories", "everyday")]
    assert said[0].startswith("The model foresees this text worse than by guessing: ") and said[1] == ""
