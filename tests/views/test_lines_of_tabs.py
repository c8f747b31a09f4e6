"""The lines of a comparison's steps, where a position bias stands between the scores and the mask."""

from contextlib import redirect_stdout
from io import StringIO
from types import SimpleNamespace

from engine.runtime.run import run
from tests.engine import tiny
from views.compare.codegen import steps


def test_a_bias_that_has_no_axis_for_texts_is_printed_beside_the_scores() -> None:
    trace = run(tiny.model(tiny.config("alibi")), tiny.IDS[:5])
    at = SimpleNamespace(trace=trace, block="blocks.1.attn.", head=2, name="a")
    printed = StringIO()
    with redirect_stdout(printed):
        exec("\n".join(steps(at, 3, 1, {})), {"a": trace})
    said = dict(line.split() for line in printed.getvalue().splitlines())
    assert float(said["bias"]) == trace["blocks.1.attn.bias"][2, 3, 1].item() < 0
    assert float(said["masked_scores"]) == trace["blocks.1.attn.masked_scores"][0, 2, 3, 1].item()
