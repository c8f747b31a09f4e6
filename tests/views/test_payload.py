"""The payload is read in Python and in JavaScript as it was written."""

import base64
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from views.core.payload import ALIGNMENT, pack, unpack

READER = Path(__file__).resolve().parents[2] / "assets" / "views" / "core" / "payload.js"

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
headers = st.dictionaries(st.text().filter(lambda name: name != "arrays"), json_values, max_size=4)
some_array = st.sampled_from(["f4", "f2", "u1", "i4", "bool"]).flatmap(
    lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@given(headers, st.dictionaries(st.text(), some_array, max_size=4))
@settings(deadline=None)
def test_what_is_packed_is_unpacked(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    dims = {name: [f"axis {axis}" for axis in range(array.ndim)] for name, array in arrays.items()}
    read_header, read_arrays = unpack(pack(header, arrays, dims))
    assert read_header == header
    assert read_arrays.keys() == arrays.keys()
    assert all(same(read_arrays[name].data, array) for name, array in arrays.items())
    assert all(read_arrays[name].dims == tuple(dims[name]) for name in arrays)


def test_every_array_starts_at_a_multiple_of_eight() -> None:
    payload = pack({"odd": "é"}, {"a": np.zeros(3, "u1"), "b": np.zeros(5, "f2"), "c": np.zeros(1, "f4")})
    length = int.from_bytes(payload[:4], "little")
    entries = json.loads(payload[4 : 4 + length])["arrays"].values()
    assert all(entry["offset"] % ALIGNMENT == 0 for entry in entries)
    assert len(payload) % ALIGNMENT == 0


def test_nan_and_infinity_travel_inside_arrays() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0.0], "f4")
    _, arrays = unpack(pack({}, {"a": values}))
    assert same(arrays["a"].data, values)


def test_tensors_travel_as_they_are_computed_with() -> None:
    scores = torch.tensor([[1.5, -2.0], [0.25, 3.0]], requires_grad=True).T  # not contiguous, and with a history
    half = torch.tensor([1.0, 2.5], dtype=torch.bfloat16)
    mask = torch.tensor([True, False])
    ids = torch.tensor([461, 11])
    _, arrays = unpack(pack({}, {"scores": scores, "half": half, "mask": mask, "ids": ids}))
    assert arrays["scores"].data.tolist() == [[1.5, 0.25], [-2.0, 3.0]]
    assert [arrays[name].data.dtype.name for name in arrays] == ["float32", "float32", "bool", "int32"]
    assert arrays["ids"].data.tolist() == [461, 11]


@pytest.mark.parametrize(
    ("header", "arrays", "dims", "message"),
    [
        ({"a": [{"b": float("nan")}]}, {}, {}, "header['a'][0]['b'] = nan"),
        ({"loss": float("inf")}, {}, {}, "expected a header without NaN or infinity"),
        ({"x": np.float32(1)}, {}, {}, "expected a header of JSON values"),
        ({"arrays": 1}, {}, {}, 'expected a header without "arrays"'),
        ({}, {"p": np.zeros(2)}, {}, "got float64; convert it first"),
        ({}, {"ids": np.array([2**31])}, {}, "expected array 'ids' within a 32-bit integer"),
        ({}, {"p": np.zeros((2, 3), "f4")}, {"p": ["pos"]}, "expected 2 dims for array 'p' of shape (2, 3)"),
        ({}, {"p": np.zeros(2, "f4")}, {"q": ["pos"]}, "dims names ['q'], but the arrays are ['p']"),
    ],
)
def test_what_cannot_travel_is_refused_with_a_sentence(
    header: dict[str, Any], arrays: dict[str, np.ndarray], dims: dict[str, list[str]], message: str
) -> None:
    with pytest.raises((ValueError, TypeError)) as refusal:
        pack(header, arrays, dims)
    assert message in str(refusal.value)


def test_a_payload_that_is_cut_off_is_refused() -> None:
    payload = pack({"T": 3}, {"a": np.zeros(8, "f4")})
    for end in (0, 3, 10, len(payload) - 8):
        with pytest.raises(ValueError, match="cut off"):
            unpack(payload[:end])


