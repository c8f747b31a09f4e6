"""What an edit does, in a few words and with the tokens that it names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from engine.edits import (
    ApplyAdapter,
    AttentionTemperature,
    ChangeToken,
    DrawMask,
    DrawPattern,
    DropPositions,
    Edit,
    PaintMask,
    PaintPattern,
    Patch,
    PresetMask,
    Replace,
    Scale,
    SetPattern,
    ShiftPositions,
    SilenceHeads,
    Source,
    Steer,
    SwapPositions,
    parts,
)
from views.core.lanes import Lane

QUIET = {"zero": "silenced", "mean": "replaced by their mean over the text", "uniform": "attend evenly"}
SEEN = {
    "uniform": "evenly to all they may see",
    "previous": "to the previous token alone",
    "first": "to the first token alone",
    "itself": "to the token itself alone",
}
FEW = 4  # tokens that are listed by name
LONGEST = 60  # characters of another text


@dataclass(frozen=True)
class Terms:
    """The text that edits are about: its stacks, the model's hooks, and how ids read as a text."""

    lanes: Sequence[Lane]
    hooks: Collection[str]
    read: Callable[[Sequence[int]], str]

    def lane(self, stack: str | None) -> Lane:
        return next((lane for lane in self.lanes if lane.side == stack), self.lanes[-1])

    def token(self, position: int, stack: str | None = None) -> str:
        """A token as it stands in the text, with its number where it stands there several times."""
        pieces = self.lane(stack).pieces
        if not -len(pieces) <= position < len(pieces):
            return f"token {position}"
        piece = pieces[position]
        number = f" ({position % len(pieces)})" if list(pieces).count(piece) > 1 else ""
        return f"“{piece}”{number}"

    def tokens(self, positions: Sequence[int] | int | None, stack: str | None = None) -> str:
        if positions is None:
            return "every token"
        listed = [positions] if isinstance(positions, int) else positions
        named = [self.token(one, stack) for one in listed[:FEW]]
        return join_words([*named, f"{len(listed) - FEW} more"] if len(listed) > FEW else named)

    def place(self, hook: str) -> str:
        """Says where a hook stands: "block 2, MLP", or its own name outside of blocks."""
        stack, dot, rest = hook.partition("blocks.")
        layer, _, part = rest.partition(".")
        if not dot or not layer.isdigit():
            return hook if layer != "*" else f"every {stack.removesuffix('.')} block, {part}".replace("  ", " ")
        side = stack.removesuffix(".")
        known = {found: name for name, found in parts(self.hooks, int(layer), side or None).items()}  # type: ignore[arg-type]
        return f"{side + ' ' if side else ''}block {int(layer) + 1}, {known.get(hook, part)}"


def in_words(edit: Edit, terms: Terms) -> str:
    for family in (of_masks, of_heads, of_positions, of_values, of_runs, of_weights):
        found = family(edit, terms)
        if found:
            return found
    return type(edit).__name__


def of_masks(edit: Edit, terms: Terms) -> str | None:
    match edit:
        case PresetMask(kind=kind, size=size):
            of = {"prefix": f" of {count_words(size or 0, 'token')}"}.get(kind, f" of {size}") if size else ""
            return f"{kind} mask{of}, {attention_words(edit)}"
        case PaintMask(cells=cells, rows=rows, columns=columns, to=to):
            named = [f"the row of {terms.tokens(rows, edit.stack)}"] if rows else []
            read = "encoder" if edit.cross else edit.stack
            named += [f"the column of {terms.tokens(columns, read)}"] if columns else []
            named += [count_words(len(cells), "cell")] if cells else []
            done = {"flip": "mask painted", "allow": "allow", "forbid": "block"}[to]
            return f"{done}: {join_words(named)}, {attention_words(edit)}"
        case DrawMask():
            return f"a drawn mask, {attention_words(edit)}"
    return None


def of_heads(edit: Edit, terms: Terms) -> str | None:
    match edit:
        case SetPattern(to="position", position=int(position)):
            read = "encoder" if edit.cross else edit.stack
            return f"{attention_words(edit)}: attend to {terms.token(position, read)} alone"
        case PaintPattern(cells=[[query, key]], weights=[weight]):
            read = "encoder" if edit.cross else edit.stack
            pair = f"{terms.token(query, edit.stack)} looks at {terms.token(key, read)}"
            return f"{attention_words(edit)}: {pair} with {100 * weight:g} %"
        case PaintPattern(cells=cells):
            rows = sorted({row for row, _ in cells})
            painted = f"{count_words(len(cells), 'weight')} painted, {'row' if len(rows) == 1 else 'rows'} of"
            return f"{attention_words(edit)}: {painted} {terms.tokens(rows, edit.stack)}"
        case AttentionTemperature(value=value):
            return f"attention temperature {value:g}, {attention_words(edit)}"
        case SilenceHeads(how=how):
            return f"{attention_words(edit)}: {QUIET[how]}"
        case SetPattern(to=to):
            return f"{attention_words(edit)}: attend {SEEN[to]}"
        case DrawPattern():
            return f"a drawn pattern, {attention_words(edit)}"
    return None


