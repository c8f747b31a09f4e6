"""What a text is written from: what the encoder reads, what the decoder reads first, and how the result is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.conversations import Conversation, encode_conversation, find_turn_ends
from engine.inputs.processors import PalettePixels
from engine.inputs.sound import SoundProcessor, Waveform
from engine.model.config import Infill, ModelConfig
from engine.model.layers.cache import KVCache
from engine.runtime.batch import batch
from engine.tokenizers.encoding import Encoding

if TYPE_CHECKING:
    from engine.checkpoints import Checkpoint

Text = str | Encoding | Sequence[int] | Tensor | Waveform
TOKENS = 50  # written where nobody says how many
LAST = slice(-1, None)


@dataclass(frozen=True)
class Prompt:
    """`ids` is what the decoder reads before it writes, start tokens included; `source` what an encoder reads, or
    `sound`, 1 mel frame. Of a model that writes nothing they are its text, and `segments` those of a pair. `ends` are
    tokens that end what is written besides those of the checkpoint: in a conversation the one that ends a turn; `roles`
    are then whose turn each token is part of.
    """

    checkpoint: Checkpoint
    ids: tuple[int, ...]
    source: tuple[int, ...] = ()
    segments: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    roles: tuple[str, ...] = ()
    sound: Tensor | None = field(default=None, compare=False, repr=False)

    @property
    def encoder_input(self) -> Tensor | None:
        """What an encoder reads, ids or frames, as a batch of one; None for a model of one stack."""
        if self.sound is not None:
            return self.sound
        return torch.tensor([self.source]) if self.source else None

    @property
    def source_length(self) -> int:
        """Number of positions of the encoder."""
        sound = self.checkpoint.config.embedding.sound
        return len(self.source) if sound is None else sound.positions

    @property
    def tokens_left(self) -> int:
        """Number of tokens that may still be written.

        The last one follows from the logits at the last position of the context and takes no position itself, as no
        model reads it. A picture is full with its last pixel.
        """
        pixels = picture_pixels(self.checkpoint)
        return (self.checkpoint.config.context if pixels is None else pixels) + 1 - len(self.ids)

    @property
    def fits(self) -> bool:
        """True if the model can read all of it."""
        return max(len(self.ids), len(self.source)) <= self.checkpoint.config.context

    def room(self, max_tokens: int | None) -> int:
        """Number of tokens to write: at most `max_tokens` (None: as many as the checkpoint asks for, else 50, or the
        rest of the picture), and `tokens_left`."""
        if max_tokens is not None and max_tokens < 0:
            raise ValueError(f"max_tokens must be 0 or more, got {max_tokens}.")
        wanted = TOKENS if picture_pixels(self.checkpoint) is None else self.tokens_left
        own = self.checkpoint.writing.end.room(len(self.ids)) if max_tokens is None else max_tokens
        return min(self.tokens_left, wanted if own is None else own)


class Reader:
    """A model reading a prompt and what is written behind it; `room` is how many tokens will be written.

    Of the positions it reads, `at` are those that are followed to the model's end.
    """

    def __init__(self, prompt: Prompt, room: int, at: slice = LAST) -> None:
        self.model = model = prompt.checkpoint.model
        self.at, self.device = at, model.device
        source = prompt.encoder_input
        self.source = None if source is None else source.to(self.device)
        length = len(prompt.ids) + max(room - 1, 0)  # the last token is written and not read
        self.cache = KVCache(model.config, 1, length, next(model.parameters()), prompt.source_length)

    def read(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """batch vocab: the logits of what follows, once each row of the batch has read its new ids."""
        new = torch.tensor(rows, device=self.device)
        if self.source is None:
            return self.model(new, cache=self.cache, logits_at=self.at)[:, -1]
        return self.model(self.source, target=new, cache=self.cache, logits_at=self.at)[:, -1]

    def reorder(self, rows: Sequence[int]) -> None:
        """Reorders the rows as `KVCache.reorder` does."""
        self.cache.reorder(torch.tensor(rows, device=self.device))


def begin(
    checkpoint: Checkpoint, prompt: Text | Conversation | Prompt, target: Text | None = None, longer: bool = False
) -> Prompt:
    """Raises ValueError for a model that writes no text, and for a prompt or target that it cannot read. With `longer`
    they may be longer than what it reads: nothing is written behind such a prompt, and `surprise` reads it in windows.
    Of a conversation the next turn is written, or the last one continued where it is the assistant's; a Prompt is taken
    as it is.
    """
    config = checkpoint.config
    check_generates(config)
    if isinstance(prompt, Prompt):
        return prompt
    if isinstance(prompt, Conversation):
        said = encode_conversation(checkpoint, prompt, continue_final_message=prompt.is_open).encoding
        ends = find_turn_ends(checkpoint, prompt.template)
        return replace(begin(checkpoint, said.ids, target, longer), ends=ends, roles=said.roles)
    if config.encoder is not None and config.embedding.sound is not None:
        return begin_transcript(checkpoint, prompt, target)
    if config.encoder is not None:
        source = ids_of(checkpoint, prompt)
        check_ids(checkpoint, source, longer)
        begun = checkpoint.target(target) if isinstance(target, str) else () if target is None else target
        ids = led(config.encoder.start, ids_of(checkpoint, begun))
    elif target is not None:
        raise ValueError("a target is for an encoder-decoder, and this model has one stack; leave the target out.")
    else:
        source, ids = (), decoder_ids(checkpoint, prompt)
    check_ids(checkpoint, ids, longer)
    return Prompt(checkpoint, ids, source)


def begin_transcript(checkpoint: Checkpoint, sound: Text, target: Text | None) -> Prompt:
    """What is written of a sound begins with `target`, before which language and task stand as the checkpoint asks
    where it is plain text."""
    start = checkpoint.config.encoder
    assert start is not None
    prompt = Prompt(checkpoint, (start.start,), sound=frames_of(checkpoint, sound))
    if target is None:
        return replace(prompt, ids=transcript_start(prompt))
    begun = checkpoint.target(target) if isinstance(target, str) else target
    ids = led(start.start, ids_of(checkpoint, begun))
    if isinstance(begun, Encoding) and not any(begun.special[1:2]):  # plain text
        ids = (*transcript_start(prompt), *ids[1:])
    check_ids(checkpoint, ids, longer=False)
    return replace(prompt, ids=ids)


def frames_of(checkpoint: Checkpoint, sound: Text) -> Tensor:
    """1 mel frame. Raises ValueError for what is no sound, or where the checkpoint does not say how it hears."""
    if isinstance(sound, Waveform):
        if not isinstance(checkpoint.processor, SoundProcessor):
            raise ValueError("This checkpoint reads sounds and says nothing of how; add its preprocessor_config.json.")
        sound = checkpoint.processor.mel(sound)
    if not isinstance(sound, Tensor):
        raise ValueError("this model hears a sound, and got a text; give it one that `open_sound` opened.")
    checkpoint.model.check(sound)
    if len(sound) != 1:
        raise ValueError(f"generation must get one sound, got {len(sound)}; call it once for each.")
    return sound


def transcript_start(prompt: Prompt) -> tuple[int, ...]:
    """The start token, language, task and that no times are wanted, as the checkpoint asks, or as transformers has it
    where that leaves something open: the language is the likeliest that is heard."""
    asked, ids = prompt.checkpoint.writing.transcript, list[int | None](prompt.ids)
    if asked.language is None and asked.task is None:
        forced = dict(asked.forced_decoder_ids)
        while len(ids) in forced:
            ids.append(forced[len(ids)])
    language = None
    if asked.language is not None:
        token = asked.language if asked.language.startswith("<") else f"<|{asked.language}|>"
        if token not in asked.lang_to_id:
            raise ValueError(f"the checkpoint's language must be one of its lang_to_id, got {token}; give a target.")
        language = asked.lang_to_id[token]
    elif asked.lang_to_id and (len(ids) == 1 or ids[1] is None):
        heard, known = follows(prompt), sorted(asked.lang_to_id.values())
        language = known[int(heard[known].argmax())]
    ids[1:2] = ids[1:2] if language is None else [language]
    task = asked.task or ("transcribe" if asked.language is not None else None)
    if task is not None and task in asked.task_to_id:
        ids = [id for id in ids if id not in asked.task_to_id.values()] + [asked.task_to_id[task]]
    if asked.no_timestamps_token_id not in (None, ids[-1]):
        ids.append(asked.no_timestamps_token_id)
    return tuple(id for id in ids if id is not None)


def check_ids(checkpoint: Checkpoint, ids: Sequence[int], longer: bool) -> None:
    """Raises ValueError for ids that the model does not have and, unless they may be `longer`, for too many."""
    at_once = max(1, checkpoint.config.context - 1) if longer else max(1, len(ids))
    for some in torch.tensor([list(ids)]).split(at_once, dim=1):
        checkpoint.model.check_tokens(some)


@torch.inference_mode()
def follows(prompt: Prompt) -> Tensor:
    """vocab: the logits of what follows the last ids of a decoder's prompt, as many as the model reads."""
    last = replace(prompt, ids=prompt.ids[-prompt.checkpoint.config.context :])
    return Reader(last, 1).read([last.ids])[0]


