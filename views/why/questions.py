"""What the pages Why this token and Why this head ask of a run: exact sums over what wrote the stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, LiteralString

import torch
from torch import Tensor

from engine.analysis.attribution import Attribution, ablate, attribute, read_hooks, split_sources
from engine.analysis.composition_in_run import compose_in_run, mean_of, shares_at
from engine.analysis.score_split import ScoreSplit, split_score
from engine.analysis.weights.composition import Composition, compose
from engine.analysis.writers import Kind, Writer
from engine.budget import budget
from engine.runtime.run import run as run_model
from views.attention.long import LongContext
from views.core.questions import Focus, Head, Key, Layer, Pos, Registry, Row, Side, Vocab
from views.core.run_context import HeadOfRun, RunContext
from views.core.table_files import Table

HEADS = 8  # whose sources are shown, those that add most
PARTS = 12  # of a query or a key that are named; the others are one

OUTSIDE: dict[Kind, LiteralString] = {  # names of the parts outside the blocks
    "token": "token", "patch": "patch", "sound": "sound", "segment": "segment", "position": "position",
    "within": "position in the gap", "distance": "distance", "bias": "other biases", "edit": "edits",
}  # fmt: skip

By = Literal["weights", "run"]
TOKEN, HEAD = Registry(), Registry()


def part_name(writer: Writer) -> LiteralString:
    """Name of a part as the pictures have it: "block 2, head 1", "block 3, MLP", "token", "other biases"."""
    if writer.layer is None:
        return OUTSIDE[writer.kind]
    if writer.head is None:
        return f"block {writer.layer + 1:d}, {'MLP' if writer.kind == 'MLP' else 'biases'}"
    return f"block {writer.layer + 1:d}, {'head' if writer.kind == 'head' else 'cross head'} {writer.head + 1:d}"


# --- why this token ---


@dataclass(frozen=True, kw_only=True)
class LongTokenContext(RunContext):
    """A run on a long text, whose trace holds what attribution reads; patterns are those of `made`."""

    made: LongContext
    no_script = f"Lines of Python are for texts of at most {budget.max_tokens} tokens; shorten the text."

    def pattern(self, head: HeadOfRun) -> Tensor:
        return self.made.pattern(head)


def hold_vectors(run: LongContext) -> LongTokenContext:
    """The same run with what attribution reads, kept as other traces are."""
    one = run.made
    trace = run.cached(
        "vectors", lambda: run_model(one.model, one.read, read_hooks(one.model), one.edits, target=one.target)
    )
    return LongTokenContext(run.model_name, run.checkpoint, trace, run.lanes, fields=run.fields, made=run)


def found_attribution(run: RunContext, row: int, candidate: int, against: int | None) -> Attribution:
    """Both charts and the sentences are of it."""
    return run.cached(
        ("attribution", row, candidate, against), lambda: attribute(run.model, run.trace, row, candidate, against)
    )


def parts_table(run: RunContext, row: int, candidate: int, against: int | None = None) -> Table:
    return tabulate_parts(run, found_attribution(run, row, candidate, against))


def tabulate_parts(run: RunContext, found: Attribution) -> Table:
    """A line for each part; the last column adds up to the logit."""
    values = found.values
    columns: dict[str, Any] = {
        "part": [part_name(one) for one in values],
        "kind": [one.kind for one in values],
        "layer": [-1 if one.layer is None else one.layer for one in values],
        "head": [-1 if one.head is None else one.head for one in values],
        "value": list(values.values()),
    }
    return Table(columns, {"model": run.model_name, "table": "parts of a logit"})


@TOKEN.question("parts", make_table=parts_table)
def ask_parts(run: RunContext, row: Row, candidate: Vocab, against: Vocab | None = None) -> Attribution:
    """Terms of the embedding, every head, MLP and bias in the logit of a candidate, or in its lead over another."""
    return attribute(run.model, run.trace, row, candidate, against)


def sources_table(run: RunContext, row: int, candidate: int, against: int | None = None) -> Table:
    """A line for each of the heads that add most, and each token that it read."""
    found = found_attribution(run, row, candidate, against)
    heads = list(found.heads)[:HEADS]
    lines: list[tuple[str, int, str, float, float]] = []
    for head in heads:
        pieces = source_pieces(run, head)
        values = split_sources(run.model, run.trace, found, head, pattern_of(run, head)).tolist()
        weights = weights_of(run, found, head).tolist()
        lines += [
            (part_name(head), at, piece, value, weight)
            for at, (piece, value, weight) in enumerate(zip(pieces, values, weights, strict=True))
        ]
    names = ("part", "key", "key_token", "value", "attention")
    columns = dict(zip(names, map(list, zip(*lines, strict=True)), strict=True)) if lines else {n: [] for n in names}
    return Table(columns, {"model": run.model_name, "table": "sources of heads"})


def source_pieces(run: RunContext, head: Writer) -> Sequence[str]:
    """Tokens that a head reads."""
    return run.lanes[0 if head.kind == "cross head" else -1].pieces


def weights_of(run: RunContext, found: Attribution, writer: Writer) -> Tensor:
    """Weights of a head at the position that the logit is read at, or their mean where it is read at several (key)."""
    return pattern_of(run, writer)[list(found.covectors)].float().mean(0)


def pattern_of(run: RunContext, writer: Writer) -> Tensor:
    assert writer.layer is not None and writer.head is not None
    focus = "cross_attn" if writer.kind == "cross head" else "attn"
    return run.pattern(HeadOfRun(run.lanes[-1].side, focus, writer.layer, writer.head))


@TOKEN.question("sources", make_table=sources_table)
def ask_sources(run: RunContext, row: Row, candidate: Vocab, against: Vocab | None = None) -> dict[Writer, Tensor]:
    """Terms of each token's value through each head."""
    found = attribute(run.model, run.trace, row, candidate, against)
    return {head: split_sources(run.model, run.trace, found, head) for head in found.heads}


