"""Python that reproduces the page Long context: a model and a set-up, and what they cost by length."""

from __future__ import annotations

from engine.attention_variants.measure import Setup
from engine.model.from_dict import write_call
from views.core.codegen import Imports, import_lines, quote, source_of


def cost_lines(model: str, setup: Setup, longest: int) -> str:
    """Script that binds `formulas`, the costs of each kind at `shared.LENGTHS`, and the `points` up to `longest`."""
    imports: Imports = {"engine.attention_variants": {"shared"}}
    lines = [
        *opening_lines(model, setup, imports),
        "formulas = shared.formulas(model, setup)",
        f"points = list(shared.measure_up_to(model, {longest}, setup))",
        "for point in points:",
        "    print(point.kind, point.length, point.seconds, point.bytes)",
    ]
    return "\n".join([*import_lines(imports), "", *lines]) + "\n"


def opening_lines(model: str, setup: Setup, imports: Imports) -> list[str]:
    """Lines that bind `model`, its name in the library, and `setup`; what they need is added to `imports`."""
    source, note = source_of(model)
    opened = quote(model)
    if note:
        imports.setdefault("engine.runtime", set()).add("library")
        opened = f"library.offer(library.LoadOptions({source})){note}"
    imports["engine.attention_variants.measure"] = {"Setup"}
    if "Settings(" in write_call(setup):
        imports["engine.attention_variants.quantize"] = {"Settings"}
    return [f"model = {opened}", f"setup = {write_call(setup)}"]
