"""Encoding: one text as tokens, with where each token stands in the text and how it is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Encoding:
    """Text as tokens: every tuple has one element a token, in the order of the model's positions.

    A span is [start, end) in Python string indices of `text`. It is empty, at the end of what came before,
    for a token that the tokenizer added. Tokens that hold parts of one character all span that character.
    Of a pair, `text` is the first, a line break, and the second; `segments` is 0 and 1 for the two where the
    tokenizer tells them apart.
    """

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    special: tuple[bool, ...]
    segments: tuple[int, ...]

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

    def truncate(self, length: int) -> Encoding:
        """Keep the first `length` tokens; `text` stays whole, so that the spans go on meaning the same."""
        if length < 0:
            raise ValueError(f"Expected a length of at least 0, got {length}; say how many tokens to keep.")
        return replace(
            self,
            ids=self.ids[:length],
            pieces=self.pieces[:length],
            spans=self.spans[:length],
            special=self.special[:length],
            segments=self.segments[:length],
        )
