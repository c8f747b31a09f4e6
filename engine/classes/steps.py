"""What a class is asked, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from engine.plurals import count_words

Kind = Literal["look", "words", "next", "share", "loss", "head", "say", "hand in", "run"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ESTIMATES: tuple[Kind, ...] = ("share", "loss")
SCORED: tuple[Kind, ...] = ("say", "run")  # no answer is right; some do better than others
Pattern = Literal["previous", "first", "induction", "duplicate"]  # scores of `engine.analysis.heads`
PATTERNS: Mapping[Pattern, str] = {
    "previous": "the token just before", "first": "the first token",
    "induction": "the token behind an earlier one like it", "duplicate": "an earlier token like it",
}  # fmt: skip
LONGEST, WANTED, PAGE = 500, 40, 40  # characters of a sentence, of a word that is wanted, of a page's address
MOST_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Step:
    """A page by its address, with the `query` of its link, and what is asked of who looks at it.

    "look" asks nothing, "words" for words, "next" for the next token, "share" for the probability of the likeliest one,
    "loss" for nats a token, "head" for the head that looks most at what `pattern` says, "say" for a text that makes
    `wanted` likely, "hand in" for what stands on the page, "run" for a trained run. The answer is shown `at_once` or
    when the teacher reveals it.
    """

    page: str
    query: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = "look"
    sentence: str = ""
    wanted: str = ""
    pattern: Pattern = "previous"
    at_once: bool = False
    seconds: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"expected a kind of step, one of {', '.join(KINDS)}, got {str(self.kind)[:20]!r}.")
        if self.pattern not in PATTERNS:
            raise ValueError(f"expected a pattern, one of {', '.join(PATTERNS)}, got {str(self.pattern)[:20]!r}.")
        for name, most in (("sentence", LONGEST), ("wanted", WANTED), ("page", PAGE)):
            if len(getattr(self, name)) > most:
                raise ValueError(f"the {name} of a step has at most {count_words(most, 'character')}; shorten it.")
        if not 0 <= self.seconds <= MOST_SECONDS:
            raise ValueError(f"a step takes 0 to {MOST_SECONDS:,} seconds, got {self.seconds:,}.")
        if self.kind == "say" and not self.wanted.strip():
            raise ValueError("a step that wants the model to say something needs the word; type it.")

    @property
    def asks(self) -> bool:
        return self.kind != "look"


def to_json(step: Step) -> dict[str, Any]:
    return {**asdict(step), "query": dict(step.query)}


def from_json(said: object) -> Step:
    """Raises ValueError, with a sentence, for what is no step."""
    if not isinstance(said, dict):
        raise ValueError("expected a step as an object of JSON; take one that Loupe wrote.")
    kinds: dict[str, type] = {"seconds": int, "at_once": bool, "query": dict}
    known = {one.name for one in fields(Step)}
    if unknown := sorted(set(said) - known):
        raise ValueError(f"a step has no {str(unknown[0])[:20]!r}; take one that Loupe wrote.")
    for name, value in said.items():
        if type(value) is not kinds.get(name, str):
            raise ValueError(f"the {name} of a step cannot be {str(value)[:20]!r}; take one that Loupe wrote.")
    query = said.get("query", {})
    if not all(type(part) is str for entry in query.items() for part in entry) or "page" not in said:
        raise ValueError("a step needs a page, and a query of texts; take one that Loupe wrote.")
    return Step(**said)
