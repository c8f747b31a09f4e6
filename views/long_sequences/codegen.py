"""Python that reproduces the page Long sequences: the formulas at every length, and what each kind keeps."""

from __future__ import annotations

from engine.attention_variants.measure import Setup
from views.core.codegen import quoted, source_of, written


def cost_lines(model: str, setup: Setup, longest: int) -> str:
    """Script that binds `formulas`, the costs of each kind at `shared.LENGTHS`, and the `points` up to `longest`."""
    return script(
        model,
        setup,
        [
            "formulas = shared.formulas(model, setup)",
            f"points = list(shared.measure_up_to(model, {longest}, setup))",
            "for point in points:",
            "    print(point.kind, point.length, point.seconds, point.bytes)",
        ],
    )


def pattern_lines(model: str, setup: Setup, positions: int, head: tuple[int, int]) -> str:
    """Script that binds `kept`, the patterns of one head (layer, head) by kind, on the first `positions` tokens."""
    return script(
        model,
        setup,
        [
            f"kept = shared.kept(model, {positions}, {head[0]}, {head[1]}, setup)",
            "for name, pattern in kept.items():",
            "    print(name, pattern.mass, pattern.cells)",
        ],
    )


def script(model: str, setup: Setup, lines: list[str]) -> str:
    source, note = source_of(model)
    opened = quoted(model) if not note else f"library.offer(library.Opening({source})){note}"
    imports = ["from engine.runtime import library"] if note else []
    imports += [
        "from engine.attention_variants import shared",
        "from engine.attention_variants.measure import Setup",
        "from engine.attention_variants.quantize import Settings",
    ]
    return "\n".join([*imports, "", f"model = {opened}", f"setup = {written(setup)}", *lines]) + "\n"
