"""Long causal texts are attended to in strips of rows; the numbers are those of the whole square."""

from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from engine.edits import AttentionTemperature, Replace
from engine.model.config import ModelConfig
from engine.model.layers import attention
from engine.model.layers.causal_strips import LONG, pattern_by_strips
from engine.runtime.run import run
from tests.engine import tiny

LENGTH = LONG + 37  # no whole number of strips
PATTERN = "blocks.1.attn.pattern"
IDS = torch.randint(tiny.CONFIG.vocab_size, (2, LENGTH), generator=torch.Generator().manual_seed(0))


def long_model(positions: str = "rotary", **attention: object) -> tuple[ModelConfig, Tensor]:
    config = tiny.config(positions, attention=attention, context=LENGTH)
    return config, IDS


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
def test_a_long_pattern_is_the_softmax_of_the_whole_square(kv_heads: int) -> None:
    config, ids = long_model(kv_heads=kv_heads)
    found = run(tiny.model(config), ids, keep=("*.attn.q_rotated", "*.attn.k_rotated", "*.v", "*.pattern", "*.z"))
    q = found["blocks.1.attn.q_rotated"].transpose(1, 2).double()
    k, v = (
        found[f"blocks.1.attn.{name}"].transpose(1, 2).double().repeat_interleave(4 // kv_heads, 1)
        for name in ("k_rotated", "v")
    )
    scores = q @ k.mT / 4**0.5
    expected = scores.masked_fill(torch.ones(LENGTH, LENGTH).triu(1).bool(), -torch.inf).softmax(-1)
    torch.testing.assert_close(found[PATTERN].double(), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(found["blocks.1.attn.z"].double(), (expected @ v).transpose(1, 2), atol=1e-5, rtol=0)
    assert not found[PATTERN].triu(1).any()


def test_strips_give_what_the_run_with_every_step_gives() -> None:
    config, ids = long_model("learned")
    model = tiny.model(config)
    whole = run(model, ids)
    with patch.object(attention, "pattern_by_strips", wraps=pattern_by_strips) as used:
        alone = run(model, ids, keep=("logits", "*.pattern"))
    assert used.call_count == config.layers
    for hook in ("logits", PATTERN):
        torch.testing.assert_close(alone[hook], whole[hook], atol=1e-4, rtol=1e-4)


def test_an_edited_pattern_of_a_long_text_may_look_ahead() -> None:
    config, ids = long_model("learned")
    model = tiny.model(config)
    last = {"pos": 0, "key": LENGTH - 1}
    edits = [Replace(PATTERN, 1.0, last)]
    found = run(model, ids, keep=(PATTERN, "blocks.1.attn.v", "blocks.1.attn.z"), edits=edits)
    pattern, v = found[PATTERN].double(), found["blocks.1.attn.v"].transpose(1, 2).double()
    assert (pattern[:, :, 0, -1] == 1).all()
    torch.testing.assert_close(found["blocks.1.attn.z"].double(), (pattern @ v).transpose(1, 2), atol=1e-5, rtol=0)


@pytest.mark.parametrize("what", ["alibi", "softcap", "nearest", "temperature", "short", "scores"])
def test_whatever_else_is_done_or_looked_at_takes_the_whole_square(what: str) -> None:
    more = {"softcap": {"softcap": 5.0}, "nearest": {"nearest": 3}}.get(what, {})
    config, ids = long_model("alibi" if what == "alibi" else "learned", **more)
    keep = ("*.pattern", "*.scores") if what == "scores" else "*.pattern"
    edits = [AttentionTemperature(2.0)] if what == "temperature" else []
    with patch.object(attention, "pattern_by_strips", wraps=pattern_by_strips) as used:
        run(tiny.model(config), ids[:, : LONG - 1] if what == "short" else ids, keep, edits)
    assert not used.call_count
