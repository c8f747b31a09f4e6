"""Masks by name and by the cell, and patterns that are set, against masks and patterns made by hand."""

from typing import Any

import pytest
import torch

from engine.edits import DrawMask, DrawPattern, Edit, PaintMask, PaintPattern, PresetMask, SetPattern
from engine.model.layers.cache import KVCache
from engine.model.layers.mask import Full
from engine.runtime.run import run
from engine.runtime.trace import Trace
from tests.engine import tiny
from tests.engine.edits.test_edits import PLACES, TWO_STACKS, both, translated

ROW, COLUMN = torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij")
CAUSAL = COLUMN <= ROW
MASKS = {
    ("causal", None): CAUSAL,
    ("full", None): torch.ones(8, 8, dtype=torch.bool),
    ("window", 3): (ROW - COLUMN).abs() <= 2,
    ("causal window", 3): CAUSAL & (COLUMN >= ROW - 2),
    ("prefix", 4): CAUSAL | (COLUMN < 4),
}
PATTERNS = {
    "uniform": CAUSAL / (1 + ROW),
    "previous": (COLUMN == (ROW - 1).clamp(min=0)).float(),
    "first": (COLUMN == 0).float(),
    "itself": torch.eye(8),
}


def follows_the_mask(edited: Trace, layer: int, mask: torch.Tensor) -> None:
    name = f"blocks.{layer}.attn"
    pattern = edited[f"{name}.scores"].masked_fill(~mask, float("-inf")).softmax(-1).nan_to_num(0)
    torch.testing.assert_close(edited[f"{name}.pattern"], pattern, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("kind", "size"), MASKS)
@pytest.mark.parametrize("heads", [None, [1, 3]])
def test_a_mask_by_name_stands_in_its_layer_and_heads_alone(kind: Any, size: int | None, heads: list[int]) -> None:
    plain, edited = both(PresetMask(kind, size, 1, heads))
    mask = CAUSAL.expand(1, 4, 8, 8).clone()
    mask[:, heads or slice(None)] = MASKS[kind, size]
    assert torch.equal(edited["blocks.1.attn.mask"], mask)
    follows_the_mask(edited, 1, mask)
    assert torch.equal(edited["blocks.0.resid_post"], plain["blocks.0.resid_post"])
    for other in (0, 2):
        assert torch.equal(edited[f"blocks.{other}.attn.mask"], plain[f"blocks.{other}.attn.mask"])


def test_a_mask_of_every_layer_lets_a_decoder_see_the_future_as_a_full_mask_does() -> None:
    for positions in tiny.POSITIONS:
        model = tiny.model(tiny.config(positions))
        edited, whole = run(model, tiny.IDS, edits=[PresetMask("full")]), run(model, tiny.IDS, mask=Full())
        for name in whole:
            torch.testing.assert_close(edited[name], whole[name], atol=1e-5, rtol=1e-5)


def test_a_mask_by_name_never_shows_padding() -> None:
    texts = [tiny.IDS, tiny.IDS[:3]]
    for config in (tiny.CONFIG, tiny.config(attention={"mask": "full"})):
        model = tiny.model(config)
        for edit in (PresetMask("full"), PaintMask(rows=[1], to="allow"), PaintMask(cells=[[2, 0]])):
            together, alone = run(model, texts, edits=[edit]), run(model, texts[1], edits=[edit])
            torch.testing.assert_close(together["logits"][1, :3], alone["logits"][0], atol=1e-5, rtol=1e-5)
            assert not together["blocks.1.attn.mask"][1, ..., 3:].any()


def test_behind_a_cache_a_mask_by_name_counts_from_the_start_of_the_text() -> None:
    model = tiny.model()
    edit = PresetMask("causal window", 2)
    cache = KVCache(model.config, 1, 8, model.embed.tokens.weight)
    run(model, tiny.IDS[:5], cache=cache, edits=[edit])
    rest = run(model, tiny.IDS[5:], cache=cache, edits=[edit, PaintMask(cells=[[6, 0]])])
    expected = (CAUSAL & (COLUMN >= ROW - 1))[5:]
    expected[1, 0] = True
    assert torch.equal(rest["blocks.0.attn.mask"][0, 0], expected)


@pytest.mark.parametrize("place", PLACES)
def test_masks_and_patterns_stand_in_the_stack_and_the_attention_named(place: str) -> None:
    plain, _ = translated()
    source = place != "decoder.blocks.1.attn"
    keys = plain.padding if source else torch.tensor([[True] * 4, [True] * 3 + [False]])
    _, edited = translated(PresetMask("full", layer=1, **PLACES[place]))
    assert torch.equal(edited[f"{place}.mask"], keys[:, None, None].expand_as(plain[f"{place}.mask"]))
    _, edited = translated(SetPattern(1, "first", [0], **PLACES[place]))
    assert (edited[f"{place}.pattern"][:, 0, :, 0] == 1).all()
    for other in PLACES.keys() - {place}:
        assert torch.equal(edited[f"{other}.mask"], plain[f"{other}.mask"])


