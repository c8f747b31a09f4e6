"""What is computed on a card against what the CPU computes. Without a card the same tests run on the second device of
tests/second_device.py, and what only a card can do is skipped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
import torch

from engine.model.layers.cache import KVCache
from engine.model.transformer import Transformer
from engine.model.twin import Twin, twins
from engine.training import Recipe
from engine.training.launch.machine import Plan
from engine.training.trainer import Trainer
from tests.engine.training.conftest import recipe, recipe_path
from tests.engine.training.test_trainer import trainer
from tests.second_device import SECOND, SecondTwin, on_second_device, second_device

__all__ = ["recipe", "recipe_path"]

NO_CARD = "needs a CUDA device, and PyTorch sees none; scripts/gpu_check.sh runs these where one is lent"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip(NO_CARD)


class Card:
    """The first CUDA device. Products of float32 are not rounded to TF32 on it, unless a training asks for that."""

    device = torch.device("cuda", 0)
    plan = Plan("cuda", None, scaled=False, compile=False, threads=1)

    def __init__(self) -> None:
        self.told: list[str] = []  # why something was computed on the CPU after all

    def twin(self, model: Transformer, dtype: torch.dtype = torch.float32) -> Twin:
        return Twin(model, self.device, dtype, self.told.append)

    def trainer(self, recipe: Recipe, folder: Path) -> Trainer:
        """A training in float32 there, whose updates are made in `there()`."""
        made = trainer(recipe, folder, self.plan)
        torch.set_float32_matmul_precision("highest")
        return made

    def there(self) -> AbstractContextManager[None]:
        return nullcontext()


class SecondDevice(Card):
    device = SECOND
    plan = Plan("meta", None, scaled=False, compile=False, threads=1)

    def twin(self, model: Transformer, dtype: torch.dtype = torch.float32) -> Twin:
        made = SecondTwin(model, dtype)
        made.told = self.told
        return made

    def trainer(self, recipe: Recipe, folder: Path) -> Trainer:
        with self.there():
            made = super().trainer(recipe, folder)
        for group in made.optimiser.groups:
            group["fused"] = False  # there is no such kernel for it
        return made

    def there(self) -> AbstractContextManager[None]:
        return second_device()


@pytest.fixture(params=[pytest.param(Card, marks=pytest.mark.gpu, id="cuda"), pytest.param(SecondDevice, id="second")])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    """Where to compute; at the end nothing may have been left to the CPU."""
    if request.param is SecondDevice:
        monkeypatch.setattr(KVCache, "reorder", on_second_device(KVCache.reorder))
    made: Card = request.param()
    yield made
    twins.clear()
    assert not made.told


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """A training that asks for TF32 must not leave it to the tests after it."""
    yield
    torch.set_float32_matmul_precision("highest")
