"""The code of a function of the engine: how it is called with what stands on the page, and what it does."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.checkpoints.locate import shipped_names
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from views.core.bound_source import CONSTANTS

MOST_ELEMENTS = 64  # of a tensor that is written out


def source_of(function: Callable[..., Any]) -> str:
    """The function as it stands in the engine. Raises ValueError for one that is not of the engine."""
    check_engine(function)
    return textwrap.dedent(inspect.getsource(inspect.unwrap(function)))


def call_lines(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """A script that binds `values` to the function of these arguments and prints them.

    Raises ValueError for a function that is not of the engine, and for an argument that cannot be written out.
    """
    imports, call = written_call(function, arguments)
    return "\n".join([*imports, "", f"values = {call}", "print(values)"])


def written_call(
    function: Callable[..., Any], arguments: Mapping[str, Any], digits: int | None = None
) -> tuple[list[str], str]:
    """Imports that a call needs, and the call, with numbers of `digits` significant digits where that is given.

    Raises ValueError as `call_lines` does.
    """
    check_engine(function)
    inspect.signature(function).bind(**arguments)
    reader = next((one for one in arguments.values() if isinstance(one, Checkpoint)), None)
    if reader is None and arguments.get("name") in shipped_names():
        reader = library.checkpoint(str(arguments["name"]))
    written = {name: literal(name, value, reader, digits) for name, value in arguments.items()}
    given, name = ", ".join(f"{name}={value}" for name, value in written.items()), function.__name__
    imports = ["import torch", ""] if "torch." in given else []
    imports += ["from engine import load"] if "load(" in given else []
    return [*imports, f"from {function.__module__} import {name}"], f"{name}({given})"


def literal(name: str, value: Any, reader: Checkpoint | None = None, digits: int | None = None) -> str:
    """`reader` is the model that reads the texts among the arguments."""
    if isinstance(value, Checkpoint) and value.name in shipped_names():
        return f"load({value.name!r})"
    if isinstance(value, Encoding) and reader and reader.tokenizer and reader.name in shipped_names():
        if reader.tokenizer.encode(value.text).ids == value.ids:
            return f"load({reader.name!r}).tokenizer.encode({value.text!r})"
    if isinstance(value, CONSTANTS):
        return repr(round_floats(value, digits)) if value == value else 'float("nan")'
    if isinstance(value, list | tuple):
        inner = ", ".join(literal(name, one, reader, digits) for one in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, Tensor) and value.numel() <= MOST_ELEMENTS:
        elements = str(round_floats(value.tolist(), digits)).replace("inf", 'float("inf")')
        return f"torch.tensor({elements}, dtype={value.dtype})"
    kind = f"a tensor of {value.numel():,} elements" if isinstance(value, Tensor) else type(value).__name__
    raise ValueError(
        f"{name} must be a number, a text, a list of them or a tensor of at most {MOST_ELEMENTS} elements to be "
        f"written out, got {kind}."
    )


def round_floats(value: Any, digits: int | None) -> Any:
    """A float, or each of nested lists, with so many significant digits; all else, and all without `digits`, as is."""
    if isinstance(value, list):
        return [round_floats(one, digits) for one in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) and digits is not None else value


def check_engine(function: Callable[..., Any]) -> None:
    module = getattr(function, "__module__", "") or ""
    if not inspect.isfunction(inspect.unwrap(function)) or module.split(".")[0] != "engine":
        raise ValueError(f"only functions of the engine have code to show, got one of {module or 'nowhere'}.")
