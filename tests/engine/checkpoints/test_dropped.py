"""Tensors that are left out on purpose: with noise in them Loupe gives transformers' numbers, or a sentence."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from engine import load
from engine.analysis.parity import parity
from engine.checkpoints import Checkpoint
from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.families import FAMILIES
from engine.checkpoints.families.t5 import LANGUAGE as T5_LANGUAGE
from engine.checkpoints.family import DROPPED, Family, invert_rows, translate
from engine.checkpoints.nanogpt import FAMILIES as NANOGPT
from engine.checkpoints.recomputed import SAME_FREQUENCIES, SAVED_FREQUENCIES
from engine.inputs.readers import Reading
from engine.model.config import MLP, Attention, ModelConfig
from engine.model.layers.position import sinusoidal
from engine.tokenizers.encoding import Encoding
from tests.engine import tiny
from tests.engine.checkpoints.against import shaken

pytestmark = pytest.mark.long

NUMBERS = Encoding.from_ids([5, 3, 30, 7, 7, 31, 12, 2])
TEXT, PAIR = Reading(NUMBERS), Reading(NUMBERS, target=Encoding.from_ids([2, 17, 4, 33]))
ENDS = {"vocab_size": 40, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
WIDE = ENDS | {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 36, "num_attention_heads": 4}
WIDE |= {"max_position_embeddings": 34}
GROUPS = WIDE | {"num_key_value_heads": 2, "head_dim": 8}
BART = ENDS | {"d_model": 24, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4}
BART |= {"decoder_attention_heads": 3, "encoder_ffn_dim": 36, "decoder_ffn_dim": 32, "max_position_embeddings": 32}
BART |= {"decoder_start_token_id": 1}
T5 = ENDS | {"d_model": 24, "d_kv": 6, "d_ff": 36, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 1}
PICTURE = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 36}
PICTURE |= {"image_size": 12, "patch_size": 4}
GPT2 = ENDS | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
NEO = ENDS | {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]}
OPT = WIDE | {"ffn_dim": 36, "word_embed_proj_dim": 32}
DISTILBERT = ENDS | {"dim": 24, "n_layers": 2, "n_heads": 4, "hidden_dim": 36, "max_position_embeddings": 34}
DEEPSEEK = WIDE | {"num_key_value_heads": 4, "kv_lora_rank": 8, "q_lora_rank": 10, "qk_rope_head_dim": 4}
DEEPSEEK |= {"qk_nope_head_dim": 8, "v_head_dim": 8, "moe_intermediate_size": 12, "n_routed_experts": 8}
DEEPSEEK |= {"num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 2}
SIZES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "glm4_moe", "glm4_moe_lite"), DEEPSEEK),
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "llama", "gpt_neox", "falcon", "phi"), WIDE),
    "esm": WIDE | {"position_embedding_type": "rotary", "token_dropout": True, "mask_token_id": 4},
    "nomic_bert": WIDE,
    "deberta": WIDE | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": WIDE
    | {"relative_attention": True, "norm_rel_ebd": "layer_norm", "pos_att_type": ["c2p", "p2c"], "share_att_key": True},
    **dict.fromkeys(("mpnet", "modernbert"), WIDE | {"sep_token_id": 2, "cls_token_id": 0}),
    **dict.fromkeys(("mistral", "phi3", "qwen2", "stablelm", "starcoder2"), WIDE | {"num_key_value_heads": 2}),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text", "olmo2", "olmo3", "qwen3", "smollm3"), GROUPS),
    **dict.fromkeys(("cohere", "cohere2", "exaone4", "glm", "glm4", "granite", "nanochat", "olmo"), GROUPS),
    **dict.fromkeys(("granitemoe", "granitemoeshared"), GROUPS | {"shared_intermediate_size": 14}),
    **dict.fromkeys(("gpt_oss", "mixtral", "olmoe", "qwen2_moe", "qwen3_moe"), GROUPS | {"num_experts": 8}),
    **dict.fromkeys(("albert", "electra"), WIDE | {"embedding_size": 16}),
    **dict.fromkeys(("bart", "marian", "pegasus"), BART),
    **dict.fromkeys(("t5", "mt5"), T5),
    **dict.fromkeys(("vit", "deit"), PICTURE),
    **dict.fromkeys(("dinov2", "dinov2_with_registers", "siglip_vision_model"), PICTURE),
    "beit": PICTURE | {"use_relative_position_bias": True},
    "dinov3_vit": PICTURE | {"num_register_tokens": 2, "num_attention_heads": 3},
    "clip_vision_model": PICTURE | {"projection_dim": 10},
    **dict.fromkeys(("clip_text_model", "siglip_text_model"), WIDE | {"projection_dim": 10, "eos_token_id": 1}),
    "whisper": {name: value for name, value in BART.items() if name != "max_position_embeddings"}
    | {"num_mel_bins": 5, "max_source_positions": 6, "max_target_positions": 32},
    "mpt": ENDS | {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 32},
    "bloom": ENDS | {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "distilbert": DISTILBERT,
    "gpt2": GPT2,
    **dict.fromkeys(("codegen", "gptj"), GPT2 | {"rotary_dim": 4}),
    "imagegpt": GPT2,
    "gpt_neo": NEO | {"max_position_embeddings": 32, "window_size": 4},
    "opt": OPT,
}


def dropped_names(family: Family) -> list[str]:
    """Without those that transformers computes with, which test_modern_encoders.py has."""
    used = SAME_FREQUENCIES, SAVED_FREQUENCIES
    return [row[0] for row in family.rows if row[1] is DROPPED and row[-1] not in used]


# Of each type's architectures the one that drops most, which are all that any of them drops.
DROPPING = [max(of_type, key=lambda family: len(dropped_names(family))) for of_type in FAMILIES.values()]
DROPPING = [family for family in (*DROPPING, T5_LANGUAGE) if dropped_names(family)]


def theirs(family: Family) -> Any:
    kind = getattr(transformers, str(family.architecture))
    torch.manual_seed(0)
    return shaken(kind(kind.config_class(**SIZES[family.name])))


def reading(checkpoint: Checkpoint) -> Reading:
    if checkpoint.config.embedding.patches is not None:
        return Reading(tiny.normal(1, 3, 12, 12))
    if (sound := checkpoint.config.embedding.sound) is not None:
        return replace(PAIR, read=tiny.normal(1, sound.bins, sound.frames))
    return PAIR if checkpoint.config.encoder is not None and checkpoint.config.head.kind == "language" else TEXT


def dropped_tensors(family: Family, model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Noise under each name that the family drops; of the shape that it has in `model` where it is there."""
    there = {**dict(model.named_buffers()), **model.state_dict()}
    generator = torch.Generator().manual_seed(3)
    for name in (name.replace("{}", "1") for name in dropped_names(family)):
        shape = there[name].shape if name in there else (3,)
        yield name, torch.randn(shape, generator=generator)


