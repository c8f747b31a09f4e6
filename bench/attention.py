"""A text of 1,024 tokens with one head on screen, and what its page asks for afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from bench.models import GPT2_SMALL
from bench.paired import Row, paired, timed
from engine.analysis.flow import flow, network
from engine.analysis.heads import scores
from engine.analysis.rollout import rollout
from engine.analysis.summarised_run import glance, head_pattern, run_reduced
from engine.analysis.tiles import overview
from engine.attention_variants.measure import PeakBytes
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.runtime.trace import Trace

TOKENS = 1024
HOOK, HEAD = "blocks.6.attn.pattern", 3
LAST = slice(-1, None)
GRAPHS = ((4, 64), (12, 64), (12, 128))  # layers, tokens
MIB = 2**20


def setting() -> tuple[Transformer, torch.Tensor]:
    model = initialise(Transformer(GPT2_SMALL.config), seed=0).eval()
    return model, torch.randint(GPT2_SMALL.config.vocab_size, (1, TOKENS), generator=torch.Generator().manual_seed(0))


def rows() -> Iterator[Row]:
    """Against the forward pass alone, fused, that gives the same logits: all of them, or those of the next token."""
    model, ids = setting()

    @torch.no_grad()
    def forward(at: slice = LAST) -> torch.Tensor:
        logits: torch.Tensor = model(ids, logits_at=at)
        return logits

    def measured(pattern: torch.Tensor) -> object:
        return overview(pattern[0]), scores(pattern[0], ids[0])

    seen = glance(model, ids, HOOK, HEAD, logits_at=LAST)
    torch.testing.assert_close(seen.trace["logits"], forward(), atol=1e-3, rtol=0)
    whole = partial(forward, slice(None))
    name, note = f"{TOKENS:,} tokens, ", "with overviews of all 144 heads"
    yield paired(f"{name}one head on screen", lambda: glance(model, ids, HOOK, HEAD), whole, 1.5, note=note)
    note = "the next token's logits only, here and below, on both sides"
    glances = partial(glance, model, ids, HOOK, HEAD, logits_at=LAST)
    yield paired(f"{name}the same", glances, forward, note=note)
    yield paired(f"{name}one layer's pattern", lambda: run(model, ids, ("logits", HOOK), logits_at=LAST), forward)
    later = partial(head_pattern, model, ids, HOOK, HEAD, seen.trace, logits_at=LAST)
    yield paired(f"{name}another head afterwards", later, forward, reach=0.2)
    scored = partial(run_reduced, model, ids, {"*.pattern": measured}, logits_at=LAST)
    yield paired(f"{name}overviews and head scores", scored, forward)


def to_inputs(trace: Trace, pos: int) -> Tensor:
    """The flow from one position, its network included."""
    return flow(network(trace), pos)


def lines() -> Iterator[str]:
    model, ids = setting()
    for what, action in (
        ("one head on screen", partial(glance, model, ids, HOOK, HEAD, logits_at=LAST)),
        ("every pattern kept", partial(run, model, ids, ("logits", "*.pattern"), logits_at=LAST)),
    ):
        with PeakBytes() as seen:
            action()
        yield f"{TOKENS:,} tokens, GPT-2 small, {what}: {seen.peak / MIB:.0f} MiB of tensors at the peak"
    for layers, tokens in GRAPHS:
        config = ModelConfig(1000, tokens, 128, layers, Attention(4), MLP(256))
        trace = run(initialise(Transformer(config), seed=0), torch.arange(tokens)[None], keep="*.pattern")
        rolled = timed(partial(rollout, trace))
        flowed = timed(partial(to_inputs, trace, tokens - 1))
        yield f"{layers} layers x {tokens} tokens: rollout {rolled * 1e3:.1f} ms, flow to every input {flowed:.2f} s"
