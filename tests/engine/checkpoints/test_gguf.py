"""GGUF files: schemes, architectures, tokenizers, and files that lie, against ggml's package and transformers."""

import io
import json
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import sentencepiece
import torch
import transformers
from gguf.quants import dequantize, quantize
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (
    BertWordPieceTokenizer,
    Regex,
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    trainers,
)

from engine.analysis.arithmetic import explain
from engine.analysis.arithmetic.explanation import Number
from engine.checkpoints import Checkpoint, assemble, load
from engine.checkpoints.families import FAMILIES
from engine.checkpoints.gguf.header import read_header
from engine.checkpoints.gguf.settings import ARCHITECTURES as KNOWN
from engine.checkpoints.gguf.settings import read_settings
from engine.checkpoints.gguf.tokenizer import CUTS, tokenizer_files
from engine.checkpoints.gguf.write import is_writable
from engine.checkpoints.gguf.write import write_gguf as write_file
from engine.checkpoints.weights import open_weights
from engine.data.stories import story
from engine.model.quantised import SCHEMES
from engine.model.quantised.tensor import QuantisedTensor
from engine.runtime.run import run
from tests.engine.checkpoints.against import IDS, shaken
from tests.engine.checkpoints.gguf_files import ARCHITECTURES, ENCODERS, write_gguf
from tests.engine.checkpoints.test_dropped import SIZES


def theirs(name: str, **more: Any) -> Any:
    family = next(one for one in FAMILIES[name] if one.head == "language")
    kind = getattr(transformers, str(family.architecture))
    config = kind.config_class(**{**SIZES[name], **more})
    if name.startswith("gemma") and name != "gemma":
        config.query_pre_attn_scalar = config.head_dim  # as files mean it, in which it does not stand
    torch.manual_seed(0)
    return shaken(kind(config))


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_gives_the_numbers_of_ggml_to_the_last_bit(name: str) -> None:
    scheme, kind = SCHEMES[name], gguf.GGMLQuantizationType[name]
    assert gguf.GGML_QUANT_SIZES[kind] == (scheme.numbers, scheme.bytes)
    drawn = np.random.default_rng(0)
    blocks = drawn.integers(0, 256, (64, scheme.bytes), dtype=np.uint8)
    for at in scheme.scales:
        blocks[:, at : at + 2] = drawn.standard_normal((64, 1)).astype(np.float16).view(np.uint8)
    with np.errstate(over="ignore"):
        expected = torch.from_numpy(np.array(dequantize(blocks, kind))).view(4, -1)
    stored = torch.from_numpy(blocks).view(4, -1)
    assert torch.equal(scheme.read(stored), expected) and scheme.is_finite(stored) == bool(expected.isfinite().all())
    for index in range(0, expected.shape[1], 7):
        integer, factor, added = scheme.as_stored(stored[2], index)
        with np.errstate(over="ignore"):
            number = np.float32(factor) * np.float32(integer) + np.float32(added or 0)
        assert integer == int(integer) and number == expected[2, index]
    if scheme.scales:
        blocks[9, scheme.scales[0] : scheme.scales[0] + 2] = np.array([np.nan], np.float16).view(np.uint8)
        assert not scheme.is_finite(stored)
    blocks[:, 0] = 60  # of MXFP4 the exponent
    tensor = QuantisedTensor(torch.from_numpy(blocks[:8].copy()).view(4, -1), scheme)
    whole = tensor.numbers()
    x = torch.randn(3, whole.shape[1])
    assert torch.equal(x @ tensor.T, x @ whole.T) and isinstance(tensor[1:3], QuantisedTensor)
    assert torch.equal(tensor[1:3].float(), whole[1:3]) and torch.equal(tensor[torch.tensor([3, 0])], whole[[3, 0]])
    assert torch.equal(torch.nn.functional.embedding(torch.tensor([2]), tensor), whole[2:3])
    with pytest.raises(RuntimeError, match="must not be written to"):
        tensor.add_(1)


