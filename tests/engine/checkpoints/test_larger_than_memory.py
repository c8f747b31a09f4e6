"""A checkpoint that does not fit the memory: its weights stay a map of their file, and give what converted ones do."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.analysis.lenses import jacobian_lens
from engine.analysis.logit_lens import logit_lens
from engine.analysis.parity import parity
from engine.checkpoints import Checkpoint, assemble, load
from engine.checkpoints.assemble import build_without_memory, expected_shapes
from engine.checkpoints.families import FAMILIES
from engine.edits import Replace, Scale, SilenceHeads
from engine.generation.generate import generate
from engine.inputs.readers import Reading
from engine.model import stored
from engine.model.stored import StoredTensor
from engine.runtime.library import weight
from engine.runtime.run import run
from tests.engine.checkpoints.against import IDS, TARGET
from tests.engine.checkpoints.test_dtype import MODELS, SIZES, stirred

STATUS = Path("/proc/self/status")
GEMMA = {**SIZES, "num_key_value_heads": 2, "head_dim": 16}
OPENED: dict[str, Any] = {
    **MODELS,
    "gemma": lambda: transformers.GemmaForCausalLM(transformers.GemmaConfig(**GEMMA)),
    "roberta": lambda: transformers.RobertaForMaskedLM(transformers.RobertaConfig(**SIZES)),
}
PICTURES = torch.randn(2, 3, 24, 24, generator=torch.Generator().manual_seed(0))
LARGE = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 8000, "num_hidden_layers": 16,
    "hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 4,
    "rms_norm_eps": 1e-5, "hidden_act": "silu", "max_position_embeddings": 512, "tie_word_embeddings": False,
}  # fmt: skip

# The most of its own memory that a process takes more while it opens a folder and runs 32 tokens, and the time it says.
PEAK = """
import sys, torch
from pathlib import Path
from threading import Event, Thread
from engine import load, run
from engine.checkpoints import assemble

def own():
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))

over, peak = Event(), 0
def watch():
    global peak
    while not over.wait(0.002):
        peak = max(peak, own())

