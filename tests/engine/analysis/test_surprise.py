from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from engine import run
from engine.analysis.surprise import Surprise, surprise, training_loss
from engine.checkpoints import Checkpoint
from engine.library import checkpoint
from engine.prompt import begin
from engine.training.objectives import UNASKED
from engine.training.objectives.infill import infilled
from engine.training.objectives.infill import marks_of as gap_marks
from engine.training.objectives.next_pixel import next_pixels
from engine.training.objectives.next_token import next_tokens
from engine.training.objectives.padded import rows_of
from engine.training.objectives.sequence_to_sequence import Marks, teacher_forced

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
        asked = found.examples.targets[0] != UNASKED
        outputs = loaded.model(**found.examples.inputs)[0, asked]
        plain = functional.cross_entropy(outputs.double(), found.examples.targets[0, asked], reduction="sum")
        assert found.total == pytest.approx(float(plain), rel=1e-5), name
        assert training_loss(loaded, found.examples) * len(found.ids) == pytest.approx(found.total, rel=1e-5), name


def test_a_text_is_asked_for_as_the_objective_of_next_tokens_asks_for_it() -> None:
    _, found = of("induction", "b7Kxb7K")
    ids = [int(found.examples.ids[0, 0]), *found.ids.tolist()]
    wanted = next_tokens(torch.tensor([ids]))
    assert torch.equal(found.examples.ids, wanted.ids)
    assert torch.equal(found.examples.targets, wanted.targets)


def test_a_target_is_asked_for_as_teacher_forcing_asks_for_it() -> None:
    loaded, found = of("translate-en-fr", "The cat sleeps.", "le chat dort.")
    assert loaded.tokenizer is not None
    assert loaded.config.encoder is not None
    marks = Marks(loaded.config.encoder.start, loaded.end_ids[0], 0)
    source = torch.tensor(loaded.tokenizer.encode("The cat sleeps.").ids)
    target = torch.tensor(found.ids.tolist()[:-1])
    wanted = teacher_forced(rows_of([source]), rows_of([target]), marks)
    assert torch.equal(found.examples.ids, wanted.ids)
    assert torch.equal(found.examples.inputs["target"], wanted.inputs["target"])
    assert torch.equal(found.examples.targets, wanted.targets)


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
    wanted = infilled([[torch.tensor(part, dtype=torch.long) for part in parts]], marks)
    assert torch.equal(found.examples.ids, wanted.inputs["ids"])
    assert torch.equal(found.examples.targets, wanted.targets)


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
    assert torch.equal(found.examples.ids, wanted.ids[:, :-1])  # behind the last pixel nothing is asked
    assert torch.equal(found.examples.targets, wanted.targets[:, :-1])


def test_an_end_that_was_written_is_not_asked_for_twice() -> None:
    loaded = checkpoint("translate-en-fr")
    begun = begin(loaded, "The cat sleeps.", "le chat dort.")
    ended = surprise(loaded, (*begun.ids, loaded.end_ids[0]), begun.source)
    assert torch.equal(ended.ids, surprise(loaded, begun.ids, begun.source).ids)


def test_a_single_token_has_no_surprise_and_that_is_said() -> None:
    loaded = checkpoint("induction")
    with pytest.raises(ValueError, match="make it longer"):
        surprise(loaded, begin(loaded, "b").ids)


def test_a_text_longer_than_the_model_reads_is_refused() -> None:
    loaded = checkpoint("induction")
    with pytest.raises(ValueError, match="at most"):
        surprise(loaded, [1] * (loaded.config.context + 2))