@pytest.mark.parametrize("name", [name for name, scheme in SCHEMES.items() if scheme.encode])
def test_what_is_written_is_what_ggml_writes(name: str) -> None:
    numbers = np.random.default_rng(1).standard_normal((40, 64)).astype(np.float32)
    numbers[3], numbers[4, :32] = 0, 1.5
    expected = quantize(numbers, gguf.GGMLQuantizationType[name])
    assert torch.equal(SCHEMES[name].write(torch.from_numpy(numbers)), torch.from_numpy(expected))
    with pytest.raises(ValueError, match="whole blocks of 32 numbers, got 40"):
        SCHEMES[name].write(torch.zeros(2, 40))
    with pytest.raises(ValueError, match="is read and not written"):
        SCHEMES["Q4_K"].write(torch.zeros(1, 256))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_converted_model_says_what_the_original_says(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    write_gguf(model, tmp_path / "model.gguf")
    checkpoint = load(tmp_path)
    assert (
        checkpoint.report.ok
        and not checkpoint.report.notes
        and checkpoint.family == model.config.model_type.replace("mistral", "llama")
    )
    both = {"decoder_input_ids": IDS.flip(1)} if name == "t5" else {}
    with torch.no_grad():
        torch.testing.assert_close(logits_of(checkpoint), model(IDS, **both).logits, atol=1e-5, rtol=0)
    checkpoint.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    state = again.model.state_dict()
    assert all(torch.equal(state[key], value) for key, value in checkpoint.model.state_dict().items())


def logits_of(checkpoint: Checkpoint) -> torch.Tensor:
    target = None if checkpoint.config.encoder is None else IDS.flip(1)
    return run(checkpoint.model, IDS, target=target)["logits"]


BETWEEN = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, **BETWEEN}
LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "long_factor": [1.5, 2.0, 3.0, 4.0], "short_factor": [1.1] * 4}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("llama", {"rope_parameters": LLAMA3, "max_position_embeddings": 131072, "hidden_size": 128}),
        ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}}),
        ("qwen2", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                                       "original_max_position_embeddings": 16}}),
        ("phi3", {"rope_parameters": LONG, "original_max_position_embeddings": 16, "max_position_embeddings": 64}),
        ("gemma3_text", {"rope_parameters": {
            "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}}),
        ("llama", {"attention_bias": True, "tie_word_embeddings": True}),
        ("granite", {"embedding_multiplier": 3.0, "attention_multiplier": 0.2, "residual_multiplier": 0.5,
                     "logits_scaling": 4.0}),
        ("gemma2", {"attn_logit_softcapping": 7.0, "final_logit_softcapping": 5.0, "sliding_window": 4}),
    ],
)  # fmt: skip
def test_settings_that_change_a_model_are_read(name: str, more: dict[str, Any], tmp_path: Path) -> None:
    model = theirs(name, **more)
    write_gguf(model, tmp_path / "model.gguf")
    ids = torch.cat([IDS, IDS], 1)
    with torch.no_grad():
        torch.testing.assert_close(run(load(tmp_path).model, ids)["logits"], model(ids).logits, atol=1e-5, rtol=0)


def encoder_of(name: str, **own: Any) -> Any:
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    more = {} if name == "T5EncoderModel" else {"max_position_embeddings": 16}
    return shaken(kind(kind.config_class(**{**SIZES[kind.config_class.model_type], **more, **own})))


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_says_what_the_original_says_and_pools_as_its_file_asks(name: str, tmp_path: Path) -> None:
    model = encoder_of(name)
    write_gguf(model, tmp_path / "model.gguf")
    checkpoint = load(tmp_path)
    assert checkpoint.report.ok and not checkpoint.report.notes
    assert checkpoint.family == model.config.model_type.replace("roberta", "bert")
    ids = IDS.where(IDS != 1, 4)  # padding, which RoBERTa does not count
    found = run(checkpoint.model, ids)
    with torch.no_grad():
        last = model(ids).last_hidden_state
    if name != "T5EncoderModel":
        expected = torch.nn.functional.normalize(last.mean(1), dim=-1)
        torch.testing.assert_close(found["vector.out"], expected, atol=1e-5, rtol=0)
    stream = found["final_norm.out" if checkpoint.config.final_norm else "blocks.1.norm2.out"]
    torch.testing.assert_close(stream, last, atol=1e-5, rtol=0)
    assert is_writable(checkpoint.config, checkpoint.family)
    write_file(checkpoint, tmp_path / "again.gguf", "F32")
    again = load(tmp_path / "again.gguf")
    check_names(tmp_path / "again.gguf")
    assert again.config == checkpoint.config and again.report.ok
    state = again.model.state_dict()
    assert all(torch.equal(state[key], value) for key, value in checkpoint.model.state_dict().items())


def test_a_decoder_that_pools_gives_the_vector_of_a_text(tmp_path: Path) -> None:
    model = theirs("qwen3")
    for kind, pooled in ((3, True), (0, False), (4, False)):  # last, none, and a judgement of pairs
        write_gguf(model, tmp_path / "m.gguf", tokenizer={"qwen3.pooling_type": kind})
        found = run(load(tmp_path).model, IDS)
        assert ("vector.out" in found) == pooled
        if pooled:
            expected = torch.nn.functional.normalize(found["final_norm.out"][:, -1], dim=-1)
            torch.testing.assert_close(found["vector.out"], expected)


def test_deepseek_opens_by_either_way_of_writing_its_keys_and_by_its_own_yarn(tmp_path: Path) -> None:
    yarn = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 8,
            "mscale": 0.707, "mscale_all_dim": 0.707}  # fmt: skip
    for name, more in (("deepseek_v2", {"q_lora_rank": None}), ("deepseek_v3", {"rope_parameters": yarn})):
        model = theirs(name, **more)
        for whole in (False, True):
            write_gguf(model, tmp_path / "m.gguf", whole_keys=whole)
            checkpoint = load(tmp_path / "m.gguf")
            with torch.no_grad():
                torch.testing.assert_close(logits_of(checkpoint), model(IDS).logits, atol=1e-5, rtol=0)
        write_gguf(model, tmp_path / "m.gguf", "Q8_0")
        assert load(tmp_path / "m.gguf").report.ok


