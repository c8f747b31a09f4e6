"""The price of a token: counts as the products of a run have them, and bytes as a cache that is filled has them."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from engine import load
from engine.analysis.caching import cache_bytes
from engine.course.price import (
    config_of,
    count_parts,
    count_text,
    count_token,
    find_crossing,
    kv_bytes,
    measure_tokens,
)
from engine.generation.prompt import LAST
from engine.model.layers.cache import KVCache

NAME = "everyday"


def test_operations_are_those_of_the_products_of_a_run() -> None:
    """PyTorch counts each multiply-add twice."""
    model, ids = load(NAME).model, torch.arange(40)[None]
    cache = KVCache(model.config, 1, 40, next(model.parameters()))
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):  # whose products are counted
        model(ids[:, :39], cache=cache, logits_at=LAST)
        with FlopCounterMode(display=False) as last:
            model(ids[:, 39:], cache=cache, logits_at=LAST)
        with FlopCounterMode(display=False) as every:
            model(ids, logits_at=LAST)
    found = count_token(NAME, 40)
    assert last.get_total_flops() == 2 * found.cached
    assert every.get_total_flops() == 2 * found.again


def test_twice_as_many_tokens_are_about_twice_and_four_times_as_much() -> None:
    short, long = count_text(NAME, 40), count_text(NAME, 80)
    assert short.cached == sum(count_token(NAME, n).cached for n in range(1, 41))
    assert 2 < long.cached / short.cached < 2.1 and 3.9 < long.again / short.again < 4.2


@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", NAME])
def test_the_bytes_of_the_formula_are_those_of_a_cache(name: str) -> None:
    config = config_of(name)
    heads = config.attention.kv_heads or config.attention.heads
    width = config.head_width(config.attention)
    assert kv_bytes(config.layers, heads, width, 100, 4) == cache_bytes(config, 100)
    assert count_parts(name, 100, number=1).bytes == kv_bytes(config.layers, heads, width, 100, 1)


def test_attention_crosses_the_mlp_where_it_is_said() -> None:
    assert find_crossing("gpt2") == 3072  # the width of its MLP
    assert find_crossing("llama-2-7b") == 3 * 11_008 // 2  # gated, of three matrices
    for name in ("gpt2", "llama-3-8b", NAME):
        at = find_crossing(name)
        below, above = count_parts(name, at), count_parts(name, at + 1)
        assert below.attention <= below.mlp == above.mlp < above.attention


def test_a_window_ends_the_growth() -> None:
    near, far = (count_parts("gpt2", n, window=64) for n in (64, 1000))
    assert (near.attention, near.bytes) == (far.attention, far.bytes)
    full = count_parts("gpt2", 1000)
    assert full.attention * 64 == far.attention * 1000 and full.bytes * 64 == far.bytes * 1000
    assert count_parts("gpt2", 40, window=64) == count_parts("gpt2", 40)


def test_seconds_are_measured_of_a_text_that_is_repeated() -> None:
    found = measure_tokens(NAME, [5, 17, 300], [2, 8])
    assert [one.length for one in found] == [2, 8] and all(one.cached > 0 < one.again for one in found)
