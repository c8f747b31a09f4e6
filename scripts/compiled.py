"""`python -m scripts.compiled [FOLDER]` writes the compiled models into assets/checkpoints/, or into another folder.

A test holds what lies there equal, byte for byte, to what the programs compile to.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from engine.compiled import CompiledCheckpoint, compile_program
from engine.compiled.programs import compiled_programs
from engine.places import CHECKPOINTS
from engine.plurals import count_words


def compile_shipped() -> Iterator[CompiledCheckpoint]:
    """Yields the compiled models as they are shipped, with what their cards say of them."""
    for program in compiled_programs().values():
        made, name = compile_program(program), f"compiled-{program.name.replace('_', '-')}"
        predicted = program.title[0].lower() + program.title[1:].removesuffix(".")
        lines = count_words(len(program.steps), "line")
        about = f"Predicts {predicted}; compiled from a program of {lines}, not trained, so that its circuit is known."
        yield replace(made, name=name, card={**made.card, "name": name, "about": about, "licence": "MIT"})


if __name__ == "__main__":
    for one in compile_shipped():
        one.save(Path(sys.argv[1] if sys.argv[1:] else CHECKPOINTS) / one.name)
