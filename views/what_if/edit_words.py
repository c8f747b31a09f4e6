"""Words for what edits are about: tokens, heads, values of hooks, other texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from engine.edits import Source, parts
from views.core.lanes import Lane

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

    def read_by(self, edit: Any) -> str | None:
        """The stack whose tokens an edited attention reads."""
        return "encoder" if edit.cross else edit.stack

    def place(self, hook: str) -> str:
        """Says where a hook stands: "block 2, MLP", or its own name outside of blocks."""
        stack, dot, rest = hook.partition("blocks.")
        layer, _, part = rest.partition(".")
        if not dot or not layer.isdigit():
            return hook if layer != "*" else f"every {stack.removesuffix('.')} block, {part}".replace("  ", " ")
        side = stack.removesuffix(".")
        known = {found: name for name, found in parts(self.hooks, int(layer), side or None).items()}  # type: ignore[arg-type]
        return f"{side + ' ' if side else ''}block {int(layer) + 1}, {known.get(hook, part)}"


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


def join_words(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
