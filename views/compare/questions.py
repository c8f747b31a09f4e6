"""Questions of the page Compare once it is drawn: about one of its runs, about two of them, and about all.

Questions about one run are ATTENTION's; `Page` finds the run, or the pair, by its digest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from torch import Tensor

from engine.analysis.similarity import head_similarity, largest_differences
from engine.analysis.weights.projection import How
from views.attention.long import LARGEST_TILE, TILE, Span, describe_tile
from views.attention.long_questions import ATTENTION
from views.compare import tables
from views.compare.codegen import comparison_lines
from views.compare.differences import alike, head_difference, layer_change, says
from views.compare.pair import ComparedRun, RunPair, digest_of, shown_in, streams
from views.compare.tables import head_at, looked_at
from views.compare.texts import over_texts
from views.compare.tiles import carry_long
from views.core.codegen import Fields
from views.core.matrix_files import Matrix
from views.core.questions import UNKNOWN, Answer, Axes, Axis, BareContext, Context, Layer, Page, Query, Registry

TABS = ("weighted", "points", "ov", "qk")  # what the views of one head ask, of what a file answers
HEADS: Axes = ("head", "other_head")
CELLS: Axes = ("row", "column")
PLACES: Axes = ("place",)
RANKED: Axes = ("place", "rank")

PAIR, COMPARISON = Registry(), Registry()
Attention = Annotated[str, Axis("attention")]  # by its name in the first run
Letter = Annotated[str, Axis("letter")]
Second = Annotated[str, Axis("second")]  # the letter of another run than the first
Place = tuple[int, int]  # layer and head


# --- two runs ---


def number_of(pair: RunPair, attention: str) -> int:
    found = pair.number(attention)
    assert found is not None  # it was checked
    return found


@PAIR.question("similarity", returns={"similarity": HEADS})
def ask_similarity(pair: RunPair, attention: Attention, over: Literal["here", "texts"] = "here") -> Answer:
    """Every head of the first run by every one of the second: on what both read, of long texts over some rows `of` all;
    or over several texts."""
    number = number_of(pair, attention)
    if over == "here" and pair.is_long:
        heads, rows, count = alike(pair, number)
        return Answer({"similarity": heads}, {"rows": rows, "of": count})
    found = over_texts(pair, number) if over == "texts" else head_similarity([pair.patterns(number)])
    return Answer({"similarity": found.heads}, {"rows": found.rows})


@PAIR.question("streams", returns={"relative": ("layer", "group"), "cosine": ("layer", "group")})
def ask_streams(pair: RunPair, attention: Attention) -> dict[str, Tensor]:
    """Distances of the residual streams."""
    number = number_of(pair, attention)
    if pair.attentions[number][0].crosses:
        raise ValueError(UNKNOWN)
    return streams(pair, number)


@PAIR.question("change", returns={"change": ("head",), "seen": ("head", *CELLS)})
def ask_change(pair: RunPair, attention: Attention, layer: Layer) -> Answer:
    """Difference of each head of a layer; nothing where heads have no counterpart by place."""
    return Answer(layer_change(pair, number_of(pair, attention), layer), {"layer": layer})


@PAIR.question(
    "says", returns=dict.fromkeys(("ids", "first", "second"), RANKED) | dict.fromkeys(("kl", "variation"), PLACES)
)
def ask_says(pair: RunPair, group: int) -> Answer:
    """Predictions of both runs at a group of tokens."""
    called, arrays = says(pair, group)
    return Answer(arrays, {"names": called})


@PAIR.question("difference", returns={"weight": CELLS, "at": CELLS})
def ask_difference(
    pair: RunPair, attention: Attention, heads: tuple[Place, Place], rows: Span, columns: Span, cells: int = TILE
) -> Answer:
    """A window of the difference of two heads as at most `cells` x `cells` cells: `weight` row column, signed, each the
    element of its block that is furthest from zero, NaN where a block has no tokens that belong together. `max` is the
    largest |difference| of the whole."""
    if not 0 < cells <= LARGEST_TILE:
        raise ValueError(f"a tile has 1 to {LARGEST_TILE} cells along each side, got {cells}.")
    number = number_of(pair, attention)
    first, second = (head_at(pair, number, mine, place) for mine, place in zip((True, False), heads, strict=True))
    whole = head_difference(pair, number, first, second)
    header, arrays = describe_tile(largest_differences(whole, rows, columns, cells), rows, columns)
    return Answer(arrays, header | {"max": float(whole.abs().nan_to_num().max()) if whole.numel() else 0.0})


# --- all runs ---


@dataclass(frozen=True)
class Comparison(BareContext):
    """All runs of the page; `fields` gives, by letter, what stands in the fields of each."""

    pairs: Sequence[RunPair]
    fields: Callable[[], Mapping[str, Fields]] = dict

    @property
    def runs(self) -> list[ComparedRun]:
        return shown_in(self.pairs)

    @property
    def digest(self) -> str:
        return digest_of(self.runs)

    @property
    def model_name(self) -> str:
        return " and ".join(dict.fromkeys(one.title for one in self.runs))

    def choices(self, axis: str, query: Query) -> range | Collection[str]:
        letters = [one.letter for one in self.runs]
        known = {
            "letter": letters,
            "second": letters[1:],
            "attention": [one.key for one, _ in self.pairs[0].attentions],
            "matrix": tables.names(self.pairs),
        }
        return known[axis]

    @property
    def parts(self) -> list[tuple[Any, ...]]:
        """The registries of the page, each with all that it is asked about."""
        runs: list[Context] = [one.run for one in self.runs]
        return [(ATTENTION, *runs), (PAIR, *self.pairs), (COMPARISON, self)]


def table_map(comparison: Comparison, matrix: str, **looked: Any) -> Matrix:
    return tables.matrix(comparison.pairs, looked_at(comparison.pairs, **looked), matrix)


def script_map(comparison: Comparison, matrix: str, row: int, col: int, **looked: Any) -> str:
    return comparison_lines(comparison.pairs, comparison.fields(), looked_at(comparison.pairs, **looked))


@COMPARISON.question("comparison", make_table=table_map, make_script=script_map)
def ask_comparison(
    comparison: Comparison,
    attention: Attention,
    heads: dict,
    beside: Second,
    at: tuple[Letter, int, int],
    matrix: Annotated[str, Axis("matrix")] = "A",
    view: str = "map",
    how: How = "pca",
) -> None:
    """Declares what is looked at: a head [layer, head] of each run by its letter, and a cell of one run."""


# --- a file without a server ---


def carry(comparison: Comparison, of: Query) -> Iterator[Query]:
    """Queries of the view when somebody turns to another layer or opens another tab: the same of every run before the
    next of any. Of long texts: all queries about the heads that are looked at, which `of` names."""
    if comparison.pairs[0].is_long:
        looked = COMPARISON.questions["comparison"].bind(comparison, of)
        del looked["matrix"]
        yield from carry_long(comparison.pairs, looked_at(comparison.pairs, **looked))
        return
    for one in comparison.runs:
        for lane in one.run.lanes:
            for layer in range(lane.config.layers):
                yield {"trace": one.run.digest, "ask": "layer", "layer": layer, "side": lane.side}
    runs = Page((ATTENTION, *(one.run for one in comparison.runs)))
    yield from (query for query in runs.carried_queries() if query["ask"] in TABS)
