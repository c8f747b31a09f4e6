"""Files whose tensors have names of their own: told which family comes nearest, and opened by a mapping of names."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import load
from engine.checkpoints import Checkpoint, IncompleteWeights
from engine.checkpoints.report import UnknownNames
from engine.model.config import MLP, Attention, Positions
from engine.runtime.run import run
from tests.engine import tiny
from tests.shipped import TRAINED

OWN = {
    "transformer.h.": "layer",
    "ln_1": "first_norm",
    "ln_2": "second_norm",
    "transformer.wte": "words",
    "transformer.wpe": "places",
    "transformer.ln_f": "last_norm",
}
BACK = {
    "layer{}.first_norm.*": "transformer.h.{}.ln_1.*",
    "layer{}.second_norm.*": "transformer.h.{}.ln_2.*",
    "layer{}.*": "transformer.h.{}.*",
    "words.weight": "transformer.wte.weight",
    "places.weight": "transformer.wpe.weight",
    "last_norm.*": "transformer.ln_f.*",
}
IDS = torch.tensor([tiny.IDS])


def stored_under_own_names(folder: Path) -> Path:
    Checkpoint(tiny.model()).save(folder)
    tensors = load_file(folder / "model.safetensors")
    for old, new in OWN.items():
        tensors = {name.replace(old, new): tensor for name, tensor in tensors.items()}
    (folder / "own").mkdir()
    torch.save(tensors, folder / "own" / "own.pt")
    return folder / "own" / "own.pt"


def test_a_file_of_an_unknown_layout_is_told_the_nearest_family_and_opens_by_its_names(tmp_path: Path) -> None:
    path = stored_under_own_names(tmp_path)
    with pytest.raises(UnknownNames, match=r"nearest is .*, of whose names \d+ are missing \(.*rename=") as raised:
        load(path)
    assert "config.json describes" not in str(raised.value)
    assert "words.weight" in raised.value.names and raised.value.expected
    shutil.copy(tmp_path / "config.json", path.parent)
    with pytest.raises(IncompleteWeights, match=r"map the names with rename="):
        load(path)
    checkpoint = load(path, rename=BACK)
    assert checkpoint.report.ok and checkpoint.family == "gpt2"
    assert torch.equal(run(checkpoint.model, IDS)["logits"], run(tiny.model(), IDS)["logits"])


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        ({"absent.{}": "transformer.{}"}, r"must name tensors of the file .* got 'absent.\{\}'"),
        ({"layer{}.*": "transformer.{}"}, r"with the same \{\} and \* in one order"),
        ({"words.weight, layer{}.*": "same"}, r"with the same \{\} and \* in one order"),
        ({"words.weight, places.weight": "one, two"}, r"one to several different ones or several .* to one"),
        ({"words.weight": "one, one"}, r"one to several different ones"),
        ({"words.weight, absent": "one"}, r"must stack tensors of the file, and 'absent' is not there"),
        ({"words.weight, last_norm.bias": "one"}, r"stack tensors .* one would be of words.weight \(\d+, \d+\), last"),
        ({"last_norm.bias": "a, b, c, d, e, f, g"}, r"a tensor whose first side divides by 7, and last_norm.bias is"),
        ({"words.weight": "same", "places.weight": "same"}, r"a name of its own, got 'same' for two"),
    ],
)
def test_a_mapping_that_does_not_fit_is_one_sentence(rename: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load(stored_under_own_names(tmp_path), rename=rename)


def raw_vision_transformer(path: Path) -> dict[str, torch.Tensor]:
    """Writes a file as timm stores one, q, k and v in one tensor."""
    width = {"attn.qkv": (72, 24), "attn.proj": (24, 24), "mlp.fc1": (96, 24), "mlp.fc2": (24, 96)}
    shapes = {"cls_token": (1, 1, 24), "pos_embed": (1, 10, 24), "patch_embed.proj.weight": (24, 3, 4, 4)}
    shapes |= {"patch_embed.proj.bias": (24,), "head.weight": (5, 24), "head.bias": (5,)}
    shapes |= {f"norm.{part}": (24,) for part in ("weight", "bias")}
    for layer in range(2):
        shapes |= {f"blocks.{layer}.norm{n}.{part}": (24,) for n in (1, 2) for part in ("weight", "bias")}
        shapes |= {f"blocks.{layer}.{name}.weight": shape for name, shape in width.items()}
        shapes |= {f"blocks.{layer}.{name}.bias": shape[:1] for name, shape in width.items()}
    drawn = torch.Generator().manual_seed(0)
    tensors = {name: torch.randn(shape, generator=drawn) for name, shape in shapes.items()}
    torch.save(tensors, path)
    return tensors


HEAD = "encoder.layer.{}.attention.attention"
AS_VIT = {
    "cls_token": "embeddings.cls_token",
    "pos_embed": "embeddings.position_embeddings",
    "patch_embed.proj.*": "embeddings.patch_embeddings.projection.*",
    "blocks.{}.attn.qkv.*": f"{HEAD}.query.*, {HEAD}.key.*, {HEAD}.value.*",
    "blocks.{}.attn.proj.*": "encoder.layer.{}.attention.output.dense.*",
    "blocks.{}.norm1.*": "encoder.layer.{}.layernorm_before.*",
    "blocks.{}.norm2.*": "encoder.layer.{}.layernorm_after.*",
    "blocks.{}.mlp.fc1.*": "encoder.layer.{}.intermediate.dense.*",
    "blocks.{}.mlp.fc2.*": "encoder.layer.{}.output.dense.*",
    "norm.*": "layernorm.*",
    "head.*": "classifier.*",
}


def test_a_raw_vision_transformer_is_told_that_a_model_of_pictures_comes_nearest(tmp_path: Path) -> None:
    raw_vision_transformer(tmp_path / "vit.pth")
    told = r"the nearest is (ViT|DeiT|CLIPVision|Siglip|D[iI][nN]O)\w*, of whose names .* commas split a tensor"
    with pytest.raises(UnknownNames, match=told) as raised:
        load(tmp_path / "vit.pth")
    assert any("patch_embedding" in name for name in raised.value.expected)


def test_q_k_and_v_in_one_tensor_are_split_in_thirds(tmp_path: Path) -> None:
    tensors = raw_vision_transformer(tmp_path / "vit.pth")
    checkpoint = load(tmp_path / "vit.pth", rename=AS_VIT)
    assert checkpoint.report.ok and checkpoint.family == "vit"
    block = checkpoint.model.state_dict()
    for part in ("weight", "bias"):
        stacked = torch.cat([block[f"blocks.1.attn.{name}.{part}"] for name in "qkv"])
        assert torch.equal(stacked, tensors[f"blocks.1.attn.qkv.{part}"])


def test_several_tensors_are_stacked_into_one(tmp_path: Path) -> None:
    """A GPT-NeoX of one head, whose q, k and v lie apart."""
    positions = Positions("rotary", turned=8)
    config = replace(
        tiny.CONFIG, attention=Attention(1), positions=positions, sublayers="parallel", tied=False, mlp=MLP(20, "gelu")
    )
    model = tiny.model(config)
    Checkpoint(model).save(tmp_path)
    tensors, fused = load_file(tmp_path / "model.safetensors"), "attention.query_key_value."
    for name in [name for name in tensors if fused in name]:
        parts = zip("qkv", tensors.pop(name).chunk(3), strict=True)
        tensors |= {name.replace(fused, f"{letter}."): part.clone() for letter, part in parts}
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(IncompleteWeights, match="^the weights of GPTNeoXForCausalLM must hold .*map the names"):
        load(tmp_path)
    parts = ", ".join(f"gpt_neox.layers.{{}}.{letter}.*" for letter in "qkv")
    checkpoint = load(tmp_path, rename={parts: f"gpt_neox.layers.{{}}.{fused}*"})
    assert checkpoint.report.ok and checkpoint.family == "gpt_neox"
    assert torch.equal(run(checkpoint.model, IDS)["logits"], run(model, IDS)["logits"])


@pytest.mark.parametrize("name", [name for name in TRAINED if name not in ("induction", "plane")])
def test_loupes_own_weights_are_known_without_their_config(name: str, tmp_path: Path) -> None:
    model = load(name).model
    torch.save(model.state_dict(), tmp_path / "own.pt")
    opened = load(tmp_path / "own.pt")
    assert opened.report.ok and "There is no config.json" in opened.report.notes[0]
    own = model.state_dict()
    assert all(torch.equal(tensor, own[key]) for key, tensor in opened.model.state_dict().items())


def test_loupes_own_weights_of_a_model_that_no_family_has_are_called_so(tmp_path: Path) -> None:
    torch.save(load("induction").model.state_dict(), tmp_path / "own.pt")
    with pytest.raises(ValueError, match=r"they are Loupe's own, .* write it with checkpoint.save\(folder\)"):
        load(tmp_path / "own.pt")
