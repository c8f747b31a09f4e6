"""The page Generate without a browser: its controls, what it refuses, and what it gives away."""

import base64
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.generation.generate import generate
from engine.inputs.readers import pictures
from engine.runtime import library
from tests.pages.test_take import ran
from views.core.payload import Named, unpack
from views.generate.session import Settings

ROOT = Path(__file__).parents[2]
GENERATE, ATTENTION = "pages/explore/generate.py", "pages/explore/attention.py"


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    return app.switch_page(GENERATE).run()


def view(app: AppTest, name: str = "generate") -> tuple[dict[str, Any], dict[str, Named]]:
    assert not app.exception, app.exception
    (found, *_) = [e.proto for e in app.get("bidi_component") if e.proto.component_name.rsplit(".", 1)[0].endswith(f".{name}")]
    return unpack(found.bytes)


def asked(app: AppTest, **query: Any) -> tuple[dict[str, Any], dict[str, Named]]:
    app.session_state["courier asked"] = [{"id": 1, "query": {"trace": view(app)[0]["trace"], **query}}]
    app.run()
    answers, arrays = view(app, "courier")
    (answer,) = answers["answers"]
    if "sentence" in answer:
        raise ValueError(answer["sentence"])
    return unpack(arrays["1"].data.tobytes())


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
    assert "stories" in said and "translate-en-fr" in said and "stories-bert" not in said.split(":")[-1]
    assert not [e for e in app.get("bidi_component") if e.proto.component_name.rsplit(".", 1)[0].endswith(".generate")]


def test_an_empty_text_and_a_text_without_a_gap_are_refused_with_a_sentence() -> None:
    for address, word in (
        ({"text": ""}, "type a few words"),
        ({"text": "no gap", "model": "infill"}, "[gMASK]"),
    ):
        app = opened(**address)
        if not address["text"]:
            app.text_input(key="text").set_value("").run()
        (said,) = [one.value for one in app.warning]
        assert word in said and said[0].isupper()


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
    script = asked(app, take="python", tab="write", branch=ids, begun=0, settings=settings)[0]["lines"]
    assert [step.id for step in ran(script)["steps"]] == ids
    if len(ids) > 3:
        script = asked(app, take="python", tab="write", branch=ids, begun=2, settings=settings)[0]["lines"]
        assert "begun=" in script and [step.id for step in ran(script)["steps"]] == ids[2:]


def test_the_lines_of_a_temperature_give_its_distribution() -> None:
    app = opened()
    ids = write(app, 3)
    found = ran(asked(app, take="python", tab="temperature", place=ids, t=2.5, branch=ids)[0]["lines"])
    prompt = view(app)[0]["prompt"]["ids"]
    step = next(generate(library.checkpoint("stories"), prompt, 4, begun=ids))
    torch.testing.assert_close(found["found"].probabilities, (step.logits / 2.5).softmax(-1))


@pytest.mark.parametrize("model", ["stories", "translate-en-fr", "digits-imagegpt"])
def test_the_tables_hold_the_tokens_and_the_stages(model: str) -> None:
    app = opened(model=model)
    ids = write(app, 5, temperature=0.9)
    query = {"take": "data", "branch": ids, "settings": {"temperature": 0.9}, "at": 1, "place": ids[:1]}
    query["format"] = "csv"
    tokens, step, tempered = (
        pd.read_csv(io.BytesIO(asked(app, matrix=name, **query)[1]["file"].data.tobytes()))
        for name in ("Write: tokens", "Write: one step", "Temperature: probabilities")
    )
    assert tokens["id"].tolist() == ids
    _, arrays = asked(app, ask="step", begun=ids[:1], id=ids[1], settings={"temperature": 0.9})
    row = arrays["top.own"].data[0, -1]
    assert tokens["probability"][1] == pytest.approx(float(row), rel=1e-4)
    np.testing.assert_allclose(step["probabilities"], arrays["top.probabilities"].data[0, :-1], atol=1e-6)
    assert len(tempered) == 101
    with pytest.raises(ValueError, match="write first"):
        asked(app, matrix="Write: tokens", **{**query, "branch": []})


def test_the_file_holds_what_was_written_and_the_answers_to_its_steps() -> None:
    app = opened()
    ids = write(app, 3)
    made = view(app)[0]["trace"]
    steps = [{"trace": made, "ask": "step", "begun": ids[:i], "settings": {}, "id": ids[i]} for i in range(3)]
    kept = {"nodes": [[i, id, "x", 1, -1, 1, 1, 0, 0, False, None] for i, id in enumerate(ids)], "asks": steps}
    answer = asked(app, take="html", tab="write", kept=kept, state="#view=write", asked=[])[1]
    text = answer["file"].data.tobytes().decode()
    given = json.loads(text.split('id="given">')[1].split("</script>")[0])
    queries = [one["query"] for one in given["answers"]]
    assert [query for query in queries if query["ask"] == "step"] == steps
    assert {"trace": made, "ask": "tempered", "values": [2, 4, 5]} in queries

    header, _ = unpack(gzip.decompress(base64.b64decode(given["payload"])))
    assert [row[1] for row in header["kept"]["nodes"]] == ids


def test_what_cannot_be_taken_is_refused_with_a_sentence() -> None:
    app = opened()
    for query in (
        {"take": "python", "tab": "nothing"},
        {"take": "python", "tab": ["write"]},
        {"take": "data", "matrix": "nothing", "format": "csv"},
        {"take": "data", "matrix": "Write: tokens", "branch": [10**9], "format": "csv"},
        {"take": "html", "kept": 5, "state": "", "asked": "x"},
    ):
        with pytest.raises(ValueError, match=r"\w+ .*\."):
            asked(app, **query)
