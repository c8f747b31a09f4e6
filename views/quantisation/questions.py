"""What the page Quantisation asks: what the prediction is with each matrix exchanged by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from engine.analysis.interventions.metric import Metric, read_row
from engine.analysis.quantisation import (
    Exchange,
    MadeChanges,
    changes_by_scheme,
    changes_to,
    exchange,
    exchange_each,
    relative_error,
)
from engine.checkpoints import Checkpoint
from views.core.bound_source import Imports
from views.core.questions import Registry, Row, Vocab
from views.core.run_context import RunContext
from views.core.table_files import Table

QUANTISATION = Registry()


@dataclass(frozen=True, kw_only=True)
class QuantisationContext(RunContext):
    """A run, and what its matrices are exchanged for: what a `scheme` leaves of them, or those of the model `other`,
    which is called `named`."""

    scheme: str
    other: Checkpoint | None = None
    named: str = ""

    @property
    def attributes(self) -> Mapping[str, str]:  # type: ignore[override]
        return {**RunContext.attributes, "changes": "changes"}

    @property
    def digest(self) -> str:
        return f"{super().digest} {self.named or self.scheme}"

    @cached_property
    def changes(self) -> MadeChanges:
        if self.other is not None:
            return changes_to(self.model, self.other.model)
        return changes_by_scheme(self.model, self.scheme)

    def script(self, imports: Imports, lines: Sequence[str], only: tuple[str, ...] | None = None) -> str:
        made = f"changes_by_scheme(checkpoint.model, {self.scheme!r})"
        if self.other is not None:
            made = f"changes_to(checkpoint.model, load({self.named!r}).model)"
            imports = {**imports, "engine": {"load", *imports.get("engine", ())}}
        module = "engine.analysis.quantisation"
        imports = {**imports, module: {made.partition("(")[0], *imports.get(module, ())}}
        return super().script(imports, [f"changes = {made}", *lines], only)


Asked = tuple[int, int, int | None]  # row, candidate, against


def found_exchange(run: QuantisationContext, asked: Asked, names: tuple[str, ...]) -> Exchange:
    row, candidate, against = asked
    return run.cached(
        ("exchange", asked, names),
        lambda: exchange(run.model, run.trace, run.changes.only(names), Metric("logit", candidate, against), row),
    )


def found_error(run: QuantisationContext, name: str) -> float:
    return run.cached(("error", name), lambda: relative_error(run.model, name, run.changes[name]))


def exchange_steps(
    run: QuantisationContext, row: int, candidate: int, against: int | None = None
) -> list[Callable[[], Exchange]]:
    """A step a matrix, and the last for all."""
    asked = row, candidate, against
    return [partial(found_exchange, run, asked, names) for names in (*((one,) for one in run.changes), (*run.changes,))]


def plain_metric(run: QuantisationContext, asked: Asked) -> float:
    row, candidate, against = asked
    return float(Metric("logit", candidate, against)(read_row(run.model, run.trace, row))[0])


def place_of(name: str) -> tuple[str, str]:
    """The block of a linear map, as it is counted, and its part in it: "decoder block 2", "attn.q"."""
    before, dot, rest = name.partition("blocks.")
    number, _, part = rest.partition(".")
    return (f"{before.replace('.', ' ')}block {int(number) + 1}", part) if dot else ("outside", name)


def exchanges_table(run: QuantisationContext, row: int, candidate: int, against: int | None = None) -> Table:
    """A line for each matrix: the share of it that the change is, and what that does to the metric and the
    prediction."""
    asked = row, candidate, against
    plain = plain_metric(run, asked)
    found = [found_exchange(run, asked, (name,)) for name in run.changes]
    places = [place_of(name) for name in run.changes]
    columns: dict[str, Any] = {
        "matrix": list(run.changes),
        "block": [block for block, _ in places],
        "part": [part for _, part in places],
        "error": [found_error(run, name) for name in run.changes],
        "effect": [one.measured - plain for one in found],
        "kl": [one.kl for one in found],
    }
    return Table(columns, {"model": run.model_name, "table": f"matrices exchanged for {run.named or run.scheme}"})


@QUANTISATION.question(
    "exchanged_matrices", returns={"effect": ("matrix",)}, make_table=exchanges_table, steps=exchange_steps
)
def ask_exchanges(
    run: QuantisationContext, row: Row, candidate: Vocab, against: Vocab | None = None
) -> dict[str, Exchange]:
    """What the prediction is with each matrix exchanged by itself."""
    return exchange_each(run.model, run.trace, run.changes, Metric("logit", candidate, against), row)


@QUANTISATION.question(
    "matrix_errors", returns={"error": ("matrix",)}, make_table=exchanges_table, steps=exchange_steps
)
def ask_errors(run: QuantisationContext, row: Row, candidate: Vocab, against: Vocab | None = None) -> dict[str, float]:
    """How large the change of each matrix is beside the matrix."""
    return {name: found_error(run, name) for name in run.changes}
