"""The payload of a comparison holds both runs and what belongs together in them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.analysis.points import head_points
from engine.edits import AttentionTemperature, DrawMask, Edit, SetPattern
from engine.inputs.readers import pictures, read_picture, read_text, read_translation
from engine.inputs.samples import samples
from engine.runtime import library
from engine.runtime.run import run
from views.compare import compare as page
from views.compare.pair import ComparedRun, RunPair, match_attentions
from views.compare.questions import Comparison, carry
from views.compare.texts import over_texts
from views.core.lanes import digest, lanes
from views.core.payload import Named, unpack
from views.core.questions import Page
from views.core.run_context import RunContext

FIRST, SECOND = "Max gave the red ball to Anna.", "Max gave the blue ball to Lily."


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def shown(letter: str, text: str = FIRST, model: str = "stories", edits: tuple[Edit, ...] = ()) -> ComparedRun:
    checkpoint = library.checkpoint(model)
    if model == "translate-en-fr":
        read = read_translation(checkpoint, text, "", 64)
    else:
        picture = model == "digits-vit"
        read = read_picture(checkpoint, pictures()[0][int(text)]) if picture else read_text(checkpoint, text, 64)
    trace = run(checkpoint.model, read.read, edits=edits, target=read.target)
    return ComparedRun(letter, model, read, RunContext(model, checkpoint, trace, lanes(checkpoint, read)))


def sent(*sides: ComparedRun) -> tuple[dict, dict[str, Named]]:
    first, *others = sides
    return unpack(page.compare([match_attentions(first, other) for other in others], {}))


def answered(pairs: list[RunPair], query: dict) -> bytes:
    return Page(*Comparison(pairs).parts).answer(query)


def test_what_both_say_stands_beside_one_another_at_the_tokens_that_belong_together() -> None:
    first, second = shown("A"), shown("B", SECOND)
    header, arrays = sent(first, second)
    says = header["pairs"]["B"]["says"]
    assert says["groups"] is None  # those of the queries
    groups = header["pairs"]["B"]["attentions"][-1]["queries"]
    assert len(groups) == len(arrays["B:says.ids"].data)
    for number, (here, there, _) in enumerate(groups):
        both = ((first, here), (second, there))
        p, q = (one.run.trace["logits"][0, places[-1]].double().softmax(-1) for one, places in both)
        ids = arrays["B:says.ids"].data[number].astype(int)
        np.testing.assert_allclose(arrays["B:says.first"].data[number], p[ids], rtol=1e-5)
        np.testing.assert_allclose(arrays["B:says.second"].data[number], q[ids], rtol=1e-5)
        bits = float((p * (p / q).log()).sum()) / math.log(2)
        assert float(arrays["B:says.kl"].data[number]) == pytest.approx(bits, rel=1e-4, abs=1e-6)
    assert {str(i) for i in arrays["B:says.ids"].data.flat} <= set(says["names"])


def test_every_pair_is_of_the_first_run_and_another() -> None:
    header, arrays = sent(shown("A"), shown("B", SECOND), shown("C", edits=(AttentionTemperature(2.0),)))
    assert list(header["pairs"]) == ["B", "C"]
    assert {name.split(":")[0] for name in arrays if ":" in name} == {"B", "C"}
    assert header["sides"][2]["edited"] == ["*.temperature"] and not header["pairs"]["C"]["same"]


def test_every_attention_of_two_translations_has_its_own_alignment() -> None:
    texts = {"A": "The dog sees a cat.", "B": "The small dog sees a cat."}
    sides = [shown(letter, text, "translate-en-fr") for letter, text in texts.items()]
    header, arrays = sent(*sides)
    found = {one["key"]: one for one in header["pairs"]["B"]["attentions"]}
    assert list(found) == ["encoder.attn", "decoder.attn", "decoder.cross_attn"]
    cross = found["decoder.cross_attn"]
    assert cross["queries"] == found["decoder.attn"]["queries"] and cross["keys"] == found["encoder.attn"]["queries"]
    lengths = [len(side.reading.read) for side in sides]
    assert lengths[1] == lengths[0] + 1 and len(cross["keys"]) == lengths[0]
    assert "B:decoder.cross_attn.relative" not in arrays and "B:decoder.attn.relative" in arrays


def test_pictures_are_aligned_place_by_place_and_not_with_texts() -> None:
    header, arrays = sent(shown("A", "0", "digits-vit"), shown("B", "1", "digits-vit"), shown("C"))
    places = len(header["sides"][0]["lanes"][""]["pieces"])
    assert header["pairs"]["B"]["attentions"][0]["queries"] == [[[i], [i], True] for i in range(places)]
    assert header["pairs"]["C"]["attentions"][0]["queries"] == [] and header["pairs"]["C"]["says"]["sentence"]
    assert arrays["B:says.first"].data.shape == (1, 10) and np.isnan(arrays["C:attn.similarity"].data).all()


def test_models_of_other_depths_are_compared_head_with_head_only() -> None:
    header, arrays = sent(shown("A"), shown("B", model="induction"))
    assert "B:attn.change" not in arrays and arrays["B:attn.similarity"].data.shape == (16, 8)
    assert "one depth and width" in header["pairs"]["B"]["attentions"][0]["streams"]


def test_long_texts_bring_one_byte_a_weight_and_a_layer_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "WHOLE", 100)
    monkeypatch.setattr("views.compare.pair.AT_ONCE", 100)
    first, second = shown("A"), shown("B", SECOND)
    header, arrays = sent(first, second)
    assert arrays["A/patterns.attn"].data.dtype == np.uint8 and "A/blocks.0.attn.pattern" not in arrays
    assert "B:attn.similarity" not in arrays
    pair = match_attentions(first, second)
    name = digest("stories", second.run.trace)
    assert header["sides"][1]["trace"] == name
    _, later = unpack(answered([pair], {"ask": "layer", "trace": name, "layer": 2, "side": ""}))
    expected = second.run.trace["blocks.2.attn.pattern"][0].numpy()
    np.testing.assert_array_equal(later["blocks.2.attn.pattern"].data, expected)
    query = {"ask": "similarity", "trace": header["pairs"]["B"]["trace"], "attention": "attn", "over": "here"}
    _, later = unpack(answered([pair], query))
    assert later["similarity"].data.shape == (16, 16)


@pytest.mark.parametrize(
    "query",
    [
        {"ask": "layer", "trace": "another", "layer": 0, "side": ""},
        {"layer": 0, "side": ""},
        {"ask": "layer", "layer": "0", "side": ""},
        {"ask": "similarity", "attention": "attn", "over": "here"},
        {"ask": "similarity", "trace": "pair", "attention": "nothing", "over": "here"},
        {"ask": "similarity", "trace": "pair", "attention": "attn", "over": "everything"},
        {"ask": "nothing"},
        {"ask": "layer", "layer": 99, "side": ""},
        {"ask": "layer", "layer": 0, "side": "decoder"},
        {"ask": "points", "side": "", "focus": "attn", "layer": 0, "head": 99},
    ],
)
def test_what_is_not_there_is_a_sentence(query: dict) -> None:
    pair = match_attentions(shown("A"), shown("B", SECOND))
    named = {"trace": pair.digest} if query.get("trace") == "pair" else {}
    with pytest.raises(ValueError, match=r"[a-z]{3}.*\.$"):
        answered([pair], {"trace": digest("stories", pair.first.run.trace), **query, **named})


def test_what_the_views_of_one_head_ask_is_answered_for_the_run_that_is_named() -> None:
    before = shown("B", SECOND).run.trace
    allowed = torch.ones(before["blocks.2.attn.pattern"].shape[-2:]).tril().bool()
    allowed[1, 0] = False
    sides = [shown("A"), shown("B", SECOND, edits=(DrawMask(2, allowed.tolist(), [1]),))]
    second = replace(sides[1], run=replace(sides[1].run, before=before))
    pair = match_attentions(sides[0], second)
    header, arrays = sent(sides[0], second)
    assert header["sides"][1]["editedHeads"] == {"attn": [[2, 1]]}
    assert np.argwhere(arrays["B/blocks.2.attn.edited"].data).tolist() == [[1, 1, 0]]
    where = {"trace": digest("stories", second.run.trace), "layer": 2, "side": ""}
    _, layer = unpack(answered([pair], {"ask": "layer", **where}))
    for part in ("q", "k", "scores", "mask", "masked_scores", "pattern"):
        found = layer[f"blocks.2.attn.{part}"].data
        np.testing.assert_array_equal(found, second.run.trace[f"blocks.2.attn.{part}"][0].numpy(), err_msg=part)
    assert np.argwhere(layer["blocks.2.attn.edited"].data).tolist() == [[1, 1, 0]]
    _, points = unpack(answered([pair], {"ask": "points", "focus": "attn", "head": 1, "how": "pca", **where}))
    np.testing.assert_array_equal(points["queries"].data, head_points(second.run.trace, 2, 1).queries.numpy())


@pytest.mark.parametrize("models", [("stories", "tales-bert"), ("translate-en-fr", "stories"), ("digits-vit",) * 2])
def test_all_that_is_asked_ahead_is_answered_for_every_run(models: tuple[str, str]) -> None:
    texts = ["0", "1"] if models[0] == "digits-vit" else ["The dog sees a cat."] * 2
    one, other = (shown(letter, text, model) for letter, text, model in zip("AB", texts, models, strict=True))
    pair = match_attentions(one, other)
    queries = list(carry(Comparison([pair]), {}))
    for side in (one, other):
        mine = [query for query in queries if query["trace"] == digest(side.run.model_name, side.run.trace)]
        asks = {query["ask"] for query in mine}
        assert asks >= {"layer", "weighted", "points"} and ({"ov", "qk"} <= asks) == bool(side.run.lanes[0].ids)
    for query in queries:
        try:
            assert unpack(answered([pair], query))[1]
        except ValueError as error:
            assert query["ask"] == "ov" and "ask for" in str(error)  # of heads that write no tokens


def test_over_several_texts_heads_are_compared_as_on_one() -> None:
    pair = match_attentions(shown("A"), shown("B", edits=(SetPattern(0, "first", [1]),)))
    found = over_texts(pair, 0)
    model, reads = pair.first.run.checkpoint.model, samples(pair.first.run.checkpoint, 24, 48)
    to_first = torch.cat([run(model, one.read, ["*.pattern"])["blocks.0.attn.pattern"][0, 1, 1:, 0] for one in reads])
    same = found.heads.diagonal()
    assert found.rows == len(to_first) == 24 * 47  # every text has 48 tokens, of which the first does not count
    assert float(same[1]) == pytest.approx(float(to_first.mean()), abs=1e-5)
    assert same[[0, 2, 3]].tolist() == pytest.approx([1.0] * 3, abs=1e-6)


def test_texts_that_suit_only_one_of_the_two_are_a_sentence() -> None:
    with pytest.raises(ValueError, match="no other texts suit both"):
        over_texts(match_attentions(shown("A"), shown("B", "0", "digits-vit")), 0)
