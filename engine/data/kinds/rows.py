"""A file of a person's own rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.documents import Documents
from engine.data.own import Columns
from engine.data.own_tasks import own_documents
from engine.data.published import locate
from engine.data.table import Table, join_held_out, read_table
from engine.model.option import Option


@dataclass(frozen=True, kw_only=True)
class Rows(Columns):
    """A .txt, .csv, .tsv, .jsonl or .parquet file; a relative path is taken from where the recipe stands. `header`: the
    first line of a .csv or .tsv file names its columns; without it they are "column 1", "column 2", ... The rows of
    another file, `held_out_path`, with the same columns, are measured on in place of a share of these.
    """

    path: str = field(metadata=Option(help="The file with the rows."))
    held_out_path: str = field(
        default="", metadata=Option(help="Another file, whose rows are measured on in place of a share of these.")
    )
    header: bool = field(default=True, metadata=Option(help="The first line of a .csv or .tsv file names its columns."))

    kind: ClassVar[str] = "rows"
    place: ClassVar[int] = 18

    def table(self) -> Table:
        option = "path"
        try:
            table = read_table(locate(self.path), self.header)
            if not self.held_out_path:
                return table
            option, other = "held_out_path", locate(self.held_out_path)
            return join_held_out(table, read_table(other, self.header), other.name)
        except ValueError as error:
            raise ValueError(f"data.rows.{option}: {error}") from None

    def make_documents(self, seed: int) -> Documents:
        return own_documents(self, seed)


KIND = Rows
