"""The lines of Python that run what a comparison shows, and take one head of all from the first one's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.analysis.alignment import Alignment, by_characters, by_pieces
from engine.runtime import library
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.compare.pair import ComparedRun, RunPair
from views.compare.tables import ComparisonSelection, alignments, group_of, place
from views.core.codegen import Fields, Imports, hook_index, import_lines, run_lines

# --- Lines of the tabs ---


PROMOTED = 8  # tokens, as in the tab
PASSED = ("{}_rotated", "{}_norm.out", "{}")  # what scores are made of: the last of these that a run has
STEPS = ("scores", "capped", "bias", "c2p", "p2c", "masked_scores", "pattern")


def tab_lines(pairs: Sequence[RunPair], looked: ComparisonSelection, imports: Imports) -> list[str]:
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
        found += made(HeadSource(shown[letter], pair, looked, hook.removesuffix("pattern"), head), row, col, imports)
    return found


class HeadSource:
    """A head of a run: `block` is the name of its attention's hooks but for their last word."""

    def __init__(self, shown: ComparedRun, pair: RunPair, looked: ComparisonSelection, block: str, head: int) -> None:
        self.shown, self.block, self.head, self.how = shown, block, head, looked.how
        self.attention = pair.attentions[looked.attention_index(pair)][shown.letter != "A"]
        self.name = shown.letter.lower()
        self.layer = int(block.rpartition("blocks.")[2].split(".")[0])

    @property
    def trace(self) -> Trace:
        """Trace with every hook recorded; of a long text, whose run keeps none, the trace of its first token."""
        shown, read, target = self.shown, self.shown.reading.read, self.shown.reading.target
        if shown.run.whole:
            return shown.run.trace
        if isinstance(read, Encoding):
            read, target = read.first(1), target and target.first(1)
        return library.traces.trace(shown.run.model_name, read, (), target)

    def place_arguments(self) -> str:
        """The last arguments of the engine's functions about a head; none where they are the usual ones."""
        side, crosses = self.attention.side, self.attention.crosses
        return "" if not side and not crosses else f", {side!r}, {crosses}"

    def input_name(self, letter: str) -> str:
        return next(name for part in PASSED if (name := self.block + part.format(letter)) in self.trace)


def cells(pairs: Sequence[RunPair], looked: ComparisonSelection) -> dict[str, tuple[int, int]]:
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


def product(at: HeadSource, row: int, col: int, imports: Imports) -> Iterator[str]:
    q, k = at.input_name("q"), at.input_name("k")
    shared = at.head * at.trace[k].shape[2] // at.trace[q].shape[2]
    yield f'q_{at.name} = {at.name}["{q}"][0, {row}, {at.head}]  # d_head'
    yield f'k_{at.name} = {at.name}["{k}"][0, {col}, {shared}]  # d_head'
    yield f"print((q_{at.name} * k_{at.name}).sum().item())"


def steps(at: HeadSource, row: int, col: int, imports: Imports) -> Iterator[str]:
    parts = tuple(part for part in STEPS if at.block + part in at.trace)
    yield f"for part in {parts!r}:"
    yield f'    print(part, {at.name}["{at.block}" + part][..., {at.head}, {row}, {col}].item())'


def points(at: HeadSource, row: int, col: int, imports: Imports) -> Iterator[str]:
    imports.setdefault("engine.analysis.points", set()).add("head_points")
    how = "" if at.how == "pca" else f', how="{at.how}"'
    yield f"points_{at.name} = head_points({at.name}, {at.layer}, {at.head}{at.place_arguments()}{how})"
    yield f"print(points_{at.name}.queries[{row}].tolist(), points_{at.name}.keys[{col}].tolist())"


def circuits(at: HeadSource, row: int, col: int, imports: Imports) -> Iterator[str]:
    """Yields the lines for what the key's token promotes, and for the score of the two tokens by content alone."""
    ids = at.shown.run.lane(at.attention.side).ids, at.shown.run.lane(at.attention.keys()).ids
    if not ids[0] or not ids[1]:
        return
    imports.setdefault("engine.analysis.circuits", set()).update({"top_outputs", "qk"})
    query, key = ids[0][row], ids[1][col]
    model, place = f"model_{at.name}, {at.layer}, {at.head}", at.place_arguments()
    yield f"print(top_outputs({model}, [{key}], {PROMOTED}{place}).tokens.tolist())"
    yield f"print(qk({model}, [{query}], [{key}]{place}).item())"


# --- Lines of a comparison ---


ALIGNING = "engine.analysis.alignment"
WHOLE = ("product", "steps", "points")  # tabs that look at all that an attention computes


