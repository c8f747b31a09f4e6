"""What each kind of attention keeps of a head's pattern: the payload of assets/views/long_sequences/patterns.js."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.attention_variants.kept_share import KeptPattern
from engine.attention_variants.measure import KINDS
from views.core.payload import pack

TITLES = {"full": "full", **{kind: KINDS[kind] for kind in ("window", "blocks", "nearest", "quantized")}}
BRIGHTEST = 0.3  # weights from here on have the full hue: at 1 only the first token would be seen


def kept_patterns(
    kept: Mapping[str, KeptPattern],
    *,
    heads: tuple[int, int],
    shown: tuple[int, int],
    pieces: Sequence[str],
    grid: tuple[int, int],
    notes: Mapping[str, Any],
) -> bytes:
    """Payload of the whole view. There are `heads` (layers, heads a layer) to choose from; `kept` is of the head
    `shown` (layer, head) on the tokens `pieces`, which 2-D blocks take for an image of `grid` (rows, columns)."""
    header = {
        "kept": shares(kept),
        "heads": list(heads),
        "look": {"layer": shown[0], "head": shown[1]},
        "pieces": list(pieces),
        "grid": list(grid),
        "brightest": BRIGHTEST,
        **notes,
    }
    arrays = name_arrays(kept)
    return pack(header, arrays, dict.fromkeys(arrays, ("query", "key")))


def shares(kept: Mapping[str, KeptPattern]) -> list[dict[str, Any]]:
    """Name and title of each pattern, its share of the attention and of the cells."""
    return [
        {"name": name, "title": TITLES[name], "mass": part.mass, "cells": part.cells} for name, part in kept.items()
    ]


def name_arrays(kept: Mapping[str, KeptPattern]) -> dict[str, np.ndarray]:
    """Each pattern (f32 query key) by its name in the payload, NaN where a query may not look."""
    return {
        f"pattern.{name}": np.where(part.allowed.numpy(), part.pattern.float().numpy(), np.float32(np.nan))
        for name, part in kept.items()
    }
