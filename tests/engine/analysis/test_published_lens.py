"""Lenses in the forms of the packages tuned-lens and jacobian-lens: read as those do, or refused in a sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.utils import close_session
from torch import Tensor, nn

from engine import load, run
from engine.analysis import lenses
from engine.analysis.lenses import (
    compare_published,
    give_lens,
    learning_of,
    make_lens,
    measure_lens,
    no_translators,
    tune_lens,
)
from engine.analysis.logit_lens import lens_logits
from engine.analysis.published_lens import compare_translators, fetch_lens, read_jacobian_lens, read_tuned_lens
from engine.inputs.samples import samples
from tests.engine import tiny
from tests.engine.checkpoints.hub_server import Repo, serving
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


def jacobians(file: Path, blocks: range = range(LAYERS), width: int = WIDTH, **said: Any) -> Path:
    """The file as jacobian-lens saves it."""
    torch.manual_seed(4)
    made = {block: torch.randn(width, width).half() for block in blocks}
    torch.save({"J": made, "n_prompts": 9, "source_layers": list(blocks), "d_model": width, **said}, file)
    return file


def test_a_jacobian_lens_reads_what_is_behind_a_block_and_leaves_the_embedding(tmp_path: Path) -> None:
    file = jacobians(tmp_path / "lens.pt")
    lens, trace = read_jacobian_lens(file, MODEL), run(MODEL, IDS)
    assert (lens.kind, lens.texts, lens.missing) == ("Jacobian", 9, (0,))
    stored = torch.load(file)["J"]
    for layer in range(LAYERS):
        stream = trace[f"blocks.{layer}.resid_pre"]
        read = stream if layer == 0 else stream @ stored[layer - 1].float().mT
        wanted = MODEL.heads(MODEL.final_norm(read), None, slice(None), None)[0]
        torch.testing.assert_close(lens_logits(MODEL, trace, layer, made=lens), wanted[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(compare_translators(lens, lens), torch.ones(LAYERS))
    for wrong, damaged in (
        (r"J of block 0 .* of shape \[16, 16\], got \[17, 17\]", jacobians(tmp_path / "wide.pt", width=WIDTH + 1)),
        (f"blocks 0 to {LAYERS - 1}, got {LAYERS}", jacobians(tmp_path / "deep.pt", range(LAYERS + 1))),
        ("must hold J", jacobians(tmp_path / "other.pt", J={"a": 1})),
    ):
        with pytest.raises(ValueError, match=wrong):
            read_jacobian_lens(damaged, MODEL)


def test_the_lens_of_a_model_is_found_in_a_repository_of_many_and_is_its_published_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = load("induction")
    layers, width = checkpoint.config.layers, checkpoint.config.d_model
    lens = jacobians(tmp_path / "lens.pt", range(layers - 1), width).read_bytes()
    tuned = tmp_path / "tuned"
    tuned.mkdir()
    written(tuned, translators(layers, width))
    names = ("induction/jlens/induction_jacobian_lens_n9.pt", "induction-2/jlens/induction-2_jacobian_lens.pt")
    for variable in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as fresh:
        hub = fresh()
        monkeypatch.setenv("HF_ENDPOINT", hub.address + "/")
        hub.repos["lenses/many"] = Repo(dict.fromkeys(names, lens))
        hub.repos["lenses/tuned"] = Repo({f"lens/induction/{p.name}": p.read_bytes() for p in tuned.iterdir()})
        hub.repos["lenses/two"] = Repo(dict.fromkeys((names[0], "induction/other.pt"), lens))
        place = fetch_lens("hub:lenses/many", checkpoint.name)
        give_lens(checkpoint, place, "hub:lenses/many")
        found = make_lens(checkpoint, "published")
        assert found is not None and (found.kind, found.base) == ("Jacobian", "hub:lenses/many")
        assert compare_published(checkpoint) is None
        ours = learning_of(checkpoint, "Jacobian").reach()
        assert compare_published(checkpoint).tolist() == compare_translators(ours, found).tolist()  # type: ignore[union-attr]
        give_lens(checkpoint, fetch_lens("hub:lenses/tuned", checkpoint.name), "hub:lenses/tuned")
        again = make_lens(checkpoint, "published")
        assert again is not None and (again.kind, again.base) == ("tuned", "hub:lenses/tuned")
        with pytest.raises(
            ValueError, match=r"one lens of 'induction' .*, got induction/jlens/.*, induction/other\.pt; "
        ):
            fetch_lens("hub:lenses/two", checkpoint.name)
        assert fetch_lens("hub:lenses/two induction/other.pt", checkpoint.name).name == "other.pt"
        close_session()
