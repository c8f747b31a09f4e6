from __future__ import annotations

import math
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
import transformers
from torch.nn import functional

from engine import run
from engine.analysis.surprise import Surprise, compare_with_guessing, surprise, windows
from engine.checkpoints import Checkpoint, load
from engine.generation.prompt import begin
from engine.runtime.library import checkpoint
from engine.scoring.examples import UNASKED
from engine.scoring.score import score
from engine.training.examples.infill import infill_examples
from engine.training.examples.infill import marks_of as gap_marks
from engine.training.examples.next_pixel import next_pixels
from engine.training.examples.next_token import next_tokens
from engine.training.examples.padding import rows_of
from engine.training.examples.sequence_to_sequence import Marks, teacher_forced

GAP = "Once upon a time, there was a boy named[gMASK]. Tom loved to paint."


def of(name: str, *prompt: object) -> tuple[Checkpoint, Surprise]:
    loaded = checkpoint(name)
    begun = begin(loaded, *prompt)  # type: ignore[arg-type]
    return loaded, surprise(loaded, begun.ids, begun.source)


def test_each_token_of_a_text_is_as_probable_as_a_run_over_what_stands_before_it_says() -> None:
    loaded, found = of("stories", "Once upon a time there was a girl")
    ids = [int(loaded.tokenizer.encode("Once upon a time there was a girl").ids[0]), *found.ids.tolist()]  # type: ignore[union-attr]
    for place in range(1, len(ids)):
        logits = run(loaded.model, ids[:place], "logits")["logits"][0, -1].double()
        own = logits.log_softmax(-1)
        assert found.log_probabilities[place - 1] == pytest.approx(float(own[ids[place]]), abs=1e-4)
        assert int(found.ranks[place - 1]) == 1 + int((logits > logits[ids[place]]).sum())
        assert float(found.entropies[place - 1]) == pytest.approx(float(-(own.exp() * own).sum()), abs=1e-4)
    assert found.perplexity == pytest.approx(float(torch.exp(-found.log_probabilities.mean())), rel=1e-5)


def test_the_sum_over_the_positions_is_the_loss_that_training_computes_times_their_number() -> None:
    for name, *prompt in (
        ("stories", "Once upon a time there was a girl"),
        ("translate-en-fr", "The cat sleeps.", "le chat dort."),
        ("infill", f"{GAP}[sop] Tom"),
        ("digits-imagegpt", [1, 2, 3, 0, 0, 0]),
    ):
        loaded, found = of(name, *prompt)
        (examples,) = found.examples
        asked = examples.targets[0] != UNASKED
        outputs = loaded.model(**examples.inputs)[0, asked]
        plain = functional.cross_entropy(outputs.double(), examples.targets[0, asked], reduction="sum")
        assert found.total == pytest.approx(float(plain), rel=1e-5), name
        trained = float(score(loaded.model.forward_with_pooled(**examples.inputs), examples)["loss"])
        assert found.training == pytest.approx(trained, rel=1e-5), name
        assert found.training * len(found.ids) == pytest.approx(found.total, rel=1e-5), name


def test_a_text_is_asked_for_as_the_objective_of_next_tokens_asks_for_it() -> None:
    _, found = of("induction", "b7Kxb7K")
    ids = [int(found.examples[0].ids[0, 0]), *found.ids.tolist()]
    wanted = next_tokens(torch.tensor([ids]))
    assert torch.equal(found.examples[0].ids, wanted.ids)
    assert torch.equal(found.examples[0].targets, wanted.targets)


def test_a_target_is_asked_for_as_teacher_forcing_asks_for_it() -> None:
    loaded, found = of("translate-en-fr", "The cat sleeps.", "le chat dort.")
    assert loaded.tokenizer is not None
    assert loaded.config.encoder is not None
    marks = Marks(loaded.config.encoder.start, loaded.end_ids[0], 0)
    source = torch.tensor(loaded.tokenizer.encode("The cat sleeps.").ids)
    target = torch.tensor(found.ids.tolist()[:-1])
    wanted = teacher_forced(rows_of([source]), rows_of([target]), marks)
    assert torch.equal(found.examples[0].ids, wanted.ids)
    assert torch.equal(found.examples[0].inputs["target"], wanted.inputs["target"])
    assert torch.equal(found.examples[0].targets, wanted.targets)


