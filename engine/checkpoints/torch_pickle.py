"""PyTorch's own files (`.bin`, `.pt`, `.pth`, `.ckpt`): pickles, of which only tensors and plain values are read.

Nothing is ever unpickled beyond what `torch.load(weights_only=True)` allows, and before that the pickle is scanned
for what it would call.
"""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from engine.checkpoints.memory import available_memory, describe_unmapped, gigabytes

LARGEST_PICKLE = 2**22  # bytes without the tensors' numbers; 10,000 tensors take a third of it
MOST_WORK = 2**27  # letters and parts that building all objects may touch; 10,000 tensors take 2**23
DEEPEST = 100  # objects in objects, of which a state dict has 5
PICKLES_BEFORE_NUMBERS = 5  # of a file from before PyTorch 1.6: magic number, protocol, machine, values, keys
UNREADABLE = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    RuntimeError,  # NotImplementedError among them
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    MemoryError,
    RecursionError,
    OSError,
    ImportError,
)
ENCODE = "_codecs encode"
CHANGES = ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD")  # which change the first that they take
HARMLESS = ("torch.Size", "torch.device", "torch.Tensor", "torch.nn.parameter.Parameter", "_codecs.encode")
COLLECTIONS = ("collections.OrderedDict", "collections.Counter", "builtins.set")
REBUILD = ("torch._utils._rebuild_", "torch._tensor._rebuild_", "torch.serialization._get_")
INSIDE = ("state_dict", "model_state_dict", "model", "module", "net", "ema")  # where programs put the weights
SETTINGS = "model_args"  # nanoGPT's sizes, beside the weights


@dataclass(frozen=True)
class PickledWeights:
    """`mapped` tensors are private maps of the file, `settings` what nanoGPT says of its model."""

    tensors: Mapping[str, Tensor]
    mapped: bool
    settings: Mapping[str, Any] | None
    notes: tuple[str, ...]


def read_torch_pickle(path: Path) -> PickledWeights:
    """Raises ValueError for what is no such file, or holds anything but tensors and plain values."""
    loaded, zipped = unpickle(path)
    tensors, notes = _find_table(loaded, path)
    check_stored(tensors, path)
    settings = loaded.get(SETTINGS)
    return PickledWeights(tensors, zipped, _keep_plain(settings) if isinstance(settings, dict) else None, notes)


def unpickle(path: Path) -> tuple[Any, bool]:
    """Reads what a file holds, and says whether its tensors are maps of it. Raises as `read_torch_pickle`; what the
    tensors store is not checked."""
    try:
        zipped = zipfile.is_zipfile(path)
        (_scan_zip if zipped else _scan_plain)(path)
        return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped), zipped
    except PickleRefusal as refused:
        raise ValueError(f"{path} must be a PyTorch file of tensors and nothing else, and {refused}.") from None
    except UNREADABLE as error:
        if "mmap" in str(error):
            raise ValueError(describe_unmapped(path)) from None
        raise ValueError(
            f"{path} must be a PyTorch file of tensors and nothing else, and does not read as one; "
            "save it as safetensors."
        ) from error


def check_stored(tensors: Mapping[Any, Tensor], path: Path) -> None:
    """Raises ValueError for a tensor of which the file has less than its shape."""
    for name, tensor in tensors.items():
        stored = tensor.untyped_storage().nbytes() if tensor.layout == torch.strided else 0
        lacking = tensor.is_nested or stored < tensor.numel() * tensor.element_size()  # a nested one has no shape
        if tensor.device.type != "cpu" or lacking:
            raise ValueError(f"{name} in {path} must be stored whole, got less than its shape; do not trust this file.")


def _keep_plain(settings: Mapping[Any, Any]) -> dict[str, Any]:
    """Settings without tensors and objects."""
    plain = (int, float, str, bool, list, dict, type(None))
    return {name: value for name, value in settings.items() if isinstance(name, str) and isinstance(value, plain)}


def _find_table(loaded: Any, path: Path) -> tuple[Mapping[str, Tensor], tuple[str, ...]]:
    """Names and tensors, which training programs put into a table of more."""
    if _is_table(loaded):
        return loaded, ()
    tables = {key: value for key, value in loaded.items() if _is_table(value)} if isinstance(loaded, dict) else {}
    named = next((key for key in (*INSIDE, *tables) if key in tables), None)
    if named is None or (len(tables) > 1 and named not in INSIDE):
        raise ValueError(f"{path} must hold a table of names and tensors; save the model's state_dict() alone.")
    others = ", ".join(sorted(str(key)[:40] for key in loaded if key not in (named, SETTINGS))[:8])
    left = f", and the rest ({others}) is left out" if others else ""
    return tables[named], (f"The weights are what {path.name} calls {named!r:.80}{left}.",)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(map(_is_entry, value.items()))


def _is_entry(pair: tuple[Any, Any]) -> bool:
    return isinstance(pair[0], str) and pair[0].isprintable() and isinstance(pair[1], Tensor)


