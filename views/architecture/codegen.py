"""The lines of Python that count what a model has and costs, by its config alone, as it is or changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.analysis.sizes import parameters
from engine.analysis.switches import SWITCHES, sizes
from engine.model.config import ModelConfig
from engine.model.presets import NAMED
from views.core.codegen import import_lines, source_of
from views.core.table_files import Table

SIZES, CHANGES = "engine.analysis.sizes", "engine.analysis.switches"


def size_lines(
    name: str, config: ModelConfig, chosen: Mapping[str, str], numbers: Mapping[str, int], against: str | None = None
) -> str:
    """Writes the lines that bind `config` and its `total`; `config` given here is as published, `chosen` and `numbers`
    what became of its switches and sizes. They print the count of every part."""
    imports = {SIZES: {"count", "parameters"}}
    lines = changed_lines(name, config, chosen, numbers, imports)
    lines += [
        "for part in parameters(config):",
        '    print(f"{part.block}: {part.name}: {part.formula.text} = {part.count:,}")',
        "total = count(config)",
        "print(total)",
    ]
    if against is not None:
        lines += [*config_lines("other", against, imports), "print(count(other))"]
    return "\n".join([*import_lines(imports), "", *lines]) + "\n"


def envelope_lines(name: str, config: ModelConfig, chosen: Mapping[str, str], numbers: Mapping[str, int]) -> str:
    """Writes the lines that bind `config` and its `steps` from the estimate to the count, and print each."""
    imports = {SIZES: {"envelope"}}
    lines = changed_lines(name, config, chosen, numbers, imports)
    lines += [
        "steps = envelope(config)",
        "for step in steps:",
        '    print(f"{step.name}: {step.formula.text} = {step.count:,}")',
    ]
    return "\n".join([*import_lines(imports), "", *lines]) + "\n"


def cost_lines(
    name: str,
    config: ModelConfig,
    chosen: Mapping[str, str],
    numbers: Mapping[str, int],
    asked: tuple[int, int, int],
) -> str:
    """Writes the lines that bind `work`, `cache`, `kept` and `adam`; `asked` are batch, length and the bytes of a
    number."""
    imports = {SIZES: {"activations", "forward", "kv_cache", "states"}}
    batch, length, number = asked
    lines = [
        *changed_lines(name, config, chosen, numbers, imports),
        f"work = forward(config, {length})",
        f"cache = kv_cache(config, {batch}, {length}, {number})",
        f"kept = activations(config, {batch}, {length}, {number})",
        "adam = states(config)",
        "for part in work:",
        '    print(f"{part.block}: {part.name}: {part.formula.text} = {part.flops:,} operations")',
        "for part in [*cache, *kept, *adam]:",
        '    print(f"{part.name}: {part.formula.text} = {part.bytes:,} bytes")',
    ]
    return "\n".join([*import_lines(imports), "", *lines]) + "\n"


def changed_lines(
    name: str,
    config: ModelConfig,
    chosen: Mapping[str, str],
    numbers: Mapping[str, int],
    imports: dict[str, set[str]],
) -> list[str]:
    """Writes the lines that bind `config`; what they need is added to `imports`."""
    lines = config_lines("config", name, imports)
    thrown = {one.name: chosen[one.name] for one in SWITCHES if one.name in chosen}
    changed = {key: value for key, value in thrown.items() if value != switch_of(config, key)}
    if changed:
        imports.setdefault(CHANGES, set()).add("thrown")
        lines.append(f"config = thrown(config, {changed!r})")
    if changed or dict(numbers) != sizes(config):
        imports.setdefault(CHANGES, set()).add("with_sizes")
        given = ", ".join(f"{key}={value}" for key, value in numbers.items())
        lines.append(f"config = with_sizes(config, {given})")
    return lines


def switch_of(config: ModelConfig, name: str) -> str:
    return next(one.get(config) for one in SWITCHES if one.name == name)


def config_lines(bound: str, name: str, imports: dict[str, set[str]]) -> list[str]:
    if name in NAMED:
        imports["engine.model.presets"] = {"NAMED"}
        return [f'{bound} = NAMED["{name}"].config']
    imports["engine"] = {"load"}
    source, note = source_of(name)
    return [f"{bound} = load({source}).config{note}"]


def part_table(name: str, config: ModelConfig) -> Table:
    """A row for each part of the parameters."""
    parts = parameters(config)
    columns: dict[str, list[Any]] = {
        "block": [part.block for part in parts],
        "part": [part.name for part in parts],
        "tensors": [part.tensors for part in parts],
        "formula": [part.formula.text for part in parts],
        "parameters": [part.count for part in parts],
    }
    return Table(columns, {"model": name, "table": "parameters by part"})
