"""What a model says of what it has read, against plain torch on the logits of its trace."""

import pytest
import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.generation.sampling import Sampling
from engine.inputs.readers import Reading, read_text
from engine.model.config import MLP, Attention, Embedding, ModelConfig, OutputHead
from engine.model.transformer import Transformer, initialise
from engine.runtime import library
from engine.runtime.run import run
from tests.views.test_effects import read_by
from views.walkthrough.outcome import Outcome, first_row, outcome_of

PLAIN = Sampling()
TEXT = "The dog was sad"


def said(checkpoint: Checkpoint, reading: Reading, sampling: Sampling = PLAIN, **more: str | int) -> tuple:
    """The outcome, the row to read first, and the logits of the run."""
    trace = run(checkpoint.model, reading.read, target=reading.target)
    outcome = outcome_of(checkpoint, trace, reading, sampling, **more)  # type: ignore[arg-type]
    return outcome, first_row(checkpoint, reading, outcome, pixels=64), trace["logits"][0]


def small(head: OutputHead, mask: str = "full", labels: tuple[str, ...] = (), name: str = "tales-bert") -> Checkpoint:
    """A random model with the tokenizer of a shipped one."""
    tokenizer = library.checkpoint(name).tokenizer
    config = ModelConfig(tokenizer.vocab_size, 64, 16, 1, Attention(2, mask=mask), MLP(16), head=head)  # type: ignore[arg-type]
    return Checkpoint(initialise(Transformer(config), 0).eval(), tokenizer=tokenizer, labels=labels)


def assert_says(found: Outcome, logits: Tensor, reads: str, noun: str, link: str = "softmax") -> None:
    assert (found.reads, found.noun, found.link) == (reads, noun, link)
    if link == "softmax":
        torch.testing.assert_close(found.following.probabilities, torch.softmax(logits, -1), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "reads", "noun"),
    [
        ("stories", "next", "tokens"),
        ("translate-en-fr", "next", "tokens"),
        ("infill", "next", "tokens"),
        ("tales-bert", "here", "tokens"),
        ("digits-vit", "class", "classes"),
        ("digits-imagegpt", "next", "colours"),
    ],
)
def test_probabilities_are_the_softmax_of_the_heads_logits(name: str, reads: str, noun: str) -> None:
    checkpoint, reading = read_by(name)
    found, _, logits = said(checkpoint, reading)
    assert_says(found, logits[None] if reads == "class" else logits, reads, noun)
    assert (found.sampled is not None) == (name == "stories")  # the others wrote their ends themselves
    assert found.answer is None and found.follows is None


def test_the_row_read_first_is_what_the_input_asks_for() -> None:
    rows = {name: said(*read_by(name))[1] for name in ("stories", "tales-bert", "digits-vit", "digits-imagegpt")}
    assert rows.pop("tales-bert") == read_by("tales-bert")[1].read.pieces.index("[MASK]")
    assert rows == {"stories": None, "digits-vit": 0, "digits-imagegpt": 20}
    checkpoint, reading = read_by("infill")
    assert said(checkpoint, reading)[1] == reading.read.ids.index(checkpoint.model.config.infill.start)
    checkpoint, reading = read_by("digits-imagegpt")
    assert first_row(checkpoint, reading, None, pixels=8) == 7


def test_the_token_drawn_is_the_seeds_and_one_that_the_cuts_kept() -> None:
    checkpoint, reading = read_by("stories")
    drawn = {said(checkpoint, reading, Sampling(2.0, top_k=5), seed=seed)[0].sampled for seed in range(20)}
    logits = said(checkpoint, reading)[2]
    assert 1 < len(drawn) <= 5 and drawn <= set(logits[-1].topk(5).indices.tolist())
    assert said(checkpoint, reading, Sampling(0.0))[0].sampled == int(logits[-1].argmax())


