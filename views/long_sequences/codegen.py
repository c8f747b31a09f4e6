"""The lines of Python behind the page about long sequences: formulas at every length, and what each kind keeps."""

from __future__ import annotations

from engine.attention_variants.measure import Setup
from views.core.codegen import quoted, source_of, written


def length_lines(model: str, setup: Setup, drawn: int, head: tuple[int, int]) -> str:
    """They bind `formulas` (costs by kind, at `shared.LENGTHS`) and `kept` (patterns by kind, of one head)."""
    source, note = source_of(model)
    opened = quoted(model) if not note else f"library.offer(library.Opening({source})){note}"
    lines = ["from engine.runtime import library"] if note else []
    lines += [
        "from engine.attention_variants import shared",
        "from engine.attention_variants.measure import Setup",
        "from engine.attention_variants.quantize import Settings",
        "",
        f"model = {opened}",
        f"setup = {written(setup)}",
        "formulas = shared.formulas(model, setup)",
        f"kept = shared.kept(model, {drawn}, {head[0]}, {head[1]}, setup)",
        "for name, pattern in kept.items():",
        "    print(name, pattern.mass, pattern.cells)",
    ]
    return "\n".join(lines) + "\n"
