"""How an element of a mixture of experts came about: the router's choice, and what the chosen experts write."""

from __future__ import annotations

import math

from torch import Tensor

from engine.analysis.arithmetic.explanation import (
    WHOLE,
    Line,
    Operand,
    Products,
    Steps,
    number,
    operand,
    result,
    setting,
)
from engine.analysis.arithmetic.sources import Source
from engine.analysis.arithmetic.stored import describe_largest
from engine.model.layers.experts import ExpertLinear, Experts, Router
from engine.plurals import count_words


def explain_router(source: Source, router: Router, name: str, pos: int, unit: int) -> Steps:
    """`unit` is the expert of logits and probabilities, and the slot of what is chosen and its weight."""
    path = source.hook.rpartition(".")[0]
    if name == "probs":
        return expert_probability(source, router, path, pos, unit)
    if name in ("used", "gain"):
        value = float(router.config.used) if name == "used" else 1.0
        told = "experts that each token sees: " if name == "used" else "how much of what the expert writes is used: "
        return Steps("vector", value, ((told, result(value)),))
    probs = source.row(f"{path}.probs", pos)
    if name == "chosen":
        return choice(router, probs, unit)
    chosen = source.row(f"{path}.chosen", pos).long()
    expert, factor = int(chosen[unit]), router.config.scale
    value = share = float(probs[expert])
    line: list[object] = [f"the probability of expert {expert}"]
    if router.config.renormalised:
        total = float(probs[chosen].sum())
        value = share / total
        line += [f" / the sum of the {count_words(len(chosen), 'expert')}: ", number(share), " / ", number(total)]
    else:
        line += [": ", number(share)]
    if factor != 1:
        value *= factor
        line += [" × ", setting(factor)]
    return Steps("probability", value, ((*line, " = ", result(value)),))  # type: ignore[arg-type]


def expert_probability(source: Source, router: Router, path: str, pos: int, unit: int) -> Steps:
    logits = source.row(f"{path}.logits", pos)
    logit = float(logits[unit])
    if router.config.scores == "sigmoid":
        value = 1 / (1 + math.exp(-logit))
        return Steps("probability", value, (("1 / (1 + e^−(", number(logit), ")) = ", result(value)),))
    peak = float(logits.max())
    exponential, total = math.exp(logit - peak), float((logits - peak).exp().sum())
    value = exponential / total
    line: Line = (
        "e^(", number(logit), " − ", operand(peak), f") / Σ over {count_words(len(logits), 'expert')} = ",
        number(exponential), " / ", number(total), " = ", result(value),
    )  # fmt: skip
    return Steps("softmax", value, (line,))


def choice(router: Router, probs: Tensor, slot: int) -> Steps:
    """Explains which expert is the best, the next best, and so on."""
    expert = int(router.choose(probs.float(), router.config.used)[slot])
    rank = "highest" if slot == 0 else f"{slot + 1}. highest"
    what = "probability" if router.correction is None else "probability and correction"
    among = f", of the best {router.config.groups_used} of {router.config.groups} groups" * (router.config.groups > 1)
    line: Line = (f"expert {expert} has the {rank} {what}{among}: ", number(float(probs[expert])))
    return Steps("choice of experts", float(expert), (line,))


def expert_map(source: Source, module: ExpertLinear, name: str, read: str, pos: int, slot: int, unit: int) -> Steps:
    """x · W (+ b) of the expert in a slot."""
    block = source.hook.rpartition(".experts.")[0]
    expert = int(source.row(f"{block}.router.chosen", pos)[slot])
    weight = module.weight[expert]
    row = source.row(read, pos, slot)
    label = {"pre": "W_in", "up": "W_up", "out": "W_out"}[name]
    index = source.index(read, pos, slot)
    x = Operand("h" if name == "out" else "x", row, read, index, drawn=False)
    w = Operand(
        f"{label}[{expert}, ·, {unit}]", weight[unit].detach().double(), f"{source.hook}.weight",
        (expert, unit, WHOLE), drawn=False,
    )  # fmt: skip
    added = None if module.bias is None else float(module.bias[expert, unit])
    products = Products(x, w, added)
    tail = "" if added is None else " + b"
    line: Line = (f"expert {expert}: {name} = {x.label} · {label}", tail, " = ", result(products.total))
    stored = describe_largest(weight[unit], products, f"{label}[{expert}, {{}}, {unit}]")
    return Steps("linear map", products.total, (*stored, line), (x, w), products)


def mixture(source: Source, module: Experts, pos: int, unit: int) -> Steps:
    """Explains what a layer's experts write together: each by its weight, and the shared one."""
    path = source.hook.rpartition(".")[0]
    weights = source.row(f"{path}.router.weights", pos)
    chosen = source.row(f"{path}.router.chosen", pos).long()
    out, terms = module.experts.out, list[tuple[str, float, float]]()
    for slot, expert in enumerate(chosen.tolist()):
        written = float(source.row(f"{path}.experts.post", pos, slot) @ out.weight[expert, unit].double())
        written += 0.0 if out.bias is None else float(out.bias[expert, unit])
        terms.append((f"expert {expert}", float(weights[slot]), written))
    if module.shared is not None:
        gate = source.element(f"{path}.shared_weight", pos, 0) if module.shared_gate is not None else 1.0
        terms.append(("shared expert", gate, source.element(f"{path}.shared.out", pos, unit)))
    line: list[object] = ["Σ weight × what an expert writes = "]
    for at, (name, weight, written) in enumerate(terms):
        line += [" + " * (at > 0), number(weight), " × ", operand(written), f" ({name})"]
    value = sum(weight * written for _, weight, written in terms)
    return Steps("weighted sum", value, ((*line, " = ", result(value)),))  # type: ignore[arg-type]