# --- the reader in the browser, run by node ---

node = shutil.which("node")
needs_node = pytest.mark.skipif(node is None, reason="node is not installed; the browser tests read payloads too")

# As a data: address, because node takes a bare .js file for a script of the old kind.
SCRIPT = """
import { readFileSync } from "node:fs";
const source = readFileSync(process.argv[1]).toString("base64");
const { unpack, widen } = await import(`data:text/javascript;base64,${source}`);
const raw = (data) => Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
const cases = JSON.parse(readFileSync(0, "utf8"));
const read = ({ payload, shift }) => {
  const bytes = Buffer.from(payload, "base64");
  const shifted = new Uint8Array(new ArrayBuffer(bytes.length + 16), shift, bytes.length);
  shifted.set(bytes);
  try {
    const { arrays, ...header } = unpack(shifted);
    const described = Object.entries(arrays).map(([name, { data, ...rest }]) => {
      const inPlace = data.buffer === shifted.buffer;
      return [name, { ...rest, raw: raw(data), kind: data.constructor.name, inPlace }];
    });
    return { header, arrays: Object.fromEntries(described) };
  } catch (error) {
    return { error: error.message };
  }
};
const halves = raw(Float32Array.from({ length: 65536 }, (_, bits) => widen(bits)));
console.log(JSON.stringify({ read: cases.map(read), halves }));
"""


def read_in_javascript(payloads: list[tuple[bytes, int]]) -> dict[str, Any]:
    """Each payload, placed `shift` bytes into a buffer, as payload.js reads it, and all f16 values."""
    cases = [{"payload": base64.b64encode(payload).decode(), "shift": shift} for payload, shift in payloads]
    assert node is not None
    done = subprocess.run(
        [node, "--input-type=module", "--eval", SCRIPT, str(READER)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_node
def test_javascript_reads_what_python_writes() -> None:
    header = {"text": "“my” ·é 🙂", "nested": {"list": [1, None, True]}}
    arrays = {
        "f32": np.array([[1.5, np.nan], [-np.inf, 3e38]], "f4"),
        "u8": np.arange(5, dtype="u1"),
        "i32": np.array([-(2**31), 2**31 - 1], "i4"),
        "bool": np.array([[[True], [False]]]),
        "scalar": np.array(2.5, "f4"),
        "empty": np.zeros((0, 3), "f4"),
    }
    payload = pack(header, arrays, {"f32": ("pos", "key")})
    for shift, read in zip(
        (0, 3, 8), read_in_javascript([(payload, 0), (payload, 3), (payload, 8)])["read"], strict=True
    ):
        assert read["header"] == header
        assert list(read["arrays"]) == list(arrays)
        for name, array in arrays.items():
            entry = read["arrays"][name]
            assert base64.b64decode(entry["raw"]) == array.tobytes()
            assert entry["shape"] == list(array.shape)
            assert entry["inPlace"] == (shift % 8 == 0)
        kinds = [read["arrays"][name]["kind"] for name in ("f32", "u8", "i32", "bool")]
        assert kinds == ["Float32Array", "Uint8Array", "Int32Array", "Uint8Array"]
        assert read["arrays"]["f32"]["dims"] == ["pos", "key"]


@needs_node
def test_javascript_reads_halves_with_and_without_float16array() -> None:
    values = np.array([0.1, -65504, np.inf, 6e-8], "f2")
    result = read_in_javascript([(pack({}, {"half": values}), 0)])
    entry = result["read"][0]["arrays"]["half"]
    wide = values if entry["kind"] == "Float16Array" else values.astype("f4")
    assert base64.b64decode(entry["raw"]) == wide.tobytes()
    every = np.arange(65536, dtype="u2").view("f2").astype("f4")
    np.testing.assert_array_equal(np.frombuffer(base64.b64decode(result["halves"]), "f4"), every)


@needs_node
def test_javascript_refuses_a_payload_that_is_cut_off() -> None:
    payload = pack({"T": 3}, {"a": np.zeros(8, "f4")})
    results = read_in_javascript([(payload[:end], 0) for end in (0, 10, len(payload) - 8)])
    assert all("cut off" in result["error"] for result in results["read"])
