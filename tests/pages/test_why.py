"""The pages Why this token and Why this head without a browser: every sentence's number is the engine's."""

import re
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from engine import run
from engine.analysis.attribution import ablate, attribute, silencer, split_sources
from engine.analysis.score_split import split_score
from engine.analysis.strongest import find_strongest
from engine.budget import budget
from engine.inputs.corpus import read_corpus
from engine.runtime import library
from engine.training.cluster.ray_kinds.survey import RaySurvey
from pages.controls.train.user_data import store_file
from pages.controls.what_if.experiment_link import from_link
from tests.pages.mounted import read_markdown
from tests.pages.test_logit_lens import APP, key_of

TEXT = "The little girl was thirsty, so she drank a"


def opened(page: str, **address: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for name, value in address.items():
        app.query_params[name] = value
    app.switch_page(f"pages/analyse/{page}.py").run()
    assert not app.exception, app.exception
    return app


def said(app: AppTest) -> str:
    return "\n".join(one.value for one in app.markdown)


def test_a_token_is_explained_and_the_head_is_put_to_the_test() -> None:
    checkpoint = library.checkpoint("everyday")
    trace = library.traces.trace("everyday", checkpoint.tokenizer.encode(TEXT))
    row = len(trace["logits"][0]) - 1
    id, other = trace["logits"][0, row].topk(2).indices.tolist()
    app = opened("why_token", model="everyday", text=TEXT)
    found = attribute(checkpoint.model, trace, row, id)
    head, value = next(iter(found.heads.items()))
    assert f"**{found.logit:.2f}**" in said(app) and f"the sum of {len(found.values)} parts" in said(app)
    assert f"**block {head.layer + 1}, head {head.head + 1}** adds most, {value:+.2f}" in said(app)
    removed = ablate(checkpoint.model, trace, head)
    without, held = (float(one[0, row, id]) for one in (removed.without, removed.held))
    assert f"Without this head, whose z is then 0, the logit is {without:.2f}" in said(app)
    parts = f"{value:+.2f} directly, {found.logit - held - value:+.2f} by what norms divide by"
    parts += f", {held - without:+.2f} by later parts"
    assert f"from the head is {found.logit - without:+.2f}: {parts}." in said(app)
    (link,) = re.findall(r"\(compare\?(\S+)\)", read_markdown(said(app)))
    query, _, place = link.partition("#")
    compared = dict(parse_qsl(query))
    assert place == f"layer={head.layer}&head={head.head}"  # where the two differ first
    assert compared["a_text"] == compared["b_text"] == TEXT and not compared.get("a_edits")
    assert from_link(compared["b_edits"])[0].edits == (silencer(checkpoint.model, head),)
    looked = int(trace[f"blocks.{head.layer}.attn.pattern"][0, head.head, row].argmax())
    assert f"#layer={head.layer}&head={head.head}&query={row}&key={looked}" in read_markdown(said(app))
    app.selectbox(key_of(app, "against")).select_index(2).run()
    assert app.query_params["against"] == str(other)
    lead = attribute(checkpoint.model, trace, row, id, other).logit
    assert f"over “{checkpoint.tokenizer.pieces[other].replace(' ', '·')}” is **{lead:.2f}**" in said(app)
    app.selectbox(key_of(app, "against")).select_index(1).run()
    assert "two candidates must differ" in app.warning[0].value


def test_a_score_is_explained_where_a_link_leads() -> None:
    checkpoint = library.checkpoint("everyday")
    trace = library.traces.trace("everyday", checkpoint.tokenizer.encode(TEXT))
    app = opened("why_head", model="everyday", text=TEXT, layer="4", head="1", pos="9", key="4")
    found = split_score(checkpoint.model, trace, 4, 1, 9, 4)
    assert f"is **{found.score:.2f}**, the sum of {found.values.numel()} pairs" in said(app)
    weight = float(trace["blocks.4.attn.pattern"][0, 1, 9, 4])
    assert f"the weight is {weight:.3f}" in said(app)
    app.selectbox(key_of(app, "query")).select_index(2).run()  # the key stays, and is later than the query
    assert "The mask hides this key" in said(app) and app.query_params["pos"] == "2"
    app.selectbox(key_of(app, "block")).select_index(0).run()
    assert not app.exception
    counted = opened("why_head", model="everyday", text=TEXT, layer="4", head="1", by="in this run")
    assert [one.value for one in counted.get("button_group")] == ["run"]
    assert len(counted.get("vega_lite_chart")) == 2


@pytest.mark.parametrize("page", ["why_token", "why_head"])
@pytest.mark.parametrize("model", ["tales-bert", "translate-en-fr", "digits-vit", "digits-imagegpt", "t5-tasks"])
def test_every_kind_of_model_has_its_answer(page: str, model: str) -> None:
    app = opened(page, model=model)
    assert re.search(r"(logit|score) of .* is \*\*-?\d+\.\d\d\*\*", said(app)) and not app.warning


def test_the_strongest_places_of_a_head_are_those_of_the_engine_and_lead_to_their_texts() -> None:
    app = opened("fires", model="stories", layer="2", head="3")
    assert not app.text_input and not app.text_area  # it reads texts of its own
    _, found = find_strongest(library.checkpoint("stories"), "", 2, "written")
    links = [one.proto.label for one in app.get("page_link")]
    assert [f"{float(value):.2f}" in link for value, link in zip(found.value[3], links, strict=False)] == [True] * 3
    assert not opened("fires", model="induction").exception  # which has no MLP


def test_a_file_of_texts_is_surveyed_by_the_chosen_measure() -> None:
    texts = [f"The little girl saw a dog number {number}, and the dog saw her." for number in range(16)]
    file = store_file("mine.txt", "\n".join(texts).encode())
    checkpoint, corpus = library.checkpoint("stories"), read_corpus(file)
    address = {"model": "stories", "layer": "2", "head": "3", "measure": "Induction"}
    app = opened("fires", corpus=file.parent.name, **address)
    assert any("Over 16 texts of mine.txt" in one.value.replace("\\", "") for one in app.caption)
    _, found = find_strongest(checkpoint, "", 2, "induction", corpus)
    links = [one.proto.label for one in app.get("page_link")]
    assert [f"{float(value):.2f}" in link for value, link in zip(found.value[3], links, strict=False)] == [True] * 3
    assert "reads pictures" in opened("fires", model="digits-vit", corpus=file.parent.name).warning[0].value
    assert "is empty" in opened("fires", corpus=store_file("none.txt", b" ").parent.name).warning[0].value


def test_a_survey_waits_for_its_cluster_and_is_computed_here_where_that_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "ray_address", "http://head")
    monkeypatch.setattr(budget, "heavy", 0)
    monkeypatch.setattr(RaySurvey, "_ask", lambda work: "waits for a node with 1 CPU")
    texts = "\n".join(f"One day, Lily saw {number} big dogs and a cat." for number in range(16))
    address = {"corpus": store_file("dogs.txt", texts.encode()).parent.name, "model": "everyday"}
    app = opened("fires", **address)
    assert [one.value for one in app.caption][-1] == "waits for a node with 1 CPU" and not app.get("vega_lite_chart")
    (stop,) = (one for one in app.button if one.label == "Stop")
    stop.click().run()
    assert "waits" not in app.caption[-1].value and any(one.label == "Go on" for one in app.button)

    def give_up(work: RaySurvey) -> str:
        raise ValueError("Ray does not answer; try again.")

    monkeypatch.setattr(RaySurvey, "_ask", give_up)
    app = opened("fires", **address)
    assert any("Over 16 texts of dogs.txt" in one.value.replace("\\", "") for one in app.caption)
    assert app.get("vega_lite_chart")


