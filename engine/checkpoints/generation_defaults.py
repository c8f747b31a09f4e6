"""What a checkpoint asks for when it writes: tokens that it forces and forbids, and settings where nobody gives others.

Names are those of transformers' GenerationConfig.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from engine.plurals import count_words

Ids = tuple[int, ...]


@dataclass(frozen=True)
class GenerationDefaults:
    """Settings of a checkpoint, None where it says nothing. Lengths count tokens: `min_length` and `max_length` with
    the prompt (behind an encoder the target's), the `new` ones without; these count before those."""

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
    max_length: int | None = None
    max_new_tokens: int | None = None
    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    num_beams: int | None = None
    length_penalty: float | None = None
    early_stopping: bool | Literal["never"] | None = None
    renormalize_logits: bool = False
    stop_strings: tuple[str, ...] = ()

    @property
    def constrains(self) -> bool:
        """True where it changes logits by itself, whatever the settings of sampling."""
        return any(getattr(self, name) != getattr(NOTHING, name) for name in CONSTRAINTS)

    def value(self, name: str, given: Any, usual: Any) -> Any:
        """A setting: what is `given`, else what the checkpoint asks for, else what is `usual`."""
        own = getattr(self, name)
        return given if given is not None else usual if own is None else own

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


NOTHING = GenerationDefaults()
CONSTRAINTS = ("forced_bos_token_id", "forced_eos_token_id", "bad_words_ids", "suppress_tokens",
               "begin_suppress_tokens", "sequence_bias", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
               "encoder_repetition_penalty", "exponential_decay_length_penalty", "min_length",
               "min_new_tokens")  # fmt: skip
