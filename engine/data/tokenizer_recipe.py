"""The table [data.tokenizer] of a recipe: how texts are cut into tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.data.bounds import at_least
from engine.model.option import Option
from engine.tokenizers import tokenizer_kinds
from engine.tokenizers.kind import TokenizerKind


@dataclass(frozen=True)
class TokenizerRecipe:
    """Learned from `sample` documents of the training data, the first ones, or of a person's rows some drawn from all;
    `vocab_size` includes the special tokens, which are those that the task needs and `special_tokens`, found whole
    wherever a text has them.
    """

    kind: str = field(
        default="bpe",
        metadata=Option(
            help="What a token is: a character, a word, a byte, or a learned piece of a word.", choices=tokenizer_kinds
        ),
    )
    vocab_size: int | None = field(
        default=None,
        metadata=Option(
            help="Different tokens, the special ones included. Empty: each kind’s own.", title="vocabulary size"
        ),
    )
    sample: int = field(default=5_000, metadata=Option(help="The tokenizer learns from that many of the documents."))
    special_tokens: tuple[str, ...] = field(
        default=(),
        metadata=Option(help="Tokens of your own beside those that the task needs, with commas between them."),
    )

    @property
    def declared(self) -> TokenizerKind:
        return tokenizer_kinds()[self.kind]

    def __post_init__(self) -> None:
        if self.kind not in tokenizer_kinds():
            known = ", ".join(tokenizer_kinds())
            raise ValueError(f"data.tokenizer.kind must be one of {known}, got {self.kind!r:.80}.")
        bad = next((name for name in self.special_tokens if not name.strip() or name != name.strip()), None)
        if bad is not None or len(set(self.special_tokens)) != len(self.special_tokens):
            raise ValueError(
                "data.tokenizer.special_tokens must be different names without spaces around them, got "
                f"{list(self.special_tokens)}."
            )
        at_least("data.tokenizer.sample", self.sample, 1)
