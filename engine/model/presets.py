"""Published models as configs, by name: a table. Nothing here has weights; `blueprint` builds one without memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import torch

from engine.model.config import (
    MLP,
    Attention,
    Embedding,
    Encoder,
    Infill,
    ModelConfig,
    Norm,
    NormPlace,
    OutputHead,
    Patches,
    Positions,
)
from engine.model.transformer import Transformer

BERT, GPT1 = "Devlin et al. 2019", "Radford et al. 2018, section 4.1"
GPT2, GPT3 = "Radford et al. 2019, table 2", "Brown et al. 2020, table 2.1"
VASWANI, BART = "Vaswani et al. 2017, table 3", "Lewis et al. 2020, section 3"
T5, T5_1_1 = "Raffel et al. 2020, section 3.7", "Shazeer 2020; T5 v1.1 as released"
LLAMA2, LLAMA3 = "Touvron et al. 2023b, table 1", "Grattafiori et al. 2024, table 3; Llama 3 as released"
GEMMA2, QWEN3 = "Gemma Team 2024, table 1", "Yang et al. 2025, table 1"
ALBERT, OPT = "Lan et al. 2020, table 1", "Zhang et al. 2022, table 1"
PYTHIA, VIT, IGPT = "Biderman et al. 2023, table 1", "Dosovitskiy et al. 2021, table 1", "Chen et al. 2020, section 3.3"


@dataclass(frozen=True)
class Named:
    """`source` is the paper and where in it; `note` says where this config and what was released differ."""

    config: ModelConfig
    year: int
    source: str
    note: str = ""


@lru_cache(maxsize=8)
def blueprint(config: ModelConfig) -> Transformer:
    """The model on the meta device: every name and shape, and no numbers, whatever its size."""
    with torch.device("meta"):
        return Transformer(config)


def original(d_model: int, d_mlp: int, heads: int) -> Named:
    attention = Attention(heads, bias=False, out_bias=False)
    mlp = MLP(d_mlp, "relu")
    config = ModelConfig(
        vocab_size=37_000, context=512, d_model=d_model, layers=6, attention=attention, mlp=mlp,
        positions=Positions("sinusoidal"), norm=Norm(place="after"), embedding=Embedding(scale=math.sqrt(d_model)),
        encoder=Encoder(6, replace(attention, mask="full"), mlp),
    )  # fmt: skip
    return Named(config, 2017, VASWANI, "Its vocabulary is about 37,000 pieces; sinusoids set no limit to its length.")


def bert(d_model: int, layers: int) -> Named:
    """Model with its pooler, as pre-trained, and without the two heads that pre-training puts on top."""
    config = ModelConfig(
        vocab_size=30_522, context=512, d_model=d_model, layers=layers, mlp=MLP(4 * d_model, "gelu"),
        attention=Attention(d_model // 64, mask="full"), norm=Norm(place="after", eps=1e-12),
        embedding=Embedding(segments=2, norm=True), head=OutputHead("none", pooler=True),
    )  # fmt: skip
    return Named(config, 2019, f"{BERT}, section 3")


def roberta(d_model: int, layers: int) -> Named:
    """BERT's body, of another training; its files have two rows of positions more."""
    body = bert(d_model, layers).config
    config = replace(
        body, vocab_size=50_265, norm=replace(body.norm, eps=1e-5), embedding=Embedding(segments=1, norm=True)
    )
    return Named(config, 2019, "Liu et al. 2019, section 3", "Its files have two rows of positions more, for padding.")


def distilbert() -> Named:
    config = replace(bert(768, 6).config, embedding=Embedding(norm=True), head=OutputHead("none"))
    return Named(config, 2019, "Sanh et al. 2019, section 3")


def electra(d_model: int, layers: int, heads: int) -> Named:
    body = bert(d_model, layers).config
    config = replace(
        body,
        attention=replace(body.attention, heads=heads),
        embedding=replace(body.embedding, width=128),
        head=OutputHead("token", classes=1, dense=True),
    )
    return Named(config, 2020, "Clark et al. 2020, table 6", "The discriminator, with its layer and one logit on top.")


def albert(d_model: int, layers: int) -> Named:
    body = bert(d_model, layers).config
    config = replace(
        body, vocab_size=30_000, distinct=1, mlp=MLP(4 * d_model), embedding=replace(body.embedding, width=128)
    )
    return Named(config, 2020, ALBERT, "One block, used in every layer; token vectors 128 wide.")


def gpt(
    d_model: int, layers: int, heads: int, *, context: int, vocab_size: int = 50_257, norm: NormPlace = "before"
) -> ModelConfig:
    return ModelConfig(
        vocab_size=vocab_size, context=context, d_model=d_model, layers=layers, attention=Attention(heads),
        mlp=MLP(4 * d_model), norm=Norm(place=norm),
    )  # fmt: skip