def written(model: Any, folder: Path, more: dict[str, torch.Tensor]) -> Checkpoint:
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, **more}, folder / "model.safetensors", {"format": "pt"})
    return load(folder)


@pytest.mark.parametrize("family", DROPPING, ids=lambda family: family.architecture)
def test_noise_in_what_is_left_out_is_either_of_no_effect_or_told(family: Family, tmp_path: Path) -> None:
    model = theirs(family)
    noise = dict(dropped_tensors(family, model))
    checkpoint = written(model, tmp_path, noise)
    found = parity(checkpoint, tmp_path, reading(checkpoint))
    assert found.through == "its own files"
    assert found.logits < 1e-4, noise.keys()
    computed = {name for name in noise if (family.find_dropped(name) or (None,))[0] is not None}
    told = " ".join(checkpoint.report.notes)
    rows = {row.name: row.status for row in checkpoint.report.rows}
    assert all(rows[name] in ("unexpected", "loaded") for name in computed)
    assert bool(computed) == ("should equal" in told)


@pytest.mark.parametrize("name", ["marian", "pegasus"])
@pytest.mark.parametrize("sides", [["encoder"], ["encoder", "decoder"]], ids=len)
def test_positions_that_were_trained_are_loaded_and_saved(name: str, sides: list[str], tmp_path: Path) -> None:
    family = FAMILIES[name][0]
    model = theirs(family)
    table = sinusoidal(torch.arange(32), 24, "halves")
    tables = {f"model.{side}.embed_positions.weight": table.clone() for side in ("encoder", "decoder")}
    assert written(model, tmp_path / "sinusoids", tables).config.positions.kind == "sinusoidal"
    for side in sides:
        tables[f"model.{side}.embed_positions.weight"] += torch.randn(32, 24)
    checkpoint = written(model, tmp_path / "trained", tables)
    assert checkpoint.report.ok and checkpoint.config.positions.kind == "learned"
    assert any("loaded as learned positions" in note for note in checkpoint.report.notes)
    assert parity(checkpoint, tmp_path / "trained", PAIR).logits < 1e-4
    checkpoint.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert (again.config, again.family) == (checkpoint.config, name)
    assert parity(again, tmp_path / "saved", PAIR).logits < 1e-4


@pytest.mark.parametrize("family", NANOGPT, ids=lambda family: family.architecture)
def test_a_mask_of_nanogpt_that_is_not_causal_is_told(family: Family, tmp_path: Path) -> None:
    """nanoGPT reads the mask that its file holds; ours is causal whatever it holds."""
    (name,) = dropped_names(family)
    config = ModelConfig(11, 16, 24, 1, Attention(3), MLP(96), tied=bool(family.tied))
    if family.architecture == "GPT without biases":
        config = replace(config, attention=Attention(3, bias=False, out_bias=False), mlp=MLP(96, bias=False))
    state = tiny.model(config).state_dict()
    tensors = dict(translate(state, invert_rows(family.bind(state)), config))
    mask = torch.ones(1, 1, 16, 16).tril()
    torch.save({**tensors, name.format(0): mask}, tmp_path / "causal.pt")
    torch.save({**tensors, name.format(0): torch.ones_like(mask)}, tmp_path / "full.pt")
    assert load(tmp_path / "causal.pt").report.ok
    report = load(tmp_path / "full.pt").report
    assert [row.name for row in report.rows_with("unexpected")] == [name.format(0)]
    assert any("should equal the causal mask" in note for note in report.notes)


LANGUAGES = {
    str(family.architecture): family
    for of_type in FAMILIES.values()
    for family in of_type
    if family.tied and family.architecture
}


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("architecture", LANGUAGES)
def test_transformers_finds_every_tensor_in_what_is_saved(architecture: str, tied: bool, tmp_path: Path) -> None:
    family, kind = LANGUAGES[architecture], getattr(transformers, architecture)
    theirs = kind.config_class(**SIZES[family.name], tie_word_embeddings=tied).to_dict()
    theirs |= {"model_type": family.name, "architectures": [architecture]}
    checkpoint = Checkpoint(tiny.model(family.read_config(theirs)), family=family.name)
    checkpoint.save(tmp_path)
    _, loading = kind.from_pretrained(tmp_path, output_loading_info=True)
    assert {*loading["missing_keys"]} <= {*family.kept}, loading  # of a part that no model made here has
    assert not loading["unexpected_keys"] and not loading["mismatched_keys"], loading
    again = load(tmp_path)
    assert again.report.ok and canonical_config(again.config) == canonical_config(checkpoint.config)
