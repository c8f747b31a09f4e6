"""The strongest places of heads and neurons are those of all values, sorted."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine import load, run
from engine.analysis import strongest
from engine.analysis.attribution import attribute
from engine.analysis.positional import positional
from engine.analysis.strongest import KINDS, ORDERED, find_kinds, find_strongest, survey, surveying_of
from engine.analysis.survey_file import survey_path
from engine.analysis.token_circuits import W_U
from engine.analysis.weights.circuit import circuit, linear_part, writing_rows
from engine.analysis.writers import Writer, hold_norm
from engine.inputs.corpus import Corpus
from engine.inputs.samples import samples
from engine.model.config import Norm, NormKind
from tests.engine import tiny


@pytest.mark.parametrize(("name", "side"), [("stories", ""), ("translate-en-fr", "decoder"), ("digits-vit", "")])
def test_the_places_are_those_of_all_values_sorted(name: str, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strongest, "KEPT", 3)
    model, readings = load(name).model, list(samples(load(name), 5, 16))
    *_, found = survey(model, readings)
    hook = f"{side and side + '.'}blocks.1."
    traces = [run(model, one.read, ["*"], target=one.target) for one in readings]
    again = [run(model, one.read, [f"{hook}attn.head_out"], target=one.target) for one in readings]
    for part, values in {
        "neuron": [trace[f"{hook}mlp.post"][0] for trace in traces],
        "written": [trace[f"{hook}attn.head_out"][0].norm(dim=-1) for trace in again],
    }.items():
        got = found.found[side, 1, part]  # type: ignore[index]
        best = torch.stack([one.max(0).values for one in values])  # text unit
        wanted = best.sort(0, descending=True)
        torch.testing.assert_close(got.value, wanted.values[:3].T, atol=1e-4, rtol=1e-4)
        for unit in range(got.value.shape[0]):
            text, pos, value = int(got.text[unit, 0]), int(got.pos[unit, 0]), float(got.value[unit, 0])
            assert float(values[text][pos, unit]) == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("kind", ["rms", "layer"])
def test_what_a_head_writes_is_behind_the_norm_that_stands_behind_its_attention(kind: NormKind) -> None:
    model = tiny.model(tiny.config("rotary", norm=Norm(kind, "around")))
    block = model.blocks[1]
    norm, bias = block.norm1_after, block.attn.out.bias
    norm.weight.data.normal_(generator=torch.Generator().manual_seed(0))
    trace = run(model, [tiny.IDS], ["*", "*head_out"])
    scale = trace["blocks.1.norm1_after.scale"][0, :, None]
    written = torch.einsum("phd,hdm->phm", trace["blocks.1.attn.z"][0], writing_rows(model, 1)) / scale[..., None]
    rest = linear_part(norm, bias) / scale + getattr(norm, "bias", 0.0)
    torch.testing.assert_close(written.sum(1) + rest, trace["blocks.1.norm1_after.out"][0])
    lengths = dict(strongest.strengths_of(model, trace))["", 1, "written"]
    torch.testing.assert_close(lengths, written.norm(dim=-1))
    assert torch.equal(circuit(model, 1, 2, "ov").right, writing_rows(model, 1)[2])
    last = attribute(model, trace, 7, 3).values
    read = hold_norm(model.final_norm, W_U(model)[3:4].double(), trace["blocks.2.resid_post"][0, 7].double())[0]
    later = model.blocks[2].attn.heads  # what a head of the last block adds to the logit
    direct = torch.einsum("hd,hdm->hm", trace["blocks.2.attn.z"][0, 7], writing_rows(model, 2)).double() @ read[0]
    direct = direct / trace["blocks.2.norm1_after.scale"][0, 7]
    assert [last[Writer("head", 2, head)] for head in range(later)] == pytest.approx(direct.tolist(), abs=1e-5)


def test_fewer_texts_than_places_leave_none_and_a_layer_without_an_mlp_says_so() -> None:
    model = load("stories").model
    *_, found = survey(model, samples(load("stories"), 2, 8))
    assert (found.found["", 0, "written"].text[:, 2:] == -1).all()
    with pytest.raises(ValueError, match="has no neurons; choose another one"):
        find_strongest(load("induction"), "", 0, "neuron")


def counted_shares(pattern: Tensor, ids: list[int], kind: str) -> Iterator[tuple[int, float]]:
    """Each position that counts, and its share, of one causal head, pos key, by the definitions alone."""
    for pos in range(1, len(ids)):
        before = [key for key in range(pos) if ids[key] == ids[pos]]
        keys = {"previous": [pos - 1], "first": [0], "own": [pos], "duplicate": before,
                "induction": [key + 1 for key in before]}[kind]  # fmt: skip
        if keys:
            yield pos, sum(float(pattern[pos, key]) for key in keys)


def test_kinds_and_places_by_a_share_are_those_of_a_loop_over_positions() -> None:
    model, readings = load("stories").model, list(samples(load("stories"), 5, 24))
    *_, found = survey(model, readings)
    layer, head = 2, 1
    traces = [run(model, one.read) for one in readings]
    for kind, values in zip(KINDS[:-1], found.kinds(""), strict=False):
        patterns = [trace[f"blocks.{layer}.attn.pattern"][0, head] for trace in traces]
        texts = [
            dict(counted_shares(pattern, trace.ids[0].tolist(), kind))
            for pattern, trace in zip(patterns, traces, strict=True)
        ]
        means = [sum(text.values()) / len(text) for text in texts if text]
        assert float(values[layer, head]) == pytest.approx(sum(means) / len(means), abs=1e-5)
        places = found.found["", layer, kind]  # type: ignore[index]
        text, pos, value = (one[head, 0].item() for one in (places.text, places.pos, places.value))
        assert value == pytest.approx(max(max(text.values()) for text in texts if text), abs=1e-5)
        assert texts[int(text)][int(pos)] == pytest.approx(value, abs=1e-5)
    ordered = torch.stack([positional(model, trace) for trace in traces[::ORDERED]]).mean(0)
    torch.testing.assert_close(found.kinds("")[KINDS.index("positional")], ordered)


def test_the_shipped_induction_and_previous_token_heads_come_out_on_top() -> None:
    kinds = dict(zip(KINDS, find_kinds(load("induction")), strict=True))
    assert kinds["induction"].max() > 0.8 and kinds["induction"][0].max() < 0.5  # it takes two layers
    assert divmod(int(kinds["previous"].argmax()), 4) == divmod(int(kinds["positional"].argmax()), 4) == (0, 2)


def test_a_corpus_is_surveyed_and_a_picture_has_no_words_to_repeat() -> None:
    texts = Corpus("mine.txt", ("The cat sat on the mat.", "One day, Tom saw a big dog.", "\u4e16\u754c" * 9))
    readings, found = find_strongest(load("tales-bert"), "", 1, "previous", texts)
    assert [one.read.text for one in readings] == list(texts.texts[:2])  # type: ignore[union-attr]
    assert found.value.max() <= 1 and (found.text[:, 2:] == -1).all()
    checkpoint, many = load("tales-bert"), replace(texts, texts=texts.texts[:1] * 16)
    surveying_of(checkpoint, many).reach(1)
    assert len(find_strongest(checkpoint, "", 0, "own", many)[0]) == 2  # a stop keeps what is there
    with pytest.raises(ValueError, match="reads pictures; choose another model"):
        surveying_of(load("digits-vit"), texts)
    with pytest.raises(ValueError, match=r"can read no text of mine.txt: its vocabulary lacks their words"):
        surveying_of(load("tales-bert"), replace(texts, texts=texts.texts[2:]))
    *_, pictures = survey(load("digits-vit").model, samples(load("digits-vit"), 2, 16))
    assert pictures.kinds("")[KINDS.index("induction")].isnan().all()
    assert (pictures.found["", 0, "induction"].text == -1).all()


def test_a_survey_is_kept_with_its_run_and_one_of_other_weights_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = load("induction")
    place = tmp_path / "run" / "latest"
    shipped.save(place)
    (tmp_path / "run" / "recipe.toml").touch()
    texts = Corpus("mine.txt", ("abcabc", "xyxyxy"))

    def opened() -> Tensor:
        return find_kinds(replace(load(place), files=(place / "model.safetensors",)), "", texts)

    computed = opened()
    path = survey_path(replace(shipped, files=(place / "model.safetensors",)), strongest.read_texts(texts))
    assert path is not None and path.is_file() and survey_path(shipped, "") is None
    with monkeypatch.context() as patch:
        patch.setattr(strongest, "survey", lambda *_: pytest.fail("it is computed again"))
        torch.testing.assert_close(opened(), computed, equal_nan=True)
    checkpoint = load(place)
    with torch.no_grad():
        checkpoint.model.blocks[0].attn.q.weight.zero_()
    checkpoint.save(place)
    assert not math.isclose(float(opened()[0, 0, 2]), float(computed[0, 0, 2]))
    path.write_bytes(b"damaged")
    assert opened().isfinite().any()
