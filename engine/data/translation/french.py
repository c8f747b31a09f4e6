"""A meaning as French words: plurals, agreement, conjugation, word order, and what happens where two words meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from engine.data.corpora import read_corpus

from .lexicon import LEXICON
from .meaning import (
    Both,
    Clause,
    Compound,
    Existence,
    Meaning,
    Nominal,
    Pronoun,
    Quality,
    Subject,
    Where,
    Word,
    plural_of,
    say,
)

VOWELS = frozenset("aeiouyàâéèêëîïôœ")
SILENT = (True, True, True, False, False, True)  # the endings of the present
ENDINGS = ("e", "es", "e", "ons", "ez", "ent")


def forms(table: str) -> Any:
    """A table of word forms that no rule gives."""
    return read_corpus("translation/french")[table]


# Word forms


def begins_with_vowel(word: str) -> bool:
    word = word.lower()
    return word[0] in VOWELS or (word[0] == "h" and not word.startswith(tuple(forms("aspirated"))))


def plural(word: str) -> str:
    """The plural of a noun, or of an adjective that already has its gender."""
    if word.endswith(("s", "x")):
        return word
    if word.endswith("al"):
        return f"{word[:-1]}ux"
    return f"{word}x" if word.endswith("eau") or word in forms("plural_in_x") else f"{word}s"


def feminine(adjective: str) -> str:
    if adjective in forms("feminine"):
        return forms("feminine")[adjective]
    if adjective.endswith("eux"):
        return f"{adjective[:-1]}se"
    if adjective.endswith("er"):
        return f"{adjective[:-2]}ère"
    return adjective if adjective.endswith("e") else f"{adjective}e"


def agree(adjective: str, gender: str, many: bool, following: str = "") -> str:
    """An adjective, or a participle, as its noun asks; `following` is the word after it, for "bel oiseau"."""
    if gender == "m" and not many and following and begins_with_vowel(following):
        return forms("before_vowel").get(adjective, adjective)
    form = feminine(adjective) if gender == "f" else adjective
    return plural(form) if many else form


def present(verb: str, person: int) -> str:
    if verb in forms("present"):
        return forms("present")[verb].split()[person]
    stem = forms("grave").get(verb, verb[:-2]) if SILENT[person] else verb[:-2]
    return f"{stem}e{ENDINGS[person]}" if stem.endswith("g") and person == 3 else f"{stem}{ENDINGS[person]}"


def imperfect(verb: str, person: int) -> str:
    return forms("imperfect")[verb].split()[person]


def participle(verb: str) -> str:
    return forms("participle").get(verb) or f"{verb[:-2]}é"


def join_words(words: Iterable[Word]) -> list[Word]:
    """Elide and contract, from the end, because what a word elides before may have been elided itself.

    The one word that results expresses the parts of both: "l'oiseau" is the article and the noun.
    """
    met: list[Word] = []
    for word in reversed(list(words)):
        following = met[-1].text if met else "."
        if word.text in forms("eliding") and begins_with_vowel(following):
            met[-1] = Word(f"{word.text[:-1]}'{following}", word.parts | met[-1].parts)
        elif f"{word.text} {following}" in forms("contracted"):
            met[-1] = Word(forms("contracted")[f"{word.text} {following}"], word.parts | met[-1].parts)
        else:
            met.append(word)
    return met[::-1]


# Sentences


def quality(quality: Quality, gender: str, many: bool, at: str, following: str = "") -> list[Word]:
    *adverb, adjective = quality.adjective.french.split()
    degree = adverb[0] if adverb else LEXICON.function_words["degrees"].get(quality.degree, "")
    return [*say(degree, f"{at}.degree"), *say(agree(adjective, gender, many, following), at)]


def possessive(row: Sequence[str], nominal: Nominal, following: str) -> str:
    """ "sa voiture", but "son école": before a vowel the feminine borrows the masculine form."""
    masculine, feminine, many = row
    if nominal.plural:
        return many
    return feminine if nominal.gender == "f" and not begins_with_vowel(following) else masculine


def determiner(nominal: Nominal, following: str, negated: bool, to_all: bool) -> str:
    """Form of the determiner before `following`; before meeting it, so "de le" is still two words."""
    name, at = nominal.determiner, 2 if nominal.plural else "mf".index(nominal.gender)
    if name in LEXICON.possessives:
        to_you_all = to_all and name == "your"
        row = forms("your_to_all") if to_you_all else LEXICON.function_words["possessives"][name]
        return possessive(row, nominal, following)
    if name in ("any", "no") or (name == "a" and negated):
        return "de"
    if name == "a":
        return ("un", "une")[at]
    if name == "some" and nominal.plural:
        return "de" if any(each.adjective.before for each in nominal.qualities) else "des"
    if name == "some":
        return ("de le", "de la")[at]
    if name in ("this", "that"):
        return "cet" if at == 0 and begins_with_vowel(following) else ("ce", "cette", "ces")[at]
    return ("le", "la", "les")[at] if name == "the" or nominal.owner else ""


def noun_phrase(nominal: Nominal, at: str, negated: bool = False, to_all: bool = False) -> list[Word]:
    gender, many, noun = nominal.gender, nominal.plural, nominal.noun.french
    words = say(LEXICON.function_words["numbers"].get(nominal.number, ""), f"{at}.number")
    after: list[Word] = []
    for i, each in enumerate(nominal.qualities):
        if each.adjective.before:
            words += quality(each, gender, many, f"{at}.quality{i}", following=noun)
        else:
            after += quality(each, gender, many, f"{at}.quality{i}")
    words += [*say(plural(noun) if many else noun, f"{at}.noun"), *after]
    article = determiner(nominal, words[0].text, negated, to_all)
    if nominal.owner:
        of = f"{at}.owner.of"
        return [*say(article, of), *words, *say("de", of), *noun_phrase(nominal.owner, f"{at}.owner", to_all=to_all)]
    return [*say(article, f"{at}.determiner"), *words]


def phrase(subject: Subject, at: str, negated: bool = False, to_all: bool = False) -> list[Word]:
    match subject:
        case Pronoun():
            return say(forms("subjects")[subject.gender].split()[subject.person], at)
        case Both():
            first = noun_phrase(subject.first, f"{at}.first", negated, to_all)
            return [*first, *say("et", f"{at}.and"), *noun_phrase(subject.second, f"{at}.second", negated, to_all)]
        case Nominal():
            return noun_phrase(subject, at, negated, to_all)


def place_phrase(place: Where, at: str, to_all: bool = False) -> list[Word]:
    return [*say(place.preposition.french, f"{at}.preposition"), *noun_phrase(place.nominal, at, to_all=to_all)]


def predicate(clause: Clause, at: str) -> list[Word]:
    """The verb, with all that stands between its parts: "n'a jamais mangé", "ne se lève pas", "êtes tous allés"."""
    subject, name = clause.subject, clause.verb.french.removeprefix("se ")
    done = clause.past and name != "être"
    helper = "être" if name in forms("with_etre") else "avoir"
    if done:
        finite = say(present(helper, subject.person), f"{at}.tense")
    else:
        form = imperfect if clause.past else present
        finite = say(form(name, subject.person), f"{at}.tense", f"{at}.verb")
    if clause.verb.french.startswith("se "):
        finite = say(forms("subjects")["reflexive"].split()[subject.person], f"{at}.verb") + finite
    if clause.negation:
        negation = LEXICON.function_words["negations"][clause.negation]
        finite = say("ne", f"{at}.not") + finite + say(negation, f"{at}.not")
    finite += say("tous", f"{at}.all") if clause.to_all else []
    finite += say(clause.often.french, f"{at}.often") if clause.often else []
    manner = say(clause.manner.french, f"{at}.manner") if clause.manner else []
    if not done:
        return finite + manner
    agreed = (subject.gender, plural_of(subject)) if helper == "être" else ("m", False)
    main = say(agree(participle(name), *agreed), f"{at}.verb")
    return finite + (manner + main if clause.manner and clause.manner.inner else main + manner)


def clause(clause: Clause, at: str) -> list[Word]:
    to_all, subject = clause.to_all, clause.subject
    words = phrase(subject, f"{at}.subject", to_all=to_all) + predicate(clause, at)
    for i, each in enumerate(clause.qualities):
        words += say(LEXICON.function_words["joints"][clause.joint], f"{at}.joint") if i else []
        words += quality(each, subject.gender, plural_of(subject), f"{at}.quality{i}")
    words += say(clause.verb.preposition, f"{at}.particle" if clause.verb.particle else f"{at}.verb")
    words += phrase(clause.object, f"{at}.object", bool(clause.negation), to_all) if clause.object else []
    for i, place in enumerate(clause.places):
        words += place_phrase(place, f"{at}.place{i}", to_all)
    return words + (say(clause.time.french, f"{at}.time") if clause.time else [])


def existence(meaning: Existence) -> list[Word]:
    none = meaning.nominal.determiner == "no"
    form = imperfect if meaning.past else present
    no = "nominal.determiner"
    return [
        *say("il", "there"),
        *(say("ne", no) if none else []),
        *say("y", "there"),
        *say(form("avoir", 2), "verb"),
        *(say("pas", no) if none else []),
        *noun_phrase(meaning.nominal, "nominal"),
        *place_phrase(meaning.place, "place"),
    ]


def write(meaning: Meaning) -> list[Word]:
    match meaning:
        case Nominal():
            return join_words(noun_phrase(meaning, "nominal"))
        case Clause():
            return join_words(clause(meaning, "clause"))
        case Existence():
            return join_words(existence(meaning))
        case Compound():
            first, second = clause(meaning.first, "first"), clause(meaning.second, "second")
            return join_words([*first, *say(LEXICON.function_words["joints"][meaning.joint], "joint"), *second])
