"""A tuned lens in the form of the package tuned-lens: read as it reads it, and refused where it is damaged."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from engine import load, run
from engine.analysis import lenses
from engine.analysis.lenses import (
    compare_published,
    learning_of,
    make_lens,
    measure_lens,
    no_translators,
    tune_lens,
)
from engine.analysis.logit_lens import lens_logits
from engine.analysis.published_lens import compare_translators, read_tuned_lens
from engine.inputs.samples import samples
from tests.engine import tiny
from tests.engine.tiny import IDS, config

MODEL = tiny.model(config("rotary"))
LAYERS, WIDTH = MODEL.config.layers, MODEL.config.d_model


def translators(layers: int = LAYERS, width: int = WIDTH, bias: bool = True) -> nn.ModuleList:
    torch.manual_seed(3)
    return nn.ModuleList(nn.Linear(width, width, bias) for _ in range(layers))


def written(folder: Path, layers: nn.ModuleList, **said: Any) -> Path:
    """The two files as tuned-lens saves them."""
    first = layers[0]
    about = {"d_model": first.in_features, "num_hidden_layers": len(layers), "bias": first.bias is not None}
    whole = {"base_model_name_or_path": "org/base", "unembed_hash": "0" * 64, "lens_type": "linear_tuned_lens"}
    (folder / "config.json").write_text(json.dumps({**whole, **about, **said}))
    torch.save(layers.state_dict(), folder / "params.pt")
    return folder


@pytest.mark.parametrize(("bias", "dtype"), [(True, torch.float32), (False, torch.float16)])
def test_a_layer_says_what_its_translator_makes_of_the_stream(tmp_path: Path, bias: bool, dtype: torch.dtype) -> None:
    layers = translators(bias=bias).to(dtype)
    lens = read_tuned_lens(written(tmp_path, layers), MODEL)
    assert lens.base == "org/base"
    trace = run(MODEL, IDS)
    for layer, translator in enumerate(layers.float()):
        stream = trace[f"blocks.{layer}.resid_pre"]
        wanted = MODEL.heads(MODEL.final_norm(stream + translator(stream)), None, slice(None), None)[0]
        torch.testing.assert_close(lens_logits(MODEL, trace, layer, made=lens), wanted[0])


def test_a_lens_learned_here_and_published_is_read_as_it_was_and_compared_layer_by_layer(tmp_path: Path) -> None:
    checkpoint = load("induction")
    *_, (ours, _) = tune_lens(checkpoint.model, list(samples(checkpoint, 4, 16)), 8)
    layers = translators(*ours.bias.shape)
    for layer, linear in enumerate(layers):
        linear.load_state_dict({"weight": ours.matrix[layer], "bias": ours.bias[layer]})
    read = read_tuned_lens(written(tmp_path, layers), checkpoint.model)
    assert torch.equal(read.matrix, ours.matrix) and torch.equal(read.bias, ours.bias)
    torch.testing.assert_close(compare_translators(ours, read), torch.ones(len(layers)))
    assert not compare_translators(ours, no_translators(checkpoint.model)).any()


def test_a_lens_beside_the_weights_is_that_of_the_checkpoint_and_is_compared_once_ours_is_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lenses, "STEPS", 8)
    load("induction").save(tmp_path)
    checkpoint = load(tmp_path)
    with pytest.raises(ValueError, match=r"has no published lens; put config\.json and params\.pt"):
        make_lens(checkpoint, "published")
    (tmp_path / "tuned_lens").mkdir()
    layers = translators(checkpoint.config.layers, checkpoint.config.d_model)
    written(tmp_path / "tuned_lens", layers)
    theirs = make_lens(checkpoint, "published")
    assert theirs is not None and torch.equal(theirs.matrix[1], layers[1].weight) and theirs.base == "org/base"
    assert not torch.equal(measure_lens(checkpoint, "published"), measure_lens(checkpoint, "logit"))
    assert compare_published(checkpoint) is None
    ours = learning_of(checkpoint, "tuned").reach()
    found = compare_published(checkpoint)
    assert found is not None and torch.equal(found, compare_translators(ours, theirs)) and found.abs().max() < 0.5


def changed(change: Callable[[dict[str, Tensor]], object]) -> Callable[[Path], object]:
    def damage(folder: Path) -> None:
        state = dict(translators().state_dict())
        change(state)
        torch.save(state, folder / "params.pt")

    return damage


DAMAGED: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / "params.pt").unlink(), r"lacks params\.pt"),
    (lambda folder: written(folder, translators(LAYERS + 1)), "num_hidden_layers of"),
    (lambda folder: written(folder, translators(width=WIDTH + 1)), "d_model of"),
    (lambda folder: written(folder, translators(), lens_type="other"), "lens_type of 'linear_tuned_lens'"),
    (lambda folder: written(folder, translators(), bias=False), r"'0\.bias' is there"),
    (changed(lambda state: state.pop("1.weight")), r"'1\.weight' is missing"),
    (
        changed(lambda state: state.update({"0.bias": torch.zeros(WIDTH + 1)})),
        rf"finite numbers of shape \[{WIDTH}\], got \[{WIDTH + 1}\]",
    ),
    (changed(lambda state: state["1.weight"].fill_(torch.nan)), "finite numbers"),
    (lambda folder: torch.save({"0.weight": print}, folder / "params.pt"), r"would call 'builtins\.print'|__builtin__"),
    (lambda folder: (folder / "params.pt").write_bytes(b"x" * 99), "PyTorch file"),
]


def test_what_is_no_lens_of_the_model_is_one_sentence(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for damage, wrong in DAMAGED:
        damage(written(tmp_path, translators()))
        with subtests.test(wrong), pytest.raises(ValueError, match=rf"^[^\n]* must [^\n]*({wrong})[^\n]*\.$"):
            read_tuned_lens(tmp_path, MODEL)
