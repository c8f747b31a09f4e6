"""Kinds of data that a recipe can learn from, a file each, found by its place here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import cast

from engine.collect import collect
from engine.data.task import DataKind


@cache
def data_kinds() -> Mapping[str, type[DataKind]]:
    return {one.kind: one for one in cast(list[type[DataKind]], collect(__name__, "KIND", type))}
