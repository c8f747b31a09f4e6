"""Prompts, each with two answers of which one is preferred."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.bounds import a_share
from engine.data.options import HELD_OUT
from engine.data.task import DataKind
from engine.model.option import Option


@dataclass(frozen=True)
class Preferences(DataKind):
    """A file of `engine.training.policy.pairs`: prompts, each with two answers of which one is preferred. A
    relative path is taken from where the recipe stands. The share `held_out` of the prompts is measured on and never
    learned from, or all of another file, `held_out_path`. `ended`: an answer is whole, and the end token follows it."""

    path: str = field(
        metadata=Option(
            help="The file of prompts, each with two answers of which one is preferred: texts, or lists of messages."
        )
    )
    held_out_path: str = field(
        default="", metadata=Option(help="Another such file, of which all is measured on in place of a share.")
    )
    held_out: float = field(default=0.1, metadata=HELD_OUT)
    ended: bool = field(default=True, metadata=Option(help="Each answer is complete and followed by the end token."))

    kind: ClassVar[str] = "preferences"
    place: ClassVar[int] = 24

    def __post_init__(self) -> None:
        a_share("data.preferences.held_out", self.held_out)


KIND = Preferences
