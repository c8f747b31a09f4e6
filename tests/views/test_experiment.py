"""The panel's payload: edits in words, what can be edited, and what forms send back."""

import json
from collections.abc import Sequence

import pytest
import torch

from engine.checkpoints import Checkpoint
from engine.edits import (
    AttentionTemperature,
    ChangeToken,
    DrawMask,
    DrawPattern,
    DropPositions,
    Edit,
    PaintMask,
    PaintPattern,
    Patch,
    PresetMask,
    Replace,
    Scale,
    SetPattern,
    ShiftPositions,
    SilenceHeads,
    Source,
    Steer,
    SwapPositions,
    edit_from_dict,
)
from engine.edits.experiment import Experiment
from engine.inputs.readers import Reading, pictures, read_infill, read_picture, read_text, read_translation
from engine.runtime import library
from engine.runtime.run import run
from pages.controls.what_if.kind import in_words, kinds
from tests.views.test_effects import read_by
from views.core.lanes import lanes
from views.core.payload import unpack
from views.core.run_context import HeadOfRun, RunContext
from views.what_if.edit_sources import to_form
from views.what_if.edit_words import Terms
from views.what_if.experiment import Editable, EditableValue, editable, from_form, panel, spell
from views.what_if.paint_ground import painted_on

TEXT = 'Max gave the red ball to Anna. "Thank you," said'
OTHER = "Anna gave the red ball to Max."


def stories() -> tuple[Checkpoint, Reading]:
    checkpoint = library.checkpoint("stories")
    return checkpoint, read_text(checkpoint, TEXT, 64)


def ids(text: str) -> list[int]:
    return list(library.checkpoint("stories").tokenizer.encode(text).ids)


def offered(checkpoint: Checkpoint, reading: Reading) -> Editable:
    plain = run(checkpoint.model, reading.read, target=reading.target)
    return editable(checkpoint, plain, lanes(checkpoint, reading))


def form_of(edit: Edit, checkpoint: Checkpoint, reading: Reading) -> dict:
    return to_form(edit, offered(checkpoint, reading).terms)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (SilenceHeads(2, [1]), "block 3, head 2: silenced"),
        (SilenceHeads(2, [0, 1, 2], "uniform"), "block 3, heads 1, 2 and 3: attend evenly"),
        (AttentionTemperature(2.0), "attention temperature 2, every block"),
        (AttentionTemperature(0.5, 1, [3]), "attention temperature 0.5, block 2, head 4"),
        (PresetMask("full"), "full mask, every block"),
        (PresetMask("prefix", 4, layer=0), "prefix mask of 4 tokens, block 1"),
        (PaintMask(cells=[[5, 2]], rows=[4], layer=0), "mask painted: the row of “·red” and 1 cell, block 1"),
        (DrawMask(0, [[True]]), "a drawn mask, block 1"),
        (SetPattern(1, "previous", [0]), "block 2, head 1: attend to the previous token alone"),
        (SetPattern(1, "position", [0], position=4), "block 2, head 1: attend to “·red” alone"),
        (PaintPattern(1, [[4, 2]], [0.25], [0]), "block 2, head 1: “·red” looks at “·gave” with 25 %"),
        (PaintPattern(1, [[4, 2], [5, 2]], [0.25, 1.0]), "block 2: 2 weights painted, rows of “·red” and “·ball”"),
        (DrawPattern(1, [[1.0]]), "a drawn pattern, block 2"),
        (Scale("blocks.1.mlp.out", 0.0), "block 2, MLP: taken out"),
        (Scale("blocks.*.mlp.out", 0.5, {"d_model": [0, 1, 2]}), "every block, mlp.out: × 0.5, d_model 0, 1 and 2"),
        (Replace("embed.tokens", 0.0, {"pos": 4}), "embed.tokens: replaced by 0, at “·red”"),
        (
            Patch("blocks.1.resid_mid", Source(ids(OTHER)), {"pos": 4}, "blocks.0.resid_mid"),
            f"block 2, resid_mid, at “·red”: as block 1, resid_mid in “{OTHER}”",
        ),
        (Scale("blocks.1.skip1", 0.5), "block 2, residual past attention: × 0.5"),
        (Replace("blocks.0.attn.z", 1.0, {"head": 2}), "block 1, attn.z: replaced by 1, head 3"),
        (SwapPositions(0, 7), "“M” and “·Anna” swap positions"),
        (DropPositions(), "every token without position"),
        (ShiftPositions(2, [4]), "“·red” stands 2 positions further on"),
        (ChangeToken(4, ids("the ball")[-1]), "“·red” becomes “ball”"),
        (
            Patch("blocks.1.resid_post", Source(ids(OTHER)), {"pos": 4}),
            f"block 2, resid_post, at “·red”: as in “{OTHER}”",
        ),
        (
            Patch("blocks.3.attn.pattern", None, {"head": 1}, "blocks.0.attn.pattern", {"head": 2}),
            "block 4, head 2: as block 1, head 3 attends",
        ),
        (
            Steer("blocks.1.resid_pre", Source(ids("happy")), Source(ids("sad")), 4.0),
            "block 2, resid_pre: + 4 × (“happy” − “sad”)",
        ),
    ],
)
def test_an_edit_is_told_in_words_with_the_tokens_it_names(edit: Edit, words: str) -> None:
    said = in_words(edit, offered(*stories()).terms)
    (entry,) = unpack(panel(Experiment().add(edit), [said], {}, {}, {}))[0]["entries"]
    assert entry == {"words": words, "on": True, "sentence": ""}


