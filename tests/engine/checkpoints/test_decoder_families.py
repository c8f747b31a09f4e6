"""GPT-Neo, OPT, Gemma and Phi against transformers: read from and written to the same files, the same numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    GemmaConfig,
    GemmaForCausalLM,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    PhiConfig,
    PhiForCausalLM,
)

from engine.checkpoints import Checkpoint, load
from engine.checkpoints.canonical import canonical_config
from engine.generation.generate import generate
from engine.model.config import OutputHead
from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.checkpoints.against import equal, equal_patterns, opened, shaken

torch.set_num_threads(1)

IDS = torch.tensor([[5, 0, 30, 7, 7, 31, 12, 3, 24, 1], [8, 8, 2, 39, 6, 0, 1, 17, 25, 25]])
ENDS = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
NEO = {"vocab_size": 40, "hidden_size": 24, "num_heads": 4, "max_position_embeddings": 32, "window_size": 3, **ENDS}
OPT = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 36, **ENDS}
OPT |= {"max_position_embeddings": 32}
MODERN = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "intermediate_size": 36, **ENDS}
MODERN |= {"num_attention_heads": 4, "max_position_embeddings": 32}
GEMMA = MODERN | {"num_key_value_heads": 1, "head_dim": 10}
SMALL_OPT = {"do_layer_norm_before": False, "word_embed_proj_dim": 16}  # as the 350m is

CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "gpt_neo": (
        GPTNeoForCausalLM,
        GPTNeoConfig,
        NEO | {"num_layers": 4, "attention_types": [[["global", "local"], 2]]},
    ),
    "gpt_neo, windows first, relu": (
        GPTNeoForCausalLM,
        GPTNeoConfig,
        NEO
        | {"num_layers": 3, "attention_types": [[["local"], 2], [["global"], 1]]}
        | {"activation_function": "relu", "intermediate_size": 20},
    ),
    "gpt_neo, a window everywhere": (
        GPTNeoForCausalLM,
        GPTNeoConfig,
        NEO | {"num_layers": 2, "attention_types": [[["local"], 2]]},
    ),
    "gpt_neo, no window": (
        GPTNeoForCausalLM,
        GPTNeoConfig,
        NEO | {"num_layers": 2, "attention_types": [[["global"], 2]]},
    ),
    "opt": (OPTForCausalLM, OPTConfig, OPT),
    "opt, no biases": (OPTForCausalLM, OPTConfig, OPT | {"enable_bias": False, "activation_function": "gelu"}),
    "opt, untied, no final norm": (
        OPTForCausalLM,
        OPTConfig,
        OPT | {"_remove_final_layer_norm": True, "tie_word_embeddings": False},
    ),
    "opt, norms behind": (OPTForCausalLM, OPTConfig, OPT | {"do_layer_norm_before": False}),
    "opt, narrow tokens": (OPTForCausalLM, OPTConfig, OPT | SMALL_OPT),
    "gemma": (GemmaForCausalLM, GemmaConfig, GEMMA),
    "gemma, untied, biases": (
        GemmaForCausalLM,
        GemmaConfig,
        GEMMA | {"tie_word_embeddings": False, "attention_bias": True, "num_key_value_heads": 4, "hidden_act": "silu"},
    ),
    "phi": (PhiForCausalLM, PhiConfig, MODERN | {"rope_parameters": {"partial_rotary_factor": 0.4}, "hidden_size": 40}),
    "phi, normed queries and keys": (PhiForCausalLM, PhiConfig, MODERN | {"qk_layernorm": True, "hidden_size": 32}),
    "phi, groups, linear": (
        PhiForCausalLM,
        PhiConfig,
        MODERN
        | {"hidden_size": 32, "num_key_value_heads": 2}
        | {"rope_parameters": {"rope_type": "linear", "factor": 2.5, "partial_rotary_factor": 0.5}},
    ),
}


def theirs(name: str) -> Any:
    kind, config, sizes = CASES[name]
    torch.manual_seed(0)
    return shaken(kind(config(**json.loads(json.dumps(sizes)))))


def assert_equal(checkpoint: Checkpoint, model: Any) -> None:
    trace = run(checkpoint.model, IDS)
    with torch.no_grad():
        expected = model(IDS, output_attentions=True, output_hidden_states=True)
    equal(trace["logits"], expected.logits)
    equal_patterns(trace, "attn.pattern", expected.attentions)
    for ours, other in zip(trace.stack("resid_pre"), expected.hidden_states[:-1], strict=True):
        equal(ours, other)


@pytest.mark.parametrize("name", CASES)
def test_read_from_and_written_to_the_same_files_it_is_the_same_model(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    ours = opened(model, tmp_path / "theirs")
    assert_equal(ours, model)

    ours.save(tmp_path / "ours")
    written = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert written["model_type"] in (model.config.model_type, "gpt2")  # an OPT with a single kind of biases is a GPT-2
    again, loading = AutoModelForCausalLM.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(loading.values())
    with torch.no_grad():
        torch.testing.assert_close(again.eval()(IDS).logits, model(IDS).logits, atol=1e-5, rtol=1e-5)
    assert canonical_config(load(tmp_path / "ours").config) == canonical_config(ours.config)


@pytest.mark.parametrize("name", ["gpt_neo", "opt", "opt, narrow tokens", "gemma", "phi"])
def test_greedy_generation_equals_transformers(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    ids = IDS[:1]
    steps = list(generate(opened(model, tmp_path), ids, 8, greedy=True, stop_at_end=False))
    with torch.no_grad():
        other = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False)
    assert [step.id for step in steps] == other[0, ids.shape[1] :].tolist()


@pytest.mark.parametrize("name", ["opt", "gpt_neo"])
def test_padding_on_the_right_equals_transformers(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    texts = [[5, 0, 30, 7, 7, 31], [12, 3, 24]]
    ids, real = torch.tensor([texts[0], [*texts[1], 0, 0, 0]]), torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]])
    with torch.no_grad():
        expected = model(ids, attention_mask=real).logits
    logits = run(opened(model, tmp_path).model, texts)["logits"]
    equal(logits[0], expected[0])
    equal(logits[1, :3], expected[1, :3])


def rewritten(folder: Path, **changes: Any) -> None:
    """config.json with keys changed, and left out where the value is `...`."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not ...}))


