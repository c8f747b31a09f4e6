"""The little English that templates cannot spell out: articles, plurals, lists, numbers, capitals."""

import re
from collections.abc import Sequence

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
IRREGULAR = {"mouse": "mice", "leaf": "leaves", "sheep": "sheep", "tomato": "tomatoes", "loaf": "loaves"}
# where a sentence begins inside a text: after an end mark, after a quotation that ended with a full stop, and
# inside every opening quotation mark ("!” she said" goes on, so one that ended with "!" begins nothing)
SENTENCE_START = re.compile("([.!?] |\\.” |“)([a-z])")


def article(phrase: str) -> str:
    """`phrase` with "a" or "an". By the first letter: no word here has a silent h or a "you" sound."""
    return f"an {phrase}" if phrase[0] in "aeiou" else f"a {phrase}"


def plural(noun: str) -> str:
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "sh", "ch", "x")) else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """ "one egg", "three eggs"."""
    return f"{NUMBERS[count]} {noun if count == 1 else plural(noun)}"


def listing(items: Sequence[str]) -> str:
    """ "a", "a and b", "a, b, and c"."""
    if len(items) < 3:
        return " and ".join(items)
    return f"{', '.join(items[:-1])}, and {items[-1]}"


def _upper(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2].upper()}"


def typeset(text: str) -> str:
    """Sentence capitals, and the templates' “ ” as the plain mark that a small vocabulary can afford."""
    return SENTENCE_START.sub(_upper, text).replace("“", '"').replace("”", '"')
