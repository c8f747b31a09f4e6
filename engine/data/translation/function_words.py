"""Prepositions, possessives, numbers, conjunctions. Tables only."""

from .lexicon import Preposition

WAYS_IN = {name: Preposition(name, french) for name, french in (("in", "dans"), ("on", "sur"), ("at", "à"))}
NEAR = Preposition("near", "près de")
AROUND = (Preposition("behind", "derrière"), Preposition("in front of", "devant"), NEAR)
ON_AND_UNDER = (WAYS_IN["on"], Preposition("under", "sous"))
TO, WITH, FOR = Preposition("to", "à"), Preposition("with", "avec"), Preposition("for", "pour")

POSSESSIVES = {
    "my": ("mon", "ma", "mes"),
    "your": ("ton", "ta", "tes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "their": ("leur", "leur", "leurs"),
}
YOURS = ("votre", "votre", "vos")  # "your" in a sentence that speaks to "you all"
NUMBERS = {
    "two": "deux",
    "three": "trois",
    "four": "quatre",
    "five": "cinq",
    "six": "six",
    "seven": "sept",
    "eight": "huit",
    "nine": "neuf",
    "ten": "dix",
}
DEGREES = {"very": "très", "too": "trop"}
JOINTS = {"and": "et", "but": "mais", "because": "parce que", "when": "quand", "while": "pendant que"}
