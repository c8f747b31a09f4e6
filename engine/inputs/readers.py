"""What a person gives a checkpoint to read: a text, two, a text and its target, a gap, a picture, a sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.conversations import Conversation, encode_conversation
from engine.data import digits
from engine.generation.generate import generate
from engine.generation.prompt import begin
from engine.inputs.pictures import Picture
from engine.inputs.processors import Floats, ImageProcessor, PalettePixels
from engine.inputs.sound import Waveform
from engine.model.config import ModelConfig
from engine.tokenizers.encoding import Encoding

Kind = Literal["text", "pair", "question", "translation", "infill", "picture", "pixels", "sound"]
GAP, SPAN = "[gMASK]", "[sop]"
TRIED = 100  # tokens of a vocabulary, in search of words that its model can read


@dataclass(frozen=True)
class Reading:
    """`read` is what the model is run on, `whole` the same before it was cut to the limit; `target` is the decoder's.

    `written` says that the model itself wrote the end of it. `picture` is height width channel in 0..1 with -1 where
    nothing is known, `original` the one that a completion began from, of which `given` pixels were shown.
    """

    read: Encoding | Tensor
    whole: Encoding | None = None
    target: Encoding | None = None
    written: bool = False
    picture: Tensor | None = None
    original: Tensor | None = None
    given: int = 0


def kind(checkpoint: Checkpoint) -> Kind:
    """Kind of input that this checkpoint reads."""
    config = checkpoint.model.config
    if config.embedding.sound is not None:
        return "sound"
    if config.encoder is not None and not config.rereads:
        return "translation"
    if config.infill is not None:
        return "infill"
    if config.embedding.patches is not None:
        return "picture"
    if isinstance(checkpoint.processor, PalettePixels):
        return "pixels" if config.generates else "picture"
    if checkpoint.tokenizer is None or not (config.embedding.segments > 1 or reads_whole(config)):
        return "text"
    return "question" if config.head.kind == "span" else "pair"


def reads_whole(config: ModelConfig) -> bool:
    """True if an encoder reads it, which sees two texts at once and says nothing behind them."""
    return config.rereads or config.attention.mask == "full"


def tokens(checkpoint: Checkpoint, text: str, pair: str = "") -> Encoding:
    """The text as tokens, or the ids it lists where there is no tokenizer.

    Raises ValueError for a word that is no number then, for an id that the model does not have, and as `check_length`.
    """
    check_length(text, pair)
    if checkpoint.tokenizer is not None:
        found = checkpoint.tokenizer.encode(text, pair) if pair.strip() else checkpoint.tokenizer.encode(text)
        return require_known_ids(checkpoint, fill_up(checkpoint, found))
    try:
        found = Encoding.from_ids(int(word) for word in text.replace(",", " ").split())
    except ValueError:
        raise ValueError("This model has no tokenizer, so its text must be token ids such as 12 7 40.") from None
    return require_known_ids(checkpoint, found)


def fill_up(checkpoint: Checkpoint, encoding: Encoding) -> Encoding:
    """`encoding`, cut and filled up to the context where the model was trained on such texts alone."""
    vector, length = checkpoint.model.config.vector, checkpoint.model.config.context
    if vector is None or vector.filled is None or not len(encoding):
        return encoding
    cut = encoding.truncate(length)
    made = with_ids(checkpoint, cut, [*cut.ids, *[vector.filled] * (length - len(cut))])
    return replace(made, special=(*cut.special, *[True] * (length - len(cut))))


def check_length(*texts: str) -> None:
    """Before any of it is cut into tokens. Raises ValueError for more characters than the budget allows."""
    count = sum(map(len, texts))
    if count > budget.max_characters:
        raise ValueError(f"A text must have at most {budget.max_characters:,} characters, got {count:,}; shorten it.")


def require_known_ids(checkpoint: Checkpoint, encoding: Encoding) -> Encoding:
    """`encoding`, whose ids the model all has. Raises ValueError otherwise: a tokenizer may have more."""
    size = checkpoint.model.config.vocab_size
    wrong = next((i for i, id in enumerate(encoding.ids) if not 0 <= id < size), None)
    if wrong is None:
        return encoding
    piece, id = encoding.pieces[wrong], encoding.ids[wrong]
    raise ValueError(f"This model has the tokens 0 to {size - 1:,}, and “{piece}” is {id:,}; leave that out.")


def readable(checkpoint: Checkpoint, text: str, second: str = "", whole: bool = False) -> bool:
    """True if `tokens` makes any of it; with `whole`, no more of it than the model reads, of which it knows most."""
    try:
        found = tokens(checkpoint, text, second)
    except ValueError:
        return False
    fits = len(found) <= checkpoint.model.config.context and knows_most(checkpoint, found)
    return bool(found) and (fits or not whole)


def knows_most(checkpoint: Checkpoint, read: Encoding) -> bool:
    """True if at most half of the tokens stand for what the vocabulary lacks."""
    unknown = checkpoint.tokenizer.unknown_id if checkpoint.tokenizer else None
    return unknown is None or 2 * read.ids.count(unknown) <= len(read)


def own_words(checkpoint: Checkpoint) -> str:
    """The first few tokens of a vocabulary that make a text, as far as the model has what their text is cut into."""
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        return "0 1 2 3"
    special = set(tokenizer.special_tokens.values())
    ids = [id for id in range(min(TRIED, tokenizer.vocab_size)) if id not in special]
    alone = [word for id in ids if readable(checkpoint, word := tokenizer.decode([id], special=False).strip())]
    several = (tokenizer.decode(ids[:6], special=False), " ".join(alone[:4]), *alone)
    return next((text for text in several if text.strip() and readable(checkpoint, text)), "")


def read_text(checkpoint: Checkpoint, text: str, limit: int, second: str = "") -> Reading:
    """Reads a text, or two, cut to `limit` tokens within its marks; the target is the text again where the decoder
    rereads it."""
    whole = tokens(checkpoint, text, second)
    read = whole.truncate(limit)
    if not read or not checkpoint.model.config.rereads:
        return Reading(read, whole)
    again = shift_target(checkpoint, read.ids[:-1])
    return Reading(read, whole, replace(again, special=(True, *read.special[:-1])))


def read_conversation(checkpoint: Checkpoint, conversation: Conversation, limit: int) -> Reading:
    """Reads a conversation up to where the next turn begins, or as far as the assistant's last one goes, cut to `limit`
    tokens. Raises ValueError as `encode_conversation`."""
    found = encode_conversation(checkpoint, conversation, continue_final_message=conversation.is_open)
    whole = require_known_ids(checkpoint, found.encoding)
    return Reading(whole.truncate(limit), whole)


def read_translation(checkpoint: Checkpoint, text: str, target: str, limit: int) -> Reading:
    """An empty `target` is written by the model, greedily."""
    whole = tokens(checkpoint, text)
    source = whole.truncate(limit)
    if target.strip():
        return Reading(source, whole, given_target(checkpoint, target).truncate(limit))
    if not source:
        return Reading(source, whole)
    steps = generate(checkpoint, source, max_tokens=limit - 1, greedy=True)
    ids = [step.id for step in steps if step.id not in checkpoint.end_ids]
    return Reading(source, whole, shift_target(checkpoint, ids), written=True)


def read_sound(checkpoint: Checkpoint, sound: Waveform, target: str, limit: int) -> Reading:
    """Frames of a sound and its transcript of at most `limit` tokens; an empty `target` is written by the model,
    greedily, after those with which the checkpoint begins."""
    given = tokens(checkpoint, target).ids if target.strip() and checkpoint.tokenizer is None else target
    prompt = begin(checkpoint, sound, given if target.strip() else None)
    ids, written = prompt.ids, not target.strip()
    if written:
        steps = generate(
            checkpoint, prompt, max_tokens=max(min(limit - len(ids), prompt.tokens_left - 1), 0), greedy=True
        )
        ids = (*ids, *(step.id for step in steps if step.id not in checkpoint.end_ids))
    assert prompt.sound is not None
    return Reading(prompt.sound, target=shift_target(checkpoint, ids[1:]).truncate(limit), written=written)


def given_target(checkpoint: Checkpoint, text: str) -> Encoding:
    if checkpoint.tokenizer is None:
        return shift_target(checkpoint, tokens(checkpoint, text).ids)
    check_length(text)
    return require_known_ids(checkpoint, checkpoint.target(text))


def shift_target(checkpoint: Checkpoint, ids: list[int] | tuple[int, ...]) -> Encoding:
    """The decoder's input for a target of these ids: shifted right behind the start token."""
    start = checkpoint.model.config.encoder
    whole = [start.start if start else 0, *ids]
    pieces = None if checkpoint.tokenizer is None else [checkpoint.tokenizer.piece(id) for id in whole]
    return Encoding.from_ids(whole, pieces)


