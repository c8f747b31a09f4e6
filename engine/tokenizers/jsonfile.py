"""Reading the JSON files of a tokenizer, with errors that name the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.json_text import parse_json

ID_LIMIT = 10_000_000
LARGEST_FILE = 2**26  # bytes; of published tokenizers the largest has half
MOST_LISTS = 2**21  # and objects, each of which takes 30 times its two bytes; a merge is one


def read_object(path: Path) -> dict[str, Any]:
    """Raise ValueError, naming the file, for what is no JSON object, or takes more memory than any tokenizer does."""
    check_file_size(path)
    try:
        text = path.read_text(encoding="utf-8")
        if (lists := text.count("[") + text.count("{")) > MOST_LISTS:
            raise ValueError(f"{lists:,} lists and objects")
        value = parse_json(text)
    except ValueError as error:
        raise ValueError(f"Expected JSON in {path}, got something else ({error!s:.120}); fetch it again.") from error
    if not isinstance(value, dict):
        raise ValueError(f"Expected a JSON object in {path}, got a {type(value).__name__}; fetch it again.")
    return value


def check_file_size(path: Path) -> None:
    """Raise ValueError for a file that is larger than any tokenizer's."""
    if (size := path.stat().st_size) > LARGEST_FILE:
        raise ValueError(f"Expected at most {LARGEST_FILE:,} bytes in {path}, got {size:,}; is it a tokenizer?")


def check_ids(vocabulary: Any, path: Path) -> dict[str, int]:
    """Check that a vocabulary is an object from token to id, no id twice."""
    if not isinstance(vocabulary, dict) or not all(type(id) is int and id >= 0 for id in vocabulary.values()):
        raise ValueError(f"Expected {path} to map tokens to whole numbers, got something else; correct it.")
    if len(set(vocabulary.values())) < len(vocabulary):
        raise ValueError(f"Expected each token in {path} to have its own id, got one twice; renumber them.")
    check_largest(vocabulary, path)
    return vocabulary


def check_largest(vocabulary: dict[str, int], path: Path) -> None:
    """Raise ValueError for an absurd id: tables by id are dense, so it would take all memory."""
    largest = max(vocabulary.values(), default=0)
    if largest >= ID_LIMIT:
        raise ValueError(f"Expected ids below {ID_LIMIT:,} in {path}, got {largest:,}; renumber the tokens.")
