from dataclasses import replace

import pytest
import torch

from engine.checkpoints import Checkpoint
from engine.edits import Edit, PresetMask, SilenceHeads
from engine.generation.generate import Step, generate
from engine.generation.stopping import Stop
from engine.inputs.processors import PalettePixels
from engine.model.config import Infill, ModelConfig, OutputHead
from engine.runtime.run import run
from engine.tokenizers.trainers import train
from tests.engine import tiny
from tests.engine.twins import twins

SOURCE = [5, 9, 7, 4, 12, 6]
SAMPLED = {"temperature": 2.0, "top_p": 0.9, "repetition_penalty": 1.2, "seed": 3}


def written(*arguments, **settings) -> list[Step]:
    return list(generate(*arguments, **settings))


def pictures() -> Checkpoint:
    config = ModelConfig(6, context=10, d_model=8, layers=1, attention=tiny.Attention(2), head=OutputHead(outputs=5))
    return Checkpoint(tiny.model(config), processor=PalettePixels.grey((3, 3), 5))


def infilling() -> Checkpoint:
    config = replace(tiny.config(attention={"mask": "prefix"}), infill=Infill(mask=8, start=9))
    return Checkpoint(tiny.model(config), end_ids=(10,))


def decoder() -> Checkpoint:
    return Checkpoint(tiny.model())


def behind_an_encoder() -> Checkpoint:
    return twins("bart", ends=())[0]


MODELS = {"decoder": decoder, "two stacks": behind_an_encoder, "infill": infilling, "pictures": pictures}
PROMPTS = {"decoder": [3, 1], "two stacks": SOURCE, "infill": [3, 8, 4], "pictures": [0, 1]}


@pytest.mark.parametrize("kind", MODELS)
def test_only_the_last_step_says_what_stopped_it(kind: str) -> None:
    steps = written(MODELS[kind](), PROMPTS[kind], 5, stop_at_end=False, **SAMPLED)
    assert [step.stopped for step in steps] == [None] * 4 + [Stop("max_tokens", count=5)]


def test_a_full_context_and_a_whole_picture_are_told_from_a_number_of_tokens() -> None:
    assert written(decoder(), [1] * 20, 50)[-1].stopped == Stop("context", count=24)
    assert written(decoder(), [1] * 20, 5)[-1].stopped == Stop("context", count=24)
    assert written(decoder(), [1] * 20, 4)[-1].stopped == Stop("max_tokens", count=4)
    assert written(pictures(), [0, 1])[-1].stopped == Stop("picture", count=9)
    assert written(pictures(), [0, 1], 4)[-1].stopped == Stop("max_tokens", count=4)


def test_an_end_token_is_named_and_comes_before_every_other_reason() -> None:
    tokenizer = train("word", ["a b c d e f g h i j k"], special_tokens=())
    model = tiny.model(tiny.config(vocab_size=tokenizer.vocab_size))
    free = written(Checkpoint(model, tokenizer), "a b", 6, **SAMPLED)
    end = free[3].id
    first = [step.id for step in free].index(end)
    settings = SAMPLED | {"stop_strings": tokenizer.piece(end)}
    steps = written(Checkpoint(model, tokenizer, end_ids=(end,)), "a b", first + 1, **settings)
    assert len(steps) == first + 1
    assert steps[-1].stopped == Stop("end", tokenizer.piece(end), end)


@pytest.mark.parametrize(
    ("stop", "sentence"),
    [
        (Stop("end", "</s>", 1), "The end token </s> ended it."),
        (Stop("string", "\n"), r"The stop string '\n' ended it."),
        (Stop("max_tokens", count=1), "Reached the 1-token limit."),
        (Stop("max_tokens", count=1200), "Reached the 1,200-token limit."),
        (Stop("context", count=1024), "It stopped because the model's context of 1,024 tokens is full."),
        (Stop("picture", count=64), "The picture is complete, with all its 64 pixels."),
    ],
)
def test_every_reason_is_a_sentence(stop: Stop, sentence: str) -> None:
    assert stop.sentence == sentence


