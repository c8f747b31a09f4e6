"""JSON that others may have written."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Raises ValueError for what is no JSON, or nests too deeply to be read; `options` are those of `json.loads`."""
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("it nests too deeply to be read") from None
