"""What a run, a model, a text and a training may take, and where things are kept: numbers that are read when needed.

Whoever uses the engine sets them, such as `budget.max_tokens = 512`; Loupe's own programs do by the settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.places import default_folder

MIB = 2**20


@dataclass
class TextBudget:
    """Limits of one text, and of what is computed and kept of it."""

    max_tokens: int = 256
    long_tokens: int = 1024
    surprise_tokens: int = 20_000
    max_characters: int = 500_000
    max_edits: int = 64
    flow_work: int = 80_000_000  # weights x keys
    trace_memory: int = 1024 * MIB


@dataclass
class ModelBudget:
    """Limits of checkpoints that are opened, and where they come from."""

    max_download: int = 8192 * MIB
    models_folder: str = default_folder("models")
    weights_address: str = ""
    max_upload: int = 2048 * MIB
    uploads_folder: str = ""
    uploads_disk: int = 16_384 * MIB
    models_memory: int = 8192 * MIB
    device: str = "cpu"
    heavy: int = 20_000  # millions of weights x tokens
    adapters_memory: int = 1024 * MIB


@dataclass
class RunBudget:
    """Limits of trainings, and where their runs lie."""

    runs_folder: str = default_folder("runs")
    runs_store: str = ""  # where `runs_folder` has copies of what lies there
    ray_address: str = ""
    max_trainings: int = 2
    max_queued: int = 16
    max_steps: int = 1_000_000
    max_layers: int = 256
    max_parameters: int = 100_000_000
    max_run_seconds: int = 86_400
    runs_disk: int = 16_384 * MIB
    deleted_days: int = 7


@dataclass
class DataBudget:
    """Limits of what is learned from."""

    texts_days: int = 30
    corpora_folder: str = ""
    max_data: int = 64 * MIB


@dataclass
class Budget(DataBudget, RunBudget, ModelBudget, TextBudget):
    """Memory and disk are in bytes, and an empty text names nothing; docs/operation.md says what each is of."""


budget = Budget()