def test_a_classifier_names_its_classes_and_is_read_where_it_reads() -> None:
    checkpoint = small(OutputHead("sequence", 3, read="last"), "causal", ("sad", "glad", "neither"), name="stories")
    reading = read_text(checkpoint, TEXT, 64)
    found, row, logits = said(checkpoint, reading)
    assert_says(found, logits[None], "class", "classes")
    assert found.names == ("sad", "glad", "neither") and row == len(reading.read) - 1


def test_labels_that_do_not_exclude_each_other_have_a_probability_each() -> None:
    checkpoint = small(OutputHead("sequence", 3, link="logistic"))
    found, row, logits = said(checkpoint, read_text(checkpoint, TEXT, 64))
    assert_says(found, logits, "class", "classes", "logistic")
    torch.testing.assert_close(found.following.probabilities, logits[None].sigmoid())
    assert found.names is None


def test_one_number_for_the_whole_is_no_probability() -> None:
    checkpoint = small(OutputHead("sequence", 1), labels=("LABEL_0",))
    found, row, logits = said(checkpoint, read_text(checkpoint, TEXT, 64))
    assert_says(found, logits, "class", "classes", "identity")
    assert found.names == ("score",) and row == 0
    assert torch.equal(found.following.logits, logits[None])


def test_one_class_at_every_token_is_a_probability_of_its_own() -> None:
    checkpoint = small(OutputHead("token", 1))
    found, row, logits = said(checkpoint, read_text(checkpoint, TEXT, 64), Sampling(0.5))
    assert_says(found, logits, "here", "classes", "logistic")
    torch.testing.assert_close(found.following.probabilities, (logits / 0.5).sigmoid())
    assert found.names == ("replaced",) and row == int(logits[:, 0].argmax())


def test_classes_of_every_token_are_read_first_behind_the_mark() -> None:
    checkpoint = small(OutputHead("token", 3))
    found, row, logits = said(checkpoint, read_text(checkpoint, TEXT, 64))
    assert_says(found, logits, "here", "classes")
    assert row == 1


def test_an_answer_stands_in_the_context_and_its_ends_are_distributions_over_positions() -> None:
    checkpoint = small(OutputHead("span"))
    reading = read_text(checkpoint, "Who was sad?", 64, TEXT)
    found, row, logits = said(checkpoint, reading, text="Who was sad?", second=TEXT)
    assert_says(found, logits.mT, "answer", "positions")
    assert found.names == tuple(reading.read.pieces) and found.read == reading.read
    assert found.answer.start == row > reading.read.pieces.index("[SEP]")
    alone = read_text(checkpoint, TEXT, 64)
    assert said(checkpoint, alone, text=TEXT)[0].answer.start > 0


def test_of_two_texts_an_encoder_says_whether_the_second_follows() -> None:
    heads = OutputHead("masked", bias=True, pooler=True, next_sentence=True)
    tokenizer = library.checkpoint("tales-bert").tokenizer
    two = Embedding(segments=2)
    config = ModelConfig(tokenizer.vocab_size, 64, 16, 1, Attention(2, mask="full"), MLP(16), embedding=two, head=heads)
    checkpoint = Checkpoint(initialise(Transformer(config), 0).eval(), tokenizer=tokenizer)
    reading = read_text(checkpoint, TEXT, 64, "He ran")
    expected = run(checkpoint.model, reading.read)["next_sentence"][0].softmax(-1)[0]
    found, row, logits = said(checkpoint, reading, text=TEXT, second="He ran")
    assert found.follows == pytest.approx(float(expected)) and found.sampled is None and row is None
    assert said(checkpoint, read_text(checkpoint, TEXT, 64), text=TEXT)[0].follows is None


def test_a_model_without_a_head_says_nothing() -> None:
    checkpoint = small(OutputHead("none"))
    reading = read_text(checkpoint, TEXT, 64)
    assert outcome_of(checkpoint, run(checkpoint.model, reading.read), reading, PLAIN) is None
    assert first_row(checkpoint, reading, None, pixels=1) is None
