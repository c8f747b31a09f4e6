"""Adapters on the pages: opened by path, applied by a link, moved in the list, carried to Compare and exported."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs
from zipfile import ZipFile

import pytest
import torch
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest
from torch import Tensor

from engine import load, run
from engine.budget import budget
from engine.checkpoints import write_adapter
from engine.checkpoints.adapters.write import export_adapters
from engine.checkpoints.save import export_checkpoint
from engine.edits import ApplyAdapter
from engine.edits.adapters import find_adapter
from engine.inputs.readers import read_text
from engine.model.layers.lora import Adapter
from engine.runtime import library
from pages.controls.what_if import edit_panel
from pages.controls.what_if import experiment as what_if
from pages.controls.what_if.edit_panel import Panels
from pages.controls.what_if.experiment_link import to_link
from tests.engine.model.layers.test_lora import random_adapter
from tests.pages.mounted import field, record, try_edits
from tests.pages.test_checkpoint import APP, name_of, page, told, typed
from tests.pages.test_edit_form import edits, new, press
from tests.pages.test_experiment import ATTENTION, QUIET, WALKTHROUGH, made, opened, sent


def keep(folder: Path, **options: Any) -> Path:
    """An adapter of stories, as PEFT's files."""
    base = library.checkpoint("stories")
    write_adapter(random_adapter(base.model, "attn.q", "mlp.out", **options), base, folder)
    return folder


def name(folder: Path) -> str:
    return library.offer(library.LoadOptions(folder, title=folder.name))


def own(folder: Path) -> Adapter:
    (adapter,) = library.checkpoint(name(folder)).adapters
    return adapter


@pytest.fixture
def pirate(tmp_path: Path) -> Path:
    return keep(tmp_path / "pirate")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The visitor is on the server's own machine."""
    monkeypatch.setattr(ContextProxy, "ip_address", property(lambda self: None))
    yield


def links(app: AppTest) -> dict[str, dict[str, str]]:
    """Queries of the links to other pages."""
    assert not app.exception, app.exception
    return {
        one.proto.label: {key: value for key, (value,) in parse_qs(one.proto.query_string).items()}
        for one in app.get("page_link")
    }


def drawn_logits(app: AppTest) -> tuple[list[int], Tensor, Tensor]:
    """The ids that were read, and of each position's candidates (pos candidate) the ids and the logits."""
    header, arrays = sent(app, "walkthrough")
    ids, found = (torch.tensor(arrays[f"next.{each}"].data) for each in ("id", "logit"))
    return header["lanes"][""]["ids"], ids.long(), found


def test_a_folder_with_an_adapter_is_opened_as_what_its_owner_made(pirate: Path, here: None) -> None:
    app = typed(page().run(), str(pirate))
    assert name_of(app) == name(pirate), told(app)
    (table,) = [one.value for one in app.dataframe if "adapter" in one.value]
    assert table.loc[0, ["adapter", "rank", "alpha"]].tolist() == ["pirate", "3", "6"]
    assert "attn.q" in table.loc[0, "acts on"]
    queries = links(app)
    assert queries["Walkthrough"] == queries["Attention"] == queries["Generate"] == {"model": name(pirate)}
    base, adapter = load("stories").model, own(pirate)
    drawn = {}
    for strength in (None, 0.0, 1.0, 2.0):
        experiment = {} if strength is None else {"edits": to_link(made(ApplyAdapter.of(adapter, strength)))}
        app = opened(address=queries["Walkthrough"] | experiment)
        assert sent(app, "bar")[0]["model"].endswith("adapter on stories")
        ids, candidates, found = drawn_logits(app)
        edits = [ApplyAdapter.of(adapter, 1.0 if strength is None else strength)]
        expected = run(base, ids, edits=edits)["logits"][0]
        torch.testing.assert_close(found, expected.gather(1, candidates), atol=1e-4, rtol=1e-4)
        drawn[strength] = expected
    assert torch.equal(drawn[None], drawn[1.0]) and not torch.allclose(drawn[0.0], drawn[1.0], atol=1e-2)


