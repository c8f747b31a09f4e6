from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from engine.analysis.caching import cache_bytes, multiply_adds_again, multiply_adds_cached, token_times
from engine.generation.prompt import LAST
from engine.model.config import MLP, Attention, Embedding, Encoder, ModelConfig, OutputHead
from engine.model.layers.cache import KVCache
from engine.model.transformer import Transformer
from tests.engine import tiny

SOURCE = [5, 9, 7, 4]
GATED = MLP(20, "silu", gated=True, bias=False)
SEEING = Encoder(2, Attention(4, mask="full"), MLP(20), start=3)
KINDS: dict[str, ModelConfig] = {
    "gpt2": tiny.CONFIG,
    "llama": tiny.config("rotary", attention={"kv_heads": 2}, mlp=GATED, tied=False),
    "one key head": tiny.config("alibi", attention={"kv_heads": 1, "d_head": 6}),
    "attention alone": tiny.config(mlp=None),
    "narrow vectors": tiny.config(embedding=Embedding(width=6, mapped="tokens"), tied=True),
    "pictures": tiny.config(head=OutputHead(outputs=10), tied=False),
    "two stacks": tiny.config(encoder=SEEING),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_are_those_of_the_tensors_that_a_cache_holds(kind: str) -> None:
    config = KINDS[kind]
    source = len(SOURCE) if config.encoder else 0
    for dtype in (torch.float32, torch.bfloat16):
        for length in (1, 7, 24):
            cache = KVCache(config, 1, length, torch.empty(0, dtype=dtype), source)
            held = [tensor for layer in (*cache.layers, *cache.cross) for tensor in (layer.k, layer.v)]
            assert cache_bytes(config, length, dtype, source) == sum(tensor.nbytes for tensor in held)
    assert cache_bytes(replace(config, encoder=None), 20) == 20 * cache_bytes(replace(config, encoder=None), 1)


def counted(model: Transformer, *ids: torch.Tensor, **options: object) -> int:
    """Multiply-adds by PyTorch's own counter, in the form of attention that shows each step."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(*ids, logits_at=LAST, **options)
    return counter.get_total_flops() // 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [2, 9, 24])
def test_the_arithmetic_of_a_token_is_what_pytorch_counts(kind: str, length: int) -> None:
    config = KINDS[kind]
    model = Transformer(config).eval()
    for block in model.modules():
        if hasattr(block, "explicit"):
            block.attend_fused = block.explicit
    ids, source = torch.zeros(1, length, dtype=torch.long), torch.tensor([SOURCE])
    cache = KVCache(config, 1, length, next(model.parameters()), len(SOURCE) if config.encoder else 0)
    if config.encoder is None:
        again = counted(model, ids)
        counted(model, ids[:, :-1], cache=cache)
        behind = counted(model, ids[:, -1:], cache=cache)
    else:
        memory = model.encoder.forward_resid(source)
        again = counted(model, source, target=ids, memory=memory, start=2)
        counted(model, source, target=ids[:, :-1], cache=cache)
        behind = counted(model, source, target=ids[:, -1:], cache=cache)
    assert multiply_adds_cached(config, length, len(SOURCE)) == behind
    assert multiply_adds_again(config, length, len(SOURCE)) == again


def test_a_window_ends_what_a_token_costs_more_than_the_one_before() -> None:
    config = tiny.config(attention={"window": 5})
    costs = [multiply_adds_cached(config, length) for length in range(1, 10)]
    assert costs[:5] == sorted(set(costs[:5])) and len(set(costs[4:])) == 1
    some = tiny.config(attention={"window": 5, "windowed": (0,)})
    assert multiply_adds_cached(some, 9) - multiply_adds_cached(some, 8) == 2 * 2 * 16  # two layers without


@pytest.mark.parametrize("kind", ["gpt2", "two stacks"])
def test_times_are_measured_for_each_length_that_is_asked_for(kind: str) -> None:
    model = tiny.model(KINDS[kind])
    source = SOURCE if kind == "two stacks" else ()
    found = list(token_times(model, [1, 2, 3, 4, 5] * 4, [1, 7, 20], source))
    assert [one.length for one in found] == [1, 7, 20]
    assert all(one.cached > 0 and one.again > 0 for one in found)
    with pytest.raises(ValueError, match=r"lengths must lie in 1..5, the tokens given, got 0..9"):
        list(token_times(model, [1, 2, 3, 4, 5], [9, 0], source))


@pytest.mark.parametrize("kind", ["gpt2", "llama", "two stacks"])
def test_a_cache_that_was_rewound_reads_on_as_if_it_had_read_no_more(kind: str) -> None:
    model = tiny.model(KINDS[kind])
    ids = torch.tensor([tiny.IDS])
    source = torch.tensor([SOURCE])
    read = (
        (lambda new, cache: model(source, target=new, cache=cache))
        if kind == "two stacks"
        else (lambda new, cache: model(new, cache=cache))
    )
    cache = KVCache(model.config, 1, 8, next(model.parameters()), len(SOURCE) if kind == "two stacks" else 0)
    read(ids, cache)
    cache.rewind(3)
    fresh = KVCache(model.config, 1, 8, next(model.parameters()), len(SOURCE) if kind == "two stacks" else 0)
    read(ids[:, :3], fresh)
    other = ids.flip(1)[:, :4]
    torch.testing.assert_close(read(other, cache), read(other, fresh), atol=1e-5, rtol=0)
    assert cache.tokens == 7
