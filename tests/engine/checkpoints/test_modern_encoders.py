"""Encoders with rotary positions against transformers, read and written: ModernBERT, ESM-2, Nomic BERT, Gemma 3."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine import load
from engine.checkpoints import Checkpoint
from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.heads import with_head
from engine.runtime.run import run
from tests.engine.checkpoints.against import equal, equal_patterns, opened, shaken, written_back
from tests.engine.checkpoints.test_encoder_families import logits, rewritten

TEXTS = [[5, 8, 30, 7, 7, 31, 12, 9, 24, 12, 33, 5, 21], [12, 7, 24, 9]]
PAD = 1
IDS = torch.tensor([TEXTS[0], TEXTS[1] + [PAD] * 9])
REAL = IDS != PAD
SLIDE, WHOLE = "sliding_attention", "full_attention"

SIZES = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 4, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 36, "max_position_embeddings": 34, "pad_token_id": PAD}
MODERN = SIZES | {"bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0, "sep_token_id": 2, "local_attention": 6}
ESM = SIZES | {"mask_token_id": 7, "position_embedding_type": "rotary", "token_dropout": True}
NOMIC = SIZES | {"type_vocab_size": 2}
GEMMA = SIZES | {"num_key_value_heads": 2, "head_dim": 8, "query_pre_attn_scalar": 12, "sliding_window": 4}
GEMMA |= {"layer_types": [SLIDE, WHOLE, SLIDE, SLIDE], "use_bidirectional_attention": True}
GEMMA |= {"bos_token_id": 2, "eos_token_id": 0}
SHAPES: dict[str, dict[str, Any]] = {"ModernBert": MODERN, "Esm": ESM, "NomicBert": NOMIC, "Gemma3Text": GEMMA}
BIASES = dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), True)
LINEAR, YARN = ({"rope_type": kind, "factor": 2.0, "rope_theta": 500.0} for kind in ("linear", "yarn"))
CASES: list[tuple[str, dict[str, Any]]] = [
    ("ModernBertModel", {}),
    ("ModernBertModel", BIASES | {"hidden_activation": "silu", "norm_eps": 0.1}),
    ("ModernBertModel", {"layer_types": [SLIDE, WHOLE, WHOLE, SLIDE], "local_attention": 5}),
    ("ModernBertModel", {"layer_types": [WHOLE] * 4}),
    ("ModernBertModel", {"layer_types": [SLIDE] * 4, "local_attention": 0}),
    ("ModernBertModel", {"global_attn_every_n_layers": 2, "global_rope_theta": 90.0, "local_rope_theta": 7.0}),
    ("ModernBertModel", {"rope_parameters": {WHOLE: YARN, SLIDE: LINEAR}}),
    ("ModernBertModel", {"rope_scaling": {"rope_type": "linear", "factor": 3.0}}),
    ("ModernBertForMaskedLM", {}),
    ("ModernBertForMaskedLM", BIASES | {"tie_word_embeddings": False, "classifier_activation": "relu"}),
    ("ModernBertForMaskedLM", {"decoder_bias": False}),
    *((f"ModernBertFor{task}", {}) for task in ("SequenceClassification", "TokenClassification", "QuestionAnswering")),
    *(
        (f"ModernBertFor{task}", BIASES | {"classifier_activation": "relu"})
        for task in ("SequenceClassification", "TokenClassification", "QuestionAnswering")
    ),
    ("ModernBertForSequenceClassification", {"classifier_pooling": "mean", "problem_type": "regression"}),
    *((f"Esm{task}", {}) for task in ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "Model")),
    ("EsmModel", {"position_embedding_type": "absolute", "emb_layer_norm_before": True}),
    ("EsmForMaskedLM", {"position_embedding_type": "absolute", "tie_word_embeddings": False, "layer_norm_eps": 0.1}),
    *((f"NomicBert{task}", {}) for task in ("ForMaskedLM", "ForTokenClassification", "Model")),
    ("NomicBertForSequenceClassification", {"problem_type": "multi_label_classification"}),
    ("NomicBertForMaskedLM", {"hidden_act": "gelu", "tie_word_embeddings": False, "layer_norm_eps": 0.1}),
    ("NomicBertModel", {"head_dim": 8, "rope_parameters": YARN | {"original_max_position_embeddings": 16}}),
    ("NomicBertModel", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}, "type_vocab_size": 3}),
    ("Gemma3TextModel", {}),
    ("Gemma3TextModel", {"sliding_window": 5, "attention_bias": True}),
    ("Gemma3TextModel", {"sliding_window": 1, "layer_types": [SLIDE] * 4}),
    ("Gemma3TextModel", {"use_bidirectional_attention": False}),
    ("EsmForMaskedLM", {"token_dropout": False, "emb_layer_norm_before": True, "rope_theta": 90.0}),
]


def theirs(name: str, **changes: Any) -> Any:
    family = next(family for family in SHAPES if name.startswith(family))
    labels: dict[str, Any] = {"num_labels": 3} if "Classification" in name else {}
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**json.loads(json.dumps(SHAPES[family] | labels | changes)))
    return shaken(getattr(transformers, name)(config))


def expected(model: Any, ids: Tensor = IDS, real: Tensor | None = REAL) -> Any:
    with torch.no_grad():
        found = model(ids, attention_mask=real, output_attentions=True, output_hidden_states=True)
    return found


def assert_same(checkpoint: Checkpoint, model: Any) -> None:
    """Of one text everything, of a padded batch what comes out where a token stands."""
    found, trace = expected(model, IDS[:1], None), run(checkpoint.model, IDS[:1])
    equal_patterns(trace, "attn.pattern", found.attentions)
    for ours, other in zip(trace.stack("resid_pre"), found.hidden_states[:-1], strict=True):
        equal(ours, other)
    both, batch = expected(model), run(checkpoint.model, TEXTS)
    wanted = logits(both)
    if wanted is None:
        name = "final_norm.out" if "final_norm.out" in batch else f"blocks.{checkpoint.config.layers - 1}.norm2.out"
        ours, wanted = batch[name], both.last_hidden_state
    else:
        ours = batch["logits"]
    if "Sequence" in type(model).__name__:
        equal(ours, wanted)
        return
    equal(ours[0], wanted[0])
    equal(ours[1, : len(TEXTS[1])], wanted[1, : len(TEXTS[1])])
    if both.get("pooler_output") is not None:
        equal(batch["pooler.out"], both.pooler_output)


@pytest.mark.parametrize(("name", "changes"), CASES, ids=str)
def test_each_option_equals_transformers_and_is_read_back(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = theirs(name, **changes)
    checkpoint = opened(model, tmp_path / "theirs")
    assert not checkpoint.report.notes
    assert_same(checkpoint, model)
    assert_same(checkpoint, written_back(checkpoint, tmp_path / "ours", type(model)))


def test_a_published_config_of_modernbert_is_read_without_a_word(tmp_path: Path) -> None:
    """As answerdotai/ModernBERT-base has it: before transformers 5."""
    model = theirs("ModernBertForMaskedLM", global_attn_every_n_layers=3)
    model.save_pretrained(tmp_path)
    old = {"global_attn_every_n_layers": 3, "global_rope_theta": 160000.0, "local_rope_theta": 10000.0}
    old |= {"layer_norm_eps": 1e-05, "position_embedding_type": "absolute", "gradient_checkpointing": False}
    rewritten(tmp_path, layer_types=..., rope_parameters=..., **old)
    checkpoint = load(tmp_path)
    assert not checkpoint.report.notes
    attention, other = checkpoint.config.attention, checkpoint.config.positions.other
    assert (attention.window, attention.windowed, checkpoint.config.positions.theta) == (4, (1, 2), 160000.0)
    assert other is not None and (other.layers, other.theta) == ((1, 2), 10000.0)
    assert_same(checkpoint, model)


def test_a_published_config_of_nomic_bert_is_read_as_its_program_wrote_it(tmp_path: Path) -> None:
    """As nomic-ai/nomic-embed-text-v1.5 has it, whose names of sizes are GPT-2's."""
    model = theirs("NomicBertModel")
    model.save_pretrained(tmp_path)
    said = {"n_embd": 24, "n_head": 4, "n_layer": 4, "n_inner": 36, "n_positions": 34, "layer_norm_epsilon": 1e-12}
    said |= {"rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "activation_function": "swiglu", "prenorm": False}
    said |= {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "vocab_size": 40, "type_vocab_size": 2}
    (tmp_path / "config.json").write_text(json.dumps(said | {"use_flash_attn": True, "causal": False}))
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok and not checkpoint.report.notes and checkpoint.config.context == 34
    equal(run(checkpoint.model, IDS[:1])["blocks.3.norm2.out"], expected(model, IDS[:1], None).last_hidden_state)
    rewritten(tmp_path, prenorm=True)
    with pytest.raises(ValueError, match="prenorm must be False, got True"):
        load(tmp_path)


def test_frequencies_that_are_not_those_of_the_config_are_told(tmp_path: Path) -> None:
    """transformers turns by those of the file, which were rounded to half precision once."""
    name = "esm.rotary_embeddings.inv_freq"
    checkpoint = opened(theirs("EsmForMaskedLM"), tmp_path)
    checkpoint.save(tmp_path / "ours")
    file = tmp_path / "ours" / "model.safetensors"
    tensors = load_file(file)
    save_file(tensors | {name: tensors[name] * 1.001}, file, {"format": "pt"})
    report = load(tmp_path / "ours").report
    assert [row.name for row in report.rows_with("unexpected")] == [name]
    assert any("should equal the rotary frequencies" in note for note in report.notes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"is_folding_model": True}, "is_folding_model must be False, got True"),
        ({"architectures": ["EsmForProteinFolding"]}, "architectures must be one of EsmForMaskedLM"),
        ({"mask_token_id": None}, "mask_token_id must be the id of a token, and is not there"),
        ({"pad_token_id": 0}, "pad_token_id must be 1, got 0"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type must be one of rotary, absolute"),
    ],
    ids=str,
)
def test_what_esm_cannot_be_is_one_sentence(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    theirs("EsmForMaskedLM").save_pretrained(tmp_path)
    rewritten(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(("task", "kind"), [("SequenceClassification", "sequence"), ("TokenClassification", "token")])
def test_another_head_is_that_of_the_family(task: str, kind: Any, tmp_path: Path) -> None:
    found = with_head(opened(theirs("ModernBertForMaskedLM", **BIASES), tmp_path / "masked").config, kind, "modernbert")
    judge = opened(theirs(f"ModernBertFor{task}", **BIASES, num_labels=2), tmp_path / "judge").config
    assert canonical_config(found) == canonical_config(judge)
    assert with_head(judge, kind).head == judge.head


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer_types": [WHOLE, SLIDE]}, "layer_types must be 4 words"),
        ({"classifier_pooling": "max"}, "classifier_pooling must be one of cls, mean, got 'max'"),
        ({"local_attention": -2}, "local_attention must be a whole number from 0"),
        ({"norm_bias": "no"}, "norm_bias must be true or false"),
    ],
    ids=str,
)
def test_what_modernbert_cannot_be_is_one_sentence(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    theirs("ModernBertForSequenceClassification").save_pretrained(tmp_path)
    rewritten(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        load(tmp_path)


@pytest.mark.parametrize("name", [f"{family}Model" for family in SHAPES if family != "Gemma3Text"])
def test_a_body_alone_opens_without_its_prefix_and_under_the_name_of_the_masked_head(name: str, tmp_path: Path) -> None:
    """As sentence-transformers saves it."""
    model = theirs(name)
    model.save_pretrained(tmp_path)
    rewritten(tmp_path, architectures=[name.replace("Model", "ForMaskedLM")])
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok and any(f"opened as {name}" in note for note in checkpoint.report.notes)
    assert_same(checkpoint, model)
