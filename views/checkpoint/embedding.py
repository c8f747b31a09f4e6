"""Tables of vectors of a checkpoint in the plane or in space, the rows nearest to one, their data and their Python."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from engine.analysis.weights import Matrix, Neighbours, Projection, neighbours, projection
from engine.checkpoints import Checkpoint
from engine.model.transformer import Transformer
from views.checkpoint.weights import drawn_matrices
from views.core.codegen import quote, source_of
from views.core.table_files import Table

Method = Literal["pca", "tsne"]
METHODS: dict[Method, str] = {"pca": "PCA", "tsne": "t-SNE"}
KINDS = {  # of tokens, with the role whose colour each has; assets/views/core/token_kinds.js has the same
    "word": ("begins a word", "residual"),
    "inside": ("inside a word", "attention"),
    "number": ("number", "probability"),
    "mark": ("mark", "key"),
    "special": ("special", "edited"),
    "byte": ("byte", "soft"),
}
NO_TABLE = "Unknown request: this checkpoint has no such table. Reload and try again."
SUGGESTED = 8  # tokens that a search finds


@dataclass(frozen=True)
class VectorTable:
    """A table of vectors, a row for each token or position. `pieces` names the rows, where they are of tokens."""

    name: str
    rows: int
    width: int
    pieces: tuple[str, ...] | None
    kinds: tuple[str, ...] | None

    @property
    def title(self) -> str:
        return "token" if self.name.endswith("tokens.weight") else "position"

    def label(self, id: int) -> str:
        """ "·dog", "position 3"."""
        return f"{self.title} {id}" if self.pieces is None else self.pieces[id]

    @property
    def first(self) -> int:
        """The row that is looked at first: a word of four letters or more, of positions the one in the middle."""
        if self.pieces is None or self.kinds is None:
            return self.rows // 2 if self.title == "position" else 0
        words = (i for i, piece in enumerate(self.pieces) if self.kinds[i] == "word" and is_long_word(piece))
        return next(words, 0)


def is_long_word(piece: str) -> bool:
    plain = piece if piece[:1].isalpha() else piece[1:]
    return len(plain) >= 4 and plain.isalpha()


def table_matrices(model: Transformer) -> list[Matrix]:
    """Embeddings of tokens and of positions, with at least two rows."""
    ends = ("embed.tokens.weight", "embed.positions.weight")
    return [each for each in drawn_matrices(model) if each.name.endswith(ends) and each.shape[0] > 1]


def vector_table(checkpoint: Checkpoint, name: str) -> VectorTable:
    """Raises ValueError for a table that is not there."""
    rows, width = table_of(checkpoint, name).shape
    tokenizer = checkpoint.tokenizer if name.endswith("tokens.weight") else None
    if tokenizer is None:
        return VectorTable(name, rows, width, None, None)
    pieces = tuple(tokenizer.piece(id) for id in range(rows))
    return VectorTable(name, rows, width, pieces, token_kinds(pieces, set(tokenizer.special_tokens.values())))


def token_kinds(pieces: tuple[str, ...], special: set[int]) -> tuple[str, ...]:
    """Sorts each piece into one of KINDS, by its characters."""
    marked = any(piece[:1] in ("·", "▁") and piece[1:2].isalpha() for piece in pieces)
    continued = any(piece.startswith("##") for piece in pieces)

    def kind(id: int, piece: str) -> str:
        if id in special:
            return "special"
        if re.fullmatch(r"<(0x)?[0-9A-F]{2}>", piece):
            return "byte"
        plain = re.sub(r"^[·▁]+|^##", "", piece)
        if plain and all(unicodedata.category(letter)[0] == "N" for letter in plain):
            return "number"
        if not any(letter.isalpha() for letter in plain):
            return "mark"
        begins = not piece.startswith("##") if continued else not marked or piece[:1] in ("·", "▁")
        return "word" if begins else "inside"

    return tuple(kind(id, piece) for id, piece in enumerate(pieces))


def find_rows(table: VectorTable, text: str) -> list[int]:
    """Ids that a search finds: pieces equal to the text first, then those that begin with it; of positions the id."""
    text = text.strip()
    if not text:
        return []
    if table.pieces is None:
        return [int(text)] if text.isdecimal() and int(text) < table.rows else []
    plain = [re.sub(r"^[·▁]|^##", "", piece) for piece in table.pieces]
    equal = [id for id, piece in enumerate(table.pieces) if text in (piece, plain[id])]
    begins = [id for id, piece in enumerate(table.pieces) if piece.startswith(text) or plain[id].startswith(text)]
    return list(dict.fromkeys(equal + begins))[:SUGGESTED]


def table_of(checkpoint: Checkpoint, name: str) -> torch.Tensor:
    """Raises ValueError for a table that is not there."""
    if name not in [each.name for each in table_matrices(checkpoint.model)]:
        raise ValueError(NO_TABLE)
    return checkpoint.model.get_parameter(name).detach()


def project_table(checkpoint: Checkpoint, name: str, method: Method, axes: int) -> Projection:
    """Raises ValueError for a table that is not there."""
    return projection(table_of(checkpoint, name), method, axes=axes)


def nearest_rows(checkpoint: Checkpoint, name: str, id: int) -> Neighbours:
    """The ten rows most like row `id`, by cosine. Raises ValueError for a table or a row that is not there."""
    return neighbours(table_of(checkpoint, name), id)


def table_lines(name: str, checkpoint: Checkpoint, table: str, method: Method, axes: int, id: int) -> str:
    """Python that binds `found`, the points, and `near`, the rows nearest to row `id`. Raises as `table_of` does."""
    table_of(checkpoint, table)
    source, note = source_of(name)
    more = "" if axes == 2 else f", axes={axes}"
    lines = [
        "from engine import load",
        "from engine.analysis.weights import neighbours, projection",
        "",
        f"checkpoint = load({source}){note}",
        f"table = checkpoint.model.get_parameter({quote(table)}).detach()",
        f"found = projection(table, {quote(method)}{more})",
        f"near = neighbours(table, {id})",
        "print(found.points.shape)",
        "for id, similarity in zip(near.ids.tolist(), near.similarity.tolist(), strict=True):",
        "    print(id, similarity)",
    ]
    return "\n".join(lines) + "\n"


def point_table(about: dict[str, str], table: VectorTable, found: Projection) -> Table:
    points = found.points.cpu().numpy()
    axes = {"xyz"[axis]: points[:, axis] for axis in range(points.shape[1])}
    return Table({**name_ids(table, found.ids.cpu().numpy()), **axes}, about)


def nearest_table(about: dict[str, str], table: VectorTable, near: Neighbours) -> Table:
    return Table({**name_ids(table, near.ids.cpu().numpy()), "similarity": near.similarity.cpu().numpy()}, about)


def name_ids(table: VectorTable, ids: np.ndarray) -> dict[str, Any]:
    """Ids, with the tokens they are of where they are of tokens."""
    pieces = table.pieces
    return {"id": ids} | ({} if pieces is None else {"token": [pieces[int(id)] for id in ids]})
