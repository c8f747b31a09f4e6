"""Every count against what is there: the tensors of the model, PyTorch's own counter, and what autograd keeps."""

import math
import re
from copy import deepcopy
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from engine.analysis.sizes import activations, count, envelope, forward, kv_cache, parameters, per_token, states
from engine.analysis.sizes.formula import Formula, Integer, Minimum, Symbol, factor_out, total
from engine.model.config import (
    MLP,
    Attention,
    Embedding,
    Encoder,
    Experts,
    Infill,
    Latent,
    ModelConfig,
    Norm,
    OtherRotation,
    OutputHead,
    Patches,
    Positions,
    Probe,
    Sound,
    TextVector,
    VectorMap,
)
from engine.model.layers.cache import KVCache
from engine.model.presets import NAMED, blueprint
from engine.model.transformer import Transformer, initialise

torch.set_num_threads(1)
BATCH, LENGTH, TARGET = 2, 24, 9
ROTARY = Positions("rotary")
HEADS = Attention(heads=4)
SMALL = ModelConfig(vocab_size=50, context=LENGTH, d_model=32, layers=3, attention=HEADS, mlp=MLP(128))
PLAIN = Attention(4, bias=False, out_bias=False, scale=1.0)
GATED = MLP(96, "silu", gated=True, bias=False)
SEEING = replace(PLAIN, mask="full")
NARROW = Embedding(width=20, mapped="tokens")

