"""The stages of one head, from the products of its queries and keys to what its weights move."""

from __future__ import annotations

from torch import Tensor

from engine.analysis.averages import by_norm
from engine.analysis.recorded_patterns import side_of
from engine.analysis.weights.circuit import attention_of
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace

PARTS = ("scores", "capped", "bias", "c2p", "p2c", "masked_scores", "pattern")


def head_stages(
    model: Transformer, trace: Trace, layer: int, head: int, side: str = "", crosses: bool = False
) -> dict[str, Tensor]:
    """`raw` (q k^T before scaling), `scores`, `capped`, `bias`, `c2p` and `p2c` where there are any, `masked_scores`,
    `pattern`, and `moved` (|pattern v W_O|), each query key, of the first text."""
    side = side_of(trace, side)
    attention = f"{f'{side}.' if side else ''}blocks.{layer}.{'cross_attn' if crosses else 'attn'}"
    stages = {}
    for part in PARTS:
        if (name := f"{attention}.{part}") in trace:
            stages[part] = trace[name][0, head] if "batch" in trace.dims(name) else trace[name][head]
    raw = stages["scores"] / attention_of(model, layer, side, crosses).scale
    return {"raw": raw, **stages, "moved": by_norm(model, trace, layer, side, crosses)[head]}
