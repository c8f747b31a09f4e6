"""The Python language reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.bounds import a_share
from engine.data.documents import Documents, cut
from engine.data.options import HELD_OUT
from engine.data.task import RunningText
from engine.data.text import python_reference


@dataclass(frozen=True)
class PythonReference(RunningText):
    """The Python language reference that every Python carries (`engine.data.text`). Its last part is held out."""

    held_out: float = field(default=0.05, metadata=HELD_OUT)

    kind: ClassVar[str] = "python_reference"
    place: ClassVar[int] = 2

    def __post_init__(self) -> None:
        a_share("data.python_reference.held_out", self.held_out)

    def make_documents(self, seed: int) -> Documents:
        return cut(python_reference(), self.held_out)


KIND = PythonReference
