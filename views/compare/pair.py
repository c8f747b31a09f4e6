"""Two runs beside one another: which of their attentions, tokens and choices belong together."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, LiteralString

from torch import Tensor

from engine.analysis.alignment import Alignment, by_characters, by_pieces
from engine.analysis.predictions import Predictions, predictions
from engine.analysis.recorded_patterns import patterns
from engine.analysis.similarity import PatternPair, head_changes, head_similarity, stream_distance
from engine.inputs.readers import Reading, kind
from engine.tokenizers.encoding import Encoding
from views.core.lanes import Lane, candidate_names
from views.core.questions import BareContext, Query
from views.core.run_context import HeadOfRun, Run

LISTED = 12  # candidates at every place
NO_SCRIPT = "What two runs differ in has no script of its own; the page's own Python has both runs."
AT_ONCE = 10**8  # differences of weights; more are computed when somebody looks at them


@dataclass(frozen=True)
class ComparedRun:
    """Run, one of those that are compared, by its letter; `title` is how its model is called."""

    letter: LiteralString
    title: str
    reading: Reading
    run: Run
    notice: str = ""

    def encoding(self, side: str) -> Encoding | None:
        """The text that a stack reads, where it is one."""
        read = self.reading.target if side == "decoder" and len(self.run.lanes) > 1 else self.reading.read
        length = len(self.run.lane(side).pieces)
        return read if isinstance(read, Encoding) and read.text and len(read) == length else None


@dataclass(frozen=True)
class Attention:
    """Attention of a model: that of a stack to itself, or the decoder's to the source."""

    side: str
    crosses: bool = False

    @property
    def key(self) -> str:
        return f"{self.side}.{self.focus}" if self.side else self.focus

    @property
    def focus(self) -> str:
        return "cross_attn" if self.crosses else "attn"

    def head(self, layer: int, head: int) -> HeadOfRun:
        return HeadOfRun(self.side, self.focus, layer, head)

    def keys(self) -> str:
        """The stack whose tokens are the columns."""
        return "encoder" if self.crosses else self.side


@dataclass(frozen=True)
class RunPair(BareContext):
    """Two runs, and for each attention of the first the one of the second that it is set beside."""

    first: ComparedRun
    second: ComparedRun
    attentions: list[tuple[Attention, Attention]]
    alignments: dict[tuple[str, str], Alignment] = field(default_factory=dict)

    no_script: ClassVar[str] = NO_SCRIPT

    @property
    def digest(self) -> str:
        return digest_of([self.first, self.second])

    @property
    def model_name(self) -> str:
        return f"{self.second.title} and {self.first.title}"

    @property
    def is_long(self) -> bool:
        """Tells whether the runs hold no pattern; either both do or none."""
        return not self.first.run.whole

    @property
    def is_same(self) -> bool:
        """Tells whether both are one run."""
        return self.first.run.key == self.second.run.key

    def number(self, key: str) -> int | None:
        """Finds which attention has that name in the first run, None where the two share none of it."""
        return next((i for i, (one, _) in enumerate(self.attentions) if one.key == key), None)

    def depth(self, number: int) -> int:
        """Layers of the deeper one of the two."""
        one, other = self.attentions[number]
        return max(self.first.run.lane(one.side).config.layers, self.second.run.lane(other.side).config.layers)

    def choices(self, axis: str, query: Query) -> range | Collection[str]:
        number = self.number(str(query.get("attention")))
        if axis == "attention" or number is None:
            return [one.key for one, _ in self.attentions]
        return range(self.depth(number))

    def alignment(self, first: str, second: str) -> Alignment:
        """Alignment of the tokens of two stacks."""
        if (first, second) not in self.alignments:
            self.alignments[first, second] = align_stacks(self.first, self.second, first, second)
        return self.alignments[first, second]

    def patterns(self, number: int) -> PatternPair:
        one, other = self.attentions[number]
        return PatternPair(
            patterns(self.first.run.trace, one.side, one.crosses),
            patterns(self.second.run.trace, other.side, other.crosses),
            self.alignment(one.side, other.side),
            self.alignment(one.keys(), other.keys()),
        )


def digest_of(shown: Sequence[ComparedRun]) -> str:
    """A name for runs together, the same for the same ones in this order."""
    return hashlib.sha256(" ".join(one.run.digest for one in shown).encode()).hexdigest()[:16]


def shown_in(pairs: Sequence[RunPair]) -> list[ComparedRun]:
    """The runs of pairs that have one first run."""
    return [pairs[0].first, *(pair.second for pair in pairs)]


