import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.config import MLP, Attention, ModelConfig, Norm, OtherRotation, Positions, RotaryScaling
from tests.engine import tiny

YARN = RotaryScaling("yarn", 4.0, 8)
size = st.integers(1, 64)
configs = st.builds(
    ModelConfig,
    vocab_size=size,
    context=size,
    d_model=size,
    layers=st.integers(0, 5),
    attention=st.builds(
        Attention,
        heads=st.sampled_from([2, 4]),
        kv_heads=st.sampled_from([None, 1, 2]),
        d_head=st.sampled_from([4, 6]),
        bias=st.booleans(),
        mask=st.sampled_from(["causal", "full", "prefix"]),
        window=st.none() | size,
    ),
    mlp=st.none() | st.builds(MLP, size, st.sampled_from(["relu", "silu"]), st.booleans(), st.booleans()),
    positions=st.builds(Positions, st.sampled_from(tiny.POSITIONS), st.floats(1, 1e6)),
    norm=st.builds(Norm, st.sampled_from(["layer", "rms", "batch", "none"]), st.sampled_from(["before", "after"])),
    tied=st.booleans(),
    dropout=st.floats(0, 0.9),
    residual=st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(configs)
def test_every_config_survives_json(config: ModelConfig) -> None:
    assert ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def otherwise(*given: Any) -> Positions:
    return Positions("rotary", other=OtherRotation(*given))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 0}, "vocab_size must be at least 1, got 0"),
        ({"context": -1}, "context must be at least 1, got -1"),
        ({"layers": -1}, "layers must be at least 0, got -1"),
        ({"d_model": 18}, "d_model 18 cannot be split into 4 heads; try 3 or 6, or set attention.d_head"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"dropout": float("nan")}, r"dropout must be in \[0, 1\), got nan"),
        ({"mlp": MLP(0)}, "mlp.d_mlp must be at least 1, got 0"),
        ({"norm": Norm(eps=-1.0)}, "norm.eps must be at least 0, got -1.0"),
        ({"positions": Positions("rotary", theta=0.0)}, "positions.theta must be above 0, got 0.0"),
        ({"positions": Positions(other=OtherRotation((0,)))}, "positions.other is for rotary positions with one axis"),
        ({"positions": otherwise((0, -1))}, "positions.other.layers are counted from 0, got -1"),
        ({"positions": otherwise((0,), 0.0)}, "positions.other.theta must be above 0, got 0.0"),
        ({"positions": otherwise((0,), None, YARN)}, "without theta there are none; give theta too"),
        ({"positions": otherwise((0,), 1.0, YARN)}, "positions.other.theta must be above 1 for yarn, got 1.0"),
        ({"norm": Norm("batch", learned="none")}, 'norm.learned must be "all" for a batch norm, got "none"'),
        ({"residual_scale": 0.0}, "residual_scale must be above 0, got 0.0"),
        ({"attention": Attention(0)}, "positive multiple of kv_heads, got 0 and 0"),
        ({"attention": Attention(4, kv_heads=3)}, "positive multiple of kv_heads, got 4 and 3"),
        ({"attention": Attention(4, d_head=0)}, "attention.d_head must be at least 1, got 0"),
        ({"attention": Attention(4, window=0)}, "attention.window must be at least 1, got 0"),
        (
            {"attention": Attention(4, d_head=3), "positions": Positions("rotary")},
            "rotary positions turn pairs, so d_head must be even, got 3",
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_config_that_makes_no_model_says_which_number_and_what_it_must_be(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        replace(tiny.CONFIG, **changes)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("heigth", 3, "heigth is not a known key; expected one of vocab_size, context"),
        ("attention.head", 3, "attention.head is not a known key; expected one of heads, kv_heads"),
        ("vocab_size", "11", "vocab_size must be a whole number, got '11'"),
        ("vocab_size", True, "vocab_size must be a whole number, got True"),
        ("vocab_size", 1.5, "vocab_size must be a whole number, got 1.5"),
        ("tied", 1, "tied must be true or false, got 1"),
        ("dropout", "0", "dropout must be a number, got '0'"),
        ("attention", 4, "attention must be a table, got 4"),
        ("attention.mask", "diagonal", "attention.mask must be one of causal, full, prefix, got 'diagonal'"),
        ("positions.kind", None, "positions.kind must be one of learned, .*, got None"),
    ],
)
def test_a_config_from_a_file_names_the_key_that_is_wrong(path: str, value: Any, message: str) -> None:
    data = tiny.CONFIG.to_dict()
    *branch, leaf = path.split(".")
    (data[branch[0]] if branch else data)[leaf] = value
    with pytest.raises(ValueError, match=message):
        ModelConfig.from_dict(data)


def test_a_config_from_a_file_names_what_it_lacks() -> None:
    data = tiny.CONFIG.to_dict()
    del data["layers"], data["d_model"]
    with pytest.raises(ValueError, match="ModelConfig lacks d_model, layers"):
        ModelConfig.from_dict(data)


def test_a_whole_number_will_do_where_a_fraction_is_meant() -> None:
    assert ModelConfig.from_dict({**tiny.CONFIG.to_dict(), "dropout": 0}).dropout == 0.0
