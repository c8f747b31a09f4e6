"""A run that continues from another one: the same numbers, for less."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch

from engine.edits import AttentionTemperature, Edit, Replace, Scale, SilenceHeads
from engine.model.layers.block import Block
from engine.model.layers.cache import KVCache
from engine.model.layers.mask import Full
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine import tiny


@contextmanager
def blocks_computed() -> Iterator[list[int]]:
    calls: list[int] = []
    real = Block.forward

    def counted(self, *args, **kwargs):
        calls.append(1)
        return real(self, *args, **kwargs)

    with patch.object(Block, "forward", counted):
        yield calls


def edits_in(layer: int) -> list[Edit]:
    return [
        SilenceHeads(layer, [1]),
        AttentionTemperature(3.0, layer=layer),
        Scale(f"blocks.{layer}.resid_pre", 1.5),
        Scale(f"blocks.{layer}.norm1.scale", 2.0),
        Replace(f"blocks.{layer}.attn.v", 0.0, {"pos": 0}),
        Scale(f"blocks.{layer}.resid_post", -1.0, {"pos": [2, 3]}),
    ]


def assert_same(a: Trace, b: Trace) -> None:
    assert list(a) == list(b)
    for name in a:
        assert torch.equal(a[name], b[name]), name


SHAPES = {
    "norm before": tiny.CONFIG,
    "norm after": tiny.config(norm=tiny.Norm(place="after")),
    "norm after, attention only": tiny.config(mlp=None, norm=tiny.Norm(place="after")),
    "no norm after": tiny.config(norm=tiny.Norm(kind="none", place="after")),
    "attention only": tiny.config("rotary", mlp=None),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layer", [0, 1, 2])
def test_an_edited_run_from_a_base_is_bit_identical_and_computes_only_what_follows(layer: int, shape: str) -> None:
    model = tiny.model(SHAPES[shape])
    base = run(model, tiny.IDS)
    for edit in edits_in(layer):
        if "norm1" in str(edit.touches()) and SHAPES[shape].norm.kind == "none":
            continue
        with blocks_computed() as computed:
            edited = run(model, tiny.IDS, edits=[edit], base=base)
        assert len(computed) == 3 - layer
        assert_same(edited, run(model, tiny.IDS, edits=[edit]))


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("index", range(6))
def test_taking_an_edit_back_from_an_edited_base_gives_the_unedited_run(layer: int, index: int) -> None:
    model = tiny.model()
    edit = edits_in(layer)[index]
    base = run(model, tiny.IDS, edits=[edit])
    assert_same(run(model, tiny.IDS, base=base), run(model, tiny.IDS))
    later = [edit, SilenceHeads(layer, [0])]  # the edit they share is not applied twice
    assert_same(run(model, tiny.IDS, edits=later, base=base), run(model, tiny.IDS, edits=later))


def test_edits_that_do_not_commute_are_run_again_in_their_new_order() -> None:
    model = tiny.model()
    scale, replace = Scale("blocks.1.mlp.out", 2.0), Replace("blocks.1.mlp.out", 1.0, {"pos": 0})
    extra = SilenceHeads(2, [0])
    base = run(model, tiny.IDS, edits=[scale, replace])
    assert_same(
        run(model, tiny.IDS, edits=[replace, scale, extra], base=base),
        run(model, tiny.IDS, edits=[replace, scale, extra]),
    )


def test_the_same_edits_compute_nothing_again() -> None:
    model = tiny.model()
    edits = [SilenceHeads(1, [1])]
    base = run(model, tiny.IDS, edits=edits)
    with blocks_computed() as computed:
        again = run(model, tiny.IDS, edits=edits, base=base)
        fewer = run(model, tiny.IDS, edits=edits, base=base, keep=["*.pattern", "logits"])
    assert computed == []
    assert_same(again, base)
    assert list(fewer) == [n for n in base if n.endswith("pattern") or n == "logits"]


def test_an_edit_behind_the_last_block_computes_no_block() -> None:
    model = tiny.model()
    base = run(model, tiny.IDS)
    for edit in (Scale("final_norm.out", 2.0), Scale("logits", 0.5)):
        with blocks_computed() as computed:
            edited = run(model, tiny.IDS, edits=[edit], base=base)
        assert computed == []
        assert_same(edited, run(model, tiny.IDS, edits=[edit]))


def test_an_edit_of_the_embedding_computes_everything() -> None:
    model = tiny.model()
    edits = [Scale("embed.tokens", 2.0, {"pos": 1})]
    base = run(model, tiny.IDS)
    with blocks_computed() as computed:
        edited = run(model, tiny.IDS, edits=edits, base=base)
    assert len(computed) == 3
    assert_same(edited, run(model, tiny.IDS, edits=edits))


def test_other_positions_for_the_logits_compute_no_block() -> None:
    model = tiny.model()
    with blocks_computed() as computed:
        base = run(model, tiny.IDS, logits_at=slice(-1, None))
        full = run(model, tiny.IDS, base=base)
    assert len(computed) == 3
    assert_same(full, run(model, tiny.IDS))


def test_another_mask_computes_everything() -> None:
    model = tiny.model()
    base = run(model, tiny.IDS)
    assert_same(run(model, tiny.IDS, mask=Full(), base=base), run(model, tiny.IDS, mask=Full()))


def test_a_padded_batch_continues_from_its_base() -> None:
    model = tiny.model()
    texts = [tiny.IDS, tiny.IDS[:3]]
    edits = [SilenceHeads(2, [0], how="uniform")]
    assert_same(run(model, texts, edits=edits, base=run(model, texts)), run(model, texts, edits=edits))


def test_what_the_base_did_not_keep_is_computed() -> None:
    model = tiny.model()
    base = run(model, tiny.IDS, keep=["*.resid_post", "blocks.0.*", "embed.*"])
    edits = [SilenceHeads(2, [0])]
    with blocks_computed() as computed:
        edited = run(model, tiny.IDS, edits=edits, base=base)
    assert len(computed) == 2
    assert_same(edited, run(model, tiny.IDS, edits=edits))


def test_a_base_without_the_stream_to_start_from_says_what_to_keep() -> None:
    model = tiny.model()
    base = run(model, tiny.IDS, keep="logits")
    with pytest.raises(ValueError, match=r"must have recorded blocks.1.resid_post to start from; .*add that name"):
        run(model, tiny.IDS, keep="logits", edits=[SilenceHeads(2, [0])], base=base)


def test_a_base_of_another_input_or_model_is_refused() -> None:
    model = tiny.model()
    base = run(model, tiny.IDS)
    for ids in ([*tiny.IDS[:-1], 0], tiny.IDS[:-1], [tiny.IDS, tiny.IDS[:2]]):
        with pytest.raises(ValueError, match="base must be a run on the same tokens"):
            run(model, ids, base=base)
    with pytest.raises(ValueError, match="base must be a run of the same model"):
        run(tiny.model(), tiny.IDS, base=base)
    cache = KVCache(model.config, batch=1, length=16, like=model.embed.tokens.weight)
    with pytest.raises(ValueError, match="without a cache"):
        run(model, tiny.IDS, base=base, cache=cache)
    run(model, [1, 2], cache=cache)
    continued = run(model, tiny.IDS, cache=cache)
    with pytest.raises(ValueError, match="without a cache"):
        run(model, tiny.IDS, base=continued)
