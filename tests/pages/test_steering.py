"""The page Steering without a browser: its numbers are the engine's, its vector goes to a file and comes back."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import load, run
from engine.analysis.steering import SteeringVector, find_direction, pack_vector, steer_corpus
from engine.edits import ProjectOut
from engine.edits.experiment import Entry, Experiment
from engine.generation.generate import generate
from engine.inputs.corpus import Corpus
from engine.inputs.readers import read_text
from engine.runtime import library
from pages.controls.what_if.experiment import EDITS_OF_PAGE
from pages.controls.what_if.experiment_link import from_link
from tests.pages.mounted import field
from tests.pages.test_edit_form import edits, new, press
from tests.pages.test_experiment import sent
from tests.pages.test_probes import APP, told
from views.core.codegen import Fields
from views.core.lanes import lanes
from views.core.questions import Page
from views.steering.charts import CHARTS
from views.steering.questions import STEERING, SteeringContext

TEXT = "Once upon a time there was a"


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page("pages/analyse/steering.py").run()
    assert not app.exception, app.exception
    return app


def shown_vector(app: AppTest) -> SteeringVector:
    """The vector of the prompts that stand on the page, as the engine makes it."""
    toward, away = (app.text_area(key=name).value.split("\n") for name in ("toward", "away"))
    return find_direction(library.checkpoint("stories"), toward, away, layer=2, read="mean")


def test_the_page_steers_by_its_prompts_and_shows_what_follows() -> None:
    app = opened(model="stories", text=TEXT, strength="2")
    stories, vector = library.checkpoint("stories"), shown_vector(opened(model="stories"))
    she, he = (stories.tokenizer.ids(word, special=False)[0] for word in (" she", " he"))
    found = steer_corpus(stories, vector, she, he)
    mean, says = found.interval.mean, told(app)
    assert mean.diff().min() > 0 and mean[-1] - mean[0] > 20, "the default prompts do something that is seen"
    assert found.loss[5] - found.loss[3] < 0.1, "and at twice the vector the model is still fluent"
    (table,) = (one.value for one in app.dataframe)
    assert table["lead of ·she over ·he"].tolist() == mean.tolist() and table["loss"].tolist() == found.loss.tolist()
    assert f"a vector of length **{vector.length:.3f}**" in says and not app.warning
    assert all(f"**{title}**" in says for title in CHARTS)
    for strength in (-2.0, 0.0, 2.0):
        steps = generate(stories, TEXT, 20, greedy=True, edits=[vector.edit(strength)])
        written = stories.tokenizer.decode([step.id for step in steps])
        assert f"{strength:g} times the vector: {written}".replace(" ", "") in says.replace("\\", "").replace(" ", "")
    (line,) = (one.value for one in app.markdown if one.value.startswith("Try it"))
    for page, address in links_of(line).items():
        linked, lost = from_link(address["b_edits" if page == "compare" else "edits"][0])
        assert [one.edit for one in linked.entries] == [vector.edit(2.0)] and not lost, page


def links_of(line: str) -> dict[str, dict[str, list[str]]]:
    found = [part.partition(")")[0].replace("\\", "") for part in line.split("](")[1:]]
    return {urlsplit(one).path: parse_qs(urlsplit(one).query) for one in found}


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ({"model": "digits-vit"}, "this one reads pictures; choose another"),
        ({"model": "tales-bert"}, "standard deviations apart"),
        ({"model": "translate-en-fr"}, "encoder.blocks"),
        ({"model": "stories", "away": " "}, "Mean of 8 prompts, read at"),
        ({"model": "stories", "toward": "\n \n"}, "got none; write one a line"),
        ({"model": "stories", "toward": "a\n" * 10_000}, "got 10,000; take fewer"),
        ({"model": "stories", "toward": "He", "away": "\nHe\n"}, "no direction from one to the other"),
        ({"model": "stories", "toward": "He", "away": "She"}, "With two prompts in each set"),
        ({"model": "stories", "candidate": "99999"}, "a vector of length"),
    ],
)
def test_every_kind_of_model_and_of_prompts_has_its_vector_or_a_sentence(address: dict[str, str], says: str) -> None:
    assert says in told(opened(**address)).replace("\\", "")


def test_a_vector_comes_back_on_the_page_and_in_what_if_and_has_a_slider() -> None:
    stories = load("stories")
    vector = find_direction(stories, ("She was sad.",), ("He was sad.",), "MLP", 1)
    file = pack_vector(vector, stories)
    app = opened(model="stories", candidate="7")
    (box,) = (one for one in app.file_uploader if str(one.key).startswith("vector file"))
    app = box.set_value(("mine & other.safetensors", file, "application/octet-stream")).run()
    assert not app.exception and "mine & other" in told(app).replace("\\", "") and "blocks.1.mlp.out" in told(app)
    assert not app.text_area and "How well both sets separate" not in told(app)
    (box,) = (one for one in app.file_uploader if str(one.key).startswith("vector file"))
    app = box.set_value(("x.safetensors", file[:-4], "application/octet-stream")).run()
    assert "was cut off" in told(app) and "blocks.1.mlp.out" in told(app)
    app = app.button(key="no vector").click().run()
    assert app.text_area and not app.exception

    app = new("direction")
    field(app.selectbox, "do").set_value("AddDirection").run()
    app.file_uploader[-1].set_value(("mine.safetensors", file, "application/octet-stream")).run()
    app = press(app)
    assert edits(app) == [vector.edit()]
    assert sent(app, "experiment")[0]["entries"][0]["strength"] == [1.0, -4.0, 4.0]
    made = EDITS_OF_PAGE.set_strength(Experiment((Entry(vector.edit()),)), 0, -2.0)
    assert made.edits == (vector.edit(-2.0),)
    with pytest.raises(ValueError, match="has no strength to set"):
        EDITS_OF_PAGE.set_strength(Experiment((Entry(ProjectOut("embed.tokens", [1.0])),)), 0, 1.0)
    other = load("induction")
    strange = pack_vector(find_direction(other, ("1 2",)), other)
    app = new("direction", app)
    field(app.selectbox, "do").set_value("AddDirection").run()
    app.file_uploader[-1].set_value(("other.safetensors", strange, "application/octet-stream")).run()
    app = press(app)
    assert edits(app) == [vector.edit()] and "has other weights" in " ".join(one.value for one in app.error)


def test_tables_charts_and_python_are_the_engine_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint, texts = load("stories"), ["The dog was tired, so", "One day"]
    Path("mine.txt").write_text("\n".join(texts))
    vector = find_direction(checkpoint, ("She ran.", "The girl"), ("He ran.", "The boy"), layer=1)
    Path("my vector.safetensors").write_bytes(pack_vector(vector, checkpoint))
    reading, fields = read_text(checkpoint, TEXT, 64), Fields("text", 64, text=TEXT)
    held = "stories", checkpoint, run(checkpoint.model, reading.read), lanes(checkpoint, reading)
    shared = {"fields": lambda: fields, "corpus": Corpus("mine.txt", tuple(texts))}
    of_prompts = SteeringContext(*held, **shared, toward=vector.toward, away=vector.away, layer=1)
    of_file = SteeringContext(*held, **shared, brought=vector, named="my vector.safetensors")
    assert of_prompts.digest != of_file.digest
    for context in (of_prompts, of_file):
        page = Page((STEERING, context))
        for ask, draw in CHARTS.values():
            if context is of_file and ask in ("steering_layers", "steering_prompts"):
                continue
            places = {"candidate": 5} if ask in ("steering_effect", "steering_costs") else {}
            query = {"ask": ask, "trace": context.digest, **places}
            frame = pd.DataFrame(page.table(query).columns)
            for shade in ("light", "dark"):
                assert draw(frame, shade).to_dict()["datasets"]  # type: ignore[arg-type]
            bound: dict = {}
            exec(page.python(query), bound)
            values = bound["values"]
            column = {"steering_layers": "apart", "steering_prompts": "value", "steering_effect": "mean"}.get(ask, "kl")
            own = values if isinstance(values, torch.Tensor) else getattr(values, column)
            assert own.tolist() == pytest.approx(frame[column].tolist()[: len(own)], abs=1e-5)