def match_attentions(first: ComparedRun, second: ComparedRun) -> RunPair:
    """Attentions of the same name; of models that share none, those of the stacks that speak."""
    mine, theirs = attentions(first.run.lanes), attentions(second.run.lanes)
    both = [(one, one) for one in mine if one in theirs]
    return RunPair(first, second, both or [(Attention(mine[-1].side), Attention(theirs[-1].side))])


def attentions(lanes: Sequence[Lane]) -> list[Attention]:
    found = [Attention(lane.side) for lane in lanes]
    return found + [Attention(lane.side, True) for lane in lanes if lane.config.encoder is not None]


def align_stacks(first: ComparedRun, second: ComparedRun, side: str, other: str) -> Alignment:
    """The tokens of two stacks that belong together: none, where the rows are other parts of a picture."""
    mine, theirs = first.run.lane(side), second.run.lane(other)
    grids = [lane.grid["side"] if lane.grid else 0 for lane in (mine, theirs)]
    if grids[0] != grids[1]:
        return Alignment((), (len(mine.pieces), len(theirs.pieces)))
    texts = first.encoding(side), second.encoding(other)
    if texts[0] is not None and texts[1] is not None and vocabulary(first) != vocabulary(second):
        return by_spans(texts[0], texts[1])
    return by_tokens(tuple(mine.pieces), tuple(theirs.pieces))


@lru_cache(maxsize=16)
def by_tokens(first: tuple[str, ...], second: tuple[str, ...]) -> Alignment:
    """`by_pieces`, which of a thousand tokens takes a good part of a second."""
    return by_pieces(first, second)


@lru_cache(maxsize=16)
def by_spans(first: Encoding, second: Encoding) -> Alignment:
    """`by_characters`, in the same way."""
    return by_characters(first, second)


def vocabulary(shown: ComparedRun) -> tuple[str, ...]:
    return () if shown.run.checkpoint.tokenizer is None else shown.run.checkpoint.tokenizer.pieces


