"""The named configurations against transformers' models of the same name, built on the meta device from its configs."""

from collections.abc import Callable

import pytest
import torch
import transformers as hf

from engine.model.presets import NAMED, blueprint
from engine.model.transformer import Transformer

Build = Callable[[], torch.nn.Module]


def gpt2(d: int, layers: int, heads: int) -> Build:
    return lambda: hf.GPT2LMHeadModel(hf.GPT2Config(n_embd=d, n_layer=layers, n_head=heads))


def t5(d: int, ff: int, heads: int, layers: int, d_kv: int = 64) -> Build:
    sizes = {"d_model": d, "d_ff": ff, "num_heads": heads, "num_layers": layers, "d_kv": d_kv, "vocab_size": 32128}
    return lambda: hf.T5ForConditionalGeneration(hf.T5Config(**sizes))


def bart(d: int, layers: int) -> Build:
    ends = {f"{end}_layers": layers for end in ("encoder", "decoder")}
    ends |= {f"{end}_ffn_dim": 4 * d for end in ("encoder", "decoder")}
    ends |= {f"{end}_attention_heads": d // 64 for end in ("encoder", "decoder")}
    return lambda: hf.BartForConditionalGeneration(hf.BartConfig(d_model=d, **ends))


def modern(kind: str, vocab: int, d: int, layers: int, heads: int, kv: int, ff: int, **more: object) -> Build:
    sizes = {"vocab_size": vocab, "hidden_size": d, "num_hidden_layers": layers, "intermediate_size": ff}
    sizes |= {"num_attention_heads": heads, "num_key_value_heads": kv, **more}
    return lambda: getattr(hf, f"{kind}ForCausalLM")(getattr(hf, f"{kind}Config")(**sizes))


def neox(vocab: int, d: int, layers: int, heads: int) -> Build:
    sizes = {"hidden_size": d, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": 4 * d}
    return lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(vocab_size=vocab, **sizes))


def vit(d: int, layers: int, heads: int, size: int) -> Build:
    sizes = {"hidden_size": d, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": 4 * d}
    return lambda: hf.ViTForImageClassification(hf.ViTConfig(patch_size=size, num_labels=1000, **sizes))


def opt(d: int, layers: int, heads: int, **more: object) -> Build:
    sizes = {"hidden_size": d, "num_hidden_layers": layers, "num_attention_heads": heads, "ffn_dim": 4 * d, **more}
    return lambda: hf.OPTForCausalLM(hf.OPTConfig(**sizes))


def gpt_neo(d: int, layers: int, heads: int) -> Build:
    sizes = {"hidden_size": d, "num_layers": layers, "num_heads": heads}
    return lambda: hf.GPTNeoForCausalLM(hf.GPTNeoConfig(attention_types=[[["global", "local"], layers // 2]], **sizes))


def deit(d: int, heads: int) -> Build:
    sizes = {"hidden_size": d, "num_attention_heads": heads, "intermediate_size": 4 * d, "num_labels": 1000}
    return lambda: hf.DeiTForImageClassificationWithTeacher(hf.DeiTConfig(**sizes))


def imagegpt(d: int, layers: int, heads: int) -> Build:
    sizes = {"n_embd": d, "n_layer": layers, "n_head": heads}
    return lambda: hf.ImageGPTForCausalImageModeling(hf.ImageGPTConfig(**sizes))


REFERENCES: dict[str, Build] = {
    "bert-base": lambda: hf.BertModel(hf.BertConfig()),
    "bert-large": lambda: hf.BertModel(
        hf.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    ),
    "roberta-base": lambda: hf.RobertaModel(
        hf.RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1)
    ),
    "distilbert": lambda: hf.DistilBertModel(hf.DistilBertConfig()),
    "electra-small": lambda: hf.ElectraForPreTraining(hf.ElectraConfig()),
    "albert-base": lambda: hf.AlbertModel(
        hf.AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072)
    ),
    "albert-xxlarge": lambda: hf.AlbertModel(hf.AlbertConfig()),
    "opt-125m": opt(768, 12, 12),
    "opt-350m": opt(1024, 24, 16, word_embed_proj_dim=512, do_layer_norm_before=False),
    "opt-6.7b": opt(4096, 32, 32),
    "gpt-neo-125m": gpt_neo(768, 12, 12),
    "gpt-neo-2.7b": gpt_neo(2560, 32, 20),
    "phi-2": lambda: hf.PhiForCausalLM(
        hf.PhiConfig(hidden_size=2560, intermediate_size=10240, num_hidden_layers=32, num_attention_heads=32)
    ),
    "gemma-2b": modern("Gemma", 256000, 2048, 18, 8, 1, 16384, head_dim=256),
    "gemma-7b": modern("Gemma", 256000, 3072, 28, 16, 16, 24576, head_dim=256),
    "deit-tiny": deit(192, 3),
    "deit-base": deit(768, 12),
    "gpt": lambda: hf.OpenAIGPTLMHeadModel(hf.OpenAIGPTConfig()),
    "gpt2": gpt2(768, 12, 12),
    "gpt2-medium": gpt2(1024, 24, 16),
    "gpt2-large": gpt2(1280, 36, 20),
    "gpt2-xl": gpt2(1600, 48, 25),
    "t5-small": t5(512, 2048, 8, 6),
    "t5-base": t5(768, 3072, 12, 12),
    "t5-large": t5(1024, 4096, 16, 24),
    "t5-3b": t5(1024, 16384, 32, 24, 128),
    "t5-11b": t5(1024, 65536, 128, 24, 128),
    "bart-base": bart(768, 6),
    "bart-large": bart(1024, 12),
    "gpt-j-6b": lambda: hf.GPTJForCausalLM(hf.GPTJConfig()),
    "gpt-neox-20b": neox(50432, 6144, 44, 64),
    "pythia-70m": neox(50304, 512, 6, 8),
    "llama-2-7b": modern("Llama", 32000, 4096, 32, 32, 32, 11008),
    "llama-3-8b": modern("Llama", 128256, 4096, 32, 32, 8, 14336),
    "mistral-7b": modern("Mistral", 32000, 4096, 32, 32, 8, 14336),
    "gemma-2-2b": modern("Gemma2", 256000, 2304, 26, 8, 4, 9216, head_dim=256),
    "gemma-2-9b": modern("Gemma2", 256000, 3584, 42, 16, 8, 14336, head_dim=256),
    "qwen3-0.6b": modern("Qwen3", 151936, 1024, 28, 16, 8, 3072, head_dim=128, tie_word_embeddings=True),
    "qwen3-8b": modern("Qwen3", 151936, 4096, 36, 32, 8, 12288, head_dim=128),
    "vit-b-16": vit(768, 12, 12, 16),
    "vit-l-16": vit(1024, 24, 16, 16),
    "vit-h-14": vit(1280, 32, 16, 14),
    "imagegpt-s": imagegpt(512, 24, 8),
    "imagegpt-m": imagegpt(1024, 36, 8),
    "imagegpt-l": imagegpt(1536, 48, 16),
}
UNREAD = {"bart": 2, "roberta": 1, "opt": 1}  # stacks with two rows of positions that no token reads
# In the literature, where it is said to the last one.
PUBLISHED = {
    "roberta-large": 355_359_744 - 2 * 1024,
    "albert-base": 11_683_584,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "t5-small": 60_506_624,
    "t5-base": 222_903_552,
    "t5-v1.1-base": 247_577_856,
    "mt5-small": 300_176_768,
    "vit-b-16": 86_567_656,
    "llama-2-7b": 6_738_415_616,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "chatglm-6b": 6_173_286_400,
}
ABOUT = {  # millions, as their papers round them
    "transformer-base": 65,
    "transformer-big": 213,
    "gpt3-small": 125,
    "gpt3-6.7b": 6_700,
    "gpt3-13b": 13_000,
    "gpt3-175b": 175_000,
    "opt-175b": 175_000,
    "glm-large": 335,
    "pythia-160m": 160,
}


def size(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("name", REFERENCES)
def test_it_has_as_many_parameters_as_transformers_model(name: str) -> None:
    with torch.device("meta"):
        theirs = size(REFERENCES[name]())
    config = NAMED[name].config
    unread = UNREAD.get(name.partition("-")[0], 0) * 2 * config.d_model
    assert size(blueprint(config)) == theirs - unread


@pytest.mark.parametrize("name", PUBLISHED)
def test_it_has_as_many_parameters_as_published(name: str) -> None:
    assert size(blueprint(NAMED[name].config)) == PUBLISHED[name]


@pytest.mark.parametrize("name", ABOUT)
def test_it_has_about_as_many_parameters_as_its_paper_says(name: str) -> None:
    assert size(blueprint(NAMED[name].config)) == pytest.approx(1e6 * ABOUT[name], rel=0.031)


def test_every_name_is_held_to_something() -> None:
    assert set(NAMED) == set(REFERENCES) | set(PUBLISHED) | set(ABOUT)


def test_a_blueprint_takes_no_memory() -> None:
    model = blueprint(NAMED["gpt3-175b"].config)
    assert isinstance(model, Transformer) and all(parameter.is_meta for parameter in model.parameters())


def test_every_name_says_where_it_is_from() -> None:
    for name, one in NAMED.items():
        assert str(one.year) in one.source or "released" in one.source or name.startswith("llama"), name
