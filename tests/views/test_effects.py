"""What edits did, as it is sent: every number against plain torch on two runs of its own."""

import json
import math

import pytest
import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.edits import AttentionTemperature, Edit, PaintMask, Replace, Scale, SetPattern, SilenceHeads
from engine.inputs.readers import Reading, pictures, read_infill, read_picture, read_pixels, read_text, read_translation
from engine.runtime import library
from engine.runtime.run import run
from engine.runtime.trace import Trace
from views.core.decision import Decision, decision_of
from views.core.lanes import lanes
from views.core.payload import Named, unpack
from views.core.run_context import RunContext
from views.what_if.continuation import completion, continuation, continuations
from views.what_if.effects import AT_ONCE, effects, position_of_question, shift_payload, shifts

HOT = AttentionTemperature(3.0)


def read_by(name: str) -> tuple[Checkpoint, Reading]:
    checkpoint = library.checkpoint(name)
    match name:
        case "translate-en-fr":
            return checkpoint, read_translation(checkpoint, "The delighted dog sees a small white cat.", "", 24)
        case "infill":
            return checkpoint, read_infill(checkpoint, "Once upon a time there was a girl named [gMASK].", "", 64)
        case "digits-vit":
            return checkpoint, read_picture(checkpoint, pictures()[0][0])
        case "digits-imagegpt":
            return checkpoint, read_pixels(checkpoint, pictures()[0][0], 20, 64, {"temperature": 1.0}, 0)
        case "tales-bert":
            return checkpoint, read_text(checkpoint, "It began to [MASK]. Lily had an umbrella.", 64)
    return checkpoint, read_text(checkpoint, 'Max gave the red ball to Anna. "Thank you," said', 64)


def both(name: str, *edits: Edit) -> tuple[Checkpoint, Reading, Trace, Trace]:
    checkpoint, reading = read_by(name)
    before = run(checkpoint.model, reading.read, target=reading.target)
    return checkpoint, reading, before, run(checkpoint.model, reading.read, target=reading.target, edits=edits)


def contexts(name: str, before: Trace, after: Trace) -> tuple[RunContext, RunContext]:
    checkpoint, reading = read_by(name)
    stacks = lanes(checkpoint, reading)
    return RunContext(name, checkpoint, before, stacks), RunContext(name, checkpoint, after, stacks, before)


def sent(name: str, *edits: Edit) -> tuple[dict, dict[str, Named], Trace, Trace]:
    checkpoint, reading, before, after = both(name, *edits)
    payload = effects(*contexts(name, before, after), reading)
    return *unpack(payload), before, after


def bits(before: Tensor, after: Tensor) -> float:
    p, q = before.double().softmax(-1), after.double().softmax(-1)
    return float((p * (p.log() - q.log())).sum() / math.log(2))


def test_every_position_has_its_candidates_their_logits_and_probabilities_in_both_runs_and_the_divergence() -> None:
    header, arrays, before, after = sent("stories", SilenceHeads(2, [1]))
    old, new = before["logits"][0], after["logits"][0]
    p, q = old.double().softmax(-1), new.double().softmax(-1)
    assert arrays["shift.row"].data.tolist() == list(range(len(old)))
    for row in range(len(old)):
        ids = arrays["shift.id"].data[row].tolist()
        expected = torch.maximum(p[row], q[row]).topk(8).values
        torch.testing.assert_close(torch.maximum(p[row], q[row])[ids], expected)
        logits, shares = torch.tensor(arrays["shift.logit"].data[row]), torch.tensor(arrays["shift.p"].data[row])
        assert torch.equal(logits, torch.stack([old[row, ids], new[row, ids]], -1))
        torch.testing.assert_close(shares, torch.stack([p[row, ids], q[row, ids]], -1).float())
        assert arrays["shift.kl"].data[row] == pytest.approx(bits(old[row], new[row]), rel=1e-4, abs=1e-6)
        moved = float((p[row] - q[row]).abs().sum() / 2)
        assert arrays["shift.variation"].data[row] == pytest.approx(moved, rel=1e-4, abs=1e-6)
        tokenizer = library.checkpoint("stories").tokenizer
        assert all(header["head"]["names"][str(id)] == tokenizer.piece(id) for id in ids)
    assert header["head"]["reads"] == "next" and header["head"]["row"] == len(old) - 1


