"""The page about a checkpoint without a browser: how one is opened, what a person is told, and where it is carried."""

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas as pd
import pytest
import torch
from huggingface_hub import close_session
from safetensors.torch import load_file, save_file
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from engine import Checkpoint, load
from engine.budget import budget
from engine.checkpoints import assemble, trial
from engine.checkpoints.locate import SHIPPED
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.runtime import device, library
from engine.runtime.device import DeviceMemory
from pages.controls.checkpoint import open_form
from pages.controls.checkpoint.link import FORMER
from pages.controls.checkpoint.open_form import TYPED
from pages.controls.visitor import COOKIE, OPENED
from tests.engine.checkpoints.hub_server import Repo, serving
from tests.pages.mounted import at_page
from views.charts.show import SHOWN
from views.checkpoint.embedding import nearest_rows, vector_table
from views.core.payload import Named, unpack

APP = str(Path(__file__).parents[2] / "app.py")
CONFIG = ModelConfig(40, 16, 16, 2, Attention(4), MLP(24))


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """As the server computes: many small products wait for each other's threads otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Checkpoint(initialise(Transformer(CONFIG), 0), name="mine").save(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty models folder."""
    (tmp_path / "models").mkdir()
    monkeypatch.setattr(budget, "models_folder", str(tmp_path / "models"))
    library.checkpoint.cache_clear()
    yield tmp_path / "models"
    library.checkpoint.cache_clear()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The visitor is on the server's own machine."""
    monkeypatch.setattr(ContextProxy, "ip_address", property(lambda self: None))


def page(model: str = "", path: str = "inspect/checkpoint.py", charts: bool = False) -> AppTest:
    """Inside the app, whose navigation its links need; with the charts, which take longest, where a test wants them."""
    app = AppTest.from_file(APP, default_timeout=60).switch_page(f"pages/{path}")
    app.session_state[SHOWN] = {"checkpoint"} if charts else set()  # no browser reports that the view is drawn
    if model:
        app.query_params["model"] = model
    return app


def payload(app: AppTest, name: str) -> tuple[dict[str, Any], dict[str, Named]] | None:
    assert not app.exception, app.exception
    found = [e.proto for e in app.get("bidi_component") if e.proto.component_name.split(".")[-2] == name]
    return unpack(found[0].bytes) if found else None


def header_bar(app: AppTest) -> dict[str, Any]:
    """What the bar in the header is given."""
    found = payload(app, "bar")
    assert found is not None
    return found[0]


def told(app: AppTest) -> str:
    assert not app.exception, app.exception
    return re.sub(r"\\(.)", r"\1", " ".join(element.value for element in [*app.warning, *app.info]))


def name_of(app: AppTest) -> str:
    found = payload(app, "checkpoint")
    assert found is not None, told(app)
    return str(found[0]["name"])


def tensors(app: AppTest) -> pd.DataFrame | None:
    """The table of every tensor, where the page has one."""
    assert not app.exception, app.exception
    return next((each.value for each in app.dataframe if "in the file" in each.value), None)


def figures(app: AppTest) -> list[dict[str, Any]]:
    return [json.loads(each.proto.spec) for each in app.get("plotly_chart")]


def drawn(app: AppTest) -> list[pd.DataFrame]:
    """The rows of each data set of each Altair chart."""
    return [
        convert_arrow_bytes_to_pandas_df(one.data.data)
        for each in app.get("vega_lite_chart")
        for one in each.proto.datasets
    ]


def typed(app: AppTest, text: str) -> AppTest:
    return app.text_input(key=TYPED).set_value(text).run()


def test_the_card_comes_before_the_charts_until_a_browser_reports_it() -> None:
    app = page()
    first = payload(app.run(), "checkpoint")
    assert first is not None and first[0]["reports"] and not figures(app) and tensors(app) is None
    app.session_state[SHOWN] = {"checkpoint"}  # as release_charts does
    whole = payload(app.run(), "checkpoint")
    assert whole is not None and not whole[0]["reports"] and figures(app) and tensors(app) is not None


