"""How a component of the vector of a whole text came about."""

from __future__ import annotations

import torch

from engine.analysis.arithmetic.explanation import WHOLE, Line, Operand, Products, Steps, number, result
from engine.analysis.arithmetic.sources import Source
from engine.model.config import Pooling
from engine.model.layers.vector import SHORTEST, ProbeAttention, TextVector

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
    last = source.value_of(hook).double()
    weights = module.weigh(kind, last, source.trace.padding, source.trace.ids)[0].expand(last.shape[1:])[:, component]
    x = Operand(f"x[·, {component}]", last[0, :, component], hook, (WHOLE, component), "pos", "residual")
    by = Operand("w", weights, "positions", (), "pos")
    products = Products(x, by)
    line: Line = (f"{WORDS[kind]}: Σ w x = ", result(products.total))
    return Steps("weighted sum", products.total, (line,), (x,), products)


def attention_of_probe(source: Source, module: ProbeAttention, name: str, pos: int, unit: int, head: int) -> Steps:
    """Explains a weight that the probe gives to a position, and what a head mixes by its weights."""
    head = source.shared_head(head, module.heads)
    last, path = source.value_of(source.last())[:1].double(), source.hook.rpartition(".")[0]
    rows = slice(head * module.d_head, (head + 1) * module.d_head)
    if name == "z":
        weights = source.value_of(f"{path}.pattern")[0, head, :, 0].double()
        values = (last[0] @ module.v.weight[rows].double().T + module.v.bias[rows].double())[:, unit]
        by = Operand("pattern", weights, f"{path}.pattern", (head, WHOLE), "pos", "attention")
        products = Products(by, Operand(f"v[·, {unit}]", values, "values", (), "pos", "value"))
        return Steps("weighted sum", products.total, (("Σ pattern · v = ", result(products.total)),), (by,), products)
    vector = source.model.vector
    assert vector is not None
    real = vector.find_pooled(last, source.trace.padding, source.trace.ids)
    query = (module.q.weight.double() @ module.query.double() + module.q.bias.double())[rows]
    keys = last[0] @ module.k.weight[rows].double().T + module.k.bias[rows].double()
    scores = keys @ query * module.d_head**-0.5
    scores = scores if real is None else scores.masked_fill(~real[0], float("-inf"))
    shown = Operand("scores", scores, "scores", (), "pos", "attention", chosen=pos)
    value = float(scores.softmax(0)[pos])
    line: Line = ("q · k / √d = ", number(float(scores[pos])), "; e^score / Σ e^… = ", result(value))
    return Steps("softmax", value, (line,), (shown,))


def read_by_vector(source: Source, module: TextVector, before: int) -> str:
    """Hook of what stands behind the first `before` maps."""
    if before:
        return f"vector.maps.{before - 1}.out"
    pooled = "vector.pooled" if module.kinds else source.last()
    return source.first_of("vector.norm.out", pooled)


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