def check_generates(config: ModelConfig) -> None:
    if config.generates:
        return
    kind = config.head.kind
    if config.attention.mask == "full" and kind in ("language", "masked"):
        raise ValueError(
            "this model reads every text in both directions, so it cannot continue one; use a causal model."
        )
    raise ValueError(f'this model has the head "{kind}", which writes no text; use a model with the head "language".')


def decoder_ids(checkpoint: Checkpoint, prompt: Text) -> tuple[int, ...]:
    """The prompt, with the start token of a picture or of a span where it lacks one."""
    config, ids = checkpoint.config, ids_of(checkpoint, prompt)
    start, infill = picture_start(config), config.infill
    if start is not None:
        return led(start, ids)
    if infill is None or infill.start in ids:
        return ids
    if infill.mask not in ids:
        mark = decode_ids(checkpoint, (infill.mask,))
        raise ValueError(f"this model fills a gap, and the prompt has none; put {mark} where text is missing.")
    return (*ids, infill.start)


def ids_of(checkpoint: Checkpoint, text: Text) -> tuple[int, ...]:
    """Prompt of a text with what the tokenizer puts around it."""
    if isinstance(text, Waveform):
        raise ValueError("this model reads a text, and got a sound; use a model that hears, such as a Whisper.")
    if isinstance(text, str):
        if checkpoint.tokenizer is None:
            raise ValueError("this checkpoint has no tokenizer, so its prompt must be a list of token ids, got text.")
        text = checkpoint.tokenizer.encode(text)
    if not isinstance(text, Tensor) and not len(text):
        return ()
    ids, _, _ = batch(text, torch.device("cpu"))
    if len(ids) != 1:
        raise ValueError(f"generation must get one text, got {len(ids)}; call it once for each.")
    return tuple(ids[0].tolist())