def test_first_open_is_a_finished_picture() -> None:
    app = page(charts=True).run()
    assert name_of(app) == "stories" and "53 tensors, every one accounted for" in app.success[0].value
    bins = next(frame for frame in drawn(app) if "to" in frame)
    assert bins["count"].sum() == 128 * 128
    (figure,) = figures(app)
    assert sum(len(trace["customdata"]["bdata"]) > 0 for trace in figure["data"] if trace["type"] == "scattergl") == 6
    table = tensors(app)
    assert table is not None and len(table) == 53
    assert not app.warning and not app.error


@pytest.mark.parametrize("name", ["tales-bert", "translate-en-fr", "digits-vit", "digits-imagegpt", "infill"])
def test_every_kind_of_model_is_shown(name: str) -> None:
    assert name_of(page(name, charts=True).run()) == name


def test_a_link_to_nothing_says_what_there_is() -> None:
    app = page("nothing").run()
    assert "the model 'nothing' is not here" in told(app) and name_of(app) == "stories"
    assert "upload its files again" in told(page("mine~0123456789").run())


def test_a_link_is_never_a_path(folder: Path) -> None:
    app = page(str(folder)).run()
    assert "links and menus open no paths" in told(app) and name_of(app) == "stories"


def test_a_path_is_opened_for_a_visitor_on_the_machine(folder: Path, here: None) -> None:
    app = typed(page().run(), str(folder))
    assert re.fullmatch(r"mine~[0-9a-f]{10}", name_of(app))
    name = name_of(app)
    assert app.session_state[OPENED.name][0] == name and app.text_input(key=TYPED).value == ""
    assert name_of(page(name).run()) == name  # whoever has the link
    (folder.parent / "empty").mkdir()
    wrong_ones = {"nowhere": "No model or folder named", "empty": "the folder holds nothing"}
    for wrong, said in ((folder.parent / name, said) for name, said in wrong_ones.items()):
        app = typed(app, str(wrong))  # the open model stays, and what was typed
        assert said in told(app) and name_of(app) == name and app.text_input(key=TYPED).value == str(wrong)


