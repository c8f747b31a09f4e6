"""A model computed on another device: what comes back, what meets there, and what follows where memory is used up."""

from collections.abc import Iterator

import pytest
import torch

from engine import generate, load, run
from engine.analysis.pseudo import pseudo_surprise
from engine.analysis.surprise import surprise
from engine.checkpoints import Checkpoint
from engine.edits import Scale, SilenceHeads
from engine.generation.beam import beam
from engine.generation.prompt import begin
from engine.model.layers.cache import KVCache
from engine.model.layers.mlp import MLP
from engine.model.twin import Twin, twins
from engine.runtime import device
from engine.runtime.device import DeviceMemory, choose
from tests.engine import tiny
from tests.second_device import SecondTwin, on_second_device

GB = 10**9
CARDS = [DeviceMemory(torch.device("cuda", 0), 8 * GB), DeviceMemory(torch.device("cuda", 1), 20 * GB)]


@pytest.fixture(autouse=True)
def no_twins() -> Iterator[None]:
    yield
    twins.clear()


def test_the_roomiest_card_is_chosen_and_the_cpu_where_none_has_room() -> None:
    assert str(choose("auto", 9 * GB, CARDS).device) == "cuda:1"
    assert str(choose("cuda:0", 7 * GB, CARDS).device) == "cuda:0"
    for asked, cards in (("cpu", CARDS), ("auto", [])):
        assert choose(asked, 1, cards) == device.DeviceChoice(torch.device("cpu"))
    small = choose("cuda:0", 9 * GB, CARDS)
    assert str(small.device) == "cpu" and "needs 9.0 GB" in small.why and "cuda:0 has 8.0 GB free" in small.why
    assert "sees none such" in choose("cuda:7", 1, CARDS).why
    with pytest.raises(SystemExit, match="device must be auto, cpu, cuda or cuda:N, got 'gpu'"):
        choose("gpu", 1, CARDS)


def test_what_is_opened_is_reckoned_and_says_why_it_is_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "list_cards", lambda: [DeviceMemory(torch.device("cuda", 0), 10**8)])
    small = load("bilingual")
    assert device.stored_dtype(small) == torch.float16 and device.stored_dtype(load("stories")) == torch.float32
    weights = sum(parameter.numel() for parameter in small.model.parameters()) * 2
    assert weights < device.reckon(small, torch.float16) - device.WORKSPACE < device.reckon(small, torch.float32)
    assert "cuda:0 has 0.1 GB free" in device.place(small, "auto").report.notes[-1]
    assert small.model not in twins


def test_the_second_device_gives_what_the_cpu_gives() -> None:
    """Each of its operations fails where a tensor of the CPU meets one of the device."""
    models = [tiny.model(tiny.config(positions)) for positions in ("rotary", "alibi")]
    edits = [SilenceHeads(1, [0]), Scale("blocks.2.mlp.out", 3.0)]
    for model in models:
        plain, changed = run(model, tiny.IDS), run(model, tiny.IDS, edits=edits)
        rows = run(model, [tiny.IDS, tiny.IDS[:3]])
        twins[model] = SecondTwin(model)
        there = run(model, tiny.IDS)
        continued = run(model, tiny.IDS, edits=edits, base=there)
        assert continued.start == 1 and there.bytes == plain.bytes
        for one, other in ((plain, there), (changed, continued), (rows, run(model, [tiny.IDS, tiny.IDS[:3]]))):
            for name in one:
                assert type(other[name]) is torch.Tensor and torch.equal(one[name], other[name]), name


def measure(checkpoint: Checkpoint, text: str) -> list[object]:
    found: list[object] = []
    if checkpoint.config.generates:
        found += [[step.id for step in generate(checkpoint, text, 6, seed=1)]]
        found += [[step.id for step in generate(checkpoint, text, 4, edits=[Scale("*blocks.0.mlp.out", 0.5)], seed=1)]]
        found += [[one.ids for one in beam(checkpoint, text, 2, 4).hypotheses]]
        prompt = begin(checkpoint, text, text if checkpoint.config.encoder else None)
        found += [surprise(checkpoint, prompt.ids, prompt.source).ranks.tolist()]
    else:
        found += [pseudo_surprise(checkpoint, checkpoint.tokenizer.encode(text).ids).ranks.tolist()]
    return found


@pytest.mark.parametrize("name", ["stories", "translate-en-fr", "tales-bert"])
def test_writing_and_surprise_on_the_second_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KVCache, "reorder", on_second_device(KVCache.reorder))
    checkpoint = load(name)
    text = "The cat is here."
    plain = measure(checkpoint, text)
    twins[checkpoint.model] = SecondTwin(checkpoint.model)
    assert measure(checkpoint, text) == plain


def test_half_precision_comes_back_as_float32() -> None:
    model = tiny.model(tiny.config("rotary"))
    plain = run(model, tiny.IDS)
    twins[model] = SecondTwin(model, torch.bfloat16)
    there = run(model, tiny.IDS)
    assert {value.dtype for value in there.values()} == {torch.float32, torch.bool}
    near = torch.cosine_similarity(there["logits"].flatten(), plain["logits"].flatten(), dim=0)
    assert not torch.equal(there["logits"], plain["logits"]) and near > 0.99


def test_used_up_memory_is_told_once_a_run_which_the_cpu_does(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = load("translate-en-fr")
    plain = [step.logits for step in generate(checkpoint, "The cat is here.", 4, greedy=True)]
    twin = twins[checkpoint.model] = SecondTwin(checkpoint.model)
    calls, forward = [0], MLP.forward

    def fail_in_the_second_text(self: MLP, x: torch.Tensor) -> torch.Tensor:
        calls[0] += x.device == twin.device
        if x.device == twin.device and calls[0] > 8:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(self, x)

    monkeypatch.setattr(MLP, "forward", fail_in_the_second_text)
    again = [step.logits for step in generate(checkpoint, "The cat is here.", 4, greedy=True)]
    assert calls[0] > 8 and len(twin.told) == 1 and "computed on the CPU" in twin.told[0]
    for one, other in zip(plain, again, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    trace = run(checkpoint.model, [1, 2, 3])
    assert len(twin.told) == 2 and trace["logits"].device.type == "cpu"


def test_copies_and_gradients_are_the_models_own() -> None:
    model = tiny.model()
    twin = twins[model] = SecondTwin(model)
    assert isinstance(twin, Twin) and twin.model.hooks is model.hooks
    seen = []
    hook = model.blocks[0].register_forward_hook(lambda *given: seen.append(given))
    with torch.enable_grad():
        model(torch.tensor([tiny.IDS]))
    hook.remove()
    assert len(seen) == 1
