"""Layers are called straight, unless somebody registered a hook of PyTorch's kind."""

import copy

import pytest
import torch
from torch import nn

from engine.model.layers.module import Linear, Module
from tests.engine import tiny
from tests.engine.tiny import normal


def test_hooks_of_pytorch_on_a_layer_are_called() -> None:
    layer, seen = Linear(3, 2), []
    layer(normal(1, 3))
    handle = layer.register_forward_hook(lambda *_: seen.append(1))
    layer(normal(1, 3))
    handle.remove()
    layer(normal(1, 3))
    assert seen == [1]


def test_a_module_put_in_place_of_another_is_the_one_that_is_called() -> None:
    model, x = tiny.model(), normal(1, 3, 16)
    copied = copy.deepcopy(model)
    own, other = model.blocks[0].attn, copied.blocks[0].attn
    assert other.q is dict(copied.named_modules())["blocks.0.attn.q"] and other.q is not own.q
    other.q = nn.Linear(16, 16, bias=False)
    nn.init.zeros_(other.q.weight)
    assert not other.query(x).any() and own.query(x).all()


def test_a_module_that_is_taken_out_is_gone() -> None:
    module = Module()
    module.part = Linear(3, 2)
    module.part = None
    assert module.part is None and not list(module.parameters())
    module.part = Linear(3, 2)
    del module.part
    with pytest.raises(AttributeError, match="part"):
        _ = module.part


def test_weights_that_are_put_in_place_of_others_are_those_that_count() -> None:
    layer, x = Linear(3, 2), normal(1, 3)
    layer.load_state_dict({"weight": torch.ones(2, 3), "bias": torch.zeros(2)}, assign=True)
    torch.testing.assert_close(layer(x), x.sum(-1, keepdim=True).expand(1, 2))
    assert layer.to(torch.bfloat16)(x.bfloat16()).dtype == torch.bfloat16
