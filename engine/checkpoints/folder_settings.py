"""What the files beside the weights say: which tokens end a text, what classes are called, how to be let write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.checkpoints.generation_config import NAME as GENERATION
from engine.checkpoints.generation_config import read_generation
from engine.checkpoints.generation_defaults import GenerationDefaults
from engine.checkpoints.locate import CheckpointLocation
from engine.checkpoints.weights import read_json
from engine.model.config import ModelConfig

PROCESSOR = "preprocessor_config.json"
START = "decoder_start_token_id"
LABELS = ("id2label", "label2id", "num_labels", "_num_labels", "problem_type", "finetuning_task")  # of one head


@dataclass(frozen=True)
class FolderSettings:
    """`config` is config.json, with what was corrected of it, `generation` generation_config.json and `processor`
    preprocessor_config.json, None without these files. Whoever saves a checkpoint writes them as they are, but for what
    has changed. Not `written` is a config that was inferred from the weights."""

    config: Mapping[str, Any] = field(default_factory=dict)
    generation: Mapping[str, Any] | None = None
    processor: Mapping[str, Any] | None = None
    written: bool = True

    @property
    def table(self) -> dict[str, Any]:
        """config.json, with the start token of generation_config.json, which counts more for writing."""
        start = (self.generation or {}).get(START)
        return {**self.config} if start is None else {**self.config, START: start}

    def read_labels(self, config: ModelConfig) -> tuple[str, ...]:
        """The names of the classes, from `id2label` of config.json; empty where it does not name each of so many."""
        named = self.config.get("id2label") if config.head.classes else None
        named = named if isinstance(named, dict) else {}
        if named and len(named) != config.head.classes:  # as transformers, which then believes num_labels
            return tuple(f"LABEL_{i}" for i in range(config.head.classes))
        names = tuple(named.get(str(i)) for i in range(config.head.classes))
        return tuple(map(str, names)) if all(isinstance(name, str) for name in names) else ()

    def read_end_ids(self, config: ModelConfig) -> tuple[int, ...]:
        """`eos_token_id` of generation_config.json, else of config.json, where it lies in the vocabulary."""
        for table in (self.generation or {}, self.config):
            found = table.get("eos_token_id")
            ids = found if isinstance(found, list) else [found]
            inside = tuple(i for i in ids if type(i) is int and 0 <= i < config.vocab_size)
            if inside:
                return inside
        return ()

    def read_writing(self, config: ModelConfig) -> tuple[GenerationDefaults, tuple[str, ...]]:
        """Reads the defaults of generation, and a sentence for each setting that is not obeyed."""
        if not config.generates:
            return GenerationDefaults(), ()
        return read_generation(self.generation, self.config, config.outputs)


def read_folder_settings(place: CheckpointLocation) -> FolderSettings:
    config, generation, processor = (place.find(name) for name in ("config.json", GENERATION, PROCESSOR))
    return FolderSettings(
        read_json(config) if config else {},
        read_json(generation) if generation else None,
        read_json(processor) if processor else None,
    )
