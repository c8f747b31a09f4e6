"""The sizes of a model as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.analysis.sizes.envelope import envelope
from engine.analysis.sizes.formula import Formula
from engine.analysis.sizes.memory import activations, kv_cache, states
from engine.analysis.sizes.parameters import parameters
from engine.analysis.sizes.work import BACKWARD, forward, per_token
from engine.model.config import ModelConfig
from engine.plurals import count_words

Row = tuple[str, Formula]


def report(config: ModelConfig, batch: int, length: int, target: int | None = None, number: int = 2) -> Iterator[str]:
    """Every part with its formula, its formula in numbers, and what comes out; then what the symbols mean.

    Raises ValueError for a length that the model cannot read.
    """
    check_sizes(config, batch, length, target, number)
    rows = [(part_name(part.block, part.name), part.formula) for part in parameters(config)]
    shown = list(rows)
    yield from table("parameters", rows)
    steps = [(step.name, step.formula) for step in envelope(config)]
    yield from table("from the back of an envelope", steps)
    work = [(part_name(w.block, w.name), w.formula) for w in forward(config, length, target)]
    yield from table(f"operations, forward, one text of {count_words(length, 'token')}", work)
    yield f"  a token {per_token(config, length, target):,.0f}, with the backward pass {1 + BACKWARD} times as many"
    if cache := [(m.name, m.formula) for m in kv_cache(config, batch, length, number)]:
        yield from table("KV cache, bytes", cache)
    kept = [(m.name, m.formula) for m in activations(config, batch, length, number, target)]
    yield from table("kept for the backward pass, bytes", kept)
    adam = [(m.name, m.formula) for m in states(config)]
    yield from table("weights, gradients and Adam, bytes", adam)
    shown += work + cache + kept + adam
    yield ""
    meanings = {symbol.name: symbol for _, formula in shown for symbol in formula.symbols()}
    yield from (f"  {name:6}{symbol.definition} = {symbol.value:,}" for name, symbol in meanings.items())


def part_name(block: str, name: str) -> str:
    stack = block.rpartition(".")[0]
    return f"{stack} {name}" if stack else name


def table(title: str, rows: Iterable[Row]) -> Iterator[str]:
    rows = list(rows)
    cells = [(name, formula.text, formula.text_numbers, f"{formula.value:,}") for name, formula in rows]
    sum_of = f"{sum(formula.value for _, formula in rows):,}"
    widths = [max(len(cell[i]) for cell in [*cells, ("all", "", "", sum_of)]) for i in range(4)]
    yield ""
    yield title
    for a, b, c, d in [*cells, ("all", "", "", sum_of)]:
        yield f"  {a:{widths[0]}}  {b:{widths[1]}}  {c:{widths[2]}}  {d:>{widths[3]}}"


def check_sizes(config: ModelConfig, batch: int, length: int, target: int | None, number: int) -> None:
    for name, value in {"batch": batch, "length": length, "target": 1 if target is None else target}.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    if number not in (1, 2, 4, 8):
        raise ValueError(f"a number has 1, 2, 4 or 8 bytes, got {number}.")
    fixed = config.embedding.patches is not None
    if length > config.context or (fixed and length != config.context):
        most = "exactly" if fixed else "at most"
        raise ValueError(f"this model reads {most} {config.context:,} tokens, got {length:,}.")
    if target is not None and target > config.context:
        raise ValueError(f"this model writes at most {config.context:,} tokens, got {target:,}.")
