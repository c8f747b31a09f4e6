"""One gap asked for in three ways: masks as BERT has them, sentinels as T5 has them, a span as GLM has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.inputs.readers import GAP, read_infill, read_translation, tokens
from engine.model.layers.position import infill_positions
from engine.runtime import library
from engine.runtime.run import run

MOST = 64  # tokens
SENTINELS = ("<extra_id_0>", "<extra_id_1>")


@dataclass(frozen=True)
class GapTask:
    """Input of a model, and what it is asked. `reads` are the tokens that are read, `target` those of a decoder beside
    them; `sees` says which of its own tokens (those of the decoder where there is one) each may look at, bool pos key;
    `asked` are the tokens that were hidden, with the probability the model gave each at its place, all but the first
    knowing the ones before; `positions` are those of each token that is read, one or two rows."""

    reads: tuple[str, ...]
    target: tuple[str, ...]
    sees: Tensor
    asked: tuple[str, ...]
    probabilities: list[float]
    positions: Tensor


def words_of(text: str, first: int, last: int) -> tuple[str, str, str]:
    """Cuts a text into what stands before, in and after a gap of the words `first` to `last`, counted from 0."""
    words = text.split()
    before, hidden, behind = words[:first], words[first : last + 1], words[last + 1 :]
    return " ".join(before), " ".join(hidden), " ".join(behind)


def pieces_of(checkpoint: Checkpoint, ids: Sequence[int]) -> tuple[str, ...]:
    assert checkpoint.tokenizer is not None
    return tuple(checkpoint.tokenizer.piece(id) for id in ids)


def ask_masks(name: str, before: str, hidden: str, behind: str) -> GapTask:
    """A mask for each hidden token; all are guessed at once (Devlin et al. 2019, section 3.1)."""
    checkpoint = library.checkpoint(name)
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None and tokenizer.mask_id is not None
    wanted = tokenizer.encode(hidden, special=False).ids
    mask = tokenizer.piece(tokenizer.mask_id)
    read = tokens(checkpoint, " ".join(filter(None, (before, " ".join([mask] * len(wanted)), behind))))
    trace = run(checkpoint.model, read, keep=["blocks.0.attn.mask", "probs"])
    at = [place for place, id in enumerate(read.ids) if id == tokenizer.mask_id][: len(wanted)]
    shares = [float(trace["probs"][0, place, id]) for place, id in zip(at, wanted, strict=True)]
    sees = trace["blocks.0.attn.mask"][0, 0].bool()
    return GapTask(read.pieces, (), sees, pieces_of(checkpoint, wanted), shares, torch.arange(len(read))[None])


def ask_sentinels(name: str, before: str, hidden: str, behind: str) -> GapTask:
    """Puts one sentinel in place of the gap, and a decoder writes it, what was hidden, and the next one (Raffel et al.
    2020, section 3.1.4)."""
    checkpoint = library.checkpoint(name)
    first, second = SENTINELS
    text = " ".join(filter(None, (before, first, behind)))
    reading = read_translation(checkpoint, text, f"{first} {hidden} {second}", MOST)
    assert reading.target is not None and not isinstance(reading.read, Tensor)
    written = reading.target.ids[1:]
    trace = run(checkpoint.model, reading.read, keep=["decoder.blocks.0.attn.mask", "probs"], target=reading.target)
    shares = [float(trace["probs"][0, place, id]) for place, id in enumerate(written)]
    sees = trace["decoder.blocks.0.attn.mask"][0, 0].bool()
    places = torch.arange(len(reading.read))[None]
    return GapTask(reading.read.pieces, reading.target.pieces, sees, pieces_of(checkpoint, written), shares, places)


def ask_span(name: str, before: str, hidden: str, behind: str) -> GapTask:
    """Puts one mark in place of the gap; what was hidden is written behind the text, which is seen whole, and each
    token of it has two positions: that of the gap, and its own in it (Du et al. 2022, section 2.1)."""
    checkpoint = library.checkpoint(name)
    tokenizer, infill = checkpoint.tokenizer, checkpoint.config.infill
    assert tokenizer is not None and infill is not None
    text = f"{before}{GAP}{f' {behind}' if behind else ''}"
    begun = len(read_infill(checkpoint, text, " ", MOST).read) - len(tokenizer.encode(" ", special=False).ids)
    read = read_infill(checkpoint, text, f" {hidden}", MOST).read
    assert not isinstance(read, Tensor)
    trace = run(checkpoint.model, read, keep=["blocks.0.attn.mask", "probs"])
    wanted = read.ids[begun:]
    shares = [float(trace["probs"][0, begun - 1 + place, id]) for place, id in enumerate(wanted)]
    positions = infill_positions(torch.tensor([read.ids]), infill)[:, 0]
    sees = trace["blocks.0.attn.mask"][0, 0].bool()
    return GapTask(read.pieces, (), sees, pieces_of(checkpoint, wanted), shares, positions)
