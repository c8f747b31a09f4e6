"""How many bits: floats by their bits as struct and torch have them, groups by hand, and a model that is stored."""

import copy
import math
import struct

import pytest
import torch

from engine import load
from engine.course.bits import (
    FLOATS,
    bits_of_weight,
    measure_each,
    measure_formats,
    split_float,
    store,
    store_integers,
    store_matrices,
)
from engine.model.layers.lora import list_linears

NAME, IDS = "stories", (5, 17, 300, 42, 9, 120)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("x", [0.1, -3.0, 257.0, 1e-7, 0.0, 65504.0, -1e-30])
def test_the_parts_of_a_float_make_its_value(kind: str, x: float) -> None:
    one = split_float(x, kind)
    power = 2.0 ** (max(one.exponent, 1) - one.bias)
    made = (-1) ** one.sign * power * ((one.exponent > 0) + one.mantissa / 2**one.mantissa_bits)
    assert made == one.value == float(torch.tensor(x).to(FLOATS[kind][0]))
    if kind == "float32":
        (pattern,) = struct.unpack(">I", struct.pack(">f", x))
        assert pattern == one.sign << 31 | one.exponent << 23 | one.mantissa


def test_what_is_too_large_for_float16_has_room_in_bfloat16() -> None:
    half, brain = split_float(-70_000, "float16"), split_float(-70_000, "bfloat16")
    assert half.infinite and half.value == -math.inf
    assert not brain.infinite and abs(brain.value + 70_000) < 256


def test_an_outlier_spoils_its_own_group_alone() -> None:
    weights = torch.tensor([[0.3, -0.6, 1.2, 2.1, 0.4, -0.3, 21.0, 1.0]])
    whole, groups = store_integers(weights, 4, 8), store_integers(weights, 4, 4)
    assert whole.integers.tolist() == [[0, 0, 0, 1, 0, 0, 7, 0]]
    assert groups.integers.tolist() == [[1, -2, 4, 7, 0, 0, 7, 0]]
    torch.testing.assert_close(groups.values[0, :4], weights[0, :4])
    assert store_integers(torch.zeros(1, 5), 4, 2).values.tolist() == [[0] * 5]  # and the last group is shorter


def test_no_weight_is_off_by_more_than_half_a_step_and_each_bit_halves_the_step() -> None:
    weights = torch.randn(6, 40, generator=torch.Generator().manual_seed(0))
    for bits in (8, 4, 3, 2):
        found = store_integers(weights, bits, 16)
        assert ((found.values - weights).abs() <= found.scales / 2 + 1e-6).all()
        assert found.integers.abs().max() == 2 ** (bits - 1) - 1
    assert torch.equal(store(weights, "float32", 16), weights)
    assert [bits_of_weight(kind, 32) for kind in ("float32", "bfloat16", "int8", "int4")] == [32, 16, 9, 5]


def test_a_model_that_is_stored_says_what_one_with_these_weights_says() -> None:
    checkpoint = load(NAME)
    changes = store_matrices(checkpoint.model, "int4", 32)
    (found,) = measure_formats(NAME, IDS, ["int4"], 32)
    read, stored = torch.tensor([IDS]), copy.deepcopy(checkpoint.model)
    with torch.no_grad():
        for name, one in list_linears(stored).items():
            one.weight += changes[name]
        own, other = (model(read)[0].double().log_softmax(-1) for model in (checkpoint.model, stored))
    assert found.kl == pytest.approx(float((own.exp() * (own - other)).sum(-1).mean()), rel=1e-3)
    assert found.loss == pytest.approx(float(-other[:-1].gather(-1, read[0, 1:, None]).mean()), rel=1e-4)
    assert found.p == pytest.approx(float(other[-1, own[-1].argmax()].exp()), rel=1e-3)


def test_float32_changes_nothing_and_each_matrix_less_than_all() -> None:
    exact, eight, four = measure_formats(NAME, IDS, ["float32", "int8", "int4"], 32)
    assert exact.kl == 0 and exact.same == 1 and 0 < 20 * eight.kl < four.kl
    each = measure_each(NAME, IDS, "int4", 32)
    assert len(each) == 24 and 0 < min(each.values()) and max(each.values()) < four.kl