@pytest.fixture(scope="module")
def lettered() -> Checkpoint:
    tokenizer = train("byte", ["abc"], special_tokens=())
    return Checkpoint(tiny.model(tiny.config(vocab_size=tokenizer.vocab_size)), tokenizer)


def test_a_stop_string_may_begin_in_the_prompt_and_end_in_the_middle_of_a_character(lettered: Checkpoint) -> None:
    at = lettered.tokenizer.encode
    (step,) = written(lettered, "ab", 1, greedy=True)

    def stopped(before: str, after: bytes, string: str) -> Stop | None:
        pieces = [f"<{byte:02X}>" if byte > 127 else chr(byte) for byte in after]
        ids = [*at(before).ids, *map(lettered.tokenizer.pieces.index, pieces)]
        ending = next(generate(lettered, [0], 5, stop_strings=[string])).stopping
        return ending.check(ids[:-1], ids[-1], 0)

    assert step.stopped == Stop("max_tokens", count=1)
    assert stopped("ab", b"c", "bc") == Stop("string", "bc")
    assert stopped("abc", b"d", "bc") is None
    assert stopped("caf", "é".encode(), "é") == Stop("string", "é")
    assert stopped("caf", "é".encode()[:1], "<C3>") is None


def test_stop_strings_that_cannot_be_are_named(lettered: Checkpoint) -> None:
    with pytest.raises(ValueError, match="at least one character, got an empty one"):
        written(lettered, "a", stop_strings=["b", ""])
    with pytest.raises(ValueError, match="this checkpoint has no tokenizer"):
        written(decoder(), [1], stop_strings="x")


@pytest.mark.parametrize("kind", MODELS)
def test_what_was_begun_goes_on_as_if_it_had_been_drawn(kind: str) -> None:
    checkpoint, prompt = MODELS[kind](), PROMPTS[kind]
    free = written(checkpoint, prompt, 7, stop_at_end=False, **SAMPLED)
    ids = [step.id for step in free]
    for begun in range(8):
        steps = written(checkpoint, prompt, 7, begun=ids[:begun], stop_at_end=False, **SAMPLED)
        assert [step.id for step in steps] == ids[begun:]
        for step, old in zip(steps, free[begun:], strict=True):
            assert (step.index, step.before, step.stopped) == (old.index, old.before, old.stopped)
            torch.testing.assert_close(step.logits, old.logits, atol=1e-5, rtol=0)


def test_what_was_begun_goes_on_under_edits_as_if_it_had_been_drawn() -> None:
    settings = SAMPLED | {"edits": [SilenceHeads(layer=1, heads=[0, 2])]}
    ids = [step.id for step in written(decoder(), [3, 1], 9, **settings)]
    assert ids != [step.id for step in written(decoder(), [3, 1], 9, **SAMPLED)]
    assert [step.id for step in written(decoder(), [3, 1], 9, begun=ids[:4], **settings)] == ids[4:]


def test_a_branch_is_a_step_with_another_token_and_what_follows_it() -> None:
    free = written(decoder(), [3, 1], 7, greedy=True)
    other = int(free[2].logits.topk(2).indices[1])
    branch = replace(free[2], id=other)
    assert (branch.rank, branch.stopped) == (2, None)
    assert branch.distribution.logits is free[2].logits
    begun = [*(step.id for step in free[:2]), other]
    (first, *rest) = written(decoder(), [3, 1], 7, begun=begun, greedy=True)
    assert first.before == (3, 1, *begun)
    assert rest[-1].index == 6


