"""What edits did to a long text, as it is sent: the numbers that a page with all patterns would send."""

import pytest
import torch

from engine.analysis.overview_cache import LongRun
from engine.edits import Edit, Patch, SetPattern, SilenceHeads, Source
from engine.inputs.readers import Reading
from engine.runtime import library
from engine.runtime.run import run
from tests.views.test_effects import contexts, read_by
from views.attention.long import LongContext, long_context
from views.core.decision import decision_of
from views.core.lanes import lanes
from views.core.payload import Named, unpack
from views.core.run_context import HeadOfRun, RunContext
from views.what_if.effects import effects, moved_heads, shift_payload
from views.what_if.paint_ground import painted_on

pytestmark = pytest.mark.long

QUIET = SilenceHeads(1, [1])
UNKNOWN = "Unknown request"


def both(name: str, edit: Edit) -> tuple[LongContext, LongContext, Reading]:
    checkpoint, reading = read_by(name)
    stacks = lanes(checkpoint, reading)
    before, after = (LongRun(checkpoint.model, reading.read, made, reading.target) for made in ((), (edit,)))
    first = long_context(name, checkpoint, stacks, before, {})
    return first, long_context(name, checkpoint, stacks, after, {}, before), reading


def whole(name: str, edit: Edit) -> tuple[dict, dict[str, Named]]:
    checkpoint, reading = read_by(name)
    before, after = (run(checkpoint.model, reading.read, target=reading.target, edits=made) for made in ((), (edit,)))
    return unpack(effects(*contexts(name, before, after), reading))


EDITS = {
    "stories": QUIET,
    "tales-bert": SetPattern(2, "first", [0]),
    "translate-en-fr": SilenceHeads(1, [0], stack="decoder", cross=True),
    "infill": QUIET,
    "digits-vit": QUIET,
    "digits-imagegpt": QUIET,
}


def near(mine: Named, theirs: Named) -> None:
    torch.testing.assert_close(torch.tensor(mine.data), torch.tensor(theirs.data), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", EDITS)
def test_before_and_after_are_those_of_the_whole_runs(name: str) -> None:
    before, after, reading = both(name, EDITS[name])
    header, arrays = unpack(effects(before, after, reading))
    expected, wanted = whole(name, EDITS[name])
    assert header["lanes"] == expected["lanes"] and header["later"] and header["writes"] in ("asked", "never")
    for part in [one for one in wanted if one.startswith("stream.")]:
        near(arrays[part], wanted[part])
    row = wanted["shift.row"].data.tolist().index(int(arrays["shift.row"].data[0]))
    for part in ("id", "logit", "kl"):
        mine, theirs = (torch.tensor(found[f"shift.{part}"].data) for found in (arrays, wanted))
        torch.testing.assert_close(mine[0], theirs[row], atol=1e-4, rtol=1e-4)
    assert {f"pattern.{attention}" for attention in header["later"]} == {one for one in wanted if "pattern." in one}
    for attention in header["later"]:
        moved = wanted[f"pattern.{attention}"].data
        for layer, expected_there in enumerate(moved):
            found = moved_heads(before, after, attention, layer)
            torch.testing.assert_close(found, torch.tensor(expected_there), atol=1e-5, rtol=1e-4)


def test_only_the_layers_from_the_first_edit_on_are_run_again() -> None:
    before, after, reading = both("stories", SilenceHeads(3, [0]))
    assert unpack(effects(before, after, reading))[0]["took"]["start"] == 3
    for hook, small in before.overviews.items():
        if "blocks.3" not in hook:
            assert after.overviews[hook] is small


def test_another_position_is_asked_for_and_one_that_is_not_there_is_refused() -> None:
    before, after, reading = both("stories", QUIET)
    decision = decision_of(after.checkpoint, reading)
    found, arrays = unpack(shift_payload(before, after, decision, 4))
    made = after.made
    old, new = (run(made.model, made.read, edits=edits)["logits"][0, 4].double() for edits in ((), made.edits))
    p, q = old.softmax(-1), new.softmax(-1)
    assert float(arrays["shift.kl"].data[0]) == pytest.approx(float((p * (p / q).log2()).sum()), abs=1e-5)
    assert len(found["names"]) == 8
    for row in (400, -1):
        with pytest.raises(ValueError, match="must be in"):
            shift_payload(before, after, decision, row)
    for place in (("attn", 4), ("x", 0)):
        with pytest.raises(ValueError, match=UNKNOWN):
            moved_heads(before, after, *place)


def test_while_it_is_guessed_at_the_row_that_changed_most_is_asked_for() -> None:
    before, after, reading = both("stories", SetPattern(0, "first", [0]))
    assert unpack(effects(before, after, reading))[0]["guess"] is None
    header, arrays = unpack(effects(before, after, reading, hidden=True))
    guess = header["guess"]
    old, new = before.pattern(after.shown), after.pattern(after.shown)
    row = int((old - new).abs().sum(-1).argmax())
    assert (guess["layer"], guess["head"], guess["row"]) == (0, 0, row)
    assert arrays["guess.after"].data.tolist() == new[row].tolist()
    assert {int(old[row].argmax()), int(new[row].argmax())} <= set(guess["offered"])
    behind = unpack(effects(*both("stories", QUIET), hidden=True))[0]["guess"]
    assert behind["layer"] == 3  # the head on screen stands in front of the edit
    ids = list(reading.read.ids)
    nothing = both("stories", Patch("blocks.3.resid_post", Source(ids[::-1])))
    assert unpack(effects(*nothing, hidden=True))[0]["guess"] is None


def test_what_a_mask_and_a_pattern_are_painted_on_is_the_runs_own() -> None:
    for name, side, focus in (("stories", "", "attn"), ("translate-en-fr", "decoder", "cross_attn")):
        _, after, reading = both(name, EDITS[name])
        trace = run(library.checkpoint(name).model, reading.read, target=reading.target, edits=after.made.edits)
        checkpoint, head = after.checkpoint, HeadOfRun(side, focus, 1, 0)
        wanted = unpack(painted_on(RunContext(name, checkpoint, trace, lanes(checkpoint, reading)), head))[1]
        header, arrays = unpack(painted_on(after, head))
        rows, keys = header["shape"]
        bits = [(int(arrays["bits"].data[i >> 3]) >> (i & 7)) & 1 for i in range(rows * keys)]
        assert torch.equal(torch.tensor(bits).view(rows, keys).bool(), torch.tensor(wanted["mask"].data).bool())
        some = unpack(painted_on(after, head, (1, 4)))[1]["pattern"]
        torch.testing.assert_close(torch.tensor(some.data), torch.tensor(wanted["pattern"].data[1:4]))


WRONG = [{"layer": 9}, {"head": 9}, {"head": -1}, {"side": "x"}, {"focus": "z"}, {"layer": "1"}]


@pytest.mark.parametrize("wrong", WRONG)
def test_of_a_head_that_is_not_there_nothing_is_painted_on(wrong: dict) -> None:
    _, after, _ = both("stories", QUIET)
    with pytest.raises(ValueError, match="no such head"):
        painted_on(after, HeadOfRun(**{"side": "", "focus": "attn", "layer": 1, "head": 0, **wrong}))
    with pytest.raises(ValueError, match="at most 128"):
        painted_on(after, HeadOfRun("", "attn", 1, 0), (0, 999))
