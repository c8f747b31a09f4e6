"""BERT against transformers, with each of its heads."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
)

from engine import load
from engine.checkpoints import Checkpoint, IncompleteWeights
from engine.model.config import Embedding, OutputHead
from engine.runtime.run import run
from engine.tokenizers import Encoding
from tests.engine import tiny
from tests.engine.checkpoints.against import IDS, equal, equal_patterns, opened, shaken, written_back

SIZES = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"intermediate_size": 36, "max_position_embeddings": 32}
SEGMENTS = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1, 1, 1]])
PAIR = Encoding("", tuple(IDS[0].tolist()), ("x",) * 10, ((0, 0),) * 10, (False,) * 10, tuple(SEGMENTS[0].tolist()))
HEADS = {
    BertForPreTraining: ("masked", True, True),
    BertForMaskedLM: ("masked", False, False),
    BertForNextSentencePrediction: ("none", True, True),
    BertForSequenceClassification: ("sequence", True, False),
    BertForTokenClassification: ("token", False, False),
    BertModel: ("none", True, False),
}


def theirs(kind: type, **changes: Any) -> Any:
    torch.manual_seed(0)
    return shaken(kind(BertConfig(**{**SIZES, "num_labels": 3, **changes})))


def assert_same(checkpoint: Checkpoint, model: Any) -> None:
    trace = run(checkpoint.model, PAIR)
    with torch.no_grad():
        expected = model(IDS, token_type_ids=SEGMENTS, output_attentions=True)
    equal_patterns(trace, "attn.pattern", expected.attentions)
    if isinstance(model, BertForPreTraining):
        equal(trace["logits"], expected.prediction_logits)
        equal(trace["next_sentence"], expected.seq_relationship_logits)
    elif isinstance(model, BertForNextSentencePrediction):
        equal(trace["next_sentence"], expected.logits)
    elif isinstance(model, BertModel):
        equal(trace["blocks.1.norm2.out"], expected.last_hidden_state)
        equal(trace["pooler.out"], expected.pooler_output)
    else:
        equal(trace["logits"], expected.logits)


@pytest.mark.parametrize("kind", HEADS, ids=lambda kind: kind.__name__)
def test_each_head_equals_transformers_and_is_read_back(kind: type, tmp_path: Path) -> None:
    model = theirs(kind)
    checkpoint = opened(model, tmp_path / "theirs")
    head = checkpoint.config.head
    assert (head.kind, head.pooler, head.next_sentence) == HEADS[kind]
    assert_same(checkpoint, model)
    again = written_back(checkpoint, tmp_path / "ours", kind)
    assert_same(checkpoint, again)
    assert again.config.architectures == [kind.__name__]


@pytest.mark.parametrize(
    "changes",
    [{"hidden_act": "relu"}, {"tie_word_embeddings": False}, {"type_vocab_size": 3}, {"layer_norm_eps": 0.1}],
    ids=str,
)
def test_each_option_equals_transformers(changes: dict[str, Any], tmp_path: Path) -> None:
    model = theirs(BertForMaskedLM, **changes)
    checkpoint = opened(model, tmp_path / "theirs")
    assert checkpoint.config.tied == changes.get("tie_word_embeddings", True)
    assert checkpoint.config.embedding.segments == changes.get("type_vocab_size", 2)
    assert_same(checkpoint, model)
    assert_same(checkpoint, written_back(checkpoint, tmp_path / "ours", BertForMaskedLM))


def test_padded_texts_equal_transformers(tmp_path: Path) -> None:
    model = theirs(BertForMaskedLM)
    checkpoint = opened(model, tmp_path)
    texts = [[5, 0, 30, 7, 7, 31], [12, 3, 24]]
    ids, real = torch.tensor([texts[0], [*texts[1], 0, 0, 0]]), torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]])
    with torch.no_grad():
        expected = model(ids, attention_mask=real).logits
    ours = run(checkpoint.model, texts)["logits"]
    equal(ours[0], expected[0])
    equal(ours[1, :3], expected[1, :3])


def configure(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))


def rename(folder: Path, change: Any) -> None:
    tensors = {change(name): tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def counts(checkpoint: Checkpoint) -> dict[str, int]:
    found = {status: len(checkpoint.report.rows_with(status)) for status in ("loaded", "tied", "dropped", "unexpected")}
    return {status: count for status, count in found.items() if count}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (BertForPreTraining, {"loaded": 46, "tied": 1}),
        (BertForMaskedLM, {"loaded": 42, "tied": 1}),
        (BertForTokenClassification, {"loaded": 39}),
        (BertModel, {"loaded": 39}),
    ],
)
def test_every_tensor_is_accounted_for(kind: type, expected: dict[str, int], tmp_path: Path) -> None:
    checkpoint = opened(theirs(kind), tmp_path)
    assert counts(checkpoint) == expected
    loaded = {row.name for row in checkpoint.report.rows_with("loaded")}
    assert loaded == load_file(tmp_path / "model.safetensors").keys()


def test_a_file_with_more_heads_than_its_config_names_is_read_with_all_of_them(tmp_path: Path) -> None:
    """The published bert-base-uncased says BertForMaskedLM, holds both heads, and spells its norms as of old."""
    model = theirs(BertForPreTraining)
    model.save_pretrained(tmp_path)
    configure(tmp_path, architectures=["BertForMaskedLM"])
    rename(tmp_path, lambda name: name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"))
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok
    assert_same(checkpoint, model)


def test_without_an_architecture_the_tensors_tell_the_head(tmp_path: Path) -> None:
    for kind, (head, pooler, second) in HEADS.items():
        folder = tmp_path / kind.__name__
        theirs(kind).save_pretrained(folder)
        configure(folder, architectures=...)
        found = load(folder).config.head
        assert (found.kind, found.pooler, found.next_sentence) == (head, pooler, second)


def test_a_pooler_that_no_head_reads_is_left_out_on_purpose(tmp_path: Path) -> None:
    model = theirs(BertForTokenClassification)
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors |= {"bert.pooler.dense.weight": torch.ones(24, 24), "bert.pooler.dense.bias": torch.ones(24)}
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    checkpoint = load(tmp_path)
    assert counts(checkpoint) == {"loaded": 39, "dropped": 2}
    assert_same(checkpoint, model)


def test_a_body_without_a_pooler_is_read_and_kept_in_our_own_format(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = shaken(BertModel(BertConfig(**SIZES), add_pooling_layer=False))
    checkpoint = opened(model, tmp_path / "theirs")
    assert not checkpoint.config.head.pooler
    with torch.no_grad():
        equal(run(checkpoint.model, IDS)["blocks.1.norm2.out"], model(IDS).last_hidden_state)
    checkpoint.save(tmp_path / "ours")
    assert load(tmp_path / "ours").config == checkpoint.config


def test_the_output_bias_under_its_second_name_is_the_same_or_refused(tmp_path: Path) -> None:
    model = theirs(BertForMaskedLM)
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    bias = "cls.predictions.decoder.bias"
    save_file(tensors | {bias: tensors["cls.predictions.bias"].clone()}, tmp_path / "model.safetensors")
    checkpoint = load(tmp_path)
    assert counts(checkpoint) == {"loaded": 42, "tied": 2}
    assert_same(checkpoint, model)
    save_file(tensors | {bias: torch.ones(40)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=f"{bias} and cls.predictions.bias must be equal in a bert model"):
        load(tmp_path)
    save_file({n: t for n, t in tensors.items() if n != "cls.predictions.bias"}, tmp_path / "model.safetensors")
    with pytest.raises(IncompleteWeights, match=r"must hold cls.predictions.bias"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"is_decoder": True}, "is_decoder must be False, got True"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type must be 'absolute', got 'relative_key'"),
        (
            {"architectures": ["BertForMultipleChoice"]},
            "architectures must be one of BertForPreTraining, .*MultipleChoice",
        ),
        ({"hidden_act": "gelu_10"}, "hidden_act must be one of gelu_new, .*, got 'gelu_10'"),
    ],
    ids=str,
)
def test_what_loupe_cannot_represent_is_one_sentence(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    theirs(BertForMaskedLM).save_pretrained(tmp_path)
    configure(tmp_path, **changes)
    with pytest.raises(ValueError, match=message) as raised:
        load(tmp_path)
    assert "\n" not in str(raised.value)


def test_the_names_of_classes_come_and_go_with_a_checkpoint(tmp_path: Path) -> None:
    model = theirs(BertForTokenClassification, id2label={0: "O", 1: "PER", 2: "LOC"}, num_labels=3)
    checkpoint = opened(model, tmp_path / "theirs")
    assert checkpoint.labels == ("O", "PER", "LOC")
    again = written_back(checkpoint, tmp_path / "ours", BertForTokenClassification)
    assert again.config.id2label == {0: "O", 1: "PER", 2: "LOC"}
    assert again.config.label2id == {"O": 0, "PER": 1, "LOC": 2}


def test_an_encoder_of_our_own_is_saved_as_bert(tmp_path: Path) -> None:
    config = tiny.config(
        attention={"mask": "full"},
        norm=tiny.Norm(place="after"),
        mlp=tiny.MLP(20, activation="gelu"),
        embedding=Embedding(segments=2, norm=True),
        head=OutputHead("masked", bias=True, pooler=True, next_sentence=True),
    )
    model = tiny.model(config)
    again = written_back(Checkpoint(model), tmp_path, BertForPreTraining)
    with torch.no_grad():
        equal(run(model, tiny.IDS)["logits"], again(torch.tensor([tiny.IDS])).prediction_logits)
