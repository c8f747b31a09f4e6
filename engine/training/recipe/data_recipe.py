"""What a recipe may learn from: one table [data.<name>] each, and the tokenizer of its texts.

Tasks on sequences have their tables beside their examples, in `engine.data`; here they have a row in `Data`.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, get_args, get_type_hints

from engine.data.addition import Addition
from engine.data.answering import Answering
from engine.data.bounds import a_share, at_least, symbols
from engine.data.brackets import Brackets
from engine.data.dates import Dates
from engine.data.hub import Hub
from engine.data.in_context import InContext
from engine.data.instructions import Bilingual, Instructions
from engine.data.modular import Modular
from engine.data.names import Names
from engine.data.own import Columns, Rows
from engine.data.published import check_named
from engine.data.rewriting import Rewriting
from engine.data.sentiment import Sentiment
from engine.data.spans import Spans
from engine.data.task import LabelTask, PairTask, TagTask
from engine.data.text_to_text import TextToText
from engine.data.translation.task import Translation

TokenizerKind = Literal["char", "word", "byte", "bpe", "bpe-characters", "wordpiece", "unigram"]


@dataclass(frozen=True)
class Stories:
    """The generated stories of `engine.data.stories`, or of `engine.data.long_stories`; `held_out` of them come from
    another stream of the same seed."""

    documents: int = 20_000
    held_out: int = 500
    long: bool = False

    def __post_init__(self) -> None:
        at_least("data.stories.documents", self.documents, 1)
        at_least("data.stories.held_out", self.held_out, 1)


@dataclass(frozen=True)
class Everyday:
    """Everyday English of `engine.data.everyday`; `held_out` documents come from another stream of the same seed.

    `style` is another way of writing them, to be learned by a model that writes the plain one. `tales` and `sentences`
    are files of `engine.data.published`: what `engine.data.mixture` makes of them is mixed with it, each
    sentence `times` times in other company.
    """

    documents: int = 60_000
    held_out: int = 1_000
    style: Literal["plain", "pirate", "old", "cheerful"] = "plain"
    tales: str = ""
    sentences: str = ""
    times: int = 2

    def __post_init__(self) -> None:
        at_least("data.everyday.documents", self.documents, 1)
        at_least("data.everyday.held_out", self.held_out, 1)
        at_least("data.everyday.times", self.times, 1)
        check_named("data.everyday", tales=self.tales, sentences=self.sentences)


@dataclass(frozen=True)
class Text:
    """A plain text file; a relative path is taken from where the recipe stands. Its last part is held out."""

    path: str
    held_out: float = 0.1

    def __post_init__(self) -> None:
        a_share("data.text.held_out", self.held_out)


@dataclass(frozen=True)
class PythonReference:
    """The Python language reference that every Python carries (`engine.data.text`). Its last part is held out."""

    held_out: float = 0.05

    def __post_init__(self) -> None:
        a_share("data.python_reference.held_out", self.held_out)


@dataclass(frozen=True)
class Repeats:
    """A random segment of `shortest` to `longest` symbols, over and over: what an induction head is for."""

    shortest: int = 4
    longest: int = 32
    symbols: str = string.ascii_letters + string.digits

    def __post_init__(self) -> None:
        at_least("data.repeats.shortest", self.shortest, 1)
        at_least("data.repeats.longest", self.longest, self.shortest)
        symbols("data.repeats.symbols", self.symbols)


@dataclass(frozen=True)
class SentencePairs:
    """Pairs of passages from the stories (`engine.data.sentences.pair`), half of which follow each other.

    `tales` and `sentences` are files of `engine.data.published`, and their pairs are mixed with these: `times` pairs of
    each document of the tales (`engine.data.sentences.following`), and sentences, each `times` times in other company,
    of which only hidden words are asked. `documents` may be 0 beside them.
    """

    documents: int = 60_000
    held_out: int = 1_000
    tales: str = ""
    sentences: str = ""
    times: int = 2

    tokenizers: ClassVar[tuple[str, ...]] = ("wordpiece",)

    def __post_init__(self) -> None:
        for name in ("documents", "held_out"):
            at_least(f"data.sentence_pairs.{name}", getattr(self, name), 0 if self.tales else 1)
        at_least("data.sentence_pairs.times", self.times, 1)
        check_named("data.sentence_pairs", tales=self.tales, sentences=self.sentences)


@dataclass(frozen=True)
class Gaps:
    """Passages from the stories with a gap (`engine.data.sentences.span`).

    In training the share `own` of them keep that gap. In the others gaps are drawn anew each time, which is more to
    learn from: a `long` share has one of half the words or more, the rest short ones that hold about the share
    `hidden` of the words (GLM's two objectives, Du et al. 2022, sections 2.1 and 2.1.1). In a `recurring` share the
    gaps are words that stand elsewhere in the passage, as names do: a model that only learns what words stand next to
    each other never fills them (salient spans, Guu et al. 2020, section 3.4).

    `tales` and `sentences` are files of `engine.data.published`: passages of what `engine.data.mixture` makes of them
    (`engine.data.sentences.gapped`) are mixed with these, each sentence `times` times in other company. `documents` may
    be 0 beside them.
    """

    documents: int = 60_000
    held_out: int = 1_000
    tales: str = ""
    sentences: str = ""
    times: int = 2
    own: float = 0.2
    long: float = 0.4
    recurring: float = 0.2
    hidden: float = 0.3

    def __post_init__(self) -> None:
        for name in ("documents", "held_out"):
            at_least(f"data.infill.{name}", getattr(self, name), 0 if self.tales or self.sentences else 1)
        at_least("data.infill.times", self.times, 1)
        check_named("data.infill", tales=self.tales, sentences=self.sentences)
        for name in ("own", "long", "recurring", "hidden"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"data.infill.{name} must be a share in [0, 1], got {getattr(self, name)}.")
        if self.own + self.long + self.recurring > 1 + 1e-9:
            raise ValueError("data.infill.own, long and recurring are shares of one whole; lower one of them.")


@dataclass(frozen=True)
class Digits:
    """The handwritten digits of `engine.data.digits`, cut by the seed `split` and not by the recipe's, so that models
    agree on what is held out.

    In training the share `moved` of the pictures is shifted (pixels), turned (`degrees`), resized (`scale`) and drawn
    with a thicker or thinner `stroke` (1: a pixel to each side), all at most so much; the share `inverted` is dark on
    light. `judge` is a shipped classifier that says what digit a completed picture shows.
    """

    split: int = 0
    moved: float = 1.0
    shift: float = 1.0
    degrees: float = 10.0
    scale: float = 0.1
    stroke: float = 0.0
    inverted: float = 0.0
    judge: str = ""

    def __post_init__(self) -> None:
        for name in ("moved", "inverted"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"data.digits.{name} must be a share in [0, 1], got {getattr(self, name)}.")
        for name in ("shift", "degrees", "scale", "stroke"):
            at_least(f"data.digits.{name}", getattr(self, name), 0)


@dataclass(frozen=True)
class Preferences:
    """A file of `engine.training.policy.pairs`: prompts, each with two answers of which one is preferred. A
    relative path is taken from where the recipe stands. The share `held_out` of the prompts is measured on and never
    learned from, or all of another file, `held_out_path`. `ended`: an answer is whole, and the end token follows it."""

    path: str
    held_out_path: str = ""
    held_out: float = 0.1
    ended: bool = True

    def __post_init__(self) -> None:
        a_share("data.preferences.held_out", self.held_out)


@dataclass(frozen=True)
class TokenizerRecipe:
    """Learned from `sample` documents of the training data, the first ones, or of a person's rows some drawn from all;
    `vocab_size` includes the special tokens, which are those that the task needs and `special_tokens`, found whole
    wherever a text has them.
    """

    kind: TokenizerKind = "bpe"
    vocab_size: int | None = None
    sample: int = 5_000
    special_tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        bad = next((name for name in self.special_tokens if not name.strip() or name != name.strip()), None)
        if bad is not None or len(set(self.special_tokens)) != len(self.special_tokens):
            raise ValueError(
                "data.tokenizer.special_tokens must be different names without spaces around them, got "
                f"{list(self.special_tokens)}."
            )
        at_least("data.tokenizer.sample", self.sample, 1)


@dataclass(frozen=True)
class Data:
    """Exactly one of the sources, and how its texts are cut."""

    stories: Stories | None = None
    text: Text | None = None
    python_reference: PythonReference | None = None
    repeats: Repeats | None = None
    rewriting: Rewriting | None = None
    modular: Modular | None = None
    addition: Addition | None = None
    dates: Dates | None = None
    translation: Translation | None = None
    bilingual: Bilingual | None = None
    instructions: Instructions | None = None
    spans: Spans | None = None
    text_to_text: TextToText | None = None
    answering: Answering | None = None
    in_context: InContext | None = None
    brackets: Brackets | None = None
    sentiment: Sentiment | None = None
    names: Names | None = None
    rows: Rows | None = None
    hub: Hub | None = None
    sentence_pairs: SentencePairs | None = None
    infill: Gaps | None = None
    everyday: Everyday | None = None
    digits: Digits | None = None
    preferences: Preferences | None = None
    tokenizer: TokenizerRecipe = field(default_factory=TokenizerRecipe)

    def __post_init__(self) -> None:
        names = [each.name for each in fields(self) if each.name != "tokenizer"]
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            known = ", ".join(f"[data.{name}]" for name in names)
            raise ValueError(f"data must have exactly one of {known}, got {len(given)}.")
        if self.repeats is not None and self.tokenizer != TokenizerRecipe("char"):
            raise ValueError('data.tokenizer must be { kind = "char" } for repeats, whose symbols are its vocabulary.')
        if self.digits is not None and self.tokenizer != TokenizerRecipe():
            raise ValueError("data.tokenizer must be left out for digits, which are pictures.")
        suited = getattr(self.table, "tokenizers", (self.tokenizer.kind,))
        if self.tokenizer.kind not in suited:
            wanted = " or ".join(f'"{kind}"' for kind in suited)
            raise ValueError(f'data.tokenizer.kind must be {wanted} for {self.kind}, got "{self.tokenizer.kind}".')

    @property
    def kind(self) -> str:
        """Kind of the source."""
        return next(each.name for each in fields(self) if each.name != "tokenizer" and getattr(self, each.name))

    @property
    def table(self) -> Any:
        """The options of that source."""
        return getattr(self, self.kind)


def tables(of: type) -> tuple[str, ...]:
    """The names of those whose options are a kind of `of`, such as `PairTask`."""
    hints = get_type_hints(Data)
    return tuple(name for name, hint in hints.items() if any(issubclass(each, of) for each in get_args(hint)))


PAIRS, LABELLED, TAGGED, OWN = tables(PairTask), tables(LabelTask), tables(TagTask), tables(Columns)
RUNNING = ("stories", "everyday", "text", "python_reference", "bilingual", *OWN)  # what windows are cut from
