"""The walkthrough page without a browser: what reaches the picture, and what a person is told."""

import json
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import Checkpoint, load
from engine.analysis.surprise import surprise
from engine.budget import budget
from engine.data.digits import split
from engine.inputs.familiarity import MARGIN, MEASURED, distances
from engine.inputs.readers import read_picture
from engine.model.config import Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.runtime import library
from engine.training.probe.probe import Probe, watch
from pages.controls.model_input.model_input import Subject
from pages.controls.model_input.notice import strange_picture_notice
from views.core.payload import Named, unpack

APP = str(Path(__file__).parents[2] / "app.py")


def opened(**state: object) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60).switch_page("pages/explore/walkthrough.py")
    for name, value in state.items():
        app.query_params[name] = str(value)
    return app.run()


def picture(app: AppTest) -> tuple[dict, dict[str, Named]]:
    assert not app.exception, app.exception
    (found, *_) = [e.proto for e in app.get("bidi_component") if "walkthrough" in e.proto.component_name]
    return unpack(found.bytes)


def test_first_open_shows_a_finished_picture_of_the_first_model() -> None:
    header, arrays = picture(opened())
    checkpoint = library.checkpoint("stories")
    encoding = checkpoint.tokenizer.encode(header_text(header))
    trace = library.traces.trace("stories", encoding)
    assert header["model"]["name"] == "stories"
    assert header["lanes"][""]["ids"] == list(encoding.ids)
    assert torch.equal(torch.tensor(arrays["blocks.2.attn.pattern"].data), trace["blocks.2.attn.pattern"][0])


def test_what_a_model_cannot_know_is_said_by_measure() -> None:
    strange = picture(opened(text="The train was late again, so we missed the beginning of the film."))[0]
    checkpoint = library.checkpoint("stories")
    found = surprise(checkpoint, strange["lanes"][""]["ids"])
    guessing = log(checkpoint.model.config.vocab_size)
    said = f"{found.mean:.1f} nats a token, where guessing takes {guessing:.1f}."
    assert said in strange["notice"] and found.mean > guessing and "A text of its kind" in strange["notice"]
    assert picture(opened())[0]["notice"] == ""
    bytes_of = picture(opened(model="everyday", text="The girl ate a crêpe."))[0]["notice"]
    assert bytes_of == "“ê” has no token of its own: its rows are the bytes of its UTF-8, such as <C3>."


def test_a_picture_that_is_no_digit_is_said_to_be_none_by_measure() -> None:
    stripes = (torch.arange(8) % 2 * 16).to(torch.uint8).expand(8, 8)
    found, most = float(distances(stripes[None], 0, True)), float(distances(split(0).test_images, 0, True).max())
    card = {"measured": {MEASURED: {"split": 0, "either_ground": True, "held_out_most": most}}}
    checkpoint = replace(library.checkpoint("digits-vit"), card=card)

    def said(image: torch.Tensor) -> str:
        return strange_picture_notice(Subject("digits-vit", checkpoint, read_picture(checkpoint, image), 256))

    assert found > MARGIN * most and said(stripes) == (
        "This picture is unlike the digits that this model was trained on: it differs from the nearest by "
        f"{found:.1f} of 16 grey levels a pixel, where new digits differ by at most {most:.1f}."
    )
    assert said(split(0).test_images[3]) == ""
    assert picture(opened(model="digits-vit"))[0]["notice"] == ""


def header_text(header: dict) -> str:
    return library.checkpoint(header["model"]["name"]).tokenizer.decode(header["lanes"][""]["ids"])


def test_the_two_temperatures_change_different_things() -> None:
    plain, cold = picture(opened()), picture(opened(temperature=0.5))
    hot = picture(opened(attention=3.0))
    pattern, scaled, logit = "blocks.0.attn.pattern", "next.scaled", "next.logit"
    assert (cold[1][pattern].data == plain[1][pattern].data).all()
    assert (cold[1][scaled].data == plain[1][logit].data / 0.5).all()
    assert (hot[1][pattern].data != plain[1][pattern].data).any()
    assert hot[0]["edited"] == ["*.temperature"]


@pytest.mark.parametrize("text", ["", "   ", "\t"])
def test_nothing_or_only_blanks_is_a_clear_page(text: str) -> None:
    app = opened(text=text)
    assert not app.exception
    assert app.info or picture(app)[0]["lanes"][""]["ids"]


