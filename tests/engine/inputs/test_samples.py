"""What a pattern is averaged over: texts that the model can read, of the length asked for, the same ones every time."""

import pytest
from torch import Tensor

from engine import load
from engine.inputs.readers import kind
from engine.inputs.samples import samples
from engine.runtime.run import run

NAMES = (
    "stories", "tales-bert", "translate-en-fr", "infill", "induction", "digits-vit", "digits-imagegpt", "bilingual",
    "instruct", "in-context", "long-stories", "t5-spans", "t5-tasks", "t5-answers",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_model_is_given_what_it_reads_within_the_limit(name: str) -> None:
    checkpoint = load(name)
    for read in samples(checkpoint, 5, 20):
        run(checkpoint.model, read.read, "*pattern", target=read.target)  # raises for what it cannot read
        if not isinstance(read.read, Tensor):
            assert 2 <= len(read.read) <= 20
    first, again = (list(samples(checkpoint, 5, 20)) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        same = one.read.equal(other.read) if isinstance(one.read, Tensor) else one.read == other.read
        assert same and one.target == other.target


def test_samples_differ_and_are_stories_where_english_is_read() -> None:
    texts = {read.read.text for read in samples(load("stories"), 6, 40)}
    assert len(texts) == 6 and all(len(text.split()) > 10 for text in texts)


def test_a_model_that_reads_no_english_is_given_its_own_tokens_repeated() -> None:
    checkpoint = load("induction")
    assert kind(checkpoint) == "text" and checkpoint.tokenizer is not None
    unknown = checkpoint.tokenizer.special_tokens["<unk>"]
    for read in samples(checkpoint, 4, 32):
        assert unknown not in read.read.ids and read.read.ids[:8] == read.read.ids[8:16]
