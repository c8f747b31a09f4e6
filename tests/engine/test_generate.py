import pytest
import torch

from engine.checkpoints import Checkpoint
from engine.generate import generate
from engine.run import run
from engine.sampling import Sampling, distribution
from engine.tokenizers import Encoding
from engine.tokenizers.word import train
from tests.engine import tiny


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


@pytest.mark.parametrize(("length", "expected"), [(1, 23), (20, 4), (23, 1), (24, 0)])
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
