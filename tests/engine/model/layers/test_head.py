"""Heads against plain products: over a wide vocabulary, of the mean of all positions, of the stream mapped back."""

import pytest
import torch
from torch.nn.functional import linear

from engine.checkpoints.canonical import canonical_config
from engine.model.config import Embedding, ModelConfig, OutputHead, Patches
from engine.model.layers.head import SLICE, onto_vocabulary
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.tiny import normal

NARROW = Embedding(width=6, mapped="tokens")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [7, 4 * SLICE, 4 * SLICE + 5])
@pytest.mark.parametrize("biased", [True, False])
def test_however_many_rows_the_product_is_that_of_float64(biased: bool, rows: int, threads: int) -> None:
    x, weight, bias = normal(2, 9, 16), normal(rows, 16, seed=1), normal(rows, seed=2) if biased else None
    expected = linear(x.double(), weight.double(), None if bias is None else bias.double()).float()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            torch.testing.assert_close(onto_vocabulary(x, weight, bias), expected, atol=1e-5, rtol=1e-5)
    finally:
        torch.set_num_threads(before)


def test_a_wide_head_learns_as_a_narrow_one_does() -> None:
    x, weight = normal(1, 3, 4).requires_grad_(), normal(4 * SLICE, 4, seed=1).requires_grad_()
    onto_vocabulary(x, weight, None).sum().backward()
    torch.testing.assert_close(weight.grad, x.detach().sum(1).expand(4 * SLICE, 4))


def test_a_class_of_the_mean_is_the_mean_of_every_positions_classes() -> None:
    model = tiny.model(tiny.config(head=OutputHead("sequence", 4, read="mean")))
    trace = run(model, tiny.IDS)
    last = trace["final_norm.out"]
    assert trace.dims("head.mean") == ("batch", "d_model")
    torch.testing.assert_close(trace["head.mean"], sum(last[:, i] for i in range(last.shape[1])) / last.shape[1])
    each = last @ model.head.weight.T + model.head.bias
    torch.testing.assert_close(trace["logits"], each.mean(1))


def test_a_mean_leaves_out_what_only_fills_up_a_batch() -> None:
    model = tiny.model(tiny.config(head=OutputHead("sequence", 4, read="mean")))
    texts = [tiny.IDS, tiny.IDS[:2], tiny.IDS[1:4]]
    together = run(model, texts)
    for i, text in enumerate(texts):
        alone = run(model, text)
        for hook in ("head.mean", "logits"):
            torch.testing.assert_close(together[hook][i], alone[hook][0])


@pytest.mark.parametrize(
    ("head", "axes"),
    [
        (OutputHead("none", narrow=True), ("batch", "pos", "d_embed")),
        (OutputHead("span", narrow=True), ("batch", "pos", "d_embed")),
        (OutputHead("token", 3, bias=False, narrow=True), ("batch", "pos", "d_embed")),
        (OutputHead("sequence", 3, read="last", narrow=True), ("batch", "d_embed")),
        (OutputHead("sequence", 3, read="mean", narrow=True), ("batch", "d_embed")),
    ],
    ids=str,
)
def test_any_head_may_read_the_stream_mapped_back_to_the_width_of_tokens(
    head: OutputHead, axes: tuple[str, ...]
) -> None:
    model = tiny.model(tiny.config(embedding=NARROW, head=head))
    trace = run(model, tiny.IDS)
    last = trace["final_norm.out"]
    read = {"last": last[:, -1], "mean": last.mean(1)}[head.read] if head.kind == "sequence" else last
    narrow = read @ model.head.narrow.weight.T
    assert trace.dims("head.narrow") == axes
    torch.testing.assert_close(trace["head.narrow"], narrow)
    given = model(torch.tensor([tiny.IDS]))
    if head.kind == "none":
        torch.testing.assert_close(given, narrow)
        return
    bias = 0 if model.head.bias is None else model.head.bias
    torch.testing.assert_close(given, narrow @ model.head.weight.T + bias)


def test_a_head_over_classes_reads_the_wide_stream_unless_it_is_narrow() -> None:
    wide = tiny.config(embedding=NARROW, head=OutputHead("token", 3))
    assert not wide.narrows and "head.narrow" not in tiny.model(wide).hooks
    narrow = tiny.config(embedding=NARROW, head=OutputHead("token", 3, narrow=True))
    assert canonical_config(wide) != canonical_config(narrow)
    plain = tiny.config(head=OutputHead("token", 3, narrow=True))
    assert not plain.narrows and canonical_config(plain) == canonical_config(tiny.config(head=OutputHead("token", 3)))
    masked = tiny.config(embedding=NARROW, head=OutputHead("masked", narrow=True), attention={"mask": "full"})
    assert not masked.narrows and canonical_config(masked).head.narrow is False


def test_a_mean_has_no_pooler_and_is_no_mean_of_two_classifiers() -> None:
    distilled = Embedding(patches=Patches(12, 4, distilled=True))
    for changes in ({"pooler": True}, {"averaged": True}):
        head = OutputHead("sequence", 3, read="mean", **changes)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match='head.read "mean" is of all positions'):
            ModelConfig(1, 11, 24, 1, tiny.config().attention, head=head, embedding=distilled)
