"""What a text for learners states in numbers, the same in English and in French.

What a number says is told by what stands beside it:

- in front of a noun of NOUNS it counts, “3 rows”, in words too, with at most two words between;
- behind such a noun it names one, “row 3” or “rows 1 and 3”;
- joined by signs it is part of a sum, in brackets of a vector, behind the “=” of a letter a setting;
- with the mark of a list, the minutes of a step, a year, or a section of a paper it claims nothing;
- 0 and 1 are what shares, masks and one-hot vectors are made of, and “one” is a pronoun or an article: 0 and 1 are read
  as digits, where they count or name something. Ordinals are not read.
"""

import math
import re
from collections.abc import Iterator

from pages.controls import words

NUMERALS = {
    words.ENGLISH: "two three four five six seven eight nine ten eleven twelve sixteen twenty thirty",
    "fr": "deux trois quatre cinq six sept huit neuf dix onze douze seize vingt trente",
}
VALUES = (*range(2, 13), 16, 20, 30)
NOUNS = {  # each in English and in French
    "addition": ("additions?", "additions?"), "answer": ("answers?", "réponses?"), "block": ("blocks?", "blocs?"),
    "byte": ("bytes?", "octets?"), "column": ("columns?", "colonnes?"), "corner": ("corners?", "coins?"),
    "curve": ("curves?", "courbes?"), "decimal": ("decimals?", "décimales?"), "entry": ("entr(?:y|ies)", "entrées?"),
    "example": ("examples?", "exemples?"), "factor": ("factors?", "facteurs?"),
    "family": ("famil(?:y|ies)", "familles?"), "head": ("heads?", "têtes?"),
    "join": ("joins?", "réunions?"), "key": ("keys?", "clés?"),
    "kind": ("kinds?", "sortes?"), "layer": ("layers?", "couches?"), "letter": ("letters?", "lettres?"),
    "map": ("maps?", "applications?|cartes?"), "matrix": ("matri(?:x|ces)", "matrices?"),
    "model": ("models?", "modèles?"), "neighbour": ("neighbours?", "voisins?"), "norm": ("norms?", "normalisations?"),
    "number": ("numbers?", "nombres?"), "pass": ("pass(?:es)?", "passages?|passes?"), "pixel": ("pixels?", "pixels?"),
    "position": ("positions?", "positions?"), "quarter": ("quarters?", "quarts?"), "reason": ("reasons?", "raisons?"),
    "row": ("rows?|lines?", "lignes?"), "score": ("scores?", "scores?"), "seed": ("seeds?", "graines?"),
    "sentence": ("sentences?", "phrases?"),
    "side": ("sides?|(?<=both )ways", "côtés?"), "stack": ("stacks?", "piles?"),
    "step": ("steps?", "étapes?|(?<!est )pas"),
    "symbol": ("symbols?", "symboles?"), "task": ("tasks?", "tâches?"), "text": ("texts?", "textes?"),
    "third": ("thirds?", "tiers"), "time": ("times", "fois"), "token": ("tokens?", "jetons?"),
    "training": ("trainings?", "entraînements?"), "vector": ("vectors?", "vecteurs?"),
    "way": ("ways?", "façons?|manières?|chemins?"), "weight": ("weights?", "poids"), "word": ("words?", "mots?"),
    "zero": ("zeros?", "zéros?"),
}  # fmt: skip
NAMED = {"block", "head", "key", "layer", "row", "seed", "step", "token"}  # of which there are first and second ones
ENDS = {  # words behind which a number counts nothing that follows
    words.ENGLISH: "a add and are as at by each for from get has have in is leave of on one per seen the to with",
    "fr": "a au avec d’un d’une de des du en est et le la les ne non ou par pas plus pour qu’au que se sur un une",
}
NUMBER = r"\d[\d,]*\.\d+|\d[\d,]*\d|\d"
WHOLE = r"(?<![\w.,/-])", r"(?![.,]?\d)(?!\w)"  # around a number that stands by itself
ASIDE = re.compile(
    r"\$\$?[^$]+\$\$?|`[^`]*`|\b(?:19|20)\d\d\b|^(?:\d\. )?\(\d min\)|^\d\. |^## \w+ (?:\d|minutes)$"
    r"|(?:sections?|figure|table(?:au)?|[eé]quation) [\d.]+",
    re.MULTILINE,
)
FACTOR = rf"(?:\d (?=\())?\(*[-−]?(?:(?:\d )?\b[a-z](?![a-z’])|(?:{NUMBER})(?![.,]?\d))²?\)*"
SUM = re.compile(rf"(?<![\w.,-]){FACTOR}(?: [-+−·×/] {FACTOR})+(?: = [-−]?(?:{NUMBER})(?![\d²]))?")
VECTOR = re.compile(r"[\[(][-−\d.,; ]*\d ?[,;] [-−\d.,; ]*\d[\])]")
SETTING = re.compile(r"(?<!\w)[^\W\d] = [-−]?\d(?![\w.,]*\d)")


