"""A question is declared once: its check, payload, table, Python and types follow from the declaration."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from views.core.matrix_files import Matrix
from views.core.payload import unpack
from views.core.questions import Answer, Head, Layer, Page, Registry, check, javascript_types
from views.core.table_files import Table

OFFSET = 2
REGISTRY = Registry()


@dataclass
class Numbers:
    """layer head, as a context."""

    values: Tensor = field(default_factory=lambda: torch.arange(12.0).reshape(3, 4))
    digest: str = "numbers"
    model_name: str = "none"
    attributes = {"values": "numbers"}
    no_script = ""

    def choices(self, axis: str, query: Any) -> range:
        return range({"layer": 3, "head": 4}[axis])

    def labels(self, axis: str, query: Any) -> Sequence[str] | None:
        return ["a", "b", "c", "d"] if axis == "key" else None

    def script(self, imports: Any, lines: Sequence[str]) -> str:
        loads = [f"import {module}" for module, names in imports.items() if not names]
        loads += [f"from {module} import {', '.join(names)}" for module, names in imports.items() if names]
        return "\n".join([*loads, *lines])


@REGISTRY.question("row", returns={"values": ("key",)})
def ask_row(numbers: Numbers, layer: Layer, scale: float = 1.0, offset: bool = False) -> Tensor:
    """A row."""
    if offset:
        return numbers.values[layer] * scale + OFFSET
    return numbers.values[layer] * scale


@REGISTRY.question("both", returns={"one": ("query", "key"), "other": ("key",)})
def ask_both(numbers: Numbers, layer: Layer, head: Head | None = None) -> dict[str, Tensor]:
    last = None if head is None else head + 1
    return {"one": numbers.values[layer:, :last], "other": torch.abs(numbers.values[layer, :last])}


@REGISTRY.question("pairs", returns={"sum": ()})
def ask_pairs(numbers: Numbers, pairs: list[tuple[Layer, Head]], how: Literal["add", "count"]) -> Answer:
    found = sum(numbers.values[pair] for pair in pairs) if how == "add" else len(pairs)
    return Answer({"sum": np.float32(found)}, {"how": how})


DONE: list[str] = []


@REGISTRY.command("remember")
def remember(numbers: Numbers, word: str) -> Answer:
    DONE.append(word)
    return Answer(header={"count": len(DONE)})


PAGE = Page((REGISTRY, Numbers()))


def asked(ask: str, **query: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    header, arrays = unpack(PAGE.answer({"ask": ask, "trace": "numbers", **query}))
    return header, {name: one.data for name, one in arrays.items()}


def test_an_answer_has_the_declared_arrays_with_their_axes() -> None:
    _, arrays = unpack(PAGE.answer({"ask": "row", "trace": "numbers", "layer": 1}))
    assert arrays["values"].dims == ("key",) and arrays["values"].data.tolist() == [4, 5, 6, 7]
    assert asked("pairs", pairs=[[0, 1], [2, 3]], how="add")[1]["sum"] == 12


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"ask": "row", "layer": 3}, "layer must be in 0..2, got 3."),
        ({"ask": "row", "layer": True}, "layer must be in 0..2, got True."),
        ({"ask": "row", "layer": "0"}, "layer must be in 0..2, got '0'."),
        ({"ask": "row", "layer": 0, "scale": "x"}, "scale must be a number, got 'x'."),
        ({"ask": "row", "layer": 0, "scale": float("nan")}, "scale must be a number, got nan."),
        ({"ask": "row", "layer": 0, "offset": 1}, "offset must be true or false, got 1."),
        ({"ask": "row"}, "Unknown request: row needs 'layer'. Reload and try again."),
        ({"ask": "row", "layer": 0, "more": 1}, "Unknown request: row takes no 'more'. Reload and try again."),
        ({"ask": "pairs", "pairs": [[0, 4]], "how": "add"}, "pairs must be in 0..3, got 4."),
        ({"ask": "pairs", "pairs": [[0]], "how": "add"}, "pairs must be a list, got [0]."),
        ({"ask": "pairs", "pairs": [], "how": "drop"}, "how must be one of add, count, got 'drop'."),
        ({"ask": "nothing"}, "Unknown request from the page. Reload and try again."),
        ({"ask": ["row"]}, "Unknown request from the page. Reload and try again."),
        ({"ask": "row", "layer": 0, "trace": "old"}, "The text, the model or the edits have changed since; ask again."),
    ],
)
def test_what_a_browser_may_not_send_is_refused_with_one_sentence(query: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as refused:
        PAGE.answer({"trace": "numbers", **query})
    assert str(refused.value) == sentence


def test_the_table_of_one_array_is_a_matrix_and_of_several_has_a_column_each() -> None:
    one = PAGE.table({"ask": "row", "trace": "numbers", "layer": 2})
    assert isinstance(one, Matrix) and one.dims == ("key",) and one.tokens == {"key": ["a", "b", "c", "d"]}
    several = PAGE.table({"ask": "both", "trace": "numbers", "layer": 1, "head": 1})
    assert isinstance(several, Table)
    columns = {name: np.asarray(column).tolist() for name, column in several.columns.items()}
    assert columns == {
        "query": [0, 0, 1, 1],
        "key": [0, 1, 0, 1],
        "key_token": ["a", "b", "a", "b"],
        "one": [4, 5, 8, 9],
        "other": [4, 5, 4, 5],
    }


@pytest.mark.parametrize(
    "query",
    [
        {"ask": "row", "layer": 1},
        {"ask": "row", "layer": 1, "scale": 0.5, "offset": True},
        {"ask": "both", "layer": 1},
        {"ask": "both", "layer": 0, "head": 2},
    ],
)
def test_the_python_is_the_body_with_its_arguments_bound(query: dict[str, Any]) -> None:
    query = {"trace": "numbers", **query}
    script = PAGE.python(query)
    bound: dict[str, Any] = {"numbers": Numbers().values}
    exec(script, bound)
    _, arrays = unpack(PAGE.answer(query))
    np.testing.assert_array_equal(bound["values"], next(iter(arrays.values())).data)
    assert "offset" not in script and "head is None" not in script  # decided by the arguments


def test_a_command_is_never_stale_and_happens_once_for_each_time_it_is_said() -> None:
    before = len(DONE)
    header, _ = unpack(PAGE.answer({"ask": "remember", "word": "x", "once": "1"}))
    assert header["count"] == before + 1 == len(DONE)


def test_the_types_for_javascript_say_what_may_be_sent() -> None:
    text = javascript_types(REGISTRY)
    assert "row: { layer: number; scale?: number; offset?: boolean };" in text
    assert 'pairs: { pairs: Array<[number, number]>; how: "add" | "count" };' in text
    assert "both: { arrays: { one: NamedArray; other: NamedArray }; [entry: string]: any };" in text


def test_a_name_is_declared_once() -> None:
    with pytest.raises(ValueError, match="one question named 'row'"):
        REGISTRY.question("row")(ask_row)
    with pytest.raises(ValueError, match="on a page"):
        Page((REGISTRY, Numbers()), (REGISTRY, Numbers()))


def test_a_registry_may_be_about_several_contexts_and_a_query_names_the_one_that_it_asks() -> None:
    page = Page((REGISTRY, Numbers(), Numbers(torch.ones(3, 4), "others")))
    for name, expected in (("numbers", [0, 1, 2, 3]), ("others", [1, 1, 1, 1])):
        assert unpack(page.answer({"ask": "row", "trace": name, "layer": 0}))[1]["values"].data.tolist() == expected
    with pytest.raises(ValueError, match="changed since"):
        page.answer({"ask": "row", "trace": "neither", "layer": 0})
    carrying = Registry()
    carrying.question("row", carry=lambda _: ({"layer": layer} for layer in (2, 0)))(ask_row)
    carried = Page((carrying, Numbers(), Numbers(digest="others"))).carried_queries()
    assert [(one["trace"], one["layer"]) for one in carried] == [
        ("numbers", 2),
        ("others", 2),
        ("numbers", 0),
        ("others", 0),
    ]


def test_a_list_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="must be a list"):
        check(list[int], [0] * 100_001, "ids", Numbers(), {})


@dataclass
class Pieces(Numbers):
    """The same, a layer at a time."""

    digest: str = "pieces"
    no_script = "ask for one"


def test_a_name_is_answered_as_the_kind_of_context_says_and_one_declaration_serves_all_that_fit() -> None:
    registry = Registry()

    @registry.question("mean", returns={"mean": ("head",)})
    def ask_mean(numbers: Numbers, layer: Layer) -> Tensor:
        return numbers.values[layer].mean()[None]

    @registry.question("sum", returns={"sum": ("head",)})
    def ask_sum(numbers: Numbers) -> Tensor:
        return numbers.values.sum(0)

    @registry.question("sum", returns={"line": ("layer",)})
    def ask_sum_in_pieces(pieces: Pieces, head: Head) -> Tensor:
        return pieces.values[:, head]

    page = Page((registry, Numbers(), Pieces()))
    found = [unpack(page.answer({"ask": "mean", "trace": one, "layer": 1}))[1] for one in ("numbers", "pieces")]
    assert [one["mean"].data.tolist() for one in found] == [[5.5], [5.5]]
    assert unpack(page.answer({"ask": "sum", "trace": "numbers"}))[1]["sum"].data.tolist() == [12, 15, 18, 21]
    assert unpack(page.answer({"ask": "sum", "trace": "pieces", "head": 1}))[1]["line"].data.tolist() == [1, 5, 9]
    assert "sum: {} | { head: number };" in javascript_types(registry)
    with pytest.raises(ValueError, match="ask for one"):
        page.python({"ask": "mean", "trace": "pieces", "layer": 1})
    with pytest.raises(ValueError, match="Unknown request"):
        Page((Registry(), Pieces())).answer({"ask": "sum", "trace": "pieces"})
    with pytest.raises(ValueError, match="got two"):
        registry.question("mean")(ask_mean)


@dataclass
class Caching(Numbers):
    """The same, which remembers what was made."""

    attributes = {"values": "numbers", "part": "numbers"}

    def cached(self, what: object, make: Any) -> Any:
        return make()

    def part(self, layer: int) -> Tensor:
        return self.values


def test_in_the_lines_of_python_what_is_cached_is_made_and_what_a_context_brings_is_there() -> None:
    registry = Registry()

    @registry.question("top", returns={"values": ("head",)})
    def ask_top(caching: Caching, layer: Layer) -> Tensor:
        found = caching.cached(("top", layer), lambda: torch.abs(caching.part(layer)[layer]))
        return found * OFFSET

    lines = registry.questions["top"].python(Caching(), {"layer": 2})
    assert "found = torch.abs(numbers[2])" in lines and "values = found * 2" in lines
