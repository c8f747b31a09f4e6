"""What is opened is saved as it was: for transformers, and for Loupe, which opens it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from engine import load, run
from engine.checkpoints import Checkpoint
from engine.checkpoints.save import export_checkpoint
from engine.training import read_recipe, train
from tests.engine.checkpoints.against import shaken
from tests.engine.training.test_reading_of_rows import FAMILIES, base_of, rows_of

CONFIG = {  # keys that transformers reads and Loupe has no use for, or has for other things
    "initializer_range": 0.077, "use_cache": False, "classifier_dropout": 0.3, "hidden_dropout_prob": 0.2,
    "attention_probs_dropout_prob": 0.05, "layerdrop": 0.0, "task_specific_params": {"x": {"max_length": 7}},
    "tokenizer_class": None, "problem_type": "multi_label_classification", "output_past": True,
}  # fmt: skip
GENERATION = {
    "eos_token_id": [2, 5], "pad_token_id": 1, "max_new_tokens": 7, "temperature": 0.5, "do_sample": True, "top_k": 9,
    "guidance_scale": 1.5, "assistant_lookbehind": 4,
}  # fmt: skip
TOKENIZER = {
    "model_max_length": 33,
    "padding_side": "left",
    "truncation_side": "left",
    "clean_up_tokenization_spaces": False,
}
TEMPLATE = "{% for m in messages %}<turn>{{ m['content'] }}{% endfor %}"
HEADED = {
    "BertForMaskedLM": "BertForTokenClassification",
    "RobertaForMaskedLM": "RobertaForSequenceClassification",
    "LlamaForCausalLM": "LlamaForSequenceClassification",
}
OWN = ("transformers_version", "_name_or_path", "dtype", "torch_dtype")


def write_settings(base: Path, generates: bool) -> None:
    """As somebody may have left a folder: more in its files than their class writes by itself."""
    config = json.loads((base / "config.json").read_text())
    config |= {name: value for name, value in CONFIG.items() if name in config or name in ("output_past", "use_cache")}
    (base / "config.json").write_text(json.dumps(config))
    if generates:
        (base / "generation_config.json").write_text(json.dumps(GENERATION))
    path = base / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | TOKENIZER))
    (base / "chat_template.jinja").write_text(TEMPLATE)


def table(found: Any) -> dict[str, Any]:
    return {name: value for name, value in found.to_dict().items() if name not in OWN}


def check_same(first: Path, second: Path, read: Any, generates: bool) -> None:
    """The two folders are one to transformers, and to Loupe."""
    assert table(AutoConfig.from_pretrained(first)) == table(AutoConfig.from_pretrained(second))
    if generates:
        ours, theirs = (GenerationConfig.from_pretrained(folder) for folder in (second, first))
        assert table(ours) == table(theirs)
    one, other = (AutoTokenizer.from_pretrained(folder) for folder in (first, second))
    told = ("model_max_length", "padding_side", "truncation_side", "chat_template", "special_tokens_map")
    assert [getattr(one, name) for name in told] == [getattr(other, name) for name in told]
    assert one.get_vocab() == other.get_vocab() and type(one) is type(other)
    for row in read:
        assert one(row["text"], row["pair"]) == other(row["text"], row["pair"])
        assert one(text_target=row["answer"]) == other(text_target=row["answer"])
    before, after = load(first), load(second)
    assert before.config == after.config and before.writing == after.writing
    assert (before.end_ids, before.labels, before.family) == (after.end_ids, after.labels, after.family)
    assert before.report.notes == after.report.notes
    for row in read:
        texts = before.tokenizer.encode(row["text"]), after.tokenizer.encode(row["text"])
        assert texts[0] == texts[1]
        targets = [each.tokenizer.of_targets.encode(row["answer"]).ids for each in (before, after)]
        assert targets[0] == targets[1]
        logits = [run(each.model, texts[0])["logits"] for each in (before, after)]
        torch.testing.assert_close(*logits, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_open_and_save_is_the_identity(name: str, tmp_path: Path) -> None:
    base, rows = base_of(name, tmp_path), rows_of(name)
    if headed := HEADED.get(name):
        kind = getattr(transformers, headed)
        config = kind.config_class.from_pretrained(base)
        config.id2label = {0: "zebra", 1: "ant", 2: "bee"}
        config.label2id = {label: number for number, label in config.id2label.items()}
        config.pad_token_id = config.pad_token_id if config.pad_token_id is not None else 0
        torch.manual_seed(3)
        shaken(kind(config)).save_pretrained(base)
    generates = headed is None and "Masked" not in name
    write_settings(base, generates)
    opened = load(base)
    opened.save(tmp_path / "again")
    check_same(base, tmp_path / "again", rows, generates)
    if headed is None or name == "BertForMaskedLM":  # also from one file, which holds all in its header
        exported: Checkpoint = load(export_checkpoint(opened, "file", tmp_path))
        assert (exported.end_ids, exported.labels, exported.writing) == (opened.end_ids, opened.labels, opened.writing)
        for row in rows:
            assert exported.tokenizer.encode(row["text"]) == opened.tokenizer.encode(row["text"])
            assert (
                exported.tokenizer.of_targets.encode(row["answer"]).ids
                == opened.tokenizer.of_targets.encode(row["answer"]).ids
            )


def test_after_fine_tuning_only_what_was_trained_has_changed(tmp_path: Path) -> None:
    base, rows = base_of("GPT2LMHeadModel", tmp_path), rows_of("GPT2LMHeadModel")
    write_settings(base, True)
    many = [row | {"text": f"{row['text']} {count}"} for row in rows for count in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in many))
    for kind, columns, more in (
        ("next", 'text = "text"', ""),
        ("next", 'text = "text"', '[train]\nparts = "lora"\n'),
        ("classification", 'text = "text"\nlabel = "label"', ""),
    ):
        name = f"{kind}{len(more)}"
        (tmp_path / f"{name}.toml").write_text(
            f'base = "{base}"\n[data.rows]\npath = "rows.jsonl"\n{columns}\nheld_out = 0.3\n'
            f'[objective]\nkind = "{kind}"\n{more}[optimiser]\nkind = "sgd"\nlr = 1e-12\nweight_decay = 0.0\n'
            f"[schedule]\nsteps = 1\n[batch]\nsize = 1\ncontext = {4 if kind == 'next' else 24}\n"
            "[machine]\ndevice = 'cpu'\nthreads = 1\n"
        )
        for _ in train(read_recipe(tmp_path / f"{name}.toml"), tmp_path / name):
            pass
        saved = tmp_path / name / "checkpoint"
        if kind == "next":
            check_same(base, saved, rows, True)
            assert load(tmp_path / name).end_ids == load(base).end_ids == (2, 5)
            continue
        theirs, ours = (table(AutoConfig.from_pretrained(folder)) for folder in (base, saved))
        changed = {name for name in theirs | ours if theirs.get(name) != ours.get(name)}
        assert changed <= {"architectures", "id2label", "label2id", "pad_token_id", "n_ctx", "n_inner", "is_causal"}
        assert load(saved).labels == ("no", "yes")
        one, other = (AutoTokenizer.from_pretrained(folder) for folder in (base, saved))
        assert (one.model_max_length, one.chat_template) == (other.model_max_length, other.chat_template)


def test_the_processor_of_pictures_is_saved_as_it_was(tmp_path: Path) -> None:
    base, again = tmp_path / "base", tmp_path / "again"
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    names = {"id2label": {0: "cat", 1: "ant"}, "label2id": {"cat": 0, "ant": 1}}
    config = transformers.ViTConfig(image_size=8, patch_size=4, **names, **sizes)
    transformers.ViTForImageClassification(config).save_pretrained(base)
    settings = {"size": {"height": 8, "width": 8}, "image_mean": [0.4, 0.5, 0.6], "do_convert_rgb": True, "resample": 3}
    transformers.ViTImageProcessor(**settings).save_pretrained(base)
    opened = load(base)
    opened.save(again)
    files = [json.loads((folder / "preprocessor_config.json").read_text()) for folder in (base, again)]
    assert files[0] == files[1] and load(again).processor == opened.processor
    assert table(AutoConfig.from_pretrained(base)) == table(AutoConfig.from_pretrained(again))
