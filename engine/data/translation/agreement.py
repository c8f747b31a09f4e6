"""French word forms: plurals, agreement, conjugation, and what happens where two words meet."""

from collections.abc import Iterable

from .meaning import Word

VOWELS = frozenset("aeiouyàâéèêëîïôœ")
ASPIRATED = ("hibou", "huit")  # an h that keeps "le" whole; every other h is mute
ELIDING = frozenset(("le", "la", "je", "ne", "de", "me", "te", "se", "que"))
CONTRACTED = {("à", "le"): "au", ("à", "les"): "aux", ("de", "le"): "du", ("de", "les"): "des"}

PLURAL_IN_X = frozenset(("bijou", "hibou"))
FEMININE = {
    "beau": "belle",
    "nouveau": "nouvelle",
    "vieux": "vieille",
    "bon": "bonne",
    "gros": "grosse",
    "blanc": "blanche",
    "frais": "fraîche",
}
BEFORE_VOWEL = {"beau": "bel", "nouveau": "nouvel", "vieux": "vieil"}

GRAVE = {"acheter": "achèt", "lever": "lèv"}  # the stem where the ending is silent
SILENT = (True, True, True, False, False, True)
ENDINGS = ("e", "es", "e", "ons", "ez", "ent")
PRESENT = {
    "être": "suis es est sommes êtes sont",
    "avoir": "ai as a avons avez ont",
    "aller": "vais vas va allons allez vont",
    "revenir": "reviens reviens revient revenons revenez reviennent",
    "boire": "bois bois boit buvons buvez boivent",
    "voir": "vois vois voit voyons voyez voient",
    "lire": "lis lis lit lisons lisez lisent",
    "prendre": "prends prends prend prenons prenez prennent",
    "attendre": "attends attends attend attendons attendez attendent",
    "ouvrir": "ouvre ouvres ouvre ouvrons ouvrez ouvrent",
    "dormir": "dors dors dort dormons dormez dorment",
    "courir": "cours cours court courons courez courent",
}
IMPERFECT = {"être": "étais étais était étions étiez étaient", "avoir": "avais avais avait avions aviez avaient"}
PARTICIPLE = {
    "revenir": "revenu",
    "boire": "bu",
    "voir": "vu",
    "prendre": "pris",
    "attendre": "attendu",
    "ouvrir": "ouvert",
    "dormir": "dormi",
    "courir": "couru",
}
WITH_ETRE = frozenset(("aller", "revenir", "arriver", "rester", "lever"))


def begins_with_vowel(word: str) -> bool:
    return word[0] in VOWELS or (word[0] == "h" and not word.startswith(ASPIRATED))


def plural(word: str) -> str:
    """The plural of a noun, or of an adjective that already has its gender."""
    if word.endswith(("s", "x")):
        return word
    if word.endswith("al"):
        return f"{word[:-1]}ux"
    return f"{word}x" if word.endswith("eau") or word in PLURAL_IN_X else f"{word}s"


def feminine(adjective: str) -> str:
    if adjective in FEMININE:
        return FEMININE[adjective]
    if adjective.endswith("eux"):
        return f"{adjective[:-1]}se"
    if adjective.endswith("er"):
        return f"{adjective[:-2]}ère"
    return adjective if adjective.endswith("e") else f"{adjective}e"


def agree(adjective: str, gender: str, many: bool, following: str = "") -> str:
    """An adjective, or a participle, as its noun asks; `following` is the word after it, for "bel oiseau"."""
    if gender == "m" and not many and following and begins_with_vowel(following):
        return BEFORE_VOWEL.get(adjective, adjective)
    form = feminine(adjective) if gender == "f" else adjective
    return plural(form) if many else form


def present(verb: str, person: int) -> str:
    if verb in PRESENT:
        return PRESENT[verb].split()[person]
    stem = GRAVE[verb] if verb in GRAVE and SILENT[person] else verb[:-2]
    return f"{stem}e{ENDINGS[person]}" if stem.endswith("g") and person == 3 else f"{stem}{ENDINGS[person]}"


def imperfect(verb: str, person: int) -> str:
    return IMPERFECT[verb].split()[person]


def participle(verb: str) -> str:
    return PARTICIPLE.get(verb) or f"{verb[:-2]}é"


def meet(words: Iterable[Word]) -> list[Word]:
    """Elide and contract, from the end, because what a word elides before may have been elided itself.

    The one word that results expresses the parts of both: "l'oiseau" is the article and the noun.
    """
    met: list[Word] = []
    for word in reversed(list(words)):
        following = met[-1].text if met else "."
        if word.text in ELIDING and begins_with_vowel(following):
            met[-1] = Word(f"{word.text[:-1]}'{following}", word.parts | met[-1].parts)
        elif (word.text, following) in CONTRACTED:
            met[-1] = Word(CONTRACTED[word.text, following], word.parts | met[-1].parts)
        else:
            met.append(word)
    return met[::-1]