def test_the_experts_of_gpt_oss_stay_mxfp4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = theirs("gpt_oss", intermediate_size=64)
    write_gguf(model, tmp_path / "m.gguf", "MXFP4")
    decoded = load(tmp_path)
    monkeypatch.setattr(assemble, "DECODED", 0)
    stays = load(tmp_path)
    name, kind = "blocks.1.mlp.experts.up.weight", gguf.GGMLQuantizationType.MXFP4
    assert isinstance(stays.model.get_parameter(name), QuantisedTensor)
    both = model.get_parameter("model.layers.1.mlp.experts.gate_up_proj").detach().mT[:, 1::2].contiguous().numpy()
    expected = torch.from_numpy(np.array(dequantize(quantize(both, kind), kind)))
    assert torch.equal(decoded.model.get_parameter(name), expected)
    assert torch.equal(logits_of(stays), logits_of(decoded))


def test_every_architecture_is_compared() -> None:
    compared = [*(arch for arch, _ in ARCHITECTURES.values()), *ENCODERS.values()]
    assert {gguf.MODEL_ARCH_NAMES[arch] for arch in compared} == {*KNOWN}


@pytest.mark.parametrize("scheme", ["Q8_0", "Q4_0"])
@pytest.mark.parametrize("name", ["llama", "phi3", "gpt2", "qwen3_moe"])
def test_quantised_weights_stay_so_and_say_what_their_numbers_say(
    name: str, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = theirs(name)
    write_gguf(model, tmp_path / "model.gguf", scheme)
    decoded = load(tmp_path)
    monkeypatch.setattr(assemble, "DECODED", 0)
    stays = load(tmp_path)
    assert "bits each" in stays.report.notes[0] and any(row.dtype == scheme for row in stays.report.rows)
    kinds = [type(one) for one in stays.model.parameters()]
    matrices = [one for one in stays.model.parameters() if one.dim() > 1]
    assert kinds.count(QuantisedTensor) >= len(matrices) // 2 and not any(
        isinstance(one, QuantisedTensor) for one in decoded.model.parameters()
    )
    assert torch.equal(run(stays.model, IDS)["logits"], run(decoded.model, IDS)["logits"])
    stays.save(tmp_path / "saved")
    kind = gguf.GGMLQuantizationType[scheme]
    table = model.get_input_embeddings().weight.detach().numpy()
    expected = torch.from_numpy(np.array(dequantize(quantize(table, kind), kind)))
    again = load(tmp_path / "saved")
    assert torch.equal(again.model.embed.tokens.weight, expected)
    assert torch.equal(run(again.model, IDS)["logits"], run(decoded.model, IDS)["logits"])


