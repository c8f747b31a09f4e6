"""A meaning as English words."""

from __future__ import annotations

from typing import Any

from engine.data.corpora import read_corpus

from .lexicon import Verb
from .meaning import Both, Clause, Compound, Existence, Meaning, Nominal, Pronoun, Quality, Subject, Where, Word, say


def forms(table: str) -> Any:
    """A table of word forms that no rule gives."""
    return read_corpus("translation/english")[table]


def be(past: bool, person: int) -> str:
    """The form for a `person` from 0 to 5: I, you, he or she, we, you all, they."""
    return forms("be")["past" if past else "present"].split()[person]


def with_s(word: str) -> str:
    """The plural of a regular noun and the third person of a regular verb: boxes, carries, plays."""
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "sh", "ch", "x", "o")) else f"{word}s"


def plural(noun: str) -> str:
    return forms("plural").get(noun) or with_s(noun)


def third_person(verb: str) -> str:
    return "has" if verb == "have" else with_s(verb)


def quality(quality: Quality, at: str) -> list[Word]:
    """ "very happy"; "delighted" alone says both words of "très heureux"."""
    parts = (at, f"{at}.degree") if " " in quality.adjective.french else (at,)
    return [*say(quality.degree, f"{at}.degree"), *say(quality.adjective.english, *parts)]


def determiner(nominal: Nominal, following: str) -> str:
    if nominal.determiner == "a":
        return "an" if following[0] in "aeiou" else "a"
    return forms("far").get(nominal.determiner, nominal.determiner) if nominal.plural else nominal.determiner


def owner(nominal: Nominal, at: str) -> list[Word]:
    *rest, last = noun_phrase(nominal, at)
    return [*rest, Word(f"{last.text}'s", last.parts | {f"{at}.of"})]


def noun_phrase(nominal: Nominal, at: str) -> list[Word]:
    rest = say(nominal.number, f"{at}.number")
    for i, each in enumerate(nominal.qualities):
        rest += quality(each, f"{at}.quality{i}")
    rest += say(plural(nominal.noun.english) if nominal.plural else nominal.noun.english, f"{at}.noun")
    if nominal.owner:
        return [*owner(nominal.owner, f"{at}.owner"), *rest]
    return [*say(determiner(nominal, rest[0].text), f"{at}.determiner"), *rest]


def phrase(subject: Subject, at: str) -> list[Word]:
    match subject:
        case Pronoun():
            return say(subject.english, at)
        case Both():
            first, second = noun_phrase(subject.first, f"{at}.first"), noun_phrase(subject.second, f"{at}.second")
            return [*first, *say("and", f"{at}.and"), *second]
        case Nominal():
            return noun_phrase(subject, at)


def place_phrase(place: Where, at: str) -> list[Word]:
    return [*say(place.preposition.english, f"{at}.preposition"), *noun_phrase(place.nominal, at)]


def action(clause: Clause, at: str) -> list[Word]:
    """ "often sleeps", "did not look at"."""
    verb, third = clause.verb, clause.subject.person == 2
    particle = say(verb.particle, f"{at}.particle" if verb.preposition else f"{at}.verb")
    if clause.negation == "not":
        helper = "did" if clause.past else "does" if third else "do"
        return [*say(helper, f"{at}.tense"), *say("not", f"{at}.not"), *say(verb.english, f"{at}.verb"), *particle]
    before = say("all", f"{at}.all") if clause.to_all else say(clause.negation, f"{at}.not")
    before += say(clause.often.english, f"{at}.often") if clause.often else []
    return [*before, *say(inflect(verb, clause.past, third), f"{at}.tense", f"{at}.verb"), *particle]


def inflect(verb: Verb, past: bool, third: bool) -> str:
    return verb.past if past else third_person(verb.english) if third else verb.english


def state(clause: Clause, at: str) -> list[Word]:
    """ "is not always sad", "were tired but happy"."""
    words = say(be(clause.past, clause.subject.person), f"{at}.verb")
    words += say("all", f"{at}.all") if clause.to_all else say(clause.negation, f"{at}.not")
    words += say(clause.often.english, f"{at}.often") if clause.often else []
    for i, each in enumerate(clause.qualities):
        words += [*(say(clause.joint, f"{at}.joint") if i else []), *quality(each, f"{at}.quality{i}")]
    return words


def clause(clause: Clause, at: str) -> list[Word]:
    words = phrase(clause.subject, f"{at}.subject")
    words += state(clause, at) if clause.verb.english == "be" else action(clause, at)
    words += phrase(clause.object, f"{at}.object") if clause.object else []
    words += say(clause.manner.english, f"{at}.manner") if clause.manner else []
    for i, place in enumerate(clause.places):
        words += place_phrase(place, f"{at}.place{i}")
    return words + (say(clause.time.english, f"{at}.time") if clause.time else [])


def existence(meaning: Existence) -> list[Word]:
    return [
        *say("there", "there"),
        *say(be(meaning.past, meaning.nominal.person), "verb"),
        *noun_phrase(meaning.nominal, "nominal"),
        *place_phrase(meaning.place, "place"),
    ]


def write(meaning: Meaning) -> list[Word]:
    match meaning:
        case Nominal():
            return noun_phrase(meaning, "nominal")
        case Clause():
            return clause(meaning, "clause")
        case Existence():
            return existence(meaning)
        case Compound():
            first, second = clause(meaning.first, "first"), clause(meaning.second, "second")
            return [*first, *say(meaning.joint, "joint"), *second]