# One of every kind, small enough to run.
KINDS: dict[str, ModelConfig] = {
    "gpt2": SMALL,
    "llama": replace(
        SMALL, attention=replace(HEADS, kv_heads=2), mlp=GATED, positions=ROTARY, norm=Norm("rms"), tied=False
    ),
    "qwen": replace(
        SMALL, attention=replace(HEADS, kv_heads=2, qk_norm="each", window=5), mlp=GATED, positions=ROTARY,
        norm=Norm("rms"),
    ),
    "batch-norm": replace(SMALL, norm=Norm("batch", "around")),
    "olmo": replace(
        SMALL, attention=replace(HEADS, qk_norm="all"), positions=ROTARY, norm=Norm("rms", "output"), mlp=GATED
    ),
    "olmo-1": replace(SMALL, norm=Norm(learned="none"), positions=ROTARY, mlp=GATED),
    "cohere": replace(
        SMALL, norm=Norm(learned="weight"), positions=Positions("rotary", pairs="neighbours"), mlp=GATED,
        sublayers="parallel_one_norm", head=OutputHead(scale=0.1),
    ),
    "granite": replace(
        SMALL, attention=replace(HEADS, kv_heads=2, scale=0.02), norm=Norm("rms"), positions=ROTARY, mlp=GATED,
        residual_scale=0.2, embedding=Embedding(scale=12.0), head=OutputHead(scale=0.1),
    ),
    "nanochat": replace(
        SMALL, attention=replace(HEADS, kv_heads=2, qk_norm="head"), norm=Norm("rms", learned="none"),
        positions=ROTARY, mlp=MLP(128, "relu2", bias=False), head=OutputHead(softcap=15.0),
    ),
    "unlearned-around": replace(SMALL, norm=Norm("rms", "around", learned="none"), sublayers="parallel"),
    "unlearned-masked": replace(
        SMALL, attention=replace(HEADS, mask="full"), norm=Norm(place="after", learned="none"),
        embedding=Embedding(segments=2, norm=True), head=OutputHead("masked", bias=True),
    ),
    "mixtral": replace(
        SMALL, mlp=replace(GATED, experts=Experts(6, 2)), positions=ROTARY, norm=Norm("rms"), tied=False
    ),
    "experts-some-layers-and-shared": replace(
        SMALL,
        mlp=MLP(24, "relu", experts=Experts(8, 3, renormalised=False, shared=40, shared_gate=True, dense=(0,))),
    ),
    "experts-of-all-kinds": replace(
        SMALL,
        mlp=MLP(
            24, "silu", True, slope=1.702, limit=7.0, shift=1.0,
            experts=Experts(
                8, 3, "sigmoid", scale=2.5, bias=True, groups=4, groups_used=2, group_best=2, correction=True,
                shared=12, dense=(0, 2), d_dense=50,
            ),
        ),
    ),
    "norms-of-outputs-parallel": replace(SMALL, norm=Norm(place="output"), sublayers="parallel"),
    "t5": replace(
        SMALL, attention=PLAIN, mlp=MLP(128, "relu", bias=False), positions=Positions("relative"), norm=Norm("rms"),
        head=OutputHead(scale=0.3), encoder=Encoder(2, SEEING, MLP(128, "relu", bias=False)),
    ),
    "bart": replace(
        SMALL, mlp=MLP(128, "gelu"), norm=Norm(place="after"), embedding=Embedding(norm=True),
        encoder=Encoder(2, replace(HEADS, mask="full"), MLP(128, "gelu")),
    ),
    "bert": replace(
        SMALL, attention=replace(HEADS, mask="full"), norm=Norm(place="after"),
        embedding=Embedding(segments=2, norm=True), head=OutputHead("masked", bias=True),
    ),
    "mpnet": replace(
        SMALL, attention=replace(HEADS, mask="full"), norm=Norm(place="after"), embedding=Embedding(norm=True),
        positions=Positions(relative_bias=True, counted="tokens", padding=1),
    ),
    "deberta": replace(
        SMALL, attention=replace(HEADS, mask="full", key_bias=False), norm=Norm(place="after"),
        embedding=Embedding(norm=True),
        positions=Positions("disentangled", buckets=6, farthest=20, own_maps=True, added=True),
    ),
    "deberta-v3": replace(
        SMALL, attention=Attention(4, mask="full"), norm=Norm(place="after"), embedding=Embedding(norm=True),
        positions=Positions("disentangled", buckets=6, farthest=20, normed=True), head=OutputHead("masked", bias=True),
    ),
    **{
        f"modernbert-{kind}": replace(
            SMALL, attention=Attention(4, bias=False, out_bias=False, mask="full", window=5, windowed=(1,)), mlp=GATED,
            positions=ROTARY, norm=Norm(learned="weight", first=False), embedding=Embedding(norm=True), head=head,
        )
        for kind, head in {
            "masked": OutputHead("masked", bias=True, dense_bias=False),
            "first": OutputHead("sequence", 3, dense=True, norm=True),
            "mean": OutputHead("sequence", 3, read="mean", dense=True, dense_bias=False, norm=True),
            "token": OutputHead("token", 3, dense=True, norm=True),
        }.items()
    },
    "esm": replace(
        SMALL, attention=replace(HEADS, mask="full"), positions=ROTARY, embedding=Embedding(token_dropout=7),
        head=OutputHead("masked", bias=True),
    ),
    "gpt-j": replace(
        SMALL, positions=Positions("rotary", turned=4, pairs="neighbours"), sublayers="parallel_one_norm", tied=False,
        head=OutputHead(bias=True),
    ),
    "neox": replace(SMALL, positions=Positions("rotary", turned=4), sublayers="parallel", tied=False),
    "imagegpt": replace(SMALL, mlp=MLP(128, "quick_gelu"), norm=Norm("rms"), tied=False, head=OutputHead(outputs=49)),
    "gemma": replace(
        SMALL, attention=replace(HEADS, softcap=30.0, kv_heads=2), mlp=MLP(128, "silu", True),
        norm=Norm("rms", "around"), positions=ROTARY, head=OutputHead(softcap=30.0),
    ),
    "gemma3": replace(
        SMALL, attention=replace(HEADS, window=5, windowed=(0, 2)), norm=Norm("rms", "around"),
        positions=replace(ROTARY, other=OtherRotation((0, 2), 100.0)),
    ),
    "smollm3": replace(SMALL, positions=replace(ROTARY, other=OtherRotation((1,)))),
    "capped": replace(SMALL, attention=replace(HEADS, softcap=30.0, mask="full")),
    "capped-windows": replace(SMALL, attention=replace(HEADS, softcap=30.0, window=5, windowed=(0, 2))),
    "latent": replace(
        SMALL,
        attention=Attention(4, d_head=12, bias=False, latent=Latent(10, 14, 6, bias=True)),
        positions=Positions("rotary", turned=4), norm=Norm("rms"), mlp=GATED,
    ),
    "latent-queries-of-the-stream": replace(
        SMALL, attention=Attention(4, bias=False, out_bias=False, latent=Latent(10)),
        positions=Positions("rotary", turned=2), norm=Norm("rms"),
    ),
    "sinks": replace(SMALL, attention=replace(HEADS, sinks=True, kv_heads=2, window=5, windowed=(0,))),
    "nearest": replace(SMALL, attention=replace(HEADS, nearest=6)),
    "alibi": replace(SMALL, positions=Positions("alibi")),
    "glm": replace(
        SMALL, attention=replace(HEADS, mask="prefix"), positions=Positions(axes=2), infill=Infill(2, 3)
    ),
    "chatglm": replace(
        SMALL, attention=replace(HEADS, mask="prefix"), positions=Positions("rotary", axes=2), infill=Infill(2, 3)
    ),
    "vit": replace(
        SMALL, context=10, vocab_size=1, attention=replace(HEADS, mask="full"),
        embedding=Embedding(patches=Patches(12, 4)), head=OutputHead("sequence", 7),
    ),
    "vit-pooled": replace(
        SMALL, context=10, vocab_size=1, attention=replace(HEADS, mask="full"),
        embedding=Embedding(patches=Patches(12, 4)), head=OutputHead("sequence", 7, pooler=True),
    ),
    "tagger": replace(SMALL, attention=replace(HEADS, mask="full"), head=OutputHead("token", 9)),
    "albert": replace(
        SMALL, attention=replace(HEADS, mask="full"), norm=Norm(place="after"), distinct=1,
        embedding=Embedding(segments=2, norm=True, width=20), head=OutputHead("masked", bias=True),
    ),
    "shared-in-threes": replace(SMALL, layers=6, distinct=2, norm=Norm("rms")),
    "opt-350m": replace(
        SMALL, mlp=MLP(128, "relu"), norm=Norm(place="after"), embedding=Embedding(width=20, mapped="tokens")
    ),
    "opt-untied": replace(SMALL, tied=False, embedding=Embedding(norm=True, width=20, mapped="tokens")),
    "electra": replace(
        SMALL, attention=replace(HEADS, mask="full"), norm=Norm(place="after"),
        embedding=Embedding(segments=2, norm=True, width=20), head=OutputHead("token", 1, dense=True),
    ),
    "electra-judging": replace(
        SMALL, attention=replace(HEADS, mask="full"), norm=Norm(place="after"), embedding=Embedding(norm=True),
        head=OutputHead("sequence", 3, pooler=True, pooler_activation="gelu"),
    ),
    "distilbert": replace(
        SMALL, attention=replace(HEADS, mask="full"), norm=Norm(place="after"), embedding=Embedding(norm=True),
        head=OutputHead("sequence", 3, pooler=True, pooler_activation="relu"),
    ),
    "judge": replace(SMALL, head=OutputHead("sequence", 3, read="last", bias=False)),
    "imagegpt-judging": replace(
        SMALL, mlp=MLP(128, "quick_gelu"), norm=Norm("rms"), head=OutputHead("sequence", 3, read="mean", bias=False)
    ),
    "opt-350m-judging": replace(
        SMALL, norm=Norm(place="after"), embedding=NARROW,
        head=OutputHead("sequence", 3, read="last", bias=False, narrow=True),
    ),
    "opt-350m-answering": replace(SMALL, embedding=NARROW, head=OutputHead("span", narrow=True)),
    "narrow-tagger": replace(SMALL, embedding=NARROW, head=OutputHead("token", 3, dense=True, narrow=True)),
    "narrow-mean": replace(SMALL, embedding=NARROW, head=OutputHead("sequence", 3, read="mean", narrow=True)),
    "narrow-pooler": replace(SMALL, embedding=NARROW, head=OutputHead("sequence", 3, pooler=True, narrow=True)),
    "judge-of-pairs": replace(
        SMALL, encoder=Encoder(2, replace(HEADS, mask="full"), MLP(128)),
        head=OutputHead("sequence", 3, read="last", pooler=True),
    ),
    "answers": replace(SMALL, mlp=MLP(128, "tanh"), attention=replace(HEADS, mask="full"), head=OutputHead("span")),
    "whisper": replace(
        SMALL, attention=replace(HEADS, key_bias=False), embedding=Embedding(sound=Sound(7, LENGTH)),
        encoder=Encoder(2, replace(HEADS, mask="full", key_bias=False), MLP(128, "gelu")),
    ),
    "hearing": replace(
        SMALL, context=LENGTH, vocab_size=1, attention=replace(HEADS, mask="full"),
        embedding=Embedding(sound=Sound(7, LENGTH)), head=OutputHead("sequence", 5, read="mean"),
    ),
    **{f"beit-{bias}": replace(
        SMALL, context=10, vocab_size=1, attention=replace(HEADS, mask="full", key_bias=False), layer_scale=True,
        positions=Positions("none", picture_bias=bias), embedding=Embedding(patches=Patches(12, 4)),
        norm=Norm(final=not pooled), head=OutputHead("sequence", 5, read="vector"),
        vector=TextVector(norm=True, patches=True) if pooled else TextVector(("first",)),
    ) for bias, pooled in (("shared", True), ("each", False))},
    "dinov2-classes": replace(
        SMALL, context=12, vocab_size=1, attention=replace(HEADS, mask="full"), layer_scale=True,
        embedding=Embedding(patches=Patches(12, 4, registers=2)), head=OutputHead("sequence", 5, read="vector"),
        vector=TextVector(("first", "mean"), patches=True),
    ),
    "deit": replace(
        SMALL, context=11, vocab_size=1, attention=replace(HEADS, mask="full"),
        embedding=Embedding(patches=Patches(12, 4, distilled=True)), head=OutputHead("sequence", 7, averaged=True),
    ),
}  # fmt: skip