def of_positions(edit: Edit, terms: Terms) -> str | None:
    if not isinstance(edit, SwapPositions | DropPositions | ShiftPositions):
        return None
    place = "" if edit.layer is None and edit.stack is None else f", {attention_words(edit)}"
    match edit:
        case SwapPositions(first=first, second=second):
            return f"{terms.token(first, edit.stack)} and {terms.token(second, edit.stack)} swap positions{place}"
        case DropPositions(positions=positions):
            return f"{terms.tokens(positions, edit.stack)} without position{place}"
        case ShiftPositions(by=by, positions=positions):
            way = "on" if by >= 0 else "back"
            far = count_words(abs(by), "position")
            return f"{terms.tokens(positions, edit.stack)} stands {far} further {way}{place}"


def of_values(edit: Edit, terms: Terms) -> str | None:
    match edit:
        case Scale(hook=hook, factor=factor):
            done = "taken out" if factor == 0 else f"× {factor:g}"
            return f"{terms.place(hook)}: {done}{chosen(edit.at, hook, terms)}"
        case Replace(hook=hook, value=value):
            put = f"{value:g}" if isinstance(value, float | int) else "given numbers"
            return f"{terms.place(hook)}: replaced by {put}{chosen(edit.at, hook, terms)}"
    return None


def of_runs(edit: Edit, terms: Terms) -> str | None:
    match edit:
        case ChangeToken(position=position, token=token, share=share):
            old, new = terms.token(position, edit.stack), f"“{terms.read([token]).strip()}”"
            return f"{old} becomes {new}" if share == 1 else f"{old} becomes {100 * share:g} % {new}"
        case Patch(source=None, source_hook=str(other)) if other.endswith(".pattern"):
            there = head_words(other, edit.source_at or {}, terms)
            return f"{head_words(edit.hook, edit.at, terms)}: as {there} attends"
        case Patch(hook=hook, source=source, source_hook=other):
            taken = f"{terms.place(other)} in " if other and other != hook else "in "
            return f"{terms.place(hook)}{chosen(edit.at, hook, terms)}: as {taken}{source_words(source, terms)}"
        case Steer(hook=hook, factor=factor):
            apart = f"{source_words(edit.toward, terms)} − {source_words(edit.away, terms)}"
            return f"{terms.place(hook)}: + {factor:g} × ({apart}){chosen(edit.at, hook, terms)}"
    return None


def of_weights(edit: Edit, terms: Terms) -> str | None:
    if isinstance(edit, ApplyAdapter):
        return f"adapter “{edit.adapter.partition('~')[0]}” at {edit.strength:g}"
    return None


def attention_words(edit: Any) -> str:
    """Says which attention of which block, and which of its heads."""
    heads = getattr(edit, "heads", None)
    named = of_numbers(heads) if heads else ""
    kind = "cross-attention" if getattr(edit, "cross", False) else f"{edit.stack}" if edit.stack else ""
    block = "every block" if edit.layer is None else f"block {edit.layer + 1}"
    return ", ".join(part for part in (f"{kind} {block}".strip(), named) if part)


def chosen(at: Any, hook: str, terms: Terms) -> str:
    """Says what an edit of a hook is limited to."""
    stack = hook.partition("blocks.")[0].removesuffix(".") or None
    named = []
    if "head" in at:
        heads = [at["head"]] if isinstance(at["head"], int) else at["head"]
        named.append(of_numbers(heads))
    if "pos" in at:
        named.append(f"at {terms.tokens(at['pos'], stack)}")
    if "key" in at:
        named.append(f"to {terms.tokens(at['key'], 'encoder' if 'cross_attn' in hook else stack)}")
    named += [f"{axis} {of_indices(at[axis])}" for axis in at if axis not in ("head", "pos", "key")]
    return "".join(f", {one}" for one in named)


def of_indices(listed: Sequence[int] | int) -> str:
    """Indices as they are counted, from 0."""
    indices = [listed] if isinstance(listed, int) else listed
    more = [f"{len(indices) - FEW} more"] if len(indices) > FEW else []
    return join_words([*map(str, indices[:FEW]), *more])


def of_numbers(heads: Sequence[int]) -> str:
    """Heads counted from 1 as people do; those that were counted from the end, as they stand."""
    numbers = [str(head + 1 if head >= 0 else head) for head in heads[:FEW]]
    more = [f"{len(heads) - FEW} more"] if len(heads) > FEW else []
    return f"{'head' if len(heads) == 1 else 'heads'} {join_words([*numbers, *more])}"


def head_words(hook: str, at: Any, terms: Terms) -> str:
    """A head by the name of its pattern: "block 2, head 1"."""
    place, _, part = terms.place(hook).rpartition(", ")
    cross = "cross-attention " if part.startswith("cross_attn") else ""
    return f"{cross}{place}{chosen(at, hook, terms)}"


def source_words(source: Source | None, terms: Terms) -> str:
    if source is None:
        return "the run without edits"
    picture = terms.lanes[0].grid is not None
    text = source.name or "another picture" if picture else terms.read(source.ids).strip()
    short = text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()}…"
    return short if picture else f"“{short}”"


def count_words(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def join_words(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
