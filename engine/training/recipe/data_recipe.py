"""What a recipe learns from: the table [data.<kind>] of one of `engine.data.kinds`, and the tokenizer of its texts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from engine.data.kinds import data_kinds
from engine.data.own import Columns
from engine.data.task import DataKind, PairTask
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.model.from_dict import build

Kind = TypeVar("Kind", bound=DataKind)


@dataclass(frozen=True)
class Data:
    """The options of one kind of data, and how its texts are cut."""

    table: DataKind
    tokenizer: TokenizerRecipe = field(default_factory=TokenizerRecipe)

    def __post_init__(self) -> None:
        self.table.check_tokenizer(self.tokenizer)

    @property
    def kind(self) -> str:
        return self.table.kind

    def expect(self, kind: type[Kind]) -> Kind:
        """The table, of data that must be of that kind. Raises ValueError for another."""
        if not isinstance(self.table, kind):
            raise ValueError(f"a recipe must have [data.{kind.kind}] here, got [data.{self.kind}]; change it.")
        return self.table

    @property
    def may_be_pairs(self) -> bool:
        """Tells whether it has texts that become others, or a person's own may."""
        return isinstance(self.table, PairTask | Columns)

    @property
    def tables(self) -> dict[str, Any]:
        """The tables below [data] in a recipe's file."""
        return {self.kind: asdict(self.table), "tokenizer": asdict(self.tokenizer)}


def read_data(tables: Any) -> Data:
    """Data of the tables below [data]. Raises ValueError for what is none, or not exactly one kind."""
    if not isinstance(tables, dict):
        raise ValueError(f"data must be a table, got {tables!r:.80}.")
    kinds = data_kinds()
    for name in tables:
        if name not in kinds and name != "tokenizer":
            raise ValueError(f"data.{name} is not a known key; expected one of {', '.join((*kinds, 'tokenizer'))}.")
    chosen = [name for name in tables if name != "tokenizer"]
    if len(chosen) != 1:
        known = ", ".join(f"[data.{name}]" for name in kinds)
        raise ValueError(f"data must have exactly one of {known}, got {len(chosen)}.")
    table = build(kinds[chosen[0]], tables[chosen[0]], f"data.{chosen[0]}")
    return Data(table, build(TokenizerRecipe, tables.get("tokenizer", {}), "data.tokenizer"))
