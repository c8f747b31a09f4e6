"""Texts and pictures to average over: what the shipped data give a model of any kind, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.data import sentences, translation
from engine.data.stories import story
from engine.edits import Edit
from engine.inputs.readers import (
    GAP,
    Reading,
    kind,
    pictures,
    read_infill,
    read_picture,
    read_pixels,
    read_text,
    read_translation,
    readable,
)
from engine.runtime.run import run
from engine.runtime.trace import Trace

UNSEEN = 20_260  # a seed that no recipe trains on
APART = 8  # tokens of a drawn text before it repeats itself
DRAWN = 32  # tokens of it in all
UNKNOWN = ("<unk>", "[UNK]")


def samples(checkpoint: Checkpoint, count: int, limit: int, seed: int = UNSEEN) -> Iterator[Reading]:
    """`count` of them, each of at most `limit` tokens: stories, pairs of passages, translations, gaps, digits.

    A model that cannot read English is given tokens drawn from its vocabulary, which repeat themselves after 8.
    """
    limit = min(limit, checkpoint.model.config.context)
    return (sample_input(checkpoint, index, limit, seed) for index in range(count))


def sample_runs(
    checkpoint: Checkpoint, count: int, limit: int, edits: Sequence[Edit], keep: Sequence[str]
) -> Iterator[Trace]:
    """A run of each of `samples`, under edits, of the hooks that match `keep`."""
    for reading in samples(checkpoint, count, limit):
        yield run(checkpoint.model, reading.read, keep, edits, target=reading.target)


def sample_input(checkpoint: Checkpoint, index: int, limit: int, seed: int) -> Reading:
    wanted = kind(checkpoint)
    if wanted in ("picture", "pixels"):
        image = pictures()[0][index % len(pictures()[0])]
        return read_picture(checkpoint, image) if wanted == "picture" else whole_picture(checkpoint, image, limit)
    made = translation.pair(seed, index)
    told = made.english if wanted == "translation" else story(seed, index)
    if not legible(checkpoint, told):
        return in_its_own_tokens(checkpoint, draw_text(checkpoint, index, min(limit, DRAWN), seed), limit)
    if wanted == "translation":
        return read_translation(checkpoint, told, made.french, limit)
    if wanted == "infill":
        return short_gap(checkpoint, index, limit, seed)
    if wanted == "text":
        return read_text(checkpoint, told, limit)
    pair = sentences.pair(seed, index)
    return read_text(checkpoint, pair.first, limit, pair.second)


def in_its_own_tokens(checkpoint: Checkpoint, text: str, limit: int) -> Reading:
    match kind(checkpoint):
        case "translation":
            return read_translation(checkpoint, text, "", limit)
        case "infill":
            return read_infill(checkpoint, text + GAP, "", limit)
        case _:
            return read_text(checkpoint, text, limit)


def short_gap(checkpoint: Checkpoint, index: int, limit: int, seed: int) -> Reading:
    """Keeps a few words on both sides, because a gap cannot be cut to a limit."""
    gap = sentences.span(seed, index)
    words, room = gap.span.split(" "), max(limit // 16, 1)
    before, after = gap.before.split(" ")[-room:], gap.after.split(" ")[:room]
    return read_infill(checkpoint, f"{' '.join(before)}{GAP}{' '.join(after)}", " ".join(words[:room]), limit)


def whole_picture(checkpoint: Checkpoint, image: Tensor, limit: int) -> Reading:
    """All of its pixels, and none that the model draws."""
    return read_pixels(checkpoint, image, limit, limit, {}, 0)


def legible(checkpoint: Checkpoint, text: str) -> bool:
    """True if at most one token in ten of a text is one that the model does not know."""
    if checkpoint.tokenizer is None or not readable(checkpoint, text):
        return False
    unknown = {checkpoint.tokenizer.special_tokens.get(name) for name in UNKNOWN}
    ids = checkpoint.tokenizer.encode(text).ids
    return sum(id in unknown for id in ids) <= len(ids) / 10


def draw_text(checkpoint: Checkpoint, index: int, length: int, seed: int) -> str:
    """A text of tokens drawn at random, none of them special."""
    tokenizer, size = checkpoint.tokenizer, checkpoint.model.config.vocab_size
    special = set() if tokenizer is None else set(tokenizer.special_tokens.values())
    free = [id for id in range(size) if id not in special]
    draw = Random(f"{seed}:{index}")
    ids = [draw.choice(free) for _ in range(APART)]
    ids = [ids[i % APART] for i in range(length)]
    return " ".join(map(str, ids)) if tokenizer is None else tokenizer.decode(ids)
