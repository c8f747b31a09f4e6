import itertools
from dataclasses import replace

import pytest
import torch

from engine.checkpoints import Checkpoint
from engine.generation.beam import BeamResult, Hypothesis, beam
from engine.generation.generate import generate
from engine.model.config import Infill, OutputHead, Positions
from engine.model.layers.cache import KVCache
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.twins import twins

SOURCE = [5, 9, 7, 4, 12, 6]
ENDS = (1, 8, 13, 21, 26)
KINDS = ("gpt2", "t5", "bart")


def reference(theirs, begun: int, **settings) -> tuple[list[list[int]], list[float]]:
    """What transformers finds: the ids written, and the scores."""
    read = {"input_ids": torch.tensor([SOURCE]), "attention_mask": torch.ones(1, len(SOURCE), dtype=torch.long)}
    found = theirs.generate(**read, do_sample=False, return_dict_in_generate=True, output_scores=True, **settings)
    written = [row[begun:] for row in found.sequences.tolist()]
    stops = [next((at for at, id in enumerate(row) if id in ENDS), len(row)) for row in written]
    return [row[: stop + 1] for row, stop in zip(written, stops, strict=True)], found.sequences_scores.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("early_stopping", [False, True, "never"])
@pytest.mark.parametrize("length_penalty", [1.0, 0.0, 2.0, -0.5])
def test_the_search_finds_what_transformers_finds(kind: str, early_stopping, length_penalty: float) -> None:
    for seed, (beams, n_best, longest) in enumerate([(4, 1, 12), (3, 3, 20), (2, 2, 7)]):
        checkpoint, theirs = twins(kind, seed, ends=ENDS if seed else ENDS[:1])
        settings = {"length_penalty": length_penalty, "early_stopping": early_stopping}
        mine = beam(checkpoint, SOURCE, beams, longest, n_best=n_best, **settings)
        begun = len(SOURCE) if kind == "gpt2" else 1
        ids, scores = reference(
            theirs, begun, num_beams=beams, num_return_sequences=n_best, max_new_tokens=longest, **settings
        )
        assert [list(one.ids) for one in mine.hypotheses] == ids
        assert [one.score for one in mine.hypotheses] == pytest.approx(scores, abs=1e-4)


def test_what_was_compared_ended_in_every_way() -> None:
    found = [
        beam(twins(kind, seed, ends=ENDS)[0], SOURCE, 3, 20, length_penalty=0.0) for kind in KINDS for seed in range(3)
    ]
    ended = [result.hypotheses[0].id in ENDS for result in found]
    assert any(ended) and not all(ended)
    assert {len(result.steps) < 20 for result in found} == {True, False}


def infilling() -> Checkpoint:
    config = tiny.config(attention={"mask": "prefix"})
    return Checkpoint(tiny.model(replace(config, infill=Infill(8, 9), positions=Positions(axes=2))), end_ids=(10,))


def pictures() -> Checkpoint:
    return Checkpoint(tiny.model(tiny.config(vocab_size=9, head=OutputHead(outputs=8), tied=False)))


def nats(result: BeamResult, one: Hypothesis) -> float:
    """The log-probability of its tokens by a run over all of them, without a cache."""
    begun, model = result.prompt.ids, result.prompt.checkpoint.model
    ids = [*begun, *one.ids]
    trace = run(model, result.prompt.source, target=ids) if result.prompt.source else run(model, ids)
    logs = trace["logits"][0, len(begun) - 1 : -1].log_softmax(-1)
    return float(logs.gather(1, torch.tensor(one.ids)[:, None]).sum())


@pytest.mark.parametrize(
    ("checkpoint", "prompt"),
    [
        (twins("gpt2", 1, ends=ENDS)[0], SOURCE),
        (twins("t5", 1, ends=ENDS)[0], SOURCE),
        (infilling(), [3, 8, 4]),
        (pictures(), [1, 2]),
    ],
    ids=["decoder", "encoder-decoder", "infill", "pictures"],
)
def test_every_hypothesis_continues_its_parent_and_counts_its_tokens(checkpoint: Checkpoint, prompt: list[int]) -> None:
    result = beam(checkpoint, prompt, 3, 8, n_best=3, early_stopping="never")
    before: tuple[Hypothesis, ...] = ()
    for step in result.steps:
        for one in (*step.kept, *step.finished, *step.pruned):
            assert len(one.ids) == step.index + 1
            assert one.ids[:-1] == (before[one.parent].ids if before else ())
            assert one.log_probability == pytest.approx(nats(result, one), abs=1e-4)
            assert one.score == pytest.approx(one.log_probability / len(one.ids))
        before = step.kept
    assert len(result.steps) > 2
    assert result.hypotheses == result.steps[-1].best


def test_a_step_sorts_its_candidates_into_kept_finished_and_pruned() -> None:
    checkpoint, _ = twins("gpt2", 1, ends=ENDS)
    steps = beam(checkpoint, SOURCE, 3, 20, early_stopping="never").steps
    best: list[Hypothesis] = []
    for step in steps[:-1]:
        candidates = [*step.kept, *step.finished, *step.pruned]
        assert len({one.ids for one in candidates}) == len(candidates) == 3 * (1 + len(ENDS))
        assert len(step.kept) == 3
        assert not any(one.id in ENDS for one in step.kept)
        assert all(one.id in ENDS for one in step.finished)
        going = [one.log_probability for one in candidates if one.id not in ENDS]
        assert [one.log_probability for one in step.kept] == sorted(going, reverse=True)[:3]
        best = sorted([*best, *step.finished], key=lambda one: one.score, reverse=True)[:3]
        assert list(step.best) == best
    assert best


