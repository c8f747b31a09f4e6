"""Weights without a config.json: the family by the names, the sizes by the shapes, the rest assumed and corrected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.checkpoints import Assumption, Checkpoint, load
from engine.checkpoints.report import UnknownNames
from engine.runtime.run import run
from tests.engine.checkpoints.against import IDS, TARGET, equal, shaken

PLAIN = {"vocab_size": 40, "num_hidden_layers": 3, "intermediate_size": 96, "max_position_embeddings": 32}
USUAL = PLAIN | {"hidden_size": 128, "num_attention_heads": 2}  # 64 numbers a head
OTHER = PLAIN | {"hidden_size": 48, "num_attention_heads": 3}
PAIR = {
    "vocab_size": 40,
    "d_model": 128,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 80,
    "max_position_embeddings": 32,
    "pad_token_id": 1,
    "decoder_start_token_id": 2,
}
T5 = {"vocab_size": 40, "d_model": 64, "d_kv": 16, "d_ff": 80, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4}
GPT2 = {"vocab_size": 40, "n_layer": 3, "n_positions": 32}
PICTURE = {"image_size": 24, "patch_size": 8, "num_hidden_layers": 2, "intermediate_size": 96, "num_labels": 5}


def narrow_opt(kind: type, **changes: Any) -> Any:
    sizes = {"ffn_dim" if key == "intermediate_size" else key: value for key, value in OTHER.items()}
    own = {"word_embed_proj_dim": 16, "num_labels": 5, "pad_token_id": None, **changes}
    return kind(transformers.OPTConfig(**sizes, **own))


def weights_only(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    for file in folder.glob("*.json"):
        file.unlink()
    return folder


def same(checkpoint: Checkpoint, model: Any) -> None:
    assert checkpoint.report.ok, checkpoint.report
    given: dict[str, Tensor] = {}
    ids = IDS
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = TARGET
    if checkpoint.config.embedding.patches is not None:
        ids = torch.randn(2, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    if (sound := checkpoint.config.embedding.sound) is not None:
        ids = torch.randn(1, sound.bins, sound.frames, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        theirs = model(ids, **given)
    ours = run(checkpoint.model, ids, target=given.get("decoder_input_ids"), keep=["logits"])
    logits = theirs.prediction_logits if "prediction_logits" in theirs else theirs.logits
    equal(ours["logits"] / logits.std(), logits / logits.std())


def assumed(checkpoint: Checkpoint) -> dict[str, Assumption]:
    return {one.key: one for one in checkpoint.report.assumed}


USUAL_MODELS: dict[str, Any] = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2, n_embd=128, n_head=2)),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**USUAL, num_key_value_heads=1)),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**USUAL, num_key_value_heads=1)),
    "qwen3": lambda: transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(**OTHER, num_key_value_heads=1, head_dim=16)
    ),
    "gemma3_text": lambda: transformers.Gemma3ForCausalLM(
        transformers.Gemma3TextConfig(**OTHER, num_key_value_heads=1, head_dim=16)
    ),
    "gpt_oss": lambda: transformers.GptOssForCausalLM(
        transformers.GptOssConfig(**USUAL, num_key_value_heads=1, num_local_experts=4)
    ),
    "olmo": lambda: transformers.OlmoForCausalLM(transformers.OlmoConfig(**USUAL, num_key_value_heads=1)),
    "cohere": lambda: transformers.CohereForCausalLM(
        transformers.CohereConfig(**USUAL, num_key_value_heads=1, use_qk_norm=True)
    ),
    "granitemoe": lambda: transformers.GraniteMoeForCausalLM(
        transformers.GraniteMoeConfig(**USUAL, num_key_value_heads=1, num_local_experts=3)
    ),
    "granitemoeshared": lambda: transformers.GraniteMoeSharedForCausalLM(
        transformers.GraniteMoeSharedConfig(
            **USUAL, num_key_value_heads=1, num_local_experts=3, shared_intermediate_size=20
        )
    ),
    "mpt": lambda: transformers.MptForCausalLM(
        transformers.MptConfig(vocab_size=40, d_model=128, n_layers=3, n_heads=2, max_seq_len=32)
    ),
    "glm": lambda: transformers.GlmForCausalLM(
        transformers.GlmConfig(**OTHER, num_key_value_heads=1, head_dim=16, pad_token_id=None)
    ),
    "glm4": lambda: transformers.Glm4ForCausalLM(
        transformers.Glm4Config(**OTHER, num_key_value_heads=1, head_dim=16, pad_token_id=None)
    ),
    "exaone4": lambda: transformers.Exaone4ForCausalLM(
        transformers.Exaone4Config(**USUAL, num_key_value_heads=1, pad_token_id=None)
    ),
    "nanochat": lambda: transformers.NanoChatForCausalLM(transformers.NanoChatConfig(**USUAL, num_key_value_heads=1)),
    "mixtral": lambda: transformers.MixtralForCausalLM(
        transformers.MixtralConfig(**USUAL, num_key_value_heads=1, num_local_experts=3)
    ),
    "olmoe": lambda: transformers.OlmoeForCausalLM(transformers.OlmoeConfig(**USUAL, num_experts=8)),
    "qwen2_moe": lambda: transformers.Qwen2MoeForCausalLM(
        transformers.Qwen2MoeConfig(**USUAL, num_key_value_heads=1, num_experts=4, shared_expert_intermediate_size=20)
    ),
    "qwen3_moe": lambda: transformers.Qwen3MoeForCausalLM(
        transformers.Qwen3MoeConfig(
            **OTHER, num_key_value_heads=1, head_dim=16, num_experts=8, mlp_only_layers=[0, 1], moe_intermediate_size=20
        )
    ),
    "gpt_neox": lambda: transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**USUAL)),
    "stablelm": lambda: transformers.StableLmForCausalLM(
        transformers.StableLmConfig(**USUAL, num_key_value_heads=1, use_parallel_residual=True, qk_layernorm=True)
    ),
    "codegen": lambda: transformers.CodeGenForCausalLM(transformers.CodeGenConfig(**GPT2, n_embd=256, n_head=4)),
    "starcoder2": lambda: transformers.Starcoder2ForCausalLM(
        transformers.Starcoder2Config(**USUAL, num_key_value_heads=1)
    ),
    "phi3": lambda: transformers.Phi3ForCausalLM(
        transformers.Phi3Config(**USUAL, num_key_value_heads=1, pad_token_id=None)
    ),
    "opt": lambda: transformers.OPTForCausalLM(
        transformers.OPTConfig(
            vocab_size=40,
            hidden_size=128,
            ffn_dim=96,
            num_hidden_layers=3,
            num_attention_heads=2,
            max_position_embeddings=32,
            word_embed_proj_dim=128,
        )
    ),
    "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**USUAL)),
    "mpnet": lambda: transformers.MPNetForMaskedLM(transformers.MPNetConfig(**USUAL | {"max_position_embeddings": 34})),
    "modernbert": lambda: transformers.ModernBertForMaskedLM(
        transformers.ModernBertConfig(**USUAL, **dict.fromkeys(("pad_token_id", "cls_token_id", "sep_token_id"), 1))
    ),
    "esm": lambda: transformers.EsmForMaskedLM(
        transformers.EsmConfig(**USUAL, pad_token_id=1, position_embedding_type="rotary", layer_norm_eps=1e-12)
    ),
    "deberta": lambda: transformers.DebertaForMaskedLM(
        transformers.DebertaConfig(
            **USUAL, relative_attention=True, pos_att_type="c2p|p2c", position_biased_input=False
        )
    ),
    "deberta-v2": lambda: transformers.DebertaV2ForMaskedLM(
        transformers.DebertaV2Config(
            **USUAL,
            relative_attention=True,
            position_buckets=8,
            max_relative_positions=16,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type="p2c|c2p",
            position_biased_input=False,
        )
    ),
    "nomic_bert": lambda: transformers.NomicBertForMaskedLM(transformers.NomicBertConfig(**USUAL)),
    "t5": lambda: transformers.T5ForConditionalGeneration(transformers.T5Config(**T5)),
    "bart": lambda: transformers.BartForConditionalGeneration(transformers.BartConfig(**PAIR)),
    "vit": lambda: transformers.ViTForImageClassification(
        transformers.ViTConfig(**PICTURE, hidden_size=128, num_attention_heads=2)
    ),
    "whisper": lambda: transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            **{key: value for key, value in PAIR.items() if key not in ("max_position_embeddings", "vocab_size")},
            vocab_size=50_304,  # the start token that its class takes is 50257
            num_mel_bins=5,
            max_source_positions=6,
            max_target_positions=32,
            begin_suppress_tokens=None,
        )
    ),
}


@pytest.mark.parametrize("name", USUAL_MODELS)
def test_a_usual_model_needs_no_config(name: str, tmp_path: Path) -> None:
    model = shaken(USUAL_MODELS[name]())
    checkpoint = load(weights_only(model, tmp_path))
    assert checkpoint.family == name
    same(checkpoint, model)
    (note,) = checkpoint.report.notes
    assert note.startswith(f"There is no config.json: model.safetensors was read as {type(model).__name__}")
    assert all(f"{one.key} {one.value}" in note for one in checkpoint.report.assumed if not one.certain)


CORRECTED: list[tuple[Any, dict[str, Any]]] = [
    (lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2, n_embd=48, n_head=3)), {"n_head": 3}),
    (
        lambda: transformers.LlamaForCausalLM(
            transformers.LlamaConfig(**OTHER | {"num_attention_heads": 6}, num_key_value_heads=2, rope_theta=500.0)
        ),
        {"num_attention_heads": 6, "rope_theta": 500.0},
    ),
    (
        lambda: transformers.GPTNeoXForCausalLM(
            transformers.GPTNeoXConfig(**OTHER, rotary_pct=0.5, use_parallel_residual=False)
        ),
        {"num_attention_heads": 3, "rotary_pct": 0.5, "use_parallel_residual": False},
    ),
    (
        lambda: transformers.BertForPreTraining(transformers.BertConfig(**OTHER, hidden_act="relu")),
        {"num_attention_heads": 3, "hidden_act": "relu"},
    ),
    (
        lambda: transformers.GemmaForCausalLM(
            transformers.GemmaConfig(**OTHER, num_key_value_heads=1, head_dim=16, pad_token_id=0)
        ),
        {"model_type": "gemma", "num_attention_heads": 3},
    ),
    (
        lambda: transformers.SmolLM3ForCausalLM(
            transformers.SmolLM3Config(**USUAL, num_key_value_heads=1, no_rope_layer_interval=2, pad_token_id=None)
        ),
        {"model_type": "smollm3", "no_rope_layer_interval": 2},
    ),
    (
        lambda: transformers.Cohere2ForCausalLM(
            transformers.Cohere2Config(**USUAL, num_key_value_heads=1, sliding_window=8)
        ),
        {"model_type": "cohere2", "sliding_window": 8},
    ),
    (
        lambda: transformers.GraniteForCausalLM(
            transformers.GraniteConfig(**USUAL, num_key_value_heads=1, residual_multiplier=0.22, logits_scaling=8.0)
        ),
        {"model_type": "granite", "residual_multiplier": 0.22, "logits_scaling": 8.0},
    ),
    (
        lambda: transformers.T5ForConditionalGeneration(
            transformers.T5Config(**T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
        ),
        {"layer_norm_epsilon": 1e-6},
    ),
    (
        lambda: transformers.BartForConditionalGeneration(
            transformers.BartConfig(**PAIR | {"encoder_attention_heads": 4}, scale_embedding=True)
        ),
        {"encoder_attention_heads": 4, "scale_embedding": True},
    ),
    (
        lambda: transformers.ViTForImageClassification(
            transformers.ViTConfig(**PICTURE, hidden_size=48, num_attention_heads=3)
        ),
        {"num_attention_heads": 3},
    ),
    (lambda: narrow_opt(transformers.OPTForCausalLM), {"num_attention_heads": 3}),
    (lambda: narrow_opt(transformers.OPTForSequenceClassification, pad_token_id=1), {"num_attention_heads": 3}),
    (
        lambda: narrow_opt(transformers.OPTForCausalLM, do_layer_norm_before=False),
        {"num_attention_heads": 3, "do_layer_norm_before": False},
    ),
    (
        lambda: transformers.ImageGPTForImageClassification(
            transformers.ImageGPTConfig(**GPT2, n_embd=48, n_head=3, num_labels=5)
        ),
        {"n_head": 3},
    ),
]


@pytest.mark.parametrize(("build", "config"), CORRECTED, ids=[str(config) for _, config in CORRECTED])
def test_what_was_assumed_can_be_corrected(build: Any, config: dict[str, Any], tmp_path: Path) -> None:
    model = shaken(build())
    folder = weights_only(model, tmp_path)
    checkpoint = load(folder, config=config)
    same(checkpoint, model)
    told = assumed(checkpoint)
    assert all(told[key].value == value and told[key].certain for key, value in config.items())


def test_sizes_are_certain_and_what_no_tensor_shows_is_not(tmp_path: Path) -> None:
    told = assumed(load(weights_only(USUAL_MODELS["llama"](), tmp_path)))
    certain = {key: one.value for key, one in told.items() if one.certain}
    assert certain == {
        "vocab_size": 40,
        "hidden_size": 128,
        "num_hidden_layers": 3,
        "intermediate_size": 96,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
    }
    assert told["intermediate_size"].why == "It is a side of model.layers.0.mlp.gate_proj.weight."
    assert told["tie_word_embeddings"].why == "lm_head.weight is a tensor of its own."
    assert told["num_attention_heads"].value == 2
    assert "64 numbers each is the most usual" in told["num_attention_heads"].why
    assert "gemma, granite, mistral, smollm3 as well" in told["model_type"].why and not told["model_type"].certain


def test_layers_are_counted_to_the_last_so_that_one_that_lacks_is_missed(tmp_path: Path) -> None:
    folder = weights_only(USUAL_MODELS["gpt2"](), tmp_path)
    tensors = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if ".h.1." not in name}
    save_file(kept, folder / "model.safetensors")
    with pytest.raises(ValueError, match=r"transformer.h.1.ln_1.weight and 11 more that are not there"):
        load(folder)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "model."])
@pytest.mark.parametrize("with_config", [True, False])
def test_what_a_program_puts_before_every_name_is_left_out(prefix: str, with_config: bool, tmp_path: Path) -> None:
    model = shaken(USUAL_MODELS["gpt2"]())
    model.save_pretrained(tmp_path)
    if not with_config:
        (tmp_path / "config.json").unlink()
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({prefix + name: tensor for name, tensor in tensors.items()}, tmp_path / "model.safetensors")
    checkpoint = load(tmp_path)
    same(checkpoint, model)
    assert {row.name for row in checkpoint.report.rows_with("loaded")} == {prefix + name for name in tensors}


@pytest.mark.parametrize("key", ["state_dict", "model", "model_state_dict", "net"])
def test_a_table_of_a_training_program_is_opened_and_the_rest_left_out(key: str, tmp_path: Path) -> None:
    model = shaken(USUAL_MODELS["bert"]())
    saved = {key: model.state_dict(), "epoch": 3, "optimizer": {"state": {0: {"step": torch.tensor(1.0)}}, "lr": 0.1}}
    torch.save(saved, tmp_path / "last.ckpt")
    checkpoint = load(tmp_path / "last.ckpt")
    same(checkpoint, model)
    assert f"The weights are what last.ckpt calls '{key}', and the rest (epoch, optimizer) is left out." in (
        checkpoint.report.notes
    )


def test_names_of_no_family_are_named(tmp_path: Path) -> None:
    save_file({"encoder.lstm.0.weight": torch.ones(3, 3), "b": torch.ones(2)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"no config.json beside it.* their names \(b, encoder.lstm.0.weight, ...\)"):
        load(tmp_path)


def test_numbers_of_layers_beyond_reason_are_refused(tmp_path: Path) -> None:
    folder = weights_only(USUAL_MODELS["gpt2"](), tmp_path)
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"transformer.h.99999999.ln_1.weight": torch.ones(128)}, folder / "model.safetensors")
    with pytest.raises(ValueError, match="at most 1000 layers, got 100000000"):
        load(folder)


NEIGHBOURS: dict[str, tuple[Any, str]] = {
    "mBART": (
        lambda: transformers.MBartForConditionalGeneration(transformers.MBartConfig(**PAIR)),
        r"BartForConditionalGeneration leaves out 4 tensors \(model.decoder.layer_norm.bias",
    ),
    "UMT5": (
        lambda: transformers.UMT5ForConditionalGeneration(transformers.UMT5Config(**T5)),
        r"MT5ForConditionalGeneration leaves out 3 tensors \(decoder.block.1.layer.0.SelfAttention.relative",
    ),
    "ALBERT of two groups": (
        lambda: transformers.AlbertForMaskedLM(
            transformers.AlbertConfig(**OTHER, embedding_size=16, num_hidden_groups=2)
        ),
        r"AlbertForMaskedLM leaves out 16 tensors",
    ),
    "GPTBigCode": (
        lambda: transformers.GPTBigCodeForCausalLM(transformers.GPTBigCodeConfig(**GPT2, n_embd=48, n_head=3)),
        r"GPT2LMHeadModel has in another shape 15 tensors \(transformer.h.0.attn.c_attn.weight",
    ),
    "Persimmon": (
        lambda: transformers.PersimmonForCausalLM(transformers.PersimmonConfig(**OTHER)),
        r"the nearest is PhiForCausalLM, of whose names",
    ),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_model_of_another_family_is_refused_with_the_nearest_ones(name: str, tmp_path: Path) -> None:
    build, told = NEIGHBOURS[name]
    folder = weights_only(shaken(build()), tmp_path)
    with pytest.raises(UnknownNames, match=told):
        load(folder)
