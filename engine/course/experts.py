"""A mixture of experts: one token's choice, routers that are trained with and without a loss of their load, and what is
held against what a token uses (Shazeer et al. 2017; Fedus et al. 2022, Switch Transformers)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.model.config import MLP, Attention, ModelConfig
from engine.model.config import Experts as ExpertsConfig
from engine.model.layers.experts import Routing, recorded_routing
from engine.model.layers.softmax import softmax
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run

EXPERTS, WIDTH, READ = 4, 16, 16  # experts, numbers of a vector and of an expert's neurons, characters read at a time
STEPS, BATCH, RATE, LAST = 200, 16, 3e-3, 10  # LAST: steps whose shares are averaged at the end
HOOKS = ["blocks.0.norm2.out", "blocks.0.mlp.router.*", "blocks.0.mlp.experts.out"]


@dataclass(frozen=True)
class RouterTraining:
    """`shares` (step expert) is the share of the tokens that each expert got, `losses` (step) in nats without the load;
    `kinds` (character expert) counts where each of `characters` of the text is sent first in the end."""

    characters: str
    shares: Tensor
    losses: list[float]
    kinds: Tensor
    model: Transformer = field(compare=False, repr=False)

    @property
    def last_shares(self) -> Tensor:
        return self.shares[-LAST:].mean(0)


class TokenChoice(NamedTuple):
    """One token at one router, `read` (d_model): logits and probabilities (expert), the ids of its experts, the best
    first, their weights (slot), what each of them writes (slot d_model), and the weighted sum (d_model)."""

    read: Tensor
    logits: Tensor
    probabilities: Tensor
    chosen: list[int]
    weights: Tensor
    outputs: Tensor
    out: Tensor


class Sizes(NamedTuple):
    """Parameters of a layer of experts: those of one expert, of the router, of all that is held, and of what one token
    uses."""

    expert: int
    router: int
    held: int
    used: int


def train_router(text: str, load_weight: float, used: int = 1, steps: int = STEPS, seed: int = 0) -> RouterTraining:
    """Trains a decoder of one block with experts on the characters of `text`: loss + load_weight * load."""
    characters = "".join(sorted(set(text)))
    ids = encode(text, characters)
    model = initialise(small_model(len(characters), used), seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    generator = torch.Generator().manual_seed(seed)
    shares, losses = [], []
    for _ in range(steps):
        starts = torch.randint(len(ids) - READ, (BATCH, 1), generator=generator)
        rows = ids[starts + torch.arange(READ + 1)]
        with recorded_routing() as routed:
            logits = model(rows[:, :-1])
        loss = cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        shares.append(sent_shares(routed[0]))
        losses.append(loss.item())
        optimiser.zero_grad()
        (loss + load_weight * load(routed[0])).backward()
        optimiser.step()
    kinds = count_kinds(model, ids, len(characters))
    return RouterTraining(characters, torch.stack(shares), losses, kinds, model)


def small_model(characters: int, used: int) -> Transformer:
    """With one expert a token its weight is its probability, as in Switch Transformers: the only way by which the
    router gets a gradient. Of several, the weights are divided by their sum."""
    experts = ExpertsConfig(EXPERTS, used, renormalised=used > 1)
    return Transformer(ModelConfig(characters, READ, WIDTH, 1, Attention(heads=2), MLP(WIDTH, experts=experts)))


def encode(text: str, characters: str) -> Tensor:
    return torch.tensor([characters.index(one) for one in text])


def sent_shares(routed: Routing) -> Tensor:
    """f: share of what was sent that went to each expert."""
    counts = routed.chosen.flatten().bincount(minlength=EXPERTS)
    return counts / counts.sum()


def load(routed: Routing) -> Tensor:
    """N sum_i f_i P_i (Fedus et al. 2022, section 2.2): P_i is the mean probability of expert i, by which the gradient
    comes. It is 1 where all get as much, N where one gets all and is sure to."""
    mean_probability = routed.probs.flatten(0, -2).mean(0)
    return EXPERTS * (sent_shares(routed) * mean_probability).sum()


@torch.no_grad()
def count_kinds(model: Transformer, ids: Tensor, characters: int) -> Tensor:
    """How often the best expert of each character is which, over all windows of the text: character expert."""
    rows = ids.unfold(0, READ, 1)
    with recorded_routing() as routed:
        model(rows)
    best = routed[0].chosen[..., 0]
    return (rows * EXPERTS + best).flatten().bincount(minlength=characters * EXPERTS).view(characters, EXPERTS)


def choose_experts(training: RouterTraining, text: str, place: int) -> TokenChoice:
    """The choice of the router for one token of a text of at most READ characters, as the model computes it."""
    trace = run(training.model, encode(text, training.characters)[None], keep=HOOKS)
    kept = [trace[f"blocks.0.mlp.router.{name}"][0, place] for name in ("logits", "probs", "chosen", "weights")]
    logits, probabilities, chosen, weights = kept
    outputs = trace["blocks.0.mlp.experts.out"][0, place]
    read = trace["blocks.0.norm2.out"][0, place]
    return TokenChoice(
        read, logits, probabilities, chosen.tolist(), weights, outputs, (weights[:, None] * outputs).sum(0)
    )


def mix_experts(logits: Tensor, outputs: Tensor) -> Tensor:
    """What the experts that one token chose write together: logits expert, outputs slot d_model, the best first.

    Their probabilities are divided by their sum; the experts that were not chosen are not computed.
    """
    probabilities = softmax(logits)
    best = probabilities.topk(len(outputs)).values
    weights = best / best.sum()
    return weights @ outputs


def count_sizes(experts: int, used: int, d_model: int, d_mlp: int) -> Sizes:
    """Of a layer whose experts are MLPs of two matrices; the router scores every expert, used or not."""
    expert, router = 2 * d_model * d_mlp, experts * d_model
    return Sizes(expert, router, experts * expert + router, used * expert + router)


def count_in_use(shares: Tensor) -> int:
    """Number of experts that get at least half of an equal share."""
    return int((shares >= 0.5 / len(shares)).sum())
