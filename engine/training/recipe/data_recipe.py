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
from engine.data.options import DOCUMENTS, HELD_OUT, LEAST_LENGTH, MIXED, MOST_LENGTH, SYMBOLS
from engine.data.own import Columns, Rows
from engine.data.published import check_named
from engine.data.rewriting import Rewriting
from engine.data.sentiment import Sentiment
from engine.data.spans import Spans
from engine.data.task import LabelTask, PairTask, TagTask
from engine.data.text_to_text import TextToText
from engine.data.translation.task import Translation
from engine.model.option import Option

TokenizerKind = Literal["char", "word", "byte", "bpe", "bpe-characters", "wordpiece", "unigram"]


@dataclass(frozen=True)
class Stories:
    """The generated stories of `engine.data.stories`, or of `engine.data.long_stories`; `held_out` of them come from
    another stream of the same seed."""

    documents: int = field(default=20_000, metadata=DOCUMENTS)
    held_out: int = field(default=500, metadata=HELD_OUT)
    long: bool = field(
        default=False, metadata=Option(help="Long stories, in which names come again hundreds of tokens later.")
    )

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

    documents: int = field(default=60_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)
    style: Literal["plain", "pirate", "old", "cheerful"] = field(
        default="plain",
        metadata=Option(help="The way of writing; another one is learned by a model that writes the plain one."),
    )
    tales: str = field(default="", metadata=MIXED)
    sentences: str = field(default="", metadata=MIXED)
    times: int = field(default=2, metadata=MIXED)

    def __post_init__(self) -> None:
        at_least("data.everyday.documents", self.documents, 1)
        at_least("data.everyday.held_out", self.held_out, 1)
        at_least("data.everyday.times", self.times, 1)
        check_named("data.everyday", tales=self.tales, sentences=self.sentences)


@dataclass(frozen=True)
class Text:
    """A plain text file; a relative path is taken from where the recipe stands. Its last part is held out."""

    path: str = field(metadata=Option(help="The plain text file."))
    held_out: float = field(default=0.1, metadata=HELD_OUT)

    def __post_init__(self) -> None:
        a_share("data.text.held_out", self.held_out)


@dataclass(frozen=True)
class PythonReference:
    """The Python language reference that every Python carries (`engine.data.text`). Its last part is held out."""

    held_out: float = field(default=0.05, metadata=HELD_OUT)

    def __post_init__(self) -> None:
        a_share("data.python_reference.held_out", self.held_out)


@dataclass(frozen=True)
class Repeats:
    """A random segment of `shortest` to `longest` symbols, over and over: what an induction head is for."""

    shortest: int = field(default=4, metadata=LEAST_LENGTH)
    longest: int = field(default=32, metadata=MOST_LENGTH)
    symbols: str = field(default=string.ascii_letters + string.digits, metadata=SYMBOLS)

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

    documents: int = field(default=60_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)
    tales: str = field(default="", metadata=MIXED)
    sentences: str = field(default="", metadata=MIXED)
    times: int = field(default=2, metadata=MIXED)

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

    documents: int = field(default=60_000, metadata=DOCUMENTS)
    held_out: int = field(default=1_000, metadata=HELD_OUT)
    tales: str = field(default="", metadata=MIXED)
    sentences: str = field(default="", metadata=MIXED)
    times: int = field(default=2, metadata=MIXED)
    own: float = field(
        default=0.2,
        metadata=Option(
            help="The share of passages that keep their own gap; in the others gaps are drawn anew each time."
        ),
    )
    long: float = field(
        default=0.4, metadata=Option(help="The share of passages with one gap of half the words or more.")
    )
    recurring: float = field(
        default=0.2,
        metadata=Option(help="The share of passages whose gaps are words that stand elsewhere in them, as names do."),
    )
    hidden: float = field(default=0.3, metadata=Option(help="The share of the words that short gaps hold, about."))

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

    path: str = field(metadata=Option(help="The file of prompts, each with two answers of which one is preferred."))
    held_out_path: str = field(
        default="", metadata=Option(help="Another such file, of which all is measured on in place of a share.")
    )
    held_out: float = field(default=0.1, metadata=HELD_OUT)
    ended: bool = field(default=True, metadata=Option(help="Each answer is complete and followed by the end token."))

    def __post_init__(self) -> None:
        a_share("data.preferences.held_out", self.held_out)


@dataclass(frozen=True)
class TokenizerRecipe:
    """Learned from `sample` documents of the training data, the first ones, or of a person's rows some drawn from all;
    `vocab_size` includes the special tokens, which are those that the task needs and `special_tokens`, found whole
    wherever a text has them.
    """

    kind: TokenizerKind = field(
        default="bpe",
        metadata=Option(help="What a token is: a character, a word, a byte, or a learned piece of a word."),
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

    @property
    def may_be_pairs(self) -> bool:
        """Tells whether it has texts that become others, or a person's own may."""
        return self.kind in (*PAIRS, *OWN)


def tables(of: type) -> tuple[str, ...]:
    """The names of those whose options are a kind of `of`, such as `PairTask`."""
    hints = get_type_hints(Data)
    return tuple(name for name, hint in hints.items() if any(issubclass(each, of) for each in get_args(hint)))


PAIRS, LABELLED, TAGGED, OWN = tables(PairTask), tables(LabelTask), tables(TagTask), tables(Columns)
RUNNING = ("stories", "everyday", "text", "python_reference", "bilingual", *OWN)  # what windows are cut from