def opt(d_model: int, layers: int, heads: int) -> Named:
    plain = gpt(d_model, layers, heads, context=2048, vocab_size=50_272)
    config = replace(plain, mlp=MLP(4 * d_model, "relu"))
    return Named(config, 2022, OPT, "Its files have two rows of positions more, which no token reads.")


def opt_350m() -> Named:
    """The odd one of its family: norms after, and token vectors half as wide as the stream."""
    one = opt(1024, 24, 16)
    narrow = Embedding(width=512, mapped="tokens")
    return replace(one, config=replace(one.config, norm=Norm(place="after"), embedding=narrow))


def gpt_neo(d_model: int, layers: int, heads: int) -> Named:
    """Every other layer sees 256 tokens back."""
    attention = Attention(heads, bias=False, window=256, windowed=tuple(range(1, layers, 2)), scale=1.0)
    config = replace(gpt(d_model, layers, heads, context=2048), attention=attention)
    return Named(config, 2021, "Black et al. 2021, GPT-Neo as released")


def phi2() -> Named:
    config = ModelConfig(
        vocab_size=51_200, context=2048, d_model=2560, layers=32, mlp=MLP(10_240), attention=Attention(32),
        sublayers="parallel_one_norm", tied=False, positions=Positions("rotary", turned=32), head=OutputHead(bias=True),
    )  # fmt: skip
    return Named(config, 2023, "Javaheripi et al. 2023, Phi-2 as released")


def gpt3(d_model: int, layers: int, heads: int, d_head: int) -> Named:
    config = gpt(d_model, layers, 1, context=2048)
    banded = "Every other layer of the released model sees a band of unpublished width; here all are dense."
    return Named(replace(config, attention=Attention(heads, d_head=d_head)), 2020, GPT3, banded)


def t5(d_model: int, d_mlp: int, heads: int, layers: int, d_head: int = 64) -> Named:
    attention = Attention(heads, d_head=d_head, bias=False, out_bias=False, scale=1.0)
    mlp = MLP(d_mlp, "relu", bias=False)
    config = ModelConfig(
        vocab_size=32_128, context=512, d_model=d_model, layers=layers, attention=attention, mlp=mlp,
        positions=Positions("relative"), norm=Norm("rms", eps=1e-6), head=OutputHead(scale=d_model**-0.5),
        encoder=Encoder(layers, replace(attention, mask="full"), mlp),
    )  # fmt: skip
    return Named(config, 2020, T5)


def t5_gated(d_model: int, d_mlp: int, heads: int, layers: int) -> Named:
    plain = t5(d_model, d_mlp, heads, layers).config
    mlp = MLP(d_mlp, "gelu_tanh", gated=True, bias=False)
    encoder = None if plain.encoder is None else replace(plain.encoder, mlp=mlp)
    return Named(replace(plain, mlp=mlp, encoder=encoder, tied=False, head=OutputHead()), 2020, T5_1_1)


def mt5() -> Named:
    config = replace(t5_gated(512, 1024, 6, 8).config, vocab_size=250_112)
    return Named(config, 2021, "Xue et al. 2021, section 3.2")


