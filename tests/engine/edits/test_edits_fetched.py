"""Edits that name another run or token, against that run and that token."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
import torch

from engine.checkpoints import load
from engine.edits import ChangeToken, Edit, Patch, Scale, SilenceHeads, Source, Steer, edit_from_dict
from engine.model.config import Embedding, Encoder
from engine.model.layers.cache import KVCache
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.edits.test_edits import SOURCES, TARGETS, TWO_STACKS

OTHER = [7, 7, 0, 10, 8, 2, 2, 1]
SILENT = SilenceHeads(0, [1])


def edited(*edits: Edit):
    return run(tiny.model(), tiny.IDS, edits=edits)


def of(ids: list[int], *edits: Edit):
    return run(tiny.model(), ids, edits=edits)


@contextmanager
def runs_made() -> Iterator[list[int]]:
    """Those that edits take values from."""
    calls: list[int] = []

    def counted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return run(*args, **options)

    with patch.object(sys.modules["engine.runtime.run"], "run", counted):
        yield calls


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_with_the_whole_stream_of_another_text_a_run_is_that_text_s_from_there_on(layer: int) -> None:
    trace, other = edited(Patch(f"blocks.{layer}.resid_post", Source(OTHER))), of(OTHER)
    same(trace["logits"], other["logits"])
    assert torch.equal(trace[f"blocks.{layer}.attn.pattern"], of(tiny.IDS)[f"blocks.{layer}.attn.pattern"])


def test_one_head_at_one_position_is_patched_and_nothing_else() -> None:
    trace = edited(Patch("blocks.1.attn.z", Source(OTHER), {"head": 2, "pos": 5}))
    plain, other = of(tiny.IDS), of(OTHER)
    expected = plain["blocks.1.attn.z"].clone()
    expected[:, 5, 2] = other["blocks.1.attn.z"][:, 5, 2]
    same(trace["blocks.1.attn.z"], expected)


def test_values_may_come_from_other_positions_and_a_text_of_another_length() -> None:
    source = Source(OTHER[:3])
    trace = edited(Patch("blocks.0.mlp.out", source, {"pos": [1, 6]}, source_at={"pos": [2, 0]}))
    expected = of(tiny.IDS)["blocks.0.mlp.out"].clone()
    expected[:, [1, 6]] = of(OTHER[:3])["blocks.0.mlp.out"][:, [2, 0]]
    same(trace["blocks.0.mlp.out"], expected)


def test_a_pattern_of_every_layer_is_patched_by_its_own() -> None:
    trace, other = edited(Patch("*.attn.pattern", Source(OTHER))), of(OTHER)
    for layer in range(3):
        same(trace[f"blocks.{layer}.attn.pattern"], other[f"blocks.{layer}.attn.pattern"])


@pytest.mark.parametrize("based", [False, True])
def test_without_a_source_a_head_gets_the_pattern_of_another_as_this_text_has_it_unedited(based: bool) -> None:
    give = Patch("blocks.1.attn.pattern", at={"head": 3}, source_hook="blocks.2.attn.pattern", source_at={"head": 0})
    model = tiny.model()
    plain = run(model, tiny.IDS)
    with runs_made() as made:
        trace = run(model, tiny.IDS, edits=[SILENT, give], base=plain if based else None)
    assert len(made) == (not based)  # what a base holds is not computed again
    same(trace["blocks.1.attn.pattern"][:, 3], plain["blocks.2.attn.pattern"][:, 0])
    assert not torch.allclose(trace["blocks.1.attn.pattern"][:, 0], plain["blocks.1.attn.pattern"][:, 0], atol=1e-3)


def test_the_run_that_values_come_from_may_be_edited_itself() -> None:
    source = Source(OTHER, edits=[SILENT.to_dict()])
    trace = edited(Patch("blocks.1.attn.z", source))
    same(trace["blocks.1.attn.z"], of(OTHER, SILENT)["blocks.1.attn.z"])


def test_every_text_of_a_padded_batch_is_patched_and_steered_as_it_is_alone() -> None:
    model, texts = tiny.model(), [tiny.IDS, tiny.IDS[:4]]
    for edit in (
        Patch("blocks.0.attn.z", Source(OTHER), {"pos": [0, 2], "head": [1, 3]}),
        Patch("blocks.0.attn.z", Source(OTHER), {"pos": 3, "d_head": [1, 2]}),
        Patch("blocks.1.attn.z", None, {"head": 0}, source_hook="blocks.0.attn.z", source_at={"head": 2}),
        Steer("blocks.0.resid_post", Source(OTHER), Source([1, 2]), 3.0),
        ChangeToken(1, 9, 0.25),
    ):
        together = run(model, texts, edits=[edit])["logits"]
        for row, text in enumerate(texts):
            same(together[row, : len(text)], run(model, text, edits=[edit])["logits"][0])


@pytest.mark.parametrize("read", ["last", "mean"])
@pytest.mark.parametrize("at", [{}, {"pos": [2, 3]}, {"pos": -1, "d_model": [0, 4]}])
def test_a_steering_vector_is_the_difference_of_two_texts_and_is_added_where_it_is_told(read: Any, at: Any) -> None:
    hook, away = "blocks.1.resid_pre", [5, 4, 3]
    trace = edited(Steer(hook, Source(OTHER), Source(away), -2.0, read, at))
    one, other = of(OTHER)[hook][0], of(away)[hook][0]
    vector = one[-1] - other[-1] if read == "last" else one.mean(0) - other.mean(0)
    added = torch.zeros(1, 8, 16)
    if at == {}:
        added += vector
    elif at == {"pos": [2, 3]}:
        added[:, 2:4] += vector
    else:
        added[:, 7, [0, 4]] += vector[[0, 4]]
    same(trace[hook], of(tiny.IDS)[hook] - 2.0 * added)


def test_heads_are_steered_too() -> None:
    trace = edited(Steer("blocks.1.attn.z", Source(OTHER), Source([1]), 1.0, at={"head": 2}))
    expected = of(tiny.IDS)["blocks.1.attn.z"].clone()
    expected[:, :, 2] += (of(OTHER)["blocks.1.attn.z"][0, -1] - of([1])["blocks.1.attn.z"][0, -1])[2]
    same(trace["blocks.1.attn.z"], expected)


@pytest.mark.parametrize(
    "embedding", [Embedding(), Embedding(scale=3.0), Embedding(width=6), Embedding(width=6, mapped="tokens")]
)
def test_another_token_s_embedding_makes_the_text_with_that_token(embedding: Embedding) -> None:
    model = tiny.model(tiny.config(embedding=embedding))
    changed = [*tiny.IDS[:4], 10, *tiny.IDS[5:]]
    trace, other = run(model, tiny.IDS, edits=[ChangeToken(4, 10)]), run(model, changed)
    same(trace["logits"], other["logits"])
    half = run(model, tiny.IDS, edits=[ChangeToken(4, 10, 0.25)])["embed.tokens"]
    plain = run(model, tiny.IDS)["embed.tokens"]
    same(half[:, 4], 0.75 * plain[:, 4] + 0.25 * other["embed.tokens"][:, 4])
    assert torch.equal(half[:, 5:], plain[:, 5:])


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_either_stack_reads_another_token_and_another_run(side: Any) -> None:
    model = tiny.model(TWO_STACKS)
    plain = run(model, SOURCES, target=TARGETS)
    texts, targets = [list(row) for row in SOURCES], [list(row) for row in TARGETS]
    for row in texts if side == "encoder" else targets:
        row[1] = 10
    other = run(model, texts, target=targets)
    changed = run(model, SOURCES, target=TARGETS, edits=[ChangeToken(1, 10, stack=side)])
    same(changed["logits"], other["logits"])
    hook = f"{side}.blocks.1.resid_post"
    source = Source(texts[0], targets[0])
    patched = run(model, SOURCES[0], target=TARGETS[0], edits=[Patch(hook, source)])
    expected = run(model, texts[0] if side == "encoder" else SOURCES[0], target=TARGETS[0])["logits"]
    if side == "encoder":
        same(patched["logits"], expected)
    else:
        same(patched[hook], run(model, texts[0], target=targets[0])[hook])
    assert not torch.equal(changed["logits"], plain["logits"])
    crossing = Patch("decoder.blocks.1.cross_attn.k", source)
    trace = run(model, SOURCES[0], target=TARGETS[0][:2], edits=[crossing])
    same(trace[crossing.hook], run(model, texts[0], target=targets[0])[crossing.hook])


def test_a_source_is_run_once_for_all_that_is_wanted_of_it_alike() -> None:
    steer = Steer("blocks.1.resid_pre", Source(OTHER), Source([1, 2]))
    with runs_made() as made:
        run(tiny.model(), tiny.IDS, edits=[steer, replace(steer, factor=2.0)])
    assert len(made) == 2


def test_a_link_holds_no_values() -> None:
    data = json.dumps(Patch("blocks.1.resid_pre", Source(OTHER)).to_dict())
    assert len(data) < 250
    trace = edited(edit_from_dict(json.loads(data)))
    same(trace["blocks.1.resid_pre"], of(OTHER)["blocks.1.resid_pre"])


NESTED: dict[str, Any] = {"edit": "Patch", "hook": "logits", "source": {"ids": [1]}}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Source([]), "needs at least one token, got none"),
        (lambda: Source([1], edits=[NESTED]), "must not need a further one; leave out Patch"),
        (lambda: ChangeToken(-1, 3), "counts from 0, got -1"),
        (lambda: ChangeToken(1, 3, float("nan")), "share of the other token must be a finite number, got nan"),
        (lambda: Steer("logits", Source([1]), Source([2]), float("inf")), "must be a finite number, got inf"),
        (lambda: edited(ChangeToken(1, 11)), r"token ids must lie in 0..10, got 11"),
        (lambda: edited(ChangeToken(8, 1)), "pos of embed.tokens must be in 0..7, got 8"),
        (lambda: edited(Patch("logits", Source([99]))), r"token ids must lie in 0..10, got 99"),
        (lambda: edited(Patch("logits", Source([1, 2]))), r"must broadcast to \(1, 8, 11\), got \(1, 2, 11\)"),
        (lambda: edited(Patch("*.z", Source(OTHER), source_hook="*.z")), "stands for 3 hooks; name one of them"),
        (lambda: edited(Patch("logits", Source(OTHER), {"pos": 9})), "pos of logits must be in 0..7, got 9"),
        (lambda: edited(Steer("*.pattern", Source([1]), Source([2]))), "a value at each position; blocks.0.attn.patt"),
        (lambda: edited(Patch("logits", Source([1], [2]))), "this model has one stack; leave the target out"),
    ],
)
def test_values_that_cannot_be_had_are_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_behind_a_cache_there_is_no_whole_text_to_take_values_from() -> None:
    model = tiny.model()
    cache = KVCache(model.config, 1, 8, model.embed.tokens.weight)
    with pytest.raises(ValueError, match="behind a cache there is no whole text"):
        run(model, [1, 2], cache=cache, edits=[Patch("logits")])


def test_an_edit_without_its_values_is_not_applied() -> None:
    model = tiny.model()
    with pytest.raises(TypeError, match="Patch has no values yet"):
        Patch("logits").apply(model.hooks["logits"], torch.zeros(1, 8, 11))


def test_a_patched_encoder_leaves_the_rest_of_a_run_its_own() -> None:
    encoder = Encoder(2, replace(tiny.CONFIG.attention, mask="full"), tiny.MLP(12))
    model = tiny.model(tiny.config(encoder=encoder))
    trace = run(model, tiny.IDS, target=[1, 2], edits=[Patch("encoder.blocks.1.resid_post", Source(OTHER))])
    plain = run(model, tiny.IDS, target=[1, 2])
    assert torch.equal(trace["decoder.blocks.0.resid_mid"], plain["decoder.blocks.0.resid_mid"])
    same(trace["logits"], run(model, OTHER, target=[1, 2])["logits"])


def test_scaled_by_nothing_a_value_from_nowhere_is_no_value() -> None:
    trace = edited(Patch("blocks.0.mlp.out", Source(OTHER, edits=[Scale("blocks.0.mlp.out", 0.0).to_dict()])))
    assert not trace["blocks.0.mlp.out"].any()


def picture(seed: int) -> torch.Tensor:
    return tiny.normal(1, 8, 8, seed=seed)


def test_a_picture_is_patched_and_steered_by_others() -> None:
    model = load("digits-vit").model
    here, there = (run(model, picture(seed)[None]) for seed in (1, 2))
    source = Source(pixels=picture(2).tolist())
    patched = run(model, picture(1)[None], edits=[Patch("blocks.1.resid_post", source)])
    torch.testing.assert_close(patched["logits"], there["logits"], atol=1e-5, rtol=1e-5)
    one = run(model, picture(1)[None], edits=[Patch("blocks.1.resid_post", source, {"pos": 4})])["blocks.1.resid_post"]
    torch.testing.assert_close(one[0, 4], there["blocks.1.resid_post"][0, 4], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(one[0, :4], here["blocks.1.resid_post"][0, :4], atol=1e-5, rtol=1e-5)
    steer = Steer("blocks.1.resid_pre", source, Source(pixels=picture(1).tolist()), 2.0, "mean")
    steered = run(model, picture(1)[None], edits=[steer])["blocks.1.resid_pre"]
    away = [trace["blocks.1.resid_pre"][0].mean(0) for trace in (there, here)]
    expected = here["blocks.1.resid_pre"] + 2 * (away[0] - away[1])
    torch.testing.assert_close(steered, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Source([1], pixels=[[[1.0]]]), "reads tokens or a picture, got both"),
        (lambda: Source(pixels=[[[1.0], [1.0, 2.0]]]), "rows of one length"),
        (lambda: Source(pixels=[[[]]]), "rows of one length"),
        (lambda: Source(pixels=[[[float("nan")]]]), "must be finite numbers"),
        (lambda: edited(Patch("logits", Source(pixels=[[[1.0]]]))), "this model reads token ids"),
    ],
)
def test_a_picture_that_cannot_be_read_is_named(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
