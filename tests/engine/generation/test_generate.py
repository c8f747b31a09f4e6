from dataclasses import replace

import pytest
import torch

from engine.checkpoints import Checkpoint
from engine.generation.generate import generate
from engine.generation.sampling import Sampling, distribution
from engine.inputs.processors import PalettePixels
from engine.model.config import Attention, Encoder, Infill, ModelConfig, OutputHead, Positions
from engine.runtime.run import run
from engine.tokenizers import Encoding
from engine.tokenizers.kinds.word import train
from tests.engine import tiny
from tests.engine.twins import START, twins

SOURCE = [5, 9, 7, 4, 12, 6]
ENDS = (1, 8, 13, 21)
GAP, SPAN, SPAN_END = 8, 9, 10


def ids(checkpoint: Checkpoint, *arguments, **settings) -> list[int]:
    return [step.id for step in generate(checkpoint, *arguments, **settings)]


@pytest.fixture
def checkpoint() -> Checkpoint:
    return Checkpoint(tiny.model())


@pytest.mark.parametrize("positions", tiny.POSITIONS)
def test_each_step_shows_the_logits_of_a_run_over_everything_before(positions: str) -> None:
    checkpoint = Checkpoint(tiny.model(tiny.config(positions, attention={"kv_heads": 2})))
    for index, step in enumerate(generate(checkpoint, [3, 1, 4], 8, greedy=True)):
        whole = run(checkpoint.model, list(step.before))["logits"][0, -1]
        torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=0)
        assert step.index == index
        assert step.id == whole.argmax()
        assert step.before[:3] == (3, 1, 4)


def test_the_same_seed_draws_the_same_tokens_and_another_seed_others(checkpoint: Checkpoint) -> None:
    first = ids(checkpoint, [1, 2], 15, temperature=2.0, seed=7)
    assert ids(checkpoint, [1, 2], 15, temperature=2.0, seed=7) == first
    assert ids(checkpoint, [1, 2], 15, temperature=2.0, seed=8) != first


def test_sampled_tokens_come_from_what_the_cuts_left(checkpoint: Checkpoint) -> None:
    steps = list(generate(checkpoint, [1, 2], 20, temperature=3.0, top_k=3, top_p=0.9, seed=1))
    assert len(steps) == 20
    for step in steps:
        expected = distribution(step.logits, Sampling(3.0, 3, 0.9)).probabilities
        assert torch.equal(step.distribution.probabilities, expected)
        assert expected[step.id] > 0
    assert len({step.id for step in steps}) > 1


def test_greedy_is_temperature_zero(checkpoint: Checkpoint) -> None:
    assert ids(checkpoint, [1, 2], 9, greedy=True) == ids(checkpoint, [1, 2], 9, temperature=0.0)


@pytest.mark.parametrize(("length", "expected"), [(1, 24), (20, 5), (23, 2), (24, 1)])
def test_generation_ends_where_the_context_is_full(length: int, expected: int, checkpoint: Checkpoint) -> None:
    assert len(ids(checkpoint, [1] * length, 1000)) == expected


def test_generation_ends_at_an_end_token_unless_told_not_to() -> None:
    free = ids(Checkpoint(tiny.model()), [3, 1, 4], 12, temperature=2.0)
    end = free[3]
    stopping = Checkpoint(tiny.model(), end_ids=(end,))
    assert ids(stopping, [3, 1, 4], 12, temperature=2.0) == free[: free.index(end) + 1]
    assert ids(stopping, [3, 1, 4], 12, temperature=2.0, stop_at_end=False) == free


def test_text_goes_in_and_comes_out_through_the_tokenizer() -> None:
    tokenizer = train(["the cat sat on the mat"], special_tokens=())
    model = tiny.model(tiny.config(vocab_size=tokenizer.vocab_size))
    checkpoint = Checkpoint(model, tokenizer)
    steps = list(generate(checkpoint, "the cat", 3, greedy=True))
    encoding = tokenizer.encode("the cat")
    assert steps[0].before == tuple(encoding.ids)
    assert [step.piece for step in steps] == [tokenizer.piece(step.id) for step in steps]
    assert steps[-1].text == tokenizer.decode([*steps[-1].before, steps[-1].id])
    for prompt in (encoding, list(encoding.ids), torch.tensor(encoding.ids)):
        assert ids(checkpoint, prompt, 3, greedy=True) == [step.id for step in steps]


