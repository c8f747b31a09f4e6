"""JSON that others may have written."""

from __future__ import annotations

import json
import re
from typing import Any

HALF = re.compile(r"\\u[dD][89a-fA-F]")  # may be half of a character, which is no text where the other half lacks


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Raises ValueError for what is no JSON, has half a character (a lone surrogate), or nests too deeply to be read;
    `options` are those of `json.loads`."""
    try:
        found = json.loads(text, **options)
        if HALF.search(text if isinstance(text, str) else text.decode(json.detect_encoding(text))):
            json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it nests too deeply to be read") from None
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])[1:-1]
        raise ValueError(f"it has {half}, half of a character without the other") from None
    return found