def test_a_token_that_stands_several_times_has_its_number_and_one_that_is_not_there_is_told_by_it() -> None:
    checkpoint = library.checkpoint("stories")
    terms = Terms(lanes(checkpoint, read_text(checkpoint, "the cat and the dog", 64)), (), str)
    pieces = terms.lanes[0].pieces
    again = [i for i, piece in enumerate(pieces) if pieces.count(piece) > 1]
    assert all(terms.token(i) == f"“{pieces[i]}” ({i})" for i in again)
    assert in_words(SwapPositions(0, 90), terms).startswith("“") and "token 90" in in_words(SwapPositions(0, 90), terms)


def test_a_form_shows_texts_for_ids_and_what_it_sends_back_is_the_same_edit() -> None:
    checkpoint, reading = stories()
    edits = [
        Patch("blocks.1.resid_post", Source(ids(OTHER)), {"pos": [4]}),
        Steer("blocks.1.resid_pre", Source(ids("happy")), Source(ids("sad")), 4.0, "mean", {"pos": [2]}),
        PaintMask(cells=[[5, 2]], layer=None),
    ]
    forms = [form_of(edit, checkpoint, reading) for edit in edits]
    assert forms[0]["source"]["text"] == OTHER
    assert [from_form(form, checkpoint, reading) for form in forms] == edits


def patched(text: str, hook: str = "blocks.0.resid_post") -> dict:
    return {"edit": "Patch", "hook": hook, "source": {"text": text}, "at": {}}


def test_a_typed_text_becomes_its_tokens() -> None:
    checkpoint, reading = stories()
    made = from_form(patched(OTHER), checkpoint, reading)
    assert made == Patch("blocks.0.resid_post", Source(ids(OTHER)))
    kind, word = kinds()["token"], ChangeToken(4, ids("the ball")[-1], 0.5)
    values = kind.read(form_of(word, checkpoint, reading), offered(checkpoint, reading).terms)
    assert values["token"]["text"] == "ball" and kind.write(values, checkpoint) == word.to_dict()
    typed = kind.write({"token": {"text": "Anna"}}, checkpoint)["token"]
    assert checkpoint.tokenizer.piece(typed) == "·Anna"  # with its space, because so it is one token
    with pytest.raises(ValueError, match="Expected one token"):
        kind.write({"token": {"text": "zebraic"}}, checkpoint)
    with pytest.raises(ValueError, match="Expected a text"):
        from_form(patched(" "), checkpoint, reading)


def test_the_other_text_of_two_stacks_is_read_by_the_encoder_and_the_decoder_reads_the_same() -> None:
    checkpoint = library.checkpoint("translate-en-fr")
    reading = read_translation(checkpoint, "The dog sees a small cat.", "", 24)
    made = from_form(patched("A cat.", "decoder.blocks.0.resid_post"), checkpoint, reading)
    assert made.source.target == list(reading.target.ids)
    assert tuple(made.source.ids) == checkpoint.tokenizer.encode("A cat.").ids
    infill = library.checkpoint("infill")
    gap = from_form(patched("A girl [gMASK]."), infill, read_infill(infill, "A girl named [gMASK].", "", 64))
    assert gap.source.ids[-1] == infill.config.infill.start