def test_without_a_tokenizer_steps_are_shown_as_ids(checkpoint: Checkpoint) -> None:
    (step,) = generate(checkpoint, [3, 1], 1, greedy=True)
    assert step.piece == f"#{step.id}"
    assert step.text == f"3 1 {step.id}"


@pytest.mark.parametrize(
    ("prompt", "settings", "message"),
    [
        ("hello", {}, "has no tokenizer, so its prompt must be a list of token ids, got text"),
        ([], {}, "at least one token, got none"),
        ([[1], [2]], {}, "must get one text, got 2"),
        ([11], {}, r"token ids must lie in 0..10, got 11"),
        ([1] * 25, {}, "at most 24 tokens, got 25"),
        ([1.5], {}, "whole numbers"),
        (torch.ones(2), {}, "whole numbers"),
        ([1], {"top_p": 2.0}, "top-p must be"),
        ([1], {"max_tokens": -1}, "max_tokens must be 0 or more, got -1"),
    ],
)
def test_a_prompt_or_setting_that_will_not_do_is_named(prompt, settings, message: str, checkpoint: Checkpoint) -> None:
    with pytest.raises(ValueError, match=message):
        ids(checkpoint, prompt, **settings)


def test_a_model_that_reads_both_ways_cannot_continue_a_text() -> None:
    checkpoint = Checkpoint(tiny.model(tiny.config(attention={"mask": "full"})))
    with pytest.raises(ValueError, match="in both directions, so it cannot continue one"):
        ids(checkpoint, [1])


def test_an_encoding_without_text_will_do(checkpoint: Checkpoint) -> None:
    encoding = Encoding("", (3, 1), ("a", "b"), ((0, 0), (0, 0)), (False, False), (0, 0))
    assert ids(checkpoint, encoding, 4, greedy=True) == ids(checkpoint, [3, 1], 4, greedy=True)


@pytest.mark.parametrize("kind", ["gpt2", "t5", "bart"])
@pytest.mark.parametrize("seed", range(4))
def test_greedy_writes_what_transformers_writes(kind: str, seed: int) -> None:
    checkpoint, theirs = twins(kind, seed, ends=ENDS)
    read = {"input_ids": torch.tensor([SOURCE]), "attention_mask": torch.ones(1, len(SOURCE), dtype=torch.long)}
    written = theirs.generate(**read, do_sample=False, num_beams=1, max_new_tokens=25)[0].tolist()
    begun = SOURCE if kind == "gpt2" else [START]
    assert [*begun, *ids(checkpoint, SOURCE, 25, greedy=True)] == written


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_a_begun_target_is_continued_as_transformers_continues_it(kind: str) -> None:
    checkpoint, theirs = twins(kind, seed=1, ends=())
    begun = [START, 7, 7, 20]
    theirs.generation_config.eos_token_id = None
    written = theirs.generate(
        torch.tensor([SOURCE]), decoder_input_ids=torch.tensor([begun]), do_sample=False, max_new_tokens=12
    )
    for target in (begun, begun[1:]):
        steps = list(generate(checkpoint, SOURCE, 12, target=target, greedy=True))
        assert steps[0].before == tuple(begun)
        assert [*begun, *(step.id for step in steps)] == written[0].tolist()


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_behind_an_encoder_each_step_shows_the_logits_of_a_run_over_source_and_target(kind: str) -> None:
    checkpoint, _ = twins(kind, seed=2)
    steps = list(generate(checkpoint, SOURCE, 10, temperature=1.5, stop_at_end=False))
    assert len(steps) == 10
    for step in steps:
        assert step.source == tuple(SOURCE)
        whole = run(checkpoint.model, SOURCE, target=list(step.before))["logits"][0, -1]
        torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=0)
    assert steps[-1].before == (START, *(step.id for step in steps[:-1]))
    assert steps[-1].text == " ".join(str(step.id) for step in steps)