def test_an_adapter_is_switched_off_and_on_again(pirate: Path) -> None:
    app = opened(address={"model": name(pirate)})
    (switch,) = [one for one in app.toggle if one.label == "Adapter pirate"]
    assert switch.value and not edits(app)
    (switch,) = [one for one in switch.set_value(False).run().toggle if one.label == "Adapter pirate"]
    assert edits(app) == [ApplyAdapter.of(own(pirate), 0.0)] and not switch.value
    switch.set_value(True).run()
    assert not edits(app)
    assert not [one for one in opened(address={"model": "stories"}).toggle if one.label.startswith("Adapter")]


def test_a_link_of_another_page_takes_the_place_of_the_edits_and_undo_brings_them_back(pirate: Path) -> None:
    app = opened(experiment=made(QUIET))
    app.query_params["model"] = name(pirate)
    app.query_params["edits"] = to_link(made(ApplyAdapter.of(own(pirate))))
    app.switch_page(WALKTHROUGH).run()
    assert edits(app) == [ApplyAdapter.of(own(pirate))]
    assert sent(app, "experiment")[0]["entries"][0]["words"] == "adapter “pirate” at 1"
    assert record(app, what_if.EditTrial).experiment.undo() == made(QUIET)
    try_edits(app, made(QUIET))
    assert edits(app.run()) == [QUIET]


def test_compare_shows_the_adapted_model_and_its_base(pirate: Path) -> None:
    queries = links(page(name(pirate)).run())
    app = AppTest.from_file(APP, default_timeout=60)
    for key, value in queries["Compare"].items():
        app.query_params[key] = value
    header, _ = sent(app.switch_page("pages/explore/compare.py").run(), "compare")
    assert [side["edits"] for side in header["sides"]] == [0, 1]
    assert not any("edit" in side["notice"] for side in header["sides"])


def test_the_form_offers_what_fits_and_its_strength_can_be_set(tmp_path: Path) -> None:
    pirate, polite = keep(tmp_path / "pirate"), keep(tmp_path / "polite", seed=5, rank=2)
    first, second = (ApplyAdapter.of(own(folder)) for folder in (pirate, polite))
    app = opened(address={"model": name(pirate)}, opened=[name(pirate), name(polite)])
    app = new("adapter", app)
    assert field(app.selectbox, "adapter").options[:2] == ["pirate (rank 3)", "polite (rank 2)"]
    field(app.selectbox, "adapter").set_value(second.adapter).run()
    field(app.slider, "strength").set_value(1.5).run()
    app = press(new("adapter", press(app)))
    first = replace(first, strength=0.0)  # the weights hold it: the form begins by switching it off
    assert edits(app) == [replace(second, strength=1.5), first]
    record(app, Panels).states["what if"].opening = {"do": "edit", "number": 0}
    app.run()
    field(app.slider, "strength").set_value(0.05).run()
    assert edits(press(app)) == [replace(second, strength=0.05), first]
    panel = sent(app, "experiment")[0]
    assert [entry["words"] for entry in panel["entries"]] == ["adapter “polite” at 0.05", "adapter “pirate” at 0"]
    assert [entry["strength"] for entry in panel["entries"]] == [[0.05, 0.0, 2.0], [0.0, 0.0, 2.0]]
    assert edits(opened(address={"model": "stories"}, experiment=made(first))) == [first]  # of the same shapes


def test_what_runs_trained_for_a_model_is_offered_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path))
    keep(tmp_path / "sailor" / "adapter" / "sailor", seed=11)
    (tmp_path / "broken" / "adapter" / "broken").mkdir(parents=True)
    (tmp_path / "broken" / "adapter" / "broken" / "adapter_config.json").write_text("{")
    app = press(new("adapter", opened(address={"model": "stories"})))
    (edit,) = edits(app)
    assert sent(app, "experiment")[0]["entries"][0]["words"] == "adapter “sailor” at 1"
    assert library.adapter_folder(edit.adapter) == tmp_path / "sailor" / "adapter" / "sailor"
    assert "sailor" not in {adapter.name for adapter in library.adapters_for("everyday")}


