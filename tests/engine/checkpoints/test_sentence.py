"""Sentence encoders: folders of sentence-transformers, read, run and written against that library."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any
from zipfile import ZipFile

import pytest
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from torch import Tensor, nn
from transformers import BertConfig, BertModel, BertTokenizerFast, set_seed

from engine import load
from engine.analysis.text_vectors import (
    cosines,
    iterate_prompts,
    late_interaction,
    nearest,
    read_text,
    split_cosine,
    text_vectors,
    vector_shares,
)
from engine.checkpoints.hub import HubName, choose_files
from engine.checkpoints.save import export_checkpoint
from engine.checkpoints.unpack import unpack
from engine.runtime.run import run
from tests.engine.checkpoints.against import shaken

WORDS = ["a", "man", "is", "eating", "food", "someone", "has", "meal", "the", "bridge", "closed", "query", ":", "."]
TEXTS = ("A man is eating food.", "Someone has a meal.", "The bridge is closed", "a")
WIDTH = 8


@pytest.fixture(scope="module")
def body(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("body")
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    set_seed(0)
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    shaken(BertModel(BertConfig(vocab_size=len(WORDS) + 5, max_position_embeddings=32, **sizes))).save_pretrained(
        folder
    )
    return folder


def encoder(body: Path, folder: Path, *modules: nn.Module, **settings: Any) -> SentenceTransformer:
    """What sentence-transformers makes of a body and modules behind it, written to `folder`."""
    made = SentenceTransformer(modules=[Transformer(str(body)), *modules], device="cpu", **settings)
    made.save(str(folder))
    return made


def pooling(*modes: str) -> Pooling:
    return Pooling(WIDTH, pooling_mode=modes[0] if len(modes) == 1 else modes)  # type: ignore[arg-type]


def vectors(theirs: SentenceTransformer, texts: Sequence[str], **options: Any) -> Tensor:
    found = theirs.encode(list(texts), convert_to_tensor=True, **options)
    assert isinstance(found, Tensor)
    return found


def modules_of(number: int) -> list[nn.Module]:
    set_seed(number)
    kinds: list[list[nn.Module]] = [
        [pooling("mean"), Normalize()],
        [pooling("cls")],
        [pooling("lasttoken"), Dense(WIDTH, 5, activation_function=nn.Tanh()), Normalize()],
        [pooling("weightedmean"), Dense(WIDTH, 12, bias=False, activation_function=nn.Identity())],
        [
            pooling("max"),
            Dense(WIDTH, 5, activation_function=nn.Identity()),
            Dense(5, 7, activation_function=nn.GELU()),
        ],
        [pooling("mean_sqrt_len_tokens", "cls", "max"), Dense(3 * WIDTH, 4, activation_function=nn.Identity())],
    ]
    return kinds[number]


@pytest.mark.parametrize("number", range(6))
def test_vectors_are_those_of_sentence_transformers(number: int, body: Path, tmp_path: Path) -> None:
    theirs = encoder(body, tmp_path / "theirs", *modules_of(number))
    wanted = vectors(theirs, TEXTS)
    ours = load(tmp_path / "theirs")
    assert ours.report.ok and not ours.report.notes
    torch.testing.assert_close(text_vectors(ours, TEXTS), wanted, atol=1e-5, rtol=0)
    trace = run(ours.model, read_text(ours, TEXTS[0]))
    pairs = [vector_shares, vector_shares]
    if ours.config.vector is not None and ours.config.vector.is_linear:
        second = run(ours.model, read_text(ours, TEXTS[1]))
        first, other = (made(ours.model, one) for made, one in zip(pairs, (trace, second), strict=True))
        torch.testing.assert_close(first.vector.float(), wanted[0], atol=1e-5, rtol=0)
        found = split_cosine(first, other)
        assert found.pairs.shape == (len(first.tokens), len(other.tokens))
        assert found.cosine == pytest.approx(float(theirs.similarity(wanted[:1], wanted[1:2])), abs=1e-5)
        assert float(found.pairs.sum()) + found.rest == pytest.approx(found.cosine, abs=1e-9)
    else:
        with pytest.raises(ValueError, match="no sum over tokens"):
            vector_shares(ours.model, trace)
    ours.save(tmp_path / "again")
    torch.testing.assert_close(vectors(SentenceTransformer(str(tmp_path / "again"), device="cpu"), TEXTS), wanted)
    for form in ("file", "folder"):
        file = export_checkpoint(ours, form, tmp_path)  # type: ignore[arg-type]
        if form == "folder":
            with file.open("rb") as sent:
                file = unpack([("model.zip", sent)], tmp_path / "unpacked").folder
        torch.testing.assert_close(text_vectors(load(file), TEXTS), wanted, atol=1e-5, rtol=0)


def other_body(kind: str, body: Path, folder: Path) -> Path:
    """A body of another family beside the same tokenizer."""
    copytree(body, folder, ignore=ignore_patterns("*.safetensors", "config.json"))
    small = {"vocab_size": len(WORDS) + 5, "hidden_size": WIDTH, "intermediate_size": 16, "num_hidden_layers": 4}
    small |= {"num_attention_heads": 2, "head_dim": 4, "num_key_value_heads": 1}
    sizes: dict[str, dict[str, Any]] = {
        "Gemma3Text": small | {"sliding_window": 4, "use_bidirectional_attention": True},
        "Qwen3": small,
        "T5": {"vocab_size": len(WORDS) + 5, "d_model": WIDTH, "d_ff": 16, "num_layers": 2, "num_heads": 2, "d_kv": 4},
    }
    set_seed(0)
    model = getattr(transformers, f"{kind}{'Encoder' * (kind == 'T5')}Model")
    shaken(model(getattr(transformers, f"{kind}Config")(**sizes[kind]))).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("kind", "mode"), [("Gemma3Text", "mean"), ("Qwen3", "lasttoken"), ("T5", "mean")])
def test_bodies_of_every_kind_make_vectors(kind: str, mode: str, body: Path, tmp_path: Path) -> None:
    made = other_body(kind, body, tmp_path / "body")
    maps = [Dense(WIDTH, size, bias=False, activation_function=nn.Identity()) for size in (WIDTH,)]
    theirs = encoder(made, tmp_path / "theirs", pooling(mode), *maps, Normalize())
    ours = load(tmp_path / "theirs")
    torch.testing.assert_close(text_vectors(ours, TEXTS), vectors(theirs, TEXTS), atol=1e-5, rtol=0)
    ours.save(tmp_path / "again")
    again = SentenceTransformer(str(tmp_path / "again"), device="cpu")
    torch.testing.assert_close(vectors(again, TEXTS), vectors(theirs, TEXTS))


def test_prompts_stand_before_texts_and_long_ones_are_cut(body: Path, tmp_path: Path) -> None:
    theirs = encoder(
        body, tmp_path / "it", pooling("mean"), prompts={"query": "query: ", "text": ""}, default_prompt_name="query"
    )
    theirs.max_seq_length = 6
    theirs.save(str(tmp_path / "it"))
    ours = load(tmp_path / "it")
    prompts = dict(iterate_prompts(ours))
    assert (ours.sentence.usual, ours.sentence.longest, prompts["query"]) == ("query", 6, "query: ")
    for name in ("query", "text"):
        found = text_vectors(ours, TEXTS, prompts[name])
        torch.testing.assert_close(found, vectors(theirs, TEXTS, prompt_name=name), atol=1e-5, rtol=0)
    values, at = nearest(found[0], found, 2)
    assert int(at[0]) == 0 and float(values[0]) == pytest.approx(1, abs=1e-6)
    torch.testing.assert_close(cosines(found, found), theirs.similarity(found, found), atol=1e-6, rtol=0)
    ours.save(tmp_path / "again")
    assert load(tmp_path / "again").sentence.prompts == ours.sentence.prompts


def vectors_of_tokens(body: Path, folder: Path) -> Path:
    """A folder of late interaction, as PyLate writes it."""
    encoder(body, folder, pooling("mean"), Dense(WIDTH, 4, bias=False, activation_function=nn.Identity()))
    listed = json.loads((folder / "modules.json").read_text())
    kept = [{**one, "type": "pylate.models.Dense.Dense"} if "Dense" in one["type"] else one for one in listed]
    kept = [one for one in kept if "Pooling" not in one["type"]]
    (folder / "modules.json").write_text(json.dumps(kept))
    return folder


def test_an_older_folder_and_a_vector_for_each_token(body: Path, tmp_path: Path) -> None:
    encoder(body, tmp_path / "new", pooling("mean"))
    files = [file for file in (tmp_path / "new").iterdir() if file.is_file()]
    (tmp_path / "new" / "0_Transformer").mkdir()
    for file in files:
        if file.name != "modules.json" and not file.name.startswith("config_sentence"):
            file.rename(tmp_path / "new" / "0_Transformer" / file.name)
    assert load(tmp_path / "new").config.vector is not None

    ours = load(vectors_of_tokens(body, tmp_path / "tokens"))
    query, document = (run(ours.model, read_text(ours, text))["vector.out"][0] for text in TEXTS[:2])
    products, best = late_interaction(query, document)
    assert ours.config.vector is not None and not ours.config.vector.pooled and query.shape[1] == 4
    torch.testing.assert_close(query.norm(dim=1), torch.ones(len(query)))
    assert products.shape == (len(query), len(document)) and float(best.sum()) <= len(query)
    with pytest.raises(ValueError, match="for each token"):
        text_vectors(ours, TEXTS)


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("modules.json", [{"type": "models.LSTM", "path": "1_LSTM"}], "LSTM"),
        (
            "modules.json",
            [{"type": "models.Pooling", "path": "../other"}],
            "must lie in a folder",
        ),
        ("modules.json", {"type": "no list"}, "must list"),
        ("1_Pooling/config.json", {"word_embedding_dimension": 7}, "vectors of 7"),
        ("1_Pooling/config.json", {"pooling_mode": "median"}, "median"),
        ("1_Pooling/config.json", {"pooling_mode": "mean", "include_prompt": False}, "prompt"),
        ("2_Dense/config.json", {"in_features": WIDTH, "out_features": 2**40}, "must map"),
        ("2_Dense/config.json", {"activation_function": "os.system"}, "activation"),
        ("config_sentence_transformers.json", {"prompts": [1]}, "prompts"),
        ("sentence_bert_config.json", {"max_seq_length": -1}, "max_seq_length"),
    ],
)
def test_what_modules_cannot_be_is_a_note(file: str, change: object, told: str, body: Path, tmp_path: Path) -> None:
    encoder(body, tmp_path, pooling("mean"), Dense(WIDTH, 4))
    (tmp_path / file).write_text(json.dumps(change))
    ours = load(tmp_path)
    (note,) = ours.report.notes
    assert told in note
    assert (ours.config.vector is None) == (not file.startswith(("config_s", "sentence")))


@pytest.mark.parametrize("activation", [nn.Sigmoid(), nn.Identity()])
def test_a_cross_encoder_gives_its_score(activation: nn.Module, body: Path, tmp_path: Path) -> None:
    CrossEncoder(str(body), num_labels=1, activation_fn=activation, device="cpu").save_pretrained(str(tmp_path))
    theirs, ours = CrossEncoder(str(tmp_path), device="cpu"), load(tmp_path)
    assert ours.tokenizer is not None and ours.report.ok and not ours.report.notes
    wanted = torch.tensor(theirs.predict([TEXTS[:2]]))
    trace = run(
        ours.model, ours.tokenizer.encode(*TEXTS[:2]), keep=["logits", "probs"] if ours.model.hook_probs else "*"
    )
    found = trace["probs"] if isinstance(activation, nn.Sigmoid) else trace["logits"]
    torch.testing.assert_close(found[0], wanted, atol=1e-5, rtol=0)
    ours.save(tmp_path / "again")
    assert load(tmp_path / "again").config == ours.config


def test_a_hub_gives_the_files_of_modules_too(body: Path, tmp_path: Path) -> None:
    encoder(body, tmp_path, pooling("mean"), Dense(WIDTH, 4))
    names = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()]
    chosen = choose_files(
        [*names, "1_Pooling/run.py", "onnx/model.onnx", "2_Dense/tf.h5"], HubName("org/name"), lambda _: tmp_path
    )
    assert {"modules.json", "1_Pooling/config.json", "2_Dense/model.safetensors"} <= set(chosen)
    assert not {"1_Pooling/run.py", "onnx/model.onnx", "2_Dense/tf.h5"} & set(chosen)
    with ZipFile(tmp_path / "up.zip", "w") as zipped:
        for name in names:
            zipped.write(tmp_path / name, f"folder/{name}")
    with (tmp_path / "up.zip").open("rb") as sent:
        unpacked = unpack([("up.zip", sent)], tmp_path / "out")
    assert load(unpacked.folder).config.vector is not None
