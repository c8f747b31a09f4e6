"""The family: every parameter in one group, the numbers of BERT base, and choices among sentences."""

import pytest
import torch

from engine import load
from engine.analysis.sizes import count, envelope
from engine.course.family import (
    FAMILY,
    calibrate,
    count_by_group,
    head_parameters,
    rank_continuations,
    relatives,
    resize,
)
from engine.model.presets import NAMED, blueprint
from engine.runtime.run import run


def test_bert_base_has_its_parameters_and_the_estimate_misses_some() -> None:
    config = NAMED["bert-base"].config
    groups = {name: formula.value for name, formula in count_by_group(config).items()}
    assert groups == {
        "input": 23_835_648, "queries, keys, values": 21_233_664, "W_O": 7_077_888, "MLP": 56_623_104,
        "biases": 82_944, "norms": 38_400, "pooler and head": 590_592,
    }  # fmt: skip
    assert sum(groups.values()) == count(config) == 109_482_240
    estimate, *rest = envelope(config)
    assert estimate.count == 101_297_664
    assert max(rest, key=lambda step: step.count).name == "W_O"
    assert estimate.count + sum(step.count for step in rest) == 109_482_240


@pytest.mark.parametrize("name", FAMILY)
def test_the_groups_are_all_of_a_model(name: str) -> None:
    config = NAMED[name].config
    assert sum(formula.value for formula in count_by_group(config).values()) == count(config)
    assert len(relatives(name)) == len(FAMILY) - 1
    assert head_parameters(config, 3) == 3 * (config.d_model + 1)
    small = resize(config, 1, config.d_model)
    built = sum(parameter.numel() for parameter in blueprint(small).parameters())
    assert sum(formula.value for formula in count_by_group(small).values()) == built


def test_a_width_that_heads_do_not_divide_is_refused() -> None:
    with pytest.raises(ValueError):
        resize(NAMED["bert-base"].config, 12, 770)


def test_no_switch_tells_gpt2_from_gpt3() -> None:
    assert relatives("gpt2")[0] == (0, "gpt3-175b")


def test_a_continuation_is_ranked_by_its_mean_log_probability() -> None:
    checkpoint = load("everyday")
    assert checkpoint.tokenizer is not None
    prompt, answers = "Max gave the red ball to Anna. Now the ball is with", ("Anna", "Max", "the big brown dog")
    shares = rank_continuations(checkpoint, prompt, answers)
    assert float(shares.sum()) == pytest.approx(1)
    alone = []
    for answer in answers:
        before = list(checkpoint.tokenizer.encode(prompt).ids)
        ids = before + list(checkpoint.tokenizer.encode(f" {answer}", special=False).ids)
        log_p = run(checkpoint.model, ids)["logits"][0].log_softmax(-1)
        places = range(len(before), len(ids))
        alone.append(sum(float(log_p[at - 1, ids[at]]) for at in places) / len(places))
    torch.testing.assert_close(shares, torch.tensor(alone).softmax(-1))
    torch.testing.assert_close(calibrate(shares, shares), torch.full((3,), 1 / 3))
