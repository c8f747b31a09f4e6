import pytest
import torch

from engine.edits import SilenceHeads
from engine.model.layers.mask import Causal, Full, Prefix
from engine.runtime.run import run
from tests.engine import tiny

LENGTHS = (8, 1, 5, 3)


@pytest.mark.parametrize("keep", ["*", "logits"], ids=["explicit", "fused"])
@pytest.mark.parametrize("mask", ["causal", "full"])
@pytest.mark.parametrize("positions", tiny.POSITIONS)
def test_a_text_padded_in_a_batch_equals_the_text_alone(positions: str, mask: str, keep: str) -> None:
    model = tiny.model(tiny.config(positions, attention={"mask": mask}))
    texts = [tiny.IDS[:length] for length in LENGTHS]
    together = run(model, texts, keep=keep)
    for row, length in enumerate(LENGTHS):
        alone = run(model, texts[row], keep=keep)
        torch.testing.assert_close(together["logits"][row, :length], alone["logits"][0], atol=1e-4, rtol=0)
        if keep == "*":
            patterns = together.stack("attn.pattern")[:, row]
            torch.testing.assert_close(
                patterns[..., :length, :length], alone.stack("attn.pattern")[:, 0], atol=1e-5, rtol=0
            )
            assert not patterns[..., length:].any()


def test_an_edit_of_a_padded_text_equals_that_of_the_text_alone() -> None:
    model = tiny.model()
    edits = [SilenceHeads(1, [0, 2], how="mean")]  # the mean must leave out the padding
    together = run(model, [tiny.IDS, tiny.IDS[:3]], edits=edits)
    alone = run(model, tiny.IDS[:3], edits=edits)
    torch.testing.assert_close(together["logits"][1, :3], alone["logits"][0], atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "ids",
    [tiny.IDS, [tiny.IDS], torch.tensor(tiny.IDS), torch.tensor([tiny.IDS], dtype=torch.int32)],
    ids=["list", "list of lists", "1-D", "int32 2-D"],
)
def test_ids_come_as_a_list_or_a_tensor(ids) -> None:
    trace = run(tiny.model(), ids)
    assert trace.ids.tolist() == [tiny.IDS]
    assert torch.equal(trace["logits"], run(tiny.model(), tiny.IDS)["logits"])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([], "at least one token, got none"),
        ([[]], "at least one token, got none"),
        ([[1, 2], []], "at least one token, got none"),
        ([[1.5, 2]], "ids must be whole numbers"),
        ([1.5, 2], "ids must be whole numbers"),
        ("text", "ids must be whole numbers"),
        (torch.zeros(1, 0, dtype=torch.long), "at least one token, got none"),
        (torch.zeros(0, 3, dtype=torch.long), "at least one token, got none"),
        (torch.ones(3), r"whole numbers, pos or batch pos; got torch.float32 \(3,\)"),
        (torch.ones(3, dtype=torch.bool), "whole numbers, pos or batch pos; got torch.bool"),
        (torch.ones(1, 1, 3, dtype=torch.long), r"got torch.int64 \(1, 1, 3\)"),
        ([3, 11], r"token ids must lie in 0..10, got 11"),
        ([3, -1], r"token ids must lie in 0..10, got -1"),
        ([1] * 25, "at most 24 tokens, got 25"),
    ],
)
def test_an_input_the_model_cannot_read_is_named(ids, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(tiny.model(), ids)


def test_keep_takes_names_aliases_and_patterns_and_records_nothing_else() -> None:
    model = tiny.model()
    trace = run(model, tiny.IDS, keep=["blocks.[01].attn.hook_pattern", "logits"])
    assert list(trace) == ["blocks.0.attn.pattern", "blocks.1.attn.pattern", "logits"]
    assert len(run(model, tiny.IDS, keep=[])) == 0


@pytest.mark.parametrize(
    ("keep", "layers"),
    [
        ("*", []),
        ("blocks.*", []),
        ("*out", []),
        ("blocks.1.attn.*", []),
        ("blocks.1.attn.head_out", [1]),
        ("*.head_out", [0, 1, 2]),
        ("*.hook_result", [0, 1, 2]),
        ("*.attn.head_o*", [0, 1, 2]),
    ],
)
def test_what_heads_write_is_computed_only_when_named(keep: str, layers: list[int]) -> None:
    recorded = [name for name in run(tiny.model(), tiny.IDS, keep=keep) if name.endswith("head_out")]
    assert recorded == [f"blocks.{layer}.attn.head_out" for layer in layers]


def test_what_is_kept_does_not_change_what_is_computed() -> None:
    model = tiny.model()
    full = run(model, tiny.IDS)
    for name in ("blocks.1.attn.pattern", "blocks.2.norm2.scale", "blocks.0.attn.head_out"):
        torch.testing.assert_close(
            run(model, tiny.IDS, keep=[name, "logits"])["logits"], full["logits"], atol=1e-4, rtol=0
        )


def test_logits_are_computed_only_for_the_positions_asked_for() -> None:
    model = tiny.model()
    full = run(model, tiny.IDS)
    last = run(model, tiny.IDS, logits_at=slice(-1, None))
    assert last["logits"].shape == (1, 1, 11)
    assert last["final_norm.out"].shape == (1, 1, 16)
    torch.testing.assert_close(last["logits"], full["logits"][:, -1:], atol=1e-5, rtol=0)


@pytest.mark.parametrize("configured", ["causal", "full", "prefix"])
def test_a_mask_given_to_a_run_replaces_the_configured_one(configured: str) -> None:
    model = tiny.model(tiny.config(attention={"mask": configured}))
    for mask, kind in ((Causal(), "causal"), (Full(), "full"), (Prefix(0), "prefix")):
        other = tiny.model(tiny.config(attention={"mask": kind}))
        assert torch.equal(run(model, tiny.IDS, mask=mask)["logits"], run(other, tiny.IDS)["logits"])


def test_a_run_leaves_no_gradients_and_no_active_recording() -> None:
    model = tiny.model()
    assert not run(model, tiny.IDS)["logits"].requires_grad
    with pytest.raises(ValueError):
        run(model, tiny.IDS, edits=[SilenceHeads(0, [9])])
    seen = run(model, tiny.IDS, keep=[])
    model(torch.tensor([tiny.IDS]))
    assert len(seen) == 0
