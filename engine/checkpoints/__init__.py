"""Opening, checking and saving checkpoints: `load(name_or_path)` and `Checkpoint.save(folder)`."""

from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.load import load
from engine.checkpoints.locate import shipped
from engine.checkpoints.report import Assumed, IncompleteWeights, Report, TensorRow
from engine.checkpoints.save import save_weights
from engine.checkpoints.unpack import Unpacked, unpack

__all__ = [
    "Assumed",
    "Checkpoint",
    "IncompleteWeights",
    "Report",
    "TensorRow",
    "Unpacked",
    "load",
    "save_weights",
    "shipped",
    "unpack",
]
