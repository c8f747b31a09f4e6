"""What is taken away opens again as it was: in transformers where it has such a model, and in Loupe always."""

import json
import zlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import pytest
import torch
import transformers
from safetensors import safe_open

from engine import load, run
from engine.checkpoints import Checkpoint
from engine.checkpoints.save import CONFIG, export_checkpoint
from engine.checkpoints.weights import write_weights
from engine.compiled import find_answer_key
from engine.model.config import MLP, Attention, Encoder, ModelConfig, Norm, OutputHead, Patches, Positions
from engine.model.config import Embedding as EmbeddingConfig
from engine.runtime.trace import Trace
from tests.engine import tiny
from tests.engine.checkpoints.against import equal, equal_patterns
from tests.shipped import COMPILED, DIFFERENT, TRAINED

EXPRESSED = {"bilingual", "digits-imagegpt", "digits-vit", "everyday", "in-context", "instruct", "stories"}
EXPRESSED |= {"tales-bert", "long-stories", "t5-spans", "t5-tasks", "t5-answers"}
TEXTS = {"stories": "The little dog was sad.", "tales-bert": "The [MASK] dog was sad.", "induction": "a b c a b"}
TEXTS |= {"bilingual": "le chat noir dort", "instruct": "the black cat sleeps [toFrench] le chat"}
TEXTS |= {"plane": "Anna saw the dog and", "everyday": "Cats eat fish.", "long-stories": "In the red house lived Anna."}
TEXTS |= {"t5-spans": "A <extra_id_0> sees a cat.", "t5-tasks": "sort: A dog sees a cat."}
TEXTS |= {"t5-answers": "summarize: A dog sees a cat. It sleeps."}
TEXTS |= {"in-context": "cow: zog\npie: kex\nhorse:"}
TEXTS |= {"translate-en-fr": "the cat sees the dog", "infill": "The [gMASK] was happy.[sop]dog"}
TEXTS |= dict.fromkeys(COMPILED, "a(())1")


def unzipped(file: Path) -> Path:
    with ZipFile(file) as zipped:
        assert {entry.compress_type for entry in zipped.infolist()} == {ZIP_STORED}
        assert {entry.filename.count("/") for entry in zipped.infolist()} == {1}
        zipped.extractall(file.parent)
    return file.with_suffix("")


def given(checkpoint: Checkpoint) -> Any:
    """Something for a shipped model to read."""
    if checkpoint.tokenizer is not None:
        return checkpoint.tokenizer.encode(TEXTS[checkpoint.name])
    if checkpoint.config.embedding.patches is not None:
        return tiny.normal(1, 1, 8, 8)
    return [17, 0, 5, 16, 3, 3, 9]


def of_transformers(folder: Path, trace: Trace) -> Any:
    """Opened by transformers' own choice of class, on the input of `trace`."""
    named = json.loads((folder / "config.json").read_text())["architectures"][0]
    model = getattr(transformers, named).from_pretrained(folder, attn_implementation="eager").eval()
    assert transformers.AutoConfig.from_pretrained(folder).model_type == model.config.model_type
    read: dict[str, Any] = {"pixel_values": trace.ids} if trace.ids.is_floating_point() else {"input_ids": trace.ids}
    if trace.target is not None:
        read["decoder_input_ids"] = trace.target
    with torch.no_grad():
        return model(**read, output_attentions=True)


def test_every_shipped_model_is_tried() -> None:
    assert EXPRESSED | {"induction", "infill", "plane", "translate-en-fr"} == set(TRAINED)


@pytest.mark.parametrize("name", sorted(EXPRESSED))
def test_a_shipped_model_is_read_by_transformers_to_the_same_numbers(name: str, tmp_path: Path) -> None:
    checkpoint = load(name)
    folder = unzipped(export_checkpoint(checkpoint, "folder", tmp_path))
    trace = run(checkpoint.model, given(checkpoint))
    theirs = of_transformers(folder, trace)
    equal(trace["logits"], theirs.get("logits", theirs.get("prediction_logits")))
    if trace.target is None:
        equal_patterns(trace, "attn.pattern", theirs.attentions)
    else:
        equal_patterns(trace, "encoder.attn.pattern", theirs.encoder_attentions)
        equal_patterns(trace, "cross_attn.pattern", theirs.cross_attentions)
    if checkpoint.tokenizer is not None:
        tokens = transformers.AutoTokenizer.from_pretrained(folder)(TEXTS[name])["input_ids"]
        assert tuple(tokens) == given(checkpoint).ids


