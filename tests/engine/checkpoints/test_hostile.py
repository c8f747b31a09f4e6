"""Files that are broken or mean harm: one sentence that names the file and the fault, nothing run, memory bounded."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from engine.checkpoints import IncompleteWeights, assemble, load
from engine.checkpoints.report import UnknownNames
from engine.checkpoints.weights import LARGEST_HEADER, open_weights
from engine.runtime.run import run
from tests.engine.checkpoints.mutate import CHECKPOINTS, damage, gpt2

pytestmark = pytest.mark.long

EXAMPLES = 150 * int(os.environ.get("LOUPE_HOSTILE_EXAMPLES", "1"))  # damaged files of each kind of checkpoint
MEMORY = 2**30  # bytes that reading a broken file of 100 kB may take
SECONDS = 5  # of the processor


def short(value: Any) -> str:
    return ascii(value)[:20]


@contextmanager
def bounded() -> Iterator[None]:
    """No more memory than MEMORY, and no more of the processor than SECONDS."""

    def stop(*_: object) -> None:
        raise AssertionError(f"this took more than {SECONDS} seconds of the processor")

    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGVTALRM, stop)
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, hard))
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGVTALRM, before)


def read_and_run(folder: Path) -> None:
    checkpoint = load(folder, dtype=None)
    config = checkpoint.config
    patches = config.embedding.patches
    if patches is not None:
        run(checkpoint.model, torch.zeros(1, patches.channels, patches.image, patches.image))
    else:
        run(checkpoint.model, [0, 0][: config.context])
    if checkpoint.tokenizer is not None:
        checkpoint.tokenizer.encode("the cat sat. é")


def names_something(message: str, names: set[str]) -> bool:
    others = ("config.json", "shape", "the weights of", "the tokenizer must write")
    return any(name in message for name in (*names, *others))


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    place = tmp_path_factory.mktemp("originals")
    for name, write in CHECKPOINTS.items():
        (place / name).mkdir()
        write(place / name)
    return place


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from Linux's /proc")
@pytest.mark.filterwarnings("error", "ignore:Detected pickle protocol")
@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_a_damaged_checkpoint_computes_or_is_one_sentence(kind: str, originals: Path, tmp_path: Path) -> None:
    files = sorted(path.name for path in (originals / kind).iterdir())
    outside = set(tmp_path.parent.iterdir())

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32), st.sampled_from(files))
    def damaged(seed: int, name: str) -> None:
        folder = tmp_path / "damaged"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(originals / kind, folder)
        damage(folder / name, Random(seed))
        try:
            with bounded():
                read_and_run(folder)
        except (ValueError, FileNotFoundError) as error:
            message = str(error)
            assert type(error) in (ValueError, FileNotFoundError, IncompleteWeights, UnknownNames), repr(error)
            assert "\n" not in message and len(message) < 2000 and message.endswith((".", "?")), message
            assert names_something(message, {*files, *names_of(originals / kind)}), message
        assert set(tmp_path.iterdir()) == {folder}

    with bounded():
        read_and_run(originals / kind)
    damaged()
    assert set(tmp_path.parent.iterdir()) == outside


def names_of(folder: Path) -> set[str]:
    """Of tensors, so that a message may name one instead of its file."""
    return {name for file in folder.glob("*.safetensors") for name in load_file(file)}


def header(entries: Any, data: bytes) -> bytes:
    text = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str, shape: list[Any], start: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


TWICE = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'


@pytest.mark.parametrize(
    "content",
    [
        header({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}, bytes(12)),  # they overlap
        header({"a": entry("F32", [2], 0, 8), "b": entry("F32", [1], 12, 16)}, bytes(16)),  # there is a hole
        header({"a": entry("F32", [2], -8, 0), "b": entry("F32", [2], 0, 8)}, bytes(8)),
        header({"a": entry("F32", [2], 8, 0)}, b""),
        header({"a": entry("F16", [2], 0, 8)}, bytes(8)),  # of another size than its numbers
        header({"a": entry("F32", [2**32, 2**32], 0, 8)}, bytes(8)),
        header({"a": entry("F32", [2**62, 4], 0, 0)}, b""),
        header({"a": entry("F32", [-2], 0, 8)}, bytes(8)),
        header({"a": entry("F32", ["2"], 0, 8)}, bytes(8)),
        header({"a": entry("F32", [True, 2], 0, 8)}, bytes(8)),
        header({"a": entry("F32", [2.0], 0, 8)}, bytes(8)),
        header({"a": entry("F33", [2], 0, 8)}, bytes(8)),
        header({"a": entry("F32", [2], 0, 2**63)}, bytes(8)),
        header({"a": entry("F32", [2], 0, 10**30)}, bytes(8)),
        header({"a": entry("F32", [2], 0, None)}, bytes(8)),
        header({"__metadata__": {"a": 3}, "a": entry("F32", [2], 0, 8)}, bytes(8)),
        header(TWICE, bytes(4)),
        header({"a\nb": entry("F32", [1], 0, 4)}, bytes(4)),
        header(b'{"a":' + b"[" * 200_000, b""),
        header(b'{"\xff\xfe": 3}', b""),
        struct.pack("<Q", LARGEST_HEADER + 1) + b"{" + bytes(LARGEST_HEADER),
    ],
    ids=lambda content: str(content[8:90]),
)
def test_a_header_that_lies_is_refused_before_anything_is_read(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with bounded(), pytest.raises(ValueError, match=r"w\.safetensors (is a damaged|must|was cut off)"):
        open_weights(path)


class Calls:
    """A pickle that calls `function` when it is read."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.called = function, arguments

    def __reduce__(self) -> Any:
        return self.called


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": Calls(os.mkdir, "attacked")}, "would call 'posix.mkdir'; do not trust it"),
        ({"a": Calls(eval, "1 + 1")}, "would call '__builtin__.eval'"),
        ({"a": Calls(bytearray, 2**40)}, "would call '__builtin__.bytearray'"),
        ({"a": Calls(torch.zeros, 2**40)}, "would call '__builtin__.getattr'"),
        ({"a": Calls(torch.hub.load, "x", "y")}, "would call 'torch.hub.load'"),
        ({"a": torch.zeros(1).expand(2**40)}, "must be stored whole, got less than its shape"),
        ({"a": torch.zeros(8).as_strided((4, 4), (1, 1))}, "must be stored whole"),
        ({"a": torch.zeros(4, device="meta")}, "must be stored whole"),
        ({"a": torch.ones(3).to_sparse()}, "must be stored whole|does not read as one"),
        ({"a": torch.ones(3), "b": "text"}, "must hold a table of names and tensors"),
        ({"a": list(range(10**6))}, "its table of names is of"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_a_pickle_that_would_do_more_than_hold_tensors_is_refused(
    content: Any, message: str, zipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(content, tmp_path / "w.pt", _use_new_zipfile_serialization=zipped)
    with bounded(), pytest.raises(ValueError, match=rf"w\.pt.*({message})|({message})"):
        open_weights(tmp_path / "w.pt")
    assert [path.name for path in tmp_path.iterdir()] == ["w.pt"]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_tensor_without_a_shape_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.nested.nested_tensor([torch.ones(3), torch.ones(4)])}, tmp_path / "w.pt")
    with pytest.raises(ValueError, match=r"a in .*w\.pt must be stored whole"):
        open_weights(tmp_path / "w.pt")