def test_every_layer_means_those_of_both_stacks_and_not_the_attention_between_them() -> None:
    edited = translated(PresetMask("window", 1))[1]
    for name in (name for name in edited if name.endswith(".mask")):
        eye = torch.eye(*edited[name].shape[-2:], dtype=torch.bool)
        assert bool((edited[name] & ~eye).any()) == ("cross" in name), name
    assert "decoder.blocks.2.cross_attn.mask" in edited


@pytest.mark.parametrize("to", ["flip", "allow", "forbid"])
@pytest.mark.parametrize("layer", [None, 1])
def test_cells_rows_and_columns_are_painted_and_no_others(to: Any, layer: int | None) -> None:
    _, edited = both(PaintMask([[0, 7], [5, 2]], [3], [1], to, layer, [0, 2]))
    painted = (ROW == 3) | (COLUMN == 1)
    painted[0, 7] = painted[5, 2] = True
    expected = {"flip": CAUSAL ^ painted, "allow": CAUSAL | painted, "forbid": CAUSAL & ~painted}[to]
    for number in range(3):
        mask = CAUSAL.expand(1, 4, 8, 8).clone()
        if layer in (None, number):
            mask[:, [0, 2]] = expected
        assert torch.equal(edited[f"blocks.{number}.attn.mask"], mask)
    follows_the_mask(edited, 1, edited["blocks.1.attn.mask"])


def test_flipped_twice_a_mask_is_as_it_was() -> None:
    flip = PaintMask(cells=[[1, 5]], rows=[4])
    plain, edited = both(flip, flip)
    assert torch.equal(edited["logits"], plain["logits"])


@pytest.mark.parametrize("to", PATTERNS)
@pytest.mark.parametrize("heads", [None, [2]])
def test_a_head_attends_to_what_it_is_told(to: Any, heads: list[int] | None) -> None:
    plain, edited = both(SetPattern(1, to, heads))
    pattern = plain["blocks.1.attn.pattern"].clone()
    pattern[:, heads or slice(None)] = PATTERNS[to]
    torch.testing.assert_close(edited["blocks.1.attn.pattern"], pattern, atol=1e-6, rtol=0)
    z = torch.einsum("bhpk,bkhd->bphd", pattern, plain["blocks.1.attn.v"])
    torch.testing.assert_close(edited["blocks.1.attn.z"], z, atol=1e-5, rtol=0)


def test_a_drawn_pattern_is_put_in_its_heads_of_every_layer() -> None:
    drawn = torch.rand(8, 8, generator=torch.Generator().manual_seed(1)).softmax(-1)
    plain, edited = both(DrawPattern(None, drawn.tolist(), [3]))
    for layer in range(3):
        torch.testing.assert_close(edited[f"blocks.{layer}.attn.pattern"][0, 3], drawn, atol=1e-6, rtol=0)
    assert torch.equal(edited["blocks.0.attn.pattern"][:, :3], plain["blocks.0.attn.pattern"][:, :3])
    free = both(DrawPattern(0, (-2 * drawn).tolist(), free=True))[1]
    torch.testing.assert_close(free["blocks.0.attn.pattern"], (-2 * drawn).expand(1, 4, 8, 8))


@pytest.mark.parametrize("heads", [None, [2]])
def test_a_head_attends_to_the_one_position_that_is_named_whether_or_not_the_mask_allows_it(heads: list[int]) -> None:
    plain, edited = both(SetPattern(1, "position", heads, position=5))
    pattern = plain["blocks.1.attn.pattern"].clone()
    pattern[:, heads or slice(None)] = (COLUMN == 5).float()
    assert torch.equal(edited["blocks.1.attn.pattern"], pattern)
    cross = translated(SetPattern(1, "position", [0], cross=True, position=1))[1]
    assert (cross["decoder.blocks.1.cross_attn.pattern"][:, 0, :, 1] == 1).all()


def painted_by_hand(row: list[float], cells: dict[int, float]) -> list[float]:
    """A row of a pattern, weight by weight."""
    taken, rest = sum(cells.values()), sum(w for i, w in enumerate(row) if i not in cells)
    share = max(0.0, 1 - taken) / rest if rest else 0.0
    new = [cells.get(i, w * share) for i, w in enumerate(row)]
    return [w / sum(new) if sum(new) else 0.0 for w in new]