BODY = replace(SMALL, embedding=NARROW, head=OutputHead("none", narrow=True))
MAPPED = TextVector(("mean", "max"), (VectorMap(24), VectorMap(12, bias=False)), unit=True)
SENTENCE = replace(SMALL, attention=replace(HEADS, mask="full"), head=OutputHead("none"), vector=MAPPED)
TOWER = replace(
    SENTENCE, context=3 + 9, vocab_size=1, layer_scale=True,
    embedding=Embedding(patches=Patches(12, 4, registers=2, bias=False, mask=True, trained=16)),
    vector=TextVector(("mean",), norm=True, probe=Probe(2, 24)),
)  # fmt: skip
EVERYTHING = (
    KINDS
    | {"opt-350m-body": BODY, "sentence": SENTENCE, "tower": TOWER}
    | {name: one.config for name, one in NAMED.items()}
)


def inputs(config: ModelConfig, batch: int = BATCH) -> tuple[Tensor, dict[str, Tensor], int]:
    """What a model reads, what its decoder reads, and how many tokens that is."""
    patches = config.embedding.patches
    if patches is not None:
        return torch.randn(batch, patches.channels, patches.image, patches.image), {}, config.context
    ids = torch.arange(4, 4 + LENGTH).expand(batch, LENGTH).contiguous()
    if (sound := config.embedding.sound) is not None:
        target = {} if config.encoder is None else {"target": ids[:, :TARGET]}
        return torch.randn(batch, sound.bins, sound.frames), target, sound.positions
    return ids, {} if config.encoder is None else {"target": ids[:, :TARGET]}, LENGTH


