"""What reaches the page about attention: a small run element for element, a large one a byte a weight."""

import numpy as np
import pytest
import torch

from engine.checkpoints import Checkpoint
from engine.edits import PaintMask
from engine.inputs.readers import Reading
from engine.model.config import MLP, Attention, Encoder, ModelConfig
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.attention import attention as view
from views.core.lanes import lanes
from views.core.payload import Named, pack, unpack

SMALL = ModelConfig(vocab_size=40, context=64, d_model=16, layers=3, attention=Attention(heads=2), mlp=MLP(32))
MANY = ModelConfig(vocab_size=80, context=64, d_model=48, layers=12, attention=Attention(heads=12), mlp=MLP(48))


def traced(config: ModelConfig, length: int) -> tuple[Checkpoint, Reading, Trace]:
    model = initialise(Transformer(config), seed=5).eval()
    read = Encoding.from_ids(range(length))
    target = Encoding.from_ids([0, 1, 2]) if config.encoder else None
    return Checkpoint(model), Reading(read, None, target), run(model, read, target=target)


def payload(config: ModelConfig, length: int = 6, layer: int = 0) -> tuple[bytes, Trace]:
    checkpoint, reading, trace = traced(config, length)
    stacks = lanes(checkpoint, reading)
    return view.attention(trace, stacks, name="tiny", scores={}, table=[], notes={}, layer=layer), trace


def test_a_small_run_arrives_whole_and_holds_nothing_but_attention() -> None:
    sent, trace = payload(SMALL)
    _, arrays = unpack(sent)
    wanted = [hook for hook in trace if ".attn." in hook and not hook.endswith((".out", ".head_out"))]
    assert set(arrays) == set(wanted)
    for hook in wanted:
        value = trace[hook][0] if trace.dims(hook)[0] == "batch" else trace[hook][None]
        np.testing.assert_array_equal(arrays[hook].data.squeeze(), value.squeeze().numpy(), err_msg=hook)
    assert arrays["blocks.0.attn.pattern"].dims == ("head", "pos", "key")


def large() -> tuple[dict, dict[str, Named], Trace, bytes]:
    sent, trace = payload(MANY, 64, layer=7)
    return *unpack(sent), trace, sent


def test_a_large_run_brings_every_pattern_and_one_layer_exactly() -> None:
    _, arrays, trace, _ = large()
    stacked = trace.stack("attn.pattern")[:, 0].numpy()
    np.testing.assert_allclose(arrays["patterns.attn"].data / 255, stacked, atol=0.5 / 255 + 1e-7)
    np.testing.assert_array_equal(arrays["blocks.7.attn.pattern"].data, stacked[7])
    assert not any(hook.startswith("blocks.6.") for hook in arrays)
    _, later = unpack(view.attention_payload(trace, 6))
    np.testing.assert_array_equal(later["blocks.6.attn.scores"].data, trace["blocks.6.attn.scores"][0].numpy())


def test_the_patterns_of_144_heads_take_at_most_a_tenth_more_than_a_byte_a_weight() -> None:
    _, arrays, _, sent = large()
    weights = arrays["patterns.attn"].data.size
    assert weights == 144 * 64 * 64
    assert len(pack({}, {"patterns.attn": arrays["patterns.attn"].data})) <= 1.1 * weights
    assert len(sent) <= 2.5 * weights  # with one layer in full, which is what numbers are read from


def test_both_stacks_and_what_joins_them_arrive_under_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    two = ModelConfig(40, 64, 16, 2, Attention(2), MLP(32), encoder=Encoder(3, Attention(2, mask="full"), MLP(32)))
    _, arrays = unpack(payload(two)[0])
    assert arrays["decoder.blocks.1.cross_attn.pattern"].data.shape == (2, 3, 6)
    assert arrays["encoder.blocks.2.attn.pattern"].data.shape == (2, 6, 6)
    monkeypatch.setattr(view, "WHOLE", 10)
    sent, trace = payload(two)
    _, arrays = unpack(sent)
    assert {"patterns.encoder.attn", "patterns.decoder.attn", "patterns.decoder.cross_attn"} <= set(arrays)
    cross = torch.stack([trace[f"decoder.blocks.{i}.cross_attn.pattern"][0] for i in range(2)])
    np.testing.assert_allclose(arrays["patterns.decoder.cross_attn"].data / 255, cross.numpy(), atol=0.002)


def test_a_layer_that_the_run_lacks_is_one_sentence() -> None:
    with pytest.raises(ValueError, match="no layer 3"):
        view.attention_payload(traced(SMALL, 4)[2], 3)


def test_what_edits_put_into_a_layer_comes_with_its_numbers() -> None:
    checkpoint, reading, before = traced(MANY, 64)
    edits = [PaintMask(cells=[[5, 2]], layer=layer, heads=[3]) for layer in (6, 7)]
    trace = run(checkpoint.model, reading.read, edits=edits)
    stacks = lanes(checkpoint, reading)
    sent = view.attention(trace, stacks, name="tiny", scores={}, table=[], notes={}, layer=7, before=before)
    header, arrays = unpack(sent)
    assert header["editedHeads"] == {"attn": [[6, 3], [7, 3]]}
    assert [name for name in arrays if name.endswith(".edited")] == ["blocks.7.attn.edited"]
    _, later = unpack(view.attention_payload(trace, 6, before=before))
    assert np.argwhere(later["blocks.6.attn.edited"].data).tolist() == [[3, 5, 2]]
    assert not any(name.endswith(".edited") for name in unpack(view.attention_payload(trace, 5, before=before))[1])
