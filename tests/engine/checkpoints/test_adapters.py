"""Adapters against peft: the same A and B give the same numbers, read from and written to the same files."""

import copy
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from engine import load, run
from engine.checkpoints import Checkpoint, read_adapter, write_adapter
from engine.checkpoints.adapters.config import BASE, SILENT, AdapterConfig, name_base, public_base, read_config
from engine.checkpoints.hub import HubName, choose_files
from engine.checkpoints.save import export_checkpoint
from engine.edits import ApplyAdapter
from engine.model.layers.lora import Adapter, list_linears, merge
from engine.runtime import library
from tests.engine.checkpoints.against import IDS, TARGET, shaken
from tests.engine.model.layers.test_lora import adapted, random_adapter

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
VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 36}
VIT |= {"image_size": 8, "patch_size": 4}
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
    "BloomForCausalLM": {"vocab_size": 40, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "CodeGenForCausalLM": GPT2 | {"rotary_dim": 4},
    "GPTJForCausalLM": GPT2 | {"rotary_dim": 4},
    "OPTForCausalLM": MODERN | {"ffn_dim": 36},
    "OPTModel": MODERN | {"ffn_dim": 36},
    "MistralForCausalLM": GROUPS,
    "Qwen2ForCausalLM": {k: v for k, v in GROUPS.items() if k != "head_dim"},
    "Qwen3ForCausalLM": GROUPS,
    "GemmaForCausalLM": GROUPS,
    "Gemma2ForCausalLM": GROUPS,
    "Gemma3ForCausalLM": GROUPS,
    "SmolLM3ForCausalLM": GROUPS,
    "CohereForCausalLM": GROUPS,
    "MptForCausalLM": {"vocab_size": 40, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 32},
    "Glm4ForCausalLM": GROUPS,
    "NanoChatForCausalLM": GROUPS,
    "PhiForCausalLM": MODERN,
    "StableLmForCausalLM": {k: v for k, v in GROUPS.items() if k != "head_dim"},
    "Starcoder2ForCausalLM": GROUPS,
    "Phi3ForCausalLM": {k: v for k, v in GROUPS.items() if k != "head_dim"},
    "RobertaForMaskedLM": BERT | {"max_position_embeddings": 34},
    "ElectraForMaskedLM": BERT | {"embedding_size": 16},
    "AlbertForMaskedLM": BERT | {"embedding_size": 16},
    "DistilBertForMaskedLM": DISTIL,
    "MT5ForConditionalGeneration": T5,
    "BartForConditionalGeneration": BART,
    "MarianMTModel": MARIAN,
    "PegasusForConditionalGeneration": BART,
    "ViTForImageClassification": VIT,
    "ViTModel": VIT,
    "DeiTForImageClassification": VIT,
    "DeiTForImageClassificationWithTeacher": VIT,
    "DeiTModel": VIT,
    "ImageGPTForCausalImageModeling": GPT2,
}
PICTURE = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(4))
FIVE = list(FAMILIES)[:5]
DOWN = "base_model.model.model.layers.0.mlp.down_proj"


def theirs(name: str) -> Any:
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    return shaken(kind(kind.config_class(**FAMILIES[name])))


def logits_of(model: Any) -> Tensor:
    read = PICTURE if hasattr(model.config, "image_size") else IDS
    found = model(read, decoder_input_ids=TARGET) if model.config.is_encoder_decoder else model(read)
    return found.logits if hasattr(found, "logits") else found.last_hidden_state


def ours(checkpoint: Checkpoint, **options: Any) -> Tensor:
    target = TARGET if checkpoint.config.encoder is not None else None
    read = PICTURE if checkpoint.config.embedding.patches is not None else IDS
    trace = run(checkpoint.model, read, target=target, **options)
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