def together(pair: RunPair) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and arrays of a pair: what belongs together, and the differences there; of long texts no number, since
    these are asked for.

    `keys` is None where they are grouped as the queries are, and so are the groups of `says` where they equal the
    queries of the last attention.
    """
    arrays: dict[str, Tensor] = {}
    described = [attention_pair(pair, number, arrays) for number in range(len(pair.attentions))]
    says = prediction_places(pair) if pair.is_long else prediction_header(pair, arrays)
    if says.get("groups") == described[-1]["queries"]:
        says["groups"] = None
    for one in described:
        one["keys"] = None if one["keys"] == one["queries"] else one["keys"]
    before = f"{pair.second.letter}:"
    named = {"trace": pair.digest, "same": pair.is_same, "attentions": described, "says": says}
    return named, {before + key: value for key, value in arrays.items()}


def attention_pair(pair: RunPair, number: int, arrays: dict[str, Tensor]) -> dict[str, Any]:
    """Header of one attention of both runs; of whole runs `arrays` gets the differences."""
    one, other = pair.attentions[number]
    apart = "" if one.crosses else far(pair, one, other)
    alike = alike_in_shape(pair, one, other)
    if not pair.is_long:
        found = pair.patterns(number)
        if alike:
            arrays[f"{one.key}.change"] = head_changes(found)
        if cost(found) <= AT_ONCE:
            arrays[f"{one.key}.similarity"] = head_similarity([found]).heads
        if not one.crosses and not apart:
            arrays |= {f"{one.key}.{name}": value for name, value in streams(pair, number).items()}
    return alignment_header(pair, number) | {"streams": apart, "change": alike}


def alike_in_shape(pair: RunPair, one: Attention, other: Attention) -> bool:
    """Tells whether each head has one in its place."""
    mine, theirs = pair.first.run.lane(one.side).config, pair.second.run.lane(other.side).config
    return (mine.layers, mine.attention.heads) == (theirs.layers, theirs.attention.heads)


def far(pair: RunPair, one: Attention, other: Attention) -> str:
    """Why the residual streams of the two cannot be compared, or nothing."""
    mine, theirs = pair.first.run.lane(one.side).config, pair.second.run.lane(other.side).config
    if (mine.layers, mine.d_model) == (theirs.layers, theirs.d_model):
        return ""
    try:
        stream_distance(pair.first.run.trace, pair.second.run.trace, Alignment((), (0, 0)), (one.side, other.side))
    except ValueError as error:
        return str(error)
    return ""


def streams(pair: RunPair, number: int) -> dict[str, Tensor]:
    """Layer group, as `stream_distance` has them."""
    one, other = pair.attentions[number]
    aligned = pair.alignment(one.side, other.side)
    found = stream_distance(pair.first.run.trace, pair.second.run.trace, aligned, (one.side, other.side))
    return {"relative": found.relative.float(), "cosine": found.cosine.float()}


def alignment_header(pair: RunPair, number: int) -> dict[str, Any]:
    """Says which attentions of the two it is, and which of their queries and keys belong together."""
    one, other = pair.attentions[number]
    return {
        "key": one.key,
        "first": {"side": one.side, "focus": one.focus},
        "second": {"side": other.side, "focus": other.focus},
        "queries": group_header(pair.alignment(one.side, other.side)),
        "keys": group_header(pair.alignment(one.keys(), other.keys())),
    }


def cost(pair: PatternPair) -> int:
    """Counts the differences of weights a comparison of every head with every head takes."""
    heads = [sum(len(layer) for layer in side) for side in (pair.first, pair.second)]
    return heads[0] * heads[1] * len(pair.queries.groups) * (len(pair.keys.groups) + 2)


def group_header(alignment: Alignment) -> list[list[Any]]:
    return [[list(group.first), list(group.second), group.same] for group in alignment.groups]


def prediction_header(pair: RunPair, arrays: dict[str, Tensor]) -> dict[str, Any]:
    """Predictions of both runs at the places that belong together; a sentence where their choices differ."""
    header = prediction_places(pair)
    if header["sentence"]:
        return header
    once = header["once"]
    places = [(0, 0)] if once else [(group[0][-1], group[1][-1]) for group in header["groups"]]
    logits = [one.run.trace["logits"] if once else one.run.trace["logits"][0] for one in (pair.first, pair.second)]
    found = predictions(logits[0], logits[1], places, LISTED, pair.first.run.checkpoint.model.config.link)
    arrays |= {f"says.{name}": value for name, value in prediction_arrays(found).items()}
    return header | {"names": candidates(pair, found.ids)}


def prediction_places(pair: RunPair) -> dict[str, Any]:
    """Places at which both runs predict something, or a sentence where their choices differ."""
    first, second = pair.first, pair.second
    heads = sum("logits" in one.run.trace for one in (first, second))
    if heads < 2:
        says = "One of the two says nothing about its text: it has" if heads else "Neither says anything: they have"
        return {"sentence": f"{says} no head."}
    kinds = [one.run.checkpoint.model.config.head.kind for one in (first, second)]
    if kinds[0] != kinds[1] or choices(first) != choices(second):
        return {"sentence": "Their vocabularies differ, so that their probabilities are not set side by side."}
    if kinds[0] == "span":
        return {"sentence": "Where an answer starts and ends is looked at on the page Walkthrough."}
    links = {one.run.checkpoint.model.config.link for one in (first, second)}
    if len(links) > 1:
        return {"sentence": "The two make probabilities of their logits in different ways, so those are not compared."}
    if links == {"identity"} and len(choices(first)) > 1:
        return {"sentence": "The two give scores and no probabilities: read them on the page Walkthrough."}
    once = "pos" not in first.run.trace.dims("logits")
    return {
        "groups": group_header(pair.alignment(first.run.lanes[-1].side, second.run.lanes[-1].side)),
        "once": once,
        "reads": "next" if first.run.checkpoint.model.config.generates else "class" if once else "here",
        "sentence": "",
    }


def prediction_arrays(found: Predictions) -> dict[str, Tensor]:
    return {name: getattr(found, name) for name in ("first", "second", "kl", "variation")} | {"ids": found.ids.int()}


def candidates(pair: RunPair, ids: Tensor) -> dict[str, str]:
    """Names of what is chosen among, by id."""
    classes = pair.first.run.checkpoint.model.config.head.kind in ("sequence", "token")
    return candidate_names(ids, (pair.first.run.checkpoint.labels if classes else choices(pair.first)) or None, ())


def choices(shown: ComparedRun) -> tuple[str, ...]:
    """The names of what a head chooses among."""
    config = shown.run.checkpoint.model.config
    if config.head.over_classes:
        return shown.run.checkpoint.labels or tuple(f"#{i}" for i in range(config.outputs))
    if kind(shown.run.checkpoint) == "pixels" or not vocabulary(shown):
        return tuple(map(str, range(config.outputs)))
    return vocabulary(shown)
