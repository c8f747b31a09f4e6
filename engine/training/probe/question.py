"""A probe as a model reads it, and what is known of the right answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isqrt

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.data.digits import split as cut
from engine.data.kinds.digits import Digits
from engine.inputs.processors import ImageProcessor, PalettePixels
from engine.model.config import ModelConfig
from engine.plurals import count_words
from engine.scoring.examples import UNASKED
from engine.tokenizers import Encoding, Tokenizer
from engine.training.examples.token_classification import answers
from engine.training.probe.probe import Probe, separator_of, unknown_ids
from engine.training.recipe.recipe import Recipe

CELLS = 2**20  # of all attention patterns of a frame, a byte each
MORE = 4  # tokens that a model may write beyond those that were right


@dataclass(frozen=True)
class Question:
    """`read` is a text, ids or the pixels of a picture; `target` is what a decoder behind an encoder reads.

    `asked` has the right token after each position of what the head stands on, or the one right class, UNASKED where
    none is known. From `prompt` the model writes at most `room` tokens by itself; it writes nothing where that is None.
    `pieces` and `target_pieces` are the tokens as they are drawn.
    """

    read: Encoding | Tensor
    asked: tuple[int, ...]
    target: Encoding | None = None
    prompt: tuple[int, ...] | None = None
    room: int = 0
    pieces: tuple[str, ...] = field(default=())
    target_pieces: tuple[str, ...] = field(default=())


def question(probe: Probe, checkpoint: Checkpoint, recipe: Recipe) -> Question:
    """Raises ValueError, in a sentence, for a probe that the model cannot read."""
    config = checkpoint.config
    if isinstance(recipe.data.table, Digits):
        made = of_picture(probe, checkpoint, recipe.data.table.split)
    elif probe.text is None or checkpoint.tokenizer is None:
        raise ValueError("this model reads texts, and the probe is a picture; write a text.")
    else:
        ended = getattr(recipe.data.table, "ended", True)
        made = of_text(probe.text, probe.target, checkpoint, checkpoint.tokenizer, ended)
    check_size(made, config)
    return made


def of_picture(probe: Probe, checkpoint: Checkpoint, split: int) -> Question:
    if probe.picture is None:
        raise ValueError("this model reads pictures, and the probe is a text; choose a picture.")
    held_out = cut(split)
    if probe.picture >= len(held_out.test_labels):
        last = len(held_out.test_labels) - 1
        raise ValueError(f"the picture must be one of 0 to {last}, those held out, got {probe.picture}.")
    levels, label = held_out.test_images[probe.picture], int(held_out.test_labels[probe.picture])
    processor = checkpoint.processor
    if isinstance(processor, PalettePixels):
        pixels = levels.flatten().tolist()
        return Question(torch.tensor([[processor.start_id, *pixels]]), (*pixels, UNASKED))
    assert isinstance(processor, ImageProcessor)
    return Question(processor.levels_to_pixels(levels[None]), (label,))


def of_text(
    text: str, target: str | None, checkpoint: Checkpoint, tokenizer: Tokenizer, ended: bool = True
) -> Question:
    """`ended`: what a decoder writes behind a separator is closed by an end."""
    config = checkpoint.config
    read = encode_probe(text, tokenizer)
    if config.encoder is not None:
        return of_pair(read, target, checkpoint, tokenizer)
    if config.head.kind == "sequence":
        return Question(read, (class_of(target, checkpoint.labels),), pieces=read.pieces)
    if config.infill is not None:
        return of_gap(read, target, checkpoint, tokenizer)
    if config.head.kind != "language" or config.attention.mask == "full":
        return of_masked(read, target, checkpoint, tokenizer)
    separator = separator_of(tokenizer)
    if separator is None:
        return Question(read, (*read.ids[1:], UNASKED), pieces=read.pieces)
    return of_completion(read, target, separator, checkpoint.end_ids[: int(ended)], tokenizer)


def of_completion(
    read: Encoding, target: str | None, separator: int, end: tuple[int, ...], tokenizer: Tokenizer
) -> Question:
    """A source and what belongs behind it, in one text with the separator or as text and target."""
    written = () if target is None else encode_probe(target, tokenizer).ids
    if separator not in read.ids:
        return written_behind((*read.ids, separator), written, end, tokenizer)
    cut = read.ids.index(separator) + 1
    return written_behind(read.ids[:cut], (*read.ids[cut:], *written), end, tokenizer)


def of_pair(read: Encoding, target: str | None, checkpoint: Checkpoint, tokenizer: Tokenizer) -> Question:
    """Behind an encoder. Without a target what the model writes itself is what its decoder reads."""
    if checkpoint.config.rereads:
        return Question(read, (class_of(target, checkpoint.labels),), pieces=read.pieces)
    room = checkpoint.config.context  # the last token is written and not read
    if target is None:
        return Question(read, (), None, read.ids, min(room, len(read) + MORE), read.pieces)
    encode_probe(target, tokenizer)
    shifted = checkpoint.target(target)
    end = checkpoint.end_ids[0] if checkpoint.end_ids else UNASKED
    asked = (*shifted.ids[1:], end)
    return Question(read, asked, shifted, read.ids, min(room, len(asked) + MORE), read.pieces, shifted.pieces)


def of_gap(read: Encoding, target: str | None, checkpoint: Checkpoint, tokenizer: Tokenizer) -> Question:
    """Builds the question of a gap: what fills it stands behind the text, after its start token."""
    infill = checkpoint.config.infill
    assert infill is not None
    if read.ids.count(infill.mask) != 1:
        mark = tokenizer.piece(infill.mask)
        raise ValueError(f"the probe must have one gap, got {read.ids.count(infill.mask)}; put {mark} where it is.")
    span = () if target is None else encode_probe(target, tokenizer).ids
    return written_behind((*read.ids, infill.start), span, checkpoint.end_ids[:1], tokenizer)


def written_behind(
    prompt: tuple[int, ...], written: tuple[int, ...], end: tuple[int, ...], tokenizer: Tokenizer
) -> Question:
    """Builds the question of one stack, which reads `prompt` and then what is right to write, but for the last token
    that nothing follows; what is not `written` is not asked."""
    answers = (*written, *end) if written else (UNASKED,)
    ids = (*prompt, *answers)[: len(prompt) + len(answers) - 1]
    pieces = tuple(map(tokenizer.piece, ids))
    asked = (UNASKED,) * (len(prompt) - 1) + answers
    return Question(Encoding.from_ids(ids, pieces), asked, None, prompt, len(answers) + MORE, pieces)


def of_masked(read: Encoding, target: str | None, checkpoint: Checkpoint, tokenizer: Tokenizer) -> Question:
    """A guess at every position; asked are those that the text hides and the target shows, or the classes of its words,
    which the target names with spaces between them."""
    if target is None or checkpoint.config.head.kind == "span":
        return Question(read, (UNASKED,) * len(read), pieces=read.pieces)
    if checkpoint.config.head.over_classes:
        return Question(read, of_words(read, target.split(), checkpoint.labels), pieces=read.pieces)
    whole = encode_probe(target, tokenizer)
    if len(whole) != len(read):
        raise ValueError(
            f"the target must be the text with its hidden words shown, {count_words(len(read), 'token')}, "
            f"got {len(whole)}."
        )
    hidden = zip(read.ids, whole.ids, strict=True)
    asked = tuple(right if shown == tokenizer.mask_id else UNASKED for shown, right in hidden)
    return Question(read, asked, pieces=read.pieces)


def of_words(read: Encoding, names: list[str], labels: tuple[str, ...]) -> tuple[int, ...]:
    """The class of each word at its first token."""
    words = len(read.text.split())
    if len(names) != words:
        count = count_words(words, "class", "classes")
        raise ValueError(f"the target must name a class for each word, {count}, got {len(names)}.")
    found: list[int] = answers(read, [class_of(name, labels) for name in names]).tolist()
    return tuple(found)


def encode_probe(text: str, tokenizer: Tokenizer) -> Encoding:
    """Raises ValueError for a text without tokens, and for one with parts that the vocabulary lacks."""
    found = tokenizer.encode(text)
    if not len(found):
        raise ValueError("a probe needs at least one token, got none; write a longer text.")
    unknown = unknown_ids(tokenizer).tolist()
    lost = next((span for id, span in zip(found.ids, found.spans, strict=True) if id in unknown), None)
    if lost is not None:
        own = [piece for id, piece in enumerate(tokenizer.pieces) if id not in set(tokenizer.special_tokens.values())]
        raise ValueError(
            f"this model has no token for {text[slice(*lost)][:40]!r}; use what it was trained on, such as "
            f"{' '.join(own[:8])}."
        )
    return found


def class_of(name: str | None, labels: tuple[str, ...]) -> int:
    if name is None:
        return UNASKED
    if name not in labels:
        raise ValueError(f"the target must be one of {', '.join(labels)[:200] or 'no class'}, got {name[:40]!r}.")
    return labels.index(name)


def check_size(question: Question, config: ModelConfig) -> None:
    """Raises ValueError where the model, or a frame, has no room for it."""
    if isinstance(question.read, Tensor):
        return
    source, target = len(question.read), 0 if question.target is None else len(question.target)
    longest = max(source, target, (question.room if config.encoder is not None else 0))
    if longest > config.context:
        count = count_words(config.context, "token")
        raise ValueError(f"this model reads at most {count}, got {longest}; shorten the probe.")
    encoder = config.encoder.layers * config.encoder.attention.heads if config.encoder is not None else 0
    decoder = config.layers * config.attention.heads * (2 if encoder else 1)
    if (encoder + decoder) * longest**2 > CELLS:
        count = count_words(isqrt(CELLS // max(encoder + decoder, 1)), "token")
        raise ValueError(f"all heads of this model are watched on {count} at most, got {longest}; shorten it.")
