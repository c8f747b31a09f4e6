"""The page Similarity without a browser: its numbers are the engine's, whatever way a vector is made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from engine import load, run
from engine.analysis.text_vectors import (
    cosines,
    late_interaction,
    read_text,
    split_cosine,
    text_vectors,
    vector_shares,
    vector_without,
)
from engine.budget import budget
from engine.inputs.readers import pictures as shown_pictures
from engine.inputs.readers import read_picture
from engine.model.config import Pooling
from engine.runtime import library
from tests.engine.checkpoints.test_sentence import body as body  # a fixture
from tests.engine.checkpoints.test_sentence import vectors_of_tokens
from tests.engine.checkpoints.test_towers import clip_folder

APP = str(Path(__file__).parents[2] / "app.py")
TEXT, OTHER = "Once there was a girl who had a cat.", "A boy had a big dog."


def opened(**address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page("pages/analyse/similarity.py").run()
    assert not app.exception, app.exception
    return app


def told(app: AppTest) -> str:
    found = "\n".join(one.value for kind in (app.markdown, app.caption, app.warning) for one in kind)
    return found.replace("\\", "")


@pytest.mark.parametrize(("model", "pooling"), [("tales-bert", "mean"), ("stories", "last"), ("tales-bert", "max")])
def test_the_cosine_is_the_engines_and_the_sum_of_its_pairs(model: str, pooling: Pooling) -> None:
    app = opened(model=model, text=TEXT, others=f"{OTHER}\nThe sun was hot.", pooled=pooling)
    checkpoint = load(model)
    vectors = text_vectors(checkpoint, [TEXT, OTHER], pooling=pooling)
    found = re.search(r"is \*\*(-?[\d.]+)\*\*: the sum of [\d,]+ pairs? of tokens, (-?[\d.]+)\.", told(app))
    assert found is not None
    cosine, parts = found.groups()
    assert float(cosine) == pytest.approx(float(cosines(vectors[:1], vectors[1:])[0, 0]), abs=1e-4)
    assert float(parts) == pytest.approx(float(cosine), abs=1e-4)
    traces = [run(checkpoint.model, checkpoint.tokenizer.encode(text)) for text in (TEXT, OTHER)]
    shares = [vector_shares(checkpoint.model, trace, pooling) for trace in traces]
    assert split_cosine(*shares).cosine == pytest.approx(float(cosine), abs=1e-4)
    assert not app.warning and "Compare both runs" in told(app)


def test_what_has_no_vector_is_told() -> None:
    for model in ("t5-tasks", "digits-vit"):
        assert "choose another model" in opened(model=model).warning[0].value
    assert "at least one other text" in opened(model="stories", others="\n").warning[0].value


def test_late_interaction_tells_the_sum_of_the_best_products(
    body: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors_of_tokens(body, tmp_path / "colbert")
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    library.checkpoint.cache_clear()
    app = opened(model="colbert", text="a man is eating", others="someone has a meal")
    ours = load(tmp_path / "colbert")
    first, second = (
        run(ours.model, read_text(ours, text))["vector.out"][0] for text in ("a man is eating", "someone has a meal")
    )
    assert f"is **{float(late_interaction(first, second)[1].sum()):.4f}**" in told(app)
    assert not app.warning and "Which tokens find which" in told(app) and "make two texts alike" not in told(app)


def test_two_towers_tell_how_well_texts_go_with_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clip_folder(tmp_path / "clip")
    monkeypatch.setattr(budget, "models_folder", str(tmp_path))
    library.checkpoint.cache_clear()
    assert {"clip", "clip#text"} <= set(library.names())
    app = opened(model="clip", picture="2", others="a cat\na dog of cats", other="a dog of cats")
    pictures, texts = load(tmp_path / "clip"), load(f"{tmp_path / 'clip'}#text")
    pixels = read_picture(pictures, shown_pictures()[0][2]).read
    found = cosines(run(pictures.model, pixels)["vector.out"], text_vectors(texts, ["a cat", "a dog of cats"]))[0]
    best = int(found.argmax())
    assert pictures.pair is not None and not app.warning
    assert f"a cosine of **{float(found[best]):.4f}**" in told(app)
    assert f"{float(pictures.pair.probabilities(found)[best]):.1%} by softmax" in told(app)
    text = texts.tokenizer.encode("a dog of cats")
    without = [vector_without(texts.model, text, at) for at in range(len(text))]
    torch.testing.assert_close(without[-1], run(texts.model, text)["vector.out"][0])  # the mark alone sees itself
    assert float((without[1] - without[-1]).abs().max()) > 1e-4
    assert "as its files say" in told(opened(model="clip#text", others="a dog"))
    on_card = AppTest.from_file(APP, default_timeout=60)
    on_card.query_params["model"] = "clip"
    assert "clip#text" in told(on_card.switch_page("pages/inspect/checkpoint.py").run())