def test_what_can_be_edited_is_what_the_model_has() -> None:
    model = offered(*stories())
    (stack,) = model.stacks
    assert stack.parts[1]["MLP"] == "blocks.1.mlp.out" and len(stack.parts) == 4
    z = EditableValue("attn.z", "blocks.0.attn.z", [("pos", 14), ("head", 4), ("d_head", 32)], [0, 1, 2, 3])
    assert z in stack.inner and "attn.temperature" not in parts_of(stack.inner)  # which no text decides
    outer = ["embed.tokens", "embed.positions", "final_norm.scale", "final_norm.out", "logits"]
    assert parts_of(stack.outer) == outer
    assert stack.positions and stack.tokens and not stack.turned and not model.pictures
    vit = library.checkpoint("digits-vit")
    picture = offered(vit, read_picture(vit, pictures()[0][0]))
    assert picture.pictures == len(pictures()[0]) and not picture.stacks[0].tokens
    assert EditableValue("logits", "logits", [("class", 10)]) in picture.stacks[0].outer
    french = library.checkpoint("translate-en-fr")
    two = offered(french, read_translation(french, "The dog sees a small cat.", "", 24))
    assert [one.stack for one in two.stacks] == ["encoder", "decoder"]
    assert [(one.stack, one.cross) for one in two.attentions] == [
        ("encoder", False),
        ("decoder", False),
        ("decoder", True),
    ]
    encoder, decoder = two.stacks
    crossed = next(one for one in decoder.inner if one.part == "cross_attn.k")
    assert crossed.axes == [("key", len(encoder.pieces)), ("head", 6), ("d_head", 32)]
    around = ["embed.tokens", "embed.positions", "final_norm.scale", "final_norm.out"]
    assert [one.hook for one in encoder.outer] == [f"encoder.{part}" for part in around]
    assert [one.hook for one in decoder.outer] == [*(f"decoder.{part}" for part in around), "logits"]
    assert two.attentions[2].keys == two.stacks[0].pieces


def parts_of(values: Sequence[EditableValue]) -> list[str]:
    return [one.part for one in values]


MODELS = ["stories", "tales-bert", "translate-en-fr", "infill", "digits-vit", "digits-imagegpt"]


