"""Words that the tables are about. Tables only."""

from __future__ import annotations

from engine.data.translation.nouns import NOUNS

LONGEST = 7  # letters of a word

KINDS = {
    "animal": "cat dog horse cow mouse bird owl fox bear deer mole duck fish frog goat hen lion pig sheep wolf",
    "food": "apple egg cake bread cheese soup meat milk rice honey pear plum nut jam corn bean pie salt butter tea",
    "color": "red blue green yellow orange purple pink white black brown silver gray gold",
    "clothes": "hat coat dress shirt shoe sock glove scarf belt boot cap skirt",
    "person": "man woman king queen doctor boy girl child brother sister mother father friend baker farmer",
    "place": "garden house street park forest bridge beach school market station farm town lake cave",
}
WHAT_IT_IS = tuple((word, kind) for kind, words in KINDS.items() for word in words.split())
OPPOSITES = (
    ("hot", "cold"), ("big", "small"), ("up", "down"), ("left", "right"), ("old", "new"), ("good", "bad"),
    ("fast", "slow"), ("day", "night"), ("in", "out"), ("on", "off"), ("open", "shut"), ("high", "low"),
    ("wet", "dry"), ("hard", "soft"), ("long", "short"), ("rich", "poor"), ("happy", "sad"), ("full", "empty"),
    ("light", "dark"), ("first", "last"), ("early", "late"), ("near", "far"), ("win", "lose"), ("give", "take"),
    ("come", "go"), ("push", "pull"), ("clean", "dirty"), ("loud", "quiet"), ("strong", "weak"), ("true", "false"),
    ("thick", "thin"), ("over", "under"), ("buy", "sell"), ("north", "south"), ("young", "aged"), ("yes", "no"),
)  # fmt: skip
FRENCH = tuple(
    (noun.english, noun.french) for noun in NOUNS if max(len(noun.english), len(noun.french)) <= LONGEST
)
KNOWN = tuple(
    dict.fromkeys(
        word
        for word in (
            *" ".join(KINDS.values()).split(),
            *(word for pair in OPPOSITES for word in pair),
            *(word for pair in FRENCH for word in pair),
        )
        if 2 < len(word) <= LONGEST and word.isascii()  # so that each has its capitals
    )
)