def test_a_path_of_what_does_not_fit_the_memory_opens_as_a_map(
    folder: Path, here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = load_file(folder / "model.safetensors")
    numbers = sum(tensor.numel() for tensor in weights.values())
    halved = {name: tensor.bfloat16() for name, tensor in weights.items()}
    save_file(halved, folder / "model.safetensors", {"format": "pt"})
    monkeypatch.setattr(assemble, "available_memory", lambda: 3 * numbers)
    app = typed(page(charts=True).run(), str(folder))
    assert re.fullmatch(r"mine~[0-9a-f]{10}", name_of(app)) and figures(app) and tensors(app) is not None
    assert "Its weights stay in their file" in told(app)


def test_a_link_to_a_path_holds_over_a_restart_of_the_server(
    folder: Path, here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = name_of(typed(page().run(), str(folder)))
    for kept, empty in (("_offers", library.LruCache[library.LoadOptions](2**20)), ("_names", {})):
        monkeypatch.setattr(library, kept, empty)
    library.checkpoint.cache_clear()
    app = page(name).run()
    assert name_of(app) == name and name in app.selectbox(key="model").options
    folder.rename(folder.parent / "away")
    monkeypatch.setattr(library, "_offers", library.LruCache[library.LoadOptions](2**20))
    assert "was opened from are not there any more" in told(page(name).run())


@pytest.mark.parametrize(
    ("address", "headers"), [("10.0.0.7", {}), (None, {"x-forwarded-for": "10.0.0.7"}), ("2001:db8::1", {})]
)
def test_a_path_is_refused_to_anybody_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, address: str | None, headers: dict[str, str]
) -> None:
    app = page().run()
    monkeypatch.setattr(ContextProxy, "ip_address", property(lambda self: address))
    monkeypatch.setattr(ContextProxy, "headers", property(lambda self: headers))
    app = typed(app, str(folder))
    assert "on the server's own machine alone" in told(app)
    assert name_of(app) == "stories"


def test_what_was_opened_is_offered_on_every_page(folder: Path, here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    app = typed(page().run(), str(folder))
    name = name_of(app)
    assert [link.proto.query_string for link in app.get("page_link")] == [
        urlencode({key: name}) for key in ("model", "model", "model", "a_model", "model")
    ]
    for path in ("explore/walkthrough.py", "explore/attention.py", "explore/generate.py", "inspect/architecture.py"):
        carried = page(name, path).run()
        assert not carried.exception and carried.selectbox(key="model").value == name
        assert name in page(path=path).run().selectbox(key="model").options  # after a reload
    compared = page(path="explore/compare.py")
    compared.query_params["a_model"] = name
    assert compared.run().selectbox(key="a_model").value == name
    monkeypatch.setattr(ContextProxy, "cookies", property(lambda self: {COOKIE: "0" * 32}))
    assert name not in page().run().selectbox(key="model").options  # somebody else


def test_missing_tensors_are_told_with_the_table_of_those_that_came(folder: Path, models: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    folder.rename(models / "holes")
    kept = {name: tensor for name, tensor in weights.items() if ".1.attn" not in name}
    save_file(kept, models / "holes" / "model.safetensors")
    app = page("holes", charts=True).run()
    table = tensors(app)
    assert table is not None and (table["status"] == "missing").sum() == len(weights) - len(kept)
    assert table["status"].iloc[0] == "missing" and "that are not there" in told(app)
    assert payload(app, "checkpoint") is None


def test_a_broken_file_is_one_sentence_without_the_servers_paths(folder: Path, models: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    folder.rename(models / "broken")
    (models / "broken" / "model.safetensors").write_bytes(data[: len(data) // 2])
    said = told(page("broken").run())
    assert "model.safetensors" in said and str(models) not in said


def test_weights_alone_say_what_was_assumed_and_can_be_corrected(folder: Path, models: Path) -> None:
    (folder / "config.json").unlink()
    folder.rename(models / "bare")
    app = page("bare").run()
    assumed = {one.key: one.value for one in library.checkpoint("bare").report.assumed}
    other = at_page("pages/explore/walkthrough.py", model="bare").run()  # on every page until then
    assert "n_head" in header_bar(app)["assumed"] and header_bar(other)["assumed"] == header_bar(app)["assumed"]
    assert app.text_input(key="assumed n_head bare").value == str(assumed["n_head"])
    app.text_input(key="assumed n_head bare").set_value("4")
    app.button[0].click().run()
    name = name_of(app)
    assert re.fullmatch(r"bare~[0-9a-f]{10}", name)
    assert library.checkpoint(name).config.attention.heads == 4
    assert header_bar(app)["assumed"] == [], "what somebody has seen and sent is confirmed"
    assert name_of(page("bare").run()) == "bare"


def test_names_of_ones_own_are_mapped_in_a_form(folder: Path, models: Path) -> None:
    (models / "own").mkdir()
    tensors = load_file(folder / "model.safetensors")
    own = {name.replace("transformer.h.", "layer").replace(".ln_", ".norm"): t for name, t in tensors.items()}
    own = {name.replace("transformer.", "outer."): tensor for name, tensor in own.items()}
    own["outer.last"] = torch.cat([own.pop(f"outer.normf.{part}") for part in ("weight", "bias")])
    torch.save(own, models / "own" / "pytorch_model.bin")
    app = page("own").run()
    assert "the nearest is" in told(app) and str(models) not in told(app)
    (area,) = app.text_area
    assert "outer.wte.weight ->" in area.value.splitlines()
    area.set_value("absent -> transformer.wte.weight")
    app.button(key="FormSubmitter:names of tensors-Open with these names").click().run()
    assert "must name tensors of the file" in told(app)
    outside = "outer.last -> transformer.ln_f.weight, transformer.ln_f.bias\nouter.* -> transformer.*\n"
    inside = "layer{}.norm*.* -> transformer.h.{}.ln_*.*\nlayer{}.* -> transformer.h.{}.*"
    app.text_area[0].set_value(outside + inside)
    app.button(key="FormSubmitter:names of tensors-Open with these names").click().run()
    assert not app.exception and not app.text_area
    opened = library.checkpoint(name_of(app))
    assert opened.report.ok and opened.family == "gpt2"


def test_half_precision_is_widened_or_kept(models: Path) -> None:
    half = initialise(Transformer(CONFIG), 0).to(torch.bfloat16)
    Checkpoint(half, name="half").save(models / "half")
    app = page("half", charts=True).run()
    assert library.checkpoint(name_of(app)).model.dtype is torch.float32
    app.selectbox(key="numbers half").select("as stored").run()
    name = name_of(app)
    assert library.checkpoint(name).model.dtype is torch.bfloat16
    app.selectbox(key=f"numbers {name}").select("float32").run()
    assert name_of(app) == "half"


def test_a_model_is_computed_where_a_person_says(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Checkpoint(initialise(Transformer(CONFIG), 0), name="mine").save(models / "mine")
    app = page("mine").run()
    assert not [one for one in app.selectbox if one.label == "computed on"]  # there is nothing to choose here
    monkeypatch.setattr(device, "list_cards", lambda: [DeviceMemory(torch.device("cuda", 0), 10**8)])
    app.run()
    menu = app.selectbox(key="device mine")
    assert menu.options[0] == "as the setting says (cpu)" and "0.1 GB free" in menu.options[2]
    menu.select("cuda:0").run()
    name = name_of(app)
    assert not app.exception and "cuda:0 has 0.1 GB free" in told(app) and library.parse_name(name).device == "cuda:0"
    assert library.LoadOptions.from_record(library.parse_name(name).record).key == library.parse_name(name).key
    app.selectbox(key=f"device {name}").select("").run()
    assert name_of(app) == "mine"


def zipped(folder: Path, top: str = "") -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, top + file.name)
    return whole.getvalue()


def test_a_server_that_cannot_take_an_upload_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "uploads_folder", str(folder / "config.json"))  # a file is no folder
    app = page().run()
    app.file_uploader[0].set_value(("mine.zip", zipped(folder), "application/zip")).run()
    assert not app.exception and "cannot (not a directory)" in told(app) and str(folder) not in told(app)


def test_uploaded_files_are_opened_under_a_name_of_their_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page().run()
    app.file_uploader[0].set_value(("tom & <jerry>.zip", zipped(folder, "inside/"), "application/zip")).run()
    name = name_of(app)
    assert re.fullmatch(r"tom-jerry~[0-9a-f]{10}", name)
    expected = load(folder).model.state_dict()
    assert all(
        torch.equal(tensor, expected[key]) for key, tensor in library.checkpoint(name).model.state_dict().items()
    )
    assert app.file_uploader[0].value in (None, [])  # an empty box
    monkeypatch.setattr(open_form, "check_upload", lambda *files: None)  # the trial of the first tells how that goes
    again = page().run()
    again.file_uploader[0].set_value(("tom & <jerry>.zip", zipped(folder), "application/zip")).run()
    assert name_of(again) != name


def test_an_upload_that_is_no_checkpoint_is_one_sentence() -> None:
    app = page().run()
    app.file_uploader[0].set_value(("x.zip", b"PK no zip", "application/zip")).run()
    assert "x.zip" in told(app) and name_of(app) == "stories"


def test_an_upload_that_does_not_open_in_its_trial_is_one_sentence_and_no_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = page().run()
    app.file_uploader[0].set_value(("x.safetensors", b"no weights", "application/octet-stream")).run()
    assert told(app).count("x.safetensors must be a safetensors file") == 1 and name_of(app) == "stories"
    monkeypatch.setattr(trial, "PATIENCE", 0.001)
    app.file_uploader[0].set_value(("x.zip", zipped(SHIPPED / "induction"), "application/zip")).run()
    assert "the weights must open within" in told(app) and name_of(app) == "stories"


@pytest.fixture
def hub(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repo]:
    for variable in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as fresh:
        served = fresh()
        monkeypatch.setenv("HF_ENDPOINT", served.address + "/")
        served.repos["animals/cat"] = Repo({path.name: path.read_bytes() for path in folder.iterdir()}, gated=False)
        yield served.repos["animals/cat"]
        close_session()


def test_a_hubs_checkpoint_shows_its_sizes_before_anything_comes(hub: Repo, tmp_path: Path) -> None:
    app = typed(page().run(), "hub:animals/cat")
    said = re.sub(r"\\(.)", r"\1", " ".join(element.value for element in app.markdown))
    assert "`model.safetensors`" in said and "licence **mit**" in said
    assert not library.knows("hub:animals/cat") and name_of(app) == "stories"  # until it has come
    (button,) = [button for button in app.button if button.label.startswith("Download")]
    assert re.fullmatch(r"Download [\d.]+ kB", button.label)
    button.click().run()
    assert name_of(app) == "hub:animals/cat" and app.session_state[OPENED.name][0] == "hub:animals/cat"
    assert name_of(page("hub:animals/cat").run()) == "hub:animals/cat"


@pytest.mark.parametrize(("name", "said"), [("hub:animals/dog", "dog"), ("hub:../x", "Expected hub:org/name")])
def test_a_hub_that_has_it_not_is_one_sentence(hub: Repo, name: str, said: str) -> None:
    app = typed(page().run(), name)
    assert said in told(app) and name_of(app) == "stories"


def test_a_checkpoint_is_taken_away_as_a_folder_and_as_one_file(tmp_path: Path) -> None:
    app = page("tales-bert").run()
    assert [button.label for button in app.download_button] == ["Folder, zipped", "One safetensors file"]


def test_a_matrix_a_head_and_its_circuit_are_opened_by_a_link() -> None:
    app = page(charts=True)
    for name, text in {"matrix": "blocks.2.attn.out.weight", "head": "2", "circuit": "true"}.items():
        app.query_params[name] = text
    app.run()
    said = " ".join(one.value for one in app.markdown)
    assert "OV circuit · layer 3 · head 2" in said and not app.info
    bins = next(frame for frame in drawn(app) if "to" in frame)
    assert bins["count"].sum() == 128 * 128


def test_a_link_to_what_a_checkpoint_does_not_have_says_so() -> None:
    app = page(charts=True)
    for name, text in {"matrix": "nothing", "token": "99999", "how": "umap"}.items():
        app.query_params[name] = text
    app.run()
    (lost,) = [one.value for one in app.info]
    for part in ("matrix is 'nothing'", "token is '99999'", "how is 'umap'"):
        assert part in re.sub(r"\\(.)", r"\1", lost)
    assert name_of(app) == "stories"


def test_what_an_earlier_link_had_behind_the_hash_is_opened() -> None:
    app = page(charts=True)
    app.run()
    app.session_state["pages.controls.state.page_state.Visits"].pages["checkpoint"].texts = dict(
        FORMER[name](value)
        for name, value in {
            "matrix": "blocks.1.attn.q.weight", "head": 1, "circuit": True, "counts": "log", "token": 300, "how": "pca",
            "table": "embed.tokens.weight", "frame": "all", "without": ["byte"], "status": "tied", "named": "lm",
        }.items()
    )  # fmt: skip
    app.run()
    said = " ".join(one.value for one in app.markdown)
    assert "QK circuit · layer 2 · head 2" in said and "id 300" in said
    assert app.toggle(key="log_counts").value and app.multiselect(key="without").value == ["byte"]
    table = tensors(app)
    assert table is not None and table["in the file"].tolist() == ["lm_head.weight"]
    assert not app.info


def test_a_token_is_found_and_its_nearest_are_listed() -> None:
    app = page(charts=True).run()
    app.text_input(key="find").set_value("dog").run()
    checkpoint = load("stories")
    table = vector_table(checkpoint, "embed.tokens.weight")
    assert table.pieces is not None
    near = nearest_rows(checkpoint, table.name, table.pieces.index("·dog"))
    listed = next(each.value for each in app.dataframe if "cosine" in each.value)
    assert listed["token"].tolist() == [table.label(id) for id in near.ids.tolist()]
    assert listed["cosine"].tolist() == pytest.approx(near.similarity.tolist())


def test_no_figure_of_a_matrix_is_cut_by_the_end_of_a_line() -> None:
    said = [one.value for one in page("stories", charts=True).run().caption if "**" in one.value]
    figures = [figure for caption in said for figure in caption.split("  \n")[0].split(" &ensp; ")]
    assert len(figures) == 11 and any(one.startswith("90\u00a0%\u00a0of\u00a0‖W‖²\u00a0**") for one in figures)
    assert not any(" " in one or "-" in one for one in figures)  # a minus is one, no hyphen