def trained(config: ModelConfig, **more: Any) -> Checkpoint:
    return Checkpoint(tiny.model(config), name="mine", **more)


FULL = Attention(4, mask="full")
T5 = Attention(4, bias=False, out_bias=False, scale=1.0)
LLAMA = Attention(4, kv_heads=2, bias=False, out_bias=False)
PLAIN = MLP(20, "relu", bias=False)
OURS: dict[str, tuple[ModelConfig, Any]] = {
    "decoder": (tiny.CONFIG, tiny.IDS),
    "modern decoder": (
        replace(
            tiny.config("rotary", norm=Norm("rms"), tied=False),
            attention=LLAMA,
            mlp=MLP(20, "silu", gated=True, bias=False),
        ),
        tiny.IDS,
    ),
    "encoder": (
        tiny.config(
            attention={"mask": "full"},
            mlp=MLP(20, "gelu"),
            norm=Norm(place="after"),
            embedding=EmbeddingConfig(segments=2, norm=True),
            head=OutputHead("masked", bias=True),
        ),
        tiny.IDS,
    ),
    "encoder-decoder": (
        replace(
            tiny.config("relative", norm=Norm("rms", eps=1e-6), head=OutputHead(scale=16**-0.5)),
            attention=T5,
            mlp=PLAIN,
            encoder=Encoder(2, replace(T5, mask="full"), PLAIN),
            positions=Positions("relative", buckets=8, farthest=12),
        ),
        tiny.IDS,
    ),
    "ViT": (
        ModelConfig(
            *(1, 10, 16, 2, FULL, MLP(20, "gelu")),
            embedding=EmbeddingConfig(patches=Patches(12, 4, 1)),
            head=OutputHead("sequence", classes=3),
        ),
        tiny.normal(1, 1, 12, 12),
    ),
}


@pytest.mark.parametrize("kind", OURS)
def test_a_model_made_here_is_read_by_transformers_to_the_same_numbers(kind: str, tmp_path: Path) -> None:
    config, read = OURS[kind]
    checkpoint = trained(config)
    target = [0, 4, 2] if config.encoder else None
    trace = run(checkpoint.model, read, target=target)
    theirs = of_transformers(unzipped(export_checkpoint(checkpoint, "folder", tmp_path)), trace)
    equal(trace["logits"], theirs.logits)
    if config.encoder:
        equal_patterns(trace, "encoder.attn.pattern", theirs.encoder_attentions)
        equal_patterns(trace, "cross_attn.pattern", theirs.cross_attentions)
    else:
        equal_patterns(trace, "attn.pattern", theirs.attentions)


def same(one: Checkpoint, other: Checkpoint) -> None:
    assert other.report.ok and not other.report.notes, other.report
    assert (other.config, other.card, other.labels) == (one.config, one.card, one.labels)
    assert (other.end_ids, other.processor) == (one.end_ids, one.processor)
    ours, theirs = one.model.state_dict(), other.model.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name
    if one.tokenizer is None or other.tokenizer is None:
        assert one.tokenizer is other.tokenizer
        return
    text = TEXTS[one.name] + " zz?! é\n  the"
    assert one.tokenizer.encode(text) == other.tokenizer.encode(text)
    assert one.tokenizer.pieces == other.tokenizer.pieces
    assert (one.tokenizer.mask_id, one.tokenizer.pad_id) == (other.tokenizer.mask_id, other.tokenizer.pad_id)


@pytest.mark.parametrize("form", ["folder", "file"])
@pytest.mark.parametrize("name", DIFFERENT)
def test_everything_comes_back(name: str, form: Any, tmp_path: Path) -> None:
    checkpoint = load(name)
    file = export_checkpoint(checkpoint, form, tmp_path)
    assert file.name == f"{name}.{'zip' if form == 'folder' else 'safetensors'}"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    again = load(unzipped(file) if form == "folder" else file)
    same(checkpoint, again)
    if form == "folder":
        assert find_answer_key(again) == find_answer_key(checkpoint)


def test_weights_changed_here_are_the_ones_taken_away(tmp_path: Path) -> None:
    checkpoint = load("stories")
    with torch.no_grad():
        checkpoint.model.get_parameter("blocks.0.attn.q.weight")[3, 5] += 2.5
    same(checkpoint, load(export_checkpoint(checkpoint, "file", tmp_path)))


