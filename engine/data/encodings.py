"""The text of a file and its encoding: UTF-8, UTF-16, or what it says when read in another: letters of one language,
in words as that language writes them. A text that says nothing plain in any encoding has none that is known.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from unicodedata import category

LINES = 1_000  # with bytes beyond ASCII, from all over the file, that are looked at
WORDS = 3_000  # with letters beyond ASCII in them
KNOWN = 0.85  # least share of such letters that are of the language
ODD = 0.04  # most words that are written as none is
APART = 0.02  # by which one reading must be better than another
AT_LETTERS = frozenset("©®°™№²³ªº")  # signs that may stand at a letter
BETWEEN = frozenset("׳״\u200c\u200d\u200e\u200f’‘–—…·・\xad\xa0、。「」『』（）《》，！？：；“”")  # and between two
# What letters of the west never stand at, and those of the same numbers further east do.
EASTERN = re.compile("ñ[bcdfghjklmnpqrstvwxz]|œ[rwlnmkp]|è[aeiouy]|iæ$|õ$|[bcdfgjkptvxzs]ã$", re.IGNORECASE)
UTF8_LETTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
AFTER_WORDS = "‚„…‹‘’“”•–—™›\xa0©«®·»".encode("cp1252")
WORD = re.compile(r"[^\s,;|\x00-\x26\x28-\x2f:-@\[-`{-\x7f]*[^\x00-\x7f\s][^\s,;|\x00-\x26\x28-\x2f:-@\[-`{-\x7f]*")


@dataclass(frozen=True)
class Reading:
    """A way to read bytes: the `letters` of a language beyond ASCII, of which `common` ones are at least the share
    `least`, one of `needed` among them. `alone`: no word has letters of ASCII beside them. At most the share
    `odd` of the words are written as none is. Encodings of a `family` differ in a few letters."""

    codec: str
    name: str
    letters: frozenset[str]
    common: frozenset[str] = frozenset()
    least: float = 0.0
    needed: frozenset[str] = frozenset()
    alone: bool = False
    odd: float = ODD
    family: str = ""


def span(first: str, last: str) -> str:
    return "".join(map(chr, range(ord(first), ord(last) + 1)))


def list_readings(
    codecs: dict[str, str], letters: str, common: str = "", least: float = 0.0, needed: str = "", alone: bool = False,
    odd: float = ODD,
) -> list[Reading]:  # fmt: skip
    whole, often, some = (frozenset(one) for one in (letters, common, needed))
    family = min(codecs)
    return [Reading(codec, name, whole, often, least, some, alone, odd, family) for codec, name in codecs.items()]


WEST = {"cp1252": "Windows-1252"}
CENTRE = {"cp1250": "Windows-1250", "iso8859_2": "ISO 8859-2"}
CYRILLIC = {
    "cp1251": "Windows-1251",
    "koi8_r": "KOI8-R",
    "koi8_u": "KOI8-U",
    "cp866": "IBM 866",
    "iso8859_5": "ISO 8859-5",
    "mac_cyrillic": "Mac Cyrillic",
}
GREEK = {"cp1253": "Windows-1253", "iso8859_7": "ISO 8859-7"}
HEBREW = {"cp1255": "Windows-1255", "iso8859_8": "ISO 8859-8"}
ARABIC = {"cp1256": "Windows-1256", "iso8859_6": "ISO 8859-6"}
HAN = span("一", "鿿") + span("㐀", "䶿")
KANA = span("ぁ", "ゖ") + span("ァ", "ー")
HANGUL = span("가", "힣")
FULL = span("！", "～") + span("\u3000", "〟") + "￥￠￡·…—‘’“”"
OFTEN_HAN = (
    "的一是不了在人有我他中大上和你地出道也年得就那要下以生自之去里后小心多天而能好都然日起成事只作看文手十用主行方又如前所本面公同三已老"
    "这来个到国说们为子时会着过家学对可她么没于还发当想无开见经头从动两长知很非常这部电影书世界喜欢真太高最新水月点明"
    "這來個國說們為時會著過學對麼沒於還發當無開見經頭從動兩長書愛歡電點裡後"
)
OFTEN_HANGUL = "이다는을가에의고하지로기도서자사리인대어은한들그나해아요습니시정수있것를면안주라만보으일게부전없여제거"
CYRILLIC_LETTERS = span("а", "я") + "ёіїєґў"
SOUTH = span("а", "ш") + "ђјљњћџѓѕќ"

FIRST = [  # before all others that read as well
    *list_readings(WEST, "éèêëáàâäåçíïìîñóöòôøúüùûæœß"),
    *list_readings(WEST, "àáâãçéêíóôõúüª", needed="çéáíóúã"),
    *list_readings(WEST, "áðéíóúýþæö", needed="áíó"),
    *list_readings(WEST, "äöõüšžåé", needed="ä"),
]
OTHERS = [
    *list_readings(CENTRE, "ąćęłńóśźżéü", needed="ąćęłńśźż"),
    *list_readings(CENTRE, "áčďéěíňóřšťúůýžöü", needed="čěřšžů"),
    *list_readings(CENTRE, "áäčďéíĺľňóôŕšťúýž", needed="čľšž"),
    *list_readings(CENTRE, "áéíóöőúüű", needed="őű"),
    *list_readings(CENTRE, "ăâîşţé", needed="ăşţ"),
    *list_readings(CENTRE, "čćđšžé", needed="čćšž"),
    *list_readings({"cp1254": "Windows-1254"}, "çğıöşüâîûİ", needed="ğış"),
    *list_readings({"cp1257": "Windows-1257"}, "ąčęėįšųūž", needed="ąėįųū"),
    *list_readings({"cp1257": "Windows-1257"}, "āčēģīķļņšūž", needed="āēīū"),
    *list_readings(CYRILLIC, CYRILLIC_LETTERS, "оеаинтсрвл", 0.5, alone=True),
    *list_readings(CYRILLIC, SOUTH, "оеаинтсрјл", 0.5, alone=True),
    *list_readings(GREEK, span("α", "ω") + "άέήίόύώϊϋΐΰ", "αοιετσνηυρςκόίά", 0.6, alone=True),
    *list_readings(HEBREW, span("א", "ת") + span("\u05b0", "\u05c2"), "יוהלאמרשתבם", 0.55, alone=True),
    *list_readings(ARABIC, span("ء", "\u0652") + "پچژگکی", "اليمونرتبهةد", 0.55, alone=True),
    *list_readings({"cp874": "Windows-874"}, span("ก", "๛"), "านรอกเงมยลวดท่้ัีิสแตหไ", 0.55, alone=True),
    *list_readings({"gb18030": "GB 18030", "big5hkscs": "Big5"}, HAN + FULL, OFTEN_HAN, 0.08, alone=True, odd=0.3),
    *list_readings({"cp932": "Shift JIS", "euc_jp": "EUC-JP"}, HAN + KANA + FULL, KANA, 0.25, alone=True, odd=0.3),
    *list_readings({"cp949": "EUC-KR"}, HANGUL + FULL, OFTEN_HANGUL, 0.2, alone=True, odd=0.3),
]


def recognise(raw: bytes, western: bool = True) -> tuple[str, str] | None:
    """The text and the name of its encoding; None where none says something plain, or several do and disagree. Where
    one is taken before another that reads as well, the name says so, and which letter that decides.
    `western`: Windows-1252 is among them, before all others that read as well."""
    readings = [*FIRST, *OTHERS] if western else OTHERS
    lines = [line for line in raw.split(b"\n") if not line.isascii()]
    some = b"\n".join(lines[:: -(-len(lines) // LINES)])
    fit = [codec for codec in dict.fromkeys(one.codec for one in readings) if read(raw, codec) is not None]
    texts = {codec: read(some, codec) for codec in fit}
    readings = [one for one in readings if one.codec in texts]
    found = [(at, one) for one in readings if (at := score(texts[one.codec], one)) > 0]
    best, chosen = max(found, key=lambda each: each[0], default=(0.0, None))  # the first of those that are alike
    if chosen is None or (text := texts[chosen.codec]) is None:
        return None
    plain = chosen in FIRST and best == 1
    rivals = (one for at, one in found if best - at < APART and one.family != chosen.family)
    if not plain and any(texts[one.codec] != text for one in rivals):
        return None
    others = (one for one in readings if texts[one.codec] != text)
    likely = (one for one in others if min(best, 1) - score(texts[one.codec], one, sure=False) < APART)
    whole = raw.decode(chosen.codec)
    return whole, chosen.name + describe_doubt(whole, {one.name: raw.decode(one.codec) for one in likely})


def describe_doubt(text: str, others: dict[str, str]) -> str:
    """Shows which letter first differs in the `others`, the same file as it reads in encodings of these names; empty
    where there are none."""
    if not others:
        return ""
    pairs = (enumerate(zip(text, other, strict=False)) for other in others.values())
    firsts = (next(at for at, letters in each if len({*letters}) > 1) for each in pairs)
    at, named = min(firsts), dict[str, list[str]]()
    for name, other in others.items():
        named.setdefault(other[at], []).append(name)
    read = " or ".join(f"“{letter}” in {', '.join(names)}" for letter, names in named.items() if letter != text[at])
    line = count_lines(text[:at])
    return f" (a guess: the “{text[at]}” in line {line} is {read}; if it must be, save the file as UTF-8)"


def read(raw: bytes, codec: str) -> str | None:
    try:
        return raw.decode(codec)
    except UnicodeDecodeError:
        return None


def score(text: str | None, reading: Reading, sure: bool = True) -> float:
    """Share of the letters that are of the language, and of those that are common in it; 0 for what nobody writes, and
    if it shall be `sure` for a text without a letter that is needed."""
    if text is None:
        return 0.0
    words = [found[0] for found in islice(WORD.finditer(text), WORDS)]
    signs = Counter(sign for word in words for sign in word if not sign.isascii())
    if any("\x80" <= sign <= "\x9f" or "\ue000" <= sign <= "\uf8ff" for sign in signs):
        return 0.0
    letters = Counter[str]()
    for sign, count in signs.items():
        letters[sign.lower() if len(sign.lower()) == 1 else sign] += count * is_letter(sign)
    total = letters.total()
    known, often = (sum(letters[sign] for sign in some) / max(total, 1) for some in (reading.letters, reading.common))
    unneeded = not sure or not reading.needed or any(letters[sign] for sign in reading.needed)
    plain = known >= KNOWN and often >= reading.least and unneeded
    if not total:  # quotation marks and dashes alone
        plain, known = reading in FIRST, 1.0
    if not plain or (reading.common and 2 * total < signs.total()):
        return 0.0
    odd = sum(is_odd(word, reading) for word in words) / max(len(words), 1)
    return known + often - 3 * odd if odd <= reading.odd else 0.0


def is_letter(sign: str) -> bool:
    return category(sign)[0] in "LM"


def is_odd(word: str, reading: Reading) -> bool:
    """Tells whether a word is written as none is: with a sign at or between letters, a capital behind a small letter
    that is not ASCII, or letters of two alphabets."""
    if reading.alone and any(sign.isascii() and sign.isalpha() for sign in word):
        return True
    if reading.codec == "cp1252" and EASTERN.search(word):
        return True
    for before, sign, after in zip(" " + word, word, word[1:] + " ", strict=False):
        if sign.isascii() and not sign.isalpha():
            continue
        sides = is_letter(before) + is_letter(after)
        if sides and category(sign) in ("Sm", "So", "Sk", "Sc", "No") and sign not in AT_LETTERS:
            return True
        if sides == 2 and not is_letter(sign) and sign not in BETWEEN:
            return True
        if before.islower() and sign.isupper() and not (before.isascii() and sign.isascii()):
            return True
        if sign == "ς" and is_letter(after):
            return True
    return False


def decode(raw: bytes) -> tuple[str, str]:
    """The text of a file and its encoding: UTF-8, UTF-16 where it says so itself, else what `recognise` finds.

    One with letters in UTF-8 is in no encoding of the west, and in no other one where most of them are, whatever else
    is in it. Raises ValueError for the first byte that is not in the encoding, and for a NUL, by its place.
    """
    encoding = "utf-16" if raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "utf-8"
    try:
        text, named = raw.decode(encoding), encoding.upper()
    except UnicodeDecodeError as error:
        check_nul(raw.decode("latin-1") if encoding == "utf-8" else "")
        found = None if encoding == "utf-16" or is_mostly_utf8(raw) else recognise(raw, not has_utf8_letters(raw))
        if found is None:
            raise ValueError(
                f"the file must be {encoding.upper()} throughout, got {name_stray_byte(error)}; correct that place, or "
                "save the whole file as UTF-8."
            ) from None
        text, named = found
    check_nul(text)
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), named


def is_mostly_utf8(raw: bytes) -> bool:
    """Tells whether half or more of the bytes beyond ASCII are letters in UTF-8."""
    letters = sum(len(one[0]) for one in UTF8_LETTER.finditer(raw))
    return letters > 0 and 2 * letters >= sum(byte > 127 for byte in raw) and has_utf8_letters(raw)


def has_utf8_letters(raw: bytes) -> bool:
    """Tells whether letters beyond ASCII stand in UTF-8, be it halves of a surrogate pair.

    Bytes that Windows-1252 reads as a letter and what may follow a word, such as "ß…" or "é »", show nothing; Â and Ã
    excepted, with which most letters of western languages begin.
    """
    found = {one[0] for one in UTF8_LETTER.finditer(raw)}
    return any(one[0] in b"\xc2\xc3" or one[1:].strip(AFTER_WORDS) for one in found)


def check_nul(text: str) -> None:
    """Raises ValueError for a NUL, which no text has, by its place."""
    if (at := text.find("\0")) >= 0:
        raise ValueError(
            f"the file must be a text, got a NUL (0x00) in line {count_lines(text[:at])} (character {at + 1:,} of the "
            "file); take it out, or save the whole file as UTF-8."
        )


def count_lines(text: str) -> str:
    count = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    return f"{count:,}"


def name_stray_byte(error: UnicodeDecodeError) -> str:
    """The byte that stopped the decoding of a file, with its line and its place, both from 1."""
    before = error.object[: error.start].decode(error.encoding, "replace")
    line = count_lines(before)
    return f"0x{error.object[error.start]:02x} in line {line} (byte {error.start + 1:,} of the file)"
