"""Handwritten digits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.task import DataKind, Subject
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.model.option import Option


@dataclass(frozen=True)
class Digits(DataKind):
    """The handwritten digits of `engine.data.digits`, cut by the seed `split` and not by the recipe's, so that models
    agree on what is held out.

    In training the share `moved` of the pictures is shifted (pixels), turned (`degrees`), resized (`scale`) and drawn
    with a thicker or thinner `stroke` (1: a pixel to each side), all at most so much; the share `inverted` is dark on
    light. `judge` is a shipped classifier that says what digit a completed picture shows.
    """

    split: int = field(default=0, metadata=Option(help="The seed that chooses which pictures are held out."))
    moved: float = field(
        default=1.0,
        metadata=Option(
            help="The share of pictures that is moved, turned, resized and drawn with another stroke, anew each time."
        ),
    )
    shift: float = field(default=1.0, metadata=Option(help="Pixels that a picture is moved at most."))
    degrees: float = field(default=10.0, metadata=Option(help="Degrees that a picture is turned at most."))
    scale: float = field(
        default=0.1,
        metadata=Option(help="How much larger or smaller a picture becomes at most, as a share of its size."),
    )
    stroke: float = field(
        default=0.0,
        metadata=Option(help="How much thicker or thinner strokes become at most; 1 is a pixel to each side."),
    )
    inverted: float = field(default=0.0, metadata=Option(help="The share of pictures that is shown dark on light."))
    judge: str = field(
        default="", metadata=Option(help="A shipped classifier that says what digit a completed picture shows.")
    )

    kind: ClassVar[str] = "digits"
    place: ClassVar[int] = 23
    subject: ClassVar[Subject] = "Pictures"
    pictures: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("moved", "inverted"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"data.digits.{name} must be a share in [0, 1], got {getattr(self, name)}.")
        for name in ("shift", "degrees", "scale", "stroke"):
            at_least(f"data.digits.{name}", getattr(self, name), 0)

    def check_tokenizer(self, tokenizer: TokenizerRecipe) -> None:
        if tokenizer != TokenizerRecipe():
            raise ValueError("data.tokenizer must be left out for digits, which are pictures.")


KIND = Digits
