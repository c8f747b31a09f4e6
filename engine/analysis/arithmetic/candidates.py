"""How one candidate of a head came to its probability: its logit, then the stages of sampling."""

from __future__ import annotations

import math
from dataclasses import replace

from torch import Tensor

from engine.analysis.arithmetic.explanation import Explanation, Line, Number, number, operand, result, setting
from engine.generation.sampling import Distribution, Sampling
from engine.model.config import Link


def explain_candidate(
    logit: Explanation, following: Distribution, row: int, id: int, sampling: Sampling, link: Link, noun: str = "tokens"
) -> Explanation:
    """Continues from the explanation of its `logit` to the probability of candidate `id` in `row` of `following` (row
    candidate).

    `noun` is what the distribution is over, in the plural. With the link "identity" the logit is all there is.
    """
    stored = float(following.logits[row, id])
    logit = replace(logit, operands=tuple(replace(one, drawn=False) for one in logit.operands), stored=stored)
    if link == "identity":
        return logit
    lines, share = (
        logistic(logit.recomputed, sampling)
        if link == "logistic"
        else shared(logit.recomputed, following, row, id, sampling, noun)
    )
    probability = float(following.probabilities[row, id])
    return replace(logit, operation="probability", lines=(*logit.lines, *lines), recomputed=share, stored=probability)


def likely(share: float, last: bool = True) -> Number:
    return result(share, "probability", "percent") if last else Number(share, "percent")


def divide_by_temperature(logit: float, temperature: float) -> tuple[list[Line], float]:
    if temperature == 1:
        return [], logit
    scaled = logit / temperature
    return [("÷ output temperature ", setting(temperature), " = ", number(scaled))], scaled


def logistic(logit: float, sampling: Sampling) -> tuple[list[Line], float]:
    """Explains the probability of one class, which holds or does not."""
    if sampling.temperature == 0:
        share = 0.5 if logit == 0 else float(logit > 0)
        return [("output temperature 0: the sign of the logit decides, so ", likely(share))], share
    lines, scaled = divide_by_temperature(logit, sampling.temperature)
    share = 1 / (1 + math.exp(-scaled)) if scaled >= 0 else math.exp(scaled) / (1 + math.exp(scaled))
    return [*lines, ("1 / (1 + e^−(", number(scaled), ")) = ", likely(share))], share


def shared(
    logit: float, following: Distribution, row: int, id: int, sampling: Sampling, noun: str
) -> tuple[list[Line], float]:
    """Softmax over all candidates, then what the cuts left, made to sum to 1 again."""
    if sampling.temperature == 0:
        share = float(int(following.logits[row].argmax()) == id)
        return [("output temperature 0: the largest logit takes everything, so ", likely(share))], share
    scores = following.scaled[row].double()
    peak = float(scores.max())
    total, count = float((scores - peak).exp().sum()), len(scores)
    lines, scaled = divide_by_temperature(logit, sampling.temperature)
    exponential = math.exp(scaled - peak)
    share = exponential / total
    kept: Tensor = following.in_typical[row]
    everything = bool(kept.all())
    lines.append((
        "softmax: e^(", number(scaled), " − ", operand(peak), f") / Σ over {count:,} {noun} = ",
        number(exponential), " / ", number(total), " = ", likely(share, everything),
    ))  # fmt: skip
    if everything:
        return lines, share
    left = float(following.shares[row].double()[kept].sum())
    final = share / left if bool(kept[id]) else 0.0
    cuts = " and ".join(name for name, cuts in settings(sampling) if cuts)
    by: Line = (likely(share, False), " / ", likely(left, False), " = ") if bool(kept[id]) else ("this one is cut, ",)
    counted = f"{cuts} keep {int(kept.sum()):,} {noun} holding "
    lines.append((counted, likely(left, False), ": ", *by, likely(final)))
    return lines, final


def settings(sampling: Sampling) -> list[tuple[str, bool]]:
    return [
        (f"top-k {sampling.top_k}", sampling.top_k > 0),
        (f"top-p {sampling.top_p:g}", sampling.top_p < 1),
        (f"min-p {sampling.min_p:g}", sampling.min_p > 0),
        (f"typical-p {sampling.typical_p:g}", sampling.typical_p < 1),
    ]
