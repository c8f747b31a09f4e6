"""A plain text file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from engine.data.bounds import a_share
from engine.data.documents import Documents, cut
from engine.data.options import HELD_OUT
from engine.data.published import locate
from engine.data.task import RunningText
from engine.data.text import read_encoded
from engine.model.option import Option


@dataclass(frozen=True)
class Text(RunningText):
    """A plain text file; a relative path is taken from where the recipe stands. Its last part is held out."""

    path: str = field(metadata=Option(help="The plain text file."))
    held_out: float = field(default=0.1, metadata=HELD_OUT)

    kind: ClassVar[str] = "text"
    place: ClassVar[int] = 1

    def __post_init__(self) -> None:
        a_share("data.text.held_out", self.held_out)

    def make_documents(self, seed: int) -> Documents:
        try:
            text, encoding = read_encoded(locate(self.path))
        except FileNotFoundError:
            raise ValueError(
                f"data.text.path must be a file, and there is no {Path(self.path).name} where it says; bring that file "
                "back, or correct the path."
            ) from None
        note = "" if encoding.startswith("UTF-") else f"{Path(self.path).name} was read as {encoding}."
        return replace(cut(text, self.held_out), notes=(note,) if note else ())


KIND = Text
