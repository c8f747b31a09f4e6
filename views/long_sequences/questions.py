"""What the page Long context is asked after it is drawn: what each kind of attention keeps of a head's pattern."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor

from engine.attention_variants.measure import Setup
from engine.attention_variants.shared import kept_patterns
from views.core.bound_source import Imports
from views.core.codegen import import_lines, quote
from views.core.questions import Answer, Head, Layer, Query, Registry
from views.long_sequences.codegen import opening_lines
from views.long_sequences.patterns import TITLES, name_arrays, shares

QUESTIONS = Registry()
Kind = Literal["full", "window", "blocks", "nearest", "quantized"]


@dataclass(frozen=True)
class PatternContext:
    """The heads of a model, `heads` being how many layers and heads a layer there are, on the first tokens (`pieces`)
    of a text that is `begun` so."""

    model_name: str
    setup: Setup
    positions: int
    heads: tuple[int, int]
    pieces: Sequence[str]
    begun: str = ""

    attributes = {"model_name": "model", "setup": "setup", "positions": "positions", "begun": "begun"}
    no_script = ""

    @property
    def digest(self) -> str:
        return f"{self.model_name} {self.setup} {self.positions} {self.begun}"

    def choices(self, axis: str, query: Query) -> range | Collection[str]:
        return range(self.heads[0 if axis == "layer" else 1])

    def labels(self, axis: str, query: Query) -> Sequence[str] | None:
        return self.pieces

    def script(self, imports: Imports, lines: Sequence[str]) -> str:
        opening = [*opening_lines(self.model_name, self.setup, imports), f"positions = {self.positions}"]
        opening.append(f"begun = {quote(self.begun)}")
        return "\n".join([*import_lines(imports), "", *opening, *lines]) + "\n"


def list_heads(context: PatternContext) -> Iterator[dict[str, Any]]:
    layers, heads = context.heads
    yield from ({"layer": place // heads, "head": place % heads} for place in range(layers * heads))


@QUESTIONS.question("kept", returns={f"pattern.{kind}": ("query", "key") for kind in TITLES}, carry=list_heads)
def ask_kept(context: PatternContext, layer: Layer, head: Head) -> Answer:
    """Every kind's pattern of a head, NaN where a query may not look, and the shares that it keeps."""
    patterns = kept_patterns(context.model_name, context.positions, layer, head, context.setup, context.begun)
    return Answer(name_arrays(patterns), {"kept": shares(patterns)})


def pattern_title(layer: int, head: int, kind: Kind) -> str:
    return f"blocks.{layer}.attn {TITLES[kind]} head {head}.pattern"


@QUESTIONS.question("pattern", returns={"values": ("query", "key")}, title=pattern_title)
def ask_pattern(context: PatternContext, layer: Layer, head: Head, kind: Kind = "full") -> Tensor:
    """Computes what one kind keeps of a head's pattern, each row divided by its sum."""
    return kept_patterns(context.model_name, context.positions, layer, head, context.setup, context.begun)[kind].pattern