@dataclass(frozen=True)
class HeadAccount:
    """The head that adds most, where it looked, what carried most, and what the logit is without it: less by `value`,
    what it adds itself, by what norms then divide by, `by_norms`, and by what `later` parts make of it."""

    head: Writer
    value: float
    looked_at: int
    weight: float
    carried: int
    carried_value: float
    without: float
    by_norms: float
    later: float


def find_account(run: RunContext, row: int, candidate: int, against: int | None) -> HeadAccount | None:
    """Account of the head that counts most, which runs the model up to three times more; None in a model without
    heads."""
    key = "account", row, candidate, against
    return run.cached(key, lambda: account_of_head(run, row, candidate, against))


def account_of_head(run: RunContext, row: int, candidate: int, against: int | None) -> HeadAccount | None:
    found = found_attribution(run, row, candidate, against)
    if not found.heads:
        return None
    head, value = next(iter(found.heads.items()))
    values = split_sources(run.model, run.trace, found, head, pattern_of(run, head))
    weights = weights_of(run, found, head)
    most = int((values * (1 if value >= 0 else -1)).argmax())
    removed = ablate(run.model, run.trace, head)

    def read(logits: Tensor) -> float:
        each = logits[0].mT if run.answers else logits[0]
        line = each if each.dim() == 1 else each[row]
        return float(line[candidate]) - (0.0 if against is None else float(line[against]))

    whole, without, held = read(removed.whole), read(removed.without), read(removed.held)
    looked_at = int(weights.argmax())
    carried = most, float(values[most])
    return HeadAccount(
        head, value, looked_at, float(weights[looked_at]), *carried, without, whole - held - value, held - without
    )


# --- why this head ---


def found_split(run: RunContext, side: str, focus: str, layer: int, head: int, pos: int, key: int) -> ScoreSplit:
    return run.cached(
        ("score split", side, focus, layer, head, pos, key),
        lambda: split_score(run.model, run.trace, layer, head, pos, key, side, focus == "cross_attn"),
    )


def split_table(run: RunContext, side: str, focus: str, layer: int, head: int, pos: int, key: int) -> Table:
    return tabulate_split(run, found_split(run, side, focus, layer, head, pos, key))


def tabulate_split(run: RunContext, found: ScoreSplit) -> Table:
    """A line for each pair of what wrote the query and what wrote the key. The last column adds up to the score: parts
    that count little are one."""
    rows, names = fold(found.values, [part_name(one) for one in found.queries])
    columns, keys = fold(rows.mT, [part_name(one) for one in found.keys])
    pairs = [(query, part, float(columns[j, i])) for i, query in enumerate(names) for j, part in enumerate(keys)]
    parts = dict(zip(("query", "key", "value"), map(list, zip(*pairs, strict=True)), strict=True))
    return Table(parts, {"model": run.model_name, "table": "pairs of a score"})


def fold(values: Tensor, names: Sequence[str]) -> tuple[Tensor, list[str]]:
    """Rows that count most, the others added up as one."""
    if len(names) <= PARTS:
        return values, list(names)
    order = values.abs().sum(1).argsort(descending=True)
    kept = sorted(order[: PARTS - 1].tolist())
    rest = [at for at in range(len(names)) if at not in kept]
    return torch.cat([values[kept], values[rest].sum(0, keepdim=True)]), [*(names[at] for at in kept), "all others"]


@HEAD.question("split", make_table=split_table)
def ask_split(run: RunContext, side: Side, focus: Focus, layer: Layer, head: Head, pos: Pos, key: Key) -> ScoreSplit:
    """The score of one head as pairs of what wrote the query and what wrote the key."""
    return split_score(run.model, run.trace, layer, head, pos, key, side, focus == "cross_attn")


def found_shares(run: RunContext, side: str, layer: int, head: int, pos: int) -> Tensor:
    key = "shares", side, layer, head, pos
    return run.cached(key, lambda: shares_at(run.model, run.trace, layer, head, pos, side))


def share_steps(run: RunContext, side: str, layer: int, head: int, by: By = "weights") -> list[Callable[[], Tensor]]:
    places = range(len(run.lane(side).pieces)) if by == "run" else ()
    return [partial(found_shares, run, side, layer, head, pos) for pos in places]


def composition_table(run: RunContext, side: str, layer: int, head: int, by: By = "weights") -> Table:
    if by == "weights":
        found = compose(run.model, layer, head, side)
    else:
        found = mean_of([step() for step in share_steps(run, side, layer, head, by)])
    lines = [
        (name, before, one, float(values[before, one]))
        for name, values in (("Q", found.q), ("K", found.k), ("V", found.v))
        for before in range(values.shape[0])
        for one in range(values.shape[1])
    ]
    names = ("reads with", "layer", "head", "score")
    columns = dict(zip(names, map(list, zip(*lines, strict=True)), strict=True)) if lines else {n: [] for n in names}
    return Table(columns, {"model": run.model_name, "table": "composition"})


@HEAD.question("composition", make_table=composition_table, steps=share_steps)
def ask_composition(run: RunContext, side: Side, layer: Layer, head: Head, by: By = "weights") -> Composition:
    """Measures how much a head's query, key and value can read of what each earlier head writes, by the weights, or how
    much of them it wrote in this run."""
    if by == "weights":
        return compose(run.model, layer, head, side)
    return compose_in_run(run.model, run.trace, layer, head, side)