@pytest.mark.parametrize("name", MODELS)
def test_every_value_that_is_offered_can_be_patched_and_no_value_of_the_run_is_missing(name: str) -> None:
    checkpoint, reading = read_by(name)
    plain = run(checkpoint.model, reading.read, target=reading.target)
    hooks = []
    for stack in offered(checkpoint, reading).stacks:
        hooks += [one.hook for one in stack.outer]
        blocks = [f"{stack.prefix}blocks.{layer}." for layer in range(stack.layers)]
        hooks += [f"{block}{part}" for block in blocks for part in parts_of(stack.inner)]
    assert sorted(hooks) == sorted(hook for hook in plain if not hook.endswith("temperature"))
    for hook in hooks[:: max(1, len(hooks) // 8)]:  # what this run held puts nothing else there
        patched = run(checkpoint.model, reading.read, "logits", [Patch(hook)], target=reading.target)
        torch.testing.assert_close(patched["logits"], plain["logits"], atol=2e-4, rtol=1e-4)


def test_another_picture_is_read_as_far_as_this_one() -> None:
    checkpoint, reading = read_by("digits-imagegpt")
    made = from_form(patched("") | {"source": {"picture": 7}}, checkpoint, reading)
    expected = checkpoint.processor.ids(pictures()[0][7]).flatten().tolist()
    assert made.source.ids == [checkpoint.processor.start_id, *expected][: len(reading.read)]
    other = run(checkpoint.model, made.source.ids)["blocks.0.resid_post"]
    edited = run(checkpoint.model, reading.read, edits=[made])["blocks.0.resid_post"]
    torch.testing.assert_close(edited, other, atol=1e-5, rtol=1e-5)
    terms = Terms(lanes(checkpoint, reading), checkpoint.model.hook_names, str)
    assert in_words(made, terms) == "block 1, resid_post: as in picture 7"
    with pytest.raises(ValueError, match="the number of a picture from 0 to"):
        from_form(patched("") | {"source": {"picture": -1}}, checkpoint, reading)


@pytest.mark.parametrize("given", [{"picture": 7}, {"picture": None, "name": "your own picture"}])
def test_a_picture_is_patched_from_another_one_or_from_one_that_was_shown(given: dict) -> None:
    checkpoint = library.checkpoint("digits-vit")
    reading = read_picture(checkpoint, pictures()[0][7])
    made = from_form(patched("") | {"source": given}, checkpoint, reading)
    assert made.source.name == given.get("name", "picture 7")
    other = run(checkpoint.model, reading.read)["logits"]
    here = read_picture(checkpoint, pictures()[0][3]).read
    edited = run(checkpoint.model, here, edits=[made])["logits"]
    torch.testing.assert_close(edited, other, atol=1e-5, rtol=1e-5)
    assert torch.equal(torch.tensor(made.source.pixels), reading.read[0])  # to the last bit
    assert edit_from_dict(json.loads(json.dumps(made.to_dict()))) == made


def test_a_form_is_not_sent_the_pixels_of_a_picture_and_keeps_them() -> None:
    checkpoint = library.checkpoint("digits-vit")
    reading = read_picture(checkpoint, pictures()[0][3])
    made = from_form(patched("") | {"source": {"picture": 7}}, checkpoint, reading)
    form = form_of(made, checkpoint, reading)
    assert form["source"]["name"] == "picture 7" and "pixels" not in form["source"]
    assert from_form(form, checkpoint, reading, made) == made
    with pytest.raises(ValueError, match="choose it again"):
        from_form(form, checkpoint, reading)
    with pytest.raises(ValueError, match="this one reads texts"):
        from_form(patched("") | {"source": {"picture": 7}}, *stories())


def test_of_a_long_text_every_value_is_offered_in_its_own_size_though_only_the_first_token_was_run() -> None:
    for name in ("stories", "translate-en-fr", "tales-bert", "infill"):
        checkpoint, reading = read_by(name)
        stacks = lanes(checkpoint, reading)
        target = reading.target and reading.target.first(1)
        first = run(checkpoint.model, reading.read.first(1), target=target)
        assert editable(checkpoint, first, stacks).stacks == offered(checkpoint, reading).stacks


def test_every_spelling_survives_and_ids_are_numbers_without_a_tokenizer() -> None:
    checkpoint, _ = stories()
    assert spell(checkpoint, ids(OTHER)) == OTHER


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tales-bert", "it was a [MASK] day."),
        ("tales-bert", "it began [MASK] [MASK] now"),
        ("infill", "A girl named [gMASK]. She ran."),
        ("infill", "[gMASK] ran."),
    ],
)
def test_a_form_shows_the_masks_and_gaps_of_another_text_as_they_were_typed(name: str, text: str) -> None:
    checkpoint, reading = read_by(name)
    made = from_form(patched(text), checkpoint, reading)
    assert form_of(made, checkpoint, reading)["source"]["text"] == text
    assert from_form(patched(text), checkpoint, reading) == made


def test_two_texts_that_always_end_alike_are_told_apart_by_the_mean() -> None:
    ends = {name: offered(*read_by(name)).closed for name in MODELS}
    assert ends == {name: name in ("tales-bert", "infill") for name in MODELS}


def test_the_mask_to_paint_on_is_the_runs_own() -> None:
    checkpoint, reading = stories()
    trace = run(checkpoint.model, reading.read, edits=[PaintMask(cells=[[5, 9]], layer=1, heads=[2])])
    context = RunContext("stories", checkpoint, trace, lanes(checkpoint, reading))
    _, arrays = unpack(painted_on(context, HeadOfRun("", "attn", 1, 2)))
    expected = torch.ones(14, 14).tril().bool()
    expected[5, 9] = True
    assert torch.equal(torch.tensor(arrays["mask"].data), expected)
    assert torch.equal(torch.tensor(arrays["pattern"].data), trace["blocks.1.attn.pattern"][0, 2])
    for place in (("", "attn", 9, 0), ("", "cross_attn", 0, 0), ("", "attn", 0, 4), ("", "attn", 0, -1)):
        with pytest.raises(ValueError, match="no such head"):
            painted_on(context, HeadOfRun(*place))
