"""The page about attention without a browser: what reaches the view, and that a page goes on where another was left."""

from pathlib import Path

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.analysis.heads import head_scores
from engine.runtime import library
from engine.runtime.run import run
from tests.pages.mounted import mounted
from views.core.payload import Named, unpack

ROOT = Path(__file__).parents[2]
WALKTHROUGH, ATTENTION = "pages/explore/walkthrough.py", "pages/explore/attention.py"


def opened(page: str = ATTENTION, **address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    return app.switch_page(page).run()


def view(app: AppTest, name: str = "attention") -> tuple[dict, dict[str, Named]]:
    assert not app.exception, app.exception
    (found, *_) = mounted(app, name)
    return unpack(found.bytes)


def test_every_pattern_and_score_of_the_first_model_arrives_as_the_engine_has_it() -> None:
    header, arrays = view(opened())
    checkpoint = library.checkpoint("stories")
    trace = run(checkpoint.model, header["lanes"][""]["ids"])
    for layer in range(checkpoint.model.config.layers):
        for part in ("pattern", "scores", "masked_scores", "q", "k", "v"):
            hook = f"blocks.{layer}.attn.{part}"
            assert torch.equal(torch.tensor(arrays[hook].data), trace[hook][0]), hook
    for name, measured in vars(head_scores(trace)).items():
        sent = torch.tensor(arrays[f"scores.attn.{name}"].data)
        torch.testing.assert_close(sent, measured.float(), equal_nan=True, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "sides"),
    [
        ("tales-bert", [""]),
        ("translate-en-fr", ["encoder", "decoder"]),
        ("infill", [""]),
        ("digits-vit", [""]),
        ("digits-imagegpt", [""]),
        ("induction", [""]),
    ],
)
def test_every_shipped_model_shows_all_its_attentions(model: str, sides: list[str]) -> None:
    header, arrays = view(opened(model=model))
    assert list(header["lanes"]) == sides and header["model"]["name"] == model
    for side in sides:
        lane, prefix = header["lanes"][side], f"{side}." if side else ""
        shape = arrays[f"{prefix}blocks.0.attn.pattern"].data.shape
        assert shape == (lane["model"]["heads"], len(lane["pieces"]), len(lane["pieces"]))
    if len(sides) > 1:
        shape = arrays["decoder.blocks.1.cross_attn.pattern"].data.shape[1:]
        assert shape == tuple(len(header["lanes"][side]["pieces"]) for side in ("decoder", "encoder"))


def test_a_page_goes_on_with_the_model_and_the_text_of_the_one_before() -> None:
    app = opened(WALKTHROUGH)
    app.selectbox(key="model").set_value("tales-bert").run()
    app.text_input(key="text").set_value("the cat sat on the [MASK].").run()
    read = view(app, "walkthrough")[0]["lanes"][""]["ids"]
    app.switch_page(ATTENTION).run()
    header, _ = view(app)
    assert header["model"]["name"] == "tales-bert" and header["lanes"][""]["ids"] == read
    assert app.text_input(key="text").value == "the cat sat on the [MASK]."
    app.text_input(key="text").set_value("another one").run()
    app.switch_page(WALKTHROUGH).run()
    assert app.text_input(key="text").value == "another one"


def test_a_text_of_several_lines_is_read_whole_whatever_the_model_and_the_browser_is_told_of_its_lines() -> None:
    """A browser's line drops line breaks: what stands in an area over it comes apart from the line's own value."""
    app = opened(model="in-context")
    several = app.text_input(key="text").value
    assert several.count("\n") == 3 and view(app)[0]["lanes"][""]["pieces"].count("\\n") == 3
    assert view(app, "text_lines")[0]["fields"] == {"text": several}
    app.text_input(key="text").set_value(several.replace("queen", "king")).run()
    app.selectbox(key="model").set_value("stories").run()
    assert view(app, "text_lines")[0]["fields"]["text"] == several.replace("queen", "king")
    assert view(app)[0]["lanes"][""]["pieces"].count("\\n") == 3
    app.text_input(key="text").set_value("one line").run()
    assert view(app, "text_lines")[0]["fields"] == {"text": ""} and app.text_input(key="text").value == "one line"
    linked = opened(model="translate-en-fr", text="the dog\nsleeps .", target="le\nchien")
    assert view(linked, "text_lines")[0]["fields"] == {"text": "the dog\nsleeps .", "target": "le\nchien"}


def test_an_example_is_carried_as_well_and_what_the_address_names_comes_first() -> None:
    app = opened(WALKTHROUGH, model="translate-en-fr").switch_page(ATTENTION).run()
    assert view(app)[0]["model"]["name"] == "translate-en-fr"
    assert app.text_input(key="text").value == "She is wearing a red dress."
    named = opened(model="induction", text="1 2 3 1 2")
    assert view(named)[0]["model"]["name"] == "induction" and named.text_input(key="text").value == "1 2 3 1 2"


def test_a_text_of_ones_own_opens_on_its_most_telling_head() -> None:
    assert view(opened(model="stories"))[0]["look"]["head"] == 3  # the example's
    header, arrays = view(opened(model="stories", text="The cat saw the dog and the cat ran"))
    layer, head = header["look"]["layer"], header["look"]["head"]
    strongest = {
        name: np.tril(one.data, -1)[..., 1:].max(-1).mean(-1)
        for name, one in arrays.items()
        if name.endswith("attn.pattern")
    }
    assert strongest[f"blocks.{layer}.attn.pattern"][head] == max(one.max() for one in strongest.values())


def test_the_attention_temperature_changes_the_patterns_and_is_named() -> None:
    plain, app = view(opened()), opened()
    hot = view(app.slider(key="attention").set_value(3.0).run())
    assert hot[0]["edited"] == ["*.temperature"] and not plain[0]["edited"]
    assert (hot[1]["blocks.0.attn.pattern"].data != plain[1]["blocks.0.attn.pattern"].data).any()


def test_a_long_text_brings_every_pattern_in_one_byte_a_weight_and_one_layer_in_full() -> None:
    _, arrays = view(opened(text="Max gave the red ball to Anna. " * 20))
    assert "blocks.0.attn.pattern" in arrays and "blocks.1.attn.pattern" not in arrays
    pictures, exact = arrays["patterns.attn"].data, arrays["blocks.0.attn.pattern"].data
    assert pictures.dtype == "uint8" and pictures.shape[1:] == exact.shape
    assert abs(pictures[0] / 255 - exact).max() <= 0.5 / 255 + 1e-7
