"""Passages with a gap."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.options import DOCUMENTS, HELD_OUT, MIXED
from engine.data.published import check_named
from engine.data.task import DataKind
from engine.model.option import Option


@dataclass(frozen=True)
class Gaps(DataKind):
    """Passages from the stories with a gap (`engine.data.sentences.span`).

    In training the share `own` of them keep that gap. In the others gaps are drawn anew each time, which is more to
    learn from: a `long` share has one of half the words or more, the rest short ones that hold about the share
    `hidden` of the words (GLM's two objectives, Du et al. 2022, sections 2.1 and 2.1.1). In a `recurring` share the
    gaps are words that stand elsewhere in the passage, as names do: a model that only learns what words stand next to
    each other never fills them (salient spans, Guu et al. 2020, section 3.4).

    `tales` and `sentences` are files of `engine.data.published`: passages of what `engine.data.mixture` makes of them
    (`engine.data.sentences.gapped`) are mixed with these, each sentence `times` times in other company. `documents` may
    be 0 beside them.
    """

    documents: int = field(default=60_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)
    tales: str = field(default="", metadata=MIXED)
    sentences: str = field(default="", metadata=MIXED)
    times: int = field(default=2, metadata=MIXED)
    own: float = field(
        default=0.2,
        metadata=Option(
            help="The share of passages that keep their own gap; in the others gaps are drawn anew each time."
        ),
    )
    long: float = field(
        default=0.4, metadata=Option(help="The share of passages with one gap of half the words or more.")
    )
    recurring: float = field(
        default=0.2,
        metadata=Option(help="The share of passages whose gaps are words that stand elsewhere in them, as names do."),
    )
    hidden: float = field(default=0.3, metadata=Option(help="The share of the words that short gaps hold, about."))

    kind: ClassVar[str] = "infill"
    place: ClassVar[int] = 21

    def __post_init__(self) -> None:
        for name in ("documents", "held_out"):
            at_least(f"data.infill.{name}", getattr(self, name), 0 if self.tales or self.sentences else 1)
        at_least("data.infill.times", self.times, 1)
        check_named("data.infill", tales=self.tales, sentences=self.sentences)
        for name in ("own", "long", "recurring", "hidden"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"data.infill.{name} must be a share in [0, 1], got {getattr(self, name)}.")
        if self.own + self.long + self.recurring > 1 + 1e-9:
            raise ValueError("data.infill.own, long and recurring are shares of one whole; lower one of them.")


KIND = Gaps
