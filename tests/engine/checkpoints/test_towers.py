"""DINOv2 and the towers of CLIP against transformers: vectors, attention, and folders in both directions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from engine.runtime.run import run
from tests.engine import tiny
from tests.engine.checkpoints.against import equal, equal_patterns, opened, shaken, written_back

SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3}
PICTURE = SIZES | {"image_size": 12, "patch_size": 4}
CLIP_PICTURE = PICTURE | {"intermediate_size": 32, "projection_dim": 10}
CLIP_TEXT = SIZES | {"intermediate_size": 32, "projection_dim": 10, "vocab_size": 40, "max_position_embeddings": 16}
SIGLIP_PICTURE = PICTURE | {"intermediate_size": 32}
SIGLIP_TEXT = SIZES | {"intermediate_size": 32, "vocab_size": 40, "max_position_embeddings": 16}
PIXELS = tiny.normal(2, 3, 12, 12)
TEXTS = torch.tensor([[7, 3, 39, 1, 39], [5, 39, 2, 2, 2]])

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "dinov2": ("Dinov2Model", PICTURE),
    "dinov2, gated, no bias": ("Dinov2Model", PICTURE | {"use_swiglu_ffn": True, "mlp_ratio": 2, "qkv_bias": False}),
    "dinov2, another ratio": (
        "Dinov2Model",
        PICTURE | {"mlp_ratio": 3, "use_mask_token": False, "hidden_act": "relu", "layer_norm_eps": 0.1},
    ),
    "registers": ("Dinov2WithRegistersModel", PICTURE | {"num_register_tokens": 3}),
    "registers, gated": ("Dinov2WithRegistersModel", PICTURE | {"num_register_tokens": 1, "use_swiglu_ffn": True}),
    "clip, pictures": ("CLIPVisionModelWithProjection", CLIP_PICTURE),
    "clip, pictures alone": ("CLIPVisionModel", CLIP_PICTURE | {"hidden_act": "gelu", "num_channels": 1}),
    "clip, texts": ("CLIPTextModelWithProjection", CLIP_TEXT | {"eos_token_id": 39}),
    "clip, texts, as older configs": ("CLIPTextModelWithProjection", CLIP_TEXT | {"eos_token_id": 2}),
    "siglip, pictures": ("SiglipVisionModel", SIGLIP_PICTURE),
    "siglip, pictures, gelu": ("SiglipVisionModel", SIGLIP_PICTURE | {"hidden_act": "gelu", "layer_norm_eps": 0.1}),
    "siglip, texts": ("SiglipTextModel", SIGLIP_TEXT),
    "siglip, texts, another width": ("SiglipTextModel", SIGLIP_TEXT | {"projection_size": 10}),
    "clip, texts alone": ("CLIPTextModel", CLIP_TEXT | {"eos_token_id": 39, "layer_norm_eps": 0.1}),
}


def made(name: str) -> Any:
    kind = getattr(transformers, MODELS[name][0])
    torch.manual_seed(0)
    return shaken(kind(kind.config_class(**MODELS[name][1])))


def vector_of(found: Any) -> torch.Tensor:
    return next(found[key] for key in ("image_embeds", "text_embeds", "pooler_output") if key in found)


@pytest.mark.parametrize("name", MODELS)
def test_a_tower_equals_transformers_and_is_read_back(name: str, tmp_path: Path) -> None:
    model = made(name)
    checkpoint = opened(model, tmp_path / "theirs")
    read = (
        TEXTS
        if checkpoint.config.embedding.patches is None
        else PIXELS[:, : checkpoint.config.embedding.patches.channels]
    )
    trace = run(checkpoint.model, read)
    last = "final_norm.out" if "final_norm.out" in trace else "blocks.1.resid_post"
    for other in (model, written_back(checkpoint, tmp_path / "ours", type(model))):
        with torch.no_grad():
            expected = other(read, output_attentions=True)
        equal_patterns(trace, "attn.pattern", expected.attentions)
        equal(trace[last], expected.last_hidden_state)
        equal(trace["vector.out"], vector_of(expected))
