"""An experiment in an address: compact, and read one edit at a time, so that a broken one takes no other with it."""

from __future__ import annotations

import binascii
import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from engine.budget import budget
from engine.edits.experiment import Experiment, entry
from engine.json_text import parse_json
from engine.plurals import count_words

LONGEST = 200_000  # characters of JSON in a link
SAID = 3  # sentences about single edits, and the number of the others
SENTENCE = 300  # characters of one
UNLINKED = "These edits are too long for an address: a reload, or the link, opens the page without them; "
PAINTED = "paint whole rows and columns, or fewer cells."
PICTURED = "most of them is a picture that values are taken from: choose it again then."
MANY = "take some of them out."
DRAWN = ("cells", "rows", "columns", "weights", "allowed")  # what is painted, of an edit
BROKEN = "The edits in this address could not be read; the page shows the model as it is."


def to_json(experiment: Experiment) -> str:
    return json.dumps(experiment.to_value(), separators=(",", ":"))


def linkable(experiment: Experiment) -> bool:
    """Tells whether `from_link` would read it again."""
    return len(to_json(experiment)) <= LONGEST


def unlinkable_sentence(experiment: Experiment) -> str:
    """Says what a person can do about edits that are not `linkable`: it depends on the longest of them."""
    longest = max((entry.edit.to_dict() for entry in experiment.entries), key=lambda data: len(json.dumps(data)))
    pictured = any(isinstance(part, dict) and part.get("pixels") for part in longest.values())
    painted = any(longest.get(field) for field in DRAWN)
    return UNLINKED + (PICTURED if pictured else PAINTED if painted else MANY)


def to_link(experiment: Experiment) -> str:
    """Compressed JSON in letters that an address may hold; what `from_link` reads."""
    text = to_json(experiment)
    pressed = zlib.compressobj(9, wbits=-15)
    return urlsafe_b64encode(pressed.compress(text.encode()) + pressed.flush()).decode().rstrip("=")


def from_link(link: str) -> tuple[Experiment, list[str]]:
    """The edits that make sense, and a sentence for each of the first that do not. JSON by hand is read as well."""
    try:
        by_hand = link.lstrip().startswith("[")
        if by_hand and len(link) > LONGEST:
            return Experiment(), [BROKEN]
        value = parse_json(link if by_hand else decompress(link))
    except (ValueError, zlib.error):  # of which binascii's and json's errors are some
        return Experiment(), [BROKEN]
    if not isinstance(value, list):
        return Experiment(), [BROKEN]
    found, wrong = [], []
    for number, data in enumerate(value[: budget.max_edits]):
        try:
            found.append(entry(number + 1, data))
        except ValueError as error:
            wrong.append(f"One edit in this address could not be read and is left out: {clip(str(error))}")
    sentences = wrong[:SAID]
    if len(wrong) > SAID:
        sentences.append(f"{count_words(len(wrong) - SAID, 'more edit')} in it could not be read either.")
    if len(value) > budget.max_edits:
        most = budget.max_edits
        sentences.append(f"This address has {len(value):,} edits; those after the first {most} are left out.")
    return Experiment(tuple(found)), sentences


def clip(sentence: str) -> str:
    return sentence if len(sentence) <= SENTENCE else f"{sentence[:SENTENCE]}…"


def decompress(link: str) -> Any:
    try:
        raw = urlsafe_b64decode(link + "=" * (-len(link) % 4))
    except binascii.Error:
        raise ValueError(BROKEN) from None
    opened = zlib.decompressobj(wbits=-15)
    text = opened.decompress(raw, LONGEST)
    if not opened.eof:
        raise ValueError(BROKEN)
    return text.decode()
