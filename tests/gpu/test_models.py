"""Every kind of model, and every shipped one, on the device and on the CPU: float32 to 1e-4, bfloat16 by its angle."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from engine import generate, load, run
from engine.analysis.pseudo import pseudo_surprise
from engine.analysis.surprise import surprise
from engine.checkpoints import Checkpoint
from engine.edits import Scale
from engine.generation.beam import beam
from engine.generation.prompt import begin
from engine.model.twin import twins
from engine.runtime.trace import Trace
from tests.engine import tiny
from tests.engine.checkpoints.test_export import TEXTS, given
from tests.engine.model.test_every_hook import CONFIGS, read
from tests.gpu.conftest import Card
from tests.shipped import DIFFERENT

TOLERANCE = 1e-4
ALIKE = 0.99  # least cosine of what bfloat16 gives with what float32 does
# T5's scores are not divided by sqrt(d_head), and of two keys that are as near rounding takes the other one.
LESS_ALIKE = {"T5": 0.9, "nearest keys": 0.9}


def near(there: Tensor, plain: Tensor, name: str = "") -> None:
    torch.testing.assert_close(there, plain, atol=TOLERANCE, rtol=TOLERANCE, msg=lambda why: f"{name}: {why}")


def result(trace: Trace) -> Tensor:
    """The logits, or of a model without a head what it gives last."""
    return trace["logits"] if "logits" in trace else list(trace.values())[-1]


def cosine(one: Tensor, other: Tensor) -> float:
    return float(torch.cosine_similarity(one.flatten(), other.flatten(), dim=0))


@pytest.mark.parametrize("name", CONFIGS)
def test_every_kind_of_model_gives_what_the_cpu_gives(name: str, place: Card) -> None:
    model, asked = tiny.model(CONFIGS[name]), read(CONFIGS[name])
    options: dict[str, Any] = {"target": asked.target}
    edits = [Scale("*attn.z", 0.5)] if CONFIGS[name].layers else []
    plain, changed = run(model, asked.ids, **options), run(model, asked.ids, edits=edits, **options)
    twins[model] = place.twin(model)
    there = run(model, asked.ids, **options)
    assert list(there) == list(plain)
    for expected, found in ((plain, there), (changed, run(model, asked.ids, edits=edits, base=there, **options))):
        for hook, value in expected.items():
            near(found[hook], value, hook)
    if "logits" in plain:  # nobody looks, so attention is fused
        near(run(model, asked.ids, keep="logits", **options)["logits"], plain["logits"])
    twins[model] = place.twin(model, torch.bfloat16)
    rounded = result(run(model, asked.ids, **options))
    assert rounded.dtype == torch.float32 and cosine(rounded, result(plain)) > LESS_ALIKE.get(name, ALIKE)


def measure(checkpoint: Checkpoint, text: str) -> tuple[list[list[int]], list[Tensor]]:
    """Ids that a model writes, and logits and log-probabilities."""
    if not checkpoint.config.generates:
        return [], [pseudo_surprise(checkpoint, checkpoint.tokenizer.encode(text).ids).log_probabilities]
    steps = list(generate(checkpoint, text, 6, greedy=True))
    prompt = begin(checkpoint, text, text if checkpoint.config.encoder else None)
    asked = surprise(checkpoint, prompt.ids, prompt.source).log_probabilities
    written = [[step.id for step in steps], list(beam(checkpoint, text, 2, 4).hypotheses[0].ids)]
    return written, [*(step.logits for step in steps), asked]


# The same code as another one's, which `make test` tries: on the second device these are for `make test-long`.
ALIKE_OTHERS = {"bilingual", "instruct", "in-context", "t5-spans", "t5-tasks"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in ALIKE_OTHERS)) for name in DIFFERENT]
)
def test_every_shipped_model_reads_and_writes_as_on_the_cpu(name: str, place: Card) -> None:
    checkpoint = load(name)
    target = [[checkpoint.config.encoder.start or 0, 5, 6]] if checkpoint.config.encoder else None
    writes = checkpoint.name in TEXTS and checkpoint.tokenizer is not None and checkpoint.config.infill is None

    def logits() -> Tensor:
        return run(checkpoint.model, given(checkpoint), target=target, keep="logits")["logits"]

    plain = logits()
    ids, numbers = measure(checkpoint, TEXTS[name]) if writes else ([], [])
    twins[checkpoint.model] = place.twin(checkpoint.model)
    near(logits(), plain)
    if writes:
        found = measure(checkpoint, TEXTS[name])
        assert found[0] == ids
        for one, other in zip(found[1], numbers, strict=True):
            near(one, other)
    twins[checkpoint.model] = place.twin(checkpoint.model, torch.bfloat16)
    assert cosine(logits(), plain) > ALIKE