def test_painted_weights_stand_in_their_rows_which_go_on_summing_to_one() -> None:
    painted = {6: {2: 0.5, 4: 0.25}, 3: {0: 0.9, 7: 0.9}, 0: {0: 0.3}, 5: {1: 0.0}, 1: {0: 0.0, 1: 0.0}}
    cells = [[row, key] for row, found in painted.items() for key in found]
    weights = [weight for found in painted.values() for weight in found.values()]
    plain, edited = both(PaintPattern(1, [[6, 2], *cells], [1.0, *weights], [1, 2]))  # of a cell named twice, the last
    old, new = plain["blocks.1.attn.pattern"][0], edited["blocks.1.attn.pattern"][0]
    for head, row in ((head, row) for head in range(4) for row in range(8)):
        expected = old[head, row].tolist()
        if head in (1, 2) and row in painted:
            expected = painted_by_hand(expected, painted[row])
        torch.testing.assert_close(new[head, row], torch.tensor(expected), atol=1e-6, rtol=0)
    assert new[1, 6, 2] == 0.5 and new[2, 0, 0] == 1 and not new[1, 1].any()  # its row 0 sees nothing else


def test_free_weights_are_put_there_and_nothing_else_changes() -> None:
    plain, edited = both(PaintPattern(None, [[6, 2], [3, 7]], [1.5, -2.0], free=True))
    for layer in range(3):
        expected = edited[f"blocks.{layer}.attn.masked_scores"].softmax(-1)
        expected[..., 6, 2], expected[..., 3, 7] = 1.5, -2.0
        torch.testing.assert_close(edited[f"blocks.{layer}.attn.pattern"], expected, atol=1e-6, rtol=0)
    assert not torch.allclose(plain["logits"], edited["logits"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PresetMask("diagonal"), "kind must be one of causal, full, window, causal window, prefix, got 'diag"),  # type: ignore[arg-type]
        (lambda: PresetMask("window"), "a window mask must have a size of at least 1, got None"),
        (lambda: PresetMask("prefix", 0), "a prefix mask must have a size of at least 1, got 0"),
        (lambda: PresetMask("full", 3), "a full mask has no size, got 3; leave it out"),
        (lambda: PaintMask(), "got nothing; give cells, rows or columns"),
        (lambda: PaintMask(cells=[[1, 2, 3]]), r"a cell must be \[query, key\], got \[1, 2, 3\]"),
        (lambda: PaintMask(rows=[-1]), "count from 0, got -1"),
        (lambda: PaintMask(rows=[1], to="paint"), "to must be flip, allow or forbid"),  # type: ignore[arg-type]
        (lambda: SetPattern(0, "next"), "to must be one of uniform, previous, first, itself, position, got 'next'"),  # type: ignore[arg-type]
        (lambda: SetPattern(0, "position"), "position must have a position, counted from 0, got None"),
        (lambda: SetPattern(0, "position", position=-1), "position must have a position, counted from 0, got -1"),
        (lambda: both(SetPattern(0, "position", position=8)), "the keys 0..7 to attend to, got 8"),
        (lambda: PaintPattern(0), "must have one weight a cell, got 0 cells and 0 weights"),
        (lambda: PaintPattern(0, [[1, 1]], [0.5, 0.5]), "got 1 cell and 2 weights"),
        (lambda: PaintPattern(0, [[1, -1]], [0.5]), r"must be \[query, key\], both counted from 0, got \[1, -1\]"),
        (lambda: PaintPattern(0, [[1, 1]], [-0.5]), "weights of a pattern must be 0 or more, got -0.5; or set free"),
        (lambda: both(PaintPattern(0, [[8, 0]], [0.5])), "blocks.0.attn.pattern has rows 0..7, got 8"),
        (lambda: both(PaintPattern(0, [[0, 8]], [0.5])), "has columns 0..7, got 8"),
        (lambda: SetPattern(0, "itself", cross=True), "cross-attention reads another; use first"),
        (lambda: DrawPattern(0, [[0.5, 0.5], [0.9, 0.2]]), "row 1 of a pattern must .* got a sum of 1.1; .*set free"),
        (lambda: DrawPattern(0, [[1.5, -0.5]]), "weights from 0 on that sum to 1"),
        (lambda: DrawPattern(0, [[1.0], [0.5, 0.5]]), "rows of a pattern must be equally long"),
        (lambda: DrawPattern(0, []), "rows of a pattern must be equally long"),
        (lambda: both(DrawPattern(0, [[1.0]])), r"shape \(pos, key\)=\(8, 8\), got \(1, 1\)"),
        (lambda: both(DrawMask(0, [[True], [True, False]])), "rows of a drawn mask must be equally long"),
        (lambda: both(PaintMask(cells=[[8, 0]])), "mask of blocks.0.attn.mask has rows 0..7, got 8"),
        (lambda: both(PaintMask(columns=[9])), "has columns 0..7, got 9"),
        (lambda: both(PresetMask("full", heads=[4])), "head of blocks.0.attn.mask must be in 0..3, got 4"),
    ],
)
def test_a_mask_or_pattern_that_cannot_be_says_so(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_of_two_stacks_a_layer_alone_says_too_little() -> None:
    edit: Edit = PresetMask("full", layer=0)
    with pytest.raises(KeyError, match="no hook is called 'blocks.0.attn.mask'"):
        run(tiny.model(TWO_STACKS), [1, 2], edits=[edit])