def read_infill(checkpoint: Checkpoint, text: str, span: str, limit: int) -> Reading:
    """An empty `span` is written by the model, greedily. Raises ValueError for a text without a gap or too long."""
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        whole = tokens(checkpoint, text)
        return Reading(whole.truncate(limit), whole)
    if GAP not in text and text.strip():
        raise ValueError(f"Expected a gap to fill, got a text without one; write {GAP} where words are missing.")
    check_length(text, span)
    whole = require_known_ids(checkpoint, tokenizer.encode(f"{text}{SPAN}{span}"))
    if len(whole) > limit:  # a cut would take the mark with it that the span begins with
        raise ValueError(f"Expected at most {limit} tokens with what fills the gap, got {len(whole)}; shorten it.")
    if span or not text.strip():
        return Reading(whole.truncate(limit), whole)
    ends = set(checkpoint.end_ids)
    steps = generate(checkpoint, whole.truncate(limit), max_tokens=max(limit - len(whole), 0), greedy=True)
    ids = [*whole.ids, *(step.id for step in steps if step.id not in ends)]
    return Reading(with_ids(checkpoint, whole, ids).truncate(limit), whole, written=True)


def with_ids(checkpoint: Checkpoint, encoding: Encoding, ids: list[int]) -> Encoding:
    """`encoding` continued by the ids behind its own, which come from no text."""
    tokenizer, more = checkpoint.tokenizer, ids[len(encoding) :]
    pieces = [f"#{id}" if tokenizer is None else tokenizer.piece(id) for id in more]
    end = (len(encoding.text), len(encoding.text))
    return Encoding(
        text=encoding.text,
        ids=(*encoding.ids, *more),
        pieces=(*encoding.pieces, *pieces),
        spans=(*encoding.spans, *(end for _ in more)),
        special=(*encoding.special, *(False for _ in more)),
        segments=(*encoding.segments, *(0 for _ in more)),
    )


