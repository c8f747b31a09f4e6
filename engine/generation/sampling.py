"""From logits to the distribution a token is drawn from, every stage kept: what is penalised, tempered, cut off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.layers.softmax import softmax

# --- Filters ---
# Which tokens may be drawn: top-k, top-p, min-p and typical, each with the edges that transformers gives it. All take
# `scores`, ... vocab, -inf where an earlier cut left a token out, and return a bool of the same shape. A token that an
# earlier cut left out may be True again: the cuts are taken together with `&`.


HEAD = 512  # tokens: a nucleus is nearly always smaller
CLOSE = 1e-5  # to p: here the order in which float32 is added up may decide


def keep_all(scores: Tensor) -> Tensor:
    return torch.ones_like(scores, dtype=torch.bool)


def top_k(scores: Tensor, k: int) -> Tensor:
    """The k largest (Fan et al. 2018), and all that equal the last of them. 0 keeps everything."""
    if k == 0 or k >= scores.shape[-1]:
        return keep_all(scores)
    return scores >= scores.topk(k).values[..., -1:]


def top_p(scores: Tensor, p: float) -> Tensor:
    """The fewest, most probable first, whose shares reach p (Holtzman et al. 2020), never none. 1 keeps everything."""
    if p >= 1:
        return keep_all(scores)
    rows = scores.reshape(-1, scores.shape[-1])
    kept, clear = nucleus(rows, p)
    if not bool(clear.all()):
        kept[~clear] = nucleus_from_below(rows[~clear], p)
    return kept.view(scores.shape)


def nucleus(scores: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """row vocab, and row: whether it is clear what is kept. The long tail is not sorted."""
    ranked = scores.topk(min(HEAD, scores.shape[-1]))
    share = softmax(scores).gather(-1, ranked.indices)
    before = share.cumsum(-1) - share
    count = (before < p).sum(-1, keepdim=True)
    kept = scores >= ranked.values.gather(-1, count - 1)
    reached = share.shape[-1] == scores.shape[-1] or before[:, -1] >= p
    untied = kept.sum(-1) == count[:, 0]
    return kept, untied & reached & ((before - p).abs() > CLOSE).all(-1)


def nucleus_from_below(scores: Tensor, p: float) -> Tensor:
    """The same by leaving out the least probable while their sum is at most 1 - p; sorting decides between equals."""
    ranked = torch.sort(scores)
    out = ranked.values.softmax(-1).cumsum(-1) <= 1 - p
    out[..., -1] = False
    return ~out.scatter(-1, ranked.indices, out)


def min_p(scores: Tensor, p: float) -> Tensor:
    """Keeps tokens at least `p` times as probable as the most probable (Nguyen et al. 2024). 0 keeps everything."""
    if p == 0:
        return keep_all(scores)
    shares = softmax(scores)
    best, kept = shares.argmax(-1, keepdim=True), shares >= p * shares.amax(-1, keepdim=True)
    return kept.scatter(-1, best, True)


def typical(scores: Tensor, mass: float) -> Tensor:
    """Keeps tokens whose surprise is nearest to the expected one, the entropy, until their shares reach `mass` (Meister
    et al. 2022, "Locally typical sampling"), and all as near as the last of them. 1 keeps everything.
    """
    if mass >= 1:
        return keep_all(scores)
    logs = scores.log_softmax(-1)
    expected = -(logs * logs.exp()).nansum(-1, keepdim=True)
    ranked = torch.sort((-logs - expected).abs())
    reached = scores.gather(-1, ranked.indices).softmax(-1).cumsum(-1)
    last = (reached < mass).sum(-1, keepdim=True).clamp(max=scores.shape[-1] - 1)
    out = ranked.values > ranked.values.gather(-1, last)
    out[..., 0] = False
    return ~out.scatter(-1, ranked.indices, out)


# --- Sampling ---


@dataclass(frozen=True)
class Sampling:
    """`temperature` 0 is greedy. `top_k` 0, `top_p` 1, `min_p` 0 and `typical_p` 1 keep everything.

    They come one after the other, each taking shares of what is left: the repetition penalty (Keskar et al. 2019,
    section 4.1), the temperature, top-k, top-p, min-p, typical. Order and edges are those of transformers.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"the output temperature must be 0 (greedy) or more, got {self.temperature}.")
        if self.top_k < 0:
            raise ValueError(f"top-k must be 0 (all) or more, got {self.top_k}.")
        for name, value in (("top-p", self.top_p), ("typical-p", self.typical_p)):
            if not 0 < value <= 1:
                raise ValueError(f"{name} must be above 0 and at most 1, got {value}.")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min-p must lie in 0..1, got {self.min_p}.")
        if not 0 < self.repetition_penalty < float("inf"):
            raise ValueError(f"the repetition penalty must be above 0 (1: none), got {self.repetition_penalty}.")