class PickleRefusal(Exception):
    """Reason not to unpickle a file, worded to follow "and"."""


def _scan_zip(path: Path) -> None:
    with zipfile.ZipFile(path) as file:
        entries = file.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise PickleRefusal("it is compressed; save it anew with torch.save")
        for entry in entries:
            if entry.filename.endswith("data.pkl"):
                if entry.file_size > LARGEST_PICKLE:
                    raise PickleRefusal(f"its table of names is of {entry.file_size:,} bytes; save it as safetensors")
                _scan(io.BytesIO(file.read(entry)))


def _scan_plain(path: Path) -> None:
    """Scans the part of the file before the tensors' numbers, which are read into memory after it."""
    with path.open("rb") as file:
        start = io.BytesIO(file.read(2 * LARGEST_PICKLE))  # a line without an end would be read to that of the file
    for _ in range(PICKLES_BEFORE_NUMBERS):
        _scan(start)
    free = available_memory()
    if free is not None and path.stat().st_size > free:
        raise PickleRefusal(
            f"it is in the format from before PyTorch 1.6, which is read whole: {gigabytes(path.stat().st_size)}, and "
            f"{gigabytes(free)} are free; save it as safetensors"
        )


def _scan(file: BinaryIO) -> None:
    """Check every name that a pickle refers to, and what building its objects would take, from its opcodes, without
    running one of them."""
    start = file.tell()
    objects = ObjectSizes()
    for opcode, argument, position in pickletools.genops(file):
        if opcode.name == "GLOBAL":
            _check_name(str(argument).replace(" ", "."))
        objects.apply(opcode, argument)
        if (position or 0) - start > LARGEST_PICKLE:
            raise PickleRefusal(f"its table of names is of more than {LARGEST_PICKLE:,} bytes; save it as safetensors")


@dataclass(slots=True)
class ObjectSize:
    """Size of an object as if nothing in it were shared: what hashing or copying it touches."""

    parts: int = 1
    depth: int = 1
    encodes: bool = False  # it is the function that writes bytes anew, each as up to four


class ObjectSizes:
    """Stack and memo of a pickle, with the size of each object in place of it.

    A tuple of twice the same tuple, sixty times over, is short in the file and has 2^60 parts for its hash.
    """

    def __init__(self) -> None:
        self.stack: list[ObjectSize | None] = []  # None for a mark
        self.memo: dict[int, ObjectSize | None] = {}
        self.work = 0

    def apply(self, opcode: pickletools.OpcodeInfo, argument: Any) -> None:
        """Does to the sizes what an opcode does to the objects. Raises LookupError where a stack has too few."""
        if opcode.name in ("BINGET", "LONG_BINGET", "GET"):
            self.stack.append(self.memo[int(argument)])
        elif opcode.name in ("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"):
            self.memo[len(self.memo) if argument is None else int(argument)] = self.stack[-1]
        elif opcode.name == "MARK":
            self.stack.append(None)
        elif not opcode.stack_before:
            letters = len(argument) if isinstance(argument, str | bytes) else 0
            encodes = opcode.name == "GLOBAL" and argument == ENCODE
            self.stack += [ObjectSize(1 + letters, 1, encodes)] * len(opcode.stack_after)
        else:
            taken = self._take(opcode)
            if opcode.name in CHANGES:
                self._build(taken[0], taken[1:])
                self.stack.append(taken[0])
            else:
                made = ObjectSize()
                self._build(made, taken)
                made.parts *= 4 if opcode.name == "REDUCE" and taken[0].encodes else 1
                self.stack += [made] * len(opcode.stack_after)

    def _take(self, opcode: pickletools.OpcodeInfo) -> list[ObjectSize]:
        """Pops the operands of an opcode from the stack, in order; with a mark, all that came after it."""
        taken: list[ObjectSize] = []
        for kind in reversed(opcode.stack_before):
            if kind is pickletools.stackslice:
                continue
            size = self.stack.pop()
            while kind is pickletools.markobject and size is not None:
                taken.append(size)
                size = self.stack.pop()
            if size is not None:
                taken.append(size)
        return taken[::-1]

    def _build(self, whole: ObjectSize, parts: list[ObjectSize]) -> None:
        for size in parts:
            whole.parts += size.parts
            whole.depth = max(whole.depth, size.depth + 1)
            self.work += size.parts
        if self.work > MOST_WORK or whole.depth > DEEPEST:
            raise PickleRefusal("its objects lie in one another without end; save its state_dict() anew")


def _check_name(name: str) -> None:
    last = name.rpartition(".")[2]
    plain = name.startswith("torch.") and last in dir(torch) and not callable(getattr(torch, last))  # a dtype
    storage = name.startswith("torch.") and last.endswith("Storage")
    if not (plain or storage or name in (*HARMLESS, *COLLECTIONS) or name.startswith(REBUILD)):
        raise PickleRefusal(f"it would call {name!r:.80}; do not trust it, or save its state_dict() as safetensors")