def check_names(path: Path) -> None:
    """Every tensor of a file is one that ggml's package knows of the architecture."""
    header = read_header(path)
    arch = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[header.metadata["general.architecture"]]
    known = {gguf.TENSOR_NAMES[one] for one in gguf.MODEL_TENSORS[arch]}
    names = {re.sub(r"blk\.\d+", "blk.{bid}", name).rpartition(".")[0] for name in header.tensors}
    assert names <= known, names - known


WRITTEN = ("llama", "qwen2", "qwen3", "gpt2", "phi3", "mixtral", "gemma", "cohere2", "glm4", "exaone4", "gpt_oss",
           "deepseek_v2", "deepseek_v3", "olmo3", "t5", "glm4_moe", "granitemoe", "granitemoeshared")  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_opens_as_it_was_here_and_in_transformers(name: str, tmp_path: Path) -> None:
    model = theirs(name)
    model.save_pretrained(tmp_path / "folder")
    checkpoint = load(tmp_path / "folder")
    assert is_writable(checkpoint.config, checkpoint.family)
    write_file(checkpoint, tmp_path / "whole.gguf", "F32")
    again = load(tmp_path / "whole.gguf")
    state = again.model.state_dict()
    assert again.report.ok
    check_names(tmp_path / "whole.gguf")
    assert all(torch.equal(state[key], value) for key, value in checkpoint.model.state_dict().items())
    write_file(checkpoint, tmp_path / "small.gguf", "Q8_0")
    small = load(tmp_path / "small.gguf").report
    assert small.ok and any(row.dtype == ("float16" if name == "t5" else "Q8_0") for row in small.rows)
    if name == "llama":  # of others transformers reads no biases, or no sizes
        opened = type(model).from_pretrained(tmp_path, gguf_file="small.gguf").eval()
        with torch.no_grad():
            logits = opened(IDS).logits
        torch.testing.assert_close(run(load(tmp_path / "small.gguf").model, IDS)["logits"], logits, atol=1e-4, rtol=0)


def test_a_shipped_model_is_written_with_its_tokenizer_and_what_gguf_lacks_is_told(tmp_path: Path) -> None:
    checkpoint = load("everyday")
    write_file(checkpoint, tmp_path / "everyday.gguf", "F16")
    again = load(tmp_path / "everyday.gguf")
    assert again.tokenizer is not None and checkpoint.tokenizer is not None
    for index in range(50):
        text = story(4, index)
        assert again.tokenizer.encode(text).ids == checkpoint.tokenizer.encode(text).ids
    bert = load("tales-bert")
    assert not is_writable(bert.config, bert.family)
    with pytest.raises(ValueError, match="says this model; save it as a folder"):
        write_file(bert, tmp_path / "bert.gguf")
    with pytest.raises(ValueError, match="written as one of F32, F16, .*, got 'Q4_K'"):
        write_file(checkpoint, tmp_path / "x.gguf", "Q4_K")


def trained_bpe(cuts: Any) -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(cut), "isolated") for cut in cuts),
            pre_tokenizers.ByteLevel(False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>"]
    texts = [f"{story(3, index)} 12,345.67 It's {index}\n\n  don’t" for index in range(200)]
    made.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False))
    return made


def metadata_of(made: Tokenizer, pre: str) -> dict[str, Any]:
    ids = made.get_vocab()
    tokens = sorted(ids, key=ids.__getitem__)
    merges = [" ".join(pair) for pair in json.loads(made.to_str())["model"]["merges"]]
    types = [3 if token in ("<s>", "</s>") else 1 for token in tokens]
    found = {"model": "gpt2", "pre": pre, "tokens": tokens, "merges": merges, "token_type": types}
    return {f"tokenizer.ggml.{name}": value for name, value in found.items()} | {
        "tokenizer.ggml.bos_token_id": ids["<s>"], "tokenizer.ggml.eos_token_id": ids["</s>"],
        "tokenizer.ggml.add_bos_token": True, "tokenizer.chat_template": "{{ messages[0].content }}",
    }  # fmt: skip


