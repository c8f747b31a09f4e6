"""Adapters against peft: the same A and B give the same numbers, read from and written to the same files."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from engine import load, run
from engine.checkpoints import Checkpoint, read_adapter, write_adapter
from engine.edits import ApplyAdapter
from engine.model.layers.lora import Adapter, merge
from tests.engine.checkpoints.against import IDS, TARGET, shaken
from tests.engine.model.layers.test_lora import random_adapter

ENDS = {"vocab_size": 40, "pad_token_id": None, "bos_token_id": None, "eos_token_id": None}
GPT2 = ENDS | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
MODERN = ENDS | {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 36, "num_attention_heads": 4}
MODERN |= {"max_position_embeddings": 32}
GROUPS = MODERN | {"num_key_value_heads": 2, "head_dim": 8}
NEO = ENDS | {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]}
BERT = MODERN | {"pad_token_id": 1, "vocab_size": 40}
DISTIL = {"vocab_size": 40, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 36, "max_position_embeddings": 34}
T5 = {"vocab_size": 40, "d_model": 32, "d_kv": 8, "d_ff": 36, "num_layers": 2, "num_heads": 4}
T5 |= {"decoder_start_token_id": 0, "relative_attention_num_buckets": 8, "feed_forward_proj": "gated-gelu"}
BART = {"vocab_size": 40, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4}
BART |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 36, "decoder_ffn_dim": 36, "max_position_embeddings": 32}
MARIAN = BART | {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1}
FAMILIES = {
    "GPT2LMHeadModel": GPT2,
    "LlamaForCausalLM": GROUPS,
    "BertForMaskedLM": BERT,
    "T5ForConditionalGeneration": T5,
    "GPTNeoXForCausalLM": MODERN,
    "GPT2Model": GPT2,
    "LlamaModel": GROUPS,
    "BertModel": BERT,
    "BertForSequenceClassification": BERT,
    "T5EncoderModel": T5,
    "GPTNeoXModel": MODERN,
    "GPTNeoForCausalLM": NEO | {"max_position_embeddings": 32, "window_size": 4},
    "GPTJForCausalLM": GPT2 | {"rotary_dim": 4},
    "OPTForCausalLM": MODERN | {"ffn_dim": 36},
    "OPTModel": MODERN | {"ffn_dim": 36},
    "MistralForCausalLM": GROUPS,
    "Qwen2ForCausalLM": {k: v for k, v in GROUPS.items() if k != "head_dim"},
    "Qwen3ForCausalLM": GROUPS,
    "GemmaForCausalLM": GROUPS,
    "Gemma2ForCausalLM": GROUPS,
    "PhiForCausalLM": MODERN,
    "RobertaForMaskedLM": BERT | {"max_position_embeddings": 34},
    "ElectraForMaskedLM": BERT | {"embedding_size": 16},
    "AlbertForMaskedLM": BERT | {"embedding_size": 16},
    "DistilBertForMaskedLM": DISTIL,
    "MT5ForConditionalGeneration": T5,
    "BartForConditionalGeneration": BART,
    "MarianMTModel": MARIAN,
    "PegasusForConditionalGeneration": BART,
}
FIVE = list(FAMILIES)[:5]


def theirs(name: str) -> Any:
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    return shaken(kind(kind.config_class(**FAMILIES[name])))


def logits_of(model: Any) -> Tensor:
    found = model(IDS, decoder_input_ids=TARGET) if model.config.is_encoder_decoder else model(IDS)
    return found.logits if hasattr(found, "logits") else found.last_hidden_state


def ours(checkpoint: Checkpoint, **options: Any) -> Tensor:
    target = TARGET if checkpoint.config.encoder is not None else None
    trace = run(checkpoint.model, IDS, target=target, **options)
    if "logits" in trace:
        return trace["logits"]
    return trace["final_norm.out"] if "final_norm.out" in trace else trace.stack("norm2.out")[-1]


def linear_names(model: nn.Module) -> list[str]:
    """Every linear layer of the blocks, by its whole name."""
    found = [name for name, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)]
    return [name for name in found if any(part.isdigit() for part in name.split("."))]


def with_peft(model: Any, **changes: Any) -> PeftModel:
    """The same A and B each time, neither of them zero."""
    options = {"r": 3, "lora_alpha": 7, "target_modules": linear_names(model)} | changes
    made = get_peft_model(model, LoraConfig(**options))
    torch.manual_seed(2)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "lora_" in name:
                parameter.normal_(std=0.1)  # at 0.3 float32 itself is off by 1e-4 in T5
    return made.eval()


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def both(name: str, folder: Path, **changes: Any) -> tuple[Checkpoint, Adapter, PeftModel]:
    """The base in Loupe, an adapter of peft's read onto it, and the two in peft."""
    model = theirs(name)
    model.save_pretrained(folder / "base")
    adapted = with_peft(model, **changes)
    adapted.save_pretrained(folder / "adapter")
    checkpoint = load(folder / "base")
    return checkpoint, read_adapter(folder / "adapter", checkpoint), adapted


def equal(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_peft_wrote_gives_its_logits_and_merged_too(name: str, tmp_path: Path) -> None:
    checkpoint, adapter, model = both(name, tmp_path)
    expected, plain = logits_of(model), ours(checkpoint)
    assert not torch.allclose(expected, plain, atol=0.01)
    equal(ours(checkpoint, edits=[ApplyAdapter.of(adapter)]), expected)
    merged = replace(checkpoint, model=merge(checkpoint.model, {adapter: 1.0}))
    torch.testing.assert_close(ours(merged), expected, atol=5e-5, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_loupe_writes_gives_peft_its_logits_and_is_read_back(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    model.save_pretrained(tmp_path / "base")
    checkpoint = load(tmp_path / "base")
    adapter = random_adapter(checkpoint.model)
    q = next(name for name in adapter.matrices if name.endswith("attn.v"))
    adapter = replace(adapter, alphas={q: 11.0}, base="org/base", rank_stabilised=name == "GPT2LMHeadModel")
    write_adapter(adapter, checkpoint, tmp_path / "adapter")
    expected = ours(checkpoint, edits=[ApplyAdapter.of(adapter)])
    equal(logits_of(PeftModel.from_pretrained(model, tmp_path / "adapter").eval()), expected)
    again = read_adapter(tmp_path / "adapter", checkpoint)
    assert again.base == "org/base"
    equal(ours(checkpoint, edits=[ApplyAdapter.of(again)]), expected)
