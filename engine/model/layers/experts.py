"""A mixture of experts in place of one MLP: a router sends each token to a few of many (Shazeer et al. 2017).

Values of experts are kept for the slots of each token, one an expert that it was sent to: `router.chosen` says which,
so that of 64 experts nothing is kept of those a token did not see.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from engine.model.config import MLP as MLPConfig
from engine.model.config import Experts as ExpertsConfig
from engine.model.hooks import HookPoint
from engine.model.layers.mlp import MLP, activate
from engine.model.layers.module import Linear, Module

SMALLEST_SUM = 1e-20  # of weights that are renormalised (DeepSeek-AI 2024, DeepSeek-V3, equation 13, in its code)


@dataclass(frozen=True)
class Routing:
    """Results of one router in a pass: logits and probabilities, batch pos expert, and what it chose, batch pos
    slot."""

    logits: Tensor
    probs: Tensor
    chosen: Tensor


_asked: ContextVar[list[Routing] | None] = ContextVar("loupe_asked_routers", default=None)


@contextmanager
def recorded_routing() -> Iterator[list[Routing]]:
    """Collects what the routers make of the passes in this context, with the way back for gradients."""
    found: list[Routing] = []
    token = _asked.set(found)
    try:
        yield found
    finally:
        _asked.reset(token)


class Router(Linear):
    """Scores of the experts for each token, and of these the best.

    A `correction` is added to scores where experts are chosen, and not where they are weighed (Wang et al. 2024,
    auxiliary-loss-free load balancing). With groups, only experts of the best groups can be chosen (DeepSeek-AI 2024,
    DeepSeek-V2, section 2.2.2).
    """

    correction: Tensor | None

    def __init__(self, config: ExpertsConfig, d_model: int) -> None:
        super().__init__(d_model, config.count, bias=config.bias)
        self.config = config
        self.register_buffer("correction", torch.zeros(config.count) if config.correction else None)
        self.hook_logits = HookPoint("logits", "batch pos expert")
        self.hook_probs = HookPoint("probs", "batch pos expert")
        self.hook_chosen = HookPoint("chosen", "batch pos slot")
        self.hook_weights = HookPoint("weights", "batch pos slot")
        self.hook_used = HookPoint("used", "one", on_request=True)
        self.hook_gain = HookPoint("gain", "expert", on_request=True)

    def route(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Ids of the experts of each token and their weights, batch pos slot, the best expert first."""
        logits = self.hook_logits(self(x)).float()
        probs = self.hook_probs(logits.softmax(-1) if self.config.scores == "softmax" else logits.sigmoid())
        used = self.count_used()
        best = self.choose(probs.detach(), max(used, self.config.used))
        chosen = self.hook_chosen(best)
        if chosen is not best:
            self.check(chosen)
        if (asked := _asked.get()) is not None:
            asked.append(Routing(logits, probs, chosen))
        weights = probs.gather(-1, chosen)
        if used < self.config.used:  # whose slots stay, so that a trace has the shape that it has without the edit
            weights = weights * (torch.arange(self.config.used, device=weights.device) < used)
        if self.config.renormalised:
            weights = weights / (weights.sum(-1, keepdim=True) + SMALLEST_SUM)
        if self.config.scale != 1:
            weights = weights * self.config.scale
        if self.hook_gain.is_active:
            weights = weights * self.hook_gain(torch.ones(self.config.count, device=weights.device))[chosen]
        return chosen, self.hook_weights(weights.to(x.dtype))

    def count_used(self) -> int:
        """Number of experts that a token sees, which an edit may change. Raises ValueError for more than there are."""
        if not self.hook_used.is_active:
            return self.config.used
        used = int(self.hook_used(torch.tensor([self.config.used])))
        most = self.config.count // self.config.groups * self.config.groups_used
        if not 1 <= used <= most:
            raise ValueError(f"an edit must leave each token 1 or more experts and at most {most}, got {used}.")
        return used

    def choose(self, probs: Tensor, used: int) -> Tensor:
        """The `used` best experts, batch pos slot."""
        config = self.config
        scores = probs if self.correction is None else probs + self.correction
        if config.groups > 1:
            grouped = scores.unflatten(-1, (config.groups, -1))
            strength = grouped.topk(config.group_best, -1).values.sum(-1)
            best = torch.zeros_like(strength, dtype=torch.bool)
            best.scatter_(-1, strength.topk(config.groups_used, -1).indices, True)
            scores = grouped.masked_fill(~best[..., None], float("-inf")).flatten(-2)
        return scores.topk(used, -1).indices

    def check(self, chosen: Tensor) -> None:
        """Raises ValueError for experts that an edit chose and that are none."""
        low, high = (int(end) for end in chosen.aminmax())
        if low < 0 or high >= self.config.count:
            wrong = low if low < 0 else high
            raise ValueError(f"an edit must choose experts 0 to {self.config.count - 1}, got {wrong}; name another.")


