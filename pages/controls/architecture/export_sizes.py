"""Take away, for the charts below the drawing of an architecture: the way to the exact count, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from engine.analysis.sizes import Formula, Memory, Step, activations, forward, kv_cache, states
from engine.model.config import ModelConfig
from pages.controls.share.export_tables import Made, Taken
from pages.controls.share.links import address_now
from views.architecture.sizes import curve_table, formula_table, table_name

PAGE = "architecture"


def of_envelope(
    name: str, source: str, steps: Sequence[Step], drawn: object, lines: Callable[[], str], controls: Sequence[str]
) -> Made:
    """`lines` bind `steps`; `drawn` is whatever the chart depends on."""
    rows = [(step.name, step.formula) for step in steps]
    title = "from the back of an envelope"
    return Made(
        "From the back of an envelope", "architecture/sizes", name, source, f"envelope {drawn!r}",
        address_now(model=name),
        lambda _: lines(), tables={title: partial(formula_table, name, title, "parameters", rows)},
        data="the steps, with their formulas", controls=controls, page=PAGE,
    )  # fmt: skip


def of_costs(
    name: str,
    source: str,
    config: ModelConfig,
    asked: tuple[int, int, int],
    charts: Sequence[Mapping[str, Any]],
    lines: Callable[[], str],
    controls: Sequence[str],
) -> Made:
    """`asked` are batch, length and the bytes of a number."""
    tables: dict[str, Callable[[], Taken]] = {
        table_name(dict(chart)): partial(curve_table, name, dict(chart)) for chart in charts
    }
    for title, (unit, rows) in by_part(config, *asked).items():
        tables |= {title: partial(formula_table, name, title, unit, rows)} if rows else {}
    return Made(
        "Operations and memory", "architecture/sizes", name, source, f"costs {name} {config!r} {asked}",
        address_now(model=name),
        lambda _: lines(), tables=tables, data="what a chart draws, or the parts with their formulas",
        controls=controls, page=PAGE,
    )  # fmt: skip


def by_part(
    config: ModelConfig, batch: int, length: int, number: int
) -> dict[str, tuple[str, list[tuple[str, Formula]]]]:
    work = [(f"{one.block}: {one.name}", one.formula) for one in forward(config, length)]
    return {
        "operations by part": ("operations", work),
        "KV cache, by part": ("bytes", named(kv_cache(config, batch, length, number))),
        "memory of training, by part": ("bytes", named([*activations(config, batch, length, number), *states(config)])),
    }


def named(parts: Iterable[Memory]) -> list[tuple[str, Formula]]:
    return [(part.name, part.formula) for part in parts]
