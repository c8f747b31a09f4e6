"""A meaning as French words."""

from .agreement import WITH_ETRE, agree, begins_with_vowel, imperfect, meet, participle, plural, present
from .function_words import DEGREES, JOINTS, NUMBERS, POSSESSIVES, YOURS
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

SUBJECTS = {"m": ("je", "tu", "il", "nous", "vous", "ils"), "f": ("je", "tu", "elle", "nous", "vous", "elles")}
REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")
NEGATIONS = {"not": "pas", "never": "jamais"}


def quality(quality: Quality, gender: str, many: bool, at: str, following: str = "") -> list[Word]:
    *adverb, adjective = quality.adjective.french.split()
    degree = adverb[0] if adverb else DEGREES.get(quality.degree, "")
    return [*say(degree, f"{at}.degree"), *say(agree(adjective, gender, many, following), at)]


def possessive(forms: tuple[str, str, str], nominal: Nominal, following: str) -> str:
    """ "sa voiture", but "son école": before a vowel the feminine borrows the masculine form."""
    masculine, feminine, many = forms
    if nominal.plural:
        return many
    return feminine if nominal.gender == "f" and not begins_with_vowel(following) else masculine


def determiner(nominal: Nominal, following: str, negated: bool, to_all: bool) -> str:
    """What stands before `following`; before meeting it, so "de le" is still two words."""
    name, at = nominal.determiner, 2 if nominal.plural else "mf".index(nominal.gender)
    if name in POSSESSIVES:
        return possessive(YOURS if to_all and name == "your" else POSSESSIVES[name], nominal, following)
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
    words = say(NUMBERS.get(nominal.number, ""), f"{at}.number")
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
            return say(SUBJECTS[subject.gender][subject.person], at)
        case Both():
            first = noun_phrase(subject.first, f"{at}.first", negated, to_all)
            return [*first, *say("et", f"{at}.and"), *noun_phrase(subject.second, f"{at}.second", negated, to_all)]
        case Nominal():
            return noun_phrase(subject, at, negated, to_all)


def where(place: Where, at: str, to_all: bool = False) -> list[Word]:
    return [*say(place.preposition.french, f"{at}.preposition"), *noun_phrase(place.nominal, at, to_all=to_all)]


def predicate(clause: Clause, at: str) -> list[Word]:
    """The verb, with all that stands between its parts: "n'a jamais mangé", "ne se lève pas", "êtes tous allés"."""
    subject, name = clause.subject, clause.verb.french.removeprefix("se ")
    done = clause.past and name != "être"
    helper = "être" if name in WITH_ETRE else "avoir"
    if done:
        finite = say(present(helper, subject.person), f"{at}.tense")
    else:
        form = imperfect if clause.past else present
        finite = say(form(name, subject.person), f"{at}.tense", f"{at}.verb")
    if clause.verb.french.startswith("se "):
        finite = say(REFLEXIVE[subject.person], f"{at}.verb") + finite
    if clause.negation:
        finite = say("ne", f"{at}.not") + finite + say(NEGATIONS[clause.negation], f"{at}.not")
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
        words += say(JOINTS[clause.joint], f"{at}.joint") if i else []
        words += quality(each, subject.gender, plural_of(subject), f"{at}.quality{i}")
    words += say(clause.verb.preposition, f"{at}.particle" if clause.verb.particle else f"{at}.verb")
    words += phrase(clause.object, f"{at}.object", bool(clause.negation), to_all) if clause.object else []
    for i, place in enumerate(clause.places):
        words += where(place, f"{at}.place{i}", to_all)
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
        *where(meaning.place, "place"),
    ]


def write(meaning: Meaning) -> list[Word]:
    match meaning:
        case Nominal():
            return meet(noun_phrase(meaning, "nominal"))
        case Clause():
            return meet(clause(meaning, "clause"))
        case Existence():
            return meet(existence(meaning))
        case Compound():
            first, second = clause(meaning.first, "first"), clause(meaning.second, "second")
            return meet([*first, *say(JOINTS[meaning.joint], "joint"), *second])
