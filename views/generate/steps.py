"""Steps of a text that is written, for the browser: every stage of the most probable tokens, and what the rest has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.generation.generate import Step
from engine.generation.sampling import Distribution, distribution, entropy
from engine.generation.stopping import Stop
from engine.model.layers.softmax import softmax
from views.generate.session import GenerationContext

ROWS = 20  # of the most probable tokens; the chosen one stands behind them
STAGES = ("logits", "penalized", "scaled", "shares", "probabilities")
CUTS = ("in_top_k", "in_top_p", "in_min_p", "in_typical")
BITS = math.log(2)  # nats
COLD = 1e-3  # a temperature below which a quotient may overflow, in one step and not in another


def steps_payload(writing: GenerationContext, steps: Sequence[Step]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and arrays, every array with an axis `step` first. Before any stage there is `own`, the softmax of the
    logits as they are, and `log_own`, its logarithm."""
    if not steps:
        return {"pieces": {}}, {}
    arrays = step_arrays(steps)
    if steps[0].candidates:
        candidates = [candidate_arrays(step) for step in steps]
        arrays |= {name: torch.stack([one[name] for one in candidates]) for name in candidates[0]}
    shown = [value for name, value in arrays.items() if name in ("id", "top.id", "candidate.id")]
    ids = torch.cat([value.flatten() for value in shown]).unique().tolist()
    return {"pieces": {str(id): writing.piece(id) for id in ids}}, arrays


def step_arrays(steps: Sequence[Step]) -> dict[str, Tensor]:
    found = distributions(steps)
    logits = found.logits.float()
    log_own, own = logits.log_softmax(-1), softmax(logits)
    chosen = torch.tensor([[step.id] for step in steps], device=logits.device)
    order = found.penalized.topk(min(ROWS, logits.shape[-1])).indices
    ids = torch.cat([order, chosen], -1)
    stages = {name: getattr(found, name).float() for name in STAGES} | {"own": own, "log_own": log_own}
    cuts = {name: getattr(found, name) for name in CUTS}
    plain = found.scaled is found.logits and found.probabilities is found.shares
    shares, probabilities = (own, own) if plain else (found.shares.float(), found.probabilities.float())
    nats = entropies(own, probabilities)
    arrays = {f"top.{name}": value.gather(-1, ids) for name, value in (stages | cuts).items()}
    return arrays | {
        "id": chosen[:, 0],
        "top.id": ids,
        "top.rank": ranks(logits, ids, order if found.penalized is found.logits else None),
        **count_left(shares, list(cuts.values())),
        "rest": torch.stack([rest(value, order) for value in (own, shares, probabilities)], -1),
        "entropy": nats / BITS,
        "choices": nats.exp(),  # as `effective_choices` of engine/generation/sampling.py
    }


def entropies(own: Tensor, probabilities: Tensor) -> Tensor:
    """step 2, in nats: of the model's own distribution, and of what is left after all stages."""
    before = entropy(own)
    return torch.stack([before, before if probabilities is own else entropy(probabilities)], -1)


def count_left(shares: Tensor, cuts: Sequence[Tensor]) -> dict[str, Tensor]:
    """step cut: how many tokens each has left, and their part of the shares. One that is off is the one before it."""
    counts, parts = list[Tensor](), list[Tensor]()
    for place, cut in enumerate(cuts):
        again = place > 0 and cut is cuts[place - 1]
        counts.append(counts[-1] if again else cut.sum(-1))
        parts.append(parts[-1] if again else (shares * cut).sum(-1))
    return {"kept": torch.stack(counts, -1), "kept_share": torch.stack(parts, -1)}


def distributions(steps: Sequence[Step]) -> Distribution:
    """step vocab: those of all steps at once where they do not depend on what was read before."""
    sampling, free = steps[0].sampling, not steps[0].checkpoint.writing.constraints.names
    if free and sampling.repetition_penalty == 1 and (sampling.temperature == 0 or sampling.temperature > COLD):
        return distribution(torch.stack([step.logits for step in steps]), sampling)
    found = [step.distribution for step in steps]
    return Distribution(*(torch.stack([getattr(one, name) for one in found]) for name in Distribution.__annotations__))


def ranks(logits: Tensor, ids: Tensor, best: Tensor | None) -> Tensor:
    """step row: the place of each of the `ids`, 1 for the greatest logit; equals share the better one. `best` are all
    of them but the last where they have the greatest logits, so that nothing else comes before one of them."""
    at = logits.gather(-1, ids)
    if best is None:
        return torch.stack([(logits > at[:, row, None]).sum(-1) for row in range(ids.shape[-1])], -1) + 1
    among = (at[:, None, :-1] > at[:, :-1, None]).sum(-1)
    return torch.cat([among, (logits > at[:, -1:]).sum(-1, keepdim=True)], -1) + 1


def rest(shares: Tensor, shown: Tensor) -> Tensor:
    """step: what all tokens that are not shown have together."""
    return shares.scatter(-1, shown, 0).sum(-1)


def candidate_arrays(step: Step) -> dict[str, Tensor]:
    rows = step.candidates
    return {
        "candidate.id": torch.tensor([one.id for one in rows]),
        "candidate.confidence": torch.tensor([one.confidence for one in rows]),
        "candidate.penalty": torch.tensor([one.penalty for one in rows]),
        "candidate.score": torch.tensor([one.score for one in rows]),
    }


def stop_header(stop: Stop | None) -> dict[str, str] | None:
    return None if stop is None else {"kind": stop.kind, "sentence": stop.sentence}
