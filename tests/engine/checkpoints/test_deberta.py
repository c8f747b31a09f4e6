"""DeBERTa against transformers, read and written, with every option of its scores."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.models.deberta_v2 import modeling_deberta_v2 as modeling

from engine import load
from engine.model.config import Positions
from engine.model.layers.position import distance_rows
from engine.runtime.run import run
from tests.engine.checkpoints.against import equal, opened, shaken, written_back
from tests.engine.checkpoints.test_encoder_families import rewritten
from tests.engine.checkpoints.test_modern_encoders import IDS, SIZES, assert_same

V3 = SIZES | {"relative_attention": True, "position_buckets": 6, "norm_rel_ebd": "layer_norm", "share_att_key": True}
V3 |= {"pos_att_type": "p2c|c2p", "position_biased_input": False, "max_relative_positions": -1, "pad_token_id": 0}
V3 |= {"hidden_act": "gelu", "max_position_embeddings": 16}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("Model", {}),
    ("Model", {"pos_att_type": ["c2p"]}),
    ("Model", {"pos_att_type": ["p2c"], "position_biased_input": True, "type_vocab_size": 2}),
    ("Model", {"pos_att_type": []}),
    ("Model", {"relative_attention": False}),
    ("Model", {"relative_attention": False, "position_biased_input": True, "pos_att_type": ["p2c"]}),
    ("Model", {"position_buckets": -1, "norm_rel_ebd": "none"}),
    ("Model", {"position_buckets": -1, "max_relative_positions": 4, "share_att_key": False}),
    ("Model", {"position_buckets": 4, "max_relative_positions": 7, "share_att_key": False, "pos_att_type": ["c2p"]}),
    ("Model", {"position_buckets": 9, "share_att_key": False, "pos_att_type": ["p2c"], "layer_norm_eps": 0.1}),
    ("ForMaskedLM", {}),
    ("ForMaskedLM", {"tie_word_embeddings": False, "position_biased_input": True, "hidden_act": "gelu_new"}),
    ("ForMaskedLM", {"embedding_size": 20}),
    ("ForSequenceClassification", {"num_labels": 3}),
    ("ForSequenceClassification", {"pooler_hidden_act": "tanh", "problem_type": "regression"}),
    ("ForTokenClassification", {"num_labels": 3}),
    ("ForQuestionAnswering", {}),
]


V1 = SIZES | {"relative_attention": True, "pos_att_type": "c2p|p2c", "position_biased_input": False}
V1 |= {"max_position_embeddings": 16, "pad_token_id": 0}
FIRST: list[tuple[str, dict[str, Any]]] = [
    ("Model", {}),
    ("Model", {"pos_att_type": ["c2p"], "max_relative_positions": 5}),
    ("Model", {"pos_att_type": ["p2c"], "position_biased_input": True, "type_vocab_size": 2}),
    ("Model", {"pos_att_type": []}),
    ("Model", {"relative_attention": False}),
    ("ForMaskedLM", {}),
    ("ForMaskedLM", {"tie_word_embeddings": False, "hidden_act": "relu"}),
    ("ForSequenceClassification", {"num_labels": 3}),
    ("ForTokenClassification", {"num_labels": 3}),
    ("ForQuestionAnswering", {}),
]


def theirs(task: str, version: str = "V2", **changes: Any) -> Any:
    torch.manual_seed(0)
    shape = V3 if version else V1
    config = getattr(transformers, f"Deberta{version}Config")(**shape | changes)
    return shaken(getattr(transformers, f"Deberta{version}{task}")(config))


@pytest.mark.parametrize(
    ("version", "task", "changes"), [*(("V2", *case) for case in CASES), *(("", *case) for case in FIRST)], ids=str
)
def test_each_option_equals_transformers_and_is_read_back(
    version: str, task: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    model = theirs(task, version, **changes)
    checkpoint = opened(model, tmp_path / "theirs")
    assert not checkpoint.report.notes
    assert_same(checkpoint, model)
    assert_same(checkpoint, written_back(checkpoint, tmp_path / "ours", type(model)))


def test_the_files_of_v3_open_with_the_head_that_they_hold(tmp_path: Path) -> None:
    """As microsoft/deberta-v3-base has them: no architectures, and a discriminator's head too."""
    model = theirs("ForMaskedLM", legacy=False)
    model.save_pretrained(tmp_path / "theirs")
    file = tmp_path / "theirs" / "model.safetensors"
    tensors = load_file(file)
    more = {"mask_predictions.dense.weight": torch.ones(24, 24), "deberta.embeddings.position_embeddings.weight": IDS}
    save_file(tensors | more, file, {"format": "pt"})
    rewritten(tmp_path / "theirs", architectures=..., legacy=...)
    checkpoint = load(tmp_path / "theirs")
    assert checkpoint.report.ok and checkpoint.config.head.kind == "masked"
    assert_same(checkpoint, model)
    checkpoint.model.distances.weight.mul_(2)
    assert_same(checkpoint, written_back(checkpoint, tmp_path / "ours", type(model)))


@pytest.mark.parametrize(
    ("version", "changes", "message"),
    [
        ("", {"talking_head": True}, "talking_head must be False, got True"),
        ("", {"pos_att_type": "c2p|p2p"}, "pos_att_type must name c2p and p2c alone, got 'p2p'"),
        ("V2", {"conv_kernel_size": 3}, "conv_kernel_size must be 0, got 3"),
        ("V2", {"embedding_size": 20, "type_vocab_size": 2}, "embedding_size must be 24 where positions or segments"),
        ("V2", {"position_buckets": 60}, "positions.buckets must be 0, or 2 and more"),
        ("V2", {"share_att_key": "yes"}, "share_att_key must be true or false"),
    ],
    ids=str,
)
def test_what_deberta_cannot_be_is_one_sentence(
    version: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    theirs("Model", version).save_pretrained(tmp_path)
    rewritten(tmp_path, **changes)
    with pytest.raises(ValueError, match=message):
        load(tmp_path)


@pytest.mark.parametrize(("buckets", "farthest"), [(256, 512), (128, 300), (9, 16), (4, 7), (2, 4)])
def test_buckets_of_long_texts_are_those_of_transformers(buckets: int, farthest: int) -> None:
    index = torch.arange(700)
    theirs = modeling.make_log_bucket_position(index[:, None] - index, buckets, farthest).long()
    ours = distance_rows(index, index, Positions("disentangled", buckets=buckets, farthest=farthest))
    assert torch.equal(ours, (theirs + buckets).clamp(0, 2 * buckets - 1))


def test_scores_are_the_sum_of_their_terms_and_the_fused_form_has_them_too(tmp_path: Path) -> None:
    model = opened(theirs("Model", position_buckets=4), tmp_path).model
    trace = run(model, IDS)
    at = "blocks.1.attn."
    real = trace[f"{at}mask"].expand_as(trace[f"{at}scores"])
    total = trace[f"{at}scores"] + trace[f"{at}c2p"] + trace[f"{at}p2c"]
    assert all(trace[f"{at}{term}"].abs().max() > 0.1 for term in ("c2p", "p2c"))
    torch.testing.assert_close(trace[f"{at}masked_scores"][real], total[real])
    equal(run(model, IDS, keep=["*resid_post"]).stack("resid_post"), trace.stack("resid_post"))
