"""Drawing a meaning: what of the vocabulary goes together, and how often each kind of sentence comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar

from .lexicon import HUMAN, LEXICON, LIVING, Adjective, Noun, Preposition, Verb, kinds
from .meaning import Both, Clause, Compound, Existence, Meaning, Nominal, Pronoun, Quality, Subject, Where, plural_of

T = TypeVar("T")

# which determiners may stand: after a French "de" no "des", in a negation no "some", in "there is" no "the"
ANY, DEFINITE, INDEFINITE, NEGATED = "any", "definite", "indefinite", "negated"


BELONGINGS = kinds("clothes thing")
FOUND = kinds("animal child person food tree *goods")
LANDMARKS = kinds("furniture tree vehicle place animal")
DESCRIBED = kinds("*living *seen food dish drink")

ME = Pronoun("I", 0, "m", HUMAN)
YOU = Pronoun("you", 1, "m", HUMAN)
HE = Pronoun("he", 2, "m", HUMAN)
SHE = Pronoun("she", 2, "f", HUMAN)
WE = Pronoun("we", 3, "m", HUMAN)
YOU_ALL = Pronoun("you", 4, "m", HUMAN)
THEY = Pronoun("they", 5, "m", HUMAN)
PRONOUNS = (ME, YOU, HE, SHE, WE, YOU_ALL, THEY)
SPEAKERS = (ME, YOU, WE)
WHOSE = ("my", "your", "his", "our", "your", "their")  # by person

AROUND = "behind", "in front of", "near"
STATIVE = frozenset(("love", "have", "need"))


@cache
def nouns_of(among: frozenset[str]) -> tuple[Noun, ...]:
    return tuple(noun for noun in LEXICON.nouns if noun.kinds & among)


@cache
def adjectives_of(noun: Noun) -> tuple[Adjective, ...]:
    suited = (each for each in LEXICON.adjectives if each.kinds & noun.kinds)
    return tuple(each for each in suited if (each.english, noun.english) not in LEXICON.unsaid)


@cache
def colors_of(noun: Noun) -> tuple[Adjective, ...]:
    return tuple(each for each in adjectives_of(noun) if each.base in LEXICON.colors)


def adjectives_for(subject: Subject) -> tuple[Adjective, ...]:
    """Predicates that fit the subject; a speaker is known to be human and no more."""
    match subject:
        case Nominal():
            return adjectives_of(subject.noun)
        case Both():
            second = adjectives_of(subject.second.noun)
            return tuple(each for each in adjectives_of(subject.first.noun) if each in second)
        case Pronoun():
            return tuple(each for each in LEXICON.adjectives if HUMAN <= each.kinds)


def qualities_of(subject: Subject) -> tuple[Adjective, ...]:
    """The adjectives that already stand in `subject`."""
    match subject:
        case Nominal():
            return tuple(each.adjective for each in subject.qualities)
        case Both():
            return qualities_of(subject.first) + qualities_of(subject.second)
        case Pronoun():
            return ()


def clash(one: Adjective, other: Adjective) -> bool:
    return one.base == other.base or any({one.base, other.base} <= rivals for rivals in LEXICON.rivals)


class NounPhrases:
    def __init__(self, random: Callable[[], float]) -> None:
        self.random = random
        self.possessives = LEXICON.possessives

    # chance

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    # noun phrases

    def determiner(self, noun: Noun, plural: bool, use: str) -> tuple[str, str]:
        """A determiner, and a number word or ""."""
        kin, free = "kin" in noun.kinds, "free" in noun.kinds
        if kin or use == DEFINITE or (use != INDEFINITE and self.chance(0.65)):
            number = self.pick(LEXICON.numbers) if plural and self.chance(0.15) else ""
            if kin or (not free and self.chance(0.35)):
                return self.pick(self.possessives), number
            return self.pick(("the", "the", "the", "the", "this", "that")), number
        if not plural and "mass" not in noun.kinds:
            return "a", ""
        if plural and use != NEGATED and self.chance(0.5):
            return "", self.pick(LEXICON.numbers)
        return ("any" if use == NEGATED else "some"), ""

    def quality(self, options: Sequence[Adjective]) -> Quality:
        adjective = self.pick(options)
        return Quality(adjective, "very" if adjective.graded and self.chance(0.12) else "")

    def qualities(self, noun: Noun) -> tuple[Quality, ...]:
        """Draws an adjective, or one that stands before the French noun and a colour."""
        first = self.quality(adjectives_of(noun))
        if first.adjective.before and colors_of(noun) and self.chance(0.3):
            return first, self.quality(colors_of(noun))
        return (first,)

    def nominal(
        self, among: frozenset[str], use: str = ANY, described: float = 0.45, other_than: Subject | None = None
    ) -> Nominal:
        taken = other_than.noun if isinstance(other_than, Nominal) else None
        noun = self.pick([each for each in nouns_of(among) if each != taken])
        plural = not noun.kinds & {"mass", "single", "place"} and self.chance(0.3)
        qualities = self.qualities(noun) if self.chance(described) else ()
        if not noun.kinds & {"kin", "free"} and use in (ANY, DEFINITE) and self.chance(0.1):
            return Nominal(noun, plural, qualities=qualities, owner=self.owner(noun))
        determiner, number = self.determiner(noun, plural, use)
        return Nominal(noun, plural, determiner, number, qualities)

    def owner(self, owned: Noun) -> Nominal:
        noun = self.pick([each for each in nouns_of(HUMAN) if each != owned])
        return Nominal(noun, determiner=self.pick(self.possessives) if "kin" in noun.kinds else "the")

    def pair_alike(self, among: frozenset[str], use: str = ANY, described: float = 0.2) -> Both:
        """Two of a sort: people keep to people, so that what fits one fits both."""
        first = self.nominal(among, use, described)
        among = among & HUMAN if first.kinds & HUMAN else among - HUMAN
        return Both(first, self.nominal(among, use, described, other_than=first))


def anaphor(subject: Subject) -> Pronoun:
    """The pronoun that stands for `subject` in the next clause."""
    if isinstance(subject, Pronoun):
        return subject
    if plural_of(subject):
        return replace(THEY, gender=subject.gender, kinds=subject.kinds)
    human = HE if subject.gender == "m" else SHE
    return replace(human if subject.kinds & HUMAN else replace(human, english="it"), kinds=subject.kinds)


class Drawing(NounPhrases):
    def subject(self) -> Subject:
        if self.chance(0.22):
            return self.pick(PRONOUNS)
        return self.pair_alike(LIVING) if self.chance(0.12) else self.nominal(LIVING)

    # where and with whom

    def way(self, noun: Noun) -> Preposition:
        """Draws a place: "in the garden", "under the table"."""
        ways = LEXICON.prepositions
        inside = [ways[name] for name in ("in", "on", "at") if name in noun.kinds]
        if inside and self.chance(0.7):
            return inside[0]
        if noun.kinds & {"furniture", "tree"} and self.chance(0.6):
            return ways[self.pick(("on", "under") if "furniture" in noun.kinds else ("under",))]
        return ways[self.pick(AROUND) if not inside or "built" in noun.kinds else "near"]

    def place(self, among: frozenset[str] = LANDMARKS, other_than: Subject | None = None) -> Where:
        among = kinds("place") if self.chance(0.5) else among
        nominal = self.nominal(among, DEFINITE, described=0.25, other_than=other_than)
        return Where(self.way(nominal.noun), nominal)

    def companion(self, preposition: str) -> Where:
        return Where(LEXICON.prepositions[preposition], self.nominal(HUMAN, DEFINITE, described=0.25))

    # clauses

    def own(self, subject: Subject) -> None:
        """Makes "his" likelier from here on when the subject is "he"."""
        if subject.kinds & HUMAN:
            mine = "her" if (subject.person, subject.gender) == (2, "f") else WHOSE[subject.person]
            self.possessives = (*LEXICON.possessives, *[mine] * 6)

    def circumstances(self, clause: Clause) -> Clause:
        """Negation, how often, or when, as far as the clause has room for it."""
        roll = self.random()
        lasting = clause.verb.english in STATIVE or any(
            each.adjective.base not in LEXICON.passing_adjectives for each in clause.qualities
        )
        often = lasting or (clause.past and clause.verb is not LEXICON.be)
        if roll < 0.24:
            negation = "not" if roll < 0.18 or lasting else "never"
            return clause if clause.to_all else replace(clause, negation=negation)
        if roll < 0.36:
            return clause if often or clause.to_all else replace(clause, often=self.pick(LEXICON.adverbs["often"]))
        if roll < 0.52 and not lasting:
            when = "then" if clause.past else "now_to_all" if clause.to_all else "now"
            return replace(clause, time=self.pick(LEXICON.adverbs[when]))
        return clause

    def subject_to_describe(self) -> Subject:
        """Somebody or something to say a quality of."""
        roll = self.random()
        if roll < 0.15:
            return self.pick(PRONOUNS)
        return self.pair_alike(LIVING, DEFINITE) if roll < 0.22 else self.nominal(DESCRIBED, DEFINITE, described=0.3)

    def state(self, subject: Subject, past: bool, about: Subject, passing: bool = False) -> Clause:
        """ "The door is closed", "she was tired but happy"; `about` is `subject`, or what it stands for."""
        said = (*qualities_of(subject), *qualities_of(about))
        options = [
            each
            for each in adjectives_for(about)
            if (each.base in LEXICON.passing_adjectives or not passing)
            and each.base not in LEXICON.never_predicate
            and not any(clash(each, one) for one in said)
        ]
        first = self.quality(options)
        if first.adjective.graded and not first.degree and self.chance(0.1):
            first = Quality(first.adjective, "too")
        clause = self.circumstances(Clause(subject, LEXICON.be, past, qualities=(first,)))
        rest = [each for each in options if not clash(each, first.adjective)]
        if rest and not (clause.negation or clause.often or clause.time) and self.chance(0.2):
            return replace(clause, qualities=(first, self.quality(rest)), joint=self.pick(("and", "but")))
        return clause

    def location(self, past: bool) -> Clause:
        subject = self.nominal(LIVING | BELONGINGS, DEFINITE)
        return self.circumstances(Clause(subject, LEXICON.be, past, places=(self.place(other_than=subject),)))

    def transitive(self, subject: Subject, past: bool) -> Clause:
        verb = self.verb(LEXICON.transitive, subject, past)
        clause = self.circumstances(Clause(subject, verb, past))
        direct = not verb.preposition and verb.english != "love"
        use = DEFINITE if not direct else NEGATED if clause.negation else ANY
        places = (self.place(),) if verb.english not in STATIVE and self.chance(0.25) else ()
        if verb.english in ("buy", "take") and self.chance(0.3):
            places = (self.companion("for"),)
        if direct and not clause.negation and self.chance(0.1):
            return replace(clause, object=self.pair_alike(verb.objects), places=places)
        return replace(clause, object=self.nominal(verb.objects, use, other_than=subject), places=places)

    def verb(self, verbs: Sequence[Verb], subject: Subject, past: bool) -> Verb:
        suited = [each for each in verbs if subject.kinds & each.subjects and (each.past or not past)]
        return self.pick(suited)

    def gift(self, subject: Subject, past: bool) -> Clause:
        verb = self.pick(LEXICON.giving_verbs)
        clause = self.circumstances(Clause(subject, verb, past))
        given = self.nominal(verb.objects, NEGATED if clause.negation else ANY, described=0.35)
        receiver = Where(LEXICON.prepositions["to"], self.nominal(LIVING, DEFINITE, described=0.25, other_than=subject))
        return replace(clause, object=given, places=(receiver,))

    def motion(self, subject: Subject, past: bool) -> Clause:
        verb = self.pick(LEXICON.motion_verbs)
        goal = self.nominal(verb.objects, DEFINITE, described=0.25)
        places = (self.companion("with"),) if self.chance(0.25) else ()
        return self.circumstances(Clause(subject, verb, past, object=goal, places=places))

    def intransitive(self, subject: Subject, past: bool) -> Clause:
        verb = self.verb(LEXICON.intransitive, subject, past)
        clause = self.circumstances(Clause(subject, verb, past))
        if verb.adverbs and not clause.often and clause.negation != "never" and self.chance(0.35):
            clause = replace(clause, manner=self.pick(verb.adverbs))
        if verb.english == "get":
            return clause
        if verb.english == "sleep":
            return replace(clause, places=(self.place(),)) if self.chance(0.5) else clause
        if verb.english == "stay" or self.chance(0.4):
            return replace(clause, places=(self.place(),))
        return replace(clause, places=(self.companion("with"),)) if self.chance(0.3) else clause

    def action(self, subject: Subject, past: bool) -> Clause:
        """Draws what somebody does. "Vous mangez tous les gâteaux" would be all the cakes: only a past has objects
        there."""
        self.own(subject)
        roll = self.random()
        if subject is YOU_ALL and not past:
            roll = 0.65 + 0.35 * roll
        if roll < 0.55:
            return self.transitive(subject, past)
        if roll < 0.65 and subject.kinds & HUMAN:
            return self.gift(subject, past)
        return self.motion(subject, past) if roll < 0.75 else self.intransitive(subject, past)

    def clause(self) -> Clause:
        past, roll = self.chance(0.3), self.random()
        if roll < 0.28:
            subject = self.subject_to_describe()
            return self.state(subject, past, subject)
        return self.location(past) if roll < 0.36 else self.action(self.subject(), past)

    # sentences

    def compound(self) -> Compound:
        past = self.chance(0.3)
        first = self.subject()
        first = WE if first is YOU_ALL else first
        joint = self.pick(("and", "because") if past else ("and", "because", "when", "while"))
        opening = self.action(first, past)
        second, meant = (anaphor(first), first) if self.chance(0.6) else (self.stranger(first),) * 2
        if joint == "because" or (joint == "when" and self.chance(0.5)):
            closing = self.state(second, past, meant, passing=True)
        else:
            closing = self.joined_clause(joint, second, past, opening.verb)
        if joint in ("when", "while"):
            closing = replace(closing, negation="", often=None, time=None)
        return Compound(opening, joint, closing)

    def joined_clause(self, joint: str, subject: Subject, past: bool, verb: Verb) -> Clause:
        """Draws what somebody does with another verb than `verb`; nobody does anything "while" asleep."""
        act = self.action if joint == "and" else self.intransitive
        while True:
            clause = act(subject, past)
            if clause.verb != verb and not (joint == "while" and clause.verb.english == "sleep"):
                return clause

    def stranger(self, first: Subject) -> Subject:
        """A subject other than `first`: never he, she, it or they, which stand for the first."""
        if self.chance(0.3):
            return self.pick([each for each in SPEAKERS if each is not first])
        return self.nominal(LIVING, described=0.3, other_than=first)

    def existence(self) -> Existence:
        found, past = self.nominal(FOUND, INDEFINITE, described=0.5), self.chance(0.25)
        if self.chance(0.2):
            found = replace(found, determiner="no", number="")
        return Existence(found, self.place(kinds("furniture tree place"), other_than=found), past)

    def title(self) -> Nominal:
        """A noun phrase alone, always described."""
        return self.nominal(LIVING if self.chance(0.5) else DESCRIBED, described=1.0)

    def sentence(self) -> Meaning:
        roll = self.random()
        if roll < 0.08:
            return self.title()
        if roll < 0.15:
            return self.existence()
        return self.compound() if roll < 0.3 else self.clause()


def draw(random: Callable[[], float]) -> Meaning:
    """A meaning from a source of numbers in [0, 1)."""
    return Drawing(random).sentence()
