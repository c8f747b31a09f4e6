"""TensorFlow's files of weights: BERT and T5 against what they were made of, and files that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import pytest
import torch
import transformers

from engine import load, run
from engine.checkpoints.weights import open_weights
from tests.engine.checkpoints.against import IDS, shaken
from tests.engine.checkpoints.test_dropped import SIZES

LAYERS = {"bert": "bert", "cls": "mlm___cls", "shared": "shared", "encoder": "encoder", "decoder": "decoder"}


def write_h5(model: Any, path: Path) -> None:
    """A model's tensors as transformers' TensorFlow classes saved them."""
    tables = {id(one.weight) for one in model.modules() if isinstance(one, torch.nn.Embedding)}
    norms = {id(one.weight) for one in model.modules() if isinstance(one, torch.nn.LayerNorm)}
    norms |= {id(one.bias) for one in model.modules() if isinstance(one, torch.nn.LayerNorm)}
    skipped = ("lm_head.weight", "embed_tokens.weight", "decoder.weight", "decoder.bias")
    with h5py.File(path, "w") as file:
        for name, tensor in model.named_parameters():
            if name.endswith(skipped):
                continue
            *parts, last = name.split(".")
            value = tensor.detach()
            if id(tensor) in norms:
                last = {"weight": "gamma", "bias": "beta"}[last]
            elif last == "weight" and tensor.dim() == 2:
                table = id(tensor) in tables
                last = ("weight" if parts[-1] in ("word_embeddings", "shared") else "embeddings") if table else "kernel"
                value = value if table else value.T
            layer = LAYERS[parts[0]]
            numbered = "/".join([layer, *parts[1:]])
            for part in parts:
                numbered = numbered.replace(f"/{part}/", f"_._{part}/") if part.isdigit() else numbered
            file[f"{layer}/tf_model/{numbered}/{last}:0"] = value.contiguous().numpy()


@pytest.mark.parametrize("name", ["BertForMaskedLM", "BertForPreTraining", "T5ForConditionalGeneration"])
def test_a_file_of_tensorflow_says_what_the_original_says(name: str, tmp_path: Path) -> None:
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    model = shaken(kind(kind.config_class(**SIZES[kind.config_class.model_type])))
    model.config.save_pretrained(tmp_path)
    write_h5(model, tmp_path / "tf_model.h5")
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok, checkpoint.report
    both = {"decoder_input_ids": IDS.flip(1)} if name.startswith("T5") else {}
    with torch.no_grad():
        expected = model(IDS, **both)[0]
    found = run(checkpoint.model, IDS, target=IDS.flip(1) if both else None)["logits"]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_what_is_no_such_file_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tf_model.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a/b/kernel:0", shape=(2**20, 2**20), dtype="float32")
    with pytest.raises(ValueError, match="does not hold them"):
        open_weights(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("a/b/kernel:0", data=torch.ones(64, 64).numpy(), compression="gzip")
    with pytest.raises(ValueError, match="must hold plain numbers"):
        open_weights(path)
    with h5py.File(path, "w") as file:
        file["a/b/c/kernel:0"], file["a/d/c/kernel:0"] = torch.ones(2, 2).numpy(), torch.ones(2, 2).numpy()
    with pytest.raises(ValueError, match="two tensors"):
        open_weights(path)
    whole = path.read_bytes()
    for damaged in (
        b"",
        b"no file of this kind",
        whole[:100],
        whole[: len(whole) // 2],
        whole[:600] + bytes(200) + whole[800:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="tf_model.h5"):
            open_weights(path)
    monkeypatch.setattr("engine.checkpoints.tensorflow_file.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"needs h5py .* pip install"):
        open_weights(path)