def comparison_lines(pairs: Sequence[RunPair], given: Mapping[str, Fields], looked: ComparisonSelection) -> str:
    """Writes the lines that bind `pattern_a`, `pattern_b`, ... and `difference_b`, ..., and print what is looked at, of
    the map and of the tab that is open; `given` is by letter. Raises ValueError for what a run does not have."""
    imports: Imports = {}
    opening: list[str] = []
    for shown in (pairs[0].first, *(pair.second for pair in pairs)):
        name = shown.letter.lower()
        only = needed(pairs, looked, shown)
        run = shown.run
        more, lines = run_lines(run.model_name, run.checkpoint, given[shown.letter], run.trace, bound=name, only=only)
        opening += [f"# {shown.letter}", *lines]
        if looked.view == "circuits":
            opening.append(f"model_{name} = checkpoint.model")
        for module, names in more.items():
            imports[module] = imports.get(module, set()) | names
    values = [pattern_line(pairs[0].first, *place(pairs[0], looked, "A"))]
    for pair in pairs:
        if looked.number(pair) is not None:
            values.append(pattern_line(pair.second, *place(pair, looked, pair.second.letter)))
            values += difference_lines(pair, looked, imports)
    tab = tab_lines(pairs, looked, imports)
    shown_there = ["", *tab] if tab else []
    lines = [*import_lines(imports), "", *opening, "", *values, print_line(pairs, looked), *shown_there]
    return "\n".join(lines) + "\n"


def needed(pairs: Sequence[RunPair], looked: ComparisonSelection, shown: ComparedRun) -> str | None:
    """The hooks that the lines look at, of a long text, of which not every value finds room; None is all."""
    if shown.run.whole:
        return None
    having = [pair for pair in pairs if looked.number(pair) is not None and shown in (pair.first, pair.second)]
    if not having:
        return "logits"
    hook, _ = place(having[0], looked, shown.letter)
    return hook if looked.view not in WHOLE else f"{hook.removesuffix('pattern')}*"


def pattern_line(shown: ComparedRun, hook: str, head: int) -> str:
    alone = (f"0, {head}", ("query", "key"))  # of a pattern that the trace does not hold
    index, axes = hook_index(shown.run.trace, hook, head) if shown.run.whole else alone
    name = shown.letter.lower()
    return f'pattern_{name} = {name}["{hook}"][{index}]  # {" ".join(("query", *axes[1:]))}'


def difference_lines(pair: RunPair, looked: ComparisonSelection, imports: Imports) -> list[str]:
    """The second pattern less the first, at the tokens that belong together."""
    name = pair.second.letter.lower()
    (one, other), (queries, keys) = pair.attentions[looked.attention_index(pair)], alignments(pair, looked)
    if not queries.groups or not keys.groups:
        return []
    if is_identity(queries) and is_identity(keys):
        return [f"difference_{name} = pattern_{name} - pattern_a"]
    wanted = {f"queries_{name}": (one.side, other.side, queries)}
    same = keys is queries
    if not same:
        wanted[f"keys_{name}"] = (one.keys(), other.keys(), keys)
    imports.setdefault(ALIGNING, set()).add("shared")
    lines = []
    for bound, (mine, theirs, alignment) in wanted.items():
        function, call = alignment_call(pair, mine, theirs, alignment)
        imports[ALIGNING].update(function)
        lines.append(f"{bound} = {call}")
    rows = f"queries_{name}"
    columns = rows if same else f"keys_{name}"
    lines.append(f"difference_{name} = shared(pattern_{name}, {rows}.second, {columns}.second)")
    lines.append(f"difference_{name} -= shared(pattern_a, {rows}.first, {columns}.first)  # of tokens that meet")
    return lines


def is_identity(alignment: Alignment) -> bool:
    """Tells whether each token belongs to the one in its own place."""
    here = tuple((i,) for i in range(alignment.lengths[0]))
    return alignment.first == here and alignment.second == here


def alignment_call(pair: RunPair, side: str, other: str, alignment: Alignment) -> tuple[set[str], str]:
    """The call that pairs the tokens so, from what was read; where none does, the pairs themselves."""
    name = pair.second.letter.lower()
    first, second = read_by(pair.first.run.trace, side), read_by(pair.second.run.trace, other)
    if first and second:
        (mine, where), (theirs, there) = first, second
        if by_pieces(mine.pieces, theirs.pieces) == alignment:
            return {"by_pieces"}, f"by_pieces(a.{where}.pieces, {name}.{there}.pieces)"
        if mine.text and theirs.text and by_characters(mine, theirs) == alignment:
            return {"by_characters"}, f"by_characters(a.{where}, {name}.{there})"
    return {"Alignment", "Group"}, repr(alignment)


def read_by(trace: Trace, side: str) -> tuple[Encoding, str] | None:
    """Text that a stack read, and its name in the trace, where it was text."""
    name = "target_encodings" if side == "decoder" else "encodings"
    found: tuple[Encoding, ...] = getattr(trace, name)
    return (found[0], f"{name}[0]") if found else None


def print_line(pairs: Sequence[RunPair], looked: ComparisonSelection) -> str:
    """The difference of the pair that is looked at, where both runs have the tokens, else the weight in one run."""
    letter, row, col = looked.cursor
    for pair in pairs:
        if pair.second.letter == looked.beside and looked.number(pair) is not None:
            met = looked.cell_groups(pair)
            if met is not None:
                return f"print(difference_{looked.beside.lower()}[{met[0]}, {met[1]}].item())"
    return f"print(pattern_{letter.lower()}[{row}, {col}].item())"
