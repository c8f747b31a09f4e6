"""Loupe's numbers beside those of transformers, as the page shows them: small when they agree, large when not."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForSequenceClassification,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    ImageGPTConfig,
    ImageGPTForCausalImageModeling,
    ImageGPTForImageClassification,
    LlamaConfig,
    LlamaForCausalLM,
    OPTConfig,
    OPTForSequenceClassification,
    OPTModel,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
    ViTModel,
)

from engine import load
from engine.analysis.parity import Parity, available, parity
from engine.checkpoints import Checkpoint
from engine.checkpoints.locate import SHIPPED
from engine.inputs.readers import Reading, read_text
from engine.tokenizers.encoding import Encoding
from tests.engine import tiny
from tests.engine.checkpoints.against import shaken

pytestmark = pytest.mark.long

GPT2: dict[str, Any] = {"vocab_size": 40, "n_positions": 32, "n_embd": 24, "n_layer": 2, "n_head": 4}
LLAMA: dict[str, Any] = {"vocab_size": 40, "hidden_size": 24, "intermediate_size": 36, "num_hidden_layers": 2}
LLAMA |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
BERT: dict[str, Any] = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
BERT |= {"intermediate_size": 36, "max_position_embeddings": 32}
T5: dict[str, Any] = {"vocab_size": 40, "d_model": 24, "d_kv": 6, "d_ff": 36, "num_layers": 2, "num_heads": 4}
BART: dict[str, Any] = {
    "vocab_size": 40,
    "d_model": 24,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
}
BART |= {"decoder_attention_heads": 3, "encoder_ffn_dim": 36, "decoder_ffn_dim": 32, "max_position_embeddings": 32}
VIT: dict[str, Any] = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 36}
VIT |= {"image_size": 12, "patch_size": 4, "num_labels": 5}
OPT: dict[str, Any] = {"vocab_size": 40, "hidden_size": 24, "word_embed_proj_dim": 16, "num_hidden_layers": 2}
OPT |= {"ffn_dim": 36, "num_attention_heads": 4, "max_position_embeddings": 32, "pad_token_id": 39}
IMAGEGPT: dict[str, Any] = {"vocab_size": 17, "n_positions": 64, "n_embd": 24, "n_layer": 2, "n_head": 4}

IDS = Encoding.from_ids([5, 0, 30, 7, 7, 31, 12, 3])
TEXT = Reading(IDS)
PAIR = Reading(replace(IDS, segments=(0, 0, 0, 0, 1, 1, 1, 1)))
TARGETED = Reading(IDS, target=Encoding.from_ids([2, 17, 4, 33]))
PIXELS = Reading(tiny.normal(1, 3, 12, 12))
COLOURS = Reading(Encoding.from_ids([16, 0, 3, 7, 7, 15]))

SELF = ["blocks.0.attn.pattern", "blocks.1.attn.pattern"]
T5S = [f"encoder.{name}" for name in SELF] + [f"decoder.{name}" for name in SELF]
T5S += [f"decoder.blocks.{layer}.cross_attn.pattern" for layer in (0, 1)]
BARTS = ["encoder.blocks.0.attn.pattern", *(name for name in T5S if name.startswith("decoder."))]
SHAPES: dict[str, tuple[Any, Any, Reading, list[str], tuple[str, ...]]] = {
    "gpt2": (GPT2LMHeadModel, GPT2Config(**GPT2), TEXT, SELF, ("logits",)),
    "llama": (LlamaForCausalLM, LlamaConfig(**LLAMA), TEXT, SELF, ("logits",)),
    "bert": (BertForMaskedLM, BertConfig(**BERT), PAIR, SELF, ("logits",)),
    "bert, two heads": (BertForPreTraining, BertConfig(**BERT), PAIR, SELF, ("logits", "next_sentence")),
    "bert, next": (BertForNextSentencePrediction, BertConfig(**BERT), PAIR, SELF, ("next_sentence",)),
    "bert, classes": (BertForSequenceClassification, BertConfig(**BERT | {"num_labels": 3}), PAIR, SELF, ("logits",)),
    "bert, no head": (BertModel, BertConfig(**BERT), PAIR, SELF, ("last hidden state", "pooler")),
    "t5": (T5ForConditionalGeneration, T5Config(**T5 | {"decoder_start_token_id": 0}), TARGETED, T5S, ("logits",)),
    "bart": (BartForConditionalGeneration, BartConfig(**BART), TARGETED, BARTS, ("logits",)),
    "bart, nothing written": (BartForConditionalGeneration, BartConfig(**BART), TEXT, BARTS, ("logits",)),
    "vit": (ViTForImageClassification, ViTConfig(**VIT), PIXELS, SELF, ("logits",)),
    "vit, no head": (ViTModel, ViTConfig(**VIT), PIXELS, SELF, ("last hidden state", "pooler")),
    "imagegpt": (ImageGPTForCausalImageModeling, ImageGPTConfig(**IMAGEGPT), COLOURS, SELF, ("logits",)),
    "imagegpt, classes": (ImageGPTForImageClassification, ImageGPTConfig(**IMAGEGPT), COLOURS, SELF, ("logits",)),
    "opt, narrow, classes": (OPTForSequenceClassification, OPTConfig(**OPT), TEXT, SELF, ("logits",)),
    "opt, narrow, no head": (OPTModel, OPTConfig(**OPT), TEXT, SELF, ("last hidden state",)),
}


def stored(name: str, folder: Path, **how: Any) -> tuple[Checkpoint, Reading]:
    kind, config, reading, _, _ = SHAPES[name]
    torch.manual_seed(0)
    shaken(kind(config)).save_pretrained(folder, **how)
    return load(folder), reading


def agrees(found: Parity) -> None:
    assert found.logits < 1e-4 and found.patterns < 1e-5, found


def worse(checkpoint: Checkpoint, name: str, by: float = 1.0) -> None:
    """One number of the open model changed."""
    with torch.no_grad():
        checkpoint.model.get_parameter(name)[1, 7] += by


@pytest.mark.parametrize("name", SHAPES)
def test_small_differences_in_every_layer_of_a_folder_that_both_read(name: str, tmp_path: Path) -> None:
    checkpoint, reading = stored(name, tmp_path)
    found = parity(checkpoint, tmp_path, reading)
    agrees(found)
    assert sorted(layer.hook for layer in found.layers) == sorted(SHAPES[name][3])
    assert found.compared == SHAPES[name][4]
    assert (found.through, found.architecture) == ("its own files", SHAPES[name][0].__name__)
    assert (found.ids, found.dtype) == (None, "float32")
    assert found.versions["torch"] == torch.__version__


@pytest.mark.parametrize("name", ["gpt2", "bert, two heads", "t5", "vit", "imagegpt"])
def test_a_model_without_files_is_saved_for_transformers(name: str, tmp_path: Path) -> None:
    checkpoint, reading = stored(name, tmp_path)
    worse(checkpoint, next(n for n, p in checkpoint.model.named_parameters() if "mlp.out" in n and p.dim() == 2))
    found = parity(checkpoint, None, reading)
    agrees(found)
    assert found.through == "our export"
    assert parity(checkpoint, tmp_path, reading).logits > 1e-3


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "vit", "imagegpt"])
def test_a_wrong_weight_is_noticed_in_the_layers_from_there_on(name: str, tmp_path: Path) -> None:
    checkpoint, reading = stored(name, tmp_path)
    worse(checkpoint, "blocks.1.attn.q.weight", 3.0)
    found = parity(checkpoint, tmp_path, reading)
    first, second = (layer.difference for layer in found.layers)
    assert first < 1e-5 < 1e-3 < second == found.patterns
    assert found.logits > 1e-4


def test_a_wrong_weight_between_the_stacks_is_noticed_in_the_cross_attention_alone(tmp_path: Path) -> None:
    checkpoint, reading = stored("t5", tmp_path)
    worse(checkpoint, "decoder.blocks.1.cross_attn.k.weight", 3.0)
    found = parity(checkpoint, tmp_path, reading)
    wrong = [layer.hook for layer in found.layers if layer.difference > 1e-4]
    assert wrong == ["decoder.blocks.1.cross_attn.pattern"]


def test_a_wrong_second_head_is_noticed(tmp_path: Path) -> None:
    checkpoint, reading = stored("bert, two heads", tmp_path)
    worse(checkpoint, "next_sentence.weight")
    found = parity(checkpoint, tmp_path, reading)
    assert found.logits > 1e-3 and found.patterns < 1e-5


def test_transformers_reads_the_files_themselves(tmp_path: Path) -> None:
    """Another model in the same place is another answer, whatever Loupe has open."""
    checkpoint, reading = stored("gpt2", tmp_path / "one")
    torch.manual_seed(5)
    shaken(GPT2LMHeadModel(GPT2Config(**GPT2))).save_pretrained(tmp_path / "other")
    assert parity(checkpoint, tmp_path / "other", reading).logits > 1e-2


@pytest.mark.parametrize("files", ["sharded", "pickled"])
def test_all_forms_of_weights(files: str, tmp_path: Path) -> None:
    checkpoint, reading = stored("bert", tmp_path, max_shard_size="20KB" if files == "sharded" else "1GB")
    if files == "pickled":
        checkpoint = load(tmp_path)
        (tmp_path / "model.safetensors").unlink()
        state = BertForMaskedLM(BertConfig(**BERT)).state_dict()
        torch.save(state, tmp_path / "pytorch_model.bin")
        checkpoint = load(tmp_path)
    else:
        assert len(list(tmp_path.glob("*.safetensors"))) > 1
    found = parity(checkpoint, tmp_path, reading)
    agrees(found)
    assert found.through == "its own files"


def test_half_precision_is_compared_in_half_precision(tmp_path: Path) -> None:
    stored("llama", tmp_path)
    found = parity(load(tmp_path, torch.bfloat16), tmp_path, TEXT)
    assert found.dtype == "bfloat16"
    assert 1e-6 < found.logits < 0.2


@pytest.mark.parametrize(
    ("name", "text", "second"), [("stories", "The little dog\nwas sad", ""), ("tales-bert", "The [MASK] sat.", "Hi!")]
)
def test_the_tokens_of_a_shipped_model_are_transformers_too(name: str, text: str, second: str) -> None:
    checkpoint = load(name)
    reading = read_text(checkpoint, text, 40, second)
    found = parity(checkpoint, SHIPPED / name, reading)
    agrees(found)
    assert (found.ids, found.through, found.positions) == (True, "its own files", len(reading.read))


def test_other_tokens_are_noticed(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "stories", tmp_path / "copy")
    checkpoint = load("stories")
    file = tmp_path / "copy" / "tokenizer.json"
    whole = json.loads(file.read_text())
    whole["pre_tokenizer"] = None
    file.write_text(json.dumps(whole))
    found = parity(checkpoint, tmp_path / "copy", read_text(checkpoint, "The little dog was sad.", 40))
    assert found.ids is False
    agrees(found)


def test_a_model_that_transformers_lacks_is_said_in_a_sentence() -> None:
    checkpoint = load("induction")
    with pytest.raises(ValueError, match="transformers has no model like this one"):
        parity(checkpoint, SHIPPED / "induction", read_text(checkpoint, "a b a b", 9))


def test_nothing_that_a_folder_names_is_executed(tmp_path: Path) -> None:
    folder, trap = tmp_path / "model", tmp_path / "trap"
    checkpoint, reading = stored("gpt2", folder)
    (folder / "evil.py").write_text(f"open({str(trap)!r}, 'w')\nclass Model: ...\n")
    for name, table in {"config": "AutoModelForCausalLM", "tokenizer_config": "AutoTokenizer"}.items():
        file = folder / f"{name}.json"
        fields = json.loads(file.read_text()) if file.is_file() else {}
        fields |= {"auto_map": {"AutoConfig": "evil.Model", table: "evil.Model"}, "num_labels": 10**12}
        fields |= {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}
        fields |= {"transformers_weights": "../elsewhere.safetensors"}
        file.write_text(json.dumps(fields))
    (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "somebody/else"}))
    agrees(parity(checkpoint, folder, reading))
    assert not trap.exists()


class Trap:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_pickle_with_code_is_refused(tmp_path: Path) -> None:
    checkpoint, reading = stored("gpt2", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").unlink()
    torch.save({"transformer.wte.weight": Trap(tmp_path / "trap")}, tmp_path / "model" / "pytorch_model.bin")
    with pytest.raises(ValueError):
        parity(checkpoint, tmp_path / "model", reading)
    assert not (tmp_path / "trap").exists()


def test_what_transformers_cannot_open_is_a_sentence(tmp_path: Path) -> None:
    checkpoint, reading = stored("gpt2", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {"activation_function": "no such thing"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="GPT2LMHeadModel cannot open or run this checkpoint") as raised:
        parity(checkpoint, tmp_path, reading)
    assert "\n" not in str(raised.value)


def test_weights_that_transformers_does_not_find_are_not_made_up(tmp_path: Path) -> None:
    checkpoint, reading = stored("gpt2", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({f"module.{name}": tensor for name, tensor in tensors.items()}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="does not find transformer.h.0.attn.c_attn.bias in the files, nor 27"):
        parity(checkpoint, tmp_path, reading)


def test_it_is_offered_only_where_transformers_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert available()
    monkeypatch.setattr("engine.analysis.parity.find_spec", lambda name: None)
    assert not available()


def test_transformers_is_not_imported_before_it_is_needed() -> None:
    import subprocess
    import sys

    code = "import sys, engine.analysis.parity as p; p.available(); sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