def bart(d_model: int, layers: int) -> Named:
    attention, mlp = Attention(d_model // 64), MLP(4 * d_model, "gelu")
    config = ModelConfig(
        vocab_size=50_265, context=1024, d_model=d_model, layers=layers, attention=attention, mlp=mlp,
        norm=Norm(place="after"), embedding=Embedding(norm=True),
        encoder=Encoder(layers, replace(attention, mask="full"), mlp, start=2),
    )  # fmt: skip
    return Named(config, 2020, BART, "Its files have two rows of positions more in each stack, which no token reads.")


def modern(
    vocab_size: int, d_model: int, layers: int, heads: int, kv_heads: int, d_mlp: int, *,
    context: int, theta: float = 10_000.0, eps: float = 1e-5, tied: bool = False,
) -> ModelConfig:  # fmt: skip
    """Llama's: rotary positions, RMS norms before, a gated MLP and no biases."""
    return ModelConfig(
        vocab_size=vocab_size, context=context, d_model=d_model, layers=layers, tied=tied,
        attention=Attention(heads, kv_heads, bias=False, out_bias=False),
        mlp=MLP(d_mlp, "silu", gated=True, bias=False), positions=Positions("rotary", theta),
        norm=Norm("rms", eps=eps),
    )  # fmt: skip


def mistral() -> Named:
    config = modern(32_000, 4096, 32, 32, 8, 14_336, context=32_768)
    window = replace(config.attention, window=4096)
    return Named(replace(config, attention=window), 2023, "Jiang et al. 2023, table 1")


def gemma(d_model: int, layers: int, heads: int, kv_heads: int, d_mlp: int) -> Named:
    config = modern(256_000, d_model, layers, heads, kv_heads, d_mlp, context=8192, eps=1e-6, tied=True)
    config = replace(
        config,
        attention=replace(config.attention, d_head=256),
        mlp=MLP(d_mlp, "gelu_tanh", gated=True, bias=False),
        embedding=Embedding(scale=math.sqrt(d_model)),
    )
    return Named(config, 2024, "Gemma Team 2024a, table 1")


def gemma2(d_model: int, layers: int, heads: int, d_mlp: int) -> Named:
    config = modern(256_000, d_model, layers, heads, heads // 2, d_mlp, context=8192, eps=1e-6, tied=True)
    attention = replace(
        config.attention, d_head=256, scale=256**-0.5, softcap=50.0, window=4096, windowed=tuple(range(0, layers, 2))
    )
    config = replace(
        config,
        attention=attention,
        mlp=MLP(d_mlp, "gelu_tanh", gated=True, bias=False),
        head=OutputHead(softcap=30.0),
        norm=Norm("rms", "around", 1e-6),
        embedding=Embedding(scale=math.sqrt(d_model)),
    )
    return Named(config, 2024, GEMMA2)


def qwen3(d_model: int, layers: int, heads: int, d_mlp: int, tied: bool) -> Named:
    config = modern(151_936, d_model, layers, heads, 8, d_mlp, context=40_960, theta=1e6, eps=1e-6, tied=tied)
    return Named(replace(config, attention=replace(config.attention, d_head=128, qk_norm="head")), 2025, QWEN3)


def gpt_j() -> Named:
    config = ModelConfig(
        vocab_size=50_400, context=2048, d_model=4096, layers=28, mlp=MLP(16_384),
        attention=Attention(16, bias=False, out_bias=False), sublayers="parallel_one_norm", tied=False,
        positions=Positions("rotary", turned=64, pairs="neighbours"), head=OutputHead(bias=True),
    )  # fmt: skip
    return Named(config, 2021, "Wang & Komatsuzaki 2021")


def neox(vocab_size: int, d_model: int, layers: int, heads: int) -> ModelConfig:
    """GPT-NeoX's and Pythia's: parallel sublayers, a quarter of each head turned."""
    return ModelConfig(
        vocab_size=vocab_size, context=2048, d_model=d_model, layers=layers, mlp=MLP(4 * d_model, "gelu"),
        attention=Attention(heads), sublayers="parallel", tied=False,
        positions=Positions("rotary", turned=d_model // heads // 4),
    )  # fmt: skip


def glm_large() -> Named:
    config = ModelConfig(
        vocab_size=30_592, context=512, d_model=1024, layers=24, attention=Attention(16, mask="prefix"),
        mlp=MLP(4096), positions=Positions(axes=2), infill=Infill(mask=103, start=30_522),
    )  # fmt: skip
    return Named(config, 2022, "Du et al. 2022, section 3.1")


def chatglm() -> Named:
    """Its positions turn one half of each head by the place in the text, the other by the place in the span."""
    config = ModelConfig(
        vocab_size=130_528, context=2048, d_model=4096, layers=28, attention=Attention(32, mask="prefix"),
        mlp=MLP(16_384), positions=Positions("rotary", axes=2), infill=Infill(mask=130_001, start=130_004),
    )  # fmt: skip
    scaled = "The released model also multiplies what a sublayer adds by a constant, which has no parameters."
    return Named(config, 2023, "Zeng et al. 2023 (GLM-130B); ChatGLM-6B as released", scaled)


def vit(d_model: int, layers: int, heads: int, size: int) -> Named:
    patches = Patches(image=224, size=size)
    config = ModelConfig(
        vocab_size=1, context=patches.count + 1, d_model=d_model, layers=layers, mlp=MLP(4 * d_model, "gelu"),
        attention=Attention(heads, mask="full"), norm=Norm(eps=1e-12), embedding=Embedding(patches=patches),
        head=OutputHead("sequence", classes=1000),
    )  # fmt: skip
    return Named(config, 2021, VIT, "With a head for ImageNet's 1,000 classes.")


def deit(d_model: int, heads: int) -> Named:
    plain = vit(d_model, 12, heads, 16).config
    patches = Patches(image=224, size=16, distilled=True)
    head = OutputHead("sequence", classes=1000, averaged=True)
    config = replace(plain, context=patches.count + 2, embedding=Embedding(patches=patches), head=head)
    return Named(config, 2021, "Touvron et al. 2021, table 1", "Distilled, with both of its classifiers.")


def imagegpt(d_model: int, layers: int, heads: int) -> Named:
    config = ModelConfig(
        vocab_size=513, context=1024, d_model=d_model, layers=layers, attention=Attention(heads),
        mlp=MLP(4 * d_model, "quick_gelu"), norm=Norm("rms"), tied=False, head=OutputHead(outputs=512),
    )  # fmt: skip
    return Named(config, 2020, IGPT, "512 colours and a start token; 32 x 32 pixels.")


NAMED: dict[str, Named] = {
    "bert-base": bert(768, 12),
    "bert-large": bert(1024, 24),
    "roberta-base": roberta(768, 12),
    "roberta-large": roberta(1024, 24),
    "distilbert": distilbert(),
    "electra-small": electra(256, 12, 4),
    "albert-base": albert(768, 12),
    "albert-xxlarge": albert(4096, 12),
    "transformer-base": original(512, 2048, 8),
    "transformer-big": original(1024, 4096, 16),
    "gpt": Named(gpt(768, 12, 12, context=512, vocab_size=40_478, norm="after"), 2018, GPT1),
    "gpt2": Named(gpt(768, 12, 12, context=1024), 2019, GPT2),
    "gpt2-medium": Named(gpt(1024, 24, 16, context=1024), 2019, GPT2),
    "gpt2-large": Named(gpt(1280, 36, 20, context=1024), 2019, GPT2),
    "gpt2-xl": Named(gpt(1600, 48, 25, context=1024), 2019, GPT2),
    "gpt3-small": gpt3(768, 12, 12, 64),
    "gpt3-6.7b": gpt3(4096, 32, 32, 128),
    "gpt3-13b": gpt3(5140, 40, 40, 128),
    "gpt3-175b": gpt3(12_288, 96, 96, 128),
    "opt-125m": opt(768, 12, 12),
    "opt-350m": opt_350m(),
    "opt-6.7b": opt(4096, 32, 32),
    "opt-175b": opt(12_288, 96, 96),
    "t5-small": t5(512, 2048, 8, 6),
    "t5-base": t5(768, 3072, 12, 12),
    "t5-large": t5(1024, 4096, 16, 24),
    "t5-3b": t5(1024, 16_384, 32, 24, d_head=128),
    "t5-11b": t5(1024, 65_536, 128, 24, d_head=128),
    "t5-v1.1-base": t5_gated(768, 2048, 12, 12),
    "mt5-small": mt5(),
    "bart-base": bart(768, 6),
    "bart-large": bart(1024, 12),
    "glm-large": glm_large(),
    "chatglm-6b": chatglm(),
    "gpt-neo-125m": gpt_neo(768, 12, 12),
    "gpt-neo-2.7b": gpt_neo(2560, 32, 20),
    "gpt-j-6b": gpt_j(),
    "gpt-neox-20b": Named(neox(50_432, 6144, 44, 64), 2022, "Black et al. 2022, section 2.1"),
    "pythia-70m": Named(neox(50_304, 512, 6, 8), 2023, PYTHIA),
    "pythia-160m": Named(neox(50_304, 768, 12, 12), 2023, PYTHIA),
    "llama-2-7b": Named(modern(32_000, 4096, 32, 32, 32, 11_008, context=4096), 2023, LLAMA2),
    "llama-2-70b": Named(modern(32_000, 8192, 80, 64, 8, 28_672, context=4096), 2023, LLAMA2),
    "llama-3-8b": Named(modern(128_256, 4096, 32, 32, 8, 14_336, context=8192, theta=5e5), 2024, LLAMA3),
    "llama-3-70b": Named(modern(128_256, 8192, 80, 64, 8, 28_672, context=8192, theta=5e5), 2024, LLAMA3),
    "mistral-7b": mistral(),
    "phi-2": phi2(),
    "gemma-2b": gemma(2048, 18, 8, 1, 16_384),
    "gemma-7b": gemma(3072, 28, 16, 16, 24_576),
    "gemma-2-2b": gemma2(2304, 26, 8, 9216),
    "gemma-2-9b": gemma2(3584, 42, 16, 14_336),
    "qwen3-0.6b": qwen3(1024, 28, 16, 3072, tied=True),
    "qwen3-8b": qwen3(4096, 36, 32, 12_288, tied=False),
    "vit-b-16": vit(768, 12, 12, 16),
    "vit-l-16": vit(1024, 24, 16, 16),
    "vit-h-14": vit(1280, 32, 16, 14),
    "deit-tiny": deit(192, 3),
    "deit-base": deit(768, 12),
    "imagegpt-s": imagegpt(512, 24, 8),
    "imagegpt-m": imagegpt(1024, 36, 8),
    "imagegpt-l": imagegpt(1536, 48, 16),
}
