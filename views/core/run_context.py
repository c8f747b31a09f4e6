"""What a page's questions are about: one run of one model, and the questions that every such page answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from torch import Tensor

from engine.analysis.averages import by_norm
from engine.analysis.overview_cache import glances
from engine.analysis.weights.circuit import locate_pattern
from engine.checkpoints import Checkpoint
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.core.bound_source import Imports
from views.core.codegen import Fields, hook_index, import_lines, run_lines
from views.core.decision import output_names
from views.core.lanes import Lane, digest
from views.core.matrix_files import Matrix, matrix_of
from views.core.questions import Axes, Query, Registry

RUN = Registry()
T = TypeVar("T")
Moved = Literal["length", "share"]  # what a map has in place of weights


@dataclass(frozen=True)
class HeadOfRun:
    """Name of one head: of which stack ("" where there is one), which of its attentions, layer and head from 0."""

    side: str
    focus: str  # "attn" or "cross_attn"
    layer: int
    head: int

    @property
    def hook(self) -> str:
        return f"{self.side and self.side + '.'}blocks.{self.layer}.{self.focus}.pattern"

    @property
    def place(self) -> tuple[int, str, bool]:
        """Layer, stack and whether it is cross-attention: a head's attention as the engine's functions take it."""
        return self.layer, self.side, self.focus == "cross_attn"


@dataclass(frozen=True)
class Run(ABC):
    """Run of a model, held whole or in pieces.

    `before` is the run without the edits, where there is one; `fields` what stands in the page's fields.
    """

    model_name: str
    checkpoint: Checkpoint
    trace: Trace
    lanes: Sequence[Lane]
    before: Trace | None = None
    fields: Callable[[], Fields] | None = None

    whole: ClassVar[bool] = True  # False of a run in pieces, whose trace holds no pattern
    attributes = {
        "trace": "trace",
        "vectors": "trace",
        "model": "checkpoint.model",
        "checkpoint": "checkpoint",
        "whole": "True",
    }
    no_script = ""

    @abstractmethod
    def reduce(self, wanted: Mapping[str, Callable[[Tensor], Any]]) -> dict[str, Any]:
        """Results of functions of values, by hook; a function must copy what it returns of a value."""

    def cached(self, what: Hashable, make: Callable[[], T]) -> T:
        """Value that was made of this run once."""
        return glances.cached(self, what, make)

    @abstractmethod
    def vectors(self, layer: int, side: str, focus: str) -> Trace:
        """A run that holds the queries and keys of an attention."""

    @abstractmethod
    def logits_at(self, at: slice) -> Trace:
        """A run that holds the logits of these positions."""

    @abstractmethod
    def pattern(self, head: HeadOfRun) -> Tensor:
        """Weights of one head, pos key."""

    @abstractmethod
    def matrix(self, hook: str, head: int | None, moved: Moved | None) -> Matrix:
        """Values of a hook, axes named; `moved` gives, in place of a head's weights, the length of what they move."""

    def matrix_script(self, hook: str, head: int | None, moved: Moved | None, row: int, col: int) -> str:
        """A script that binds `values` to the matrix and prints one element; of a long text it keeps nothing else."""
        index, axes = self.index_of(hook, head)
        imports: Imports = {}
        only: tuple[str, ...] = (hook,)
        if moved is not None and head is not None:
            layer, side, crosses = locate_pattern(self.trace, hook)
            only = (hook, hook.replace("pattern", "v"))
            imports["engine.analysis.averages"] = {"by_norm"}
            more = f"{', side=' + repr(side) if side else ''}{', crosses=True' if crosses else ''}"
            more += ", share=True" if moved == "share" else ""
            value = f"by_norm(checkpoint.model, trace, {layer}{more})[{head}]"
        else:
            flat = ".flatten(-2)" if head is None and "head" in axes else ""
            value = f'trace["{hook}"]{f"[{index}]" if index else ""}{flat}'
        element = f"values[{row}, {col}]" if len(axes) > 1 else f"values[{col}]"
        lines = [f"values = {value}  # {' '.join(axes)}", f"print({element}.item())"]
        return self.script(imports, lines, None if self.whole else only)

    def index_of(self, hook: str, head: int | None) -> tuple[str, Axes]:
        """Index into a hook's value, and the axes that are left, as `hook_index` gives them."""
        return hook_index(self.trace, hook, head)

    @property
    def digest(self) -> str:
        return digest(self.model_name, self.trace)

    @property
    def key(self) -> Hashable:
        """Key by which this run is cached."""
        return id(self.trace.hooks), self.digest

    @property
    def model(self) -> Transformer:
        return self.checkpoint.model

    def lane(self, side: str) -> Lane:
        return next(lane for lane in self.lanes if lane.side == side)

    def lanes_of(self, query: Query) -> tuple[Lane, Lane]:
        """The stack of the queries and the stack of the keys."""
        own = self.lane(str(query.get("side", self.lanes[-1].side)))
        return own, self.lanes[0] if query.get("focus") == "cross_attn" else own

    def size(self, head: HeadOfRun) -> tuple[int, int]:
        """Rows and keys of a head's pattern."""
        own, source = self.lanes_of({"side": head.side, "focus": head.focus})
        return len(own.pieces), len(source.pieces)

    def encoding(self, side: str) -> Encoding | None:
        """Pieces at the positions of a stack, as far as it reads text."""
        lane = self.lane(side)
        return Encoding.from_ids(lane.ids, list(lane.pieces)) if lane.ids else None

    def choices(self, axis: str, query: Query) -> range | Collection[str]:
        sides = [lane.side for lane in self.lanes]
        if axis == "side" or query.get("side", sides[-1]) not in sides:
            return sides
        if axis == "focus":
            return ("attn", "cross_attn") if self.lane(str(query.get("side"))).config.encoder else ("attn",)
        own, source = self.lanes_of(query)
        sizes = {
            "layer": own.config.layers,
            "head": own.config.attention.heads,
            "neuron": own.config.mlp.d_mlp if own.config.mlp else 1,
            "pos": len(own.pieces),
            "key": len(source.pieces),
            "row": len(self.rows),
            "vocab": len(self.lanes[-1].pieces) if self.answers else self.model.config.outputs,
        }
        return range(sizes[axis])

    def labels(self, axis: str, query: Query) -> Sequence[str] | None:
        own, source = self.lanes_of(query)
        return {"pos": own.pieces, "query": own.pieces, "key": source.pieces, "row": self.rows}.get(axis)

    @property
    def answers(self) -> bool:
        """Tells whether the head points to where an answer starts and ends."""
        return self.model.config.head.kind == "span"

    @property
    def rows(self) -> Sequence[str]:
        """Names of the rows of the head's logits: what each is about."""
        if self.answers:
            return ("start", "end")
        once = self.model.config.head.kind == "sequence"
        return ("picture" if self.trace.pictures else "whole text",) if once else self.lanes[-1].pieces

    def likeliest(self, row: int, count: int) -> list[int]:
        """The candidates with the greatest logits at a row, the first first."""
        logits = self.trace["logits"][0]
        logits = logits.mT if self.answers else logits
        return (logits if logits.dim() == 1 else logits[row]).topk(count).indices.tolist()

    @property
    def fixed(self) -> Mapping[str, Any]:
        """Arguments of questions that this run leaves no choice of."""
        return {}

    def first_candidate(self, name: str, row: int) -> int | None:
        """The one that a control for a candidate stands at first; None: at none."""
        return self.likeliest(row, 1)[0] if name == "candidate" else None

    def name_candidates(self, ids: Sequence[int]) -> list[str]:
        """Names of some of what the head chooses among: tokens, classes, colours or positions."""
        if self.answers:
            return [f"{id + 1} {self.lanes[-1].pieces[id]}" for id in ids]
        names = output_names(self.checkpoint) or ()
        return [names[id] if id < len(names) else f"#{id}" for id in ids]

    @property
    def first_row(self) -> int:
        """The row to read first: a masked token, else the last."""
        tokenizer, ids = self.checkpoint.tokenizer, list(self.lanes[-1].ids)
        mask = None if tokenizer is None else tokenizer.mask_id
        masked = self.model.config.head.kind == "masked" and mask in ids
        return ids.index(mask) if masked and mask is not None else len(self.rows) - 1

    def script(self, imports: Imports, lines: Sequence[str], only: tuple[str, ...] | None = None) -> str:
        """Lines behind those that bind `trace`, of all hooks or of some `only`."""
        assert self.fields is not None
        own, opening = run_lines(self.model_name, self.checkpoint, self.fields(), self.trace, only=only)
        for module, names in imports.items():
            own[module] = own.get(module, set()) | names
        return "\n".join([*import_lines(own), "", *opening, "", *lines]) + "\n"