def read(formula: Formula) -> int:
    """The formula's text, worked out by Python instead of by the formula."""
    names = {symbol.name: symbol.value for symbol in formula.symbols()}
    text = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: f"**{''.join(str('⁰¹²³⁴⁵⁶⁷⁸⁹'.index(c)) for c in m[1])}", formula.text)
    return eval(text.replace("·", "*").replace("−", "-").replace(",", ", "), {"min": min}, names)


def read_numbers(formula: Formula) -> int:
    text = re.sub(r"(?<=\d),(?=\d{3})", "", formula.text_numbers)
    text = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: f"**{''.join(str('⁰¹²³⁴⁵⁶⁷⁸⁹'.index(c)) for c in m[1])}", text)
    return eval(text.replace("·", "*").replace("−", "-"), {"min": min}, {})


def test_parts_are_the_models_tensors_each_in_exactly_one(subtests: pytest.Subtests) -> None:
    for name, config in EVERYTHING.items():
        with subtests.test(name=name):
            tensors = {name: parameter.numel() for name, parameter in blueprint(config).named_parameters()}
            unclaimed = dict(tensors)
            for part in parameters(config):
                own = [name for name in tensors if fnmatchcase(name, part.tensors)]
                assert part.count == sum(tensors[name] for name in own), part.name
                for name in own:
                    del unclaimed[name]  # a KeyError here: two parts claim it
            assert not unclaimed
            assert count(config) == sum(tensors.values())