TABLE, KEYED, END = b"\x80\x02}(X\1\0\0\0a", b"K\1u", b"."
DOUBLED = b"X\1\0\0\0x\x85" + b"q\0h\0\x86" * 60  # a tuple that holds another one twice, and so on


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02}(" + DOUBLED + KEYED + END,
        b"\x80\x02}" + DOUBLED + b"K\1s" + END,
        b"\x80\x02cbuiltins\nset\n](" + DOUBLED + b"e\x85R" + END,
        b"\x80\x02}(X\1\0\0\0x" + b"\x85" * 10**6 + KEYED + END,
        b"\x80\x02}(c_codecs\nencode\nq\1X\1\0\0\0xX\6\0\0\0latin1\x86R"
        + b"q\0h\1h\0X\3\0\0\0hex\x86R" * 40
        + KEYED
        + END,
        TABLE + b"](" + DOUBLED * 3 + b"eu" + END,
        b"\x80\x02}(" + b"X\1\0\0\0x(" + b"K\1" * 10**4 + b"tq\0" + b"K\1h\0" * 10**5 + KEYED + END,
    ],
    ids=["key", "one key", "set", "deep", "encoded", "value", "many keys"],
)
@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_whose_objects_take_endless_work_is_refused(content: bytes, zipped: bool, tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(3)}, tmp_path / "good.pt")
    if zipped:
        with zipfile.ZipFile(tmp_path / "good.pt") as good, zipfile.ZipFile(tmp_path / "w.pt", "w") as bomb:
            for item in good.infolist():
                bomb.writestr(item.filename, content if item.filename.endswith("data.pkl") else good.read(item))
    else:
        torch.save({"a": torch.zeros(3)}, tmp_path / "w.pt", _use_new_zipfile_serialization=False)
        head, _, rest = (tmp_path / "w.pt").read_bytes().partition(b"\x80\x02}q\x00X\x01\x00\x00\x00a")
        assert rest
        (tmp_path / "w.pt").write_bytes(head + content)
    with bounded(), pytest.raises(ValueError, match=r"w\.pt must be .*, and its objects lie in one another"):
        open_weights(tmp_path / "w.pt")