def test_what_an_edit_changed_on_the_way_is_said() -> None:
    edits = '[{"edit": "Scale", "hook": "blocks.4.attn.q", "factor": 2.0}]'
    app = opened("why_head", model="everyday", text=TEXT, layer="4", head="1", edits=edits)
    assert "take these edits off" in app.warning[0].value


def test_a_long_text_has_the_same_sum_and_what_is_cut_is_said() -> None:
    text = "Once upon a time there was a little girl who had a red ball and a dog . " * 20
    checkpoint = library.checkpoint("long-stories")
    trace = run(checkpoint.model, checkpoint.tokenizer.encode(text))
    row = len(trace["logits"][0]) - 1
    id, app = int(trace["logits"][0, row].argmax()), opened("why_token", model="long-stories", text=text)
    found = attribute(checkpoint.model, trace, row, id)
    head = next(iter(found.heads))
    sources = split_sources(checkpoint.model, trace, found, head)
    without = ablate(checkpoint.model, trace, head).without
    assert row > 256 and f"is **{found.logit:.2f}**, the sum of {len(found.values)} parts" in said(app)
    assert f"carries {sources.abs().max():+.2f}" in said(app) and f"is {without[0, row, id]:.2f}. What" in said(app)
    assert not any("are cut" in one.value for one in app.caption)
    app = opened("why_head", model="long-stories", text=text)
    assert "this page draws" in app.caption[0].value and "256; the last" in app.caption[0].value