def test_every_formula_evaluates_to_its_count_as_it_is_written(subtests: pytest.Subtests) -> None:
    for name, config in EVERYTHING.items():
        with subtests.test(name=name):
            length = min(config.context, 300)
            formulas = [part.formula for part in parameters(config)] + [step.formula for step in envelope(config)]
            formulas += [work.formula for work in forward(config, length, 200)]
            formulas += [
                part.formula for part in [*kv_cache(config, 3, length), *activations(config, 3, length, 2, 200)]
            ]
            for formula in [*formulas, *(part.formula for part in states(config))]:
                assert all(symbol.definition for symbol in formula.symbols())
                assert read(formula) == formula.value, formula.text
                assert read_numbers(formula) == formula.value, formula.text_numbers


def test_the_envelope_and_what_it_loses_are_all_parameters(subtests: pytest.Subtests) -> None:
    for name, config in EVERYTHING.items():
        with subtests.test(name=name):
            assert sum(step.count for step in envelope(config)) == count(config)


def test_bert_base_loses_its_output_matrices_and_five_small_parts() -> None:
    steps = {step.name: step.count for step in envelope(NAMED["bert-base"].config)}
    assert steps == {
        "estimate": 12 * (3 * 768**2 + 8 * 768**2) + 30_522 * 768,  # 101,297,664
        "W_O": 12 * 768**2,
        "positions": 512 * 768,
        "segments": 2 * 768,
        "biases": 12 * (4 * 768 + 3072 + 768),
        "norms": 2 * 768 + 12 * 4 * 768,
        "pooler": 768**2 + 768,
    }
    assert sum(steps.values()) == 109_482_240


COUNTED = ("bert-base", "gpt", "gpt2", "t5-small", "bart-base", "llama-3-8b", "qwen3-0.6b", "pythia-70m", "vit-b-16")


# PyTorch computes what a window forbids too, and here it is not counted.
WHOLE = [name for name, one in KINDS.items() if one.attention.window is None]


def test_operations_are_those_that_pytorch_counts(subtests: pytest.Subtests) -> None:
    for name in [*WHOLE, "opt-350m-body", *COUNTED]:
        with subtests.test(name=name):
            config = EVERYTHING[name]
            routed = (
                config.mlp is not None and config.mlp.experts is not None
            )  # by numbers, which meta tensors have not
            if config.positions.counted == "tokens":  # by ids too; the work is the same
                config = replace(config, positions=replace(config.positions, counted="all"))
            place = "cpu" if routed else "meta"
            model = initialise(Transformer(config), 0) if routed else deepcopy(blueprint(config)).to("meta")
            with torch.device(place), torch.no_grad(), FlopCounterMode(display=False) as counter:
                ids, target, length = inputs(config, batch=1)
                model(ids.to(place), **{key: value.to(place) for key, value in target.items()})
            expected = counter.get_total_flops()
            work = forward(config, length, TARGET)
            expected += sum(
                one.flops for one in work if routed and one.quadratic
            )  # PyTorch's counter has no CPU kernel
            assert sum(one.flops for one in work) == expected
            read_tokens = length + (TARGET if config.encoder else 0)
            assert per_token(config, length, TARGET) == expected / read_tokens


