"""A question about a sentence with the words that answer it, and two sentences with one that sums them up.

The smallest forms of two tasks in which a text becomes another: "question: ... context: ..." as T5 is asked (Raffel et
al. 2020, appendix D, after Rajpurkar et al. 2016), and "summarize: ..." as compression, which leaves out details
(Knight & Marcu 2000). The sentences are those of `engine.data.translation` about one being each, without negations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar

from engine.data.bounds import at_least
from engine.data.drawing import Chance, Part, choice, draw_indexed
from engine.data.options import DOCUMENTS, HELD_OUT, MOST_WORDS
from engine.data.task import BETWEEN, Pair, PairTask
from engine.data.translation import english, words
from engine.data.translation.drawing import HE, Drawing, anaphor
from engine.data.translation.lexicon import HUMAN, LEXICON, LIVING
from engine.data.translation.meaning import Both, Clause, Nominal, Subject, Where, Word, say
from engine.data.translation.pair import typeset

PREFIXES = ANSWER, SUMMARISE = "question: ", "summarize: "
CONTEXT = " context: "
PAST = 0.25
SHORTEST = 4  # words that a limit must allow
STOP = Word(".", frozenset({"stop"}))
PLACES = frozenset(("in", "on", "at", "under", "near", "behind", "in front of"))


@dataclass(frozen=True)
class Answering(PairTask):
    """The two tasks in turn, on sentences of at most `longest` words and marks. No text that is held out is trained on,
    whatever is asked about it."""

    documents: int = field(default=120_000, metadata=DOCUMENTS)
    held_out: int = field(default=2_000, metadata=HELD_OUT)
    longest: int = field(default=10, metadata=MOST_WORDS)

    kind: ClassVar[str] = "answering"
    place: ClassVar[int] = 13
    tokenizers: ClassVar[tuple[str, ...]] = ("word", "bpe")
    separator: ClassVar[str] = BETWEEN
    grouped: ClassVar[str] = "task"

    def __post_init__(self) -> None:
        at_least("data.answering.documents", self.documents, 1)
        at_least("data.answering.held_out", self.held_out, 1)
        at_least("data.answering.longest", self.longest, SHORTEST)

    def pairs(self, part: Part, seed: int) -> Iterator[Pair]:
        count = self.documents if part == "train" else self.held_out
        return (draw_pair(self, part, seed, index) for index in range(count))

    def group(self, pair: Pair) -> str:
        return pair.source.partition(":")[0]


def draw_pair(options: Answering, part: Part, seed: int, index: int) -> Pair:
    """Example `index` of a part; the same for the same seed."""

    def example(chance: Chance) -> tuple[str, Pair]:
        if PREFIXES[index % len(PREFIXES)] == SUMMARISE:
            text, summary = draw_summary(chance, options.longest)
            return text, Pair(SUMMARISE + text, summary)
        text, question, answer = draw_question(chance, options.longest)
        return text, Pair(f"{ANSWER}{question}{CONTEXT}{text}", answer)

    return draw_indexed(example, lambda drawn: drawn[0], part, seed, index)[1]


class PlainDrawing(Drawing):
    def circumstances(self, clause: Clause) -> Clause:
        drawn = super().circumstances(clause)
        return clause if drawn.negation else drawn

    def being(self) -> Nominal:
        """Draws a single person or animal, of whom one adjective is said at most."""
        while True:
            drawn = self.nominal(LIVING, described=0.3)
            if not (drawn.plural or drawn.owner or len(drawn.qualities) > 1):
                return drawn

    def event(self, subject: Subject, past: bool, meant: Nominal, longest: int, unlike: Clause | None = None) -> Clause:
        """Draws what `meant`, called `subject`, does or is, in at most `longest` words and marks, and with another verb
        than `unlike`."""
        while True:
            roll = self.random()
            if roll < 0.12:
                clause = self.state(subject, past, meant)
            elif roll < 0.25:
                clause = Clause(subject, LEXICON.be, past, places=(self.place(other_than=meant),))
            else:
                clause = self.action(subject, past)
            if (unlike is None or clause.verb != unlike.verb) and len(words(typeset_clause(clause))) <= longest:
                return clause


def typeset_clause(clause: Clause) -> str:
    return typeset([*english.clause(clause, "clause"), STOP])


def draw_question(chance: Chance, longest: int) -> tuple[str, str, str]:
    """A sentence, a question about it, and its words that answer it."""
    drawing, past = PlainDrawing(chance), chance() < PAST
    being = drawing.being()
    clause = drawing.event(being, past, being, longest)
    question, answer = choice(chance, list(list_questions(clause)))
    return typeset_clause(clause), question, answer


def list_questions(clause: Clause) -> Iterator[tuple[str, str]]:
    """Questions about a clause, each with its answer: who it is, whom or what it concerns, and where."""
    subject = english.phrase(clause.subject, "subject")
    yield typeset([*say("who"), *predicate(replace(core(clause), subject=HE))]) + "?", typeset(subject)
    if clause.verb is LEXICON.be:
        helper, base = english.be(clause.past, clause.subject.person), ""
    else:
        helper, base = "did" if clause.past else "does", clause.verb.english
    rest = [*subject, *say(base), *say(clause.verb.particle)]
    if isinstance(clause.object, Nominal) and clause.verb not in LEXICON.motion_verbs:
        word = "who" if clause.object.kinds & HUMAN else "what"
        yield typeset_question(word, helper, rest), join(english.phrase(clause.object, "object"))
    if clause.object is None and clause.places and clause.places[0].preposition.english in PLACES:
        yield typeset_question("where", helper, rest), join(english.place_phrase(clause.places[0], "place"))


def typeset_question(word: str, helper: str, rest: list[Word]) -> str:
    return typeset([*say(word), *say(helper), *rest]) + "?"


def join(text: list[Word]) -> str:
    return " ".join(word.text for word in text)


def predicate(clause: Clause) -> list[Word]:
    """The clause without its subject."""
    return english.clause(clause, "clause")[len(english.phrase(clause.subject, "subject")) :]


def core(clause: Clause) -> Clause:
    """The clause without when, how and how often, and without where if it says something else."""
    stays = clause.object is None and (clause.verb is LEXICON.be or clause.verb.english == "stay")
    return replace(clause, often=None, time=None, manner=None, places=clause.places if stays else ())


def draw_summary(chance: Chance, longest: int) -> tuple[str, str]:
    """Two sentences about one being, and one that says both without their details."""
    drawing, past = PlainDrawing(chance), chance() < PAST
    being = drawing.being()
    first = drawing.event(being, past, being, longest)
    second = drawing.event(anaphor(being), past, being, longest, unlike=first)
    summary = [*english.clause(strip_details(first), "clause"), *say("and"), *predicate(strip_details(second)), STOP]
    return f"{typeset_clause(first)} {typeset_clause(second)}", typeset(summary)


def strip_details(clause: Clause) -> Clause:
    """The core of a clause, its nouns without adjectives, "very" and "too"."""
    core_clause = core(clause)
    subject, thing = clause.subject, clause.object
    return replace(
        core_clause,
        subject=bare(subject) if isinstance(subject, Nominal) else subject,
        object=Both(bare(thing.first), bare(thing.second)) if isinstance(thing, Both) else thing and bare(thing),
        qualities=tuple(replace(each, degree="") for each in clause.qualities[:1]),
        joint="",
        places=tuple(Where(each.preposition, bare(each.nominal)) for each in core_clause.places),
    )


def bare(nominal: Nominal) -> Nominal:
    return replace(nominal, qualities=())


KIND = Answering
