"""Opening, checking and saving checkpoints: `load(name_or_path)` and `Checkpoint.save(folder)`."""

from engine.checkpoints.adapters.read import read_adapter
from engine.checkpoints.adapters.write import write_adapter
from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.load import load
from engine.checkpoints.locate import shipped_names
from engine.checkpoints.report import Assumption, IncompleteWeights, Report, TensorRow
from engine.checkpoints.save import save_weights
from engine.checkpoints.unpack import UnpackedFolder, unpack

__all__ = [
    "Assumption",
    "Checkpoint",
    "IncompleteWeights",
    "Report",
    "TensorRow",
    "UnpackedFolder",
    "load",
    "read_adapter",
    "save_weights",
    "shipped_names",
    "unpack",
    "write_adapter",
]
