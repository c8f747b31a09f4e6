"""The lines of Python that run what a comparison shows, and take one head of all from the first one's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.analysis.alignment import Alignment, by_characters, by_pieces
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.compare.codegen_tabs import tab_lines
from views.compare.pair import Compared, Shown
from views.compare.tables import Looked, alignments, place
from views.core.codegen import Fields, Imports, hook_index, import_lines, run_lines

ALIGNING = "engine.analysis.alignment"
WHOLE = ("product", "steps", "points")  # tabs that look at all that an attention computes


def comparison_lines(pairs: Sequence[Compared], given: Mapping[str, Fields], looked: Looked) -> str:
    """Writes the lines that bind `pattern_a`, `pattern_b`, ... and `difference_b`, ..., and print what is looked at, of
    the map and of the tab that is open; `given` is by letter. Raises ValueError for what a run does not have."""
    imports: Imports = {}
    opening: list[str] = []
    for shown in (pairs[0].first, *(pair.second for pair in pairs)):
        name = shown.letter.lower()
        only = needed(pairs, looked, shown)
        more, lines = run_lines(shown.name, shown.checkpoint, given[shown.letter], shown.trace, bound=name, only=only)
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


def needed(pairs: Sequence[Compared], looked: Looked, shown: Shown) -> str | None:
    """The hooks that the lines look at, of a long text, of which not every value finds room; None is all."""
    if shown.long is None:
        return None
    having = [pair for pair in pairs if looked.number(pair) is not None and shown in (pair.first, pair.second)]
    if not having:
        return "logits"
    hook, _ = place(having[0], looked, shown.letter)
    return hook if looked.view not in WHOLE else f"{hook.removesuffix('pattern')}*"


def pattern_line(shown: Shown, hook: str, head: int) -> str:
    alone = (f"0, {head}", ("query", "key"))  # of a pattern that the trace does not hold
    index, axes = hook_index(shown.trace, hook, head) if shown.long is None else alone
    name = shown.letter.lower()
    return f'pattern_{name} = {name}["{hook}"][{index}]  # {" ".join(("query", *axes[1:]))}'


def difference_lines(pair: Compared, looked: Looked, imports: Imports) -> list[str]:
    """The second pattern less the first, at the tokens that belong together."""
    name = pair.second.letter.lower()
    (one, other), (queries, keys) = pair.attentions[looked.attention_index(pair)], alignments(pair, looked)
    if not queries.groups or not keys.groups:
        return []
    if plain(queries) and plain(keys):
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


def plain(alignment: Alignment) -> bool:
    """Tells whether each token belongs to the one in its own place."""
    here = tuple((i,) for i in range(alignment.lengths[0]))
    return alignment.first == here and alignment.second == here


def alignment_call(pair: Compared, side: str, other: str, alignment: Alignment) -> tuple[set[str], str]:
    """The call that pairs the tokens so, from what was read; where none does, the pairs themselves."""
    name = pair.second.letter.lower()
    first, second = read_by(pair.first.trace, side), read_by(pair.second.trace, other)
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


def print_line(pairs: Sequence[Compared], looked: Looked) -> str:
    """The difference of the pair that is looked at, where both runs have the tokens, else the weight in one run."""
    letter, row, col = looked.cursor
    for pair in pairs:
        if pair.second.letter == looked.beside and looked.number(pair) is not None:
            met = looked.cell_groups(pair)
            if met is not None:
                return f"print(difference_{looked.beside.lower()}[{met[0]}, {met[1]}].item())"
    return f"print(pattern_{letter.lower()}[{row}, {col}].item())"
