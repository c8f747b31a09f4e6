"""How evenly routers spread tokens over experts, and what of the loss keeps them so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.model.layers.experts import Routing

if TYPE_CHECKING:
    from engine.training.recipe.recipe import Objective


def with_balance(
    scores: Mapping[str, Tensor], seen: Sequence[Routing], share: float, objective: Objective | None = None
) -> dict[str, Tensor]:
    """`scores` with those of the routers that a pass has asked, times its `share` of the batch; their part of the loss
    is in it where the `objective` of a training says how much they count."""
    if not seen:
        return dict(scores)
    load, z = expert_load(seen), router_z(seen)
    found = dict(scores) | {"expert_load": load.detach() * share}
    found |= {f"expert_share_{expert}": one * share for expert, one in enumerate(expert_shares(seen))}
    if objective is not None:
        found["loss"] = scores["loss"] + share * (objective.load_weight * load + objective.z_weight * z)
    return found


def expert_load(seen: Sequence[Routing]) -> Tensor:
    """N sum_i f_i P_i, the mean over layers: f_i is the share of what was sent that went to expert i, P_i the mean of
    its probability. 1 where all are asked alike, at most N (Fedus et al. 2022, Switch Transformers, equations 4 to 6;
    of several experts a token each counts as a part of one)."""
    return torch.stack([one.probs.shape[-1] * (sent(one) * mean_probability(one)).sum() for one in seen]).mean()


def router_z(seen: Sequence[Routing]) -> Tensor:
    """Mean of the squared log-sum-exp of a token's logits (Zoph et al. 2022, ST-MoE, equation 5)."""
    return torch.stack([one.logits.float().logsumexp(-1).square().mean() for one in seen]).mean()


def expert_shares(seen: Sequence[Routing]) -> list[Tensor]:
    """Share of what was sent that went to each expert, the mean over layers."""
    return list(torch.stack([sent(one) for one in seen]).mean(0))


def sent(one: Routing) -> Tensor:
    counts = one.chosen.flatten().bincount(minlength=one.probs.shape[-1])
    return counts / counts.sum()


def mean_probability(one: Routing) -> Tensor:
    probs = one.probs / one.probs.sum(-1, keepdim=True)  # scores that are each between 0 and 1 alone
    return probs.flatten(0, -2).mean(0)


def token_information(texts: Sequence[tuple[Tensor, Sequence[Routing]]]) -> float:
    """Mutual information, in bits, of a token (ids, batch pos) and the expert that is its best: 0 where the choice does
    not depend on which token it is, at most log2 of the experts; the mean over layers."""
    layers = len(texts[0][1])
    return sum(information(*join_texts(texts, layer)) for layer in range(layers)) / layers


def join_texts(texts: Sequence[tuple[Tensor, Sequence[Routing]]], layer: int) -> tuple[Tensor, Tensor]:
    """Tokens and best experts of one layer in all texts."""
    ids = torch.cat([one.flatten() for one, _ in texts])
    return ids, torch.cat([routers[layer].chosen[..., 0].flatten() for _, routers in texts])


def information(one: Tensor, other: Tensor) -> float:
    """Mutual information of two lists of classes, in bits."""
    width = int(other.max()) + 1
    pairs, counts = (one * width + other).unique(return_counts=True)
    shares = counts.double() / len(one)
    alone = [values.bincount().double() / len(values) for values in (one, other)]
    expected = alone[0][pairs // width] * alone[1][pairs % width]
    return float((shares * (shares / expected).log2()).sum())
