"""What ends a text that is being written, and how that is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.generation.prompt import Prompt, picture_pixels

Ending = Literal["end", "string", "max_tokens", "context", "picture", "candidates"]


@dataclass(frozen=True)
class Stop:
    """Why nothing follows.

    "end": the end token `id`, drawn as `text`. "string": the stop string `text` was written. "max_tokens": `count`
    tokens were asked for. "context": the model reads no more than `count` tokens. "picture": all its `count` pixels
    are there. "candidates": the last token, or pixel, as `text` says, is missing, for contrastive search has no place
    left in a context of `count` tokens to read what it might be.
    """

    kind: Ending
    text: str = ""
    id: int | None = None
    count: int | None = None

    @property
    def sentence(self) -> str:
        if self.kind == "end":
            return f"The end token {self.text} ended it."
        if self.kind == "string":
            return f"The stop string {self.text!r} ended it."
        if self.kind == "max_tokens":
            return f"Reached the {self.count:,}-token limit."
        if self.kind == "context":
            return f"It stopped because the model's context of {self.count:,} tokens is full."
        if self.kind == "candidates":
            return (
                f"It stopped before the last {self.text}: contrastive search reads each candidate before it chooses "
                f"one, and the model's context of {self.count:,} tokens has no place left for that."
            )
        return f"The picture is complete, with all its {self.count:,} pixels."


@dataclass(frozen=True)
class StopRules:
    """Rules for when a text that follows `prompt` ends: after `room` tokens because of `limit`, or earlier at an end
    token or a stop string.
    """

    prompt: Prompt
    room: int
    limit: Stop
    ends: tuple[int, ...] = ()
    strings: tuple[str, ...] = ()

    def check(self, before: Sequence[int], id: int, index: int) -> Stop | None:
        """Reason why the text ends with its token `index`, `id`, behind the ids `before`; None where it goes on."""
        if id in self.ends:
            tokenizer = self.prompt.checkpoint.tokenizer
            return Stop("end", f"#{id}" if tokenizer is None else tokenizer.piece(id), id)
        found = self.string(before, id) if self.strings else None
        if found is not None:
            return Stop("string", found)
        return self.limit if index + 1 >= self.room else None

    def string(self, before: Sequence[int], id: int) -> str | None:
        """The first of the stop strings that stands in the text only since its last token; it may end within that."""
        tokenizer = self.prompt.checkpoint.tokenizer
        assert tokenizer is not None
        text, shorter = tokenizer.to_bytes((*before, id)), tokenizer.to_bytes(before)
        old = len(shorter) if text.startswith(shorter) else common(shorter, text)
        return next((one for one in self.strings if ends_behind(text, one.encode(), old)), None)


def ends_behind(text: bytes, string: bytes, old: int) -> bool:
    """True if `string` stands in `text` with its end behind the first `old` bytes."""
    return text.find(string, max(old - len(string) + 1, 0)) >= 0


def common(a: bytes, b: bytes) -> int:
    """Number of bytes that both begin with."""
    return next((at for at, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def stopping_rules(
    prompt: Prompt, max_tokens: int | None = None, stop_at_end: bool = True, strings: str | Sequence[str] | None = None
) -> StopRules:
    """`strings` None are the checkpoint's own. Raises ValueError for a negative `max_tokens`, and for stop strings that
    are empty or that no text can hold."""
    room, checkpoint = prompt.room(max_tokens), prompt.checkpoint
    if strings is None:
        strings = checkpoint.writing.end.stop_strings if checkpoint.tokenizer is not None else ()
    wanted = (strings,) if isinstance(strings, str) else tuple(strings)
    if "" in wanted:
        raise ValueError("a stop string must have at least one character, got an empty one; leave it out.")
    if wanted and checkpoint.tokenizer is None:
        raise ValueError("stop strings need a text to stand in, and this checkpoint has no tokenizer; leave them out.")
    ends = (*checkpoint.end_ids, *prompt.ends) if stop_at_end else ()
    return StopRules(prompt, room, limit(prompt, room), ends, wanted)


def limit(prompt: Prompt, room: int) -> Stop:
    """Reason that keeps a text from growing beyond `room` tokens."""
    pixels, context = picture_pixels(prompt.checkpoint), prompt.checkpoint.config.context
    if room < prompt.tokens_left:
        return Stop("max_tokens", count=room)
    return Stop("context", count=context) if pixels is None else Stop("picture", count=pixels)
