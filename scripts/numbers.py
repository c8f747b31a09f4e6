"""`python -m scripts.numbers` writes the numbers that lessons and notes state anew, in every language.

It is for a model that was trained again. What they stated before stands in `numbers.json`; a number that has several
reasons, which differ now, is named and left.
"""

import json
import re
from pathlib import Path

from pages.controls import words
from pages.controls.learn.course import LESSONS
from tests.pages.test_course_numbers import STATED, computed

BEFORE = Path(__file__).with_name("numbers.json")
SPACE = "[ \u202f\xa0]"


def stated() -> dict[str, list[str]]:
    """{text and computation: what it states}"""
    found: dict[str, list[str]] = {}
    for place, name, compute in STATED:
        said = f"{name}/{place} {compute.__name__}"
        found[said if said not in found else f"{said} {len(found)}"] = computed(compute)
    return found


def in_language(number: str, lang: str) -> str:
    if lang == words.ENGLISH:
        return number
    if number.startswith("“"):
        return f"« {number[1:-1]} »"
    return number.replace(",", " ").replace(".", ",")


def restate(text: str, changes: dict[str, str]) -> str:
    """Each key of `changes` by its value, all at once."""
    olds = sorted(changes, key=len, reverse=True)
    whole = "|".join("({})".format(re.escape(old).replace("\\ ", SPACE)) for old in olds)

    def change(found: re.Match[str]) -> str:
        space = next((one for one in found[0] if re.match(SPACE, one)), "\xa0")
        return changes[olds[(found.lastindex or 1) - 1]].replace(" ", space)

    return re.sub(rf"(?<![\d.,])(?:{whole})(?!\d)", change, text)


def main() -> None:
    now, before = stated(), json.loads(BEFORE.read_text(encoding="utf-8")) if BEFORE.is_file() else {}
    pairs: dict[str, set[tuple[str, str]]] = {}
    for said, numbers in now.items():
        old = before.get(said, numbers)
        if len(old) != len(numbers):
            print(f"{said}: {len(old)} numbers became {len(numbers)}; change the text by hand.")
            old = numbers
        pairs.setdefault(said.split()[0], set()).update(zip(old, numbers, strict=True))
    for place, found in pairs.items():
        twice = {old for old, _ in found if sum(old == other for other, _ in found) > 1}
        for one in sorted(twice):
            print(f"{place}: {one} is stated for several reasons, which differ now; change it by hand.")
        changes = {old: new for old, new in found if old != new and old not in twice}
        for lang in words.languages(words.CATALOGUE) if changes else []:
            file = LESSONS / place.replace(words.LANG, lang)
            told = {in_language(old, lang): in_language(new, lang) for old, new in changes.items()}
            file.write_text(restate(file.read_text(encoding="utf-8"), told), encoding="utf-8")
        for old, new in sorted(changes.items()):
            print(f"{place}: {old} -> {new}")
    BEFORE.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
