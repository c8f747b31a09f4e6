"""Whether two results of a function are the same, for exercises that are graded by a program."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from torch import Tensor

from engine.json_text import parse_json

TOLERANCE = 1e-4


def agree(one: Any, other: Any) -> bool:
    """Numbers agree within TOLERANCE, relative to the larger where that is above 1; all else is equal, part by part."""
    if isinstance(other, Tensor | np.ndarray):
        if not isinstance(one, Tensor | np.ndarray) or tuple(one.shape) != tuple(other.shape):
            return False
        first, second = (np.asarray(x.detach().cpu() if isinstance(x, Tensor) else x) for x in (one, other))
        return bool(np.allclose(first, second, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))
    if isinstance(other, float) and isinstance(one, int | float):
        return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE) or (math.isnan(one) and math.isnan(other))
    if is_dataclass(other) and not isinstance(other, type):
        alike = type(one) is type(other)
        return alike and all(agree(getattr(one, f.name), getattr(other, f.name)) for f in fields(other) if f.compare)
    if isinstance(other, Mapping):
        alike = isinstance(one, Mapping) and one.keys() == other.keys()
        return alike and all(agree(one[key], other[key]) for key in other)
    if isinstance(other, list | tuple):
        alike = isinstance(one, list | tuple) and len(one) == len(other)
        return alike and all(agree(*pair) for pair in zip(one, other, strict=True))
    return bool(one == other)


def seal(answer: Mapping[str, Any]) -> str:
    """Writes an answer so that nobody reads it in passing; it is no secret from who decodes it. One of {"is": number},
    {"near": number, "within": tolerance} and {"among": places}."""
    return base64.urlsafe_b64encode(json.dumps(answer).encode()).decode()


def is_right(said: Any, sealed: str) -> bool:
    """Tells whether what a student said is the answer that `seal` wrote. Raises ValueError for another text."""
    try:
        answer = parse_json(base64.urlsafe_b64decode(sealed))
    except (binascii.Error, ValueError) as error:
        raise ValueError("expected an answer as seal writes it; download the notebook again.") from error
    if "among" in answer and isinstance(said, list | tuple):
        return list(said) in answer["among"]
    if isinstance(said, bool) or not isinstance(said, int | float):
        return False
    if "among" in answer:
        return said in answer["among"]
    if "near" in answer:
        return bool(abs(said - answer["near"]) <= answer["within"])
    return bool(said == answer["is"])