def test_nothing_follows_where_what_was_begun_has_ended() -> None:
    ending = Checkpoint(tiny.model(), end_ids=(7,))
    assert written(ending, [3, 1], 7, begun=[2, 7]) == []
    assert written(ending, [3, 1], 7, begun=[2, 7], stop_at_end=False) != []
    assert written(ending, [3, 1], 3, begun=[2, 2, 2]) == []
    with pytest.raises(ValueError, match=r"token ids must lie in 0..10, got 11"):
        written(ending, [3, 1], 7, begun=[11])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty_alpha": 1.5, "top_k": 4}, r"alpha must lie in 0 \(none\)..1, got 1.5"),
        ({"penalty_alpha": 0.6}, "chooses among the top-k tokens, 2 or more, got 0"),
        ({"penalty_alpha": 0.6, "top_k": 4, "temperature": 0.5}, "draws nothing, so temperature, top-p"),
        ({"penalty_alpha": 0.6, "top_k": 4, "min_p": 0.5}, "draws nothing, so temperature, top-p"),
    ],
)
def test_a_contrastive_setting_that_will_not_do_is_named(settings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        written(decoder(), [1], **settings)


@pytest.mark.parametrize("kind", MODELS)
def test_contrastive_search_goes_on_from_what_was_begun(kind: str) -> None:
    settings = {"penalty_alpha": 0.8, "top_k": 3, "stop_at_end": False}
    free = written(MODELS[kind](), PROMPTS[kind], 6, **settings)
    ids = [step.id for step in free]
    steps = written(MODELS[kind](), PROMPTS[kind], 6, begun=ids[:3], **settings)
    assert [step.id for step in steps] == ids[3:]
    scores, old = ([one.score for one in step.candidates] for step in (steps[0], free[3]))
    assert scores == pytest.approx(old, abs=1e-5)


@pytest.mark.parametrize(
    "edit", [SilenceHeads(layer=1, heads=[0]), PresetMask("full")], ids=["behind a cache", "all read again"]
)
def test_contrastive_search_reads_every_candidate_under_edits(edit: Edit) -> None:
    checkpoint = decoder()
    steps = written(checkpoint, [3, 1, 4], 5, edits=[edit], penalty_alpha=0.8, top_k=3)
    for step in steps:
        for one in step.candidates:
            trace = run(checkpoint.model, [*step.before, one.id], edits=step.edits)
            *context, last = trace["final_norm.out"][0]
            nearest = max(float(torch.cosine_similarity(last, one, dim=0)) for one in context)
            assert one.penalty == pytest.approx(nearest, abs=1e-5)
        shares = run(checkpoint.model, list(step.before), edits=step.edits)["logits"][0, -1].softmax(-1)
        for one in step.candidates:
            assert one.confidence == pytest.approx(float(shares[one.id]), abs=1e-5)


def test_contrastive_search_ends_before_a_pixel_whose_candidates_have_no_place_to_be_read() -> None:
    checkpoint = Checkpoint(tiny.model(tiny.config(vocab_size=9, context=16, head=OutputHead(outputs=8), tied=False)))
    settings = {"penalty_alpha": 0.8, "top_k": 3}
    *before, last = written(checkpoint, [7], **settings)  # behind the start token and a pixel
    assert (last.index, last.stopped) == (13, Stop("candidates", "pixel", count=16))
    assert last.stopped and "before the last pixel" in last.stopped.sentence and "16 tokens" in last.stopped.sentence
    assert written(checkpoint, [7], 14, **settings)[-1].stopped == Stop("max_tokens", count=14)
    ids = [step.id for step in (*before, last)]
    with pytest.raises(ValueError, match="no place left for that; write the last pixel with another method"):
        written(checkpoint, [7], begun=ids, **settings)
    assert written(checkpoint, [7], begun=[*ids, 1], **settings) == []
    (pixel,) = written(checkpoint, [7], begun=ids, greedy=True)
    assert pixel.stopped == Stop("picture", count=16)


def test_contrastive_search_ends_before_a_token_whose_candidates_have_no_place_to_be_read() -> None:
    settings = {"penalty_alpha": 0.8, "top_k": 3}
    steps = written(decoder(), [1] * 20, 50, **settings)
    assert [step.stopped for step in steps] == [None] * 3 + [Stop("candidates", "token", count=24)]
    assert "before the last token: contrastive search reads" in steps[-1].stopped.sentence
    ids = [step.id for step in steps]
    with pytest.raises(ValueError, match="no place left for that; write the last token with another method"):
        written(decoder(), [1] * 20, begun=ids, **settings)
    (last,) = written(decoder(), [1] * 20, begun=ids, greedy=True)
    assert last.stopped == Stop("context", count=24)
