"""Checkpoints of nanoGPT and minGPT against their forward pass, written out; and files that are not to be trusted."""

import math
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.checkpoints import Checkpoint, load
from engine.runtime.run import run

ARGS = {"n_layer": 3, "n_head": 3, "n_embd": 48, "block_size": 16, "bias": True, "vocab_size": 40, "dropout": 0.1}
IDS = torch.tensor([[5, 0, 30, 7, 7, 31, 12, 3, 24, 1], [8, 8, 2, 39, 6, 0, 1, 17, 25, 25]])


def state(bias: bool, tied: bool = True) -> dict[str, Tensor]:
    """The names and shapes of model.py, filled at random."""
    torch.manual_seed(0)
    d = 48
    shapes: dict[str, tuple[int, ...]] = {"transformer.wte.weight": (40, d), "transformer.wpe.weight": (16, d)}
    for block in (f"transformer.h.{layer}." for layer in range(3)):
        for name, (out, width) in {
            "attn.c_attn": (3 * d, d),
            "attn.c_proj": (d, d),
            "mlp.c_fc": (4 * d, d),
            "mlp.c_proj": (d, 4 * d),
        }.items():
            shapes[f"{block}{name}.weight"] = (out, width)
            shapes |= {f"{block}{name}.bias": (out,)} if bias else {}
    for name in (*(f"transformer.h.{layer}.ln_{n}" for layer in range(3) for n in (1, 2)), "transformer.ln_f"):
        shapes |= {f"{name}.weight": (d,), **({f"{name}.bias": (d,)} if bias else {})}
    made = {name: torch.randn(shape) * 0.3 for name, shape in shapes.items()}
    return made | {"lm_head.weight": made["transformer.wte.weight"] if tied else torch.randn(40, 48)}


def forward(w: dict[str, Tensor], ids: Tensor, gelu: Any) -> tuple[Tensor, list[Tensor]]:
    """nanoGPT's GPT.forward with its attention written out, and the attention of each layer."""

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w.get(f"{name}.bias"), 1e-5)

    batch, length = ids.shape
    causal, patterns = torch.ones(length, length, dtype=torch.bool).tril(), []
    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][:length]
    for h in (f"transformer.h.{layer}" for layer in range(3)):
        parts = linear(norm(x, f"{h}.ln_1"), f"{h}.attn.c_attn").split(48, dim=2)
        q, k, v = (part.view(batch, length, 3, 16).transpose(1, 2) for part in parts)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(16)
        patterns.append(scores.masked_fill(~causal, float("-inf")).softmax(-1))
        x = x + linear((patterns[-1] @ v).transpose(1, 2).reshape(batch, length, 48), f"{h}.attn.c_proj")
        x = x + linear(gelu(linear(norm(x, f"{h}.ln_2"), f"{h}.mlp.c_fc")), f"{h}.mlp.c_proj")
    return linear(norm(x, "transformer.ln_f"), "lm_head"), patterns


def opened(path: Path, heads: int | None = None) -> Checkpoint:
    checkpoint = load(path, config=None if heads is None else {"n_head": heads})
    assert checkpoint.report.ok, checkpoint.report
    return checkpoint