@pytest.mark.parametrize("spans", [[" Tom"], [" Tom", " paint"]])
def test_filled_gaps_are_asked_for_as_infilling_asks_for_them(spans: list[str]) -> None:
    loaded = checkpoint("infill")
    tokenizer = loaded.tokenizer
    assert tokenizer is not None
    marks = gap_marks(tokenizer)  # type: ignore[arg-type]
    text = "A boy named[gMASK] loved to[gMASK]." if len(spans) == 2 else GAP
    whole = tokenizer.encode(text + "".join(f"[sop]{span}" for span in spans)).ids
    begun = begin(loaded, list(whole))
    found = surprise(loaded, begun.ids)
    parts = cut(list(begun.ids), marks.mask, marks.start)
    wanted = infill_examples([[torch.tensor(part, dtype=torch.long) for part in parts]], marks)
    assert torch.equal(found.examples[0].ids, wanted.inputs["ids"])
    assert torch.equal(found.examples[0].targets, wanted.targets)


def cut(ids: list[int], mask: int, start: int) -> list[list[int]]:
    """Text, span, text, ..., text."""
    first = ids.index(start)
    texts, spans = split(ids[:first], mask), split(ids[first + 1 :], start)
    return [part for pair in zip(texts, [*spans, []], strict=True) for part in pair][:-1]


def split(ids: list[int], at: int) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    for id in ids:
        if id == at:
            parts.append([])
        else:
            parts[-1].append(id)
    return parts


def test_a_whole_picture_is_asked_for_as_the_objective_of_next_pixels_asks_for_it() -> None:
    loaded = checkpoint("digits-imagegpt")
    pixels = torch.arange(64) % loaded.config.outputs
    begun = begin(loaded, pixels)
    found = surprise(loaded, begun.ids)
    wanted = next_pixels(pixels[None], begun.ids[0])
    assert torch.equal(found.examples[0].ids, wanted.ids[:, :-1])  # behind the last pixel nothing is asked
    assert torch.equal(found.examples[0].targets, wanted.targets[:, :-1])


def test_an_end_that_was_written_is_not_asked_for_twice() -> None:
    loaded = checkpoint("translate-en-fr")
    begun = begin(loaded, "The cat sleeps.", "le chat dort.")
    ended = surprise(loaded, (*begun.ids, loaded.end_ids[0]), begun.source)
    assert torch.equal(ended.ids, surprise(loaded, begun.ids, begun.source).ids)


def test_a_single_token_has_no_surprise_and_that_is_said() -> None:
    loaded = checkpoint("induction")
    with pytest.raises(ValueError, match="make it longer"):
        surprise(loaded, begin(loaded, "b").ids)


