"""The page about attention with a text too long to be drawn whole, without a browser."""

from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine.analysis.entropy import attention_entropy
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.edits import ApplyAdapter, Scale, SilenceHeads
from engine.edits.experiment import Experiment
from engine.model.config import MLP, Attention, ModelConfig, Positions
from engine.model.transformer import Transformer, initialise
from engine.runtime import library
from engine.runtime.run import run
from pages.controls.share.measure import Measurement
from pages.controls.what_if.edit_panel import Panels
from pages.controls.what_if.experiment_link import to_link
from tests.engine.model.layers.test_lora import random_adapter
from tests.pages.mounted import field, record
from tests.pages.test_attention import opened, view
from tests.pages.test_generate import charts

pytestmark = pytest.mark.long

CONFIG = ModelConfig(11, 2 * budget.long_tokens, 16, 2, Attention(2), MLP(24), Positions("rotary"))


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model in the models folder that reads more than a page draws whole."""
    Checkpoint(initialise(Transformer(CONFIG), 0)).save(tmp_path / "mine")
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    library.checkpoint.cache_clear()


def text(count: int) -> str:
    return " ".join(str(1 + i * i % 10) for i in range(count))


def long_page(count: int, **address: str) -> AppTest:
    return opened(model="mine", text=text(count), **address)


def test_up_to_a_limit_a_text_is_drawn_whole_and_beyond_it_in_tiles() -> None:
    assert "blocks.0.attn.pattern" in view(long_page(budget.max_tokens))[1]
    header, arrays = view(long_page(budget.max_tokens + 1), "attention")
    assert len(header["lanes"][""]["pieces"]) == budget.max_tokens + 1
    assert max(array.data.size for array in arrays.values()) <= 4 * 64 * 64 * CONFIG.layers
    assert header["notice"] == ""


def test_a_text_beyond_what_the_page_reads_is_cut_and_that_is_said() -> None:
    header, _ = view(long_page(budget.long_tokens + 6), "attention")
    assert len(header["lanes"][""]["pieces"]) == budget.long_tokens
    assert "the last 6 are cut" in header["notice"]


def test_the_attention_temperature_and_the_edits_of_the_address_change_what_is_drawn() -> None:
    silent = SilenceHeads(0, [0, 1])
    link = to_link(Experiment().add(silent))
    plain = view(long_page(300), "attention")
    hot = long_page(300).slider(key="attention").set_value(3.0).run()
    for app, edited in ((hot, ["*.temperature"]), (long_page(300, edits=link), list(silent.touches()))):
        header, arrays = view(app, "attention")
        assert header["edited"] == edited
        assert header["trace"] != plain[0]["trace"]
        assert (arrays["patterns.attn"].data[1] != plain[1]["patterns.attn"].data[1]).any()


def test_an_edit_that_does_not_fit_is_off_and_said_so() -> None:
    made = Experiment().add(SilenceHeads(7, [0])).add(SilenceHeads(0, [1]))
    app = long_page(300, edits=to_link(made))
    panel, _ = view(app, "experiment")
    assert [bool(entry["sentence"]) for entry in panel["entries"]] == [True, False]
    assert view(app, "attention")[0]["edited"] == list(SilenceHeads(0, [1]).touches())


def test_an_adapter_changes_every_tile_of_a_long_text() -> None:
    model = library.checkpoint("mine").model
    edit = ApplyAdapter.of(random_adapter(model, "attn.q"), 2.0)
    app = long_page(300, edits=to_link(Experiment().add(edit)))
    (entry,) = view(app, "experiment")[0]["entries"]
    assert (entry["words"], entry["sentence"]) == ("adapter “adapter” at 2", "")
    header, arrays = view(app, "attention")
    row = run(model, header["lanes"][""]["ids"], edits=[edit])["blocks.0.attn.pattern"][0, 0, 299]
    torch.testing.assert_close(torch.tensor(arrays["row.weights"].data), row, atol=1e-6, rtol=1e-4)


def test_an_edit_under_which_numbers_overflow_is_off_in_a_long_text_too() -> None:
    app = long_page(300, edits=to_link(Experiment().add(Scale("blocks.0.mlp.out", 3e38))))
    (entry,) = view(app, "experiment")[0]["entries"]
    assert "values overflow at" in entry["sentence"]


def test_what_is_drawn_first_is_the_engines() -> None:
    header, arrays = view(long_page(300), "attention")
    trace = run(library.checkpoint("mine").model, header["lanes"][""]["ids"])
    row = trace["blocks.0.attn.pattern"][0, 0, 299]
    assert torch.equal(torch.tensor(arrays["row.weights"].data), row)


def test_a_long_text_is_shown_before_and_after_and_every_value_can_be_edited() -> None:
    silent = SilenceHeads(1, [0])
    app = long_page(300, edits=to_link(Experiment().add(silent)))
    header, arrays = view(app, "effects")
    ids, model = view(app, "attention")[0]["lanes"][""]["ids"], library.checkpoint("mine").model
    before, after = run(model, ids)["logits"][0, -1], run(model, ids, edits=[silent])["logits"][0, -1]
    listed = arrays["shift.id"].data[0].tolist()
    expected = torch.stack([before[listed], after[listed]], -1)
    torch.testing.assert_close(torch.tensor(arrays["shift.logit"].data[0]), expected, atol=1e-5, rtol=1e-4)
    assert header["took"]["start"] == 1 and header["later"]
    record(app, Panels).states["what if"].opening = {"do": "open", "kind": "value"}
    app.run()
    field(app.selectbox, "value").set_value("attn.scores").run()
    assert [each.label for each in app.text_input if each.label in ("pos", "key")] == []  # tokens, by their names
    shown = {each.label.split(" (")[0]: len(each.options) for each in app.multiselect}
    assert shown == {"at": 300, "of what is viewed at": 300}


def test_while_guesses_are_asked_a_long_text_is_the_run_before_the_edits() -> None:
    silent = SilenceHeads(1, [0])
    app = long_page(300, edits=to_link(Experiment().add(silent)))
    plain = view(long_page(300), "attention")[0]["trace"]
    app.query_params["predict"] = "edits"
    app.run()
    header, _ = view(app, "effects")
    assert header["hidden"] and view(app, "attention")[0]["trace"] == plain
    app.query_params["revealed"] = header["trace"]
    app.run()
    assert not view(app, "effects")[0]["hidden"] and view(app, "attention")[0]["edited"] == list(silent.touches())


def test_the_chart_of_all_layers_is_measured_layer_by_layer_until_it_is_stopped_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = long_page(300)
    with monkeypatch.context() as patched:
        patched.setattr(Measurement, "go_on", lambda *_: None)  # as if it were broken off at once
        stopped.session_state["charts"] = True
        stopped.run()
        assert [one.value for one in stopped.get("progress")] == [0] and not charts(stopped)
        next(button for button in stopped.button if button.label == "Stop").click().run()
    button = next(button for button in stopped.button if button.label == "Go on")
    app = button.click().run()
    ids = view(app, "attention")[0]["lanes"][""]["ids"]
    whole = attention_entropy(run(library.checkpoint("mine").model, ids))
    ((_, data),) = charts(app)
    (frame,) = data.values()
    torch.testing.assert_close(torch.tensor(frame["entropy"]).float(), whole.flatten(), atol=1e-5, rtol=1e-4)
