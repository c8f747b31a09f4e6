"""Text, one token at a time: a generator of Steps over a KV cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.edits import AtStart, Edit
from engine.hooks import active
from engine.prompt import Prompt, Reader, Text, begin, text_of
from engine.recording import Recording
from engine.run import layer_of, layers_of, resolved, run
from engine.sampling import Distribution, Sampling, distribution, draw

if TYPE_CHECKING:
    from engine.checkpoints import Checkpoint


@dataclass(frozen=True)
class Step:
    """One new token: its `id`, the `logits` (vocab) it was chosen from, and the ids before it.

    Behind an encoder, `source` is what that read, and `before` what the decoder did: its start token, then the target
    so far. `run(model, before, edits=edits)`, there `run(model, source, target=before, edits=edits)`, shows how the
    token came about: `edits` are those of the generation, as they apply to a text that has grown beyond the prompt.
    """

    index: int
    id: int
    logits: Tensor
    sampling: Sampling
    before: tuple[int, ...]
    checkpoint: Checkpoint
    source: tuple[int, ...] = ()
    edits: tuple[Edit, ...] = ()

    @cached_property
    def distribution(self) -> Distribution:
        return distribution(self.logits, self.sampling)

    @property
    def piece(self) -> str:
        tokenizer = self.checkpoint.tokenizer
        return f"#{self.id}" if tokenizer is None else tokenizer.piece(self.id)

    @property
    def text(self) -> str:
        """Everything so far, prompt included.

        Behind an encoder: the target so far, without special tokens. With a gap: the text, the gap filled by what was
        written so far. Of a picture: its pixels so far.
        """
        return text_of(self.checkpoint, (*self.before, self.id))


@torch.inference_mode()
def generate(
    checkpoint: Checkpoint,
    prompt: Text,
    max_tokens: int | None = None,
    *,
    target: Text | None = None,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    greedy: bool = False,
    seed: int = 0,
    stop_at_end: bool = True,
    edits: Sequence[Edit] = (),
) -> Iterator[Step]:
    """Up to `max_tokens` Steps (None: 50, or the rest of a picture), ending early at one of the checkpoint's end
    tokens or when the model's context is full.

    `prompt` is the text to continue. For an encoder-decoder it is the source, and `target` may begin what is written.
    For a model that fills gaps it is a text with a gap mark in it. For a model of pictures it is the first pixels,
    row by row, or none. Start tokens are added where they are missing.

    `edits` hold for what is written too, except where they name positions, which are the prompt's, or have its size (a
    drawn mask or pattern, values of another run): tokens behind it are then read as the model reads them. Raises
    ValueError for a model that writes no text, a prompt it cannot read or a setting out of range.
    """
    sampling = Sampling(0.0 if greedy else temperature, top_k, top_p)
    begun = begin(checkpoint, prompt, target)
    room = begun.room(max_tokens)
    ends = checkpoint.end_ids if stop_at_end else ()
    generator = torch.Generator().manual_seed(seed)
    made = fitted(begun, edits)
    reader = EditedReader(begun, room, made) if made else Reader(begun, room)
    ids = new = begun.ids
    for index in range(room):
        logits = reader.read([new])[0]
        token = choose(logits, sampling, generator)
        yield Step(index, token, logits, sampling, ids, checkpoint, begun.source, made)
        if token in ends:
            return
        new = (token,)
        ids += new


def choose(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    if sampling.temperature == 0:
        return int(logits.argmax())
    return draw(distribution(logits, sampling).probabilities.cpu(), generator)


def fitted(prompt: Prompt, edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits of a prompt as they apply to it and to what follows it, with the values they name."""
    if not edits:
        return ()
    read = (prompt.source, prompt.ids) if prompt.source else (prompt.ids, None)
    return tuple(AtStart(edit, len(prompt.ids)) for edit in resolved(prompt.checkpoint.model, edits, *read))


class EditedReader:
    """As `Reader`, under edits.

    A cache holds what the prompt's positions gave, so that edits of those alone are over once it is read. Where an edit
    lets a position depend on what comes after it, all is read again for each token.
    """

    def __init__(self, prompt: Prompt, room: int, edits: tuple[Edit, ...]) -> None:
        self.model, self.source, self.edits = prompt.checkpoint.model, prompt.source, edits
        self.ids: tuple[int, ...] = ()
        self.recording = Recording(self.model, frozenset(), edits, None)
        again = any(self.reads_again(edit, name) for name, found in self.recording.edits.items() for edit in found)
        self.cached = None if again else Reader(prompt, room)

    def reads_again(self, edit: Edit, name: str) -> bool:
        reach = edit.reach(self.model.hooks[name])
        config = self.model.config
        behind = layer_of(name, layers_of(self.model), config.encoder.layers if config.encoder else 0)
        return reach == "whole" or (reach == "prompt" and behind == layers_of(self.model))  # of which the last is read

    def read(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """1 vocab, as `Reader.read`."""
        self.ids += tuple(rows[0])
        if self.cached is None:
            read = (self.source, self.ids) if self.source else (self.ids, None)
            return run(self.model, read[0], "logits", self.edits, target=read[1])["logits"][:, -1]
        with active(self.recording):
            logits = self.cached.read(rows)
        self.recording = self.recording.behind()
        return logits
