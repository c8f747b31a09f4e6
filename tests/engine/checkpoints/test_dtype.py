"""Half precision kept as it is stored, or widened: for each kind of stack, next to transformers in the same dtype."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.checkpoints import load
from engine.checkpoints.families import FAMILIES
from engine.runtime.run import run
from tests.engine.checkpoints.against import IDS, TARGET

SIZES = {"vocab_size": 40, "num_hidden_layers": 3, "intermediate_size": 96, "hidden_size": 64, "num_attention_heads": 4}
MODELS: dict[str, Any] = {
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, num_key_value_heads=2)),
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=40, n_embd=64, n_layer=3, n_head=4, n_positions=32)
    ),
    "gpt_neox": lambda: transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**SIZES)),
    "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**SIZES)),
    "t5": lambda: transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=40, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4)
    ),
    "vit": lambda: transformers.ViTForImageClassification(
        transformers.ViTConfig(
            hidden_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=96,
            image_size=24,
            patch_size=8,
        )
    ),
}
CLOSE = {torch.bfloat16: 0.04, torch.float16: 0.005}  # of the largest logit; rounded to 8 and 11 bits at every step


def stirred(model: Any) -> Any:
    """Away from zero and one, but less than so that rounding alone would decide."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    return model.eval()


def logits(model: Any, ids: Tensor) -> Tensor:
    given = {"decoder_input_ids": TARGET} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        found: Tensor = model(ids.to(model.dtype) if ids.is_floating_point() else ids, **given).logits
    return found.float()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", MODELS)
def test_half_precision_is_kept_or_widened(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    model = stirred(MODELS[name]()).to(dtype)
    model.save_pretrained(tmp_path)
    ids = torch.randn(2, 3, 24, 24, generator=torch.Generator().manual_seed(0)) if name == "vit" else IDS
    target = TARGET if name == "t5" else None

    kept = load(tmp_path, dtype=None)
    assert {parameter.dtype for parameter in kept.model.parameters()} == {dtype}
    assert {row.dtype for row in kept.report.rows_with("loaded")} == {str(dtype).removeprefix("torch.")}
    trace = run(kept.model, ids, target=target)
    theirs = logits(type(model).from_pretrained(tmp_path, dtype=dtype, attn_implementation="eager").eval(), ids)
    assert (trace["logits"].float() - theirs).abs().max() < CLOSE[dtype] * theirs.abs().max()

    wide = load(tmp_path)
    assert {parameter.dtype for parameter in wide.model.parameters()} == {torch.float32}
    exact = logits(type(model).from_pretrained(tmp_path, dtype=torch.float32, attn_implementation="eager").eval(), ids)
    torch.testing.assert_close(run(wide.model, ids, target=target)["logits"], exact, atol=1e-4, rtol=1e-5)


def test_of_several_dtypes_the_one_of_most_numbers_is_the_models(tmp_path: Path) -> None:
    """Norms stay in float32 in many files; the model is of one dtype, as most of its numbers are, and says so."""
    MODELS["llama"]().to(torch.bfloat16).save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    mixed = {name: tensor.float() if "norm" in name else tensor for name, tensor in tensors.items()}
    save_file(mixed, tmp_path / "model.safetensors", {"format": "pt"})
    checkpoint = load(tmp_path, dtype=None)
    assert {parameter.dtype for parameter in checkpoint.model.parameters()} == {torch.bfloat16}
    norms = [row for row in checkpoint.report.rows if row.dtype == "float32"]
    assert len(norms) == 7 and all("norm" in row.name for row in norms)
    assert f"{len(tensors) - 7} in bfloat16, 7 in float32; the model holds all in bfloat16." in str(checkpoint.report)
    assert load(tmp_path).model.dtype == torch.float32


def test_what_is_kept_as_stored_is_a_map_of_its_file(tmp_path: Path) -> None:
    """The large matrices are of no memory of their own: nothing was copied."""
    MODELS["bert"]().save_pretrained(tmp_path)
    maps = "/proc/self/maps"
    if not Path(maps).exists():
        pytest.skip("memory maps are read from Linux's /proc")
    checkpoint = load(tmp_path)
    mapped = []
    for line in Path(maps).read_text().splitlines():
        if line.endswith("model.safetensors"):
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            mapped.append(range(start, end))
    pointers = [parameter.data_ptr() for parameter in checkpoint.model.parameters()]
    assert all(any(pointer in place for place in mapped) for pointer in pointers)


SMALL = {
    "vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 34, "n_inner": 48, "rotary_dim": 4,
    "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "num_decoder_layers": 2, "encoder_layers": 2,
    "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48, "ffn_dim": 48, "word_embed_proj_dim": 32, "hidden_dim": 48, "dim": 32, "embedding_size": 16,
    "image_size": 12, "patch_size": 4, "num_hidden_groups": 1, "attention_types": [[["global", "local"], 1]],
    "window_size": 4, "sliding_window": 4, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
    "decoder_vocab_size": 40, "decoder_start_token_id": 1, "qk_rope_head_dim": 8,
}  # fmt: skip
PUBLISHED = {name: families[0] for name, families in FAMILIES.items() if families[0].architecture}


def small(architecture: str) -> Any:
    kind = getattr(transformers, architecture)
    known = kind.config_class()
    free = {name for name in SMALL if not isinstance(getattr(kind.config_class, name, None), property)}
    torch.manual_seed(0)
    sizes = {name: value for name, value in SMALL.items() if name in free and hasattr(known, name)}
    return stirred(kind(kind.config_class(**sizes)))


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_byte_is_saved_as_it_was_opened(name: str, tmp_path: Path, subtests: pytest.Subtests) -> None:
    family = PUBLISHED[name]
    for dtype in (torch.float32, torch.bfloat16):
        with subtests.test(dtype=dtype):
            theirs, ours = tmp_path / f"{dtype}", tmp_path / f"{dtype} again"
            small(family.architecture or "").to(dtype).save_pretrained(theirs)
            load(theirs, dtype=None).save(ours)
            stored, again = (load_file(folder / "model.safetensors") for folder in (theirs, ours))
            for name, tensor in stored.items():
                kept = next((again[one] for one in (name, *family.spellings(name)) if one in again), None)
                assert family.drops(name) or (kept is not None and kept.dtype == dtype), name
                assert kept is None or torch.equal(kept, tensor), name