class ExpertLinear(Module):
    """Linear maps, one an expert: weight is expert out in, bias expert out."""

    def __init__(self, count: int, d_in: int, d_out: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, d_out, d_in))
        self.bias = nn.Parameter(torch.empty(count, d_out)) if bias else None

    def forward(self, rows: Tensor, sizes: list[int]) -> Tensor:
        """`rows` (row d_in) of the experts in order, `sizes` of them each; row d_out."""
        parts = []
        for expert, part in enumerate(rows.split(sizes)):
            if len(part):
                bias = None if self.bias is None else self.bias[expert]
                parts.append(linear(part, self.weight[expert], bias))
        return torch.cat(parts)


class ExpertMLPs(Module):
    """The MLPs of all experts, each computed for the tokens that were sent to it."""

    def __init__(self, config: MLPConfig, count: int, d_model: int) -> None:
        super().__init__()
        self.config, self.count = config, count
        self.pre = ExpertLinear(count, d_model, config.d_mlp, config.bias)
        self.up = ExpertLinear(count, d_model, config.d_mlp, config.bias) if config.gated else None
        self.out = ExpertLinear(count, config.d_mlp, d_model, config.bias)
        self.hook_pre = HookPoint("pre", "batch pos slot d_mlp")
        if config.gated:
            self.hook_up = HookPoint("up", "batch pos slot d_mlp")
        self.hook_post = HookPoint("post", "batch pos slot d_mlp")
        self.hook_out = HookPoint("out", "batch pos slot d_model", on_request=True)

    def forward(self, x: Tensor, chosen: Tensor) -> Tensor:
        """Computes what each slot's expert writes, batch pos slot d_model; `x` is batch pos d_model, `chosen` batch pos
        slot."""
        flat = chosen.flatten()
        order = flat.argsort(stable=True)
        back = order.argsort()
        sizes = flat.bincount(minlength=self.count).cpu().tolist()

        def slots(values: Tensor) -> Tensor:
            return values.index_select(0, back).unflatten(0, tuple(chosen.shape))

        def visit(hook: HookPoint, values: Tensor) -> Tensor:
            """`values` of the experts in order, as the hook leaves them."""
            if not hook.is_active:
                return values
            shown = slots(values)
            left = hook(shown)
            return values if left is shown else left.flatten(0, -2).index_select(0, order)

        rows = x.flatten(0, -2).index_select(0, order // chosen.shape[-1])
        pre = visit(self.hook_pre, self.pre(rows, sizes))
        up = None if self.up is None else visit(self.hook_up, self.up(rows, sizes))
        post = visit(self.hook_post, activate(self.config, pre, up))
        return self.hook_out(slots(self.out(post, sizes)))


class Experts(Module):
    """out = sum over slots of weight * expert(x), plus the shared expert, which every token sees."""

    def __init__(self, config: MLPConfig, d_model: int) -> None:
        super().__init__()
        experts = config.experts
        assert experts is not None
        self.router = Router(experts, d_model)
        self.experts = ExpertMLPs(config, experts.count, d_model)
        shared = None if experts.shared is None else replace(config, d_mlp=experts.shared, experts=None)
        self.shared = None if shared is None else MLP(shared, d_model)
        self.shared_gate = Linear(d_model, 1, bias=False) if experts.shared_gate else None
        if experts.shared_gate:
            self.hook_shared_weight = HookPoint("shared_weight", "batch pos")
        self.hook_out = HookPoint("out", "batch pos d_model")

    def forward(self, x: Tensor) -> Tensor:
        chosen, weights = self.router.route(x)
        out = (weights[..., None] * self.experts(x, chosen)).sum(-2)
        if self.shared is not None:
            out = out + self.share(x, self.shared)
        return self.hook_out(out)

    def share(self, x: Tensor, shared: MLP) -> Tensor:
        if self.shared_gate is None:
            return shared(x)
        weight = self.hook_shared_weight(self.shared_gate(x).squeeze(-1).sigmoid())
        return weight[..., None] * shared(x)


def make_mlp(config: MLPConfig, d_model: int) -> MLP | Experts:
    """The MLP of a layer, or the experts that stand in its place."""
    return MLP(config, d_model) if config.experts is None else Experts(config, d_model)