def assert_same(checkpoint: Checkpoint, logits: Tensor, patterns: list[Tensor]) -> None:
    trace = run(checkpoint.model, IDS)
    torch.testing.assert_close(trace["logits"], logits, atol=1e-4, rtol=0)
    torch.testing.assert_close(trace.stack("attn.pattern"), torch.stack(patterns), atol=1e-5, rtol=0)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("prefix", ["", "_orig_mod."])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_checkpoint_of_nanogpt_gives_its_logits(tmp_path: Path, bias: bool, prefix: str, zipped: bool) -> None:
    weights = state(bias)
    saved = {
        "model": {prefix + name: tensor for name, tensor in weights.items()},
        "model_args": ARGS | {"bias": bias},
        "optimizer": {"state": {0: {"exp_avg": torch.zeros(3)}}, "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.95)}]},
        "iter_num": 250,
        "best_val_loss": torch.tensor(1.5),
        "config": {"dataset": "shakespeare_char"},
    }
    torch.save(saved, tmp_path / "ckpt.pt", _use_new_zipfile_serialization=zipped)
    checkpoint = opened(tmp_path / "ckpt.pt")
    assert_same(checkpoint, *forward(weights, IDS, F.gelu))
    assert [row.name for row in checkpoint.report.rows if row.status != "loaded"] == [f"{prefix}lm_head.weight"]
    assert [row.name for row in checkpoint.report.rows_with("tied")] == [f"{prefix}lm_head.weight"]
    assert all(row.name.startswith(prefix) for row in checkpoint.report.rows)


def test_a_state_dict_of_mingpt_gives_its_logits_and_says_what_was_assumed(tmp_path: Path) -> None:
    weights = state(True, tied=False)
    masks = {f"transformer.h.{layer}.attn.bias": torch.ones(16, 16).tril().view(1, 1, 16, 16) for layer in range(3)}
    torch.save(weights | masks, tmp_path / "model.pt")
    checkpoint = opened(tmp_path / "model.pt")
    assert_same(checkpoint, *forward(weights, IDS, nn.GELU(approximate="tanh")))
    assert len(checkpoint.report.rows_with("dropped")) == 3
    (note,) = checkpoint.report.notes
    assert note.endswith("was read as GPT by its tensors, with n_head 3, activation gelu_new assumed.")
    assert opened(tmp_path / "model.pt", heads=6).config.attention.heads == 6


def test_names_of_mingpt_before_2022_are_read_too(tmp_path: Path) -> None:
    """`tok_emb`, `blocks.0.attn.key`, ...: the same model with queries, keys and values apart, and the exact GELU."""
    weights, old = state(True, tied=False), {}
    names = {
        "transformer.wte.weight": "tok_emb.weight",
        "transformer.h.": "blocks.",
        "transformer.ln_f": "ln_f",
        "lm_head": "head",
        ".ln_": ".ln",
        "c_proj": "proj",
        "mlp.c_fc": "mlp.0",
        "mlp.proj": "mlp.2",
    }
    for name, tensor in weights.items():
        if name == "transformer.wpe.weight":
            old["pos_emb"] = tensor[None]
        elif ".c_attn." in name:
            for part, third in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                old[name.replace("transformer.h.", "blocks.").replace("c_attn", part)] = third.clone()
        else:
            for new, was in names.items():
                name = name.replace(new, was) if new != ".ln_" or "ln_f" not in name else name
            old[name] = tensor
    old |= {f"blocks.{layer}.attn.mask": torch.ones(16, 16).tril().view(1, 1, 16, 16) for layer in range(3)}
    torch.save(old, tmp_path / "model.pt")
    checkpoint = opened(tmp_path / "model.pt")
    assert_same(checkpoint, *forward(weights, IDS, F.gelu))
    assert len(checkpoint.report.rows_with("dropped")) == 3
    assert checkpoint.family == "mingpt"


def test_a_model_without_biases_is_saved_and_opened_to_the_same_logits(tmp_path: Path) -> None:
    torch.save({"model": state(False), "model_args": ARGS | {"bias": False}}, tmp_path / "ckpt.pt")
    ours = opened(tmp_path / "ckpt.pt")
    ours.save(tmp_path / "saved")
    assert torch.equal(run(load(tmp_path / "saved").model, IDS)["logits"], run(ours.model, IDS)["logits"])


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return (exec, ("raise SystemExit('this must not run')",))


def test_a_file_that_would_run_code_is_refused(tmp_path: Path) -> None:
    torch.save({"model": state(True), "model_args": ARGS, "config": Harmful()}, tmp_path / "ckpt.pt")
    with pytest.raises(ValueError, match=r"ckpt\.pt must be a PyTorch file of tensors and nothing else"):
        load(tmp_path / "ckpt.pt")
    (tmp_path / "ckpt.pt").write_bytes(pickle.dumps(Harmful(), protocol=2))
    with pytest.raises(ValueError, match=r"ckpt\.pt must be a PyTorch file of tensors and nothing else"):
        load(tmp_path / "ckpt.pt")


@pytest.mark.parametrize("kept", [0, 1, 30, 1000, 20_000])
def test_a_file_that_was_cut_off_is_named(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "ckpt.pt"
    torch.save({"model": state(True), "model_args": ARGS}, path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"ckpt\.pt must be a PyTorch file of tensors and nothing else"):
        load(path)


def test_a_compressed_file_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    torch.save({"model": {"a": torch.zeros(10**6)}, "model_args": ARGS}, tmp_path / "good.pt")
    with zipfile.ZipFile(tmp_path / "good.pt") as good, zipfile.ZipFile(tmp_path / "ckpt.pt", "w") as bomb:
        for entry in good.infolist():
            bomb.writestr(entry.filename, good.read(entry), zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match=r"ckpt\.pt must be a PyTorch file of tensors and nothing else"):
        load(tmp_path / "ckpt.pt")


@pytest.mark.parametrize(
    ("saved", "wrong"),
    [
        ({"model": {}, "model_args": ARGS}, "table of names and tensors"),
        ({"model": {"a": 3}, "model_args": ARGS}, "table of names and tensors"),
        ({"model": state(True), "model_args": ARGS | {"n_head": "3"}}, "n_head must be a whole number .*, got '3'"),
        ({"model": state(True), "model_args": ARGS | {"bias": []}}, r"bias must be true or false, got \[\]"),
        ({"model": state(True), "model_args": {}}, "n_layer must be a whole number .* and is not there"),
        ({"model": state(True), "model_args": ARGS | {"n_layer": 10**9}}, "1 to 1000 layers"),
        ({"model": {"a": torch.zeros(1).expand(10**12)}, "model_args": ARGS}, "stored whole"),
        ({"transformer.wte.weight": torch.zeros(4, 4)}, "no config.json"),
        ({"a": torch.zeros(4, 4)}, r"has no config.json .* their names \(a, ...\) are those of no family"),
        ([1, 2], "table of names and tensors"),
    ],
)
def test_what_a_file_lacks_is_said_in_one_sentence(tmp_path: Path, saved: Any, wrong: str) -> None:
    torch.save(saved, tmp_path / "ckpt.pt")
    with pytest.raises(ValueError, match=rf"ckpt\.pt\b.*{wrong}"):
        load(tmp_path / "ckpt.pt")


def test_sizes_that_are_not_those_of_the_tensors_are_refused(tmp_path: Path) -> None:
    torch.save({"model": state(True), "model_args": ARGS | {"n_embd": 24}}, tmp_path / "ckpt.pt")
    with pytest.raises(ValueError, match="must have shape"):
        opened(tmp_path / "ckpt.pt")
