"""Loss: one right word against all probabilities, the gradient p - y, and what masked and paired texts ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from engine.model.layers.softmax import softmax
from engine.runtime import library
from engine.runtime.run import run
from engine.scoring.examples import UNASKED
from engine.scoring.score import cross_entropy
from engine.tokenizers.encoding import Encoding

# --- the gradient ---


@dataclass(frozen=True)
class Gradients:
    """Gradient of the loss at one position, all vocab: `p` the probabilities, `y` one-hot, `by_hand` p - y, and
    `by_autograd` as PyTorch computes it."""

    p: Tensor
    y: Tensor
    by_hand: Tensor
    by_autograd: Tensor
    loss: float

    @property
    def gap(self) -> float:
        return float((self.by_hand - self.by_autograd).abs().max())


def gradients(logits: Tensor, target: int) -> Gradients:
    """d loss / d logits of -ln p[target] (Bridle 1990), of vocab, in float64."""
    leaf = logits.detach().double().requires_grad_()
    loss, _ = cross_entropy(leaf[None], torch.tensor([target]))
    (by_autograd,) = torch.autograd.grad(loss, leaf)
    p, y = softmax(leaf.detach()), one_hot(torch.tensor(target), len(logits)).double()
    return Gradients(p, y, p - y, by_autograd, float(loss.detach()))


def gradients_at(name: str, ids: Sequence[int], at: int) -> Gradients:
    """Gradients for the token at place `at` of a text, which the place before it is asked for."""
    logits = library.traces.trace(name, Encoding.from_ids(ids))["logits"][0, at - 1]
    return gradients(logits, ids[at])


def most_moved(found: Gradients, count: int) -> list[int]:
    """The right word, then the likeliest of the others: `count` in all."""
    right = int(found.y.argmax())
    others = [id for id in found.p.topk(count).indices.tolist() if id != right]
    return [right, *others[: count - 1]]


# --- hidden words ---


@dataclass(frozen=True)
class MaskCounts:
    """Counts of the tokens, of those chosen, and of how these were shown: as the mask, as another token, or unchanged.
    A token replaced by itself counts as unchanged."""

    tokens: int
    chosen: int
    masked: int
    replaced: int
    kept: int


def count_hidden(read: Tensor, targets: Tensor, mask: int, tokens: int) -> MaskCounts:
    """`read` and `targets` are batch pos, as the objective draws them; `tokens` of them are the text's."""
    chosen = targets != UNASKED
    masked, kept = chosen & (read == mask), chosen & (read == targets)
    counts = [int(one.sum()) for one in (chosen, masked, chosen & ~masked & ~kept, kept)]
    return MaskCounts(tokens, *counts)


@torch.inference_mode()
def masked_loss(name: str, read: Tensor, targets: Tensor) -> tuple[Tensor, float]:
    """Probability of the right token at each place, pos, and the mean loss over those that are asked; `read` and
    `targets` are 1 pos."""
    logits = library.checkpoint(name).model(read)
    loss, _ = cross_entropy(logits, targets)
    return softmax(logits).gather(-1, targets.clamp(min=0)[..., None])[0, :, 0], float(loss)


# --- two texts ---


def follows(name: str, encoding: Encoding) -> Tensor:
    """Probabilities that the second text follows the first, and that it does not (Devlin et al. 2019, section 3.1)."""
    return softmax(run(library.checkpoint(name).model, encoding, ["next_sentence"])["next_sentence"][0])