def test_every_heads_rows_and_every_blocks_stream_are_compared() -> None:
    _, arrays, before, after = sent("stories", SilenceHeads(1, [0]))
    for layer in range(4):
        moved = (after[f"blocks.{layer}.attn.pattern"] - before[f"blocks.{layer}.attn.pattern"])[0].abs().sum(-1) / 2
        torch.testing.assert_close(torch.tensor(arrays["pattern.attn"].data[layer]), moved.mean(-1))
        old, new = before[f"blocks.{layer}.resid_post"][0], after[f"blocks.{layer}.resid_post"][0]
        relative = (new - old).norm(dim=-1) / old.norm(dim=-1)
        torch.testing.assert_close(torch.tensor(arrays["stream.relative"].data[layer + 1]), relative)
        cosine = torch.nn.functional.cosine_similarity(old, new, dim=-1)
        torch.testing.assert_close(torch.tensor(arrays["stream.cosine"].data[layer + 1]), cosine)
    assert not arrays["pattern.attn"].data[:2].any() and not arrays["stream.relative"].data[:2].any()


@pytest.mark.parametrize(
    ("name", "reads", "arrays"),
    [
        ("tales-bert", "here", ["pattern.attn", "stream.relative"]),
        ("translate-en-fr", "next", ["pattern.encoder.attn", "pattern.decoder.cross_attn", "stream.decoder.relative"]),
        ("infill", "next", ["pattern.attn"]),
        ("digits-vit", "class", ["pattern.attn"]),
        ("digits-imagegpt", "next", ["pattern.attn"]),
    ],
)
def test_every_kind_of_model_has_its_own_question(name: str, reads: str, arrays: list[str]) -> None:
    header, found, before, after = sent(name, HOT)
    assert header["head"]["reads"] == reads and all(found[array].data.any() for array in arrays)
    old, new = before["logits"][0], after["logits"][0]
    row = header["head"]["row"]
    old, new = (old, new) if reads == "class" else (old[row], new[row])
    index = found["shift.row"].data.tolist().index(row)
    assert found["shift.kl"].data[index] == pytest.approx(bits(old, new), rel=1e-3, abs=1e-6)


def test_the_position_shown_first_is_the_one_that_the_text_asks_about() -> None:
    bert, reading = read_by("tales-bert")
    assert reading.read.pieces[position_of_question(bert, reading)] == "[MASK]"
    infill, filled = read_by("infill")
    assert filled.written and filled.read.ids[position_of_question(infill, filled)] == infill.config.infill.start
    checkpoint, translated = read_by("translate-en-fr")
    header, arrays, _, _ = sent("translate-en-fr", HOT)
    assert translated.written and position_of_question(checkpoint, translated) is None
    assert header["head"]["row"] == int(arrays["shift.kl"].data.argmax())
    pixels, drawn = read_by("digits-imagegpt")
    assert position_of_question(pixels, drawn) == drawn.given == 20


def test_an_answer_is_two_distributions_over_positions() -> None:
    _, _, before, after = both("stories", HOT)
    for trace in (before, after):  # as a head that points into the text has them: pos 2
        trace._values["logits"] = trace["logits"][..., :2]
    found = shifts(before, after, [0, 1], Decision("answer", "softmax", None))
    for row in (0, 1):
        expected = bits(before["logits"][0, :, row], after["logits"][0, :, row])
        assert float(found["shift.kl"][row]) == pytest.approx(expected, rel=1e-4)


def test_a_long_text_over_a_large_vocabulary_brings_one_position_and_gives_the_others_on_demand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert AT_ONCE > 100_000
    monkeypatch.setattr("views.what_if.effects.AT_ONCE", 2000)
    header, arrays, before, after = sent("stories", HOT)
    assert arrays["shift.row"].data.tolist() == [header["head"]["row"]]
    decision = decision_of(*read_by("stories"))
    named, later = unpack(shift_payload(*contexts("stories", before, after), decision, 3))
    expected = bits(before["logits"][0, 3], after["logits"][0, 3])
    assert later["shift.kl"].data[0] == pytest.approx(expected, rel=1e-4) and len(named["names"]) == 8
    for wrong in (10_000, -1):
        with pytest.raises(ValueError, match="must be in"):
            shift_payload(*contexts("stories", before, after), decision, wrong)
    with pytest.raises(ValueError, match="has no head"):
        shift_payload(*contexts("stories", before, after), None, 3)