def test_the_encoder_and_its_keys_are_computed_once() -> None:
    checkpoint, _ = twins("t5")
    seen: list[str] = []
    watched = {"encoder": checkpoint.model.encoder.blocks[0], "keys": checkpoint.model.decoder.blocks[1].cross_attn.k}
    for name, part in watched.items():
        part.register_forward_hook(lambda *_, name=name: seen.append(name))
    assert len(ids(checkpoint, SOURCE, 8, stop_at_end=False)) == 8
    assert sorted(seen) == ["encoder", "keys"]


def test_a_target_is_shown_without_special_tokens() -> None:
    tokenizer = train(["a b c", "x y z"], special_tokens=("<start>", "</s>"))
    start, end, x, y = (tokenizer.encode(piece).ids[0] for piece in ("<start>", "</s>", "x", "y"))
    encoder = Encoder(1, tiny.Attention(heads=4, mask="full"), tiny.MLP(d_mlp=20), start=start)
    model = tiny.model(tiny.config(vocab_size=tokenizer.vocab_size, encoder=encoder))
    checkpoint = Checkpoint(model, tokenizer, end_ids=(end,))
    (step,) = generate(checkpoint, "a b", 1, target="x y", greedy=True)
    assert step.source == tuple(tokenizer.encode("a b").ids)
    assert step.before == (start, x, y)
    assert replace(step, id=x).text == "x y x"
    assert replace(step, id=end).text == "x y"
    assert next(generate(checkpoint, "a b")).before == (start,)


def infilling(positions: str = "learned", axes: int = 2) -> Checkpoint:
    config = replace(tiny.config(attention={"mask": "prefix"}), infill=Infill(mask=GAP, start=SPAN))
    return Checkpoint(tiny.model(replace(config, positions=Positions(positions, axes=axes))), end_ids=(SPAN_END,))  # type: ignore[arg-type]


@pytest.mark.parametrize(("positions", "axes"), [("learned", 2), ("rotary", 2), ("rotary", 1)])
def test_a_span_is_written_as_a_run_over_everything_before_predicts_it(positions: str, axes: int) -> None:
    checkpoint = infilling(positions, axes)
    steps = list(generate(checkpoint, [3, GAP, 4], 12, temperature=1.5, stop_at_end=False))
    assert len(steps) == 12
    assert steps[0].before == (3, GAP, 4, SPAN)
    for step in steps:
        whole = run(checkpoint.model, list(step.before))["logits"][0, -1]
        torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=0)
    assert ids(checkpoint, [3, GAP, 4, SPAN], 6, seed=1) == ids(checkpoint, [3, GAP, 4], 6, seed=1)


def filled(*before: int) -> str:
    """The text of a step that follows `before`, the last id of which it wrote."""
    step = next(generate(infilling(), before[:-1], 1))
    return replace(step, id=before[-1]).text


def test_a_gap_is_shown_filled_and_one_without_a_span_marked() -> None:
    assert filled(3, GAP, 4, SPAN, 5) == "3 5 4"
    assert filled(3, GAP, 4, SPAN, 5, 6) == "3 5 6 4"
    assert filled(3, GAP, 4, SPAN, 5, SPAN_END) == "3 5 4"
    assert filled(3, GAP, 4, SPAN, SPAN_END) == "3 4"
    assert filled(GAP, 4, GAP, SPAN, 5) == f"5 4 {GAP}"
    assert filled(GAP, 4, GAP, SPAN, 5, SPAN_END, SPAN, 6, 7) == "5 4 6 7"
    assert filled(GAP, 4, SPAN, 5, SPAN, 6) == "5 6 4"
    assert filled(3, SPAN, 5) == "3 5"


