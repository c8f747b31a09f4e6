"""Shared checkpoints and traces."""

from pathlib import Path

import pytest
import torch

from engine import Checkpoint, library
from engine.config import MLP, Attention, ModelConfig
from engine.edits import AttentionTemperature
from engine.model import Transformer, initialise
from engine.tokenizers.encoding import Encoding

CONFIG = ModelConfig(vocab_size=9, context=16, d_model=8, layers=1, attention=Attention(heads=2), mlp=MLP(8))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model in the models folder, called "mine"."""
    Checkpoint(model=initialise(Transformer(CONFIG), 0)).save(tmp_path / "mine")
    monkeypatch.setattr(library, "MODELS_FOLDER", str(tmp_path))
    library.checkpoint.cache_clear()
    return "mine"


def test_a_folder_in_the_models_folder_is_offered_and_opens(own: str) -> None:
    assert own in library.names()
    assert library.checkpoint(own).model.config == CONFIG


@pytest.mark.parametrize("name", ["../mine", "/etc", "nothing", ""])
def test_a_name_is_never_a_path(own: str, name: str) -> None:
    with pytest.raises(ValueError, match="there is no model called"):
        library.checkpoint(name)


def test_the_same_text_is_computed_once_and_another_edit_anew(own: str) -> None:
    traces = library.Traces(budget=10**9)
    text = Encoding.from_ids([1, 2, 3])
    plain = traces.of(own, text)
    assert traces.of(own, Encoding.from_ids([1, 2, 3])) is plain
    hot = traces.of(own, text, [AttentionTemperature(3.0)])
    assert hot is not plain and not torch.equal(hot["logits"], plain["logits"])
    assert traces.of(own, text, [AttentionTemperature(3.0)]) is hot


def test_a_full_library_forgets_what_was_used_longest_ago(own: str) -> None:
    one = library.Traces(budget=10**9)
    first, second, third = (Encoding.from_ids([i, i]) for i in (1, 2, 3))
    size = one.of(own, first).bytes
    traces = library.Traces(budget=2 * size)
    a, b = traces.of(own, first), traces.of(own, second)
    assert traces.of(own, first) is a
    traces.of(own, third)  # no room for three: the second goes
    assert traces.of(own, first) is a
    assert traces.of(own, second) is not b
