"""Lenses beside the logit lens: a tuned one begins as it and comes nearer to the end, a Jacobian one is autograd's."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.functional import jacobian

from engine import load, run
from engine.analysis import lenses
from engine.analysis.lenses import (
    distance,
    jacobian_at,
    jacobian_lens,
    make_lens,
    measure_lens,
    no_translators,
    tune_lens,
)
from engine.analysis.logit_lens import lens_logits, logit_lens
from engine.inputs.samples import samples
from engine.model.config import Encoder, OutputHead
from tests.engine import tiny
from tests.engine.tiny import IDS, Attention, Norm, config


def test_before_its_first_step_the_tuned_lens_is_the_logit_lens() -> None:
    checkpoint = load("stories")
    trace = run(checkpoint.model, checkpoint.tokenizer.encode("Max gave the ball."))
    for layer in range(checkpoint.model.config.layers + 1):
        made = lens_logits(checkpoint.model, trace, layer, made=no_translators(checkpoint.model))
        assert torch.equal(made, lens_logits(checkpoint.model, trace, layer))


@pytest.mark.parametrize("name", ["stories", "tales-bert", "translate-en-fr"])
def test_a_tuned_lens_says_of_texts_that_it_never_saw_what_the_end_says_rather_than_the_logit_lens(name: str) -> None:
    checkpoint = load(name)
    *seen, unseen = samples(checkpoint, 17, 24)
    trace = run(checkpoint.model, unseen.read, target=unseen.target)
    *_, (made, loss) = tune_lens(checkpoint.model, seen, 64)
    assert made.texts == 16 and 0 < loss
    before, after = (float(distance(checkpoint.model, trace, one)) for one in (no_translators(checkpoint.model), made))
    assert after < before / 2
    lens = logit_lens(checkpoint.model, trace, made=made)
    plain = logit_lens(checkpoint.model, trace)
    assert torch.equal(lens.kl[-1], plain.kl[-1]) and lens.kl[:-1].mean() < plain.kl[:-1].mean()


@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize("more", [{}, {"norm": Norm(place="after")}, {"sublayers": "parallel"}])
def test_the_jacobian_is_that_of_autograd(layer: int, more: dict[str, Any]) -> None:
    model = tiny.model(config("rotary", head=OutputHead(kind="none"), **{"norm": Norm(final=False), **more}))
    trace, pos = run(model, IDS), 5
    ids = torch.tensor([IDS])

    def last(stream: Tensor) -> Tensor:
        return model(ids, start=layer, resid=stream)[0, pos]

    (wanted,) = (jacobian(last, trace[f"blocks.{layer}.resid_pre"])[:, 0, pos],)
    torch.testing.assert_close(jacobian_at(model, trace, pos)[layer], wanted, atol=1e-5, rtol=1e-4)


def test_a_mean_of_jacobians_is_taken_behind_an_encoder_too(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.model(config("relative", encoder=Encoder(layers=2, attention=Attention(heads=4, mask="full"))))
    trace = run(model, IDS, target=[1, 2, 3])
    whole = jacobian_at(model, trace, 2)
    monkeypatch.setattr(lenses, "TOGETHER", 5)
    torch.testing.assert_close(jacobian_at(model, trace, 2), whole)
    checkpoint = load("translate-en-fr")
    (one, two) = jacobian_lens(checkpoint.model, samples(checkpoint, 2, 12), 2)
    assert (one.texts, two.texts) == (1, 2) and not torch.equal(one.matrix, two.matrix)


def test_the_jacobian_is_taken_within_a_text_and_each_lens_is_measured_on_texts_that_none_is_made_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checkpoint, at = load("stories"), []

    def note(model: Any, trace: Any, pos: int) -> Tensor:
        at.append(pos)
        return torch.eye(128).expand(4, -1, -1)

    monkeypatch.setattr(lenses, "jacobian_at", note)
    (made,) = jacobian_lens(checkpoint.model, samples(checkpoint, 1, 31))
    assert at == [6, 12, 18, 24] and not made.matrix.any()
    monkeypatch.setattr(lenses, "HELD_OUT", 2)
    first, second = list(samples(checkpoint, 66, lenses.LENGTH))[64:]
    traces = [run(checkpoint.model, one.read) for one in (first, second)]
    for layer, found in enumerate(measure_lens(checkpoint, "logit")):
        said = [lens_logits(checkpoint.model, trace, layer).log_softmax(-1) for trace in traces]
        ends = [trace["logits"][0].softmax(-1) for trace in traces]
        away = [(end * (end.log() - one)).sum(-1).mean() for one, end in zip(said, ends, strict=True)]
        torch.testing.assert_close(found, sum(away) / 2, atol=1e-4, rtol=1e-4)


def test_a_lens_of_a_checkpoint_is_made_once() -> None:
    checkpoint = load("induction")
    assert make_lens(checkpoint, "logit") is None
    assert make_lens(checkpoint, "tuned") is make_lens(checkpoint, "tuned")
    with pytest.raises(ValueError, match="has no head"):
        next(tune_lens(tiny.model(config(head=OutputHead(kind="none"))), [], 1))