@pytest.mark.parametrize("name", FIVE)
def test_the_gradients_of_a_and_b_are_pefts(name: str, tmp_path: Path) -> None:
    checkpoint, adapter, model = both(name, tmp_path)
    learned = adapter.trainable()
    options = {"target": TARGET} if checkpoint.config.encoder is not None else {}
    with torch.enable_grad(), adapted({learned: 1.0}):
        model.requires_grad_(True)
        logits_of(model).logsumexp(-1).mean().backward()
        checkpoint.model(IDS, **options).logsumexp(-1).mean().backward()
    grads = {n: (a.grad, b.grad) for n, (a, b) in learned.matrices.items()}
    assert len({id(a) for a, _ in learned.matrices.values()}) == len(linear_names(model)) // 3  # of a fused one, one A
    write_adapter(replace(adapter, matrices=grads, alphas={}), checkpoint, tmp_path / "grads")
    found = load_file(tmp_path / "grads" / "adapter_model.safetensors")
    expected = {n.replace(".default", ""): p.grad for n, p in model.named_parameters() if "lora_" in n}
    assert found.keys() == expected.keys()
    for key, gradient in expected.items():
        equal(found[key], gradient)


def test_a_fused_adapter_keeps_its_rank_and_parts_of_their_own_are_stacked(tmp_path: Path) -> None:
    checkpoint, adapter, _ = both("GPT2LMHeadModel", tmp_path, target_modules=["c_attn"])
    write_adapter(adapter, checkpoint, tmp_path / "same")
    stored, again = (load_file(tmp_path / name / "adapter_model.safetensors") for name in ("adapter", "same"))
    assert stored.keys() == again.keys()
    assert all(torch.equal(stored[key], again[key]) for key in stored)
    apart = random_adapter(checkpoint.model, "blocks.0.attn.q", "blocks.0.attn.v")
    write_adapter(apart, checkpoint, tmp_path / "apart")
    config = json.loads((tmp_path / "apart" / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["fan_in_fan_out"]) == (6, 12.0, True)
    (b,) = (t for n, t in load_file(tmp_path / "apart" / "adapter_model.safetensors").items() if "lora_B" in n)
    assert [bool(block.any()) for third in b.chunk(3) for block in third.chunk(2, 1)] == [1, 0, 0, 0, 0, 1]


CHANGES = {
    "rank and alpha of their own": {"rank_pattern": {"q_proj": 5}, "alpha_pattern": {r"layers\.1\..*v_proj": 3}},
    "rank stabilised": {"use_rslora": True, "r": 4},
    "a regular expression": {"target_modules": r".*\.(q|v)_proj"},
    "some layers": {"target_modules": ["q_proj", "down_proj"], "layers_to_transform": [1], "layers_pattern": "layers"},
    "without some": {"target_modules": ["q_proj", "up_proj"], "exclude_modules": ["layers.0.self_attn.q_proj"]},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_the_configs_patterns_are_obeyed(changes: dict[str, Any], tmp_path: Path) -> None:
    checkpoint, adapter, model = both("LlamaForCausalLM", tmp_path, **changes)
    equal(ours(checkpoint, edits=[ApplyAdapter.of(adapter)]), logits_of(model))
    write_adapter(adapter, checkpoint, tmp_path / "again")
    again = PeftModel.from_pretrained(theirs("LlamaForCausalLM"), tmp_path / "again").eval()
    equal(logits_of(again), logits_of(model))


def rewritten(folder: Path, **changes: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


REFUSED = {
    r"peft_type must be LORA, got 'LOHA'": {"peft_type": "LOHA"},
    r"sets 'use_dora', which Loupe cannot represent": {"use_dora": True},
    r"sets 'what_comes_next'": {"what_comes_next": {"x": 1}},
    r"bias must be none, got 'all'": {"bias": "all"},
    r"init_lora_weights is 'pissa', which changes the base": {"init_lora_weights": "pissa"},
    r"r must be a whole number, got 'many'": {"r": "many"},
    r"lora_A.weight in adapter_model.safetensors must have shape \(5, 32\)": {"rank_pattern": {"q_proj": 5}},
    r"leaves out model.layers.0.mlp": {"target_modules": ["q_proj"]},
    r"leaves out model.layers.0": {"layers_to_transform": 1, "target_modules": ["q_proj", "mlp.up_proj"]},
    r"which is no regular expression": {"target_modules": "(q_proj"},
    r"which repeats too much": {"target_modules": "(.*)*x"},
    r"dropout of an adapter must lie in 0..1": {"lora_dropout": 1.0},
}


NEVER = {  # keys of LoraConfig that change what A and B do, bring tensors beside them, or change the base
    "megatron_config", "trainable_token_indices", "use_dora", "alora_invocation_tokens",
    "use_qalora", "monteclora_config", "layer_replication", "lora_bias", "target_parameters", "use_bdlora",
    "arrow_config", "kasa_config",
}  # fmt: skip


def test_every_key_of_pefts_config_is_honoured_ignored_or_refused_by_its_name(tmp_path: Path) -> None:
    """A key that a later peft brings fails here until it is decided about, and is refused where it is set."""
    honoured = {each.name for each in fields(AdapterConfig)}
    groups = (honoured, SILENT, NEVER)
    for name in (each.name for each in fields(LoraConfig)):
        assert sum(name in group for group in groups) == 1, name
    path, usual = tmp_path / "adapter_config.json", LoraConfig().to_dict() | {"peft_type": "LORA"}
    for init in (True, False, "gaussian", "Orthogonal", "eva", "mica"):
        path.write_text(json.dumps(usual | {"init_lora_weights": init}))
        assert read_config(path) == AdapterConfig()
    changed = usual | {name: {"set": 1} for name in SILENT if name not in ("peft_type", "init_lora_weights")}
    path.write_text(json.dumps(changed))
    assert read_config(path) == AdapterConfig()
    for name in NEVER:
        path.write_text(json.dumps(usual | {name: True}))
        with pytest.raises(ValueError, match=f"sets '{name}', which Loupe cannot represent"):
            read_config(path)


@pytest.mark.parametrize(("message", "changes"), REFUSED.items(), ids=map(str, REFUSED.values()))
def test_what_loupe_cannot_represent_is_refused(message: str, changes: dict[str, Any], tmp_path: Path) -> None:
    checkpoint, *_ = both("LlamaForCausalLM", tmp_path, target_modules=["q_proj", "up_proj"])
    rewritten(tmp_path / "adapter", **changes)
    with pytest.raises(ValueError, match=message):
        read_adapter(tmp_path / "adapter", checkpoint)


def test_a_file_with_other_tensors_or_without_some_is_refused(tmp_path: Path) -> None:
    checkpoint, *_ = both("LlamaForCausalLM", tmp_path, target_modules=["q_proj"])
    path = tmp_path / "adapter" / "adapter_model.safetensors"
    tensors = load_file(path)
    first, prefix, embedding = next(iter(tensors)), "base_model.model.", "lora_embedding_A"
    for changed, message in (
        (
            tensors | {f"{prefix}model.embed_tokens.{embedding}": torch.ones(3, 40)},
            "is neither A or B of a linear layer nor a whole tensor",
        ),
        (tensors | {f"{prefix}lm_head.lora_A.weight": torch.ones(3, 32)}, "acts on a layer that no adapter reaches"),
        ({n: t for n, t in tensors.items() if n != first}, "lacks A or B of model.layers.0.self_attn.q_proj"),
        ({n: t for n, t in tensors.items() if ".0." not in n}, "lacks A or B of model.layers.0.self_attn.q_proj"),
        (tensors | {first: torch.full_like(tensors[first], torch.nan)}, "must hold finite numbers"),
    ):
        save_file(changed, path)
        with pytest.raises(ValueError, match=message):
            read_adapter(tmp_path / "adapter", checkpoint)


def test_modules_are_called_as_older_transformers_did_too(tmp_path: Path) -> None:
    checkpoint, adapter, model = both("ViTForImageClassification", tmp_path, target_modules=["q_proj", "fc2"])
    path = tmp_path / "adapter" / "adapter_model.safetensors"
    for now, old in (("layers.", "encoder.layer."), ("q_proj", "attention.query"), ("mlp.fc2", "output.dense")):
        save_file({name.replace(now, old): tensor for name, tensor in load_file(path).items()}, path)
    rewritten(
        tmp_path / "adapter", target_modules=["query", "output.dense"], exclude_modules=["attention.output.dense"]
    )
    found = read_adapter(tmp_path / "adapter", checkpoint)
    assert found.matrices.keys() == adapter.matrices.keys()
    equal(ours(checkpoint, edits=[ApplyAdapter.of(found)]), logits_of(model))
    tensors = load_file(path)
    save_file({name: tensor for name, tensor in tensors.items() if ".1." not in name}, path)
    with pytest.raises(ValueError, match="lacks A or B of vit.encoder.layer.1.attention.attention.query"):
        read_adapter(tmp_path / "adapter", checkpoint)


def test_a_folder_with_an_adapter_opens_as_what_its_owner_made(tmp_path: Path) -> None:
    base, _, model = both("GPT2LMHeadModel", tmp_path)
    folder = tmp_path / "adapter"
    with pytest.raises(ValueError, match="the adapter adapter needs its base, None, which is no model on this machine"):
        load(folder)
    for changes, options in (
        ({BASE: "base"}, {}),
        ({BASE: str(tmp_path / "base")}, {}),
        ({BASE: "org/elsewhere"}, {"config": {BASE: tmp_path / "base"}}),
    ):
        rewritten(folder, **changes)
        opened = load(folder, **options)
        (adapter,) = opened.adapters
        assert (opened.name, adapter.base) == ("adapter", changes[BASE])
        for strength in (None, 1.0):  # of what the weights hold already it is no second helping
            edits = [] if strength is None else [ApplyAdapter(adapter.key, strength)]
            equal(ours(opened, edits=edits), logits_of(model))
        off = ApplyAdapter(adapter.key, 0.0)
        equal(ours(opened, edits=[off]), ours(base))
        before = run(opened.model, IDS)
        equal(run(opened.model, IDS, edits=[off], base=before)["logits"], ours(base))
        renamed = replace(adapter, name="another name")
        equal(ours(opened, edits=[ApplyAdapter.of(renamed, 0.0)]), ours(base))
    with pytest.raises(ValueError, match="needs its base, 'org/elsewhere'"):
        load(folder)
    rewritten(folder, **{BASE: str(folder)})
    with pytest.raises(ValueError, match="needs its base"):  # not itself
        load(folder)
    base.save(folder)
    assert load(folder).adapters[0].key == adapter.key
    equal(ours(load(folder)), logits_of(model))  # as transformers opens a folder with both
    load(folder).save(tmp_path / "whole")
    equal(logits_of(transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "whole")), logits_of(model))
    rewritten(folder, use_dora=True)
    assert "use_dora" in load(folder).report.notes[-1]


HEADS = {  # a base without the head, its classifier, PEFT's task and what else its head needs to be learned
    "BertModel": ("BertForSequenceClassification", "SEQ_CLS", []),
    "RobertaForMaskedLM": ("RobertaForSequenceClassification", "SEQ_CLS", []),
    "DistilBertForMaskedLM": ("DistilBertForSequenceClassification", "SEQ_CLS", ["pre_classifier"]),
    "ElectraForMaskedLM": ("ElectraForTokenClassification", "TOKEN_CLS", []),
    "AlbertForMaskedLM": ("AlbertForTokenClassification", "TOKEN_CLS", []),
    "GPT2LMHeadModel": ("GPT2ForSequenceClassification", "SEQ_CLS", []),
    "LlamaForCausalLM": ("LlamaForSequenceClassification", "SEQ_CLS", []),
    "Qwen2ForCausalLM": ("Qwen2ForTokenClassification", "TOKEN_CLS", []),
    "BertForMaskedLM": ("BertForQuestionAnswering", "QUESTION_ANS", []),
    "ViTModel": ("ViTForImageClassification", None, ["classifier"]),
}


EVERYDAY = ("BertModel", "DistilBertForMaskedLM", "LlamaForCausalLM", "ViTModel")


@pytest.mark.parametrize(
    "name", [name if name in EVERYDAY else pytest.param(name, marks=pytest.mark.long) for name in HEADS]
)
def test_a_head_that_was_learned_beside_an_adapter_comes_and_goes_with_it(name: str, tmp_path: Path) -> None:
    """PEFT saves it by itself for tasks with a head (modules_to_save), and so does Loupe."""
    named, task, more = HEADS[name]
    kind = getattr(transformers, named)
    settings = FAMILIES.get(name, BERT) | ({} if task == "QUESTION_ANS" else {"num_labels": 3})
    settings |= {"pad_token_id": 0} if task == "SEQ_CLS" and name in ("GPT2LMHeadModel", "LlamaForCausalLM") else {}
    torch.manual_seed(0)
    base = shaken(getattr(transformers, name)(kind.config_class(**settings)))
    base.save_pretrained(tmp_path / "base")
    torch.manual_seed(1)
    model = kind.from_pretrained(tmp_path / "base")
    targets = [each for each in linear_names(model) if "classifier" not in each]
    adapted = with_peft(model, task_type=task, target_modules=targets, modules_to_save=more or None)
    adapted.save_pretrained(tmp_path / "adapter")
    rewritten(tmp_path / "adapter", **{BASE: str(tmp_path / "base")})
    expected = answers_of(adapted.get_base_model())
    opened = load(tmp_path / "adapter")
    equal(ours(opened), expected)
    with pytest.raises(ValueError, match="of its own, learned beside its matrices"):
        read_adapter(tmp_path / "adapter", opened_under_another_head(opened))
    write_adapter(opened.adapters[0], opened, tmp_path / "again")
    torch.manual_seed(2)  # the head that transformers draws is another one
    again = PeftModel.from_pretrained(kind.from_pretrained(tmp_path / "base"), tmp_path / "again").eval()
    equal(answers_of(again.get_base_model()), expected)
    assert json.loads((tmp_path / "again" / "adapter_config.json").read_text())["task_type"] == task
    equal(ours(load(tmp_path / "again")), expected)
    opened.save(tmp_path / "whole")
    equal(answers_of(kind.from_pretrained(tmp_path / "whole").eval()), expected)


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "LlamaForCausalLM"])
@pytest.mark.parametrize("saved", ["lm_head", "wte|embed_tokens"])
def test_a_language_head_or_a_table_that_was_saved_whole_takes_the_place_of_the_bases(
    name: str, saved: str, tmp_path: Path
) -> None:
    theirs(name).save_pretrained(tmp_path / "base")
    model = getattr(transformers, name).from_pretrained(tmp_path / "base")
    whole = [part for part in saved.split("|") if any(path.endswith(part) for path, _ in model.named_modules())]
    targets = [each for each in linear_names(model) if "lm_head" not in each]
    adapted = with_peft(model, task_type="CAUSAL_LM", target_modules=targets, modules_to_save=whole)
    for path, parameter in adapted.named_parameters():
        if "modules_to_save" in path:
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(6)) / 4)
    adapted.save_pretrained(tmp_path / "adapter")
    rewritten(tmp_path / "adapter", **{BASE: str(tmp_path / "base")})
    base = getattr(transformers, name).from_pretrained(tmp_path / "base")
    again = PeftModel.from_pretrained(base, tmp_path / "adapter")
    equal(ours(load(tmp_path / "adapter")), logits_of(again.eval()))


