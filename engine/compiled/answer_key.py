"""The answer key of a compiled model: which part computes which line, and what it reads and writes.

A part is a tuple (kind, block, head): ("embedding", None, None), ("head", 0, 1) and ("MLP", 0, None) write; ("q", 0,
1), ("k", 0, 1), ("v", 0, 1), ("MLP", 0, None) and ("output", None, None) read.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from engine.checkpoints import Checkpoint
from engine.checkpoints.locate import ANSWER_KEY
from engine.compiled.program import POSITIONS, START, TOKENS
from engine.json_text import parse_json
from engine.model.from_dict import build

LARGEST = 2**22  # bytes that are read of such a file

Part: TypeAlias = tuple[str, int | None, int | None]


@dataclass(frozen=True)
class Variable:
    """Subspace of the residual stream: the components `start` to `start + size`. `labels` say what each stands for; a
    number has one component and no labels."""

    name: str
    start: int
    size: int
    labels: tuple[str, ...] = ()

    @property
    def span(self) -> slice:
        return slice(self.start, self.start + self.size)


@dataclass(frozen=True)
class Line:
    """A line of the program, and the `head` of the `block` that computes it, or the neurons of its MLP from the first
    of `neurons` to before the second. `reads` are pairs of q, k, v or MLP and the variable that it reads."""

    text: str
    writes: str
    reads: tuple[tuple[str, str], ...]
    block: int
    head: int | None = None
    neurons: tuple[int, ...] = ()

    @property
    def part(self) -> Part:
        return ("MLP", self.block, None) if self.head is None else ("head", self.block, self.head)


@dataclass(frozen=True)
class AnswerKey:
    """`blocks` and `heads` (of each block) are the model's; what no line uses is idle: its weights are 0.

    Raises ValueError for a key that does not fit together.
    """

    program: str
    predicts: str
    blocks: int
    heads: int
    variables: tuple[Variable, ...]
    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        named = {variable.name for variable in self.variables}
        read = {self.predicts, *(variable for line in self.lines for _, variable in line.reads)}
        if named != self.writers().keys() or not read <= named:
            raise ValueError("its variables must be those that are embedded and that its lines make.")
        for line in self.lines:
            inside = 0 <= line.block < self.blocks and (line.head is None or 0 <= line.head < self.heads)
            if not inside or not {reader for reader, _ in line.reads} <= set(["MLP"] if line.head is None else "qkv"):
                raise ValueError(f"the line {line.text!r:.80} stands in no part of the model.")

    def writers(self) -> dict[str, Part]:
        """The part that writes each variable."""
        embedded = dict.fromkeys((TOKENS, POSITIONS, START), ("embedding", None, None))
        return {**embedded, **{line.writes: line.part for line in self.lines}}

    def nodes(self) -> set[Part]:
        """Heads and MLPs that are needed."""
        return {line.part for line in self.lines}

    def idle_nodes(self) -> set[Part]:
        """Heads and MLPs that do nothing."""
        heads: set[Part] = {("head", block, head) for block in range(self.blocks) for head in range(self.heads)}
        return (heads | {("MLP", block, None) for block in range(self.blocks)}) - self.nodes()

    def edges(self, with_start: bool = False) -> set[tuple[Part, Part]]:
        """Pairs (writer, reader) that are needed.

        Over some goes only the mark of the start token, which is the same in every text, so that no comparison of two
        texts finds them: those are there `with_start`.
        """
        writers = self.writers()
        found: set[tuple[Part, Part]] = {(writers[self.predicts], ("output", None, None))}
        for line in self.lines:
            for reader, variable in line.reads:
                if with_start or variable != START:
                    found.add((writers[variable], (reader, line.block, line.head)))
        return found

    def save(self, folder: Path) -> None:
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False)
        (folder / ANSWER_KEY).write_text(text + "\n", encoding="utf-8")


def read_answer_key(folder: str | Path) -> AnswerKey:
    """The key that lies in the folder of a compiled model. Raises FileNotFoundError where there is none, and
    ValueError for a file that is no such key."""
    file = Path(folder) / ANSWER_KEY
    if (size := file.stat().st_size) > LARGEST:
        raise ValueError(f"{file} must be at most {LARGEST:,} bytes, got {size:,}.")
    try:
        key: AnswerKey = build(AnswerKey, parse_json(file.read_bytes()))
    except ValueError as error:
        raise ValueError(f"{file} is no answer key: {error}") from error
    return key


def find_answer_key(checkpoint: Checkpoint) -> AnswerKey | None:
    """The key that lies beside the weights of a checkpoint; None where none does. Raises ValueError for a file that is
    no key of this model."""
    if checkpoint.source is None or not (checkpoint.source / ANSWER_KEY).is_file():
        return None
    key, config = read_answer_key(checkpoint.source), checkpoint.config
    width = max((variable.span.stop for variable in key.variables), default=0)
    if (key.blocks, key.heads) != (config.layers, config.attention.heads) or width > config.d_model:
        raise ValueError(f"{checkpoint.source / ANSWER_KEY} is the key of another model.")
    return key
