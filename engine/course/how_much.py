"""How much of it: decoders of several sizes trained on the same tokens, the power law through their losses, and the
published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.data.everyday import document
from engine.data.stories import story
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer

DOCUMENTS, HELD_OUT, VALIDATED = 300, 0.1, 512
LENGTH, BATCH, WARMUP = 8, 64, 20  # characters a row, rows a step, steps in which the learning rate rises
RATE = 0.08  # of a model of width 1; it falls as the root of the width
TEXTS = {"stories": story, "everyday": document}


@dataclass(frozen=True)
class SizeTraining:
    """`weights` and `tokens` are counts, `loss` is that of held-out text in nats. `seen` and `losses` are the tokens
    read so far and the loss of the rows that are learned, averaged over the steps between."""

    width: int
    weights: int
    tokens: int
    loss: float
    seen: list[int]
    losses: list[float]


@dataclass(frozen=True)
class PowerLaw:
    """L = scale / N^exponent, a line on axes that are both logarithmic."""

    scale: float
    exponent: float

    def loss(self, n: float) -> float:
        return self.scale / n**self.exponent

    def times(self, share: float) -> float:
        """How many times as much takes the loss to `share` of what it is."""
        return share ** (-1 / self.exponent)


@cache
def read_characters(name: str) -> tuple[Tensor, int]:
    """Ids of the characters of a text, and how many different ones it has."""
    text = "\n".join(TEXTS[name](0, index) for index in range(DOCUMENTS)).lower()
    letters = {letter: id for id, letter in enumerate(sorted(set(text)))}
    return torch.tensor([letters[one] for one in text]), len(letters)


def train_size(name: str, width: int, steps: int, seed: int = 0, points: int = 20) -> SizeTraining:
    """Trains a decoder of one block and `width` on the characters of a text, by Adam."""
    ids, letters = read_characters(name)
    held_out_from = int((1 - HELD_OUT) * len(ids))
    learned, held_out = ids[:held_out_from], ids[held_out_from:]
    model = small_decoder(letters, width, seed)
    rate = RATE / width**0.5
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98), fused=True)
    generator = torch.Generator().manual_seed(seed)
    every, losses = max(1, steps // points), list[float]()
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * min(1, (step + 1) / WARMUP) * (1 - step / steps)
        loss = loss_of(model, learned, torch.randint(len(learned) - LENGTH - 1, (BATCH,), generator=generator))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    with torch.no_grad():
        loss = loss_of(model, held_out, torch.arange(0, len(held_out) - LENGTH - 1, LENGTH)[:VALIDATED])
    means = [sum(losses[at : at + every]) / every for at in range(0, steps - every + 1, every)]
    seen = [BATCH * LENGTH * every * (at + 1) for at in range(len(means))]
    count = sum(weight.numel() for weight in model.parameters())
    return SizeTraining(width, count, BATCH * LENGTH * steps, float(loss), seen, means)


def small_decoder(letters: int, width: int, seed: int) -> Transformer:
    """A decoder whose matrices give vectors of about the length that they are given."""
    torch.manual_seed(seed)
    model = Transformer(ModelConfig(letters, LENGTH, width, 1, Attention(heads=1), MLP(4 * width), tied=False))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() == 2:
                weight.normal_(0, weight.shape[-1] ** -0.5)
    return model


def loss_of(model: Transformer, ids: Tensor, starts: Tensor) -> Tensor:
    rows = ids[starts[:, None] + torch.arange(LENGTH + 1)]
    return cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())


def fit_power_law(sizes: Sequence[float], losses: Sequence[float]) -> PowerLaw:
    """The line of least squares through ln L against ln N."""
    x, y = ([log(one) for one in values] for values in (sizes, losses))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)
    return PowerLaw(exp(mean_y - slope * mean_x), -slope)


# --- published ---

TOKENS_A_WEIGHT = 20  # Hoffmann et al. 2022, table 3, about
BY_WEIGHTS = PowerLaw(8.8e13**0.076, 0.076)  # Kaplan et al. 2020, section 1.2: all else is plenty; without embeddings
BY_TOKENS = PowerLaw(5.4e13**0.095, 0.095)
ENTROPY, A, ALPHA, B, BETA = 1.69, 406.4, 0.34, 410.7, 0.28  # Hoffmann et al. 2022, section 3.3
PUBLISHED = {  # weights, tokens
    "GPT-3": (175e9, 300e9),  # Brown et al. 2020, tables 2.1 and 2.2
    "Gopher": (280e9, 300e9),  # Hoffmann et al. 2022, table 1
    "Chinchilla": (70e9, 1.4e12),
}


def operations(weights: float, tokens: float) -> float:
    """C = 6 N D of a training: each weight multiplies and adds for each token once forward and twice backward (Kaplan
    et al. 2020, section 2.1)."""
    return 6 * weights * tokens


def best_size(compute: float) -> tuple[float, float]:
    """Weights and tokens that spend a compute best, at 20 tokens a weight (Hoffmann et al. 2022)."""
    weights = (compute / (6 * TOKENS_A_WEIGHT)) ** 0.5
    return weights, TOKENS_A_WEIGHT * weights


def fitted_loss(weights: float, tokens: float) -> float:
    """L(N, D) = E + A / N^alpha + B / D^beta, in nats (Hoffmann et al. 2022, equation 10)."""
    return ENTROPY + A / weights**ALPHA + B / tokens**BETA
