"""Edits of a mixture of experts against models that are what the edit says."""

from dataclasses import replace

import pytest
import torch

from engine import run
from engine.edits import Edit, SendTokens, SilenceExperts, UseExperts, edit_from_dict
from engine.model.config import Experts
from engine.model.transformer import Transformer
from tests.engine import tiny

EXPERTS = Experts(5, 2, shared=7, dense=(0,))
CONFIG = tiny.config(mlp=tiny.MLP(12, "silu", True, experts=EXPERTS))
MODEL = tiny.model(CONFIG)


def test_silenced_experts_write_nothing_and_the_others_what_they_did() -> None:
    plain, edit = run(MODEL, tiny.IDS), SilenceExperts(1, [1, 3])
    edited = run(MODEL, tiny.IDS, edits=[edit_from_dict(edit.to_dict())])
    chosen = plain["blocks.1.mlp.router.chosen"]
    silent = (chosen == 1) | (chosen == 3)
    assert silent.any() and not silent.all()
    torch.testing.assert_close(
        edited["blocks.1.mlp.router.weights"], plain["blocks.1.mlp.router.weights"].masked_fill(silent, 0)
    )
    mute = tiny.model(CONFIG)
    mute.blocks[1].mlp.experts.out.weight[[1, 3]] = 0
    mute.blocks[1].mlp.experts.out.bias[[1, 3]] = 0
    torch.testing.assert_close(edited["logits"], run(mute, tiny.IDS)["logits"])


@pytest.mark.parametrize("used", [1, 2, 3, 5])
def test_with_another_number_it_is_the_model_of_that_config(used: int) -> None:
    other = Transformer(replace(CONFIG, mlp=replace(CONFIG.mlp, experts=replace(EXPERTS, used=used)))).eval()
    other.load_state_dict(MODEL.state_dict())
    edited = run(MODEL, tiny.IDS, edits=[UseExperts(used)])
    torch.testing.assert_close(edited["logits"], run(other, tiny.IDS)["logits"], atol=1e-5, rtol=1e-5)
    assert edited["blocks.2.mlp.router.weights"].shape[-1] == max(used, 2)


def test_tokens_that_are_sent_elsewhere_count_by_the_routers_probability() -> None:
    trace = run(MODEL, tiny.IDS, edits=[SendTokens(2, 4, [0, 3], slot=1)], keep=["*", "*.experts.out"])
    plain = run(MODEL, tiny.IDS)
    router = "blocks.2.mlp.router."
    assert trace[f"{router}chosen"][0, [0, 3], 1].tolist() == [4, 4]
    assert torch.equal(trace[f"{router}chosen"][0, 1], plain[f"{router}chosen"][0, 1])
    chosen, probs = trace[f"{router}chosen"][0, 3], trace[f"{router}probs"][0, 3]
    shares = probs[chosen] / probs[chosen].sum()
    torch.testing.assert_close(trace[f"{router}weights"][0, 3], shares)
    written = (shares[:, None] * trace["blocks.2.mlp.experts.out"][0, 3]).sum(0) + trace["blocks.2.mlp.shared.out"][
        0, 3
    ]
    torch.testing.assert_close(trace["blocks.2.mlp.out"][0, 3], written)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (UseExperts(6), "an edit must leave each token 1 or more experts and at most 5, got 6"),
        (SendTokens(1, 5), "an edit must choose experts 0 to 4, got 5"),
        (SilenceExperts(1, [7]), r"expert of blocks.1.mlp.router.gain must be in 0..4, got 7"),
        (SilenceExperts(0, [1]), "no hook is called 'blocks.0.mlp.router.gain'"),
    ],
)
def test_what_no_expert_can_do_is_one_sentence(edit: Edit, said: str) -> None:
    with pytest.raises((ValueError, KeyError), match=said):
        run(MODEL, tiny.IDS, edits=[edit])


def test_one_expert_is_read_by_name_and_has_the_tokens_that_were_sent_to_it() -> None:
    trace = run(MODEL, tiny.IDS, ["*experts.out", "*.resid_mid", "*.norm2.out", "*router.*", "*experts.*"])
    mlp = MODEL.blocks[2].mlp
    chosen = trace["blocks.2.mlp.hook_expert_indices"]
    assert torch.equal(chosen, trace["blocks.2.mlp.router.chosen"]) and "blocks.2.mlp.experts.1.out" in trace
    for expert in range(5):
        found = trace[f"blocks.2.mlp.experts.{expert}.pre"]
        sent = (chosen == expert).any(-1)
        assert found.is_sparse and torch.equal(found.coalesce().indices().mT, sent.nonzero())
        x = trace["blocks.2.norm2.out"]
        wanted = x @ mlp.experts.pre.weight[expert].mT + mlp.experts.pre.bias[expert]
        torch.testing.assert_close(found.to_dense(), wanted * sent[..., None])
        assert torch.equal(trace[f"blocks.2.mlp.experts.{expert}.hook_gate"].to_dense(), found.to_dense())
    with pytest.raises(KeyError, match="no hook is called"):
        trace["blocks.0.mlp.experts.1.pre"]  # a dense layer
