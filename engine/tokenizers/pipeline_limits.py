"""Limits of a tokenizer.json, which comes from others: how far its steps may lengthen a text, known before one runs.

Each step has a bound: bytes written for each byte read. Those of the steps of a sequence multiply, so that eight
steps that write ten letters for one are refused although each of them is harmless.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

from engine.tokenizers.charsmap import longest_string

Step = Mapping[str, Any]
LONGEST_PREFIX = 16  # bytes that a step may put before a text, as SentencePiece puts "▁"; published ones have 3
UNICODE_GROWTH = 12  # of U+FDFA, whose 3 bytes become 33; none becomes more
UNICODE = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "BertNormalizer")
MOST_STEPS = 64
MOST_GROWTH = {"normalizer": 4096, "pre_tokenizer": 64, "decoder": 64}  # ALBERT's normalizer, the largest, has 1,188
USUAL_GROWTH = 64  # up to which a text is read without asking what it becomes
FREE_BYTES = 2**20  # that any text may become
MOST_ADDED_BYTES = 2**26  # of the added tokens, normalized
MOST_TEMPLATE, MOST_TEMPLATE_TEXTS = 64, 4  # parts of a template, and how many of them are texts
LONGEST_QUOTE = 120  # characters of the library's own words
LONGEST_WORD = 1000  # characters of a word that WordPiece cuts, in a time that grows with their square
INNER = {"normalizer": "normalizers", "pre_tokenizer": "pretokenizers", "decoder": "decoders"}


def check_pipeline(state: Mapping[str, Any], path: Path) -> None:
    """Raise ValueError, naming the file, where its steps could take memory or time out of all proportion."""
    fault = next(_find_faults(state), None)
    if fault is not None:
        raise ValueError(f"Expected {path} to lengthen no text beyond measure, got {fault}; do not trust this file.")


def _find_faults(state: Mapping[str, Any]) -> Iterator[str]:
    for part, most in MOST_GROWTH.items():
        steps = list(flatten_steps(state.get(part), INNER[part]))
        if len(steps) > MOST_STEPS:
            yield f"a {part} of {len(steps):,} steps, where {MOST_STEPS} are the most"
        prefix = max((_bytes(step.get("prepend")) for step in steps), default=0)
        if prefix > LONGEST_PREFIX:
            yield f"a {part} that puts {prefix:,} bytes before each text"
        if (growth := bound_growth(steps)) > most:
            yield f"a {part} that can write {min(growth, 1e15):,.0f} bytes for one, where {most:,} are the most"
    growth = bound_growth(list(flatten_steps(state.get("normalizer"), INNER["normalizer"])))
    added = [token for token in _list(state.get("added_tokens")) if isinstance(token, dict) and token.get("normalized")]
    if sum(_bytes(token.get("content")) for token in added) * growth > MOST_ADDED_BYTES:
        yield f"{len(added):,} added tokens that become more than {MOST_ADDED_BYTES:,} bytes"
    for template in _find_templates(state.get("post_processor")):
        texts = sum(isinstance(piece, dict) and "Sequence" in piece for piece in template)
        if len(template) > MOST_TEMPLATE or texts > MOST_TEMPLATE_TEXTS:
            yield f"a template of {len(template):,} parts, {texts:,} of them texts"
    model = state.get("model")
    longest = model.get("max_input_chars_per_word") if isinstance(model, dict) else None
    if isinstance(longest, int) and longest > LONGEST_WORD:
        yield f"words of up to {min(longest, 10**15):,} characters, where {LONGEST_WORD:,} are the most"


def flatten_steps(step: Any, inner: str) -> Iterator[Step]:
    """The steps of a part in the order in which they run; nothing for a part that is none."""
    waiting = [step]
    while waiting:
        here = waiting.pop()
        if isinstance(here, dict):
            within = here.get(inner)
            if isinstance(within, list):
                waiting.extend(reversed(within))
            else:
                yield here


def bound_growth(steps: list[Step]) -> float:
    """Bytes that steps one after the other write for one byte that they read, at most.

    Unicode's mappings have an end: of several in a row none finds anything that another one lengthened already.
    """
    kinds = [step.get("type") for step in steps]
    repeated = [here in UNICODE and before in UNICODE for before, here in zip([None, *kinds], kinds, strict=False)]
    return prod(1.0 if again else _growth_of(step) for step, again in zip(steps, repeated, strict=True))


def _growth_of(step: Step) -> float:
    kind = step.get("type")
    if kind in UNICODE:
        return UNICODE_GROWTH
    if kind == "Replace":
        written = _bytes(step.get("content"))
        pattern = step.get("pattern")
        found = _bytes(pattern.get("String")) if isinstance(pattern, dict) else 0
        return max(1.0, written / found) if found else 1.0 + 2.0 * written  # an expression matches anywhere
    if kind == "Prepend":
        return 1.0 + _bytes(step.get("prepend"))
    if kind == "Precompiled":
        return _longest_string(step.get("precompiled_charsmap"))
    if kind == "Metaspace":
        return 2.0 * max(_bytes(step.get("replacement")), 1)
    return 4.0 if kind == "ByteLevel" else 1.0  # a byte's letter takes two, and a space may come before it


def _longest_string(table: Any) -> float:
    """Bytes of the longest text that a charsmap writes for a character; 1 for what is no table, which is not run."""
    try:
        return float(max(1, longest_string(base64.b64decode(table)))) if isinstance(table, str) else 1.0
    except ValueError:
        return 1.0


def _find_templates(processor: Any) -> Iterator[list[Any]]:
    for step in flatten_steps(processor, "processors"):
        yield from (_list(step.get("single")), _list(step.get("pair")))
        ids = step.get("special_tokens")
        for token in ids.values() if isinstance(ids, dict) else ():
            yield _list(token.get("ids")) if isinstance(token, dict) else []


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bytes(text: Any) -> int:
    return len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0


def check_growth(normalizer: Any, growth: float, text: str) -> None:
    """Raise ValueError for a text that `normalizer`, whose bound is `growth`, makes far longer than it is.

    What may become much is asked part by part, so that finding it out takes no more than is allowed.
    """
    size = len(text.encode("utf-8", "replace"))
    if growth <= USUAL_GROWTH or size * growth <= FREE_BYTES:
        return
    part = max(1, int(FREE_BYTES / growth) // 4)  # a character has up to 4 bytes
    most, written = FREE_BYTES + USUAL_GROWTH * size, 0
    for start in range(0, len(text), part):
        with refuse_failure("the tokenizer must normalise any text, and fails", "fetch its files again"):
            written += len(normalizer.normalize_str(text[start : start + part]))
        if written > most:
            raise ValueError(
                f"Expected a tokenizer that makes at most {most:,} letters of {size:,} bytes, got one that makes more; "
                "shorten the text, or use another checkpoint's tokenizer."
            )


@contextmanager
def refuse_failure(expected: str, advice: str) -> Iterator[None]:
    """Raise ValueError for whatever `tokenizers` raises within the block, which calls nothing else.

    It raises a bare Exception, or where its Rust fails, as at an expression that takes too many tries, a
    PanicException, which is none.
    """
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ValueError(f"{expected} ({' '.join(str(error).split())[:LONGEST_QUOTE]}); {advice}.") from error
