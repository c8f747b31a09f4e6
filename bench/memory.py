"""What a full trace holds in memory, and how that grows."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.models import GPT2_SMALL
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.runtime.trace import Trace

LENGTHS = (64, 256)
MIB = 2**20


def lines() -> Iterator[str]:
    model = initialise(Transformer(GPT2_SMALL.config), seed=0)
    ids = torch.randint(GPT2_SMALL.config.vocab_size, (1, max(LENGTHS)), generator=torch.Generator().manual_seed(0))
    for length in LENGTHS:
        trace = run(model, ids[:, :length])
        quadratic = matrices(trace)
        linear = trace.bytes - quadratic
        yield (
            f"full trace, GPT-2 small, T={length}: {trace.bytes / MIB:.1f} MiB = {linear / length / MIB:.3f} MiB x T "
            f"+ {quadratic / length**2:.0f} B x T^2"
        )
    yield (
        "it grows linearly with T for the vectors (and logits), and with T^2 for scores, masked scores and pattern "
        "of every head, 4 B each; the mask is shared by all layers, 1 B"
    )


def matrices(trace: Trace) -> int:
    """Bytes of the values with both a pos and a key axis, shared memory counted once."""
    values = [value for name, value in trace.items() if trace.dims(name)[-2:] == ("pos", "key")]
    return sum({v.untyped_storage().data_ptr(): v.untyped_storage().nbytes() for v in values}.values())
