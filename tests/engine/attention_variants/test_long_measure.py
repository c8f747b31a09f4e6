"""What is measured: real vectors of a model, points as they come, patterns that keep what they say."""

from dataclasses import replace

import pytest
import torch

from engine import run
from engine.attention_variants import measure, shared
from engine.attention_variants.compare import searches
from engine.attention_variants.cost import Cost
from engine.attention_variants.kept_share import keep, patterns
from engine.attention_variants.material import Material, long_text, material
from engine.attention_variants.measure import KINDS, Point, Setup, cost, grid, point
from engine.attention_variants.peak import PeakBytes
from engine.runtime import library


@pytest.fixture(scope="module")
def given() -> Material:
    return material(library.checkpoint("stories"), 600)


def test_states_are_the_models_own_where_one_window_holds_them(given: Material) -> None:
    checkpoint = library.checkpoint("stories")
    ids = long_text(checkpoint, 600)
    trace = run(checkpoint.model, ids[None, :256])
    torch.testing.assert_close(given.states[:192], trace["blocks.3.norm1.out"][0, :192], atol=1e-5, rtol=1e-5)
    q = given.heads.queries(trace["blocks.3.norm1.out"][0]).transpose(0, 1)
    torch.testing.assert_close(q, trace["blocks.3.attn.q"][0], atol=1e-4, rtol=1e-4)
    end = checkpoint.tokenizer.end_id
    assert len(ids) == 600 and (ids == end).sum() >= 2


def test_every_kind_gives_a_point_at_every_length(given: Material) -> None:
    points = list(measure.measure(given, [64, 128], Setup(k=4)))
    assert [(p.kind, p.length) for p in points] == [(kind, n) for n in (64, 128) for kind in KINDS]
    assert all(p.seconds > 0 and p.bytes > 0 for p in points)
    assert [p.kind for p in points if p.recall is not None] == ["quantized", "quantized"]
    assert all(0.5 < p.recall <= 1 for p in points if p.recall is not None)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_measured_are_those_of_the_formula(kind: str, given: Material) -> None:
    found = point(kind, given.first(512), Setup())
    assert 0.95 * found.cost.bytes < found.bytes < 1.25 * found.cost.bytes


def test_a_kind_ends_where_it_asks_for_too_much_memory_or_time(given: Material, monkeypatch) -> None:
    asked: list[tuple[str, int]] = []

    def slow(kind: str, part: Material, setup: Setup) -> Point:
        asked.append((kind, len(part.states)))
        seconds = 100.0 if kind == "fused" else 0.0
        return Point(kind, len(part.states), seconds, 1, cost(kind, len(part.states), 4, 32, 128, setup))

    monkeypatch.setattr(measure, "MOST_BYTES", 10**6)  # explicit attention of 4 heads asks for 32 n^2
    list(measure.measure(given, [50, 100, 200], Setup(), ["explicit", "fused", "window"], 50, slow))
    first = [("explicit", 50), ("fused", 50), ("window", 50)]
    assert asked == [*first, ("explicit", 100), ("window", 100), ("window", 200)]


@pytest.mark.parametrize(("length", "expected"), [(1, (1, 1)), (128, (8, 16)), (256, (16, 16)), (17, (1, 17))])
def test_a_grid_is_as_square_as_it_can_be(length: int, expected: tuple[int, int]) -> None:
    assert grid(length) == expected


def test_only_what_a_kind_depends_on_is_measured_again() -> None:
    plain, wider = Setup(), Setup(window=64)
    assert [kind for kind in KINDS if plain.part_for(kind) != wider.part_for(kind)] == ["window"]
    more = Setup(k=8)
    assert [kind for kind in KINDS if plain.part_for(kind) != more.part_for(kind)] == ["nearest", "quantized"]


def test_an_unknown_kind_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="must be one of explicit, .*, got 'sparse'"):
        cost("sparse", 8, 1, 8, 8, Setup())


def test_a_part_of_a_pattern_is_the_softmax_over_that_part() -> None:
    scores = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    allowed = torch.rand(6, 6, generator=torch.Generator().manual_seed(1)) < 0.5
    allowed[2] = False
    pattern = scores.masked_fill(~causal, -torch.inf).softmax(-1)
    part = keep(pattern, allowed)
    expected = scores.masked_fill(~(causal & allowed), -torch.inf).softmax(-1).nan_to_num(0)
    torch.testing.assert_close(part.pattern, expected, atol=1e-6, rtol=1e-5)
    assert part.mass == pytest.approx((pattern * allowed).sum().item() / 6)
    assert part.cells == pytest.approx((causal & allowed).sum().item() / 21)


def test_patterns_are_a_real_heads_and_the_nearest_keep_most() -> None:
    checkpoint = library.checkpoint("stories")
    kept = patterns(checkpoint, 96, 2, 1, Setup(k=8))
    trace = run(checkpoint.model, long_text(checkpoint, 96)[None])
    full = trace["blocks.2.attn.pattern"][0, 1]
    torch.testing.assert_close(kept["full"].pattern, full)
    largest = torch.zeros(96, 96, dtype=torch.bool).scatter_(1, full.topk(8).indices, True).tril()
    assert torch.equal(kept["nearest"].allowed, largest)
    assert kept["nearest"].mass == max(part.mass for name, part in kept.items() if part.cells <= kept["nearest"].cells)
    assert (kept["quantized"].allowed.sum(-1) <= 8).all()
    assert all(torch.equal(part.allowed, part.allowed.tril()) for part in kept.values())


def test_searches_are_compared_on_the_same_queries(given: Material) -> None:
    setup = Setup(k=8)
    exact, codes, again = searches(given, setup)
    assert exact.recall == {8: 1.0, 16: 1.0, 32: 1.0}
    assert all(codes.recall[k] <= again.recall[k] <= 1 for k in codes.recall)
    assert exact.cost == Cost(600 * 128, exact.cost.bytes)
    assert codes.bytes < exact.bytes < again.bytes
    assert 0 < codes.cost.lookups <= 600 * setup.quantizer.subspaces


def test_a_point_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(kind: str, part: Material, setup: Setup) -> Point:
        calls.append(kind)
        return Point(kind, len(part.states), 1.0, 1, cost(kind, len(part.states), 4, 32, 128, setup))

    monkeypatch.setattr(shared, "_points", {})
    monkeypatch.setattr(shared, "point", counted)
    setup = Setup()
    assert shared.known_points("stories", 256, setup) == []
    first = list(shared.measure_up_to("stories", 256, setup))
    assert list(shared.measure_up_to("stories", 256, replace(setup, window=64))) != first
    assert calls == [*KINDS, "window"]
    assert shared.known_points("stories", 256, setup) == first
    left = shared.expected_seconds("stories", 1024, setup)
    assert {length for _, length in left} == {512, 1024}
    assert left["fused", 1024] == pytest.approx(16)


def test_peak_bytes_are_those_alive_at_once() -> None:
    given = torch.zeros(1000)
    with PeakBytes() as seen:
        first = given + 1
        view = first.view(10, 100)
        second = view * 2
        del first, view
        third = second[:5] + given.view(10, 100)[:5]
    assert seen.peak == 8000
    assert seen.live == 6000
    assert third.nbytes == 2000