def renamed(folder: Path, old: str, new: str, **more: torch.Tensor) -> None:
    tensors = load_file(folder / "model.safetensors")
    tensors = {name.replace(old, new, 1): tensor for name, tensor in tensors.items()} | more
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def test_gpt_neo_as_it_is_published(tmp_path: Path) -> None:
    """With the masks of its time, and its layers said twice; `attention_layers` counts."""
    model = theirs("gpt_neo")
    model.save_pretrained(tmp_path)
    mask = torch.ones(1, 1, 32, 32).tril().bool()
    near = mask & ~mask.tril(-3)
    masks = {f"transformer.h.{i}.attn.attention.bias": (mask, near)[i % 2].clone() for i in range(4)}
    masks |= {f"transformer.h.{i}.attn.attention.masked_bias": torch.tensor(-1e9) for i in range(4)}
    renamed(tmp_path, "", "", **masks)
    rewritten(tmp_path, attention_layers=["global", "local"] * 2, attention_types=[[["global"], 4]])
    checkpoint = load(tmp_path)
    assert len(checkpoint.report.rows_with("dropped")) == 8
    assert checkpoint.report.ok
    assert_equal(checkpoint, model)
    assert (checkpoint.config.attention.window, checkpoint.config.attention.windowed) == (3, (1, 3))
    assert checkpoint.config.attention.scale == 1.0


def test_opt_as_it_is_published(tmp_path: Path) -> None:
    """Without the prefix, and silent about what its first transformers knew no other value of."""
    model = theirs("opt, narrow tokens")
    model.save_pretrained(tmp_path)
    renamed(tmp_path, "model.decoder.", "decoder.")
    rewritten(tmp_path, enable_bias=..., layer_norm_elementwise_affine=..., tie_word_embeddings=...)
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok
    assert_equal(checkpoint, model)
    assert (checkpoint.config.embedding.width, checkpoint.config.norm.place) == (16, "after")


@pytest.mark.parametrize(
    "said", [{"hidden_act": "gelu"}, {"hidden_act": ..., "hidden_activation": None}, {"hidden_act": "gelu_new"}]
)
def test_gemmas_gelu_is_the_one_with_tanh(said: dict[str, Any], tmp_path: Path) -> None:
    """Its first files say gelu, and transformers reads them as its makers meant them."""
    model = theirs("gemma")
    model.save_pretrained(tmp_path)
    rewritten(tmp_path, **said)
    with torch.no_grad():
        expected = GemmaForCausalLM.from_pretrained(tmp_path).eval()(IDS).logits
    equal(run(load(tmp_path).model, IDS, keep="logits")["logits"], expected)
    equal(expected, model(IDS).logits)


def test_gemmas_embedding_is_scaled_by_a_number_as_coarse_as_its_vectors(tmp_path: Path) -> None:
    model = theirs("gemma").bfloat16()
    ours = opened(model, tmp_path).model.bfloat16()
    with torch.no_grad():
        expected = model.model.embed_tokens(IDS)
    assert torch.equal(run(ours, IDS, keep="embed.tokens")["embed.tokens"], expected)


def test_phi_as_it_is_published(tmp_path: Path) -> None:
    """transformers 4 wrote the part that turns, theta and scaling beside each other."""
    model = theirs("phi, groups, linear")
    model.save_pretrained(tmp_path)
    old = {"type": "linear", "factor": 2.5}
    rewritten(tmp_path, rope_parameters=..., rope_theta=10000.0, rope_scaling=old, partial_rotary_factor=0.5)
    assert_equal(load(tmp_path), model)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "gpt_neo",
            {"attention_types": [[["global"], 3]], "attention_layers": ...},
            "attention_layers must be 4 words",
        ),
        ("gpt_neo", {"attention_layers": ["global", "dense"] * 2}, "each local or global"),
        ("opt", {"layer_norm_elementwise_affine": False}, "layer_norm_elementwise_affine must be True, got False"),
        ("gemma", {"use_bidirectional_attention": True}, "use_bidirectional_attention must be false"),
        ("phi", {"hidden_size": ..., "n_embd": 40}, "config.json leaves out sizes, .*: hidden_size 2048"),
        *((name, {"is_causal": False}, "is_causal must be True, got False") for name in ("gpt_neo", "opt", "phi")),
    ],
)
def test_what_loupe_cannot_represent_is_refused_with_its_name_and_value(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    theirs(name).save_pretrained(tmp_path)
    rewritten(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        load(tmp_path)


def test_a_model_of_our_own_is_saved_as_phi_where_that_is_what_it_is(tmp_path: Path) -> None:
    model = tiny.model(tiny.config("rotary", sublayers="parallel_one_norm", head=OutputHead(bias=True), tied=False))
    Checkpoint(model).save(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "phi"
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(tmp_path).eval()(torch.tensor([tiny.IDS])).logits
    equal(run(model, tiny.IDS)["logits"], logits)
