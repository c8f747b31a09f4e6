"""The lines of Python that reproduce, of every run of a comparison, what a tab other than the map shows of its head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.runtime import library
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.compare.pair import Compared, Shown
from views.compare.tables import Looked, alignments, group_of, place
from views.core.codegen import Imports

PROMOTED = 8  # tokens, as in the tab
PASSED = ("{}_rotated", "{}_norm.out", "{}")  # what scores are made of: the last of these that a run has
STEPS = ("scores", "capped", "bias", "masked_scores", "pattern")


def tab_lines(pairs: Sequence[Compared], looked: Looked, imports: Imports) -> list[str]:
    """Lines of Python for the cell of each run that has it; none for a tab that shows the pattern."""
    made = {"product": product, "steps": steps, "points": points, "circuits": circuits}.get(looked.view)
    if made is None:
        return []
    shown = {"A": pairs[0].first} | {pair.second.letter: pair.second for pair in pairs}
    of = {"A": pairs[0]} | {pair.second.letter: pair for pair in pairs}
    found: list[str] = []
    for letter, (row, col) in cells(pairs, looked).items():
        pair = of[letter] if letter != "A" else next(one for one in pairs if looked.number(one) is not None)
        hook, head = place(pair, looked, letter)
        found += made(Head(shown[letter], pair, looked, hook.removesuffix("pattern"), head), row, col, imports)
    return found


class Head:
    """A head of a run: `block` is the name of its attention's hooks but for their last word."""

    def __init__(self, shown: Shown, pair: Compared, looked: Looked, block: str, head: int) -> None:
        self.shown, self.block, self.head, self.how = shown, block, head, looked.how
        self.attention = pair.attentions[looked.attention_index(pair)][shown.letter != "A"]
        self.name = shown.letter.lower()
        self.layer = int(block.rpartition("blocks.")[2].split(".")[0])

    @property
    def trace(self) -> Trace:
        """Trace with every hook recorded; of a long text, whose run keeps none, the trace of its first token."""
        shown, read, target = self.shown, self.shown.reading.read, self.shown.reading.target
        if shown.long is None:
            return shown.trace
        if isinstance(read, Encoding):
            read, target = read.truncate(1), target and target.truncate(1)
        return library.traces.trace(shown.name, read, (), target)

    def place_arguments(self) -> str:
        """The last arguments of the engine's functions about a head; none where they are the usual ones."""
        side, crosses = self.attention.side, self.attention.crosses
        return "" if not side and not crosses else f", {side!r}, {crosses}"

    def input_name(self, letter: str) -> str:
        return next(name for part in PASSED if (name := self.block + part.format(letter)) in self.trace)


def cells(pairs: Sequence[Compared], looked: Looked) -> dict[str, tuple[int, int]]:
    """The cell that is looked at, in the tokens of every run that has it."""
    letter, *cell = looked.cursor
    known = [pair for pair in pairs if looked.number(pair) is not None]
    mine: tuple[int, int] | None = (cell[0], cell[1]) if letter == "A" else None
    found = {letter: (cell[0], cell[1])}
    for pair in known:
        if pair.second.letter == letter and (met := looked.cell_groups(pair)) is not None:
            queries, keys = alignments(pair, looked)
            mine = found["A"] = (queries.first[met[0]][0], keys.first[met[1]][0])
    for pair in known if mine is not None else []:
        if pair.second.letter not in found and mine is not None:
            queries, keys = alignments(pair, looked)
            at = [group_of(one.groups, True, i) for one, i in zip((queries, keys), mine, strict=True)]
            if at[0] is not None and at[1] is not None:
                found[pair.second.letter] = (queries.second[at[0]][0], keys.second[at[1]][0])
    return dict(sorted(found.items()))


def product(at: Head, row: int, col: int, imports: Imports) -> Iterator[str]:
    q, k = at.input_name("q"), at.input_name("k")
    shared = at.head * at.trace[k].shape[2] // at.trace[q].shape[2]
    yield f'q_{at.name} = {at.name}["{q}"][0, {row}, {at.head}]  # d_head'
    yield f'k_{at.name} = {at.name}["{k}"][0, {col}, {shared}]  # d_head'
    yield f"print((q_{at.name} * k_{at.name}).sum().item())"


def steps(at: Head, row: int, col: int, imports: Imports) -> Iterator[str]:
    parts = tuple(part for part in STEPS if at.block + part in at.trace)
    yield f"for part in {parts!r}:"
    yield f'    print(part, {at.name}["{at.block}" + part][..., {at.head}, {row}, {col}].item())'


def points(at: Head, row: int, col: int, imports: Imports) -> Iterator[str]:
    imports.setdefault("engine.analysis.points", set()).add("head_points")
    how = "" if at.how == "pca" else f', how="{at.how}"'
    yield f"points_{at.name} = head_points({at.name}, {at.layer}, {at.head}{at.place_arguments()}{how})"
    yield f"print(points_{at.name}.queries[{row}].tolist(), points_{at.name}.keys[{col}].tolist())"


def circuits(at: Head, row: int, col: int, imports: Imports) -> Iterator[str]:
    """Yields the lines for what the key's token promotes, and for the score of the two tokens by content alone."""
    ids = at.shown.lane(at.attention.side).ids, at.shown.lane(at.attention.keys()).ids
    if not ids[0] or not ids[1]:
        return
    imports.setdefault("engine.analysis.circuits", set()).update({"top_outputs", "qk"})
    query, key = ids[0][row], ids[1][col]
    model, place = f"model_{at.name}, {at.layer}, {at.head}", at.place_arguments()
    yield f"print(top_outputs({model}, [{key}], {PROMOTED}{place}).tokens.tolist())"
    yield f"print(qk({model}, [{query}], [{key}]{place}).item())"