def test_a_model_that_none_fits_says_how_to_get_one(pirate: Path) -> None:
    app = opened(address={"model": "digits-vit"}, experiment=made(ApplyAdapter.of(own(pirate))))
    panel = sent(app, "experiment")[0]
    (lacking,) = [kind["lacking"] for kind in panel["kinds"] if kind["name"] == "adapter"]
    assert "adapter_config.json" in lacking
    assert "use it with the model it was made for" in panel["entries"][0]["sentence"]
    assert panel["opens"] == [False]


@pytest.mark.parametrize("where", [WALKTHROUGH, ATTENTION])
def test_a_link_to_an_adapter_that_is_not_here_says_so_in_one_sentence(where: str) -> None:
    app = opened(where, address={"edits": '[{"edit": "ApplyAdapter", "adapter": "gone~0123456789ab"}]'})
    (entry,) = sent(app, "experiment")[0]["entries"]
    assert entry["sentence"].endswith("the adapter 'gone~0123456789ab' is not here; open its folder again.")
    assert sent(app, "effects")[0]["trace"] is None


def test_the_strength_of_an_adapter_is_moved_in_the_list(pirate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_panel.st, "session_state", {})
    edit = ApplyAdapter.of(own(pirate))
    moved = what_if.EDITS_OF_PAGE.carry_out(made(QUIET, edit), {"do": "strength", "number": 1, "value": 2})
    assert moved == made(QUIET, replace(edit, strength=2.0)) and moved.undo() == made(QUIET, edit)
    for number, value in ((0, 1.0), (2, 1.0), (-1, 1.0), (1, 2.1), (1, float("nan")), (1, "1")):
        with pytest.raises(ValueError, match=r"Reload and try again|strength of an adapter"):
            what_if.EDITS_OF_PAGE.carry_out(made(QUIET, edit), {"do": "strength", "number": number, "value": value})


def test_an_export_holds_the_adapter_or_weights_with_it(pirate: Path, tmp_path: Path) -> None:
    app = page(name(pirate)).run()
    assert [one.label for one in app.download_button][2:] == ["Adapter (PEFT)"]
    checkpoint = library.checkpoint(name(pirate))
    with ZipFile(export_adapters(checkpoint, tmp_path)) as zipped:
        zipped.extractall(tmp_path / "again")
    assert own(tmp_path / "again" / "pirate").key == own(pirate).key
    with ZipFile(export_checkpoint(checkpoint, "folder", tmp_path)) as zipped:
        zipped.extractall(tmp_path / "merged")
    (folder,) = (tmp_path / "merged").iterdir()
    merged, ids = load(folder), read_text(checkpoint, "Once upon a time", 64).read
    expected = run(checkpoint.model, ids, edits=[ApplyAdapter.of(own(pirate))])["logits"]
    torch.testing.assert_close(run(merged.model, ids)["logits"], expected, atol=1e-4, rtol=1e-4)
    assert not merged.adapters


def test_an_uploaded_adapter_is_called_as_it_was_uploaded(tmp_path: Path) -> None:
    folder = TemporaryDirectory()
    keep(Path(folder.name), seed=7)
    uploaded = library.offer(library.LoadOptions(Path(folder.name), title="mine", folder=folder))
    (adapter,) = library.checkpoint(uploaded).adapters
    assert adapter.name == "mine" and find_adapter(adapter.key).name == "mine"
    assert library.adapter_folder(adapter.key) is None


def test_an_export_stays_in_its_zip_whatever_the_adapter_is_called(pirate: Path, tmp_path: Path) -> None:
    checkpoint = library.checkpoint(name(pirate))
    checkpoint = replace(checkpoint, adapters=tuple(replace(each, name="..") for each in checkpoint.adapters))
    with ZipFile(export_adapters(checkpoint, tmp_path)) as zipped:
        assert zipped.namelist() == [
            f"adapter/{file}" for file in ("README.md", "adapter_config.json", "adapter_model.safetensors")
        ]