@pytest.mark.parametrize(("context", "stride"), [(8, 4), (8, 3), (8, 7), (9, None), (2, None)])
def test_windows_ask_for_every_token_once_and_with_as_much_before_it_as_the_stride_allows(
    context: int, stride: int | None
) -> None:
    step = max(1, context // 2) if stride is None else stride
    for length in range(2, 60):
        found = windows(length, context, stride)
        assert [at for one in found for at in range(one.asked, one.end)] == list(range(1, length))
        assert all(one.end - one.begin <= context for one in found)
        assert [one.begin for one in found] == [i * step for i in range(len(found))]
        assert all(one.asked - one.begin >= context - step for one in found[1:])
        assert (len(found) == 1) == (length <= context)


def test_a_long_text_is_as_surprising_as_the_sliding_windows_of_transformers_guide_say() -> None:
    """The loop of "Perplexity of fixed-length models", in transformers' own model."""
    loaded, theirs = gpt2()
    context, stride = loaded.config.context, 5
    text = torch.randint(loaded.config.vocab_size, (1, 57), generator=torch.Generator().manual_seed(3))
    found = surprise(loaded, text[0].tolist(), stride=stride)
    total, count, before = 0.0, 0, 0
    for begin_at in range(0, text.shape[1], stride):
        end = min(begin_at + context, text.shape[1])
        labels = text[:, begin_at:end].clone()
        labels[:, : -(end - before)] = -100
        asked = int((labels[:, 1:] != -100).sum())
        total += float(theirs(text[:, begin_at:end], labels=labels).loss) * asked
        count, before = count + asked, end
        if end == text.shape[1]:
            break
    assert count == len(found.ids) == 56
    assert found.total == pytest.approx(total, rel=1e-5)
    assert found.training == pytest.approx(total / count, rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(total / count), rel=1e-5)


def test_each_window_says_of_its_tokens_what_transformers_says_of_them() -> None:
    loaded, theirs = gpt2()
    text = torch.randint(loaded.config.vocab_size, (40,), generator=torch.Generator().manual_seed(4)).tolist()
    found = surprise(loaded, text)
    assert len(found.windows) > 3
    assert torch.equal(found.ids, torch.tensor(text[1:]))
    assert found.at.tolist() == list(range(39))
    own = torch.cat(
        [
            theirs(torch.tensor([text[one.begin : one.end]])).logits[0, one.asked - one.begin - 1 : -1].double()
            for one in found.windows
        ]
    ).log_softmax(-1)
    wanted = own.gather(-1, found.ids[:, None])
    torch.testing.assert_close(found.log_probabilities.double(), wanted[:, 0], atol=1e-4, rtol=0)
    assert torch.equal(found.ranks, (own > wanted).sum(-1) + 1)
    torch.testing.assert_close(found.entropies.double(), -(own.exp() * own).sum(-1), atol=1e-4, rtol=0)
    torch.testing.assert_close(found.top_probabilities.double(), own.exp().topk(10).values, atol=1e-5, rtol=0)
    for one, examples in zip(found.windows, found.examples, strict=True):
        assert examples.ids[0].tolist() == text[one.begin : one.end - 1]


def test_a_text_that_fits_is_one_window_whatever_the_stride() -> None:
    loaded = checkpoint("induction")
    ids = list(begin(loaded, "b7Kxb7K").ids)
    found = surprise(loaded, ids, stride=3)
    assert len(found.windows) == 1
    assert torch.equal(found.log_probabilities, surprise(loaded, ids).log_probabilities)


def test_a_stride_that_leaves_a_token_nothing_to_be_predicted_from_is_refused() -> None:
    loaded, _ = gpt2()
    for stride in (0, loaded.config.context):
        with pytest.raises(ValueError, match=rf"1\.\.{loaded.config.context - 1}"):
            surprise(loaded, [1] * 40, stride=stride)


def test_a_target_and_a_source_longer_than_the_model_reads_are_refused() -> None:
    loaded = checkpoint("translate-en-fr")
    begun = begin(loaded, "The cat sleeps.", "le chat dort.")
    for ids, source in ((begun.ids * 20, begun.source), (begun.ids, begun.source * 20)):
        with pytest.raises(ValueError, match="at most 48 tokens"):
            surprise(loaded, ids, source)


def gpt2() -> tuple[Checkpoint, Any]:
    """The same random weights in Loupe and in transformers, with a context of 12."""
    config = transformers.GPT2Config(
        vocab_size=37, n_positions=12, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(config).eval().requires_grad_(False)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    with TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        return load(folder), theirs


EXAMPLES = tomllib.loads(Path("assets/texts/examples.toml").read_text())


@pytest.mark.parametrize("name", [name for name, example in EXAMPLES.items() if "text" in example])
def test_no_model_is_said_to_know_nothing_like_its_own_example(name: str) -> None:
    loaded = checkpoint(name)
    ids = loaded.tokenizer.encode(EXAMPLES[name]["text"]).ids[: loaded.config.context]  # type: ignore[union-attr]
    if loaded.config.encoder is None:
        found = compare_with_guessing(loaded, ids, run(loaded.model, ids, "logits")["logits"][0])
        assert found is None or found[0] < found[1]


def test_of_a_model_tuned_to_answer_only_the_answer_counts() -> None:
    loaded = checkpoint("instruct")
    asked, right, wrong = "le chat noir dort", "the black cat sleeps", "we us it me he"
    measured = {}
    for text in (asked, f"{asked} [toEnglish] {right}", f"{asked} [toEnglish] {wrong}"):
        ids = loaded.tokenizer.encode(text).ids  # type: ignore[union-attr]
        measured[text] = compare_with_guessing(loaded, ids, run(loaded.model, ids, "logits")["logits"][0])
    none, known, strange = measured.values()
    assert none is None and known is not None and known[0] < 0.1 and strange is not None and strange[0] > strange[1]