def test_a_model_reads_texts_with_the_tokenizer_of_its_file(tmp_path: Path) -> None:
    made = trained_bpe(CUTS["qwen2"])
    model = theirs("llama", vocab_size=made.get_vocab_size())
    write_gguf(model, tmp_path / "m.gguf", tokenizer=metadata_of(made, "qwen2"))
    checkpoint = load(tmp_path)
    assert checkpoint.tokenizer is not None and checkpoint.report.ok, checkpoint.report.notes
    for index in range(1_000):
        text = f"{story(9, index)} I'll pay 1234567 €\t for it's {index}.\n\n\n  Überfluß 東京"
        assert list(checkpoint.tokenizer.encode(text).ids[1:]) == made.encode(text).ids
    assert checkpoint.tokenizer.encode("a").pieces[0] == "<s>" and checkpoint.end_ids == (1,)
    checkpoint.save(tmp_path / "saved")
    opened = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert opened("Max said: it's 12.")["input_ids"] == list(checkpoint.tokenizer.encode("Max said: it's 12.").ids)
    assert opened.chat_template == "{{ messages[0].content }}"


def test_a_sentencepiece_model_is_one_again(tmp_path: Path) -> None:
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
    pieces += [("[PAD259]", -1000.0, 5)]
    words = ["▁", "▁a", "▁the", "th", "he", "e", "t", "h", "a", "n", "▁an", "▁t", "▁th"]
    pieces += [(word, -float(rank), 1) for rank, word in enumerate(words)]
    said = {
        "model": "llama", "tokens": [one[0] for one in pieces], "scores": [one[1] for one in pieces],
        "token_type": [one[2] for one in pieces], "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0,
    }  # fmt: skip
    metadata = {f"tokenizer.ggml.{name}": value for name, value in said.items()}
    model = theirs("llama", vocab_size=len(pieces))
    write_gguf(model, tmp_path / "m.gguf", tokenizer=metadata)
    tokenizer = load(tmp_path).tokenizer
    assert tokenizer is not None
    assert tokenizer.encode("the an é").pieces == ("<s>", "·the", "·an", "·", *tokenizer.encode("é").pieces[-2:])
    whole = sentencepiece.SentencePieceProcessor(model_proto=tokenizer_files(metadata)["tokenizer.model"])
    for text in ("the an é", "a  the\nthen", "  an"):
        assert list(tokenizer.encode(text).ids[1:]) == whole.encode(text), text


TEXTS = [
    *(f"{story(9, index)} I'll pay {index}5 €\t" for index in range(100)),
    "Überfluß 東京 [CLS] ﬁn",
    "  a\n  b ",
    "",
]


@pytest.mark.parametrize("small", [True, False])
def test_a_word_piece_is_read_and_written_as_it_was(small: bool, tmp_path: Path) -> None:
    made = BertWordPieceTokenizer(lowercase=small)
    made.train_from_iterator(TEXTS, vocab_size=300, show_progress=False)
    tokens = sorted(made.get_vocab(), key=made.get_vocab().__getitem__)
    first, last = made.token_to_id("[CLS]"), made.token_to_id("[SEP]")
    made.post_processor = processors.BertProcessing(("[SEP]", last), ("[CLS]", first))
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    marked = [one if one in special else one[2:] if one.startswith("##") else f"▁{one}" for one in tokens]
    said = {
        "model": "bert", "pre": "default", "tokens": marked, "unknown_token_id": made.token_to_id("[UNK]"),
        "token_type": [3 if one in special else 1 for one in tokens], "seperator_token_id": last,
        "cls_token_id": first,
    }  # fmt: skip
    model = encoder_of("BertModel", vocab_size=len(tokens))
    write_gguf(model, tmp_path / "m.gguf", tokenizer={f"tokenizer.ggml.{name}": value for name, value in said.items()})
    checkpoint = load(tmp_path / "m.gguf")
    write_file(checkpoint, tmp_path / "again.gguf")
    checkpoint.save(tmp_path / "saved")
    for path in ("m.gguf", "again.gguf", "saved"):
        tokenizer = load(tmp_path / path).tokenizer
        assert tokenizer is not None
        for text in TEXTS:
            assert list(tokenizer.encode(text).ids) == made.encode(text).ids