@dataclass(frozen=True)
class RunContext(Run):
    """A run whose trace holds every value."""

    def reduce(self, wanted: Mapping[str, Callable[[Tensor], Any]]) -> dict[str, Any]:
        return {hook: function(self.trace[hook]) for hook, function in wanted.items()}

    def vectors(self, layer: int, side: str, focus: str) -> Trace:
        return self.trace

    def logits_at(self, at: slice) -> Trace:
        return self.trace

    def pattern(self, head: HeadOfRun) -> Tensor:
        return self.trace[head.hook][0, head.head]

    def matrix(self, hook: str, head: int | None, moved: Moved | None) -> Matrix:
        found = matrix_of(self.trace, self.lanes, self.model_name, hook, head)
        if moved is None or head is None:
            return found
        values = by_norm(self.model, self.trace, *locate_pattern(self.trace, hook), moved == "share")[head]
        values = values.detach().cpu().float()
        return Matrix(moved_name(hook, moved), found.model, values.numpy(), found.dims, found.tokens)


def moved_name(hook: str, moved: Moved | None) -> str:
    """Name of a matrix of weights, or of what they move."""
    return hook if moved is None else f"{hook} times v W_O.{moved}"


def matrix_table(run: Run, hook: str, head: int | None, moved: Moved | None) -> Matrix:
    return run.matrix(hook, head, moved)


def matrix_script(run: Run, hook: str, head: int | None, moved: Moved | None, row: int, col: int) -> str:
    return run.matrix_script(hook, head, moved, row, col)


@RUN.question("matrix", make_table=matrix_table, make_script=matrix_script)
def ask_matrix(run: Run, hook: str, head: int | None = None, moved: Moved | None = None) -> None:
    """Declares the matrix that is shown: to download and as Python; the browser has its numbers already."""