@lru_cache(maxsize=1)
def pictures() -> tuple[Tensor, Tensor]:
    """Digits that no shipped model was trained on: images (image height width, in 0..1) and what they show."""
    held_out = digits.split(0)
    return held_out.test_images / (digits.LEVELS - 1), held_out.test_labels


def read_picture(checkpoint: Checkpoint, image: Picture, limit: int | None = None) -> Reading:
    """Reads it whole.

    Where each pixel is a token they are all read, without the start token, as transformers gives them to ImageGPT's
    classifier. Raises ValueError where they are more than `limit`: of a part of a picture the model would say another
    thing.
    """
    processor = checkpoint.processor
    if isinstance(processor, PalettePixels):
        most = budget.max_tokens if limit is None else limit
        return read_whole(checkpoint, processor.ids(image).flatten(), processor, most)
    if not isinstance(processor, ImageProcessor):
        raise ValueError("This checkpoint reads pictures and says nothing of how; add its preprocessor_config.json.")
    pixels = processor.pixels(image)
    return Reading(pixels, picture=unit(processor.picture(pixels[0])))


def read_whole(checkpoint: Checkpoint, ids: Tensor, processor: PalettePixels, limit: int) -> Reading:
    """A picture, pos, as the text that its pixels are."""
    count, context, side = len(ids), checkpoint.model.config.context, processor.image.size[1]
    if count > context:
        raise ValueError(
            f"This model reads at most {context:,} pixels, and by its preprocessor_config.json a picture has "
            f"{count:,}; correct size there."
        )
    if count > limit:
        raise ValueError(
            f"This model reads a picture whole, all {count:,} pixels, and at most {limit:,} are drawn here; "
            "raise that with LOUPE_MAX_TOKENS."
        )
    read = Encoding.from_ids(ids.tolist(), [row_and_column(i, side) for i in range(count)])
    return Reading(require_known_ids(checkpoint, read), read, picture=unit(processor.picture(ids)))


def unit(values: Floats) -> Tensor:
    """height width channel in 0..1, -1 where there is nothing."""
    picture = torch.from_numpy(values)
    with_channel = picture[..., None] if picture.dim() == 2 else picture
    return with_channel.nan_to_num(-1.0).clamp(-1.0, 1.0)


def read_pixels(
    checkpoint: Checkpoint, image: Picture, given: int, limit: int, settings: Mapping[str, float | int], seed: int
) -> Reading:
    """The first `given` pixels of `image`, and the rest as the model draws it, as far as `limit` tokens go.

    `settings` are those of `generate`.
    """
    processor = checkpoint.processor
    if not isinstance(processor, PalettePixels):
        raise ValueError("This checkpoint reads a palette's colours and has none; add its preprocessor_config.json.")
    ids = processor.ids(image).flatten()
    start = processor.start_id
    given = min(given, limit - 1)
    drawn = [start, *ids[:given].tolist()]
    left = min(len(ids), limit) - given
    steps = generate(checkpoint, drawn, max_tokens=left, seed=seed, stop_at_end=False, **settings)  # type: ignore[arg-type]
    drawn += [step.id for step in steps] if left else []
    side = processor.image.size[1]
    names = ["start", *(row_and_column(i, side) for i in range(len(ids)))][: len(drawn)]
    read = Encoding.from_ids(drawn[:limit], names[:limit])
    known = processor.picture(drawn[1:])
    return Reading(read, read, written=True, picture=unit(known), original=unit(processor.picture(ids)), given=given)


def row_and_column(cell: int, side: int) -> str:
    """Row and column of a cell of a picture, from 1."""
    return f"{cell // side + 1}, {cell % side + 1}"
