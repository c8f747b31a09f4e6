"""Layers are called straight, unless somebody registered a hook of PyTorch's kind."""

from engine.model.layers.module import Linear
from tests.engine.tiny import normal


def test_hooks_of_pytorch_on_a_layer_are_called() -> None:
    layer, seen = Linear(3, 2), []
    layer(normal(1, 3))
    handle = layer.register_forward_hook(lambda *_: seen.append(1))
    layer(normal(1, 3))
    handle.remove()
    layer(normal(1, 3))
    assert seen == [1]
