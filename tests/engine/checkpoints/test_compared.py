"""The table of docs/checkpoints.md says what is so."""

import pytest

from engine.checkpoints.families import FAMILIES, NATIVE
from tests.engine.checkpoints.compared import BEGIN, PAGE, compare, condition, names_of

TYPES = {name: families for name, families in sorted(FAMILIES.items()) if families[0] is not NATIVE}
TABLE = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition("\n\n")[0]
LINES = [line for line in TABLE.splitlines() if line.startswith("| ")]
TOLD = {line.split(" | ")[0].removeprefix("| "): line for line in LINES}


def test_every_type_is_told_with_its_classes_and_what_it_asks() -> None:
    assert list(TOLD) == list(TYPES)
    for name, families in TYPES.items():
        cells = TOLD[name].strip("|").split("|")
        assert cells[1].strip() == ", ".join(f"`{one}`" for one in names_of(families))
        assert cells[4].strip() == condition(families)


@pytest.mark.long
@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_as_near_to_transformers_as_is_told(name: str) -> None:
    found = compare(name, TYPES[name])
    for difference, cell in zip((found.logits, found.attention), TOLD[name].strip("|").split("|")[2:4], strict=True):
        told = cell.strip()
        assert difference <= (1e-5 if told == "equal" else 10 * float(told.removeprefix("< ")))
