"""Drawing a meaning: what of the vocabulary goes together, and how often each kind of sentence comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from . import lexicon
from .adjectives import NEVER_SAID_OF, PASSING
from .function_words import AROUND, FOR, NEAR, ON_AND_UNDER, POSSESSIVES, TO, WAYS_IN, WITH
from .lexicon import Noun, Preposition, Verb, kinds
from .meaning import Clause, Compound, Existence, Meaning, Nominal, Pronoun, Quality, Subject, Where, plural_of
from .nominals import (
    ANY,
    DEFINITE,
    HUMAN,
    INDEFINITE,
    LIVING,
    NEGATED,
    NounPhrases,
    adjectives_for,
    clash,
    qualities_of,
)
from .verbs import BE, GIVING, INTRANSITIVE, MOVING, NOW, OFTEN, THEN, TO_ALL_NOW, TRANSITIVE

GOODS = kinds("clothes thing")
FOUND = kinds(f"animal child person food tree {lexicon.GOODS}")
LANDMARKS = kinds("furniture tree vehicle place animal")
DESCRIBED = kinds(f"{lexicon.LIVING} {lexicon.SEEN} food dish drink")

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

STATIVE = frozenset(("love", "have", "need"))


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
        return self.both(LIVING) if self.chance(0.12) else self.nominal(LIVING)

    # where and with whom

    def way(self, noun: Noun) -> Preposition:
        inside = [way for name, way in WAYS_IN.items() if name in noun.kinds]
        if inside and self.chance(0.7):
            return inside[0]
        if noun.kinds & {"furniture", "tree"} and self.chance(0.6):
            return self.pick(ON_AND_UNDER if "furniture" in noun.kinds else ON_AND_UNDER[1:])
        return self.pick(AROUND) if not inside or "built" in noun.kinds else NEAR

    def place(self, among: frozenset[str] = LANDMARKS, other_than: Subject | None = None) -> Where:
        among = kinds("place") if self.chance(0.5) else among
        nominal = self.nominal(among, DEFINITE, described=0.25, other_than=other_than)
        return Where(self.way(nominal.noun), nominal)

    def companion(self, preposition: Preposition) -> Where:
        return Where(preposition, self.nominal(HUMAN, DEFINITE, described=0.25))

    # clauses

    def own(self, subject: Subject) -> None:
        """From here on "his" is likelier when the subject is "he"."""
        if subject.kinds & HUMAN:
            mine = "her" if (subject.person, subject.gender) == (2, "f") else WHOSE[subject.person]
            self.possessives = (*POSSESSIVES, *[mine] * 6)

    def circumstances(self, clause: Clause) -> Clause:
        """Negation, how often, or when, as far as the clause has room for it."""
        roll = self.random()
        lasting = clause.verb.english in STATIVE or any(each.adjective.base not in PASSING for each in clause.qualities)
        often = lasting or (clause.past and clause.verb is not BE)
        if roll < 0.24:
            negation = "not" if roll < 0.18 or lasting else "never"
            return clause if clause.to_all else replace(clause, negation=negation)
        if roll < 0.36:
            return clause if often or clause.to_all else replace(clause, often=self.pick(OFTEN))
        if roll < 0.52 and not lasting:
            when = THEN if clause.past else TO_ALL_NOW if clause.to_all else NOW
            return replace(clause, time=self.pick(when))
        return clause

    def described(self) -> Subject:
        """Somebody or something to say a quality of."""
        roll = self.random()
        if roll < 0.15:
            return self.pick(PRONOUNS)
        return self.both(LIVING, DEFINITE) if roll < 0.22 else self.nominal(DESCRIBED, DEFINITE, described=0.3)

    def state(self, subject: Subject, past: bool, about: Subject, passing: bool = False) -> Clause:
        """ "The door is closed", "she was tired but happy"; `about` is `subject`, or what it stands for."""
        said = (*qualities_of(subject), *qualities_of(about))
        options = [
            each
            for each in adjectives_for(about)
            if (each.base in PASSING or not passing)
            and each.base not in NEVER_SAID_OF
            and not any(clash(each, one) for one in said)
        ]
        first = self.quality(options)
        if first.adjective.graded and not first.degree and self.chance(0.1):
            first = Quality(first.adjective, "too")
        clause = self.circumstances(Clause(subject, BE, past, qualities=(first,)))
        rest = [each for each in options if not clash(each, first.adjective)]
        if rest and not (clause.negation or clause.often or clause.time) and self.chance(0.2):
            return replace(clause, qualities=(first, self.quality(rest)), joint=self.pick(("and", "but")))
        return clause

    def location(self, past: bool) -> Clause:
        subject = self.nominal(LIVING | GOODS, DEFINITE)
        return self.circumstances(Clause(subject, BE, past, places=(self.place(other_than=subject),)))

    def transitive(self, subject: Subject, past: bool) -> Clause:
        verb = self.verb(TRANSITIVE, subject, past)
        clause = self.circumstances(Clause(subject, verb, past))
        direct = not verb.preposition and verb.english != "love"
        use = DEFINITE if not direct else NEGATED if clause.negation else ANY
        places = (self.place(),) if verb.english not in STATIVE and self.chance(0.25) else ()
        if verb.english in ("buy", "take") and self.chance(0.3):
            places = (self.companion(FOR),)
        if direct and not clause.negation and self.chance(0.1):
            return replace(clause, object=self.both(verb.objects), places=places)
        return replace(clause, object=self.nominal(verb.objects, use, other_than=subject), places=places)

    def verb(self, verbs: Sequence[Verb], subject: Subject, past: bool) -> Verb:
        suited = [each for each in verbs if subject.kinds & each.subjects and (each.past or not past)]
        return self.pick(suited)

    def giving(self, subject: Subject, past: bool) -> Clause:
        verb = self.pick(GIVING)
        clause = self.circumstances(Clause(subject, verb, past))
        given = self.nominal(verb.objects, NEGATED if clause.negation else ANY, described=0.35)
        receiver = Where(TO, self.nominal(LIVING, DEFINITE, described=0.25, other_than=subject))
        return replace(clause, object=given, places=(receiver,))

    def moving(self, subject: Subject, past: bool) -> Clause:
        verb = self.pick(MOVING)
        goal = self.nominal(verb.objects, DEFINITE, described=0.25)
        places = (self.companion(WITH),) if self.chance(0.25) else ()
        return self.circumstances(Clause(subject, verb, past, object=goal, places=places))

    def intransitive(self, subject: Subject, past: bool) -> Clause:
        verb = self.verb(INTRANSITIVE, subject, past)
        clause = self.circumstances(Clause(subject, verb, past))
        if verb.adverbs and not clause.often and clause.negation != "never" and self.chance(0.35):
            clause = replace(clause, manner=self.pick(verb.adverbs))
        if verb.english == "get":
            return clause
        if verb.english == "sleep":
            return replace(clause, places=(self.place(),)) if self.chance(0.5) else clause
        if verb.english == "stay" or self.chance(0.4):
            return replace(clause, places=(self.place(),))
        return replace(clause, places=(self.companion(WITH),)) if self.chance(0.3) else clause

    def action(self, subject: Subject, past: bool) -> Clause:
        """What somebody does. "Vous mangez tous les gâteaux" would be all the cakes: only a past has objects there."""
        self.own(subject)
        roll = self.random()
        if subject is YOU_ALL and not past:
            roll = 0.65 + 0.35 * roll
        if roll < 0.55:
            return self.transitive(subject, past)
        if roll < 0.65 and subject.kinds & HUMAN:
            return self.giving(subject, past)
        return self.moving(subject, past) if roll < 0.75 else self.intransitive(subject, past)

    def clause(self) -> Clause:
        past, roll = self.chance(0.3), self.random()
        if roll < 0.28:
            subject = self.described()
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
            closing = self.closing(joint, second, past, opening.verb)
        if joint in ("when", "while"):
            closing = replace(closing, negation="", often=None, time=None)
        return Compound(opening, joint, closing)

    def closing(self, joint: str, subject: Subject, past: bool, said: Verb) -> Clause:
        """What somebody does with another verb than `said`; nobody does anything "while" asleep."""
        act = self.action if joint == "and" else self.intransitive
        while True:
            clause = act(subject, past)
            if clause.verb != said and not (joint == "while" and clause.verb.english == "sleep"):
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

    def meaning(self) -> Meaning:
        roll = self.random()
        if roll < 0.08:
            return self.title()
        if roll < 0.15:
            return self.existence()
        return self.compound() if roll < 0.3 else self.clause()


def draw(random: Callable[[], float]) -> Meaning:
    """A meaning from a source of numbers in [0, 1)."""
    return Drawing(random).meaning()
