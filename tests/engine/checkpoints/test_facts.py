"""What lies beside the weights, and what its makers say."""

import re
from importlib.util import find_spec
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import ModelCard, ModelCardData
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.modelcard import TrainingSummary

from engine.checkpoints import Checkpoint
from engine.checkpoints.facts import LONGEST_SUMMARY, README_BYTES, read_facts
from engine.checkpoints.locate import locate
from tests.engine import tiny

README = """---
language: en
license: apache-2.0
tags: [cat]
---

![badge](x.svg)

# A cat
```python
load("cat")
```
It [says](https://example.org) **meow**,
again and again.

More of it.
"""
TRL = find_spec("trl")
assert TRL is not None and TRL.origin is not None
TEMPLATES = [
    *(Path(huggingface_hub.__file__).parent / "templates").glob("*model*card*.md"),
    *(Path(TRL.origin).parent / "templates").glob("*model*card*.md"),
]
PARAGRAPHS = re.findall(r"^\{\{ (\w+) \|", TEMPLATES[0].with_name("modelcard_template.md").read_text(), re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Checkpoint(tiny.model(tiny.config()), name="cat").save(tmp_path)
    (tmp_path / "card.json").unlink()
    return tmp_path


def test_files_are_those_of_the_checkpoint_the_weights_first(folder: Path) -> None:
    (folder / "holiday.jpg").write_bytes(b"no")
    (folder / "train.py").write_bytes(b"no")
    (folder / "README.md").write_text(README)
    found = read_facts(locate(folder))
    assert [name for name, _ in found.files] == ["model.safetensors", "README.md", "config.json"]
    assert found.bytes == sum((folder / name).stat().st_size for name, _ in found.files)
    assert (found.format, found.architecture) == ("gpt2", "GPT2LMHeadModel")


def test_a_readme_gives_licence_and_first_paragraph(folder: Path) -> None:
    (folder / "README.md").write_text(README)
    found = read_facts(locate(folder))
    assert (found.licence, found.says) == ("apache-2.0", "It says **meow**, again and again.")
    (folder / "README.md").write_text(README.replace("apache-2.0", "other\nlicense_name: meow-1"))
    assert read_facts(locate(folder)).licence == "meow-1"
    assert read_facts(locate(folder), {"about": "A card.", "licence": "MIT"}).says == "A card."


def test_a_template_that_nobody_filled_in_says_nothing(folder: Path) -> None:
    assert len(TEMPLATES) >= 3
    cards = {str(path): path.read_text() for path in TEMPLATES} | {"hub": str(ModelCard.from_template(ModelCardData()))}
    for named, card in cards.items():
        (folder / "README.md").write_text(card)
        assert read_facts(locate(folder)).says == "", named


def test_the_card_that_peft_writes_says_nothing(tmp_path: Path) -> None:
    base = GPT2LMHeadModel(GPT2Config(vocab_size=8, n_positions=8, n_embd=8, n_layer=1, n_head=2))
    get_peft_model(base, LoraConfig(r=1, target_modules=["c_attn"], fan_in_fan_out=True)).save_pretrained(tmp_path)
    assert (tmp_path / "README.md").is_file()
    assert read_facts(locate(tmp_path)).says == ""


def test_whatever_of_a_template_is_filled_in_is_what_its_makers_say(folder: Path, subtests: pytest.Subtests) -> None:
    for field in PARAGRAPHS:
        with subtests.test(field=field):
            (folder / "README.md").write_text(
                str(ModelCard.from_template(ModelCardData(), **{field: "It tells cats apart."}))
            )
            assert read_facts(locate(folder)).says == "It tells cats apart."


def test_the_sentence_that_transformers_writes_of_a_training_remains(folder: Path) -> None:
    (folder / "README.md").write_text(TrainingSummary("cat", finetuned_from="gpt2", dataset="cats").to_model_card())
    assert read_facts(locate(folder)).says == "This model is a fine-tuned version of gpt2 on the cats dataset."


@pytest.mark.parametrize("content", [b"\xff\xfe\0", b"---\nlicense", b"", b"x" * (README_BYTES + 10), b"---\n---\n"])
def test_any_readme_is_read(folder: Path, content: bytes) -> None:
    (folder / "README.md").write_bytes(content)
    found = read_facts(locate(folder))
    assert len(found.says) <= LONGEST_SUMMARY and found.licence == ""


def test_weights_alone_have_no_format_of_their_own(folder: Path) -> None:
    (folder / "config.json").unlink()
    assert read_facts(locate(folder)).format == "weights alone"


@pytest.mark.parametrize(
    ("file", "text", "licence"),
    [
        ("LICENSE", "MIT License\n\nCopyright (c) 2023 A Cat\n", "MIT"),
        ("LICENSE.txt", "                 Apache License\n           Version 2.0, January 2004\n", "Apache-2.0"),
        ("LICENCE", "BSD 3-Clause License\n", "BSD-3-Clause"),
        ("COPYING", "GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007\n", "GPL-3.0"),
        ("LICENSE.md", "The cat licence: be kind.\n", "see LICENSE.md"),
        ("LICENSE", "\ufffe\0", "see LICENSE"),
    ],
)
def test_a_licence_is_read_from_its_file(folder: Path, file: str, text: str, licence: str) -> None:
    (folder / file).write_text(text)
    assert read_facts(locate(folder)).licence == licence
    assert file in [name for name, _ in read_facts(locate(folder)).files]
    (folder / "README.md").write_text(README)
    assert read_facts(locate(folder)).licence == "apache-2.0"
