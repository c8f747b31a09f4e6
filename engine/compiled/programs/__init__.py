"""Programs to compile, a file each, found by its place here."""

from collections.abc import Mapping
from functools import cache

from engine.collect import collect
from engine.compiled.program import Program


@cache
def compiled_programs() -> Mapping[str, Program]:
    return {one.name: one for one in collect(__name__, "PROGRAM", Program)}
