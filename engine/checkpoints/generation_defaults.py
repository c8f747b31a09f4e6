"""What a checkpoint asks for when it writes: tokens that it forces and forbids, and settings where nobody gives others.

Names are those of transformers' GenerationConfig, whose file has all of them in one table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeVar

from engine.plurals import count_words

T = TypeVar("T")
Ids = tuple[int, ...]


@dataclass(frozen=True)
class Constraints:
    """Changes of the logits that hold whatever the settings of sampling. Lengths count tokens: `min_length` with the
    prompt (behind an encoder the target's), `min_new_tokens`, which counts before it, without."""

    forced_bos_token_id: int | None = None
    forced_eos_token_id: Ids | None = None
    bad_words_ids: tuple[Ids, ...] = ()
    suppress_tokens: Ids = ()
    begin_suppress_tokens: Ids = ()
    sequence_bias: tuple[tuple[Ids, float], ...] = ()
    no_repeat_ngram_size: int = 0
    encoder_no_repeat_ngram_size: int = 0
    encoder_repetition_penalty: float = 1.0
    exponential_decay_length_penalty: tuple[int, float] | None = None
    min_length: int = 0
    min_new_tokens: int | None = None

    @property
    def names(self) -> list[str]:
        """Names of those that ask for something."""
        return [one.name for one in fields(self) if getattr(self, one.name) != one.default]


@dataclass(frozen=True)
class EndDefaults:
    """Ends of a text. `max_length` counts the prompt's tokens too (behind an encoder the target's), and
    `max_new_tokens`, which counts before it, does not."""

    max_length: int | None = None
    max_new_tokens: int | None = None
    stop_strings: tuple[str, ...] = ()

    def room(self, tokens: int) -> int | None:
        """Number of tokens to write after a prompt of so many `tokens`; None where it does not say. Raises ValueError
        for a prompt that leaves no room in `max_length`."""
        if self.max_new_tokens is not None or self.max_length is None:
            return self.max_new_tokens
        if tokens >= self.max_length:
            raise ValueError(
                f"the checkpoint's max_length, {self.max_length}, counts the prompt too, which has "
                f"{count_words(tokens, 'token')} and leaves no room to write; say how many to write (max_tokens)."
            )
        return self.max_length - tokens


@dataclass(frozen=True)
class SamplingDefaults:
    """Settings of sampling, None where the checkpoint says nothing."""

    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None


@dataclass(frozen=True)
class BeamDefaults:
    """Settings of beam search, None where the checkpoint says nothing."""

    num_beams: int | None = None
    length_penalty: float | None = None
    early_stopping: bool | Literal["never"] | None = None
    renormalize_logits: bool = False


@dataclass(frozen=True)
class TranscriptDefaults:
    """How what is written of a sound begins, where nobody says: `forced_decoder_ids` are pairs of a position and the
    token there, None for the language that is heard; or the ids of a `language` and a `task` by name (Radford et al.
    2023, section 2.3)."""

    forced_decoder_ids: tuple[tuple[int, int | None], ...] = ()
    lang_to_id: Mapping[str, int] = field(default_factory=dict)
    task_to_id: Mapping[str, int] = field(default_factory=dict)
    no_timestamps_token_id: int | None = None
    language: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class GenerationDefaults:
    constraints: Constraints = Constraints()
    end: EndDefaults = EndDefaults()
    sampling: SamplingDefaults = SamplingDefaults()
    beams: BeamDefaults = BeamDefaults()
    transcript: TranscriptDefaults = TranscriptDefaults()

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> GenerationDefaults:
        """Settings by the keys of the file; what is no key of it is left out."""
        kinds: tuple[Any, ...] = (Constraints, EndDefaults, SamplingDefaults, BeamDefaults, TranscriptDefaults)
        keys = ([key.name for key in fields(kind) if key.name in table] for kind in kinds)
        return cls(*(kind(**{key: table[key] for key in own}) for kind, own in zip(kinds, keys, strict=True)))

    @property
    def table(self) -> dict[str, Any]:
        """All settings by the keys of the file."""
        return {key: value for part in asdict(self).values() for key, value in part.items()}


def choose_setting(given: T | None, own: T | None, usual: T) -> T:
    """A setting: what is `given`, else what the checkpoint asks for, else what is `usual`."""
    return given if given is not None else usual if own is None else own
