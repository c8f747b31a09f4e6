"""What the page Generate draws: the prompt, how it is written on from, and what the model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.conversations.thinking import find_thinking_marks
from engine.generation.prompt import picture_pixels
from engine.generation.stopping import stopping_rules
from engine.inputs.processors import PalettePixels
from engine.inputs.readers import kind, unit
from engine.tokenizers import Tokenizer
from views.core.payload import pack
from views.generate.availability import missing_tabs, why_no_logits
from views.generate.session import GenerationContext, settings_header
from views.generate.steps import stop_header

LAST = 12  # tokens of a prompt that is too long
TRIED = 2000  # tokens of a vocabulary, in search of two words


def page_payload(writing: GenerationContext, notes: Mapping[str, Any]) -> bytes:
    """`palette`, colour channel in 0..1, is there for a model of pictures. Of a prompt that is longer than its model
    reads the last tokens are told, and how many there are."""
    checkpoint, prompt = writing.checkpoint, writing.prompt
    infill = checkpoint.config.infill
    header = {
        "trace": writing.digest,
        "model": writing.name,
        "kind": kind(checkpoint),
        "prompt": text_header(writing, prompt.ids, prompt.roles, None if prompt.fits else LAST),
        "thinking": [list(marks) for marks in find_thinking_marks(checkpoint.tokenizer)],
        "source": text_header(writing, prompt.source) if prompt.source and prompt.fits else None,
        "tokens": len(prompt.ids),
        "gap": None if infill is None else {"mask": infill.mask, "start": infill.start},
        "spaced": checkpoint.tokenizer is None or puts_spaces(checkpoint.tokenizer),
        "grid": grid(checkpoint),
        "ends": list(dict.fromkeys((*checkpoint.end_ids, *prompt.ends))),
        "left": prompt.tokens_left,
        "fits": prompt.fits,
        "follows": not why_no_logits(prompt),
        "missing": missing_tabs(prompt),
        "full": None if prompt.tokens_left > 0 else stop_header(stopping_rules(prompt).limit),
        "context": checkpoint.config.context,
        "vocab": checkpoint.config.outputs,
        "settings": settings_header(writing.settings),
        **notes,
    }
    return pack(header, palette(checkpoint))


def text_header(
    writing: GenerationContext, ids: Sequence[int], roles: Sequence[str] = (), last: int | None = None
) -> dict[str, Any]:
    """`last` is how many tokens of its end are told, None for all."""
    ids, roles = ids[-(last or len(ids)) :], roles[-(last or len(ids)) :]
    tokenizer = writing.checkpoint.tokenizer
    special = set() if tokenizer is None else set(tokenizer.special_tokens.values())
    return {
        "ids": list(ids),
        "pieces": [writing.piece(id) for id in ids],
        "special": [id in special for id in ids],
        "roles": list(roles),
    }


def puts_spaces(tokenizer: Tokenizer) -> bool:
    """Tells whether the tokenizer puts spaces between tokens, which then do not hold them."""
    special = set(tokenizer.special_tokens.values())
    backwards = reversed(range(min(TRIED, tokenizer.vocab_size)))
    words = list(islice((id for id in backwards if id not in special and is_word(tokenizer, id)), 2))
    return len(words) > 1 and " " in tokenizer.decode(words)


def is_word(tokenizer: Tokenizer, id: int) -> bool:
    piece, text = tokenizer.piece(id), tokenizer.decode([id])
    return piece == text and text.isalpha()


def grid(checkpoint: Checkpoint) -> dict[str, int] | None:
    """Layout of a picture's pixels, for a model that draws them one by one behind a start token."""
    pixels, processor = picture_pixels(checkpoint), checkpoint.processor
    if pixels is None or not isinstance(processor, PalettePixels):
        return None
    rows, columns = processor.image.size
    return {"rows": rows, "columns": columns, "pixels": pixels}


def palette(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Every colour that a pixel can have."""
    processor = checkpoint.processor
    if picture_pixels(checkpoint) is None or not isinstance(processor, PalettePixels):
        return {}
    rows, columns = processor.image.size
    pixels, count = rows * columns, checkpoint.config.outputs
    ids = torch.arange(-(-count // pixels) * pixels).clamp(max=count - 1).view(-1, rows, columns)
    found = torch.cat([unit(processor.picture(one.flatten())).flatten(0, 1) for one in ids])
    return {"palette": found[:count]}
