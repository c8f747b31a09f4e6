"""What the page about architectures draws of a model's sizes: estimates that become exact, and costs by length."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from engine.analysis.sizes import Formula, Memory, Step, activations, forward, kv_cache, reading
from engine.analysis.sizes.shape import stacks
from engine.model.config import ModelConfig
from views.core.payload import pack
from views.core.table_files import Table

HUES = {"norm": "soft", "embedding": "residual", "patches": "residual", "pooler": "probability", "head": "probability"}
HUES |= {"cross-attention": "query", "attention": "attention", "MLP": "mlp", "keys": "key", "logits": "probability"}
SQUARE, PATCHES = ", × length", ", × patches"
Axis = tuple[str, str]  # what stands below a chart, and what one of its numbers counts
TOKENS, PIXELS = ("length, tokens", "tokens"), ("side of the picture, pixels", "pixels a side")
Sums = list[tuple[str, int]]
Chart = dict[str, Any]


def sizes(charts: Sequence[Chart], notes: Mapping[str, Any]) -> bytes:
    """The payload of assets/views/architecture/sizes.js, for charts beside each other."""
    return pack({"charts": list(charts), **notes}, {})


def waterfall(steps: Sequence[Step]) -> Chart:
    """From the estimate to the exact count: each bar begins where the one above it ends."""
    rows: list[dict[str, Any]] = []
    reached = 0
    for step in steps:
        kind = "estimate" if step is steps[0] else "more" if step.count > 0 else "less"
        ends = {"from": reached, "to": reached + step.count}
        rows.append({"name": step.name, **ends, "count": step.count, "kind": kind, "why": step.why})
        reached += step.count
    exact = {"name": "exactly", "from": 0, "to": reached, "count": reached, "kind": "exact"}
    return {"kind": "steps", "title": "", "rows": [*rows, {**exact, "why": "every tensor of the model"}]}


def cost_charts(config: ModelConfig, batch: int, length: int, number: int, lengths: Sequence[int]) -> list[Chart]:
    """Operations, cache and memory of training as the text grows to each of `lengths`, `length` being among them.

    There is no cache where the model continues no text. Of a model of pictures, lengths are the picture's side in
    pixels, and the operations are those of a whole picture.
    """
    if config.embedding.patches is not None:
        return picture_charts(config, batch, length, number, lengths)
    read = len(stacks(config))
    work = by_length(lambda n: work_kinds(config, n), lengths)
    each = [{**part, "amounts": [flops / (n * read) for n, flops in zip(lengths, part["amounts"], strict=True)]}
            for part in work]  # fmt: skip
    charts = [curves("Operations of a forward pass", "operations a token", lengths, length, each)]
    if config.generates:
        cache = by_length(lambda n: memory_kinds(kv_cache(config, batch, n, number)), lengths)
        charts.append(curves("KV cache of generation", "bytes", lengths, length, cache))
    kept = by_length(lambda n: memory_kinds(activations(config, batch, n, number)), lengths)
    return [*charts, curves("Activations kept in training", "bytes", lengths, length, kept)]


def picture_charts(config: ModelConfig, batch: int, side: int, number: int, sides: Sequence[int]) -> list[Chart]:
    def work(pixels: int) -> Sums:
        larger = reading(config, pixels)
        return work_kinds(larger, larger.context)

    def kept(pixels: int) -> Sums:
        larger = reading(config, pixels)
        return memory_kinds(activations(larger, batch, larger.context, number))

    def parts(of: Callable[[int], Sums]) -> list[dict[str, Any]]:
        return [{**part, "name": part["name"].replace(SQUARE, PATCHES)} for part in by_length(of, sides)]

    return [
        curves("Operations of a forward pass", "operations a picture", sides, side, parts(work), PIXELS),
        curves("Activations kept in training", "bytes", sides, side, parts(kept), PIXELS),
    ]


def curves(
    title: str, unit: str, lengths: Sequence[int], now: int, parts: Sequence[dict[str, Any]], axis: Axis = TOKENS
) -> Chart:
    drawn = {"unit": unit, "axis": axis[0], "each": axis[1], "lengths": list(lengths), "now": now}
    return {"kind": "curves", "title": title, **drawn, "parts": list(parts)}


def by_length(of: Callable[[int], Sums], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """Each kind with its amount at every length, 0 where it has none."""
    found = [dict(of(length)) for length in lengths]
    names = dict.fromkeys(name for sums in found for name in sums)
    return [
        {"name": name, "role": hue(name), "pale": name.endswith(SQUARE), "amounts": [at.get(name, 0) for at in found]}
        for name in names
    ]


def work_kinds(config: ModelConfig, length: int) -> Sums:
    return kinds((work.name, work.quadratic, work.flops) for work in forward(config, length))


def memory_kinds(parts: Iterable[Memory]) -> Sums:
    return kinds((part.name, part.quadratic, part.bytes) for part in parts)


def kinds(parts: Iterable[tuple[str, bool, int]]) -> Sums:
    """Added up by what stands before the colon; stacks together, what grows with the square of the length apart."""
    sums: dict[str, int] = {}
    for name, quadratic, amount in parts:
        kind = name.partition(":")[0].removeprefix("encoder ").removeprefix("decoder ")
        kind += SQUARE if quadratic else ""
        sums[kind] = sums.get(kind, 0) + amount
    return list(sums.items())


def hue(part: str) -> str:
    """The theme's role of a kind of work or memory."""
    return next((role for word, role in HUES.items() if word in part), "negative")


def curve_table(model: str, chart: Chart) -> Table:
    """A row for each length and kind of a chart."""
    rows = [
        (n, one["name"], amount)
        for one in chart["parts"]
        for n, amount in zip(chart["lengths"], one["amounts"], strict=True)
    ]
    length, part, amounts = (list(column) for column in zip(*rows, strict=True))
    columns = {"side" if chart["axis"] == PIXELS[0] else "length": length, "part": part, chart["unit"]: amounts}
    return Table(columns, {"model": model, "table": table_name(chart)})


def table_name(chart: Chart) -> str:
    return f"{chart['title']}, by {chart['axis'].partition(',')[0]}"


def formula_table(model: str, title: str, unit: str, rows: Iterable[tuple[str, Formula]]) -> Table:
    """A row for each part, with its formula."""
    named = list(rows)
    columns: dict[str, list[Any]] = {
        "part": [name for name, _ in named],
        "formula": [one.text for _, one in named],
        unit: [one.value for _, one in named],
    }
    return Table(columns, {"model": model, "table": title})
