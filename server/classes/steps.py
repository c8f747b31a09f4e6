"""What a class is asked, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from engine.plurals import count_words

Pattern = Literal["previous", "first", "induction", "duplicate"]  # scores of `engine.analysis.heads`
PATTERNS: Mapping[Pattern, str] = {
    "previous": "the token just before",
    "first": "the first token",
    "induction": "the token behind an earlier one like it",
    "duplicate": "an earlier token like it",
}
LOOK = "look"  # the kind that asks nothing
# Characters of a sentence, of a word that is wanted, of a page's address, of what is looked at there or of a program.
LONGEST, WANTED, PAGE, LOOKED = 500, 40, 40, 2_000
MOST_OPTIONS = 12
MOST_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Step:
    """A page by its address, with the `query` of its link, and what is asked of who looks at it.

    What a `kind` is, its file in pages/controls/classes/kinds says; `wanted`, `pattern`, `options`, `right` (-1:
    none) and the `program` that a model is compiled from are for those kinds that have them. The answer is shown
    `at_once` or when the teacher reveals it. After `seconds`, 0 for no limit, a step that `closes` takes no answers;
    the time of another is only shown. An answer about another text than the step's counts only with `own_text`. The
    page looks at what `looked` says, as behind the # of a link.
    """

    page: str
    query: Mapping[str, str] = field(default_factory=dict)
    kind: str = LOOK
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
    program: str = ""

    def __post_init__(self) -> None:
        if self.pattern not in PATTERNS:
            raise ValueError(f"expected a pattern, one of {', '.join(PATTERNS)}, got {str(self.pattern)[:20]!r}.")
        most_of = {"sentence": LONGEST, "wanted": WANTED, "page": PAGE, "kind": WANTED}
        most_of |= dict.fromkeys(("looked", "program"), LOOKED)
        for name, most in most_of.items():
            if len(getattr(self, name)) > most:
                raise ValueError(f"the {name} of a step has at most {count_words(most, 'character')}; shorten it.")
        if not 0 <= self.seconds <= MOST_SECONDS:
            raise ValueError(f"a step takes 0 to {MOST_SECONDS:,} seconds, got {self.seconds:,}.")
        if any(not 1 <= len(one) <= WANTED * 2 for one in self.options) or len(self.options) > MOST_OPTIONS:
            raise ValueError(f"a step has at most {MOST_OPTIONS} options of 1 to {WANTED * 2} characters each.")
        if not -1 <= self.right < max(len(self.options), 1):
            raise ValueError(f"the right option is one of {len(self.options)}, got number {self.right + 1}.")

    @property
    def asks(self) -> bool:
        return self.kind != LOOK


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
