"""What a class is asked, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from engine.plurals import count_words

Kind = Literal["look", "words", "choice", "scale", "next", "share", "loss", "head", "say", "hand in", "run"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ESTIMATES: tuple[Kind, ...] = ("share", "loss")
ABOUT_A_RUN: tuple[Kind, ...] = ("next", "share", "loss", "head", "say")  # of the model, text and edits of the step
SCORED: tuple[Kind, ...] = ("say", "run")  # no answer is right; some do better than others
Pattern = Literal["previous", "first", "induction", "duplicate"]  # scores of `engine.analysis.heads`
PATTERNS: Mapping[Pattern, str] = {
    "previous": "the token just before", "first": "the first token",
    "induction": "the token behind an earlier one like it", "duplicate": "an earlier token like it",
}  # fmt: skip
# Characters of a sentence, of a word that is wanted, of a page's address, of what is looked at there.
LONGEST, WANTED, PAGE, LOOKED = 500, 40, 40, 2_000
MOST_OPTIONS = 12
SCALE = range(1, 6)
MOST_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Step:
    """A page by its address, with the `query` of its link, and what is asked of who looks at it.

    "look" asks nothing, "words" for words, "choice" for one of `options`, of which the one at `right` is right (-1:
    none), "scale" for a number of SCALE, whose ends two `options` name, "next" for the next token, "share" for the
    probability of the likeliest one, "loss" for nats a token, "head" for the head that looks most at what `pattern`
    says, "say" for a text that makes `wanted` likely, "hand in" for what stands on the page, "run" for a trained run.
    The answer is shown `at_once` or when the teacher reveals it. After `seconds`, 0 for no limit, a step that `closes`
    takes no answers; the time of another is only shown. An answer about another text than the step's counts only with
    `own_text`. The page looks at what `looked` says, as behind the # of a link.
    """

    page: str
    query: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = "look"
    sentence: str = ""
    wanted: str = ""
    pattern: Pattern = "previous"
    at_once: bool = False
    seconds: int = 0
    closes: bool = False
    own_text: bool = False
    looked: str = ""
    options: tuple[str, ...] = ()
    right: int = -1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"expected a kind of step, one of {', '.join(KINDS)}, got {str(self.kind)[:20]!r}.")
        if self.pattern not in PATTERNS:
            raise ValueError(f"expected a pattern, one of {', '.join(PATTERNS)}, got {str(self.pattern)[:20]!r}.")
        for name, most in (("sentence", LONGEST), ("wanted", WANTED), ("page", PAGE), ("looked", LOOKED)):
            if len(getattr(self, name)) > most:
                raise ValueError(f"the {name} of a step has at most {count_words(most, 'character')}; shorten it.")
        if not 0 <= self.seconds <= MOST_SECONDS:
            raise ValueError(f"a step takes 0 to {MOST_SECONDS:,} seconds, got {self.seconds:,}.")
        if any(not 1 <= len(one) <= WANTED * 2 for one in self.options) or len(self.options) > MOST_OPTIONS:
            raise ValueError(f"a step has at most {MOST_OPTIONS} options of 1 to {WANTED * 2} characters each.")
        if self.kind == "choice" and (len(set(self.options)) < 2 or len(set(self.options)) < len(self.options)):
            raise ValueError("a choice needs two options or more, each another; write one a line.")
        if self.kind == "scale" and len(self.options) not in (0, 2):
            raise ValueError(f"the ends of a scale have two names or none, got {len(self.options)}; write one a line.")
        if not -1 <= self.right < max(len(self.options), 1):
            raise ValueError(f"the right option is one of {len(self.options)}, got number {self.right + 1}.")
        if self.kind == "say" and not self.wanted.strip():
            raise ValueError("a step that wants the model to say something needs the word; type it.")

    @property
    def asks(self) -> bool:
        return self.kind != "look"

    @property
    def free_text(self) -> bool:
        """True if the text is the learner's own."""
        return self.own_text or self.kind == "say"


def to_json(step: Step) -> dict[str, Any]:
    return {**asdict(step), "query": dict(step.query), "options": list(step.options)}


def from_json(said: object) -> Step:
    """Raises ValueError, with a sentence, for what is no step."""
    if not isinstance(said, dict):
        raise ValueError("expected a step as an object of JSON; take one that Loupe wrote.")
    kinds: dict[str, type] = {"seconds": int, "right": int, "options": list, "query": dict}
    kinds |= dict.fromkeys(("at_once", "closes", "own_text"), bool)
    known = {one.name for one in fields(Step)}
    if unknown := sorted(set(said) - known):
        raise ValueError(f"a step has no {str(unknown[0])[:20]!r}; take one that Loupe wrote.")
    for name, value in said.items():
        if type(value) is not kinds.get(name, str):
            raise ValueError(f"the {name} of a step cannot be {str(value)[:20]!r}; take one that Loupe wrote.")
    query = said.get("query", {})
    if not all(type(part) is str for entry in query.items() for part in entry) or "page" not in said:
        raise ValueError("a step needs a page, and a query of texts; take one that Loupe wrote.")
    options = said.get("options", [])
    if not all(type(one) is str for one in options):
        raise ValueError("the options of a step are texts; take one that Loupe wrote.")
    return Step(**{**said, "options": tuple(options)})
