"""The table of docs/checkpoints.md: every architecture that opens, against transformers.

python -m tests.engine.checkpoints.compared   writes it anew
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import transformers

from engine.analysis.parity import parity
from engine.checkpoints import load
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import Family
from tests.engine.checkpoints.against import shaken
from tests.engine.checkpoints.test_dropped import SIZES, reading

PAGE = Path(__file__).parents[3] / "docs" / "checkpoints.md"
BEGIN = "| model_type | classes of transformers | logits | attention | opened only with |"


class Row(NamedTuple):
    """A model_type and what of it was compared: the largest differences of logits, and of attention."""

    name: str
    classes: tuple[str, ...]
    logits: float
    attention: float
    only: str

    @property
    def markdown(self) -> str:
        shown = ", ".join(f"`{one}`" for one in self.classes)
        return f"| {self.name} | {shown} | {written(self.logits)} | {written(self.attention)} | {self.only} |"


def written(difference: float) -> str:
    """The power of ten that it is below; the rest is another on each processor."""
    return "equal" if difference == 0 else f"< 1e{math.ceil(math.log10(difference))}"


def names_of(families: tuple[Family, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(family.architecture) for family in families))


def condition(families: tuple[Family, ...]) -> str:
    """Settings of config.json that have to be as they are for Loupe to open it."""
    usual = {"is_causal", "is_decoder"}
    said = [(name, value) for family in families for name, value in family.only.items() if name not in usual]
    only = {name: value for name, value in said if not any(name == one and value != other for one, other in said)}
    return ", ".join(f"`{name}` {str(value).lower()}" for name, value in sorted(only.items()))


def compare(name: str, families: tuple[Family, ...]) -> Row:
    differences = [of_class(one, name) for one in names_of(families)]
    logits, attention = (max(found) for found in zip(*differences, strict=True))
    return Row(name, names_of(families), logits, attention, condition(families))


def of_class(architecture: str, name: str) -> tuple[float, float]:
    kind = getattr(transformers, architecture)
    transformers.set_seed(0)
    model = shaken(kind(kind.config_class(**SIZES[name])))
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        checkpoint = load(folder)
        found = parity(checkpoint, Path(folder), reading(checkpoint))
    return found.logits, found.patterns


def rows() -> Iterator[Row]:
    for name, families in sorted(FAMILIES.items()):
        if families[0] is not NATIVE:
            yield compare(name, families)


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition("\n\n")[2]
    table = "\n".join([BEGIN, "|---|---|---|---|---|", *(row.markdown for row in rows())])
    PAGE.write_text(f"{before}{table}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
