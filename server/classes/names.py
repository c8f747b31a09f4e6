"""What somebody may be called in a class: every name that can be read aloud, once."""

from __future__ import annotations

import re
import unicodedata

from engine.characters import INVISIBLE, JOINERS, is_shaping, split_characters

LONGEST_NAME = 24  # characters
SIGNS = 4  # a character at most, on the average
RUDE = re.compile(
    r"(?:mother)?fuck(?:s|ed|er|ers|ing)?|(?:bull)?shit(?:s|ty)?|cunts?|bitch(?:es|y)?|nigg(?:a|as|er|ers)|"
    r"fagg?(?:s|ot|ots)|wank(?:s|er|ers|ing)?|penis(?:es)?|vaginas?|(?:ass|arse)holes?|bastards?|whores?|sluts?|nazis?|"
    r"hitler|putain|merdes?|salopes?|connards?|encules?"
)
WORD = re.compile(r"[^\W_]+")
# Marks without which a word is read as the same: accents, and the vowels of Hebrew and Arabic; and what shapes letters.
OPTIONAL = re.compile(
    f"[\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0670{JOINERS}\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
LETTERS_OF_DIGITS = str.maketrans("013457$@", "oieastsa")
# Letters of other scripts that look Latin, after the confusables of UTS 39.
LOOKS = str.maketrans(
    "аАВсСԁеЕԌгһНіІӏӀјЈкКМоОрРԛѕЅТѵѴѡԝԜхХуУүҮαΑΒΕΗιΙϳͿκΚΜνΝοΟσρΡΤυΥγχΧΖքցհոռօՕզգսՍՏաɑɡıɩʏ",
    "aABcCdeEGrhHiIlljJkKMoOpPqsSTvVwwWxXyYyYaABEHiIjJkKMvNoOopPTuYyxXZfghnnoOqquUSwagiiy",
)


def check_name(said: str) -> str:
    """The name as it is shown. Raises ValueError for one that is empty, too long, not to be read, or rude."""
    name = " ".join(unicodedata.normalize("NFKC", said[: 2 * SIGNS * LONGEST_NAME]).split())
    shown = "".join(sign for at, sign in enumerate(name) if sign not in JOINERS or not is_shaping(name, at))
    if not any(map(str.isalnum, name)) or not shown.isprintable() or not set(shown).isdisjoint(INVISIBLE):
        raise ValueError("a name has at least one letter or digit, and no signs that cannot be seen.")
    if len(split_characters(name)) > LONGEST_NAME or len(name) > SIGNS * LONGEST_NAME:
        raise ValueError(f"a name has at most {LONGEST_NAME} characters; shorten it.")
    if any(RUDE.fullmatch(word) for key in name_keys(name) for word in WORD.findall(key)):
        raise ValueError("choose a name that everybody in the class can read aloud.")
    return name


def are_alike(one: str, other: str) -> bool:
    """Tells whether two names are read as the same, or look so."""
    return not name_keys(one).isdisjoint(name_keys(other))


def name_keys(name: str) -> set[str]:
    """A name as it is compared: by its letters, and by what they look like."""
    return {fold(name), fold(unicodedata.normalize("NFKD", name).translate(LOOKS))}


def fold(name: str) -> str:
    """A name without case, accents, and digits for letters."""
    return OPTIONAL.sub("", unicodedata.normalize("NFKD", name.casefold())).translate(LETTERS_OF_DIGITS)