def test_a_unigram_is_read_and_written_as_it_was(tmp_path: Path) -> None:
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=file, vocab_size=200, user_defined_symbols=["<extra_id_0>"],
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2,
    )  # fmt: skip
    made = sentencepiece.SentencePieceProcessor(model_proto=file.getvalue())
    proto = sentencepiece_model_pb2.ModelProto.FromString(file.getvalue())  # type: ignore[attr-defined]
    said = {
        "model": "t5", "pre": "default", "tokens": [one.piece for one in proto.pieces],
        "scores": [one.score for one in proto.pieces], "token_type": [one.type for one in proto.pieces],
        "precompiled_charsmap": list(proto.normalizer_spec.precompiled_charsmap), "add_space_prefix": True,
        "remove_extra_whitespaces": True, "eos_token_id": 1, "padding_token_id": 0, "unknown_token_id": 2,
        "add_bos_token": False, "add_eos_token": True,
    }  # fmt: skip
    metadata = {f"tokenizer.ggml.{name}": value for name, value in said.items()}
    model = theirs("t5", vocab_size=len(proto.pieces))
    write_gguf(model, tmp_path / "m.gguf", tokenizer=metadata)
    checkpoint = load(tmp_path / "m.gguf")
    write_file(checkpoint, tmp_path / "again.gguf")
    for path in ("m.gguf", "again.gguf"):
        tokenizer = load(tmp_path / path).tokenizer
        assert tokenizer is not None
        for text in TEXTS:
            assert list(tokenizer.encode(text).ids) == [*made.encode(text), 1]
    assert (
        read_header(tmp_path / "again.gguf").metadata["tokenizer.ggml.precompiled_charsmap"]
        == said["precompiled_charsmap"]
    )
    damaged = metadata | {"tokenizer.ggml.precompiled_charsmap": [255, 255, 255, 127]}
    with pytest.raises(ValueError, match="precompiled_charsmap must be a table of characters"):
        tokenizer_files(damaged)
    with pytest.raises(ValueError, match=r"must have a token such as \[CLS\]"):
        tokenizer_files(metadata | {"tokenizer.ggml.model": "bert"})
    with pytest.raises(ValueError, match="must be one of llama, gpt2, bert, t5, got 'rwkv'"):
        tokenizer_files(metadata | {"tokenizer.ggml.model": "rwkv"})


@pytest.mark.parametrize(
    ("pre", "pieces"),
    [
        ("deepseek-v3", ["Hi", "!", " we", " paid", " ", "123", "45", " $", "x", "中文", "ok", "\n\n", "'ll"]),
        ("deepseek-llm", ["Hi", "!", " we", " paid", " ", "12345", " $", "x", "中文", "ok", "\n", "\n", "'", "ll"]),
        ("deepseek-coder", ["Hi", "!", " we", " paid", " ", *"12345", " $", "x", "中文", "ok", "\n", "\n", "'", "ll"]),
        ("seed-coder", ["Hi", "!", " we", " paid", " ", "1", "2", "3", "4", "5", " $", "x中文ok", "\n\n", "'ll"]),
        ("bailingmoe", ["Hi", "!", " we", " paid", " ", "1", "2", "3", "4", "5", " $", "x中文ok", "\n\n", "'ll"]),
        ("viking", ["Hi", "!", " we", " paid", " ", "1", "2", "3", "4", "5", " $x中文ok", "\n\n", "'ll"]),
        ("modern-bert", ["Hi", "!", " we", " paid", " 12345", " $", "x中文ok", "\n", "\n", "'ll"]),
    ],
)
def test_a_text_is_cut_by_the_expressions_of_pre(pre: str, pieces: list[str]) -> None:
    cuts = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(cut), "isolated") for cut in CUTS[pre]])
    assert [piece for piece, _ in cuts.pre_tokenize_str("Hi! we paid 12345 $x中文ok\n\n'll")] == pieces