@dataclass(frozen=True)
class Distribution:
    """Every stage from logits to `probabilities`, all shaped like the logits (... vocab).

    `penalized` = the logits after what the checkpoint forces and forbids and after the repetition penalty; `scaled` =
    those / temperature; `shares` = softmax(scaled); `in_top_k`, `in_top_p`, `in_min_p` and `in_typical` say what each
    cut kept of what the one before it had left; `probabilities` are the shares of what is kept in the end, made to sum
    to 1 again.
    """

    logits: Tensor
    penalized: Tensor
    scaled: Tensor
    shares: Tensor
    in_top_k: Tensor
    in_top_p: Tensor
    in_min_p: Tensor
    in_typical: Tensor
    probabilities: Tensor


def distribution(
    logits: Tensor, sampling: Sampling, before: Sequence[int] = (), constrained: Tensor | None = None
) -> Distribution:
    """logits: ... vocab; `before` are the ids that were read, which the repetition penalty is about. `constrained` are
    the logits under that penalty and as a checkpoint changes them (`engine.generation.constraints`), where it may.

    At temperature 0 the most probable token has it all, as in the limit.
    """
    penalized = penalize(logits, sampling.repetition_penalty, before) if constrained is None else constrained
    temperature = sampling.temperature
    scaled = penalized if temperature == 1 else penalized / temperature if temperature > 0 else limit(penalized)
    if not bool(scaled.amax(-1).isfinite().all()):  # so cold that the quotient overflows
        scaled = limit(penalized)
    shares = softmax(scaled)
    in_top_k = top_k(scaled, sampling.top_k)
    in_top_p = in_top_k & top_p(mask_logits(scaled, in_top_k), sampling.top_p) if sampling.top_p < 1 else in_top_k
    in_min_p = in_top_p & min_p(mask_logits(scaled, in_top_p), sampling.min_p) if sampling.min_p > 0 else in_top_p
    in_typical = (
        in_min_p & typical(mask_logits(scaled, in_min_p), sampling.typical_p) if sampling.typical_p < 1 else in_min_p
    )
    probabilities = shares if bool(in_typical.all()) else softmax(mask_logits(scaled, in_typical))
    return Distribution(logits, penalized, scaled, shares, in_top_k, in_top_p, in_min_p, in_typical, probabilities)


def mask_logits(scaled: Tensor, kept: Tensor) -> Tensor:
    """`scaled`, -inf where a cut left a token out."""
    return scaled.masked_fill(~kept, float("-inf"))


def penalize(logits: Tensor, penalty: float, before: Sequence[int]) -> Tensor:
    """The logits of tokens that were read, once or more: divided by `penalty` where positive, else multiplied.

    An id that cannot be written, such as a picture's start token, has no logit.
    """
    size = logits.shape[-1]
    ids = sorted({id for id in before if id < size}) if penalty != 1 else []
    if not ids:
        return logits
    at = torch.tensor(ids, device=logits.device)
    old = logits[..., at]
    return logits.index_copy(-1, at, torch.where(old < 0, old * penalty, old / penalty))


def limit(logits: Tensor) -> Tensor:
    """Limit that logits / T tends to as T -> 0, up to a shift: 0 for the (first) largest, -inf for the rest."""
    best = logits.argmax(-1, keepdim=True)
    return torch.full_like(logits, float("-inf")).scatter(-1, best, 0.0)


def draw(probabilities: Tensor, generator: torch.Generator) -> int:
    """Draws one token id from a 1-D distribution."""
    return int(torch.multinomial(probabilities, 1, generator=generator))


def skip_draws(count: int, like: Tensor, generator: torch.Generator) -> None:
    """Leaves the generator where `count` draws from distributions of this size and dtype would have left it."""
    for _ in range(count):
        draw(torch.ones_like(like), generator)


def rank(logits: Tensor, id: int) -> int:
    """1 for the most probable token (vocab); tokens with the same logit share the better rank."""
    return 1 + int((logits > logits[id]).sum())


def entropy(probabilities: Tensor) -> Tensor:
    """... in nats, of ... vocab: -sum p ln p. Divided by ln 2 it is in bits (Shannon 1948)."""
    return -torch.special.xlogy(probabilities, probabilities).sum(-1)


def effective_choices(probabilities: Tensor) -> Tensor:
    """... : exp(entropy), how many equally probable tokens would be as uncertain (its perplexity)."""
    return entropy(probabilities).exp()
