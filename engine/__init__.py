"""Loupe's engine: transformers whose every intermediate has a name. Usable alone, without streamlit."""

import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

# A training shares its cores with the app. OpenMP's threads otherwise spin while they wait for each other, and a core
# that another process holds then costs a whole time slice at every barrier: measured 2,000 tokens/s instead of 8,200.
# The variable is read when PyTorch is loaded, so it has to be set before; Python says "-m" here for `python -m engine`,
# and for a program that begins with "-m" and imports the engine.
if sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)] == "engine":
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    gc.disable()  # looking for garbage while modules are imported, all of which stay, is a sixth of that time

if TYPE_CHECKING:
    from engine.checkpoints import Checkpoint, load
    from engine.edits import AttentionTemperature, DrawMask, Edit, Replace, Scale, SilenceHeads
    from engine.generation.beam import beam
    from engine.generation.generate import generate
    from engine.model.config import ModelConfig
    from engine.runtime.run import run
    from engine.runtime.trace import Trace
    from engine.tokenizers.encoding import Encoding

HOMES = {  # a process that only needs a small module, such as a server's front, loads no PyTorch with it
    **dict.fromkeys(("Checkpoint", "load"), "checkpoints"),
    **dict.fromkeys(("AttentionTemperature", "DrawMask", "Edit", "Replace", "Scale", "SilenceHeads"), "edits"),
    "beam": "generation.beam",
    "generate": "generation.generate",
    "ModelConfig": "model.config",
    "run": "runtime.run",
    "Trace": "runtime.trace",
    "Encoding": "tokenizers.encoding",
}

__all__ = [
    "AttentionTemperature",
    "Checkpoint",
    "DrawMask",
    "Edit",
    "Encoding",
    "ModelConfig",
    "Replace",
    "Scale",
    "SilenceHeads",
    "Trace",
    "beam",
    "generate",
    "load",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
    return found