@pytest.mark.parametrize("name", ["BertForSequenceClassification", "BertForMaskedLM", "LlamaForCausalLM"])
def test_what_reaches_outside_the_blocks_is_read_as_saved_whole(name: str, tmp_path: Path) -> None:
    """As "all-linear" does in an encoder: a pooler, the transform before the vocabulary; and a head of its own."""
    theirs(name).save_pretrained(tmp_path / "base")
    model = getattr(transformers, name).from_pretrained(tmp_path / "base")
    targets = [*linear_names(model), "lm_head"] if name == "LlamaForCausalLM" else "all-linear"
    adapted = with_peft(model, target_modules=targets, use_rslora=True)
    adapted.save_pretrained(tmp_path / "adapter")
    rewritten(tmp_path / "adapter", **{BASE: str(tmp_path / "base")})
    opened = load(tmp_path / "adapter")
    equal(ours(opened), logits_of(adapted))
    assert all(".attn." in each or ".mlp." in each for each in opened.adapters[0].matrices)
    write_adapter(opened.adapters[0], opened, tmp_path / "again")
    base = getattr(transformers, name).from_pretrained(tmp_path / "base")
    equal(logits_of(PeftModel.from_pretrained(base, tmp_path / "again").eval()), logits_of(adapted))
    with pytest.raises(ValueError, match="acts on a layer that no adapter reaches in this model"):
        read_adapter(tmp_path / "adapter", load(tmp_path / "base"))


