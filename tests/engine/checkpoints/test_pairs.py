"""Encoder-decoders against transformers: T5, BART, Marian and Pegasus."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    PegasusConfig,
    PegasusForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
)

from engine import load
from engine.checkpoints import Checkpoint
from engine.runtime.run import run
from engine.tokenizers.kinds.word import train
from tests.engine.checkpoints.against import IDS, equal, equal_pair, opened, shaken, written_back

T5 = {"vocab_size": 40, "d_model": 24, "d_kv": 8, "d_ff": 36, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4}
T5 |= {"decoder_start_token_id": 0, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12}
BART = {"vocab_size": 40, "d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4}
BART |= {"decoder_attention_heads": 3, "encoder_ffn_dim": 36, "decoder_ffn_dim": 32, "max_position_embeddings": 32}
MARIAN = BART | {"pad_token_id": 0, "decoder_start_token_id": 0, "eos_token_id": 1}
KINDS = {
    "t5": (T5ForConditionalGeneration, T5Config, T5),
    "bart": (BartForConditionalGeneration, BartConfig, BART),
    "marian": (MarianMTModel, MarianConfig, MARIAN),
    "pegasus": (PegasusForConditionalGeneration, PegasusConfig, BART),
}
SHAPES = [
    ("t5", {}),
    ("t5", {"feed_forward_proj": "gated-gelu"}),
    ("t5", {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    ("t5", {"feed_forward_proj": "gated-silu", "layer_norm_epsilon": 0.1}),
    ("bart", {}),
    ("bart", {"scale_embedding": True, "activation_function": "relu"}),
    ("marian", {"scale_embedding": True, "activation_function": "swish"}),
    ("pegasus", {"scale_embedding": True, "activation_function": "relu"}),
]


def theirs(name: str, **changes: Any) -> Any:
    kind, config, sizes = KINDS[name]
    torch.manual_seed(0)
    return shaken(kind(config(**sizes | changes)))


@pytest.mark.parametrize(("name", "changes"), SHAPES, ids=str)
def test_all_numbers_equal_transformers_and_are_read_back(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    model = theirs(name, **changes)
    checkpoint = opened(model, tmp_path / "theirs")
    equal_pair(checkpoint, model)
    again = written_back(checkpoint, tmp_path / "ours", KINDS[name][0])
    equal_pair(checkpoint, again)
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["model_type"] == name


@pytest.mark.parametrize("name", KINDS)
def test_padding_on_both_sides_equals_transformers(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    checkpoint = opened(model, tmp_path)
    texts, targets = [[5, 0, 30, 7, 7, 31], [12, 3, 24]], [[2, 4, 6], [2, 8, 9, 10, 11]]
    ids, real = torch.tensor([texts[0], [*texts[1], 0, 0, 0]]), torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]])
    written, said = torch.tensor([[*targets[0], 0, 0], targets[1]]), torch.tensor([[1, 1, 1, 0, 0], [1] * 5])
    with torch.no_grad():
        expected = model(ids, attention_mask=real, decoder_input_ids=written, decoder_attention_mask=said).logits
    ours = run(checkpoint.model, texts, target=targets)["logits"]
    equal(ours[0, :3], expected[0, :3])
    equal(ours[1], expected[1])


def test_the_config_is_read_exactly(tmp_path: Path) -> None:
    config = opened(theirs("t5", feed_forward_proj="gated-gelu"), tmp_path / "t5").config
    assert config.encoder is not None
    assert (config.encoder.layers, config.layers, config.context, config.encoder.start) == (2, 3, 512, 0)
    assert (config.attention.d_head, config.attention.scale, config.attention.bias) == (8, 1.0, False)
    assert config.encoder.mlp == config.mlp
    assert config.mlp is not None and config.mlp.gated and config.mlp.activation == "gelu_tanh"
    assert (config.positions.kind, config.positions.buckets, config.positions.farthest) == ("relative", 8, 12)
    assert config.head.scale == 24**-0.5
    config = opened(theirs("bart", scale_embedding=True), tmp_path / "bart").config
    assert config.encoder is not None and config.encoder.mlp is not None and config.mlp is not None
    assert (config.encoder.attention.heads, config.attention.heads, config.cross_attention.heads) == (4, 3, 3)
    assert (config.encoder.mlp.d_mlp, config.mlp.d_mlp) == (36, 32)
    assert (config.embedding.scale, config.embedding.norm, config.encoder.start) == (24**0.5, True, 2)


def test_a_start_token_that_only_the_generation_config_names_is_found(tmp_path: Path) -> None:
    theirs("bart").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["decoder_start_token_id"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": 7, "eos_token_id": 9}))
    checkpoint = load(tmp_path)
    assert checkpoint.config.encoder is not None and checkpoint.config.encoder.start == 7
    assert checkpoint.end_ids == (9,)


def stored_again(folder: Path, **more: str) -> dict[str, torch.Tensor]:
    tensors = load_file(folder / "model.safetensors")
    tensors |= {new.replace("__", "."): tensors[old].clone() for new, old in more.items()}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return tensors


def test_one_embedding_under_several_names_is_one(tmp_path: Path) -> None:
    model = theirs("t5")
    model.save_pretrained(tmp_path)
    names = ("encoder__embed_tokens__weight", "decoder__embed_tokens__weight", "lm_head__weight")
    tensors = stored_again(tmp_path, **dict.fromkeys(names, "shared.weight"))
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok
    assert {row.name for row in checkpoint.report.rows_with("tied")} == {name.replace("__", ".") for name in names}
    equal_pair(checkpoint, model)
    del tensors["shared.weight"], tensors["lm_head.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    equal_pair(load(tmp_path), model)
    tensors["encoder.embed_tokens.weight"] = tensors["encoder.embed_tokens.weight"] + 1
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"embed_tokens.weight .* must be equal in a t5 model, and are not"):
        load(tmp_path)


def test_a_head_of_its_own_is_believed_whatever_the_config_says(tmp_path: Path) -> None:
    """T5 1.1, whose files say that nothing is tied and that outputs are not scaled."""
    model = theirs("t5", tie_word_embeddings=False)
    model.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    torch.manual_seed(3)
    tensors["lm_head.weight"] = torch.randn(40, 24)
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text())
    del config["scale_decoder_outputs"]
    (tmp_path / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
    checkpoint = load(tmp_path)
    assert not checkpoint.config.tied and checkpoint.config.head.scale == 1.0
    again = T5ForConditionalGeneration.from_pretrained(tmp_path, attn_implementation="eager")
    equal(again.lm_head.weight, tensors["lm_head.weight"])
    equal_pair(checkpoint, again.eval())
    equal_pair(checkpoint, written_back(checkpoint, tmp_path / "ours", T5ForConditionalGeneration))


def test_untied_tables_are_read_where_they_are_equal_and_refused_where_not(tmp_path: Path) -> None:
    model = theirs("bart", tie_word_embeddings=False)
    model.save_pretrained(tmp_path)
    with pytest.raises(
        ValueError, match=r"encoder.embed_tokens.weight and model.shared.weight must be equal in a bart"
    ):
        load(tmp_path)
    with torch.no_grad():
        for stack in (model.model.encoder, model.model.decoder):
            stack.embed_tokens.weight.copy_(model.model.shared.weight)
    checkpoint = opened(model, tmp_path)
    assert not checkpoint.config.tied
    equal_pair(checkpoint, model)


def test_bart_without_its_bias_is_bart_with_a_bias_of_zero(tmp_path: Path) -> None:
    """The published bart-base is a BartModel, in whose file neither bias nor prefix is."""
    model = theirs("bart")
    with torch.no_grad():
        model.final_logits_bias.zero_()
    model.model.save_pretrained(tmp_path / "theirs")
    checkpoint = load(tmp_path / "theirs")
    assert checkpoint.report.ok
    assert not checkpoint.config.head.bias
    equal_pair(checkpoint, model)
    checkpoint.save(tmp_path / "ours")
    again = BartForConditionalGeneration.from_pretrained(tmp_path / "ours", attn_implementation="eager").eval()
    equal_pair(checkpoint, again)


def test_sinusoids_that_a_file_holds_are_left_out_on_purpose(tmp_path: Path) -> None:
    model = theirs("pegasus")
    checkpoint = opened(model, tmp_path)
    dropped = {row.name for row in checkpoint.report.rows_with("dropped")}
    assert dropped == {"model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight"}


@pytest.mark.parametrize("name", KINDS)
def test_generation_begins_and_goes_on_as_in_transformers(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    checkpoint = opened(model, tmp_path)
    start = checkpoint.config.encoder.start
    written = [start]
    for _ in range(6):
        written.append(int(run(checkpoint.model, IDS, target=[written], logits_at=slice(-1, None))["logits"].argmax()))
    options = {"forced_eos_token_id": None, "eos_token_id": None, "do_sample": False, "use_cache": False}
    with torch.no_grad():
        other = model.generate(IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=6, **options)
    assert written == other[0].tolist()


def test_a_target_is_the_start_token_and_the_text_without_its_end(tmp_path: Path) -> None:
    checkpoint = opened(theirs("t5"), tmp_path)
    tokenizer = train(["le chat est sur le tapis"])
    checkpoint = replace(checkpoint, tokenizer=tokenizer, end_ids=(1,))
    target = checkpoint.target("le chat")
    plain = tokenizer.encode("le chat")
    assert target.ids == (0, *plain.ids)
    assert target.pieces == (tokenizer.piece(0), *plain.pieces)
    assert target.spans == ((0, 0), *plain.spans)
    assert target.special[0] and not any(target.special[1:])
    assert run(checkpoint.model, IDS, target=target)["logits"].shape == (1, len(target), 40)
    ends = replace(checkpoint, end_ids=(plain.ids[-1],)).target("le chat")
    assert ends.ids == (0, *plain.ids[:-1])
    with pytest.raises(ValueError, match="this model has no tokenizer"):
        replace(checkpoint, tokenizer=None).target("le chat")


def test_a_decoder_alone_has_no_target() -> None:
    from tests.engine import tiny

    with pytest.raises(ValueError, match="this model has one stack of blocks"):
        Checkpoint(tiny.model()).target("le chat")


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("t5", {"feed_forward_proj": "gated-swish2"}, "feed_forward_proj must be one of relu, .*, got 'gated-swish2'"),
        ("t5", {"d_kv": None}, "config.json lacks d_kv"),
        ("t5", {"num_layers": 10**9}, "describes 1,000,000,003 layers .* the weights hold"),
        ("t5", {"is_encoder_decoder": False}, "is_encoder_decoder must be True, got False"),
        ("marian", {"share_encoder_decoder_embeddings": False}, "share_encoder_decoder_embeddings must be True"),
        (
            "bart",
            {"decoder_start_token_id": 40},
            "encoder.start must be an id below 40, got 40.*decoder_start_token_id",
        ),
    ],
    ids=str,
)
def test_what_loupe_cannot_represent_is_said(name: str, changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    theirs(name).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | changes
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "generation_config.json").unlink(missing_ok=True)  # whose start token would count
    with pytest.raises(ValueError, match=message) as raised:
        load(tmp_path)
    assert "\n" not in str(raised.value)
