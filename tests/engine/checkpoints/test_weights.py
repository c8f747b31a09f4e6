"""Files that are not what they say: one sentence each, and no memory taken on their word."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.checkpoints import load, torch_pickle, weights
from engine.checkpoints.weights import open_weights, write_weights

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(4, dtype=torch.float16)}


def safetensors(path: Path) -> bytes:
    save_file(TENSORS, path, {"made by": "hand"})
    return path.read_bytes()


def with_header(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(shape: list[int], end: int) -> dict[str, Any]:
    return {"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}


@pytest.mark.parametrize("name", ["w.safetensors", "w.bin", "w.pt"])
def test_names_and_shapes_are_known_before_the_tensors_are_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    safetensors(path) if name.endswith("safetensors") else torch.save(TENSORS, path)
    weights = open_weights(path)
    assert dict(weights.shapes) == {"a": (2, 3), "b": (4,)}
    assert all(torch.equal(weights[key], tensor) for key, tensor in TENSORS.items())
    assert weights["b"].dtype == torch.float16
    assert weights.metadata == ({"made by": "hand"} if name.endswith("safetensors") else {})


@pytest.mark.parametrize("name", ["w.safetensors", "w.bin"])
def test_what_is_written_to_a_tensor_never_reaches_its_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    safetensors(path) if name.endswith("safetensors") else torch.save(TENSORS, path)
    before = path.read_bytes()
    open_weights(path)["a"].fill_(7.0)
    assert path.read_bytes() == before
    assert torch.equal(open_weights(path)["a"], TENSORS["a"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda whole: b"", "does not begin like one"),
        (lambda whole: b"short", "does not begin like one"),
        (lambda whole: b"<!DOCTYPE html><html>not found</html>", "does not begin like one"),
        (lambda whole: struct.pack("<Q", 2**63) + b"{}", "does not begin like one"),
        (lambda whole: struct.pack("<Q", 99_999_999) + b'{"a": 1}', "the header takes 100000007 bytes, the file 16"),
        (lambda whole: whole[:-1], r"must be \d+ bytes long by its header, got \d+; it was cut off"),
        (lambda whole: whole + b"x", r"must be \d+ bytes long by its header, got \d+"),
        (lambda whole: with_header(b"{nonsense"), "damaged safetensors file: its header does not read"),
        (lambda whole: with_header({"a": 3}), "damaged safetensors file: its header does not read"),
        (lambda whole: with_header({"a": {"shape": [1]}}), "damaged safetensors file: its header does not read"),
        (lambda whole: with_header(entry([2], 4), bytes(4)), "damaged safetensors file"),
        (lambda whole: with_header(entry([-1], 4), bytes(4)), "damaged safetensors file"),
        (lambda whole: with_header(entry([2**40, 2**40], 4), bytes(4)), "damaged safetensors file"),
        (lambda whole: with_header(b'{"a":' * 50_000), "damaged safetensors file"),
    ],
)
def test_a_damaged_safetensors_file_is_told_by_its_header(
    data: Callable[[bytes], bytes], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(data(safetensors(path)))
    with pytest.raises(ValueError, match=message):
        open_weights(path)


def test_what_does_not_fit_the_memory_is_told_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any, **named: Any) -> None:
        raise RuntimeError("unable to mmap 151397597301 bytes from file: Cannot allocate memory (12)")

    safetensors(tmp_path / "w.safetensors")
    torch.save(TENSORS, tmp_path / "w.bin")
    torch.save(TENSORS, tmp_path / "old.bin", _use_new_zipfile_serialization=False)
    with (tmp_path / "line.bin").open("wb") as file:
        file.write(b"PK\3\4")  # which a pickle would be read on from to the end of the line
        file.truncate(2**33)
    with pytest.raises(ValueError, match="does not read as one"):
        open_weights(tmp_path / "line.bin")
    monkeypatch.setattr(torch_pickle, "available_memory", lambda: 100)
    with pytest.raises(ValueError, match="before PyTorch 1.6, which is read whole: .*free; save it as safetensors"):
        open_weights(tmp_path / "old.bin")
    monkeypatch.setattr(weights, "safe_open", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    for name in ("w.safetensors", "w.bin"):
        with pytest.raises(ValueError, match="which this system does not map into memory, and .* are free; open it on"):
            open_weights(tmp_path / name)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
@pytest.mark.parametrize("name", ["w.safetensors", "w.bin"])
def test_flipped_bytes_and_cuts_raise_nothing_but_value_errors(name: str, tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / name
    safetensors(path) if name.endswith("safetensors") else torch.save(TENSORS, path)
    raw = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(0, min(len(raw), 900) - 1), max_size=4)):
        raw[at] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    try:
        weights = open_weights(path)
        for key in weights:
            assert tuple(weights[key].shape) == weights.shapes[key]
    except ValueError:
        pass


class Attack:
    def __reduce__(self):
        return (Path.touch, (Path("attacked"),))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (Attack(), "tensors and nothing else"),
        ({"a": torch.ones(1), "b": Attack()}, "tensors and nothing else"),
        ([torch.ones(1)], "a table of names and tensors"),
        ({"one": {"a": torch.ones(1)}, "two": {"a": torch.ones(1)}}, "a table of names and tensors"),
        ({"model": {"a": torch.ones(1), "b": 3}}, "a table of names and tensors"),
        ({1: torch.ones(1)}, "a table of names and tensors"),
    ],
)
def test_a_pytorch_file_runs_no_code_and_holds_a_table_of_tensors(
    content: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(content, tmp_path / "w.bin")
    with pytest.raises(ValueError, match=message):
        open_weights(tmp_path / "w.bin")
    assert not (tmp_path / "attacked").exists()


def test_a_file_of_another_kind_names_the_kinds() -> None:
    with pytest.raises(ValueError, match=r"must end in .*, got model.onnx, a program .*; fetch model.safetensors"):
        open_weights(Path("model.onnx"))


@pytest.mark.parametrize("name", ["../secret.safetensors", "/etc/passwd", "a/b.safetensors", "..", "", "a\\b", "x\0"])
def test_an_index_cannot_point_out_of_its_folder(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    save_file(TENSORS, tmp_path / "secret.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(ValueError, match="must name files beside itself, got .*; do not trust it"):
        open_weights(index)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("{", "must be JSON, and does not read as such"),
        ("[]", "must hold a JSON object, got a list"),
        ("{}", "must have a table weight_map"),
        ('{"weight_map": {}}', "must have a table weight_map"),
        ('{"weight_map": {"a": 3}}', "must have a table weight_map"),
        ("[" * 100_000, "must be JSON, and does not read as such"),
    ],
)
def test_an_index_that_is_none_is_named(index: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(index)
    with pytest.raises(ValueError, match=message):
        open_weights(path)


def test_an_absent_shard_and_a_tensor_in_two_shards_are_named(tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}))
    save_file(TENSORS, tmp_path / "1.safetensors")
    with pytest.raises(FileNotFoundError, match="names 2.safetensors, which is not in"):
        open_weights(index)
    save_file(TENSORS, tmp_path / "2.safetensors")
    assert open_weights(index).files["a"].name == "1.safetensors"  # twice, and the same
    save_file({name: tensor + 1 for name, tensor in TENSORS.items()}, tmp_path / "2.safetensors")
    with pytest.raises(
        ValueError, match="a must be one tensor in the shards of .*, and .* and .* hold two that differ"
    ):
        open_weights(index)


def test_writing_replaces_a_file_whole_while_its_old_tensors_stay_what_they_were(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    write_weights(path, TENSORS, {})
    old = open_weights(path)
    mapped = old["a"]
    write_weights(path, {"a": torch.zeros(2, 3).T}, {"format": "pt"})
    assert torch.equal(mapped, TENSORS["a"])
    assert torch.equal(load_file(path)["a"], torch.zeros(3, 2))
    assert [file.name for file in tmp_path.iterdir()] == ["w.safetensors"]
    assert path.stat().st_mode & 0o777 == (tmp_path / "w.safetensors").stat().st_mode & 0o777
    (tmp_path / "other").touch()
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_path_may_be_a_string_or_a_path(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        load(str(tmp_path))


@pytest.mark.parametrize("suffix", ["safetensors", "bin"])
def test_a_tensor_in_several_shards_opens_where_it_is_the_same_in_all(suffix: str, tmp_path: Path) -> None:
    twice = {"half": torch.tensor([1.5, float("nan")], dtype=torch.bfloat16), "scalar": torch.tensor(3)}
    own = {f"{i}.{suffix}": {**twice, str(i): torch.ones(2, i + 1)} for i in range(3)}
    for file, tensors in own.items():
        save_file(tensors, tmp_path / file) if suffix == "safetensors" else torch.save(tensors, tmp_path / file)
    index = tmp_path / f"model.{suffix}.index.json"
    index.write_text(json.dumps({"weight_map": {str(i): f"{i}.{suffix}" for i in range(3)} | {"half": f"2.{suffix}"}}))
    found = open_weights(index)
    assert sorted(found) == ["0", "1", "2", "half", "scalar"] and int(found["scalar"]) == 3 and found.notes == ()
    other = {**own[f"1.{suffix}"], "scalar": torch.tensor(3, dtype=torch.int32)}  # the same number, of another type
    save_file(other, tmp_path / f"1.{suffix}") if suffix == "safetensors" else torch.save(
        other, tmp_path / f"1.{suffix}"
    )
    with pytest.raises(
        ValueError, match=f"scalar must be one tensor .* 0.{suffix} and 1.{suffix} hold two that differ"
    ):
        open_weights(index)


def test_a_tensor_that_its_shard_lacks_is_named_with_its_file(tmp_path: Path) -> None:
    save_file(TENSORS, tmp_path / "1.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys([*TENSORS, "x", "y"], "1.safetensors")}))
    (note,) = open_weights(index).notes
    assert note == (
        "model.safetensors.index.json says that x is in 1.safetensors, which lacks it (1 more are not where it says); "
        "fetch that file again."
    )


def test_shards_without_their_index_are_named(tmp_path: Path) -> None:
    for number in (1, 2):
        save_file(TENSORS, tmp_path / f"model-0000{number}-of-00002.safetensors")
    with pytest.raises(FileNotFoundError, match="without their index; fetch model.safetensors.index.json too"):
        load(tmp_path)
