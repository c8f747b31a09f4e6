"""Adapters as edits: switched, scaled and added up in a run and in a generation."""

import json

import pytest
import torch

from engine.checkpoints import Checkpoint
from engine.edits import ApplyAdapter, Scale, SilenceHeads, edit_from_dict, find_adapter, keep_adapter
from engine.generation.generate import generate
from engine.model.layers.lora import merge, new_adapter
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.model.layers.test_lora import CONFIGS, random_adapter
from tests.engine.runtime.test_base import blocks_computed


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_run_with_adapters_is_that_of_the_merged_model_and_the_sum_of_several(kind: str) -> None:
    model = tiny.model(CONFIGS[kind])
    one, other = random_adapter(model), random_adapter(model, "attn.v", "mlp.out", seed=50)
    edits = [ApplyAdapter.of(one, 0.5), ApplyAdapter.of(other, 2.0)]
    keep = ["*", "*.head_out"]  # which W_O is used for head by head
    trace, merged = run(model, tiny.IDS, keep, edits), run(merge(model, {one: 0.5, other: 2.0}), tiny.IDS, keep)
    for name in merged:
        torch.testing.assert_close(trace[name], merged[name], atol=2e-5, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("kind", CONFIGS)
def test_strength_zero_is_the_base_to_the_bit(kind: str) -> None:
    model = tiny.model(CONFIGS[kind])
    plain, trace = run(model, tiny.IDS), run(model, tiny.IDS, edits=[ApplyAdapter.of(random_adapter(model), 0)])
    assert all(torch.equal(trace[name], plain[name]) for name in plain)


def test_from_a_base_only_what_follows_the_first_adapted_layer_is_computed() -> None:
    model = tiny.model()
    edit = ApplyAdapter.of(random_adapter(model, "blocks.1.attn.v", "blocks.2.mlp.pre"))
    base, whole = run(model, tiny.IDS), run(model, tiny.IDS, edits=[edit])
    with blocks_computed() as computed:
        trace = run(model, tiny.IDS, edits=[edit], base=base)
    assert (len(computed), trace.start) == (2, 1)
    for name in whole:
        torch.testing.assert_close(trace[name], whole[name], atol=1e-5, rtol=1e-5)
    with blocks_computed() as computed:
        stronger = run(model, tiny.IDS, edits=[ApplyAdapter(edit.adapter, 2.0)], base=trace)
    assert len(computed) == 2
    assert not torch.allclose(stronger["logits"], trace["logits"], atol=1e-3)


@pytest.mark.parametrize("kind", CONFIGS)
def test_generation_reads_each_token_through_the_adapter_and_the_cache(kind: str) -> None:
    model = tiny.model(CONFIGS[kind])
    edits = [ApplyAdapter.of(random_adapter(model)), SilenceHeads(1, [0], stack="decoder" if kind == "pair" else None)]
    steps = list(generate(Checkpoint(model), tiny.IDS[:3], 6, greedy=True, stop_at_end=False, edits=edits))
    plain = list(generate(Checkpoint(model), tiny.IDS[:3], 6, greedy=True, stop_at_end=False))
    assert len(steps) == 6
    assert not torch.allclose(steps[0].logits, plain[0].logits, atol=1e-2)
    for step in steps:
        read = (step.source, step.before) if kind == "pair" else (step.before, None)
        again = run(model, list(read[0]), "logits", step.edits, target=read[1] and list(read[1]))
        torch.testing.assert_close(step.logits, again["logits"][0, -1], atol=1e-5, rtol=1e-5)


def test_it_goes_through_json_and_other_edits_see_what_it_made() -> None:
    model = tiny.model()
    adapter = random_adapter(model, "attn.q")
    edit = ApplyAdapter.of(adapter, 1.5)
    assert edit.to_dict() == {"edit": "ApplyAdapter", "adapter": adapter.key, "strength": 1.5}
    again = edit_from_dict(json.loads(json.dumps(edit.to_dict())))
    assert again == edit
    both = run(model, tiny.IDS, edits=[Scale("blocks.0.attn.q", 2.0), again])
    alone = run(model, tiny.IDS, edits=[edit])
    torch.testing.assert_close(both["blocks.0.attn.q"], 2 * alone["blocks.0.attn.q"])


def test_what_is_learned_later_is_not_in_the_edit() -> None:
    adapter = random_adapter(tiny.model(), "attn.q").trainable()
    key = keep_adapter(adapter)
    with torch.no_grad():
        adapter.tensors[0].zero_()
    assert keep_adapter(adapter) != key
    assert find_adapter(key).tensors[0].any()


def test_what_cannot_be_used_is_refused() -> None:
    model, other = tiny.model(), tiny.model(tiny.config(d_model=24))
    with pytest.raises(ValueError, match=r"strength of an adapter must lie in 0..2, got 2.5"):
        ApplyAdapter("x", 2.5)
    with pytest.raises(ValueError, match="the adapter 'gone~1' is not here; open its folder again"):
        run(model, tiny.IDS, edits=[ApplyAdapter("gone~1")])
    with pytest.raises(ValueError, match="maps 24 numbers to 24 at blocks.0.attn.q, and the model maps 16 to 16"):
        run(model, tiny.IDS, edits=[ApplyAdapter.of(new_adapter(other, ["attn.q"]))])
