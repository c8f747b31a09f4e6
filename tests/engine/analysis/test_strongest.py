"""The strongest places of heads and neurons are those of all values, sorted."""

import pytest
import torch

from engine import load, run
from engine.analysis import strongest
from engine.analysis.strongest import find_strongest, survey
from engine.inputs.samples import samples


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
        "head": [trace[f"{hook}attn.head_out"][0].norm(dim=-1) for trace in again],
    }.items():
        got = found.found[side, 1, part]  # type: ignore[index]
        best = torch.stack([one.max(0).values for one in values])  # text unit
        wanted = best.sort(0, descending=True)
        torch.testing.assert_close(got.value, wanted.values[:3].T, atol=1e-4, rtol=1e-4)
        for unit in range(got.value.shape[0]):
            text, pos, value = int(got.text[unit, 0]), int(got.pos[unit, 0]), float(got.value[unit, 0])
            assert float(values[text][pos, unit]) == pytest.approx(value, abs=1e-4)


def test_fewer_texts_than_places_leave_none_and_a_layer_without_an_mlp_says_so() -> None:
    model = load("stories").model
    *_, found = survey(model, samples(load("stories"), 2, 8))
    assert (found.found["", 0, "head"].text[:, 2:] == -1).all()
    with pytest.raises(ValueError, match="has no neurons; choose another one"):
        find_strongest(load("induction"), "", 0, "neuron")
