"""Layers that share blocks, and token vectors narrower than the stream, against direct computations."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.model.config import Attention, Embedding, ModelConfig, Norm, OutputHead, Patches
from engine.model.transformer import Transformer
from engine.runtime.run import run
from tests.engine import tiny

TOKENS = Embedding(width=6, mapped="tokens")
ALL = Embedding(segments=2, norm=True, width=6)


def test_layers_of_a_run_compute_with_the_same_tensors_and_keep_their_own_values() -> None:
    model = tiny.model(tiny.config(layers=4, distinct=2))
    plain = tiny.model(tiny.config(layers=4))
    state = model.state_dict()
    assert {name.split(".")[1] for name in state if name.startswith("blocks")} == {"0", "2"}
    each = {
        name: state[name.replace(f"blocks.{layer}.", f"blocks.{layer - layer % 2}.")]
        for layer in range(4)
        for name in plain.state_dict()
        if name.startswith(f"blocks.{layer}.") or not name.startswith("blocks.")
    }
    plain.load_state_dict(each)
    shared, own = run(model, tiny.IDS), run(plain, tiny.IDS)
    assert list(shared) == list(own)
    for name in own:
        torch.testing.assert_close(shared[name], own[name], msg=name)
    assert not torch.equal(shared["blocks.0.attn.pattern"], shared["blocks.1.attn.pattern"])


@pytest.mark.parametrize("assign", [False, True])
def test_they_stay_the_same_tensors_whatever_is_done_to_the_model(assign: bool) -> None:
    config = tiny.config(layers=4, distinct=1)
    state = tiny.model(config).state_dict()
    with torch.device("meta"):
        empty = Transformer(config)
    model = empty if assign else empty.to_empty(device="cpu")
    assert str(model.load_state_dict(state, assign=assign)) == "<All keys matched successfully>"
    for one in (model, copy.deepcopy(model), copy.deepcopy(model).to(torch.float64)):
        assert all(block.attn.q.weight is one.blocks[0].attn.q.weight for block in one.blocks)
        assert one.blocks[3].mlp.pre.bias.device.type == "cpu"
        torch.testing.assert_close(one.blocks[3].mlp.pre.weight, state["blocks.0.mlp.pre.weight"], check_dtype=False)
    copied = copy.deepcopy(model)
    copied.blocks[2].attn.q.weight.data.zero_()
    assert not copied.blocks[0].attn.q.weight.any() and model.blocks[0].attn.q.weight.any()


def test_a_missing_tensor_of_a_shared_block_is_missed() -> None:
    model = tiny.model(tiny.config(layers=2, distinct=1))
    state = {name: tensor for name, tensor in model.state_dict().items() if name != "blocks.0.attn.q.weight"}
    with pytest.raises(RuntimeError, match="blocks.0.attn.q.weight"):
        model.load_state_dict(state)


@torch.no_grad()
@pytest.mark.parametrize("tied", [True, False])
def test_tokens_alone_are_mapped_to_the_stream_and_the_stream_back_before_the_head(tied: bool) -> None:
    model = tiny.model(tiny.config(embedding=TOKENS, tied=tied))
    trace = run(model, tiny.IDS)
    tokens, positions = model.embed.tokens.weight[tiny.IDS], model.embed.positions.weight[: len(tiny.IDS)]
    assert trace["embed.tokens"].shape[-1] == 6 and trace.dims("embed.tokens")[-1] == "d_embed"
    torch.testing.assert_close(trace["embed.tokens"][0], tokens)
    torch.testing.assert_close(trace["embed.mapped"][0], tokens @ model.embed.mapped.weight.T)
    torch.testing.assert_close(trace["blocks.0.resid_pre"][0], tokens @ model.embed.mapped.weight.T + positions)
    narrow = trace["final_norm.out"] @ model.head.narrow.weight.T
    torch.testing.assert_close(trace["head.narrow"], narrow)
    table = model.embed.tokens.weight if tied else model.head.weight
    torch.testing.assert_close(trace["logits"], narrow @ table.T)


@torch.no_grad()
def test_all_that_was_added_up_is_mapped_behind_its_norm() -> None:
    head = OutputHead("masked", bias=True)
    model = tiny.model(tiny.config(embedding=ALL, head=head, attention={"mask": "full"}, norm=Norm(place="after")))
    trace, embed = run(model, tiny.IDS), model.embed
    added = trace["embed.tokens"] + trace["embed.segments"] + trace["embed.positions"]
    normed = torch.nn.functional.layer_norm(added, (6,), embed.norm.weight, embed.norm.bias, embed.norm.eps)
    torch.testing.assert_close(trace["embed.norm.out"], normed)
    mapped = normed @ embed.mapped.weight.T + embed.mapped.bias
    torch.testing.assert_close(trace["blocks.0.resid_pre"], mapped)
    dense = trace["blocks.2.norm2.out"] @ model.head.dense.weight.T + model.head.dense.bias
    torch.testing.assert_close(trace["head.pre"], dense)
    torch.testing.assert_close(trace["logits"], trace["head.norm.out"] @ embed.tokens.weight.T + model.head.bias)


@torch.no_grad()
def test_a_width_that_is_the_streams_own_is_mapped_all_the_same() -> None:
    model = tiny.model(tiny.config(embedding=Embedding(width=tiny.config().d_model)))
    assert "embed.mapped" in model.hooks
    assert not torch.allclose(run(model, tiny.IDS)["embed.mapped"], run(model, tiny.IDS)["embed.tokens"])


ENCODER = {"layers": 2, "attention": {"heads": 2, "mask": "full"}}
DISTILLED = Embedding(patches=Patches(12, 4, distilled=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 4, "distinct": 3}, "distinct must divide the number of layers, 4, got 3"),
        ({"layers": 2, "distinct": 4}, "distinct must divide the number of layers, 2, got 4"),
        ({"distinct": 0}, "distinct must be at least 1, got 0"),
        ({"embedding": {"width": 0}}, "embedding.width must be at least 1, got 0"),
        ({"embedding": {"width": 6}, "encoder": ENCODER}, "distinct and embedding.width are for one stack"),
        ({"distinct": 1, "encoder": ENCODER}, "distinct and embedding.width are for one stack"),
        ({"head": {"kind": "sequence", "classes": 3, "averaged": True}}, r"head.averaged reads \[CLS\] and \[DIST\]"),
    ],
    ids=str,
)
def test_what_no_model_can_be_built_from(changes: dict[str, Any], message: str) -> None:
    data = tiny.config().to_dict() | changes
    with pytest.raises(ValueError, match=message):
        ModelConfig.from_dict(data)


def test_a_distilled_picture_has_one_position_more_and_no_squares() -> None:
    seen = Attention(4, mask="full")
    one = ModelConfig(1, 11, 24, 2, seen, embedding=DISTILLED, head=OutputHead("none"))
    with pytest.raises(ValueError, match=r"context must be 11, \[CLS\] and \[DIST\] and each patch, got 10"):
        replace(one, context=10)
    with pytest.raises(ValueError, match="this model has 2"):
        replace(one, attention=replace(seen, block=1))
    with pytest.raises(ValueError, match="embedding.width is that of token vectors"):
        replace(one, embedding=replace(DISTILLED, width=6))
