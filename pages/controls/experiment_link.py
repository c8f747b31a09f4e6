"""An experiment in an address: compact, and read one edit at a time, so that a broken one takes no other with it."""

from __future__ import annotations

import binascii
import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from engine.experiment import Experiment, entry

LONGEST = 200_000  # characters of JSON in a link
BROKEN = "The edits in this address could not be read; the page shows the model as it is."


def to_link(experiment: Experiment) -> str:
    """Compressed JSON in letters that an address may hold; what `from_link` reads."""
    text = json.dumps(experiment.to_value(), separators=(",", ":"))
    pressed = zlib.compressobj(9, wbits=-15)
    return urlsafe_b64encode(pressed.compress(text.encode()) + pressed.flush()).decode().rstrip("=")


def from_link(link: str) -> tuple[Experiment, list[str]]:
    """The edits that make sense, and a sentence for each that does not. JSON by hand is read as well."""
    try:
        value = json.loads(link if link.lstrip().startswith("[") else unpressed(link))
    except (ValueError, zlib.error, RecursionError):  # of which binascii's and json's errors are some
        return Experiment(), [BROKEN]
    if not isinstance(value, list):
        return Experiment(), [BROKEN]
    found, sentences = [], []
    for number, data in enumerate(value):
        try:
            found.append(entry(number + 1, data))
        except ValueError as error:
            sentences.append(f"One edit in this address could not be read and is left out: {error}")
    return Experiment(tuple(found)), sentences


def unpressed(link: str) -> Any:
    try:
        raw = urlsafe_b64decode(link + "=" * (-len(link) % 4))
    except binascii.Error:
        raise ValueError(BROKEN) from None
    opened = zlib.decompressobj(wbits=-15)
    text = opened.decompress(raw, LONGEST)
    if not opened.eof:
        raise ValueError(BROKEN)
    return text.decode()
