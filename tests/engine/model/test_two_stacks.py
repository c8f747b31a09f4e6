"""Two stacks: what they record, what a cache saves, and runs that continue from another one, in either stack."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch

from engine.edits import AttentionTemperature, DrawMask, Edit, Replace, Scale, SilenceHeads
from engine.model.config import Embedding, Encoder, ModelConfig
from engine.model.layers.block import Block
from engine.model.layers.cache import KVCache
from engine.model.layers.mask import Full
from engine.model.transformer import Transformer
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers import Encoding
from tests.engine import tiny

SOURCE = [3, 1, 4, 1, 5, 9, 2]
TARGET = [0, 6, 8, 10, 7]
ENCODER, DECODER = 2, 3


def pair(positions: str = "sinusoidal", mlp: tiny.MLP = tiny.CONFIG.mlp, **changes: object) -> ModelConfig:
    attention = changes.pop("attention", tiny.Attention(4))
    encoder = Encoder(ENCODER, replace(attention, mask="full"), mlp)
    return tiny.config(positions, mlp=mlp, encoder=encoder, layers=DECODER, **changes, attention=vars(attention))


SHAPES = {
    "the original": pair(norm=tiny.Norm(place="after"), embedding=Embedding(scale=4.0)),
    "T5": pair(
        "relative",
        tiny.MLP(20, activation="gelu_tanh", gated=True, bias=False),
        norm=tiny.Norm("rms"),
        attention=tiny.Attention(4, bias=False, out_bias=False, scale=1.0),
    ),
    "BART": pair("learned", norm=tiny.Norm(place="after"), embedding=Embedding(norm=True)),
    "Pegasus": pair(norm=tiny.Norm(final=True)),
    "rotary, grouped": pair("rotary", attention=tiny.Attention(4, kv_heads=2)),
}


@contextmanager
def blocks_computed() -> Iterator[list[int]]:
    calls: list[int] = []
    real = Block.forward

    def counted(self, *args, **kwargs):
        calls.append(1)
        return real(self, *args, **kwargs)

    with patch.object(Block, "forward", counted):
        yield calls


def assert_same(a: Trace, b: Trace) -> None:
    assert list(a) == list(b)
    for name in a:
        assert torch.equal(a[name], b[name]), name


def full(model: Transformer, **options) -> Trace:
    return run(model, SOURCE, target=TARGET, **options)


POS, KEY = "batch pos d_model", "batch head pos key"
OF_ATTENTION = {
    "q": "batch pos head d_head",
    "scores": KEY,
    "mask": KEY,
    "masked_scores": KEY,
    "temperature": "head",
    "pattern": KEY,
    "z": "batch pos head d_head",
    "out": POS,
}
OF_BLOCK = {"resid_pre": POS, "resid_mid": POS, "resid_post": POS, "norm1.out": POS, "norm1.scale": "batch pos"}
OF_BLOCK |= {"norm2.out": POS, "norm2.scale": "batch pos", "mlp.pre": "batch pos d_mlp", "mlp.post": "batch pos d_mlp"}
OF_BLOCK |= {"mlp.out": POS} | {f"attn.{name}": axes for name, axes in OF_ATTENTION.items()}
OF_BLOCK |= {"attn.k": "batch pos head d_head", "attn.v": "batch pos head d_head"}
OF_CROSSING = {"resid_cross": POS, "norm_cross.out": POS, "norm_cross.scale": "batch pos"}
OF_CROSSING |= {f"cross_attn.{name}": axes for name, axes in OF_ATTENTION.items()}
OF_CROSSING |= {"cross_attn.k": "batch key head d_head", "cross_attn.v": "batch key head d_head"}


def expected_hooks(config: ModelConfig) -> dict[str, str]:
    own: dict[str, str] = {}
    if config.positions.kind == "relative":
        own["attn.bias"] = "head pos key"
    if config.positions.kind == "rotary":
        own |= {"attn.q_rotated": "batch pos head d_head", "attn.k_rotated": "batch pos head d_head"}
    if config.mlp.gated:
        own["mlp.up"] = "batch pos d_mlp"
    hooks = {"logits": "batch pos vocab"}
    for side, layers in (("encoder", ENCODER), ("decoder", DECODER)):
        hooks[f"{side}.embed.tokens"] = POS
        if config.positions.kind in ("learned", "sinusoidal"):
            hooks[f"{side}.embed.positions"] = POS
        of_block = OF_BLOCK | own | (OF_CROSSING if side == "decoder" else {})
        hooks |= {f"{side}.blocks.{i}.{name}": axes for i in range(layers) for name, axes in of_block.items()}
        for norm in ("embed.norm", "final_norm"):
            if config.embedding.norm if norm == "embed.norm" else config.final_norm:
                hooks |= {f"{side}.{norm}.out": POS, f"{side}.{norm}.scale": "batch pos"}
    return hooks


@pytest.mark.parametrize("shape", SHAPES)
def test_everything_is_recorded_under_its_name_and_axes(shape: str) -> None:
    config = SHAPES[shape]
    trace = full(tiny.model(config))
    assert {name: " ".join(trace.dims(name)) for name in trace} == expected_hooks(config)
    for name, value in trace.items():
        assert value.dim() == len(trace.dims(name)), name
    assert trace.stack("encoder.attn.pattern").shape == (ENCODER, 1, 4, 7, 7)
    assert trace.stack("decoder.attn.pattern").shape == (DECODER, 1, 4, 5, 5)
    assert trace.stack("cross_attn.pattern").shape == (DECODER, 1, 4, 5, 7)
    assert trace["logits"].shape == (1, 5, 11)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_head_through_its_share_of_the_output_sums_to_it(shape: str) -> None:
    model = tiny.model(SHAPES[shape])
    trace = full(model, keep=["*.head_out", "*attn.out"])
    for attention in ("encoder.blocks.1.attn", "decoder.blocks.2.attn", "decoder.blocks.2.cross_attn"):
        bias = model.get_submodule(attention).out.bias
        total = trace[f"{attention}.head_out"].sum(2) + (0 if bias is None else bias)
        torch.testing.assert_close(trace[f"{attention}.out"], total)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_encoder_sees_both_sides_the_decoder_what_was_written_and_all_of_the_source(shape: str) -> None:
    trace = full(tiny.model(SHAPES[shape]))
    assert trace["encoder.blocks.0.attn.mask"].all()
    assert torch.equal(trace["decoder.blocks.0.attn.mask"][0, 0], torch.ones(5, 5, dtype=torch.bool).tril())
    assert trace["decoder.blocks.0.cross_attn.mask"].all()
    assert (trace["decoder.blocks.0.cross_attn.pattern"] > 0).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_fused_form_equals_the_explicit_one(shape: str) -> None:
    model = tiny.model(SHAPES[shape])
    torch.testing.assert_close(full(model, keep="logits")["logits"], full(model)["logits"], atol=1e-5, rtol=0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("steps", [(1, 1, 1, 1, 1), (2, 3), (4, 1)])
def test_a_cache_gives_the_same_numbers_and_reads_the_source_once(steps: tuple[int, ...], shape: str) -> None:
    model = tiny.model(SHAPES[shape])
    whole = full(model)
    cache = KVCache(model.config, 1, len(TARGET), model.table, source=len(SOURCE))
    begin = 0
    for i, count in enumerate(steps):
        with blocks_computed() as computed:
            trace = run(model, SOURCE, target=[TARGET[begin : begin + count]], cache=cache)
        assert len(computed) == DECODER + (ENCODER if i == 0 else 0)
        here = slice(begin, begin + count)
        torch.testing.assert_close(trace["logits"], whole["logits"][:, here], atol=1e-5, rtol=1e-5)
        for layer in range(DECODER):
            for part, keys in (("attn", begin + count), ("cross_attn", len(SOURCE))):
                name = f"decoder.blocks.{layer}.{part}.pattern"
                torch.testing.assert_close(trace[name], whole[name][:, :, here, :keys], atol=1e-5, rtol=1e-5)
        begin += count
    assert cache.tokens == len(TARGET)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_cache_of_padded_sources_gives_each_its_own_numbers(shape: str) -> None:
    model = tiny.model(SHAPES[shape])
    sources = [SOURCE, SOURCE[:3]]
    cache = KVCache(model.config, 2, len(TARGET), model.table, source=len(SOURCE))
    for i, id in enumerate(TARGET):
        logits = run(model, sources, target=[[id], [id]], cache=cache)["logits"]
        for row, source in enumerate(sources):
            alone = run(model, source, target=TARGET[: i + 1])["logits"][0, -1]
            torch.testing.assert_close(logits[row, -1], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_padded_pairs_equal_single_ones(shape: str) -> None:
    model = tiny.model(SHAPES[shape])
    sources, targets = [SOURCE, SOURCE[:3], SOURCE[2:6]], [TARGET[:2], TARGET, TARGET[:3]]
    together = run(model, sources, target=targets)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = run(model, source, target=target)
        for name in ("logits", "decoder.blocks.2.resid_post", "decoder.blocks.1.cross_attn.z"):
            torch.testing.assert_close(together[name][row, : len(target)], alone[name][0], atol=1e-4, rtol=1e-4)
        name = "encoder.blocks.1.attn.z"
        torch.testing.assert_close(together[name][row, : len(source)], alone[name][0], atol=1e-5, rtol=1e-5)
        crossing = together["decoder.blocks.0.cross_attn.pattern"][row, :, : len(target)]
        assert (crossing[..., len(source) :] == 0).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_without_a_target_the_decoder_reads_its_start_token(shape: str) -> None:
    config = SHAPES[shape]
    model = tiny.model(replace(config, encoder=replace(config.encoder, start=4)))
    assert_same(run(model, SOURCE), run(model, SOURCE, target=[4]))


def edits_in(side: str, layer: int) -> list[Edit]:
    block = f"{side}.blocks.{layer}"
    edits: list[Edit] = [
        SilenceHeads(layer, [1], stack=side),
        AttentionTemperature(3.0, layer=layer, stack=side),
        Scale(f"{block}.resid_pre", 1.5),
        Scale(f"{block}.norm1.scale", 2.0),
        Replace(f"{block}.attn.v", 0.0, {"pos": 0}),
        Scale(f"{block}.resid_post", -1.0, {"pos": [2, 3]}),
    ]
    if side == "decoder":
        edits += [
            SilenceHeads(layer, [1, 2], cross=True),
            SilenceHeads(layer, [0], how="uniform", cross=True),
            Scale(f"{block}.resid_cross", 0.5),
            Scale(f"{block}.norm_cross.scale", 2.0),
            DrawMask(layer, [[(i + j) % 2 == 0 for j in range(7)] for i in range(5)], cross=True),
        ]
    return edits


PLACES = [("encoder", 0), ("encoder", 1), ("decoder", 0), ("decoder", 1), ("decoder", 2)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("side", "layer"), PLACES)
def test_an_edited_run_from_a_base_is_bit_identical_and_computes_only_what_follows(
    side: str, layer: int, shape: str
) -> None:
    model = tiny.model(SHAPES[shape])
    base = full(model)
    before = layer + (ENCODER if side == "decoder" else 0)
    for edit in edits_in(side, layer):
        with blocks_computed() as computed:
            edited = full(model, edits=[edit], base=base)
        assert len(computed) == ENCODER + DECODER - before
        whole = full(model, edits=[edit])
        assert_same(edited, whole)
        assert not torch.equal(whole["logits"], base["logits"]), edit
        assert_same(full(model, base=edited), base)


@pytest.mark.parametrize("shape", SHAPES)
def test_edits_between_and_behind_the_stacks_resume_too(shape: str) -> None:
    model = tiny.model(SHAPES[shape])
    base = full(model)
    cases = [("decoder.embed.tokens", DECODER), ("logits", 0)]
    cases += [("encoder.final_norm.out", DECODER + 1), ("decoder.final_norm.out", 0)] if model.config.final_norm else []
    cases += [("encoder.embed.norm.out", ENCODER + DECODER)] if model.config.embedding.norm else []
    for name, blocks in cases:
        edits = [Scale(name, 2.0)]
        with blocks_computed() as computed:
            edited = full(model, edits=edits, base=base)
        assert len(computed) == blocks, name
        assert_same(edited, full(model, edits=edits))


@pytest.mark.parametrize("shape", SHAPES)
def test_another_mask_of_the_decoder_leaves_the_encoder_as_it_is(shape: str) -> None:
    model = tiny.model(SHAPES[shape])
    base = full(model)
    with blocks_computed() as computed:
        other = full(model, mask=Full(), base=base)
    assert len(computed) == DECODER
    assert_same(other, full(model, mask=Full()))
    assert torch.equal(other["encoder.blocks.1.resid_post"], base["encoder.blocks.1.resid_post"])


@pytest.mark.parametrize("shape", SHAPES)
def test_a_padded_batch_of_pairs_continues_from_its_base(shape: str) -> None:
    model = tiny.model(SHAPES[shape])
    sources, targets = [SOURCE, SOURCE[:3]], [TARGET[:2], TARGET]
    base = run(model, sources, target=targets)
    for edit in (SilenceHeads(1, [0], how="mean", stack="encoder"), SilenceHeads(2, [0], how="mean", cross=True)):
        whole = run(model, sources, target=targets, edits=[edit])
        assert_same(run(model, sources, target=targets, edits=[edit], base=base), whole)


def test_a_base_of_another_target_is_refused() -> None:
    model = tiny.model(SHAPES["T5"])
    base = full(model)
    with pytest.raises(ValueError, match="base must be a run on the same tokens"):
        run(model, SOURCE, target=TARGET[:-1], base=base)
    with pytest.raises(ValueError, match="base must be a run on the same tokens"):
        run(model, SOURCE, base=base)


def test_a_base_that_told_two_texts_apart_elsewhere_is_refused() -> None:
    model = tiny.model(tiny.config(attention={"mask": "full"}, embedding=Embedding(segments=2)))
    plain, count = Encoding.from_ids(SOURCE), len(SOURCE)
    base = run(model, plain)
    assert_same(run(model, SOURCE, base=base), base)
    with pytest.raises(ValueError, match="base must be a run with the same segments"):
        run(model, replace(plain, segments=(0,) * 3 + (1,) * (count - 3)), base=base)


def test_targets_that_do_not_fit_are_said() -> None:
    model = tiny.model(SHAPES["BART"])
    with pytest.raises(ValueError, match="one target for each text, got 1 for 2"):
        run(model, [SOURCE, SOURCE], target=TARGET)
    with pytest.raises(ValueError, match="reads at most 24 tokens, got 25"):
        run(model, SOURCE, target=[1] * 25)
    with pytest.raises(ValueError, match="token ids must lie in 0..10, got 11"):
        run(model, SOURCE, target=[11])
    with pytest.raises(ValueError, match="this model has one stack; leave the target out"):
        run(tiny.model(), SOURCE, target=TARGET)
