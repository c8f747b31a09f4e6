"""Protocol of every tokenizer, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from engine.tokenizers.encoding import Encoding


class Tokenizer(Protocol):
    @property
    def kind(self) -> str:
        """ "char", "word", "byte", "bpe", "wordpiece" or "unigram"."""

    @property
    def vocab_size(self) -> int:
        """The highest id plus one: the rows that an embedding needs."""

    @property
    def pieces(self) -> tuple[str, ...]:
        """The whole vocabulary as it is drawn, by id."""

    @property
    def special_tokens(self) -> dict[str, int]: ...

    @property
    def end_id(self) -> int | None:
        """The token after which generation stops."""

    @property
    def mask_id(self) -> int | None:
        """The token that stands for one to be guessed, such as [MASK]; None where there is none."""

    @property
    def cls_id(self) -> int | None:
        """The token in front of a text, at which the whole text is classified."""

    @property
    def sep_id(self) -> int | None:
        """The token that closes a text, and so separates two."""

    @property
    def pad_id(self) -> int | None:
        """The token that fills rows of a batch up to one length."""

    @property
    def unknown_id(self) -> int | None:
        """The token that stands for what the vocabulary lacks."""

    def encode(self, text: str, pair: str | None = None, *, special: bool = True) -> Encoding:
        """Cut a text into tokens.

        `pair` is a second text, joined to the first in the way of the tokenizer: [CLS] A [SEP] B [SEP]. A tokenizer
        that has no way of its own puts the one after the other. `special=False` leaves out the tokens that it adds,
        such as [CLS] and [SEP]; a special token that is typed counts all the same.
        """

    def ids(self, text: str, *, special: bool = True) -> list[int]:
        """Ids of `encode` alone, which take a fraction of the time: for a corpus."""

    @property
    def of_targets(self) -> Tokenizer:
        """The tokenizer of what an encoder-decoder writes: another where source and target have one each (Marian)."""

    def decode(self, ids: Iterable[int], *, special: bool = True) -> str:
        """Join tokens to a text. `special=False` leaves out special tokens; an unknown id reads "#17"."""

    def to_bytes(self, ids: Iterable[int]) -> bytes:
        """The text with its special tokens in UTF-8, where it is cut within a character too."""

    def piece(self, id: int) -> str:
        """Drawing of a token; an id outside the vocabulary is "#17"."""

    def save(self, path: Path) -> None:
        """Writes `tokenizer.json`, and beside it `tokenizer_config.json`, into the folder `path`."""