def test_half_precision_stays_half(tmp_path: Path) -> None:
    checkpoint = load("stories", torch.bfloat16)
    again = load(export_checkpoint(checkpoint, "file", tmp_path), torch.bfloat16)
    same(checkpoint, again)
    with safe_open(tmp_path / "stories.safetensors", "pt") as file:
        assert file.get_tensor("final_norm.weight").dtype == torch.bfloat16


def test_one_file_does_not_take_up_what_lies_beside_it(tmp_path: Path) -> None:
    export_checkpoint(load("digits-vit"), "file", tmp_path)
    load("stories").save(tmp_path)
    again = load(tmp_path / "digits-vit.safetensors")
    assert again.tokenizer is None
    assert again.labels == load("digits-vit").labels == tuple("0123456789")


def test_one_file_says_in_plain_text_what_it_is(tmp_path: Path) -> None:
    checkpoint = load("stories")
    with safe_open(export_checkpoint(checkpoint, "file", tmp_path), "pt") as file:
        told = file.metadata()
    assert ModelConfig.from_dict(json.loads(told[CONFIG])) == checkpoint.config
    assert json.loads(told["loupe.file.card.json"]) == checkpoint.card
    assert not [key for key in told if key.startswith("loupe.packed.")]


def test_a_large_tokenizer_is_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.checkpoints.save.SHORT", 2000)
    checkpoint = load("stories")
    file = export_checkpoint(checkpoint, "file", tmp_path)
    with safe_open(file, "pt") as opened:
        assert "loupe.packed.tokenizer.json" in opened.metadata()
    same(checkpoint, load(file))


def test_a_tokenizer_too_large_for_a_header_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.checkpoints.save.LARGEST_HEADER", 2**22 + 1000)
    with pytest.raises(ValueError, match="too many for the header of one file; save the folder"):
        export_checkpoint(load("stories"), "file", tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("hub:org/some-model@v1.0", "org-some-model-v1.0"),
        ("../../etc/passwd", "etc-passwd"),
        ("modèle\n<b>", "mod-le-b"),
        ("", "model"),
        ("..", "model"),
    ],
)
def test_a_name_becomes_that_of_a_file(name: str, file: str, tmp_path: Path) -> None:
    checkpoint = replace(trained(tiny.CONFIG), name=name)
    for form, ending in (("folder", "zip"), ("file", "safetensors")):
        assert export_checkpoint(checkpoint, form, tmp_path) == tmp_path / f"{file}.{ending}"  # type: ignore[arg-type]


def header(change: Callable[[dict[str, str]], None], folder: Path) -> Path:
    """A whole file whose header somebody has changed."""
    checkpoint = trained(tiny.CONFIG)
    told = {CONFIG: json.dumps(checkpoint.config.to_dict()), "loupe.file.card.json": "{}"}
    change(told)
    write_weights(folder / "mine.safetensors", checkpoint.model.state_dict(), told)
    return folder / "mine.safetensors"


BOMB = b64encode(zlib.compress(b" " * (2**26 + 1))).decode()


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        ("%%%", "the card.json in the header of the weights does not unpack"),
        ("AAAA", "the card.json in the header of the weights does not unpack"),
        (BOMB, "must be whole, and at most 67,108,864 bytes"),
        (b64encode(zlib.compress(b"{}")[:-3]).decode(), "must be whole"),
    ],
    ids=["no base64", "no zlib", "bomb", "cut off"],
)
def test_a_damaged_header_is_said(packed: str, message: str, tmp_path: Path) -> None:
    def change(told: dict[str, str]) -> None:
        del told["loupe.file.card.json"]
        told["loupe.packed.card.json"] = packed

    file = header(change, tmp_path)
    with pytest.raises(ValueError, match=message):
        load(file)


def test_only_the_known_names_of_a_header_become_files(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    file = header(lambda told: told.update({"loupe.file.../trap": "x", f"loupe.file.{trap}": "x"}), tmp_path)
    assert load(file).report.ok
    assert not trap.exists()


@pytest.mark.parametrize(("name", "text"), [("card.json", "[1]"), ("config.json", "{"), ("card.json", "\ud800")])
def test_a_wrong_text_in_the_header_is_said(name: str, text: str, tmp_path: Path) -> None:
    packed = b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode()

    def change(told: dict[str, str]) -> None:
        del told["loupe.file.card.json"]
        told[f"loupe.packed.{name}"] = packed

    file = header(change, tmp_path)
    with pytest.raises(ValueError, match=f"the header of mine.safetensors/{name} must "):
        load(file)
