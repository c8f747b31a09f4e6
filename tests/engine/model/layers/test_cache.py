from itertools import product

import pytest
import torch

from engine.model.config import Positions
from engine.model.layers.cache import KVCache
from engine.runtime.run import run
from tests.engine import tiny

KINDS = [
    *[(kind, {}) for kind in tiny.POSITIONS],
    (Positions("disentangled", buckets=4, farthest=6), {}),
    ("rotary", {"kv_heads": 2}),
    ("alibi", {"kv_heads": 1}),
    ("learned", {"window": 3}),
    ("rotary", {"window": 3, "kv_heads": 2}),
]


def test_reading_on_from_a_cache_equals_reading_everything(subtests: pytest.Subtests) -> None:
    for (positions, attention), steps, keep in product(KINDS, [[1] * 8, [3, 1, 1, 3]], ["logits", "*"]):
        with subtests.test(positions=positions, attention=attention, steps=steps, keep=keep):
            model = tiny.model(tiny.config(positions, attention=attention))
            whole = run(model, tiny.IDS)["logits"]
            cache = KVCache(model.config, batch=1, length=8, like=model.embed.tokens.weight)
            for step in steps:
                done = cache.tokens
                trace = run(model, tiny.IDS[done : done + step], keep=keep, cache=cache)
                torch.testing.assert_close(trace["logits"], whole[:, done : done + step], atol=1e-4, rtol=0)
                assert trace.past == done
            assert cache.tokens == 8


def test_the_pattern_of_a_new_token_spans_all_keys_so_far() -> None:
    model = tiny.model()
    cache = KVCache(model.config, batch=1, length=8, like=model.embed.tokens.weight)
    run(model, tiny.IDS[:6], cache=cache)
    last = run(model, tiny.IDS[6:7], cache=cache)["blocks.2.attn.pattern"]
    whole = run(model, tiny.IDS[:7])["blocks.2.attn.pattern"]
    assert last.shape == (1, 4, 1, 7)
    torch.testing.assert_close(last, whole[:, :, 6:7], atol=1e-5, rtol=0)


def test_the_cache_takes_exactly_the_memory_of_its_keys_and_values() -> None:
    model = tiny.model(tiny.config(attention={"kv_heads": 2}))
    cache = KVCache(model.config, batch=5, length=7, like=model.embed.tokens.weight)
    assert cache.bytes == 2 * 3 * 5 * 7 * 2 * 4 * 4  # k and v, layers, batch, tokens, kv heads, d_head, bytes


def test_more_tokens_than_the_cache_holds_are_refused() -> None:
    model = tiny.model()
    cache = KVCache(model.config, batch=1, length=4, like=model.embed.tokens.weight)
    run(model, tiny.IDS[:4], cache=cache)
    with pytest.raises(ValueError, match="the cache must hold 5 tokens, and has room for 4"):
        run(model, [1], cache=cache)


def test_past_tokens_count_towards_the_context() -> None:
    model = tiny.model(tiny.config(context=5))
    cache = KVCache(model.config, batch=1, length=9, like=model.embed.tokens.weight)
    run(model, [1, 2, 3, 4], cache=cache)
    with pytest.raises(ValueError, match="reads at most 5 tokens, got 6"):
        run(model, [1, 2], cache=cache)
