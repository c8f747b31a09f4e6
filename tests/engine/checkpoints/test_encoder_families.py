"""Encoders against transformers, with each head: RoBERTa, MPNet, DistilBERT, ELECTRA, ALBERT, and BERT's answers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine import load
from engine.checkpoints import Checkpoint, IncompleteWeights
from engine.checkpoints.save import family_for, save_weights
from engine.model.transformer import Transformer, initialise
from engine.runtime.run import run
from engine.tokenizers import Encoding
from tests.engine.checkpoints.against import equal, equal_patterns, opened, shaken, written_back

IDS = torch.tensor([[5, 0, 30, 7, 7, 31, 12, 3, 24, 2]])  # none is RoBERTa's padding
SEGMENTS = torch.tensor([[0, 0, 0, 0, 1, 1, 1, 1, 1, 1]])
PAIR = Encoding("", tuple(IDS[0].tolist()), ("x",) * 10, ((0, 0),) * 10, (False,) * 10, tuple(SEGMENTS[0].tolist()))

BERT = {"vocab_size": 40, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
BERT |= {"intermediate_size": 36, "max_position_embeddings": 34}
ROBERTA = BERT | {"type_vocab_size": 1, "layer_norm_eps": 1e-5}
DISTILBERT = {"vocab_size": 40, "dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 36, "max_position_embeddings": 34}
NARROW = BERT | {"embedding_size": 16}
SHAPES: dict[str, dict[str, Any]] = {
    "Bert": BERT,
    "Roberta": ROBERTA,
    "XLMRoberta": ROBERTA,
    "Camembert": ROBERTA,
    "DistilBert": DISTILBERT,
    "Electra": NARROW,
    "Albert": NARROW,
    "MPNet": {name: value for name, value in ROBERTA.items() if name != "type_vocab_size"},
}
TASKS = ("ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "Model")
NAMES = [f"{family}{task}" for family in SHAPES for task in TASKS]
NAMES += ["AlbertForPreTraining", "ElectraForPreTraining"]
OPTIONS = [
    ("RobertaForMaskedLM", {"tie_word_embeddings": False, "hidden_act": "relu"}),
    ("RobertaForMaskedLM", {"type_vocab_size": 2}),
    ("MPNetForMaskedLM", {"tie_word_embeddings": False, "hidden_act": "relu", "layer_norm_eps": 0.1}),
    ("DistilBertForMaskedLM", {"tie_word_embeddings": False, "activation": "relu"}),
    ("DistilBertForMaskedLM", {"sinusoidal_pos_embds": True}),
    ("ElectraForMaskedLM", {"tie_word_embeddings": False, "hidden_act": "relu"}),
    ("ElectraForPreTraining", {"embedding_size": 24, "hidden_act": "relu"}),
    ("ElectraForSequenceClassification", {"embedding_size": 24}),
    ("ElectraModel", {"embedding_size": 48}),
    ("AlbertForMaskedLM", {"tie_word_embeddings": False, "hidden_act": "gelu"}),
    ("AlbertForMaskedLM", {"embedding_size": 24, "num_hidden_layers": 1}),
]


def family_name(name: str) -> str:
    return next(family for family in SHAPES if name.startswith(family))


def theirs(name: str, **changes: Any) -> Any:
    family = family_name(name)
    labels = {} if name.endswith(("QuestionAnswering", "PreTraining")) else {"num_labels": 3}
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SHAPES[family] | labels | changes)
    return shaken(getattr(transformers, name)(config))


def expected(model: Any, ids: Tensor = IDS, **more: Any) -> Any:
    two = getattr(model.config, "type_vocab_size", 0) > 1
    with torch.no_grad():
        return model(ids, output_attentions=True, **({"token_type_ids": SEGMENTS} if two else {}), **more)


def logits(found: Any) -> Tensor | None:
    """What transformers gives, in the axes of ours."""
    if "start_logits" in found:
        return torch.stack([found.start_logits, found.end_logits], dim=-1)
    return found.get("logits", found.get("prediction_logits"))


def assert_same(checkpoint: Checkpoint, model: Any) -> None:
    one = checkpoint.config.embedding.segments < 2
    trace = run(checkpoint.model, IDS if one else PAIR)
    found = expected(model)
    equal_patterns(trace, "attn.pattern", found.attentions)
    wanted = logits(found)
    if wanted is None:
        equal(trace["blocks.2.norm2.out"], found.last_hidden_state)
    else:
        equal(trace["logits"].squeeze(-1), wanted)
    if "sop_logits" in found:
        equal(trace["next_sentence"], found.sop_logits)
    if "pooler_output" in found:
        equal(trace["pooler.out"], found.pooler_output)


@pytest.mark.parametrize("name", NAMES)
def test_each_head_equals_transformers_and_is_read_back(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    checkpoint = opened(model, tmp_path / "theirs")
    assert not checkpoint.report.notes
    assert_same(checkpoint, model)
    assert_same(checkpoint, written_back(checkpoint, tmp_path / "ours", type(model)))


@pytest.mark.parametrize(("name", "changes"), OPTIONS, ids=str)
def test_each_option_equals_transformers(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = theirs(name, **changes)
    checkpoint = opened(model, tmp_path / "theirs")
    trace, found = run(checkpoint.model, PAIR if checkpoint.config.embedding.segments > 1 else IDS), expected(model)
    equal_patterns(trace, "attn.pattern", found.attentions)
    wanted = logits(found)
    last = f"blocks.{checkpoint.config.layers - 1}.norm2.out"
    equal(trace[last] if wanted is None else trace["logits"].squeeze(-1), found[0] if wanted is None else wanted)
    checkpoint.save(tmp_path / "ours")
    again = load(tmp_path / "ours")
    assert again.report.ok and again.config == checkpoint.config


def test_the_configs_are_read_exactly(tmp_path: Path) -> None:
    def config(name: str) -> Any:
        return opened(theirs(name), tmp_path / name).config

    roberta = config("RobertaForMaskedLM")
    assert (roberta.context, roberta.embedding.segments, roberta.norm.eps) == (32, 1, 1e-5)
    electra = config("ElectraForPreTraining")
    assert (electra.head.kind, electra.head.classes, electra.head.dense) == ("token", 1, True)
    assert (electra.embedding.width, electra.embedding.mapped, electra.d_embed) == (16, "all", 16)
    albert = config("AlbertForPreTraining")
    assert (albert.distinct, albert.layers, albert.d_embed, albert.head.next_sentence) == (1, 3, 16, True)
    assert albert.mlp.activation == albert.head.activation == "gelu_tanh"
    judged = [config(f"{name}ForSequenceClassification").head for name in ("Roberta", "Electra", "DistilBert")]
    assert [head.pooler_activation for head in judged] == ["tanh", "gelu", "relu"]
    assert all(head.pooler and head.classes == 3 for head in judged)
    assert config("DistilBertModel").embedding.segments == 0
    assert config("BertForQuestionAnswering").head.kind == "span"


@pytest.mark.parametrize("name", ["RobertaForMaskedLM", "MPNetForMaskedLM"])
def test_a_padded_batch_equals_transformers(name: str, tmp_path: Path) -> None:
    """Their padding has a position of its own, which nothing that is real sees."""
    model = theirs(name)
    checkpoint = opened(model, tmp_path)
    texts = [[5, 0, 30, 7, 7, 31], [12, 3, 24]]
    ids, real = torch.tensor([texts[0], [*texts[1], 1, 1, 1]]), torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]])
    wanted = expected(model, ids, attention_mask=real).logits
    ours = run(checkpoint.model, texts)["logits"]
    equal(ours[0], wanted[0])
    equal(ours[1, :3], wanted[1, :3])


def test_albert_has_one_block_whose_tensors_every_layer_uses(tmp_path: Path) -> None:
    model = theirs("AlbertForMaskedLM")
    checkpoint = opened(model, tmp_path / "theirs")
    ours = checkpoint.model
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in model.parameters())
    assert all(block.attn.q.weight is ours.blocks[0].attn.q.weight for block in ours.blocks)
    assert {name.split(".")[1] for name in ours.state_dict() if name.startswith("blocks")} == {"0"}
    assert {"blocks.0.attn.pattern", "blocks.2.attn.pattern", "embed.mapped", "head.post"} <= set(ours.hook_names)
    save_weights(ours, tmp_path / "one.safetensors")
    again = load(tmp_path / "one.safetensors").model
    assert all(block.mlp.pre.weight is again.blocks[0].mlp.pre.weight for block in again.blocks)
    equal(run(again, PAIR)["logits"], run(ours, PAIR)["logits"])
    half = load(tmp_path / "theirs").model.to(torch.bfloat16)
    assert half.blocks[1].attn.q.weight is half.blocks[0].attn.q.weight
    assert half.blocks[1].attn.q.weight.dtype == torch.bfloat16


def test_training_moves_the_one_block_by_the_gradients_of_all_layers(tmp_path: Path) -> None:
    model = theirs("AlbertForMaskedLM")
    ours = opened(model, tmp_path).model.requires_grad_(True)
    ours(IDS).square().sum().backward()
    model(IDS).logits.square().sum().backward()
    grad = model.albert.encoder.albert_layer_groups[0].albert_layers[0].ffn.weight.grad
    torch.testing.assert_close(ours.blocks[0].mlp.pre.weight.grad, grad, rtol=1e-4, atol=1e-4)
    assert ours.blocks[2].mlp.pre.weight.grad is ours.blocks[0].mlp.pre.weight.grad
    assert len([name for name, _ in ours.named_parameters() if name.endswith("mlp.pre.weight")]) == 1


def rewritten(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))


def stored(folder: Path, change: Any) -> None:
    save_file(change(load_file(folder / "model.safetensors")), folder / "model.safetensors", {"format": "pt"})


def counts(checkpoint: Checkpoint) -> dict[str, int]:
    found = {status: len(checkpoint.report.rows_with(status)) for status in ("loaded", "tied", "dropped", "unexpected")}
    return {status: count for status, count in found.items() if count}


ACCOUNTS = {
    "RobertaForMaskedLM": {"loaded": 58, "tied": 1},
    "DistilBertForMaskedLM": {"loaded": 57, "tied": 1},
    "ElectraForMaskedLM": {"loaded": 60, "tied": 1},
    "AlbertForMaskedLM": {"loaded": 28, "tied": 1},
    "AlbertForPreTraining": {"loaded": 32, "tied": 1},
    "BertForQuestionAnswering": {"loaded": 55},
}


@pytest.mark.parametrize("name", ACCOUNTS)
def test_every_tensor_is_accounted_for_in_old_spelling_too(name: str, tmp_path: Path) -> None:
    def spelled(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        old = {n.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): t for n, t in tensors.items()}
        return {n.replace("norm.weight", "norm.gamma").replace("norm.bias", "norm.beta"): t for n, t in old.items()}

    model = theirs(name)
    checkpoint = opened(model, tmp_path)
    assert counts(checkpoint) == ACCOUNTS[name]
    loaded = {row.name for row in checkpoint.report.rows_with("loaded")}
    assert loaded == load_file(tmp_path / "model.safetensors").keys()
    stored(tmp_path, spelled)
    checkpoint = load(tmp_path)
    assert counts(checkpoint) == ACCOUNTS[name]
    assert any(row.name.endswith("gamma") for row in checkpoint.report.rows_with("loaded"))
    assert_same(checkpoint, model)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("Bert", "Electra", "Albert", "Distil"))])
def test_without_an_architecture_the_tensors_tell_the_head(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    model.save_pretrained(tmp_path)
    rewritten(tmp_path, architectures=...)
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok
    assert_same(checkpoint, model)


def test_published_files_with_more_than_their_config_names_are_read(tmp_path: Path) -> None:
    """roberta-base has a pooler that its head does not read; albert-base-v2 both heads under the name of one."""
    model = theirs("RobertaForMaskedLM")
    model.save_pretrained(tmp_path / "roberta")
    pooler = {"roberta.pooler.dense.weight": torch.ones(24, 24), "roberta.pooler.dense.bias": torch.ones(24)}
    positions = {"roberta.embeddings.position_ids": torch.arange(34)[None]}
    stored(tmp_path / "roberta", lambda tensors: tensors | pooler | positions)
    checkpoint = load(tmp_path / "roberta")
    assert counts(checkpoint) == {"loaded": 58, "tied": 1, "dropped": 3}
    assert_same(checkpoint, model)
    model = theirs("AlbertForPreTraining")
    model.save_pretrained(tmp_path / "albert")
    rewritten(tmp_path / "albert", architectures=["AlbertForMaskedLM"])
    assert_same(load(tmp_path / "albert"), model)


def test_a_body_without_a_pooler_has_none(tmp_path: Path) -> None:
    for name in ("Roberta", "Albert"):
        torch.manual_seed(0)
        config = getattr(transformers, f"{name}Config")(**SHAPES[name])
        model = shaken(getattr(transformers, f"{name}Model")(config, add_pooling_layer=False))
        checkpoint = opened(model, tmp_path / name)
        assert not checkpoint.config.head.pooler
        ours = run(checkpoint.model, IDS)["blocks.2.norm2.out"]
        with torch.no_grad():
            equal(ours, model(IDS).last_hidden_state)


def test_a_body_under_the_name_of_a_masked_head_opens_as_the_body(tmp_path: Path) -> None:
    """all-mpnet-base-v2 and all-distilroberta-v1 are such files."""
    for name in ("MPNet", "Roberta", "DistilBert"):
        model, folder = theirs(f"{name}Model"), tmp_path / name
        model.save_pretrained(folder)
        rewritten(folder, architectures=[f"{name}ForMaskedLM"])
        checkpoint = load(folder)
        assert checkpoint.report.ok and checkpoint.config.head.pooler == (name != "DistilBert")
        assert [note for note in checkpoint.report.notes if f"opened as {name}Model" in note]
        assert_same(checkpoint, model)


def test_a_bare_body_under_the_name_of_a_head_lacks_that_head(tmp_path: Path) -> None:
    theirs("RobertaModel").save_pretrained(tmp_path)
    rewritten(tmp_path, architectures=["RobertaForSequenceClassification"])
    with pytest.raises(IncompleteWeights, match=r"must hold classifier.dense.weight and 3 more"):
        load(tmp_path)


def test_a_head_that_the_config_does_not_name_is_listed_as_unexpected(tmp_path: Path) -> None:
    model = theirs("DistilBertForQuestionAnswering")
    model.save_pretrained(tmp_path)
    rewritten(tmp_path, architectures=["DistilBertModel"])
    checkpoint = load(tmp_path)
    assert {row.name for row in checkpoint.report.rows_with("unexpected")} == {"qa_outputs.weight", "qa_outputs.bias"}
    equal(run(checkpoint.model, IDS)["blocks.2.norm2.out"], model.distilbert(IDS).last_hidden_state.detach())


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("RobertaForMaskedLM", {"pad_token_id": 0}, "pad_token_id must be 1, got 0"),
        ("RobertaForMaskedLM", {"is_decoder": True}, "is_decoder must be False, got True"),
        ("RobertaForMaskedLM", {"max_position_embeddings": 2}, "context must be at least 1, got 0"),
        ("MPNetModel", {"relative_attention_num_buckets": 40}, "relative_attention_num_buckets must be 32, got 40"),
        ("AlbertForMaskedLM", {"num_hidden_groups": 3}, "num_hidden_groups must be 1, got 3"),
        ("AlbertForMaskedLM", {"inner_group_num": 2}, "inner_group_num must be 1, got 2"),
        ("ElectraForMaskedLM", {"hidden_size": None}, "config.json lacks hidden_size"),
        ("BertForMaskedLM", {"architectures": ["BertForMultipleChoice"]}, "architectures must be one of .*MultipleC"),
        ("DistilBertModel", {"dim": None}, "config.json lacks dim"),
    ],
    ids=str,
)
def test_what_loupe_cannot_represent_is_one_sentence(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    theirs(name).save_pretrained(tmp_path)
    rewritten(tmp_path, **changes)
    with pytest.raises(ValueError, match=message) as raised:
        load(tmp_path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("BertForMaskedLM", "bert"),
        ("RobertaForMaskedLM", "roberta"),
        ("XLMRobertaForMaskedLM", "xlm-roberta"),
        ("CamembertModel", "camembert"),
        ("DistilBertModel", "distilbert"),
        ("ElectraModel", "electra"),
        ("AlbertModel", "albert"),
        ("MPNetModel", "mpnet"),
    ],
)
def test_a_model_is_written_as_the_family_it_is_of(name: str, family: str, tmp_path: Path) -> None:
    checkpoint = opened(theirs(name), tmp_path / "theirs")
    checkpoint.save(tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert (config["model_type"], config["architectures"]) == (family, [name])


def test_what_was_read_from_no_family_is_written_as_the_best_known(tmp_path: Path) -> None:
    for name, family in (("RobertaForTokenClassification", "roberta"), ("ElectraForMaskedLM", "electra")):
        assert family_for(opened(theirs(name), tmp_path / name).config)[0].name == family


def test_blocks_shared_in_runs_are_kept_by_our_own_format(tmp_path: Path) -> None:
    config = opened(theirs("AlbertForMaskedLM", num_hidden_layers=4), tmp_path / "theirs").config
    data = config.to_dict() | {"distinct": 2}
    model = initialise(Transformer(type(config).from_dict(data)), 0)
    Checkpoint(model).save(tmp_path / "ours")
    again = load(tmp_path / "ours").model
    assert again.blocks[1].attn.q.weight is again.blocks[0].attn.q.weight
    assert again.blocks[3].attn.q.weight is again.blocks[2].attn.q.weight is not again.blocks[0].attn.q.weight
    equal(run(again, PAIR)["logits"], run(model, PAIR)["logits"])


@pytest.mark.parametrize("name", ["RobertaForMaskedLM", "XLMRobertaModel", "CamembertForSequenceClassification"])
def test_positions_are_counted_past_padding_wherever_it_stands(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    checkpoint = opened(model, tmp_path / "theirs")
    checkpoint.save(tmp_path / "ours")
    for text in ([0, 5, 1, 6, 2], [1, 1, 0, 5, 2], [0, 5, 2, 1, 1], [1]):
        ids = torch.tensor([text, [0, *text[1:]]])
        with torch.no_grad():
            found = model(ids)
        wanted = found.logits if "logits" in found else found.last_hidden_state
        for ours in (checkpoint, load(tmp_path / "ours")):
            equal(ours.model(ids), wanted)


def test_opt_counts_positions_of_what_its_mask_of_padding_lets_through(tmp_path: Path) -> None:
    config = transformers.OPTConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                    ffn_dim=16, max_position_embeddings=16, word_embed_proj_dim=16)  # fmt: skip
    model = shaken(transformers.OPTForCausalLM(config))
    ids, real = torch.tensor([[1, 1, 2, 7, 9], [2, 3, 4, 1, 1]]), torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]])
    with torch.no_grad():
        wanted = model(ids, attention_mask=real).logits
    found = opened(model, tmp_path).model(ids, padding=real.bool())
    equal(found[real.bool()], wanted[real.bool()])
