"""Opening, checking and saving checkpoints: `load(name_or_path)` and `Checkpoint.save(folder)`."""

from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.load import load
from engine.checkpoints.locate import shipped
from engine.checkpoints.report import IncompleteWeights, Report, TensorRow
from engine.checkpoints.save import save_weights

__all__ = ["Checkpoint", "IncompleteWeights", "Report", "TensorRow", "load", "save_weights", "shipped"]
