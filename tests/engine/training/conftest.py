"""A recipe small enough to train in a moment, on a corpus that is a file of the test."""

from pathlib import Path

import pytest
import torch

from engine.training import Recipe, read_recipe

RECIPE = """
seed = 3

[model]
d_model = 16
layers = 1
attention = { heads = 2 }
mlp = { d_mlp = 32 }
dropout = 0.1

[data.text]
path = "corpus.txt"
held_out = 0.2

[data.tokenizer]
kind = "char"

[optimiser]
lr = 1e-2

[schedule]
steps = 12
warmup = 3

[batch]
size = 4
context = 8

[log]
every = 1
held_out_every = 6
held_out_batches = 2
snapshots = 5
latest_every = 5

[machine]
device = "cpu"
threads = 1
"""


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tensors as small as these are computed faster by one."""
    torch.set_num_threads(1)


@pytest.fixture
def recipe_text() -> str:
    return RECIPE


@pytest.fixture
def recipe_path(tmp_path: Path) -> Path:
    (tmp_path / "corpus.txt").write_text("the cat sat on the mat, and the dog sat on the log.\n" * 20)
    path = tmp_path / "small.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture
def recipe(recipe_path: Path) -> Recipe:
    return read_recipe(recipe_path)
