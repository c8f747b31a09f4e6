"""How fast pairs turn under each scaling, against the functions transformers computes them with."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from engine.model.config import Positions, RotaryScaling
from engine.model.layers.rotary import depends_on_length, rotary_frequencies, unscaled_frequencies
from tests.engine import tiny

CONTEXT = 4096
SCALINGS: dict[str, tuple[RotaryScaling, dict[str, Any]]] = {
    "linear": (RotaryScaling("linear", 2.5, CONTEXT), {"factor": 2.5}),
    "dynamic": (RotaryScaling("dynamic", 4.0, CONTEXT), {"factor": 4.0}),
    "dynamic by one": (RotaryScaling("dynamic", 1.0, CONTEXT), {"factor": 1.0}),
    "yarn": (RotaryScaling("yarn", 4.0, 1024), {"factor": 4.0, "original_max_position_embeddings": 1024}),
    "yarn of a short text": (RotaryScaling("yarn", 8.0, 100), {"factor": 8.0, "original_max_position_embeddings": 100}),
    "yarn of next to no text": (RotaryScaling("yarn", 8.0, 2), {"factor": 8.0, "original_max_position_embeddings": 2}),
    "yarn by less than one": (
        RotaryScaling("yarn", 0.5, 1024),
        {"factor": 0.5, "original_max_position_embeddings": 1024},
    ),
    "yarn between its own turns": (
        RotaryScaling("yarn", 4.0, 1024, slow=2.0, fast=20.0),
        {"factor": 4.0, "original_max_position_embeddings": 1024, "beta_slow": 2.0, "beta_fast": 20.0},
    ),
    "yarn between the same turns": (
        RotaryScaling("yarn", 4.0, 1024, slow=8.0, fast=8.0),
        {"factor": 4.0, "original_max_position_embeddings": 1024, "beta_slow": 8.0, "beta_fast": 8.0},
    ),
    "yarn with an attention factor": (
        RotaryScaling("yarn", 4.0, 1024, attention=0.7),
        {"factor": 4.0, "original_max_position_embeddings": 1024, "attention_factor": 0.7},
    ),
    "llama3": (
        RotaryScaling("llama3", 8.0, 1024),
        {"factor": 8.0, "original_max_position_embeddings": 1024, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    ),
    "llama3 between its own wavelengths": (
        RotaryScaling("llama3", 32.0, 512, low=2.0, high=16.0),
        {"factor": 32.0, "original_max_position_embeddings": 512, "low_freq_factor": 2.0, "high_freq_factor": 16.0},
    ),
}


def longrope(turned: int, **given: float) -> tuple[RotaryScaling, dict[str, Any]]:
    short = tuple(1.0 + 0.1 * pair for pair in range(turned // 2))
    long = tuple(2.0 + 0.7 * pair for pair in range(turned // 2))
    theirs = {"short_factor": list(short), "long_factor": list(long), "original_max_position_embeddings": 1024, **given}
    factor = given.get("factor", CONTEXT / 1024)
    attention = given.get("attention_factor")
    return RotaryScaling("longrope", factor, 1024, short=short, long=long, attention=attention), theirs


def compare(scaling: RotaryScaling, theirs: dict[str, Any], turned: int, theta: float, length: int) -> None:
    parameters = {"rope_type": scaling.kind, "rope_theta": theta, **theirs}
    config = LlamaConfig(
        hidden_size=4 * turned, num_attention_heads=4, max_position_embeddings=CONTEXT, rope_parameters=parameters
    )
    expected, attention = ROPE_INIT_FUNCTIONS[scaling.kind](config, seq_len=length)
    made, stretch = rotary_frequencies(turned, Positions("rotary", theta=theta, scaling=scaling), length)
    torch.testing.assert_close(made, expected, atol=0, rtol=2e-6)
    assert stretch == pytest.approx(attention, abs=1e-12)


def test_each_scaling_is_that_of_transformers(subtests: pytest.Subtests) -> None:
    sizes, lengths = [(64, 10_000.0), (128, 500_000.0), (8, 100.0)], [1, 1024, 1025, 4097, 20_000]
    for name, (turned, theta), length in product(SCALINGS, sizes, lengths):
        with subtests.test(name=name, turned=turned, theta=theta, length=length):
            compare(*SCALINGS[name], turned, theta, length)


@pytest.mark.parametrize("given", [{}, {"factor": 8.0}, {"factor": 1.0}, {"factor": 3.0, "attention_factor": 1.3}])
@pytest.mark.parametrize("length", [1, 1024, 1025, 20_000])
def test_longrope_is_that_of_transformers(length: int, given: dict[str, float]) -> None:
    compare(*longrope(64, **given), 64, 10_000.0, length)
    compare(*longrope(8, **given), 8, 100.0, length)


def test_the_first_pair_turns_a_radian_a_token_and_each_next_one_slower_by_the_same_ratio() -> None:
    turns = unscaled_frequencies(8, 10_000.0).tolist()
    assert turns == pytest.approx([1.0, 0.1, 0.01, 0.001])


def test_only_two_kinds_look_at_how_long_the_text_is() -> None:
    kinds = [*(scaling for scaling, _ in SCALINGS.values()), longrope(64)[0]]
    for scaling in kinds:
        positions = Positions("rotary", scaling=scaling)
        short, long = (rotary_frequencies(64, positions, length)[0] for length in (1024, 9000))
        moves = not torch.equal(short, long)
        assert depends_on_length(positions) or not moves
        assert moves or scaling.kind not in ("dynamic", "longrope") or scaling.factor == 1


def test_an_attention_factor_of_its_own_replaces_that_of_the_kind() -> None:
    assert rotary_frequencies(64, Positions("rotary", scaling=RotaryScaling("yarn", 4.0, 1024)))[1] == pytest.approx(
        0.1 * math.log(4) + 1
    )
    scaling = RotaryScaling("linear", 4.0, 1024, attention=2.0)
    assert rotary_frequencies(64, Positions("rotary", scaling=scaling))[1] == 2.0


@pytest.mark.parametrize(
    ("scaling", "theta", "message"),
    [
        (RotaryScaling("linear", 0.0, 8), 1e4, "positions.scaling.factor must be above 0, got 0.0"),
        (RotaryScaling("yarn", 2.0, 8, fast=0.0), 1e4, "positions.scaling.fast must be above 0, got 0.0"),
        (RotaryScaling("yarn", 2.0, 8), 1.0, "positions.theta must be above 1 for yarn, got 1.0"),
        (RotaryScaling("llama3", 2.0, 1), 1e4, "positions.scaling.trained must be at least 2, got 1"),
        (RotaryScaling("longrope", 2.0, 8, short=(1.0,) * 2), 1e4, r"scaling.long must be 2 numbers above 0, got \[\]"),
        (
            RotaryScaling("longrope", 2.0, 8, short=(0.0, 1.0), long=(1.0, 1.0)),
            1e4,
            r"scaling.short must be 2 numbers above 0, got \[0.0, 1.0\]",
        ),
    ],
)
def test_a_scaling_that_turns_nothing_is_refused(scaling: RotaryScaling, theta: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(tiny.CONFIG, positions=Positions("rotary", theta=theta, scaling=scaling))


def test_dynamic_scaling_needs_more_than_one_pair() -> None:
    one_pair = tiny.config("rotary", attention={"d_head": 2})
    with pytest.raises(ValueError, match="let more than one pair turn"):
        replace(one_pair, positions=Positions("rotary", scaling=RotaryScaling("dynamic", 2.0, 8)))
