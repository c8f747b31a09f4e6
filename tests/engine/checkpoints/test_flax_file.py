"""Flax's files against transformers, and such as lie."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.checkpoints import load
from engine.checkpoints.weights import open_weights
from engine.runtime.run import run
from tests.engine.checkpoints.against import IDS, shaken
from tests.engine.checkpoints.test_dropped import SIZES


def pack(value: Any) -> bytes:
    """MessagePack as flax.serialization writes it: the longer of the ways to write a length, and the shorter."""
    if isinstance(value, dict):
        head = bytes([0x80 | len(value)]) if len(value) < 16 else struct.pack(">BH", 0xDE, len(value))
        return head + b"".join(pack(name) + pack(one) for name, one in value.items())
    if isinstance(value, str):
        data = value.encode()
        return (bytes([0xA0 | len(data)]) if len(data) < 32 else struct.pack(">BB", 0xD9, len(data))) + data
    if isinstance(value, int):
        return bytes([value]) if value < 128 else struct.pack(">BI", 0xCE, value)
    return pack_array(value)


def pack_array(tensor: torch.Tensor, kind: int = 1, dtype: str | None = None, lacking: int = 0) -> bytes:
    data = tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    data = data[: len(data) - lacking]
    shape = bytes([0x90 | tensor.dim()]) + b"".join(map(pack, tensor.shape))
    inner = b"\x93" + shape + pack(dtype or str(tensor.dtype).removeprefix("torch."))
    inner += struct.pack(">BI", 0xC6, len(data)) + data
    return struct.pack(">BIb", 0xC9, len(inner), kind) + inner


def tree_of(model: Any) -> dict[str, Any]:
    """A model's tensors as transformers' Flax classes had them."""
    tree: dict[str, Any] = {}
    kept = {"weight": "weight"} if model.config.model_type == "t5" else {"weight": "scale"}
    tables = {id(one.weight) for one in model.modules() if isinstance(one, torch.nn.Embedding)}
    skipped = ("lm_head.weight", "embed_tokens.weight", "decoder.weight", "decoder.bias")
    for name, tensor in model.named_parameters():
        if name.endswith(skipped):
            continue
        *path, last = name.split(".")
        if last == "weight" and tensor.dim() == 2:
            last = "embedding" if id(tensor) in tables else "kernel"
        last = kept.get(last, last)
        inner = tree
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = tensor.detach().T if last == "kernel" else tensor.detach()
    return tree


@pytest.mark.parametrize("name", ["BertForMaskedLM", "T5ForConditionalGeneration", "GPT2LMHeadModel", "RobertaModel"])
def test_a_file_of_flax_says_what_the_original_says(name: str, tmp_path: Path) -> None:
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    model = shaken(kind(kind.config_class(**SIZES[kind.config_class.model_type])))
    model.config.save_pretrained(tmp_path)
    (tmp_path / "flax_model.msgpack").write_bytes(pack({"params": tree_of(model), "step": 300}))
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok, checkpoint.report
    both = {"decoder_input_ids": IDS.flip(1)} if name.startswith("T5") else {}
    with torch.no_grad():
        expected = model(IDS, **both)[0]
    found = run(checkpoint.model, IDS, target=IDS.flip(1) if both else None)
    last = found["logits" if "logits" in found else "blocks.1.norm2.out"]
    torch.testing.assert_close(last, expected, atol=1e-5, rtol=0)
    (tmp_path / "named.safetensors").touch()  # another file of weights comes first
    with pytest.raises(ValueError, match="named.safetensors must be a safetensors file"):
        load(tmp_path)


def test_arrays_are_read_bit_by_bit_also_in_parts_and_in_few_bits(tmp_path: Path) -> None:
    path = tmp_path / "flax_model.msgpack"
    small, whole = torch.randn(3, dtype=torch.bfloat16), torch.randn(4, 6)
    parts = {"0": whole.view(-1)[:10], "1": whole.view(-1)[10:]}
    chunked = {"__msgpack_chunked_array__": True, "shape": {"0": 4, "1": 6}, "chunks": parts}
    image = torch.arange(24).view(1, 2, 3, 4)
    path.write_bytes(pack({"x": {"kernel": chunked, "bias": small}, "c": {"kernel": image}}))
    weights = open_weights(path)
    assert dict(weights.shapes) == {"x.weight": (6, 4), "x.bias": (3,), "c.weight": (4, 3, 1, 2)}
    assert torch.equal(weights["x.weight"], whole.T) and torch.equal(weights["x.bias"], small)
    assert torch.equal(weights["c.weight"], image.permute(3, 2, 0, 1))
    weights["x.bias"].fill_(0)
    assert torch.equal(open_weights(path)["x.bias"], small)


ONE = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"\x90", "has list where a table or an array is expected"),
        (b"\x80", "has no array"),
        (b"\xc1", "kind 193, which MessagePack does not have"),
        (b"\xdf\xff\xff\xff\xff", "was cut off"),
        (b"\x81\xdb\x7f\xff\xff\xff", "a name of 2,147,483,647 bytes"),
        (b"\x81\x01\x01", "a name that is no text, or is there twice"),
        (b"\x81\xa1a" * 100, "more than a model's"),
        (pack({"a": ONE}) + b"x", "it is not one table"),
        (b"\x81\xa1a" + pack_array(ONE, kind=3), "an extension of the kind 3"),
        (b"\x81\xa1a" + pack_array(ONE, dtype="complex64"), "an array of 'complex64'"),
        (b"\x81\xa1a" + pack_array(ONE, dtype="float64"), "24 bytes for an array of float64"),
        (b"\x81\xa1a" + pack_array(ONE, lacking=4), r"20 bytes for an array of float32 and \(2, 3\)"),
        (pack({"x": {"kernel": ONE, "weight": ONE}}), "two arrays for 'x.weight'"),
        (pack({"x": {"__msgpack_chunked_array__": 1, "shape": {"0": 7}, "chunks": {"0": torch.ones(3)}}}), "7 numbers"),
        (pack({"x": {"__msgpack_chunked_array__": 1, "shape": 7, "chunks": {}}}), "in parts that are not of one"),
    ],
)
def test_a_file_that_lies_is_refused_in_a_sentence(data: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "flax_model.msgpack"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=says) as refused:
        open_weights(path)
    assert str(path) in str(refused.value)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_damaged_file_ends_in_a_sentence(data: st.DataObject) -> None:
    from tempfile import TemporaryDirectory

    whole = bytearray(pack({"params": {"a": {"kernel": ONE, "bias": torch.ones(3)}, "b": {"scale": torch.ones(2)}}}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(whole)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.msgpack"
        path.write_bytes(bytes(whole[:end]))
        try:
            weights: Mapping[str, torch.Tensor] = open_weights(path)
            assert all(tuple(weights[name].shape) == weights.shapes[name] for name in weights)  # type: ignore[attr-defined]
        except ValueError as error:
            assert str(path) in str(error)