def led(start: int, ids: tuple[int, ...]) -> tuple[int, ...]:
    return ids if ids[:1] == (start,) else (start, *ids)


def picture_start(config: ModelConfig) -> int | None:
    """The token before a picture's first pixel (ImageGPT), which is read and never written; None for texts."""
    last = config.vocab_size - 1
    return last if config.head.outputs == last else None


def picture_pixels(checkpoint: Checkpoint) -> int | None:
    """Number of pixels of a whole picture; None for a model of texts. ImageGPT reads as many as its context holds."""
    if picture_start(checkpoint.config) is None:
        return None
    size = checkpoint.processor.image.size if isinstance(checkpoint.processor, PalettePixels) else None
    return checkpoint.config.context if size is None else size[0] * size[1]


def text_of(checkpoint: Checkpoint, ids: Sequence[int]) -> str:
    """Text that a decoder has read and written, start token and prompt included, as a person would see it.

    Behind an encoder that is the target alone, without special tokens. A gap is replaced by the span that fills it,
    marks and end left out. A picture's start token is left out. Any other text keeps its special tokens.
    """
    config, ids = checkpoint.config, tuple(ids)
    if config.encoder is not None:
        return decode_ids(checkpoint, ids[1:], special=False)
    if config.infill is not None:
        return decode_ids(checkpoint, fill_gaps(ids, config.infill, checkpoint.end_ids))
    return decode_ids(checkpoint, ids if picture_start(config) is None else ids[1:])


def decode_ids(checkpoint: Checkpoint, ids: Sequence[int], special: bool = True) -> str:
    """Decoded; the ids themselves where there is no tokenizer."""
    tokenizer = checkpoint.tokenizer
    return " ".join(map(str, ids)) if tokenizer is None else tokenizer.decode(ids, special=special)


def fill_gaps(ids: tuple[int, ...], infill: Infill, ends: Sequence[int]) -> tuple[int, ...]:
    """The text before the first span with its n-th gap replaced by the n-th span; a gap without one stays marked.

    A span beyond the last gap fills that one too, as it does for the model.
    """
    end = ids.index(infill.start) if infill.start in ids else len(ids)
    text, spans = ids[:end], list[list[int]]()
    for id in ids[end:]:
        if id != infill.start:
            spans[-1].extend(() if id in ends else (id,))
        elif len(spans) < max(text.count(infill.mask), 1):
            spans.append([])
    waiting = iter(spans)
    parts = [next(waiting, [id]) if id == infill.mask else [id] for id in text]
    return tuple(chain(*parts, *waiting))