def answers_of(model: Any) -> Tensor:
    found = model(PICTURE if hasattr(model.config, "image_size") else IDS)
    return torch.stack([found.start_logits, found.end_logits], -1) if "start_logits" in found else found.logits


def opened_under_another_head(opened: Checkpoint) -> Checkpoint:
    other = copy.deepcopy(opened.model)
    other.head.weight.copy_(other.head.weight + 1)
    return replace(opened, model=other)


def test_an_adapter_without_the_head_that_its_base_lacks_is_refused(tmp_path: Path) -> None:
    theirs("BertForMaskedLM").save_pretrained(tmp_path / "base")  # without a pooler, which peft leaves out unless told
    model = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "base")
    with_peft(model, task_type="SEQ_CLS", target_modules=["query"]).save_pretrained(tmp_path / "adapter")
    with pytest.raises(ValueError, match=r"must bring pooler.dense.weight .* and it is not there; train it with that"):
        load(tmp_path / "adapter", config={BASE: str(tmp_path / "base")})


def test_what_was_uploaded_names_its_base_and_never_a_path(tmp_path: Path) -> None:
    shipped = load("stories")
    write_adapter(replace(random_adapter(shipped.model), base=str(tmp_path)), shipped, tmp_path / "adapter")
    shipped.save(tmp_path / "base")
    with TemporaryDirectory() as made:
        folder = Path(made)
        for file in (tmp_path / "adapter").iterdir():
            (folder / file.name).write_bytes(file.read_bytes())
        held = SimpleNamespace(name=str(folder))
        for named in (str(tmp_path / "base"), "../base", "", None):
            rewritten(folder, **{BASE: named})
            with pytest.raises(ValueError, match="must name its base as one of the models here"):
                library.with_known_base(library.LoadOptions(folder, folder=held))
        rewritten(folder, **{BASE: "stories"})
        how = library.with_known_base(library.LoadOptions(folder, folder=held))
        assert len(load(how.source, config=how.config).adapters[0].matrices) > 1


