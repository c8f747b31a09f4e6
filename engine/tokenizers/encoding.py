"""Encoding: one text as tokens, with where each token stands in the text and how it is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Encoding:
    """Text as tokens: every tuple has one element a token, in the order of the model's positions.

    A span is [start, end) in Python string indices of `text`. It is empty, at the end of what came before,
    for a token, or a space, that the tokenizer added. Tokens that hold parts of one character all span that character.
    Of a pair, `text` is the first, a line break, and the second; `segments` is 0 and 1 for the two where the
    tokenizer tells them apart, and `second` is where in `text` the second begins. `cut_left`:
    a text that is too long loses its beginning. Of a conversation, `roles` are whose turn each token is part of; it is
    empty for a text.
    """

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    special: tuple[bool, ...]
    segments: tuple[int, ...]
    second: int | None = None
    cut_left: bool = False
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        counts = [len(self.ids), len(self.pieces), len(self.spans), len(self.special), len(self.segments)]
        if len(set(counts)) > 1:
            raise ValueError(
                "Expected as many ids as pieces, spans, special flags and segments, "
                f"got {', '.join(map(str, counts))}; give each token one of each."
            )

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def from_ids(cls, ids: Iterable[int], pieces: Iterable[str] | None = None) -> Encoding:
        """Encode ids that come from no text: `text` and the spans are empty, and id 17 is drawn "#17" by default."""
        ids = tuple(map(int, ids))
        drawn = tuple(f"#{id}" for id in ids) if pieces is None else tuple(pieces)
        count = len(ids)
        return cls("", ids, drawn, ((0, 0),) * count, (False,) * count, (0,) * count)

    def letters_in_parts(self) -> list[tuple[int, int, str]]:
        """Characters of which several tokens hold a part each: the first of those tokens, one after the last, and the
        character."""
        found: list[tuple[int, int, str]] = []
        for at in range(1, len(self)):
            start, end = self.spans[at]
            if not start < self.spans[at - 1][1] <= end:
                continue
            first = found.pop()[0] if found and found[-1][1:] == (at, self.text[start]) else at - 1
            found.append((first, at + 1, self.text[start]))
        return found

    def truncate(self, length: int) -> Encoding:
        """Cut to `length` tokens as transformers does by `truncation=True`: the texts get shorter, of two the longer
        first, and the tokens that the tokenizer added stay. `text` stays whole, so that spans go on meaning the same.
        """
        return self._select(self.positions_within(length))

    def first(self, count: int) -> Encoding:
        """The first `count` tokens, whatever they are; `text` stays whole."""
        return self._select(range(min(count, len(self))))

    def positions_within(self, length: int) -> Sequence[int]:
        """Positions of the tokens that `truncate` keeps; the first ones where not even those added have room."""
        if length < 0:
            raise ValueError(f"Expected a length of at least 0, got {length}; say how many tokens to keep.")
        if length >= len(self):
            return range(len(self))
        added: list[int] = []
        texts: tuple[list[int], list[int]] = ([], [])
        for position, ((start, end), special) in enumerate(zip(self.spans, self.special, strict=True)):
            which = self.second is not None and start >= self.second
            (added if special and start == end else texts[which]).append(position)
        room = length - len(added)
        if room < 0:
            return range(length)
        shorter = min(map(len, texts))
        if 2 * shorter > room:
            shorter = room // 2
        counts = [shorter, room - shorter] if len(texts[0]) <= len(texts[1]) else [room - shorter, shorter]
        for text, count in zip(texts, counts, strict=True):
            added += text[max(len(text) - count, 0) :] if self.cut_left else text[:count]
        return sorted(added)

    def _select(self, positions: Sequence[int]) -> Encoding:
        return replace(
            self,
            ids=tuple(self.ids[i] for i in positions),
            pieces=tuple(self.pieces[i] for i in positions),
            spans=tuple(self.spans[i] for i in positions),
            special=tuple(self.special[i] for i in positions),
            segments=tuple(self.segments[i] for i in positions),
            roles=tuple(self.roles[i] for i in positions) if self.roles else (),
        )