def prose(text: str, lang: str) -> str:
    """A text without its head, emphasis and links, its numbers written as in English."""
    said = text.split("+++\n")[-1].replace("\u202f", " ").replace("\xa0", " ").replace("*", "")
    said = re.sub(r"\[\[(?:[^\]|\d]+\|)?([^\]\d]+)\]\]", r"\1", said).replace("twice", "two times")
    if lang != words.ENGLISH:
        said = re.sub(r"(?<=\d),(?=\d)", ".", said)
        said = re.sub(r"(?<![\w.])\d{1,3}(?: \d{3})+(?!\d)", lambda found: found[0].replace(" ", ","), said)
    return said


def counts(text: str, lang: str) -> list[str]:
    """What is counted, “3 row”, and what is named by a number, “row 3”, of one digit or in words."""
    return [claim for claim, _where in claims(ASIDE.sub("", prose(text, lang)), lang)]


def claims(said: str, lang: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Those, each with where it stands in what is said."""
    of = dict(zip(NUMERALS[lang].split(), VALUES, strict=True)) | {"both": 2}
    nouns = "|".join(f"(?P<{noun}>{forms[lang != words.ENGLISH]})" for noun, forms in NOUNS.items())
    between = rf"(?:[ -](?!(?:{'|'.join([*ENDS[lang].split(), *of])})\b)[^\W\d][\w’]*){{0,2}}?"
    before, behind = WHOLE
    counted = rf"{before}(?P<n>\d|{'|'.join(of)}){behind}{between}[ -](?:{nouns})\b"
    for match in re.finditer(counted, said, re.IGNORECASE):
        number = match["n"].lower()
        yield f"{of.get(number, number)} {noun_of(match)}", match.span("n")
    for match in re.finditer(rf"\b(?:{nouns}) (?P<n>\d(?:(?:, | and | et )\d)*){behind}", said, re.IGNORECASE):
        for one in re.finditer(r"\d", match["n"]) if noun_of(match) in NAMED else ():
            at = match.start("n") + one.start()
            yield f"{noun_of(match)} {one[0]}", (at, at + 1)


def noun_of(match: re.Match[str]) -> str:
    return next(noun for noun in NOUNS if match[noun])


def numbers(text: str, lang: str) -> list[str]:
    """Every number in digits but 0 and 1, as in English: also those of formulas and of what claims nothing."""
    return [one for one in re.findall(NUMBER, re.sub(r"[_^]\S*", "", prose(text, lang))) if one not in ("0", "1")]


def bare(text: str, lang: str) -> set[str]:
    """The numbers of one digit that neither count nor name anything, are part of no sum, vector or setting."""
    said = ASIDE.sub("", prose(text, lang))
    for _claim, (start, end) in claims(said, lang):
        said = said[:start] + "_" * (end - start) + said[end:]
    for part in (SUM, VECTOR, SETTING):
        said = part.sub("", said)
    before, behind = WHOLE
    return set(re.findall(rf"{before}[2-9]{behind}(?! ?%| \(?[b-z]\b)", said))


def sums(text: str, lang: str) -> list[str]:
    """The sums of a text, of numbers and e alone, that say what they come to."""
    found = [match[0] for match in SUM.finditer(ASIDE.sub("", prose(text, lang)))]
    return [one for one in found if " = " in one and not re.search(r"[a-df-z]", one)]


def value(term: str) -> float:
    """Of a sum in the signs that `sums` finds, products before additions."""
    said = term.replace("−", "-")
    while inner := re.search(r"\(([^()]+)\)", said):
        said = f"{said[: inner.start()]}{value(inner[1])!r}{said[inner.end() :]}"
    total = 0.0
    for sign, product in re.findall(r"(?:^| ([-+]) )((?:(?! [-+] ).)+)", said):
        part = 1.0
        for by, factor in re.findall(r"(?:^| ([·×/]) )([^ ]+)", product):
            number = factor.removesuffix("²").replace(",", "")
            found = (math.e if number == "e" else float(number)) ** (2 if factor.endswith("²") else 1)
            part = part / found if by == "/" else part * found
        total += -part if sign == "-" else part
    return total