def test_a_large_state_dict_is_scanned_within_its_bounds(tmp_path: Path) -> None:
    one = torch.zeros(3)
    torch.save({f"transformer.h.{layer}.attention.weight": one for layer in range(10_000)}, tmp_path / "w.pt")
    with bounded():
        assert len(open_weights(tmp_path / "w.pt")) == 10_000


def test_a_packed_pickle_is_refused_before_it_is_inflated(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(10**6)}, tmp_path / "good.pt")
    with zipfile.ZipFile(tmp_path / "good.pt") as good, zipfile.ZipFile(tmp_path / "w.pt", "w") as bomb:
        for item in good.infolist():
            bomb.writestr(item.filename, good.read(item), zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match=r"w\.pt must be .* it is compressed; save it anew"):
        open_weights(tmp_path / "w.pt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    gpt2(tmp_path / "cat")
    return tmp_path / "cat"


NESTED: dict[str, Any] = {}
for _ in range(50):
    NESTED = {"a": NESTED}


ABSURD = (10**9, 10**30, 10**400, -1, 0, True, "12", 1e300, float("nan"), [4], NESTED)


@pytest.mark.parametrize(
    "key", ["n_layer", "n_head", "n_embd", "vocab_size", "n_positions", "n_inner", "layer_norm_epsilon"]
)
@pytest.mark.parametrize(
    "value", [10**9, 10**30, 10**400, -1, 0, True, "12", 1e300, float("nan"), [4], NESTED], ids=short
)
def test_an_absurd_value_of_a_config_is_one_sentence(key: str, value: Any, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text()) | {key: value}
    (folder / "config.json").write_text(json.dumps(config))
    possible = (key == "n_layer" and value == 0) or (key == "layer_norm_epsilon" and value in (10**9, 10**30, 0, 1e300))
    with bounded():
        if possible:
            load(folder)  # a function like any other, of no use
            return
        with pytest.raises(ValueError, match=r"config\.json|shape|must hold|heads") as raised:
            load(folder)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '"x"', "{" * 10_000, "\ufeff{}", '{"a": 1e999}', "\0", "x" * 100],
    ids=short,
)
def test_a_config_that_is_no_json_object_is_named(text: str, folder: Path) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    with bounded(), pytest.raises(ValueError, match=r"config\.json"):
        load(folder)
    (folder / "config.json").write_bytes(b'{"model_type": "gpt\xff"}')
    with pytest.raises(ValueError, match=r"config\.json must be JSON"):
        load(folder)
    (folder / "config.json").write_bytes(b" " * 2**24 + b"{}")
    with pytest.raises(ValueError, match=r"config\.json must be at most 16,777,216 bytes"):
        load(folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"model": 3}', "[" * 10_000, '{"version":"1.0","model":{}}'], ids=short
)
def test_a_broken_tokenizer_is_a_note_that_names_its_file(text: str, folder: Path) -> None:
    (folder / "tokenizer.json").write_text(text)
    checkpoint = load(folder)
    assert checkpoint.tokenizer is None
    (note,) = checkpoint.report.notes
    assert note.startswith("No tokenizer: ") and "tokenizer.json" in note and "\n" not in note


def test_a_number_that_is_none_is_named_with_its_shard(tmp_path: Path) -> None:
    CHECKPOINTS["sharded"](tmp_path / "cat")
    shard = tmp_path / "cat" / "model-1.safetensors"
    tensors = load_file(shard)
    name = next(name for name in tensors if name.endswith("c_attn.weight"))
    tensors[name][3, 5] = float("nan")
    save_file(tensors, shard)
    with pytest.raises(ValueError, match=rf"{name} in model-1.safetensors must hold finite numbers, has NaN"):
        load(tmp_path / "cat")


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn, torch.int32, torch.bool])
@pytest.mark.parametrize("zipped", [True, False])
def test_numbers_of_another_kind_are_named(dtype: torch.dtype, zipped: bool, folder: Path) -> None:
    name = "transformer.h.0.mlp.c_fc.weight"
    tensors = load_file(folder / "model.safetensors")
    tensors[name] = tensors[name].to(dtype)
    if zipped:
        (folder / "model.safetensors").unlink()
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        save_file(tensors, folder / "model.safetensors")
    kind = str(dtype).removeprefix("torch.")
    with pytest.raises(ValueError, match=rf"{name} in .*(bin|safetensors) must be one of float64, .*, got {kind}; deq"):
        load(folder)


LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    "key", ["model_type", "architectures", "activation_function", "n_embd", "n_layer", "layer_norm_epsilon"]
)
@pytest.mark.parametrize("value", [LONG, [LONG], {LONG: 1}], ids=["text", "list", "table"])
def test_what_a_message_quotes_of_config_json_is_short(key: str, value: Any, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text()) | {key: value}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"config\.json.*[.?]$") as caught:
        load(folder)
    assert len(str(caught.value)) < 700 and "x" * 81 not in str(caught.value)


def test_quantised_weights_are_refused_as_such_with_and_without_a_config(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "aqlm"}}))
    with pytest.raises(ValueError, match="must not be quantised, .* config.json has a quantization_config of 'aqlm'"):
        load(folder)
    (folder / "config.json").write_text(json.dumps(config))
    for beside, dtype, told in (
        ("qweight", torch.int32, "must not be quantised .*qweight is of GPTQ or AWQ"),
        ("g_idx", torch.int32, "must not be quantised .*g_idx is of GPTQ"),
        ("weight.quant_state.bitsandbytes__nf4", torch.uint8, "must be JSON with quant_type"),
        ("weight.absmax", torch.uint8, "must not be quantised .*absmax is of bitsandbytes"),
        ("SCB", torch.int8, "SCB in model.safetensors must be float32 .*, got int8"),
        ("weight_packed", torch.int32, "must not be quantised .*weight_packed is of compressed-tensors or FP8"),
        ("weight_scale_inv", torch.float8_e4m3fn, "weight_scale_inv in .* must be float32 .*, got float8_e4m3fn"),
        ("scales", torch.uint32, "must not be quantised .*scales is of MLX"),
    ):
        name = f"transformer.h.0.mlp.c_fc.{beside}"
        packed = {"transformer.h.0.mlp.c_fc.weight": torch.zeros(2, 2).to(dtype), name: torch.zeros(2, dtype=dtype)}
        save_file(packed, folder / "model.safetensors")
        with pytest.raises(ValueError, match=told):
            load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ValueError, match="must not be quantised .*scales is of MLX"):
        load(folder)


def test_a_model_larger_than_the_memory_is_refused_with_the_sum(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is no map: a file of PyTorch's older format, which is read whole."""
    tensors = load_file(folder / "model.safetensors")
    halved = {name: tensor.bfloat16() for name, tensor in tensors.items()}
    torch.save(halved, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    (folder / "model.safetensors").unlink()
    numbers = sum(tensor.numel() for tensor in tensors.values())
    monkeypatch.setattr(assemble, "available_memory", lambda: 3 * numbers)
    monkeypatch.setattr(assemble, "gigabytes", lambda count: f"{count} B")
    needed = f"cat needs {numbers:,} numbers x 4 bytes = {4 * numbers} B, and {3 * numbers} B are free"
    with pytest.raises(ValueError, match=f"{needed}; keep them in bfloat16 .{2 * numbers} B., or use a machine with"):
        load(folder)
    assert load(folder, dtype=None).model.dtype == torch.bfloat16
    monkeypatch.setattr(assemble, "available_memory", lambda: numbers)
    with pytest.raises(ValueError, match="open a smaller model"):
        load(folder, dtype=None)


@pytest.mark.parametrize("name", [b"\xff\xfe.safetensors", b"\xff.index.json", b"config\xff.json"])
def test_names_of_files_that_are_no_text_do_no_harm(name: bytes, folder: Path) -> None:
    os.rename(os.fsencode(folder / "model.safetensors"), os.path.join(os.fsencode(folder), name))
    try:
        load(folder)
    except (ValueError, FileNotFoundError) as error:
        str(error).encode("utf-8")


@pytest.mark.parametrize("name", ["x\0y", "~nobody-of-this-name/x", "a" * 5000, "", "\ud800", "hub"])
def test_what_is_no_name_of_anything_is_not_found(name: str) -> None:
    with pytest.raises(FileNotFoundError, match="is no folder, no file and no shipped checkpoint|must hold one of"):
        load(name)
