"""Reader of `corpora/`: word tables and sentence templates, in TOML."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from engine.places import CORPORA


@cache
def read_corpus(name: str) -> dict[str, Any]:
    """Tables of `corpora/<name>.toml`, read once a process; callers must not change them."""
    return tomllib.loads((CORPORA / f"{name}.toml").read_text(encoding="utf-8"))
