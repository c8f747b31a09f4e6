"""Matrices exchanged: the same as a model that has them, each by itself and all together."""

from copy import deepcopy

import pytest
import torch

from engine import load, run
from engine.analysis.interventions.metric import Metric
from engine.analysis.quantisation import (
    changes_by_scheme,
    changes_to,
    exchange,
    exchange_each,
    relative_error,
    text_distance,
)
from engine.checkpoints import Checkpoint
from engine.edits import ExchangedMaps, QuantiseMaps, edit_from_dict
from engine.inputs.readers import Reading
from engine.model.layers.lora import list_linears
from engine.model.quantised import SCHEMES
from tests.engine import tiny
from tests.engine.tiny import IDS


def test_an_exchanged_matrix_is_that_of_a_model_that_has_it() -> None:
    checkpoint = load("stories")
    model = checkpoint.model
    text = checkpoint.tokenizer.encode("Max gave the red ball to Anna. Anna gave")
    trace = run(model, text)
    changes = changes_by_scheme(model, "Q4_0")
    assert changes.keys() == list_linears(model).keys()
    metric = Metric("logit", 300, 5)
    each = exchange_each(model, trace, changes, metric, len(text.ids) - 1)
    whole = exchange(model, trace, changes, metric, len(text.ids) - 1)
    other, names = deepcopy(model), ["blocks.2.mlp.out", "blocks.0.attn.q"]
    for name in names:
        weight = list_linears(other)[name].weight.data
        weight.copy_(SCHEMES["Q4_0"].read(SCHEMES["Q4_0"].write(weight)))
        alone = deepcopy(model)
        list_linears(alone)[name].weight.data.copy_(weight)
        logits = run(alone, text)["logits"][0, -1]
        assert each[name].measured == pytest.approx(float(logits[300] - logits[5]), abs=1e-4)
        kl = (
            trace["logits"][0, -1].softmax(-1) * (trace["logits"][0, -1].log_softmax(-1) - logits.log_softmax(-1))
        ).sum()
        assert each[name].kl == pytest.approx(float(kl), abs=1e-5) and each[name].kl > 0
        assert 0.02 < relative_error(model, name, changes[name]) < 0.2
    edit = edit_from_dict(QuantiseMaps("Q4_0", names).to_dict())
    torch.testing.assert_close(run(model, text, edits=[edit])["logits"], run(other, text)["logits"], atol=1e-4, rtol=0)
    assert list(changes_to(model, other)) == [name for name in list_linears(model) if name in names]
    everywhere = run(model, text, edits=[QuantiseMaps("Q4_0", list(changes))])["logits"][0, -1]
    assert whole.measured == pytest.approx(float(everywhere[300] - everywhere[5]), abs=1e-4)
    found = text_distance(checkpoint, changes, Reading(text))
    log_p, log_q = trace["logits"][0].log_softmax(-1), run(model, text, edits=[ExchangedMaps(changes)])["logits"][0]
    expected = torch.nn.functional.kl_div(log_q.log_softmax(-1), log_p, log_target=True, reduction="none").sum(-1)
    torch.testing.assert_close(found.kl, expected, atol=1e-5, rtol=0)
    assert torch.equal(found.same, log_p.argmax(-1) == log_q.argmax(-1))


def test_what_cannot_be_exchanged_is_told_in_a_sentence() -> None:
    model = tiny.model()
    with pytest.raises(ValueError, match="whole blocks of 32 numbers, got"):
        changes_by_scheme(model, "Q8_0")
    with pytest.raises(ValueError, match="same matrices to the last bit"):
        changes_to(model, deepcopy(model))
    with pytest.raises(ValueError, match="of the same sizes"):
        changes_to(model, tiny.model(tiny.config(d_model=32)))
    with pytest.raises(ValueError, match="scheme must be one of Q4_0, .*, got 'Q4_K'"):
        QuantiseMaps("Q4_K", ["attn.q"])
    with pytest.raises(ValueError, match="no linear map is called 'attn.x'"):
        run(load("stories").model, IDS, edits=[QuantiseMaps("Q4_0", ["attn.x"])])
    assert Checkpoint(model).model is model