def test_a_window_needs_only_what_it_reaches() -> None:
    wide, near = (replace(SMALL, attention=replace(HEADS, window=window)) for window in (None, 8))
    square = [next(work.flops for work in forward(config, 24) if work.quadratic) for config in (wide, near)]
    assert square == [4 * 24 * 24 * 3 * 32, 4 * 24 * 8 * 3 * 32]


@pytest.mark.parametrize("name", [name for name, config in KINDS.items() if config.generates])
def test_the_cache_is_as_large_as_the_engines(name: str) -> None:
    config = replace(KINDS[name], attention=replace(KINDS[name].attention, window=None))
    source = LENGTH if config.encoder else 0
    engines = KVCache(config, 5, 17, like=torch.empty(0, dtype=torch.bfloat16), source=source)
    assert sum(part.bytes for part in kv_cache(config, 5, 17, 2, source=LENGTH)) == engines.bytes


def test_a_windows_cache_stops_growing_and_an_encoder_has_none() -> None:
    mistral = NAMED["mistral-7b"].config
    one, full, longer = (sum(p.bytes for p in kv_cache(mistral, 1, length)) for length in (1, 4096, 32_768))
    assert (one, full, longer) == (2 * 32 * 8 * 128 * 2, 4096 * one, 4096 * one)
    assert kv_cache(NAMED["bert-base"].config, 1, 512) == []
    gemma = NAMED["gemma-2-2b"].config  # every other layer of 26 has a window of 4096
    assert sum(p.bytes for p in kv_cache(gemma, 1, 8192)) == 2 * 2 * 4 * 256 * 13 * (4096 + 8192)


def kept_by_autograd(config: ModelConfig) -> int:
    """Bytes of every floating-point or bool tensor that one forward pass and its loss save for backward, once each."""
    model = initialise(Transformer(config), seed=0)
    ids, target, _ = inputs(config)
    known = {tensor.untyped_storage().data_ptr() for tensor in [*model.parameters(), *model.buffers()]}
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        place = tensor.untyped_storage().data_ptr()
        if place not in known and tensor.dtype != torch.int64 and tensor.dim():
            kept[place] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        logits = model(ids, **target).flatten(0, -2)
        cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


@pytest.mark.parametrize("name", KINDS)
def test_activations_are_what_autograd_keeps_to_the_byte(name: str) -> None:
    config = KINDS[name]
    length = inputs(config)[2]
    assert sum(part.bytes for part in activations(config, BATCH, length, 4, TARGET)) == kept_by_autograd(config)


def test_adam_takes_sixteen_bytes_a_parameter() -> None:
    config = NAMED["llama-3-70b"].config
    assert sum(part.bytes for part in states(config)) == 16 * 70_553_706_496


def test_formulas_are_written_as_one_would_write_them() -> None:
    d, layers, wide = Symbol("d", 768), Symbol("L", 12), Symbol("d_ff", 3072)
    assert (layers * d * d).text == "L·d²"
    assert (layers * d * wide).tex == r"L \cdot d \cdot d_{\text{ff}}"
    assert (2 * (3 * d)).text_numbers == "6·768"
    assert total([4 * d, d, -2 * wide]).text == "5·d − 2·d_ff"
    assert total([-1 * wide, d]).tex_numbers == r"768 - 3{,}072"
    assert (d * total([d, wide])).text == "d·(d + d_ff)"
    assert factor_out(3 * layers * d * wide - 8 * layers * d * d).text == "L·d·(3·d_ff − 8·d)"
    assert factor_out(4 * d + 2 * layers * d).text == "2·d·(2 + L)" and factor_out(d) is d
    assert Minimum(d, wide).text == "min(d, d_ff)"
    assert (d - d).value == 0 and (0 * d) == Integer(0)
    assert (layers * d).value == math.prod((12, 768))
