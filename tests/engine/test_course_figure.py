"""The figure of a transformer: its boxes are the run's own tensors, in the run's own order."""

import pytest
import torch

from engine import load, run
from engine.course.figure import walk
from engine.inputs.readers import read_text

BEFORE = ["stream", "norm", "attention", "add", "norm", "MLP", "add"]
AFTER = ["stream", "attention", "add", "norm", "MLP", "add", "norm"]
CROSS = ["stream", "norm", "attention", "add", "norm", "cross-attention", "add", "norm", "MLP", "add"]


@pytest.mark.parametrize(
    ("name", "text", "stack", "block"),
    [
        ("everyday", "The girl was thirsty", "", BEFORE),
        ("plane", "Anna saw the", "", ["stream", "attention", "add"]),
        ("tales-bert", "The queen loved [MASK] husband.", "", AFTER),
        ("translate-en-fr", "She is here.", "encoder.", BEFORE),
        ("translate-en-fr", "She is here.", "decoder.", CROSS),
    ],
)
def test_the_boxes_are_the_parts_of_the_model_and_each_sum_is_of_what_leads_to_it(
    name: str, text: str, stack: str, block: list[str]
) -> None:
    checkpoint = load(name)
    reading = read_text(checkpoint, text, 40)
    trace = run(checkpoint.model, reading.read, target=reading.target)
    stops = walk(trace, 1 if name != "plane" else 0, 0, stack)
    assert [stop.part for stop in stops if stop.inside] == block
    for before, stop in zip(stops, stops[1:], strict=False):
        torch.testing.assert_close(stop.vector, trace[stop.hook][0, 0])
        if stop.part == "add":
            assert before.branch and stop.made_of[1] is before.vector
            torch.testing.assert_close(sum(stop.made_of), stop.vector)
    assert (stops[-1].part == "next token") == (stack != "encoder.")