def test_ten_thousand_characters_are_cut_and_the_page_says_what() -> None:
    header, arrays = picture(opened(text="The dog was happy. " * 530))
    limit = library.checkpoint("stories").model.config.context
    assert len(header["lanes"][""]["ids"]) == limit
    assert f"this model reads {limit}" in header["notice"] and "are cut, from “" in header["notice"]
    assert len(arrays["next.kept_p"].data) == limit


def test_of_two_texts_the_longer_is_cut_and_the_page_says_where() -> None:
    header, _ = picture(opened(model="tales-bert", text="The dog was happy. " * 99, second="The cat sat."))
    lane = header["lanes"][""]
    assert len(lane["ids"]) == library.checkpoint("tales-bert").model.config.context
    assert " are cut, from “" in header["notice"] and "the last" not in header["notice"]
    assert "cat" not in header["notice"]


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "🦊👩‍👩‍👧 e\u0301",
        "你好，世界",
        "שלום مرحبا",
        "\u202e\u200b\x00",
        "<script>alert(1)</script>",
        "*x* $y$ :red[z]",
    ],
)
def test_any_text_gives_a_picture_of_its_own_tokens(text: str) -> None:
    header, _ = picture(opened(text=text))
    assert header["lanes"][""]["ids"] == list(library.checkpoint("stories").tokenizer.encode(text).ids)
    assert not any("�" in piece for piece in header["lanes"][""]["pieces"])


def test_another_model_opens_on_its_own_example_and_a_written_text_stays() -> None:
    app = opened()
    app.selectbox(key="model").set_value("induction").run()
    assert picture(app)[0]["model"]["name"] == "induction"
    assert app.session_state["text"] == header_text(picture(app)[0])
    app.text_input(key="text").set_value("abcabc").run()
    app.selectbox(key="model").set_value("stories").run()
    assert app.session_state["text"] == "abcabc"


def test_a_run_that_does_not_know_the_words_of_another_page_opens_on_what_it_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load("induction").save(tmp_path / "own")
    (tmp_path / "own" / "snapshots").mkdir()
    (tmp_path / "own" / "model.safetensors").rename(tmp_path / "own" / "snapshots" / "step-0000010.safetensors")
    watch(tmp_path / "own", Probe("b7K b7K"))
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path))
    app = opened(text="Жили-были")
    app.query_params.clear()
    app.query_params["model"] = "run:own"
    assert not app.switch_page("pages/explore/attention.py").run().exception
    assert app.session_state["text"] == "b7K b7K"
    app.query_params.clear()
    app.query_params["model"] = "everyday"
    app.switch_page("pages/explore/walkthrough.py").run()
    app.text_input(key="text").set_value("Anna").run()  # whose letters it knows
    app.query_params.clear()
    app.query_params["model"] = "run:own"
    app.switch_page("pages/explore/attention.py").run()
    assert app.session_state["text"] == "Anna"


def test_a_link_to_a_model_opens_on_that_models_example() -> None:
    app = AppTest.from_file(APP, default_timeout=60).switch_page("pages/explore/walkthrough.py")
    app.query_params["model"] = "induction"
    header, _ = picture(app.run())
    assert header["model"]["name"] == "induction"
    assert set(header["lanes"][""]["pieces"]).isdisjoint({"<unk>"})


def test_a_model_with_words_of_its_own_opens_on_some_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "planner"
    config = ModelConfig(vocab_size=8, context=16, d_model=8, layers=1, attention=Attention(heads=1))
    Checkpoint(initialise(Transformer(config), 0)).save(folder)
    words = {"token2id": {word: i for i, word in enumerate("mill turn drill grind saw weld bend cut".split())}}
    (folder / "token_mappings.json").write_text(json.dumps(words))
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    app = AppTest.from_file(APP, default_timeout=60).switch_page("pages/explore/walkthrough.py")
    app.query_params["model"] = "planner"
    header, _ = picture(app.run())
    assert header["lanes"][""]["pieces"] == ["mill", "turn", "drill", "grind", "saw", "weld"]


def test_a_model_that_is_not_there_is_one_sentence() -> None:
    app = opened(model="../../etc/passwd")
    assert not app.exception
