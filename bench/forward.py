"""One forward pass: with everything kept, with only the logits, and edited from a base."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from bench.models import (
    BERT_BASE,
    GPT2_SMALL,
    LITTLE,
    LITTLE_BERT,
    LITTLE_LLAMA,
    LITTLE_MIXTRAL,
    LITTLE_T5,
    LLAMA,
    T5_SMALL,
    Shape,
    both,
)
from bench.paired import Row, paired
from engine.edits import SilenceHeads
from engine.runtime.run import run
from engine.runtime.trace import Trace

LARGE = (GPT2_SMALL, BERT_BASE, T5_SMALL, LLAMA)
SMALL = (LITTLE, LITTLE_BERT, LITTLE_T5, LITTLE_LLAMA)


def rows() -> Iterator[Row]:
    for shape in LARGE:
        yield traced(shape, reach=1.0)
    for shape in SMALL:
        yield traced(shape, reach=0.7)
    yield traced(LITTLE_MIXTRAL, reach=1.0)
    yield logits_alone(GPT2_SMALL, reach=1.0)
    yield logits_alone(LITTLE)
    for shape in (GPT2_SMALL, LITTLE):
        yield edited(shape, reach=0.4)


def traced(shape: Shape, reach: float) -> Row:
    """Everything kept, against transformers' eager attention with attentions and hidden states."""
    ours, theirs = both(shape, "eager")
    ids, target = shape.ids, shape.target
    asked: dict[str, Any] = {"output_attentions": True, "output_hidden_states": True}
    if shape.config.generates:
        asked["use_cache"] = False
    if target is not None:
        asked["decoder_input_ids"] = target

    @torch.no_grad()
    def their_pass() -> Any:
        return theirs(ids, **asked)

    def our_pass() -> Trace:
        return run(ours.model, ids, target=target)

    trace, told = our_pass(), their_pass()
    expected = told.prediction_logits if "prediction_logits" in told else told.logits
    torch.testing.assert_close(trace["logits"], expected, atol=1e-3, rtol=0)
    kept = sum(len(part) for name, part in told.items() if name.endswith(("attentions", "hidden_states")))
    note = f"{len(trace)} tensors kept, theirs {kept + 1}"
    return paired(f"traced forward, {shape.name}", our_pass, their_pass, reach, note=note)


def logits_alone(shape: Shape, reach: float | None = None) -> Row:
    ours, theirs = both(shape, "sdpa")
    ids = shape.ids

    @torch.no_grad()
    def their_pass() -> object:
        return theirs(ids, use_cache=False)

    return paired(f"forward, only logits, {shape.name}", lambda: run(ours.model, ids, keep="logits"), their_pass, reach)


def edited(shape: Shape, reach: float) -> Row:
    """Loupe against itself: an edit at the start of the last quarter, from a base and from nothing."""
    ours, _ = both(shape)
    ids = shape.ids
    layer = shape.config.layers * 3 // 4
    edits = [SilenceHeads(layer, [0])]
    last = slice(-1, None)
    base = run(ours.model, ids, logits_at=last)
    return paired(
        f"edit in layer {layer} from a base, {shape.name}",
        lambda: run(ours.model, ids, edits=edits, base=base, logits_at=last),
        lambda: run(ours.model, ids, edits=edits, logits_at=last),
        reach,
        note="against the full traced run; logits of the next token",
    )