def test_the_guess_is_about_the_row_of_attention_that_changed_most() -> None:
    header, arrays, before, after = sent("stories", PaintMask(cells=[[13, 7]], layer=3, heads=[3]))
    guess = header["guess"]
    change = (after.stack("attn.pattern") - before.stack("attn.pattern"))[:, 0].abs().sum(-1)
    assert (guess["layer"], guess["head"], guess["row"]) == (3, 3, 13) and change[3, 3].argmax() == 13
    assert torch.equal(torch.tensor(arrays["guess.after"].data), after["blocks.3.attn.pattern"][0, 3, 13])
    assert torch.equal(torch.tensor(arrays["guess.before"].data), before["blocks.3.attn.pattern"][0, 3, 13])
    assert guess["offered"] == [key for key in range(14) if key != 7]
    early, _, _, _ = sent("stories", PaintMask(cells=[[5, 2]], layer=3))
    assert early["guess"]["row"] == 5 and early["guess"]["offered"] == [0, 1, 3, 4, 5]
    ahead = sent("stories", SetPattern(3, "position", position=9))[0]["guess"]  # the mask hides it, the edit does not
    assert ahead["offered"] == [*range(ahead["row"] + 1), *([9] if ahead["row"] < 9 else [])]
    assert sent("stories", Scale("blocks.3.mlp.out", 0.0))[0]["guess"] is None


def test_a_divergence_without_bound_reaches_the_browser() -> None:
    header, arrays, _, _ = sent("stories", Replace("logits", -math.inf, at={"vocab": [0, 1, 2]}))
    assert arrays["shift.kl"].data.max() == math.inf and json.dumps(header)


def greedily(checkpoint: Checkpoint, ids: list[int], edits: list[Edit], count: int) -> list[str]:
    """The likeliest token each time, from a whole run each time."""
    written = []
    for _ in range(count):
        ids = [*ids, int(run(checkpoint.model, ids, edits=edits)["logits"][0, -1].argmax())]
        written.append(checkpoint.tokenizer.piece(ids[-1]))
    return written


def test_the_continuation_is_what_whole_runs_give_one_after_another() -> None:
    checkpoint, reading = read_by("stories")
    for edits in ([], [SilenceHeads(2, [1]), HOT]):
        found = continuation(checkpoint, reading, edits)
        assert found == greedily(checkpoint, list(reading.read.ids), edits, len(found)) and len(found) == 20


def test_what_the_model_wrote_itself_is_written_again_from_where_it_began() -> None:
    checkpoint, reading = read_by("translate-en-fr")
    written = continuation(checkpoint, reading, [])
    assert written[: len(reading.target) - 1] == list(reading.target.pieces[1:])
    infill, filled = read_by("infill")
    before = len(filled.whole)
    assert continuation(infill, filled, [])[: len(filled.read) - before] == list(filled.read.pieces[before:])


def test_a_picture_is_completed_from_the_pixels_given_before_and_after() -> None:
    checkpoint, reading = read_by("digits-imagegpt")
    begun = list(reading.read.ids[: 1 + reading.given])
    drawn = {}
    for name, edits in (("before", []), ("after", [SilenceHeads(0, [1]), HOT])):
        ids = list(begun)
        while len(ids) < 65:  # the last pixel is written and not read
            ids.append(int(run(checkpoint.model, ids, edits=edits)["logits"][0, -1].argmax()))
        drawn[name] = torch.from_numpy(checkpoint.processor.picture(ids[1:]))
        found = completion(checkpoint, reading, edits)
        assert torch.equal(found[..., 0], drawn[name])
    assert not torch.equal(drawn["before"], drawn["after"])
    header, arrays = unpack(continuations(checkpoint, reading, [], [SilenceHeads(0, [1]), HOT]))
    assert header["given"] == 20
    assert all(torch.equal(torch.tensor(arrays[name].data)[..., 0], drawn[name]) for name in drawn)
    with pytest.raises(ValueError, match=r"rows 0\.\.20, got 40"):
        continuations(checkpoint, reading, [], [PaintMask(rows=[40], layer=0)])


def test_a_run_says_how_long_it_took_and_where_it_started() -> None:
    checkpoint, reading, before, _ = both("stories")
    after = run(checkpoint.model, reading.read, edits=[SilenceHeads(2, [0])], base=before)
    payload = effects(*contexts("stories", before, after), reading)
    took = unpack(payload)[0]["took"]
    assert took["start"] == 2 and took["layers"] == 4 and 0 < took["seconds"] < 10