def test_an_adapter_opens_on_another_machine_by_what_its_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs("GPT2LMHeadModel").save_pretrained(tmp_path / "here" / "my base")
    opened = load(tmp_path / "here" / "my base")
    adapter = replace(random_adapter(opened.model), base=str(tmp_path / "here" / "my base"))
    there = tmp_path / "there"
    write_adapter(adapter, opened, there / "mine")
    with ZipFile(export_checkpoint(opened, "folder", tmp_path)) as zipped:
        zipped.extractall(there)
    assert not any(str(tmp_path).encode() in file.read_bytes() for file in (there / "mine").iterdir())
    assert json.loads((there / "mine" / "adapter_config.json").read_text())[BASE] == "my-base"
    (tmp_path / "here").rename(tmp_path / "gone")
    monkeypatch.chdir(there)
    bound: dict[str, Any] = {}
    exec((there / "mine" / "README.md").read_text().split("```python\n")[1].split("```")[0], bound)
    expected = ours(opened, edits=[ApplyAdapter.of(adapter)])
    equal(logits_of(bound["model"].eval()), expected)
    torch.testing.assert_close(ours(load(there / "mine")), expected, atol=5e-5, rtol=1e-5)
    shipped = replace(random_adapter(load("stories").model, "attn.q"), base="assets/checkpoints/stories")
    write_adapter(shipped, load("stories"), there / "shipped")
    assert json.loads((there / "shipped" / "adapter_config.json").read_text())[BASE] == "stories"
    assert load(there / "shipped").adapters[0].base == name_base("stories")
    assert public_base("hub:org/name@v1") == "org/name@v1" and public_base("/nowhere/else") == "else"


def test_a_hubs_adapter_is_fetched_whole() -> None:
    names = ["README.md", "adapter_config.json", "adapter_model.safetensors", "code.py"]
    assert set(choose_files(names, HubName("org/adapter"), Path)) == set(names[:3])


def test_a_model_in_bfloat16_adds_what_peft_adds(tmp_path: Path) -> None:
    _, adapter, model = both("LlamaForCausalLM", tmp_path)
    half = load(tmp_path / "base", dtype=torch.bfloat16)
    for module in model.modules():
        if hasattr(module, "base_layer"):
            module.base_layer.bfloat16()
    linear, layer = list_linears(half.model)["blocks.0.mlp.out"], model.get_submodule(DOWN)
    x = torch.randn(2, 5, linear.in_features).bfloat16()
    with adapted({adapter: 1.0}):
        assert torch.equal(linear(x), layer(x))
