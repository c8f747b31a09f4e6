"""Entropy of attention: 0 bits for one key, log2 n for n keys alike, and the mean of the heads."""

import numpy as np
import torch

from engine.analysis.entropy import attention_entropy
from engine.edits import SetPattern
from engine.runtime.run import run
from tests.engine import tiny


def test_entropy_is_the_mean_over_heads_of_each_rows() -> None:
    trace = run(tiny.model(tiny.config("rotary")), tiny.IDS[:6])
    found = attention_entropy(trace)
    pattern = trace["blocks.1.attn.pattern"][0].double().numpy()
    expected = -np.where(pattern > 0, pattern * np.log2(np.where(pattern > 0, pattern, 1)), 0).sum(-1).mean(0)
    np.testing.assert_allclose(found[1].numpy(), expected, atol=1e-6)
    assert found.shape == (trace.stack("attn.pattern").shape[0], 6) and found[0, 0] == 0


def test_entropy_of_an_even_row_is_log2_of_its_length() -> None:
    trace = run(tiny.model(tiny.config("rotary")), tiny.IDS[:4], edits=[SetPattern(layer=0, to="uniform")])
    torch.testing.assert_close(attention_entropy(trace)[0], torch.tensor([1.0, 2.0, 3.0, 4.0]).log2())
