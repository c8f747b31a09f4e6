"""GPT-2 against transformers: the same weights give the same numbers, read from and written to the same files."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel, GPT2Model

from engine.checkpoints import Checkpoint, load
from engine.checkpoints.locate import locate
from engine.generation.generate import generate
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers import tokenizer_kinds, train
from tests.engine import tiny
from tests.shipped import DIFFERENT

IDS = torch.tensor([[5, 0, 50, 7, 7, 31, 12, 3, 44, 1]])
SMALL = {"vocab_size": 53, "n_positions": 20, "n_embd": 24, "n_layer": 3, "n_head": 4}
SMALL |= {"bos_token_id": None, "eos_token_id": None}
SHAPES = {
    "as published": {},
    "gelu": {"activation_function": "gelu"},
    "relu": {"activation_function": "relu"},
    "silu": {"activation_function": "silu"},
    "n_inner": {"n_inner": 40},
    "untied": {"tie_word_embeddings": False},
    "another epsilon": {"layer_norm_epsilon": 0.1},
}


def theirs(**changes) -> GPT2LMHeadModel:
    """Random, and far enough from zero that attention is not uniform and biases matter."""
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**{**SMALL, **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


def assert_equal_to_theirs(trace: Trace, model: GPT2LMHeadModel) -> None:
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(trace.ids, output_attentions=True, output_hidden_states=True)
    hidden = [*trace.stack("resid_pre"), trace["final_norm.out"]]
    torch.testing.assert_close(trace["logits"], expected.logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(trace.stack("attn.pattern"), torch.stack(expected.attentions), atol=1e-5, rtol=0)
    for ours, other in zip(hidden, expected.hidden_states, strict=True):
        torch.testing.assert_close(ours, other, atol=1e-4, rtol=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_logits_attention_and_hidden_states_equal_transformers(shape: str, tmp_path: Path) -> None:
    model = theirs(**SHAPES[shape])
    model.save_pretrained(tmp_path)
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok
    assert checkpoint.config.tied == model.config.tie_word_embeddings
    assert_equal_to_theirs(run(checkpoint.model, IDS), model)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_saved_transformers_reads_back_to_the_same_logits(shape: str, tmp_path: Path) -> None:
    theirs(**SHAPES[shape]).save_pretrained(tmp_path / "theirs")
    ours = load(tmp_path / "theirs")
    ours.save(tmp_path / "ours")
    again, loading = AutoModelForCausalLM.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(loading.values())
    with torch.no_grad():
        logits = again.eval()(IDS).logits
    torch.testing.assert_close(run(ours.model, IDS)["logits"], logits, atol=1e-5, rtol=1e-5)
    assert load(tmp_path / "ours").config == ours.config


def test_a_model_of_our_own_of_gpt2s_shape_is_saved_as_gpt2(tmp_path: Path) -> None:
    model = tiny.model()
    Checkpoint(model, name="mine").save(tmp_path)
    with torch.no_grad():
        logits = AutoModelForCausalLM.from_pretrained(tmp_path).eval()(torch.tensor([tiny.IDS])).logits
    torch.testing.assert_close(run(model, tiny.IDS)["logits"], logits, atol=1e-5, rtol=1e-5)


def with_prefix_left_out(model: GPT2LMHeadModel, folder: Path) -> None:
    """As the published GPT-2 is stored: the names of a body, and the architecture of the whole."""
    model.transformer.save_pretrained(folder)
    assert isinstance(GPT2Model.from_pretrained(folder), GPT2Model)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["GPT2LMHeadModel"]}))


def sharded(model: GPT2LMHeadModel, folder: Path) -> None:
    model.save_pretrained(folder, max_shard_size="30KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 2


def as_bin(model: GPT2LMHeadModel, folder: Path) -> None:
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")


def as_bin_of_2019(model: GPT2LMHeadModel, folder: Path) -> None:
    """With the mask buffers of that time, in the format before zip."""
    mask = torch.ones(1, 1, 20, 20).tril()
    buffers = {f"transformer.h.{i}.attn.bias": mask for i in range(3)}
    buffers |= {f"transformer.h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(3)}
    model.config.save_pretrained(folder)
    state = {**model.state_dict(), **buffers}
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)


def with_only_the_head_of_a_tied_pair(model: GPT2LMHeadModel, folder: Path) -> None:
    state = model.state_dict()
    del state["transformer.wte.weight"]
    model.config.save_pretrained(folder)
    torch.save(state, folder / "pytorch_model.bin")


@pytest.mark.parametrize(
    ("save", "statuses"),
    [
        (with_prefix_left_out, {"loaded": 40, "tied": 1}),
        (sharded, {"loaded": 40, "tied": 1}),
        (as_bin, {"loaded": 40, "tied": 1}),
        (as_bin_of_2019, {"loaded": 40, "tied": 1, "dropped": 6}),
        (with_only_the_head_of_a_tied_pair, {"loaded": 40}),
    ],
)
def test_however_it_was_stored_it_is_the_same_model_and_every_tensor_is_accounted_for(
    save: Callable[[GPT2LMHeadModel, Path], None], statuses: dict[str, int], tmp_path: Path
) -> None:
    model = theirs()
    tmp_path.mkdir(exist_ok=True)
    save(model, tmp_path)
    checkpoint = load(tmp_path)
    counted = {row.status: 0 for row in checkpoint.report.rows}
    for row in checkpoint.report.rows:
        counted[row.status] += 1
    assert counted == statuses
    assert checkpoint.report.ok
    with torch.no_grad():
        torch.testing.assert_close(run(checkpoint.model, IDS)["logits"], model(IDS).logits, atol=1e-4, rtol=0)


def test_a_file_whose_head_is_not_the_embedding_is_untied_whatever_its_config_says(tmp_path: Path) -> None:
    model = theirs(tie_word_embeddings=False)
    model.config.tie_word_embeddings = True
    as_bin(model, tmp_path)
    checkpoint = load(tmp_path)
    assert not checkpoint.config.tied
    with torch.no_grad():
        torch.testing.assert_close(run(checkpoint.model, IDS)["logits"], model(IDS).logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened_without_changing_a_number(half: torch.dtype, tmp_path: Path) -> None:
    model = theirs().to(half)
    model.save_pretrained(tmp_path)
    checkpoint = load(tmp_path)
    assert checkpoint.model.dtype == torch.float32
    assert_equal_to_theirs(run(checkpoint.model, IDS), model.float())


def test_greedy_generation_equals_transformers(tmp_path: Path) -> None:
    model = theirs()
    model.save_pretrained(tmp_path)
    ours = [step.id for step in generate(load(tmp_path), IDS, 8, greedy=True)]
    with torch.no_grad():
        other = model.generate(IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=8, do_sample=False)
    assert ours == other[0, IDS.shape[1] :].tolist()


TEXT = "The cat sat on the mat, 3 times. Then the cat left."


@pytest.mark.parametrize("kind", tokenizer_kinds())
def test_a_saved_tokenizer_gives_transformers_the_same_ids(kind: str, tmp_path: Path) -> None:
    tokenizer = train(kind, [TEXT], vocab_size=270 if kind == "bpe" else None)
    config = tiny.config(vocab_size=tokenizer.vocab_size)
    Checkpoint(tiny.model(config), tokenizer).save(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again(TEXT)["input_ids"] == list(tokenizer.encode(TEXT).ids)
    assert again.eos_token_id == tokenizer.end_id
    assert load(tmp_path).tokenizer.encode(TEXT).ids == tokenizer.encode(TEXT).ids


@pytest.mark.parametrize("name", DIFFERENT)
def test_transformers_reads_shipped_checkpoints_of_families_it_knows(name: str) -> None:
    checkpoint = load(name)
    folder = locate(name).weights.parent
    tokenizer, patches = checkpoint.tokenizer, checkpoint.config.embedding.patches
    if tokenizer is not None:
        assert AutoTokenizer.from_pretrained(folder).vocab_size == tokenizer.vocab_size
    config = json.loads((folder / "config.json").read_text())
    if config["model_type"] == "loupe":
        return
    model = getattr(transformers, config["architectures"][0]).from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.arange(5, 10)[None]
    read = ids if patches is None else tiny.normal(2, patches.channels, patches.image, patches.image)
    options = {} if checkpoint.config.encoder is None else {"target": ids}
    asked = {} if checkpoint.config.encoder is None else {"decoder_input_ids": ids}
    with torch.no_grad():
        theirs = model(read, **asked)
    logits = theirs.prediction_logits if "prediction_logits" in theirs else theirs.logits
    torch.testing.assert_close(run(checkpoint.model, read, **options)["logits"], logits, atol=1e-4, rtol=0)
