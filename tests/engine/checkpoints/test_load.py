import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine import load
from engine.checkpoints import Checkpoint, IncompleteWeights, locate, save_weights, shipped_names
from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.families import FAMILIES
from engine.checkpoints.load import count_unnamed
from engine.generation.generate import generate
from engine.runtime.run import run
from engine.tokenizers.kinds.word import train
from tests.engine import tiny

CAPP = Path(__file__).parents[4] / "shared" / "real" / "capp-gpt2"
PART = (
    "geometry_prismatic holes_normal external_threads_yes surface_finish_normal tolerance_medium batch_size_small <SOS>"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small GPT-2 with a tokenizer, as `save` writes it."""
    tokenizer = train(["the cat sat on the mat"])
    model = tiny.model(tiny.config(vocab_size=tokenizer.vocab_size))
    Checkpoint(model, tokenizer, {"title": "A cat"}, name="cat").save(tmp_path / "cat")
    return tmp_path / "cat"


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def configure(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not ...}))


def test_what_was_saved_is_loaded_whole(folder: Path) -> None:
    checkpoint = load(folder)
    assert checkpoint.name == "cat"
    assert checkpoint.card == {"title": "A cat"}
    assert checkpoint.tokenizer is not None
    assert checkpoint.tokenizer.decode(checkpoint.tokenizer.encode("the cat").ids) == "the cat"
    assert checkpoint.end_ids == (checkpoint.tokenizer.end_id,)
    expected = tiny.model(checkpoint.config)
    assert all(torch.equal(t, expected.state_dict()[n]) for n, t in checkpoint.model.state_dict().items())


def test_a_loaded_model_is_for_looking_at(folder: Path) -> None:
    model = load(folder).model
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert not any(parameter.is_meta for parameter in model.parameters())


def test_nothing_done_to_a_model_reaches_its_file_or_another_load(folder: Path) -> None:
    before = (folder / "model.safetensors").read_bytes()
    for parameter in load(folder).model.parameters():
        parameter.fill_(3.0)
    assert (folder / "model.safetensors").read_bytes() == before


def test_one_weights_file_of_a_folder_is_enough(folder: Path) -> None:
    checkpoint = load(folder / "model.safetensors")
    assert checkpoint.tokenizer is not None
    assert torch.equal(run(checkpoint.model, [1, 2])["logits"], run(load(folder).model, [1, 2])["logits"])


@pytest.mark.parametrize(
    ("config", "written"),
    [
        (tiny.CONFIG, "gpt2"),
        (tiny.config(tied=False, dropout=0.2), "gpt2"),
        (tiny.config(mlp=tiny.MLP(20, activation="gelu")), "gpt2"),
        (tiny.config(mlp=None), "loupe"),
        (tiny.config("rotary"), "gpt_neox"),
        (tiny.config("alibi", attention={"kv_heads": 2}), "loupe"),
        (tiny.config(norm=tiny.Norm("rms")), "loupe"),
        (tiny.config(norm=tiny.Norm(place="after")), "opt"),
        (tiny.config(residual=False), "loupe"),
        (tiny.config(attention={"window": 3}), "loupe"),
        (tiny.config(attention={"bias": False}), "loupe"),
        (tiny.config(attention={"d_head": 6}), "loupe"),
        (tiny.config(mlp=tiny.MLP(20, gated=True)), "loupe"),
        (tiny.config("learned", layers=0), "gpt2"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_model_survives_saving_in_a_published_format_where_one_expresses_it(
    config, written: str, tmp_path: Path
) -> None:
    model = tiny.model(config)
    Checkpoint(model).save(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == written
    again = load(tmp_path)
    assert canonical_config(again.config) == canonical_config(config)
    assert again.report.ok
    assert all(torch.equal(t, model.state_dict()[n]) for n, t in again.model.state_dict().items())


def test_a_snapshot_of_a_run_describes_itself_and_finds_the_runs_tokenizer(folder: Path, tmp_path: Path) -> None:
    run_folder = tmp_path / "run"
    for name in ("snapshots", "latest"):
        (run_folder / name).mkdir(parents=True)
    model = tiny.model(tiny.config("rotary", mlp=None, vocab_size=7))
    train(["the cat sat on the mat"]).save(run_folder)
    snapshot = run_folder / "snapshots" / "step-0000120.safetensors"
    save_weights(model, snapshot)
    save_weights(model, run_folder / "latest" / "model.safetensors")
    for path in (snapshot, run_folder / "latest", run_folder):
        checkpoint = load(path)
        assert checkpoint.config == model.config
        assert checkpoint.tokenizer is not None
        assert torch.equal(run(checkpoint.model, [1, 2])["logits"], run(model, [1, 2])["logits"])
    assert load(snapshot).name == "step-0000120"
    assert load(run_folder).name == "run"


def test_saving_over_a_checkpoint_replaces_it_and_leaves_nothing_else(folder: Path) -> None:
    other = tiny.model(tiny.config("alibi"))
    Checkpoint(other, name="other").save(folder)
    assert load(folder).config == other.config
    assert [path.name for path in folder.parent.iterdir()] == ["cat"]


def test_a_shipped_name_is_a_folder_of_assets(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(locate, "SHIPPED", folder.parent)
    assert shipped_names() == ["cat"]
    assert load("cat").name == "cat"
    with pytest.raises(FileNotFoundError, match=r"'dog' is no folder, .* shipped checkpoint \(those are: cat\)"):
        load("dog")
    with pytest.raises(FileNotFoundError):
        load("../cat/../cat/nothing")


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_checkpoint_loads_whole(name: str) -> None:
    checkpoint = load(name)
    assert checkpoint.report.ok
    assert checkpoint.card
    if checkpoint.tokenizer is None:
        assert checkpoint.processor is not None
    else:
        assert checkpoint.tokenizer.vocab_size <= checkpoint.config.vocab_size


def test_a_folder_without_weights_says_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(FileNotFoundError, match=r"must hold one of model.safetensors, .* holds notes.txt"):
        load(tmp_path)


def test_corrections_count_before_config_json_and_are_noted(folder: Path) -> None:
    checkpoint = load(folder, config={"n_head": 2, "n_embd": 16})
    assert checkpoint.config.attention.heads == 2
    assert checkpoint.report.notes == ("config.json's n_head, 4, was given as 2.",)
    with pytest.raises(ValueError, match="d_model 16 cannot be split into 3 heads; try 2 or 4"):
        load(folder, config={"n_head": 3})


def test_a_file_that_describes_itself_takes_no_corrections(tmp_path: Path) -> None:
    save_weights(tiny.model(tiny.CONFIG), tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="model.safetensors says itself what model it is; n_head cannot be given"):
        load(tmp_path, config={"n_head": 2})


def test_a_checkpoint_knows_its_family_and_its_files(folder: Path) -> None:
    checkpoint = load(folder)
    assert checkpoint.family == "gpt2"
    assert checkpoint.source == folder
    assert checkpoint.files == (folder / "model.safetensors",)
    assert Checkpoint(checkpoint.model).source is None


Q = "transformer.h.1.attn.c_attn.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.update({Q: t[Q][:, :-3].clone()}),
            rf"{Q} in model.safetensors must have shape \(16, 48\) by config.json, got \(16, 45\)",
        ),
        (
            lambda t: t.update({Q: t[Q].T.contiguous()}),
            rf"{Q} in model.safetensors must have shape \(16, 48\) by config.json, got \(48, 16\)",
        ),
        (lambda t: t[Q].fill_(float("nan")), f"{Q} in model.safetensors must hold finite numbers"),
        (
            lambda t: t[Q][0].fill_(float("inf")),
            f"{Q} in model.safetensors must hold finite numbers",
        ),
        (
            lambda t: t.update({Q: t[Q].to(torch.int8)}),
            f"{Q} in model.safetensors must be one of .*, got int8",
        ),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(change, message: str, folder: Path) -> None:
    rewrite(folder, change)
    with pytest.raises(ValueError, match=message):
        load(folder)


def test_large_numbers_are_not_taken_for_infinite_ones(folder: Path) -> None:
    rewrite(folder, lambda t: t[Q].fill_(3e38))
    assert load(folder).model.blocks[1].attn.q.weight.max() == pytest.approx(3e38)


def test_missing_tensors_are_named_and_accounted_for(folder: Path) -> None:
    rewrite(folder, lambda t: [t.pop(Q), t.pop("transformer.ln_f.bias")])
    with pytest.raises(IncompleteWeights, match=f"must hold {Q} and 1 more that are not there") as raised:
        load(folder)
    assert [row.name for row in raised.value.report.rows_with("missing")] == [Q, "transformer.ln_f.bias"]
    assert raised.value.report.rows_with("missing")[0].shape == (16, 48)


def test_unexpected_tensors_are_reported_and_left_out(folder: Path) -> None:
    plain = run(load(folder).model, [1, 2])["logits"]
    rewrite(
        folder, lambda t: t.update({"score.weight": torch.ones(2, 16), "transformer.h.9.ln_1.bias": torch.ones(16)})
    )
    checkpoint = load(folder)
    assert not checkpoint.report.ok
    unexpected = {row.name for row in checkpoint.report.rows_with("unexpected")}
    assert unexpected == {"score.weight", "transformer.h.9.ln_1.bias"}
    assert "2 tensors have no place in a gpt2 model, left out" in str(checkpoint.report)
    assert torch.equal(run(checkpoint.model, [1, 2])["logits"], plain)


def test_a_report_has_one_row_for_every_tensor_and_reads_as_a_summary(folder: Path) -> None:
    report = load(folder).report
    stored = load_file(folder / "model.safetensors")
    assert {row.name: row.shape for row in report.rows_with("loaded")} == {n: tuple(t.shape) for n, t in stored.items()}
    (row,) = (row for row in report.rows if row.name == Q)
    assert row.ours == tuple(f"blocks.1.attn.{x}.weight" for x in "qkv")
    first = "41 tensors: 40 loaded, 1 tied, 0 dropped on purpose, 0 missing, 0 unexpected"
    assert str(report).splitlines()[0] == first
    assert "lm_head.weight  (7 x 16) -> embed.tokens.weight" in str(report)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mamba"}, "must be one that Loupe opens, got 'mamba', whose layers are recurrences or state"),
        ({"model_type": "phi4"}, r"got 'phi4' \(phi, .* near by name\); docs/checkpoints.md lists them all"),
        ({"model_type": "gemma3", "text_config": {}}, "got 'gemma3', which reads more than texts; save its text model"),
        ({"model_type": ..., "architectures": None}, "got None; say one, such as llama"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx must be False, got True"),
        ({"scale_attn_weights": False}, "scale_attn_weights must be True, got False"),
        ({"add_cross_attention": True}, "add_cross_attention must be False, got True"),
        ({"activation_function": "tanh"}, "activation_function must be one of gelu_new, .*, got 'tanh'"),
        ({"activation_function": ["gelu"]}, "activation_function must be one of gelu_new, .*, got .'gelu'"),
        ({"n_embd": ...}, "config.json leaves out sizes, so those of transformers' gpt2 class count: n_embd 768"),
        ({"n_head": 3}, "d_model 16 cannot be split into 3 heads; try 2 or 4"),
        ({"n_layer": 10**9}, "describes 1,000,000,000 layers .* the weights hold 40 tensors"),
        ({"vocab_size": 10**8}, r"at least \d+ numbers, but the weights hold 40 tensors"),
        ({"vocab_size": 10**12}, "vocab_size must be a whole number from 1 to 1,073,741,824, got 1000000000000"),
        ({"n_head": 10**9, "n_embd": 10**9}, r"at least \d+ numbers, but the weights hold"),
        ({"n_layer": 4}, r"must hold transformer.h.3.ln_1.weight and 11 more that are not there"),
        (
            {"n_positions": 25},
            r"wpe.weight in model.safetensors must have shape \(25, 16\) by config.json, got \(24, 16\)",
        ),
    ],
    ids=str,
)
def test_a_config_that_is_not_this_models_is_one_sentence(changes: dict[str, Any], message: str, folder: Path) -> None:
    configure(folder, **changes)
    with pytest.raises(ValueError, match=message) as raised:
        load(folder)
    assert "\n" not in str(raised.value)


def test_reorder_and_upcast_is_the_same_function_in_float32(folder: Path) -> None:
    configure(folder, reorder_and_upcast_attn=True)
    assert load(folder).report.ok


def test_an_old_config_without_a_model_type_is_known_by_its_architecture(folder: Path) -> None:
    configure(folder, model_type=..., n_ctx=...)
    assert load(folder).config.context == 24


@pytest.mark.parametrize(
    ("generation", "config", "expected"),
    [
        ({"eos_token_id": 3}, 2, (3,)),
        ({"eos_token_id": [3, 1]}, 2, (3, 1)),
        ({"eos_token_id": 50256}, 2, (2,)),
        ({}, [4, 50256], (4,)),
        ({"eos_token_id": "3"}, True, (1,)),  # neither is an id: the tokenizer's
    ],
)
def test_texts_end_where_the_config_says_or_else_the_tokenizer(
    generation: dict[str, Any], config: Any, expected: tuple[int, ...], folder: Path
) -> None:
    (folder / "generation_config.json").write_text(json.dumps(generation))
    configure(folder, eos_token_id=config)
    checkpoint = load(folder)
    assert checkpoint.end_ids == (expected if expected != (1,) else (checkpoint.tokenizer.end_id,))


def test_a_tokenizer_that_cannot_be_read_is_a_note_and_not_a_failure(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")
    checkpoint = load(folder)
    assert checkpoint.tokenizer is None
    assert "No tokenizer" in str(checkpoint.report)


def test_a_setting_of_the_tokenizer_that_is_not_read_is_a_note(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"case_fold": true}')
    assert "tokenizer_config.json has 'case_fold'" in str(load(folder).report)


def test_a_tokenizer_with_more_tokens_than_the_model_is_a_note(folder: Path) -> None:
    model = tiny.model(tiny.config(vocab_size=5))
    save_weights(model, folder / "model.safetensors")
    assert "The tokenizer has 7 tokens and the model 5" in str(load(folder).report)


@pytest.mark.parametrize(
    ("tokens", "rows", "unnamed"),
    [
        (5, 800, 795),
        (7, 128, 0),  # padded
        (65, 128, 0),
        (259, 384, 0),  # ByT5's
        (32_100, 32_128, 0),  # T5's
        (50_257, 50_304, 0),
        (50_257, 100_514, 0),
        (50_257, 100_515, 50_258),
        (3, 3, 0),
    ],
)
def test_a_table_may_be_padded_and_not_be_another_models(tokens: int, rows: int, unnamed: int) -> None:
    assert count_unnamed(tokens, rows) == unnamed


def test_a_tokenizer_with_far_fewer_tokens_than_the_model_is_a_note(folder: Path) -> None:
    save_weights(tiny.model(tiny.config(vocab_size=800)), folder / "model.safetensors")
    assert load(folder).report.notes[-1] == (
        "793 of the model's 800 ids have no token in its tokenizer, which has 7: it may be another model's; put the "
        "model's own beside the weights."
    )
    save_weights(tiny.model(tiny.config(vocab_size=64)), folder / "model.safetensors")
    assert load(folder).report.notes == ()


@pytest.mark.parametrize("name", shipped_names())
def test_no_shipped_tokenizer_is_another_models(name: str) -> None:
    assert not any("have no token" in note for note in load(name).report.notes)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_has_a_row_for_every_tensor_of_a_model_it_expresses(name: str) -> None:
    family = FAMILIES[name][0]
    for config in (tiny.CONFIG, replace(tiny.CONFIG, tied=False)):
        try:
            assert family.read_config(family.write_config(config)) == config
        except ValueError:
            continue
        model = tiny.model(config)
        assert {n for row in family.bind(model.state_dict()) for n in row.target} == set(model.state_dict())


@pytest.mark.skipif(not CAPP.is_dir(), reason=f"{CAPP} is not here")
def test_a_real_checkpoint_gives_transformers_numbers_and_its_published_plan() -> None:
    checkpoint = load(CAPP)
    assert checkpoint.report.ok
    reference = np.load(CAPP / "reference.npz")
    trace = run(checkpoint.model, torch.tensor(reference["input_ids"]))
    hidden = torch.stack([*trace.stack("resid_pre"), trace["final_norm.out"]])
    np.testing.assert_allclose(trace["logits"], reference["logits"], atol=1e-4, rtol=0)
    np.testing.assert_allclose(trace.stack("attn.pattern"), reference["attentions"], atol=1e-5, rtol=0)
    np.testing.assert_allclose(hidden, reference["hidden_states"], atol=1e-4, rtol=0)
    steps = list(generate(checkpoint, PART, 4, greedy=True))
    tokenizer = checkpoint.tokenizer
    assert [tokenizer.decode([step.id]) for step in steps] == ["Milling", "Drilling", "Thread Milling", "Grinding"]
    assert steps[0].logits.softmax(-1).max().item() == pytest.approx(0.988, abs=5e-4)
    assert checkpoint.end_ids == (51,)  # its bos_token_id, 50256, lies outside the vocabulary
