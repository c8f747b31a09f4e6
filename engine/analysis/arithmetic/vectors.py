"""How a component of the vector of a whole text came about."""

from __future__ import annotations

import torch

from engine.analysis.arithmetic.explanation import WHOLE, Line, Operand, Products, Steps, number, result
from engine.analysis.arithmetic.sources import Source
from engine.model.config import Pooling
from engine.model.layers.vector import SHORTEST, TextVector, pooling_weights

WORDS: dict[Pooling, str] = {
    "first": "the first position",
    "last": "the last position",
    "mean": "mean over the positions",
    "max": "the greatest of all positions",
    "weighted_mean": "mean over the positions, the n-th n times",
    "scaled_sum": "sum over the positions / √n",
}


def pooled_component(source: Source, module: TextVector, unit: int) -> Steps:
    """Explains one number of what was pooled: the weighted sum of one component over the positions."""
    part, component = divmod(unit, source.config.d_model)
    kind, hook = module.kinds[part], source.last()
    last = source.value_of(hook)[:1].double()
    real = None if source.trace.padding is None else source.trace.padding[:1]
    weights = pooling_weights(last, kind, real)[0].expand(last.shape[1:])[:, component]
    x = Operand(f"x[·, {component}]", last[0, :, component], hook, (WHOLE, component), "pos", "residual")
    by = Operand("w", weights, "positions", (), "pos")
    products = Products(x, by)
    line: Line = (f"{WORDS[kind]}: Σ w x = ", result(products.total))
    return Steps("weighted sum", products.total, (line,), (x,), products)


def read_by_vector(source: Source, module: TextVector, before: int) -> str:
    """Hook of what stands behind the first `before` maps."""
    if before:
        return f"vector.maps.{before - 1}.out"
    return "vector.pooled" if module.kinds else source.last()


def component(source: Source, module: TextVector, pos: int, unit: int) -> Steps:
    """Explains one component of the vector: as it was made, divided by the vector's length where that becomes 1."""
    hook = read_by_vector(source, module, len(module.maps))
    row, index = source.row(hook, pos), source.index(hook, pos)
    x = Operand("x", row, hook, index, "component", "residual", chosen=unit)
    if not module.unit:
        return Steps("copy", float(row[unit]), (("x = ", result(float(row[unit]))),), (x,))
    length = max(float(torch.linalg.vector_norm(row)), SHORTEST)
    value = float(row[unit]) / length
    line: Line = ("x / |x| = ", number(float(row[unit])), " / ", number(length), " = ", result(value))
    return Steps("norm", value, (line,), (x,))