torch.set_num_threads(1)
run(load("stories").model, [1, 2])  # what is imported and allocated once for all
before = own()
watcher = Thread(target=watch)
watcher.start()
assemble.available_memory = lambda: int(sys.argv[2])
model = load(sys.argv[1]).model
trace = run(model, list(range(32)))
over.set()
watcher.join()
assert trace["logits"].isfinite().all() and trace["logits"].std() > 0
print(peak - before - trace.bytes)
"""


def open_both(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Checkpoint, Checkpoint]:
    """A checkpoint in bfloat16, opened as converted weights and as a map."""
    stirred(OPENED[name]()).to(torch.bfloat16).save_pretrained(folder)
    converted = load(folder)
    return converted, open_as_map(folder, converted, monkeypatch)


def open_as_map(folder: Path, converted: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    """The checkpoint where a byte less is free than its weights take in float32."""
    room = 4 * sum(parameter.numel() for parameter in converted.model.parameters()) - 1
    with monkeypatch.context() as patch:
        patch.setattr(assemble, "available_memory", lambda: room)
        return load(folder)


def inputs(name: str) -> dict[str, Tensor]:
    return {"encoding": PICTURES if name == "vit" else IDS, **({"target": TARGET} if name == "t5" else {})}


def assert_same(ours: Any, theirs: Any) -> None:
    assert list(ours) == list(theirs)
    assert not [hook for hook in ours if not torch.equal(ours[hook], theirs[hook])]
    assert not any(isinstance(ours[hook], StoredTensor) for hook in ours)


@pytest.mark.parametrize("name", OPENED)
def test_every_value_of_a_run_is_that_of_converted_weights(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted, mapped = open_both(name, tmp_path, monkeypatch)
    assert mapped.model.dtype == torch.float32
    assert weight(mapped) < weight(converted) / (4 if name == "gpt_neox" else 100)  # it has q, k, v head by head
    assert {type(parameter) for parameter in converted.model.parameters()} == {torch.nn.Parameter}
    edits = [Scale("*.mlp.out" if name != "t5" else "decoder.*.mlp.out", 3.0)]
    plain = [run(one.model, **inputs(name)) for one in (mapped, converted)]
    assert_same(*plain)
    assert_same(*(run(one.model, **inputs(name), edits=edits) for one in (mapped, converted)))
    monkeypatch.setattr(stored, "LARGE", 1)  # bytes: each is converted into pages of its own
    with torch.inference_mode():
        assert_same(run(mapped.model, **inputs(name)), plain[1])


@pytest.mark.parametrize("name", OPENED)
def test_what_is_saved_is_what_was_opened(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converted, mapped = open_both(name, tmp_path / "opened", monkeypatch)
    converted.save(tmp_path / "wide")
    mapped.save(tmp_path / "saved")
    before, wide, after = (load_file(tmp_path / at / "model.safetensors") for at in ("opened", "wide", "saved"))
    assert before.keys() == after.keys() == wide.keys()
    assert not [key for key in wide if not torch.equal(wide[key], after[key].float())]
    differing = [key for key in before if before[key].dtype != after[key].dtype]
    assert all("norm" in key for key in differing) and (not differing or name == "gemma")  # it has 1 less in its file
    assert json.loads((tmp_path / "saved" / "config.json").read_text())["dtype"] == "bfloat16"


def test_writing_lenses_and_edited_heads_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converted, mapped = open_both("llama", tmp_path, monkeypatch)

    def write(one: Checkpoint) -> list[int]:
        return [step.id for step in generate(one, [5, 0, 30], max_tokens=12, seed=3, stop_at_end=False)]

    def learn(one: Checkpoint) -> list[Tensor]:
        return [found.matrix for found in jacobian_lens(one.model, [Reading(IDS)], places=2)]

    assert write(mapped) == write(converted)
    for ours, theirs in zip(learn(mapped), learn(converted), strict=True):
        assert torch.equal(ours, theirs)
    edits = [SilenceHeads(1, [0, 2]), Replace("blocks.0.attn.out", 0.5)]
    ours, theirs = (run(one.model, IDS, ["*", "*.head_out"], edits) for one in (mapped, converted))
    assert_same(ours, theirs)
    first, second = (logit_lens(one.model, run(one.model, IDS)) for one in (mapped, converted))
    assert repr(first) == repr(second)


def test_threads_share_it_and_nothing_is_written_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    converted, mapped = open_both("gpt2", tmp_path, monkeypatch)
    expected = run(converted.model, IDS)
    with ThreadPoolExecutor(4) as pool:
        for trace in pool.map(lambda _: run(mapped.model, IDS), range(16)):
            assert_same(trace, expected)
    table, own = mapped.model.embed.tokens.weight, converted.model.embed.tokens.weight
    with pytest.raises(RuntimeError, match="a weight that stays in its file must not be written to; open"):
        table.mul_(2.0)
    np.testing.assert_array_equal(np.asarray(table[3]), own[3].numpy())
    assert table.mT[:2].tolist() == own.mT[:2].tolist()
    assert torch.equal(table.to(torch.bfloat16), own.to(torch.bfloat16))
    assert torch.equal(table.view(torch.int32), own.view(torch.int32))
    taken = copy.deepcopy(mapped.model)
    with torch.no_grad():
        taken.embed.tokens.weight.mul_(2.0)
    assert torch.equal(taken.embed.tokens.weight, 2 * own) and torch.equal(table[:], own)


def test_transformers_which_would_hold_it_in_memory_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped = open_both("llama", tmp_path, monkeypatch)[1]
    with pytest.raises(ValueError, match="transformers must hold all weights in memory, and those of this model stay"):
        parity(mapped, tmp_path, Reading(IDS))


def test_the_report_says_that_it_stays_in_its_file_and_how_long_a_pass_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted, mapped = open_both("llama", tmp_path, monkeypatch)
    numbers = sum(parameter.numel() for parameter in converted.model.parameters())
    (note,) = mapped.report.notes
    assert not converted.report.notes
    size, free = f"{2 * numbers / 1e6:.1f} MB in bfloat16", f"{4 * numbers / 1e6:.1f} MB"
    assert note.startswith(f"Its weights stay in their file, {size}, and each is read where a layer computes with it")
    assert f"in memory they would take {free}, and {free} are free." in note
    assert "A forward pass of 32 tokens is expected to take some 1 second on the CPU: 0.0 s to read them" in note
    assert f"{64 * numbers:.1e} operations" in note


def test_a_float32_file_that_does_not_fit_stays_a_map(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stirred(OPENED["llama"]()).save_pretrained(tmp_path)
    converted = load(tmp_path)
    mapped = open_as_map(tmp_path, converted, monkeypatch)
    assert_same(run(mapped.model, IDS), run(converted.model, IDS))
    assert weight(mapped) == 0


@pytest.mark.skipif(not STATUS.exists(), reason="what a process has in memory is read from Linux's /proc")
def test_the_memory_is_that_of_one_matrix(tmp_path: Path) -> None:
    """390 MB in bfloat16, 790 MB in float32: a sixth of that is more than enough."""
    family = next(one for one in FAMILIES["llama"] if one.architecture == "LlamaForCausalLM")
    shapes = expected_shapes(family, build_without_memory(family.read_config(LARGE)))
    drawn = torch.empty(8000 * 1024).normal_(std=0.02, generator=torch.Generator().manual_seed(0)).bfloat16()
    tensors = {name: drawn[: torch.Size(shape).numel()].clone().view(shape) for name, shape in shapes.items()}
    whole = 4 * sum(tensor.numel() for tensor in tensors.values())
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    (tmp_path / "config.json").write_text(json.dumps(LARGE))
    command = [sys.executable, "-c", PEAK, str(tmp_path), str(whole // 2)]
    child = subprocess.run(command, capture_output=True, text=True, check=True)
    assert whole > 7e8
    assert 4 * 2816 * 1024 < int(child.stdout) < whole / 6
