"""A model with everything that belongs to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.checkpoints.folder_settings import FolderSettings
from engine.checkpoints.generation_defaults import GenerationDefaults
from engine.checkpoints.report import Report
from engine.checkpoints.save import save
from engine.checkpoints.sentence import SentenceSettings
from engine.checkpoints.towers import TowerPair
from engine.inputs.processors import Processor
from engine.model.config import ModelConfig
from engine.model.layers.lora import Adapter
from engine.model.transformer import Transformer
from engine.tokenizers import Encoding, Tokenizer
from engine.tokenizers.continuation import read_target


@dataclass(frozen=True)
class Checkpoint:
    """`card` is what its makers say about it (card.json); `end_ids` are the tokens that end a text.

    `end_ids` left empty are the tokenizer's. `processor` makes of a picture or a sound what the model reads, `labels`
    are the names of the classes that it tells apart. `family` is the model_type it was read as, `files` are those that
    hold its weights. `writing` is what it forces and forbids when it writes, and how it is to be let write; `settings`
    are the files that said so. `adapters` are those that the weights hold at strength 1;
    `ApplyAdapter.of(adapter, strength)` is the edit that gives one another strength, 0 for the base alone. `sentence`
    is how texts are read of which it makes vectors, and `pair` what compares it with the other of two towers.
    """

    model: Transformer
    tokenizer: Tokenizer | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    report: Report = field(default_factory=Report)
    name: str = ""
    end_ids: tuple[int, ...] = ()
    processor: Processor | None = None
    labels: tuple[str, ...] = ()
    family: str = ""
    files: tuple[Path, ...] = ()
    writing: GenerationDefaults = field(default_factory=GenerationDefaults)
    adapters: tuple[Adapter, ...] = ()
    settings: FolderSettings = field(default_factory=FolderSettings)
    sentence: SentenceSettings = field(default_factory=SentenceSettings)
    pair: TowerPair | None = None

    def __post_init__(self) -> None:
        end = self.tokenizer.end_id if self.tokenizer is not None else None
        if not self.end_ids and end is not None:
            object.__setattr__(self, "end_ids", (end,))

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    @property
    def source(self) -> Path | None:
        """The folder that the weights lie in; None where the model came from no file."""
        return self.files[0].parent if self.files else None

    def target(self, text: str) -> Encoding:
        """Decoder input of an encoder-decoder for `text`: its start token, then the text without an end.

        At each position it then predicts the next token of the text, and at the last one the end (Vaswani et al.
        2017, section 3: "shifted right"). Of a sound's transcript the text says its start itself, or begins after it.
        Raises ValueError for a model without an encoder before its decoder.
        """
        encoder, tokenizer = self.config.encoder, self.tokenizer
        if encoder is None or tokenizer is None:
            lacks = "one stack of blocks" if encoder is None else "no tokenizer"
            raise ValueError(f"a target is for an encoder-decoder with a tokenizer, and this model has {lacks}.")
        start = encoder.start
        if self.config.embedding.sound is None:
            written = read_target(tokenizer, text, self.end_ids)
        else:  # whose tokens of language and task are written out
            written = tokenizer.encode(text, special=False)
            if written.ids[:1] == (start,):
                return written
        return Encoding(
            text,
            (start, *written.ids),
            (tokenizer.piece(start), *written.pieces),
            ((0, 0), *written.spans),
            (True, *written.special),
            (0, *written.segments),
        )

    def save(self, folder: str | Path) -> None:
        """Write config.json, model.safetensors, card.json and the files of the tokenizer or processor.

        In the format of the first family that can express the model exactly, so that transformers reads it
        where it has such a model; otherwise in Loupe's own.
        """
        save(self, Path(folder))