def small(path: Path, **changes: Any) -> bytes:
    writer = gguf.GGUFWriter(path, "llama")
    write = {"context_length": 16, "embedding_length": 32, "block_count": 1, "feed_forward_length": 64} | changes
    for name, value in write.items():
        if value is not None:
            writer.add_uint32(f"llama.{name}", value)
    writer.add_tensor("token_embd.weight", np.zeros((8, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def test_a_file_that_lies_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    whole = small(path)

    def refused(data: bytes, says: str) -> None:
        path.write_bytes(data)
        with pytest.raises(ValueError, match=says):
            load(path)

    refused(whole, "must say llama.attention.head_count")
    refused(b"GGUX" + whole[4:], "does not begin like one")
    refused(whole[:4] + struct.pack(">I", 3) + whole[8:], "got one big-endian")
    refused(whole[:-500], "it was cut off")
    refused(whole[:60], "was cut off")
    refused(whole[:8] + struct.pack("<QQ", 2**40, 3) + whole[24:], "more than a file can hold")
    refused(whole[:16] + struct.pack("<Q", 2**15) + whole[24:], "GGUF does not have|was cut off")
    refused(small(path, block_count=0), "must be a whole number above 0")
    refused(small(path, block_count=2**31 - 1, **{"attention.head_count": 4}), "does not open|not of one model|most")
    writer = gguf.GGUFWriter(path, "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    refused(path.read_bytes(), "must be one that Loupe opens .*, got 'mamba'")
    (tmp_path / "m-00001-of-00002.gguf").write_bytes(whole)
    with pytest.raises(FileNotFoundError, match="m-00002-of-00002.gguf is not beside it"):
        load(tmp_path / "m-00001-of-00002.gguf")


@pytest.mark.parametrize("name", ["phi", "deepseek_v3", "glm4_moe", "smollm3"])
def test_a_setting_of_another_kind_ends_in_a_sentence(name: str, tmp_path: Path) -> None:
    write_gguf(theirs(name), tmp_path / "m.gguf")
    stored = open_weights(tmp_path / "m.gguf")
    for key in {*(stored.settings or {})} - {"general.architecture"}:
        for odd in ("x", -1, 0, [1], 1e30):
            changed = replace(stored, settings={**(stored.settings or {}), key: odd})
            try:
                assert read_settings(changed)["model_type"]
            except ValueError as error:
                assert str(error).count(".") >= 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_header_ends_in_a_sentence(data: st.DataObject) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "m.gguf"
        whole = bytearray(small(path))
        for _ in range(data.draw(st.integers(1, 4))):
            whole[data.draw(st.integers(4, 330))] = data.draw(st.integers(0, 255))
        path.write_bytes(bytes(whole))
        try:
            assert len(read_header(path).tensors) < 2  # of which the file has one
        except ValueError as error:
            assert str(path) in str(error) or "in m.gguf" in str(error)


@pytest.mark.parametrize("scheme", ["Q8_0", "Q4_1"])
def test_a_product_says_how_the_file_stores_its_weight(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gguf(theirs("qwen3_moe", moe_intermediate_size=32), tmp_path / "m.gguf", scheme)
    plain = load(tmp_path).model
    monkeypatch.setattr(assemble, "DECODED", 0)
    model = load(tmp_path).model
    trace = run(model, IDS)
    for hook, place in (
        ("blocks.1.attn.q", (2, 5, 1)),
        ("blocks.1.mlp.experts.up", (2, 7, 0)),
        ("embed.tokens", (1, 9)),
    ):
        found, decoded = explain(model, trace, hook, *place), explain(plain, run(plain, IDS), hook, *place)
        first, *rest = found.lines
        assert tuple(rest) == decoded.lines and found.recomputed == decoded.recomputed
        integer, scale, *added, value = (part.value for part in first if isinstance(part, Number))
        assert f"in {scheme}, " in str(first[0]) and len(added) == (scheme == "Q4_1")
        assert np.float32(integer) * np.float32(scale) + np.float32(sum(added)) == np.float32(value)
        if found.products is not None:
            at = found.products.largest(1)[0][0]
            assert (
                value == float(found.products.right.values[at])
                and f"[{at}, 5]" in str(first[0])
                or "7]" in str(first[0])
            )
