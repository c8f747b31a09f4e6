"""Share & export on the page Compare: of two runs or more, and of what they differ in."""

from __future__ import annotations

from collections.abc import Sequence

from engine.inputs.readers import kind
from pages.controls.compare.defaults import RUN
from pages.controls.compare.parameters import TOGETHER, key, value
from pages.controls.compare.run import LIMIT, Side
from pages.controls.model_input.model_input import FIELDS, fields_said
from pages.controls.share.export import MOST_BYTES, ROOM, Export
from pages.controls.share.links import address_now
from pages.controls.what_if.experiment_link import linkable, to_link
from views.compare.pair import RunPair
from views.compare.questions import Comparison, carry
from views.compare.tables import names
from views.core.codegen import Fields


def comparison_of(sides: Sequence[Side], pairs: Sequence[RunPair]) -> Comparison:
    """Comparison of the sides as they stand in the controls."""
    return Comparison(pairs, lambda: {side.letter: fields_of(side) for side in sides})


def comparison_export(sides: Sequence[Side], comparison: Comparison) -> Export:
    """Export of the page; a file of long texts has more room for answers."""
    link = {name: text for side in sides for name, text in link_of(side).items()}
    read = " · ".join(f"{side.letter}: {read_by(side)}" for side in sides)
    return Export(
        "Compare", "compare", comparison, read, link,
        [*(key(side.letter, field) for side in sides for field in fields_shown(side)), TOGETHER],
        {name: {"ask": "comparison", "matrix": name} for name in names(comparison.pairs)},
        "the matrix that is looked at, its axes named",
        carry=lambda of, row: carry(comparison, of), room=MOST_BYTES if sides[0].run.whole else ROOM,
        predicts=True,
    )  # fmt: skip


def fields_shown(side: Side) -> list[str]:
    """Contents of a side's row."""
    stepped = value(side.letter, "model").startswith(RUN)
    return ["model", *(("step",) if stepped else ()), "edits", *FIELDS[kind(side.checkpoint)]]


def link_of(side: Side) -> dict[str, str]:
    """All that a side's model reads, so that a link opens the same again whatever is an example by then."""
    reads = FIELDS[kind(side.checkpoint)]
    found = {each: side.field(each) if each in reads else value(side.letter, each) for each in fields_shown(side)}
    return {key(side.letter, each): str(one) for each, one in found.items() if one != "" or each == reads[0]}


def run_address(side: Side) -> dict[str, str] | None:
    """Address of a page about one run that shows a side; None where no address holds it, or such a page not so long a
    text."""
    if side.field("upload") or not side.run.whole or not linkable(side.experiment):
        return None
    read = {field: str(side.field(field)) for field in FIELDS[kind(side.checkpoint)]}
    edits = {"edits": to_link(side.experiment)} if side.experiment.entries else {}
    seed = {name: text for name, text in address_now().items() if name == "seed"}
    return {"model": side.name, **read, **edits, **seed}


def read_by(side: Side) -> str:
    """Text of a side, for a caption."""
    fields = [field for field in FIELDS[kind(side.checkpoint)] if field not in ("picture", "given")]
    texts = [str(text) for field in fields if (text := side.field(field))]
    if texts:
        return " / ".join(texts)
    own = side.field("upload")
    return "a picture of one’s own" if own else f"picture {side.field('picture')}"


def fields_of(side: Side) -> Fields:
    return fields_said(side.checkpoint, LIMIT, side.field)
