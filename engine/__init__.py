"""Loupe's engine: transformers whose every intermediate has a name. Usable alone, without streamlit."""

from engine.beam import beam
from engine.checkpoints import Checkpoint, load
from engine.config import ModelConfig
from engine.edits import AttentionTemperature, DrawMask, Edit, Replace, Scale, SilenceHeads
from engine.generate import generate
from engine.run import run
from engine.tokenizers.encoding import Encoding
from engine.trace import Trace

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