def test_what_is_pruned_says_by_how_much_it_is_behind_the_last_that_was_taken() -> None:
    checkpoint, _ = twins("gpt2", 1, ends=ENDS)
    steps = beam(checkpoint, SOURCE, 3, 20, early_stopping="never").steps
    ends = 0
    for step in steps:
        logs = [one.log_probability for one in step.candidates]
        assert logs == sorted(logs, reverse=True)
        assert [one.rank for one in step.candidates] == list(range(1, len(logs) + 1))
        for one in step.pruned:
            taken = step.candidates[2] if one.stopped else step.kept[-1]
            assert step.margin(one) == taken.log_probability - one.log_probability >= 0
            ends += one.id in ENDS
        assert all(one.stopped is not None for one in step.finished)
        assert all(one.stopped is None for one in step.kept)
    assert ends
    reasons = {one.stopped.kind for step in steps for one in step.finished if one.stopped}
    assert "end" in reasons


def test_enough_beams_find_the_most_probable_of_all_texts() -> None:
    model = tiny.model(tiny.config(vocab_size=5))
    result = beam(Checkpoint(model), [1, 2], 25, 3, length_penalty=0.0, n_best=5)
    texts = torch.tensor(list(itertools.product(range(5), repeat=3)))
    logits = run(model, torch.cat([torch.tensor([[1, 2]]).expand(len(texts), 2), texts], dim=1))["logits"]
    totals = logits[:, 1:-1].log_softmax(-1).gather(2, texts[..., None]).sum((1, 2))
    ranked = totals.sort(descending=True)
    assert [one.ids for one in result.hypotheses] == [tuple(texts[i].tolist()) for i in ranked.indices[:5]]
    assert [one.score for one in result.hypotheses] == pytest.approx(ranked.values[:5].tolist(), abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_one_beam_that_stops_at_the_first_end_is_greedy(kind: str) -> None:
    for seed in range(3):
        checkpoint, _ = twins(kind, seed, ends=ENDS)
        (one,) = beam(checkpoint, SOURCE, 1, 20, early_stopping=True).hypotheses
        assert list(one.ids) == [step.id for step in generate(checkpoint, SOURCE, 20, greedy=True)]


def test_a_hypothesis_reads_as_generation_would_show_it() -> None:
    (span,) = beam(infilling(), [3, 8, 4], 2, 2, stop_at_end=False).hypotheses
    first, second = (id for id in span.ids)
    assert span.piece == f"#{second}"
    assert span.text == " ".join(str(id) for id in (3, first, second, 4) if id not in (9, 10))
    behind, _ = twins("t5", ends=())
    (target,) = beam(behind, SOURCE, 2, 3, target=[7]).hypotheses
    assert target.text == " ".join(map(str, (7, *target.ids)))


def test_no_room_is_no_text() -> None:
    assert beam(pictures(), [1], max_tokens=0).hypotheses == ()
    assert len(beam(Checkpoint(tiny.model()), [1] * 24).steps) == 1  # its token takes no place


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"beams": 0}, "beams must be at least 1, got 0"),
        ({"n_best": 5}, r"n_best must lie in 1..4, the number of beams, got 5"),
        ({"n_best": 0}, "got 0"),
        ({"early_stopping": "soon"}, "early stopping must be True, False or \"never\", got 'soon'"),
        ({"length_penalty": float("nan")}, "the length penalty must be a finite number, got nan"),
        ({"max_tokens": -1}, "max_tokens must be 0 or more, got -1"),
    ],
)
def test_a_setting_that_will_not_do_is_named(settings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        beam(Checkpoint(tiny.model()), [1], **settings)


ROWS = [2, 0, 0, 1]


@pytest.mark.parametrize("checkpoint", [Checkpoint(tiny.model()), infilling()], ids=["decoder", "infill"])
def test_a_reordered_cache_goes_on_with_the_texts_in_their_new_order(checkpoint: Checkpoint) -> None:
    model = checkpoint.model
    texts = torch.tensor([[3, 8, 1, 9, 5], [8, 2, 9, 1, 1], [7, 7, 8, 6, 9]])
    new = torch.tensor([[1], [2], [3], [4]])
    cache = KVCache(model.config, 3, 8, next(model.parameters()))
    model(texts, cache=cache)
    cache.reorder(torch.tensor(ROWS))
    whole = model(torch.cat([texts[ROWS], new], dim=1))[:, -1]
    torch.testing.assert_close(model(new, cache=cache)[:, -1], whole, atol=1e-5, rtol=0)


@pytest.mark.parametrize("sources", [1, 3])
def test_a_reordered_cache_takes_each_text_its_source_along(sources: int) -> None:
    model = twins("bart")[0].model
    read = torch.tensor([SOURCE, SOURCE[::-1], [9] * 6])[:sources]
    rows = [row % sources for row in ROWS]
    cache = KVCache(model.config, sources, 8, next(model.parameters()), source=6)
    begun = torch.tensor([[3, 4], [3, 5], [3, 6]])[:sources]
    model(read, target=begun, cache=cache)
    begun = begun[rows]
    for order in (rows, [3, 2, 1, 0]):  # first the batch grows, then it is only turned round
        if order is not rows:
            begun, rows = begun[order], [rows[i] for i in order]
        cache.reorder(torch.tensor(order))
        new = torch.tensor([[1], [2], [3], [4]])
        begun = torch.cat([begun, new], dim=1)
        whole = model(read[rows], target=begun)[:, -1]
        torch.testing.assert_close(model(read[:1], target=new, cache=cache)[:, -1], whole, atol=1e-5, rtol=0)