def test_a_span_ends_at_its_end_token_and_a_text_needs_a_gap() -> None:
    tokenizer = train(["the cat sat on the mat"], special_tokens=("[gMASK]", "[sop]", "[eop]"))
    mask, start, end = (tokenizer.encode(mark).ids[0] for mark in ("[gMASK]", "[sop]", "[eop]"))
    config = tiny.config(vocab_size=tokenizer.vocab_size, attention={"mask": "prefix"})
    checkpoint = Checkpoint(tiny.model(replace(config, infill=Infill(mask, start))), tokenizer, end_ids=(end,))
    steps = list(generate(checkpoint, "the[gMASK]sat", 15, temperature=3.0, seed=3))
    assert steps[0].before == (*tokenizer.encode("the[gMASK]sat").ids, start)
    written = [step.id for step in steps]
    assert written[-1] == end and end not in written[:-1] and len(written) > 2
    span = [id for id in written[:-1] if id != start]
    the, sat = tokenizer.encode("the sat").ids
    assert steps[-1].text == tokenizer.decode([the, *span, sat])
    with pytest.raises(ValueError, match=r"the prompt has none; put \[gMASK\] where text is missing"):
        ids(checkpoint, "the cat sat")


def pictures(side: int = 4) -> Checkpoint:
    """8 colours, and the start token 8."""
    return Checkpoint(tiny.model(tiny.config(vocab_size=9, context=side**2, head=OutputHead(outputs=8), tied=False)))


def test_a_picture_is_finished_pixel_by_pixel() -> None:
    checkpoint = pictures()
    steps = list(generate(checkpoint, [7, 0, 3], temperature=2.0))
    pixels = [7, 0, 3, *(step.id for step in steps)]
    assert len(pixels) == 16
    assert max(pixels) < 8
    assert steps[-1].text == " ".join(map(str, pixels))
    for step in steps:
        whole = run(checkpoint.model, list(step.before))["logits"][0, -1]
        torch.testing.assert_close(step.logits, whole, atol=1e-4, rtol=0)
    assert steps[0].before == (8, 7, 0, 3)
    assert ids(checkpoint, [8, 7, 0, 3], temperature=2.0) == pixels[3:]
    assert ids(checkpoint, [7, 0, 3], 5, temperature=2.0) == pixels[3:8]


@pytest.mark.parametrize("prompt", [[], [8], torch.tensor([], dtype=torch.long)])
def test_a_picture_begins_with_no_pixel_at_all(prompt) -> None:
    assert len(ids(pictures(), prompt)) == 16


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"attention": {"mask": "full"}, "head": OutputHead("masked")},
            "in both directions, so it cannot continue one",
        ),
        ({"head": OutputHead("sequence", classes=2)}, 'has the head "sequence", which writes no text'),
        (
            {"attention": {"mask": "full"}, "head": OutputHead("token", classes=2)},
            'has the head "token", which writes no text',
        ),
        ({"head": OutputHead("none")}, 'has the head "none", which writes no text'),
    ],
)
def test_what_writes_no_text_says_so(changes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ids(Checkpoint(tiny.model(tiny.config(**changes))), [1])


def test_a_target_for_one_stack_and_a_source_too_long_are_named(checkpoint: Checkpoint) -> None:
    with pytest.raises(ValueError, match="a target is for an encoder-decoder"):
        ids(checkpoint, [1], target=[2])
    behind, _ = twins("bart")
    with pytest.raises(ValueError, match="at most 40 tokens, got 41"):
        ids(behind, [5] * 41)
    with pytest.raises(ValueError, match="at least one token, got none"):
        ids(behind, [])
    with pytest.raises(ValueError, match="no tokenizer"):
        ids(behind, [5], target="x")
    assert len(ids(behind, [5] * 40, 1000, stop_at_end=False)) == 40


def test_fifty_tokens_where_nobody_says_how_many() -> None:
    checkpoint = Checkpoint(tiny.model(tiny.config("rotary", context=99)))
    assert len(ids(checkpoint, [1, 2])) == 50


def test_a_picture_is_full_with_its_last_pixel_whatever_the_context_holds() -> None:
    config = ModelConfig(6, context=10, d_model=8, layers=1, attention=Attention(2), head=OutputHead(outputs=5))
    checkpoint = Checkpoint(tiny.model(config), processor=PalettePixels.grey((3, 3), 5))
    steps = list(generate(checkpoint, [5, 0, 1], seed=1))
    assert len(steps) == 9 - 2
