"""Files whose tensors have names of their own: told which family comes nearest, and opened by a mapping of names."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine import load
from engine.checkpoints import Checkpoint, IncompleteWeights
from engine.checkpoints.report import UnknownNames
from engine.runtime.run import run
from tests.engine import tiny

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
        ({"words.weight": "same", "places.weight": "same"}, r"a name of its own, got 'same' for two"),
    ],
)
def test_a_mapping_that_does_not_fit_is_one_sentence(rename: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        load(stored_under_own_names(tmp_path), rename=rename)


def test_a_raw_vision_transformer_is_told_that_a_vit_comes_nearest(tmp_path: Path) -> None:
    tensors = {"cls_token": torch.zeros(1, 1, 24), "pos_embed": torch.zeros(1, 10, 24)}
    tensors |= {"patch_embed.proj.weight": torch.zeros(24, 3, 4, 4), "patch_embed.proj.bias": torch.zeros(24)}
    for layer in range(2):
        for name in ("norm1", "norm2"):
            tensors |= {f"blocks.{layer}.{name}.{part}": torch.zeros(24) for part in ("weight", "bias")}
        for name, shape in (
            ("attn.qkv", (72, 24)),
            ("attn.proj", (24, 24)),
            ("mlp.fc1", (96, 24)),
            ("mlp.fc2", (24, 96)),
        ):
            tensors |= {f"blocks.{layer}.{name}.weight": torch.zeros(shape)}
            tensors |= {f"blocks.{layer}.{name}.bias": torch.zeros(shape[0])}
    tensors |= {"norm.weight": torch.zeros(24), "norm.bias": torch.zeros(24)}
    tensors |= {"head.weight": torch.zeros(5, 24), "head.bias": torch.zeros(5)}
    torch.save(tensors, tmp_path / "vit.pth")
    with pytest.raises(UnknownNames, match=r"the nearest is (ViT|DeiT)\w*, of whose names"):
        load(tmp_path / "vit.pth")
