"""What the page Linear probes asks of a model: what can be read off its stream, and whether it uses that."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from engine.analysis.linear_probes import (
    OF_FILE,
    LabelledCorpus,
    Probes,
    Removal,
    find_probes,
    measure_removal,
    stream_hooks,
)
from views.core.bound_source import Imports
from views.core.questions import Layer, Query, Registry
from views.core.run_context import RunContext
from views.core.table_files import Table
from views.why.fires import CorpusContext

PROBES = Registry()


@dataclass(frozen=True)
class ProbeContext(CorpusContext):
    """A run, and the label and texts of the probes that it is read with."""

    label: str = ""
    label_column: str = ""

    @property
    def attributes(self) -> Mapping[str, str]:  # type: ignore[override]
        return {**super().attributes, "label": repr(self.label)}

    @property
    def digest(self) -> str:
        return f"{super().digest} {self.label} {self.corpus.digest if self.corpus else ''}"

    def choices(self, axis: str, query: Query) -> range | Collection[str]:
        """One layer more than there are blocks: the stream behind the last."""
        return range(len(stream_hooks(self.model))) if axis == "layer" else super().choices(axis, query)

    def labels(self, axis: str, query: Query) -> Sequence[str] | None:
        return self.streams if axis == "layer" else super().labels(axis, query)

    @property
    def streams(self) -> list[str]:
        """Where each stream stands, in words."""
        count = len(stream_hooks(self.model)) - 1
        return [*(f"in front of block {layer + 1}" for layer in range(count)), f"behind block {count}"]

    def script(self, imports: Imports, lines: Sequence[str], only: tuple[str, ...] | None = None) -> str:
        if not isinstance(self.corpus, LabelledCorpus):
            return super().script(imports, lines, only)
        module = "engine.analysis.linear_probes"
        imports = {**imports, module: {"read_labelled", *imports.get(module, ())}}
        opening = f"corpus = read_labelled({self.corpus.name!r}, {self.column!r}, {self.label_column!r})"
        return RunContext.script(self, imports, [opening, *lines], only)

    @property
    def probes(self) -> Probes:
        return find_probes(self.checkpoint, self.label, self.corpus)

    def about(self, table: str) -> dict[str, Any]:
        return {"model": self.model_name, "table": table, "label": "labels" if self.label == OF_FILE else self.label}


@PROBES.question("probe", returns={})
def ask_probe(run: ProbeContext, layer: Layer) -> None:
    """Declares what the charts share."""


def layers_table(run: ProbeContext) -> Table:
    """A line for each layer: the shares of held-out positions that the probe and its control have right."""
    found, count = run.probes, len(run.streams)
    columns: dict[str, Any] = {
        "layer": [*range(count)], "stream": run.streams, "accuracy": found.accuracy.tolist(),
        "control": found.control.tolist(), "majority": [found.majority] * count,
        "selectivity": found.selectivity.tolist(),
    }  # fmt: skip
    return Table(columns, run.about("linear probes by layer"))


@PROBES.question("probe_layers", returns={"accuracy": ("layer",), "control": ("layer",)}, make_table=layers_table)
def ask_layers(run: ProbeContext) -> Probes:
    """Accuracy of the probe of every layer, and of its control."""
    return find_probes(run.checkpoint, run.label, run.corpus)


@PROBES.question("probe_selectivity", returns={"selectivity": ("layer",)}, make_table=layers_table)
def ask_selectivity(run: ProbeContext) -> Tensor:
    """Accuracy of the probe of every layer, less that of its control."""
    return find_probes(run.checkpoint, run.label, run.corpus).selectivity


def removal_table(run: ProbeContext, layer: int) -> Table:
    """A line for each direction that is taken out: the probe's, its control's, and random ones."""
    found = measure_removal(run.checkpoint, run.label, layer, run.corpus)
    columns: dict[str, Any] = {
        "direction": list(found.names), "kl": found.kl.tolist(), "loss": found.loss.tolist(),
        "change": (found.loss - found.plain).tolist(),
    }  # fmt: skip
    return Table(columns, run.about("without a direction") | {"layer": layer})


@PROBES.question(
    "probe_removal", returns={"kl": ("direction",), "loss": ("direction",)}, make_table=removal_table
)  # fmt: skip
def ask_removal(run: ProbeContext, layer: Layer) -> Removal:
    """What the model does on held-out texts without the direction of a probe."""
    return measure_removal(run.checkpoint, run.label, layer, run.corpus)


def text_table(run: ProbeContext, layer: int) -> Table:
    """A line for each token of the page's text and each class, of two classes the second alone."""
    found, pieces = run.probes, run.lanes[0].pieces
    p, classes = found.probabilities(run.trace, layer), [*enumerate(found.classes)]
    shown = classes[1:] if len(classes) == 2 else classes
    lines = [(pos, piece, name, float(p[pos, at])) for at, name in shown for pos, piece in enumerate(pieces)]
    columns = dict(zip(("pos", "token", "class", "p"), map(list, zip(*lines, strict=True)), strict=True))
    return Table(columns, run.about("probe of a text") | {"layer": layer})


@PROBES.question("probe_text", returns={"p": ("pos", "class")}, make_table=text_table)
def ask_text(run: ProbeContext, layer: Layer) -> Tensor:
    """Probability of each class that a probe reads at each token of the text."""
    return find_probes(run.checkpoint, run.label, run.corpus).probabilities(run.trace, layer)
