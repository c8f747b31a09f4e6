"""The walkthrough's payload holds the trace, element for element."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.analysis.answers import AnswerSpan
from engine.analysis.heads import head_scores
from engine.checkpoints import Checkpoint
from engine.edits import AttentionTemperature
from engine.generation.sampling import Sampling, distribution
from engine.inputs.processors import PalettePixels
from engine.inputs.readers import Reading
from engine.model.config import MLP, Attention, Embedding, ModelConfig, OtherRotation, OutputHead, Patches, Positions
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.core.lanes import digest, lane_header, lanes
from views.core.payload import Named, unpack
from views.core.questions import Page
from views.walkthrough import walkthrough as view
from views.walkthrough.outcome import Outcome
from views.walkthrough.questions import WALKTHROUGH, WalkthroughContext

CONFIG = ModelConfig(vocab_size=40, context=64, d_model=16, layers=3, attention=Attention(heads=2), mlp=MLP(32))
PLAIN = Sampling()
MODEL = initialise(Transformer(CONFIG), seed=3).eval()


def traced(length: int = 6) -> Trace:
    return run(MODEL, Encoding.from_ids(range(length)))


def payload(trace: Trace, sampling: Sampling = PLAIN, **more: int) -> tuple[dict, dict[str, Named]]:
    outcome = Outcome(distribution(trace["logits"][0], sampling), names=None, sampled=7)
    stacks = lanes(Checkpoint(MODEL), Reading(trace.encoding))
    scores = {"attn": head_scores(trace)}
    return unpack(view.walkthrough(trace, stacks, name="tiny", outcome=outcome, scores=scores, notes={}, **more))


def asked(trace: Trace, model: Transformer = MODEL, sampling: Sampling = PLAIN, **query: object) -> tuple[dict, dict]:
    """What the page answers to a query of the browser."""
    outcome = Outcome(distribution(trace["logits"][0].float(), sampling), names=None)
    stacks = lanes(Checkpoint(model), Reading(trace.encoding))
    context = WalkthroughContext("tiny", Checkpoint(model), trace, stacks, outcome=outcome, sampling=sampling)
    return unpack(Page((WALKTHROUGH, context)).answer({"trace": context.digest, **query}))


def test_of_layers_some_of_which_turn_nothing_the_others_explain_what_is_turned() -> None:
    model = initialise(Transformer(replace(CONFIG, positions=Positions("rotary", other=OtherRotation((0,))))), seed=3)
    trace = run(model.eval(), Encoding.from_ids(range(6)))
    (lane,) = lanes(Checkpoint(model), Reading(trace.encoding))
    assert lane_header(trace, lane)["model"]["unturned"] == [0]
    header, _ = asked(trace, model, ask="cell", hook="blocks.{l}.attn.q_rotated", row=4, col=2)
    assert header["entries"].keys() == {f"{layer},{head}" for layer in (1, 2) for head in (0, 1)}


def test_a_cell_is_explained_in_every_head_and_block_at_once() -> None:
    trace = traced()
    header, arrays = asked(trace, ask="cell", hook="blocks.{l}.attn.pattern", row=4, col=2)
    pattern = trace.stack("attn.pattern")[:, 0]
    assert header["names"] == list(trace.encoding.pieces)
    for layer in range(3):
        for head in range(2):
            entry = header["entries"][f"{layer},{head}"]
            assert entry["stored"] == float(pattern[layer, head, 4, 2])
            assert entry["recomputed"] == pytest.approx(entry["stored"], abs=2e-5)
            q = next(strip for strip in entry["strips"] if strip["label"] == "q")
            assert q["place"] == f"blocks.{layer}.attn.q[4, {head}, :]" and q["role"] == "query"
            values = arrays["values"].data[q["start"] : q["start"] + q["length"]]
            np.testing.assert_array_equal(values, trace[f"blocks.{layer}.attn.q"][0, 4, head].numpy())


def test_numbers_that_json_lacks_and_terms_with_their_names_reach_the_browser() -> None:
    trace = traced()
    blocked = asked(trace, ask="cell", hook="blocks.1.attn.masked_scores", row=1, col=4)[0]["entries"]["1,0"]
    assert blocked["stored"] == blocked["recomputed"] == "-Infinity"
    mixed = asked(trace, ask="cell", hook="blocks.1.attn.z", row=2, col=3)[0]["entries"]["1,1"]
    assert {row[0] for row in mixed["terms"]["rows"]} == {f"#{i} {'₀₁₂'[i]}" for i in range(3)}
    joined = asked(trace, ask="cell", hook="blocks.{l}.attn.out", row=2, col=3)[0]["entries"]["2,"]
    assert all(row[0].startswith("head ") for row in joined["terms"]["rows"]) and joined["terms"]["others"] == 9


def test_a_candidate_is_explained_up_to_its_probability() -> None:
    sampling = Sampling(0.7, top_k=5)
    trace = traced()
    following = distribution(trace["logits"][0], sampling)
    for id in following.logits[3].topk(7).indices.tolist():
        entry = asked(trace, sampling=sampling, ask="candidate", row=3, id=id)[0]["entries"][","]
        assert entry["stored"] == float(following.probabilities[3, id])
        assert entry["recomputed"] == pytest.approx(entry["stored"], abs=2e-5)


@pytest.mark.parametrize(
    "query",
    [
        {"ask": "cell", "hook": "blocks.{l}.attn.pattern", "row": 6, "col": 0},
        {"ask": "cell", "hook": "blocks.0.attn.pattern", "row": 0, "col": -1},
        {"ask": "cell", "hook": "blocks.9.attn.pattern", "row": 0, "col": 0},
        {"ask": "cell", "hook": "__class__", "row": 0, "col": 0},
        {"ask": "cell", "hook": "blocks.0.attn.pattern", "row": "0", "col": 0},
        {"ask": "candidate", "row": 6, "id": 0},
        {"ask": "candidate", "row": 0, "id": 40},
        {"ask": "layer", "side": "", "layer": 3},
    ],
)
def test_what_is_not_there_is_one_sentence(query: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"must be|no hook"):
        asked(traced(), **query)


def test_an_exported_file_explains_cells_that_nobody_clicked() -> None:
    trace = traced()
    outcome = Outcome(distribution(trace["logits"][0], PLAIN), names=None)
    stacks = lanes(Checkpoint(MODEL), Reading(trace.encoding))
    context = WalkthroughContext("tiny", Checkpoint(MODEL), trace, stacks, outcome=outcome)
    page = Page((WALKTHROUGH, context))
    carried = list(page.carried_queries())
    cells = {(query["row"], query["col"]) for query in carried if query["ask"] == "cell"}
    assert cells == {(row, key) for row in range(6) for key in range(row + 1)}
    assert all(page.answer(query) for query in carried) and any(query["ask"] == "candidate" for query in carried)


def test_every_hook_but_the_logits_arrives_unchanged() -> None:
    trace = traced()
    _, arrays = payload(trace)
    for hook in set(trace) - {"logits"}:
        value = trace[hook][0] if trace.dims(hook)[0] == "batch" else trace[hook]
        np.testing.assert_array_equal(arrays[hook].data, value.numpy(), err_msg=hook)


def test_a_trace_too_large_brings_one_layer_and_thumbnails_that_keep_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "WHOLE", 10)
    monkeypatch.setattr(view, "THUMBNAIL", 4)
    trace = traced(10)
    _, arrays = payload(trace, layer=1)
    assert "blocks.1.attn.q" in arrays and "blocks.0.attn.q" not in arrays
    peaks = trace.stack("attn.pattern")[:, 0].amax((-1, -2))
    drawn = arrays["thumbnails.attn"].data.max((-1, -2)) / 255
    np.testing.assert_allclose(drawn, peaks.numpy(), atol=0.5 / 255)
    _, later = unpack(view.layer_payload(trace, 2))
    np.testing.assert_array_equal(later["blocks.2.attn.v"].data, trace["blocks.2.attn.v"][0].numpy())


def test_a_layer_that_the_run_lacks_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="no layer 3"):
        view.layer_payload(traced(), 3)


def test_candidates_are_the_largest_logits_with_their_whole_way_to_a_probability() -> None:
    trace = traced()
    sampling = Sampling(temperature=0.5, top_k=6, top_p=0.7)
    _, arrays = payload(trace, sampling)
    following = distribution(trace["logits"][0], sampling)
    ids = torch.tensor(arrays["next.id"].data).long()
    assert torch.equal(ids[:, 0], trace["logits"][0].argmax(-1))
    stages = {"logit": following.logits, "share": following.shares, "probability": following.probabilities}
    for name, stage in stages.items():
        np.testing.assert_array_equal(arrays[f"next.{name}"].data, stage.gather(1, ids).numpy(), err_msg=name)
    assert arrays["next.kept_p"].data.tolist() == following.in_top_p.sum(-1).tolist()
    kept = arrays["next.share"].data * arrays["next.in_top_p"].data
    np.testing.assert_allclose(kept.sum(-1), arrays["next.kept_share"].data, rtol=1e-5)


def test_every_candidate_and_the_drawn_token_have_a_name() -> None:
    header, arrays = payload(traced())
    assert set(map(str, arrays["next.id"].data.flat)) | {"7"} <= set(header["names"])


def test_an_edit_is_named_and_gives_the_run_another_digest() -> None:
    plain = traced()
    edited = run(MODEL, plain.encoding, edits=[AttentionTemperature(2.0)], base=plain)
    assert payload(edited)[0]["edited"] == ["*.temperature"]
    assert digest("tiny", plain) != digest("tiny", edited)
    assert digest("tiny", plain) == digest("tiny", traced())


def test_what_is_stored_in_half_precision_is_drawn_as_it_is() -> None:
    model = initialise(Transformer(CONFIG), seed=3).to(torch.bfloat16).eval()
    trace = run(model, Encoding.from_ids(range(6)))
    header, arrays = payload(trace)
    assert header["dtype"] == "bfloat16" and payload(traced())[0]["dtype"] == "float32"
    for hook in ("blocks.1.attn.pattern", "blocks.2.resid_post"):
        assert trace[hook].dtype is torch.bfloat16
        np.testing.assert_array_equal(arrays[hook].data, trace[hook][0].float().numpy())
    entry = asked(trace, model, ask="cell", hook="blocks.0.attn.q", row=1, col=2)[0]["entries"]["0,1"]
    assert entry["stored"] == float(trace["blocks.0.attn.q"][0, 1, 1, 2])
    assert entry["recomputed"] == pytest.approx(entry["stored"], rel=2**-7)


def test_thumbnails_of_half_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "WHOLE", 10)
    model = initialise(Transformer(CONFIG), seed=3).to(torch.bfloat16).eval()
    trace = run(model, Encoding.from_ids(range(6)))
    _, arrays = payload(trace)
    pattern = trace.stack("attn.pattern")[:, 0].float()
    np.testing.assert_allclose(arrays["thumbnails.attn"].data / 255, pattern.numpy(), atol=0.5 / 255)


def test_a_distilled_picture_has_two_rows_before_its_patches() -> None:
    patches = Patches(8, 4, 1, distilled=True)
    config = ModelConfig(
        1, 6, 16, 1, Attention(2, mask="full"), embedding=Embedding(patches=patches), head=OutputHead("none")
    )
    (lane,) = lanes(Checkpoint(Transformer(config)), Reading(torch.zeros(1, 1, 8, 8)))
    assert list(lane.pieces) == ["[CLS]", "[DIST]", "1, 1", "1, 2", "2, 1", "2, 2"]
    assert lane.grid and lane.grid["offset"] == 2 and lane.special == [True, True, False, False, False, False]


@pytest.mark.parametrize("completed", [True, False])
def test_a_picture_that_is_completed_begins_with_a_start_token_and_one_that_is_read_whole_does_not(
    completed: bool,
) -> None:
    head = OutputHead(outputs=5) if completed else OutputHead("sequence", 3, read="mean")
    config = replace(CONFIG, vocab_size=6, head=head)
    checkpoint = Checkpoint(Transformer(config), processor=PalettePixels.grey((2, 2), 5))
    read = Encoding.from_ids([5, 0, 1, 2, 3] if completed else [0, 1, 2, 3])
    original = torch.zeros(2, 2, 1) if completed else None
    (lane,) = lanes(checkpoint, Reading(read, original=original, given=3 if completed else 0))
    assert lane.grid and (lane.grid["side"], lane.grid["predicts"]) == (2, completed)
    assert lane.grid["offset"] == len(lane.pieces) - 4 == int(completed)
    assert lane.grid.get("given") == (3 if completed else None)


@pytest.mark.parametrize(
    ("hook", "head", "width"),
    [
        ("head.mean", OutputHead("sequence", 3, read="mean"), 16),
        ("head.narrow", OutputHead("sequence", 3, narrow=True), 6),
    ],
)
def test_what_a_text_has_one_of_is_drawn_as_one_row(hook: str, head: OutputHead, width: int) -> None:
    narrow = Embedding(width=6, mapped="tokens") if head.narrow else Embedding()
    trace = run(initialise(Transformer(replace(CONFIG, embedding=narrow, head=head)), 0), Encoding.from_ids(range(5)))
    stacks = lanes(Checkpoint(MODEL), Reading(trace.encoding))
    _, arrays = unpack(view.walkthrough(trace, stacks, name="", outcome=None, scores={}, notes={}))
    assert arrays[hook].data.shape == (1, width)
    np.testing.assert_array_equal(arrays[hook].data[0], trace[hook][0].numpy())


def test_logits_over_classes_are_drawn_and_those_over_a_vocabulary_are_not() -> None:
    config = ModelConfig(40, 64, 16, 1, Attention(2, mask="full"), head=OutputHead("span"))
    model = initialise(Transformer(config), seed=3).eval()
    trace = run(model, Encoding.from_ids(range(6)))
    answer = AnswerSpan(2, 4, 0.0)
    following = distribution(trace["logits"][0].mT, PLAIN)
    outcome = Outcome(following, trace.encoding.pieces, "answer", answer=answer, read=trace.encoding)
    stacks = lanes(Checkpoint(model), Reading(trace.encoding))
    scores = {"attn": head_scores(trace)}
    header, arrays = unpack(view.walkthrough(trace, stacks, name="qa", outcome=outcome, scores=scores, notes={}))
    np.testing.assert_array_equal(arrays["logits"].data, trace["logits"][0].numpy())
    assert "logits" not in payload(traced())[1]
    assert header["answer"]["text"] == "#2 #3 #4" and header["count"] == 6
    start, end = following.probabilities
    assert header["answer"]["shares"] == [float(start[2]), float(end[4])]
