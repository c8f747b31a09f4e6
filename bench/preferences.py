"""A step of DPO on a checkpoint, as `python -m engine train` makes it, against TRL's trainer on the same pairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from bench.finetuning import SMALL, take_step, write_base
from bench.paired import Row, paired
from bench.training import opened
from engine.data.kinds.preferences import Preferences
from engine.data.stories import story
from engine.training.base.base import open_base
from engine.training.policy.pairs import PreferencePair, format_jsonl
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.preference import Preference
from engine.training.recipe.recipe import Batch, Machine, Objective, Recipe, Schedule
from engine.training.sources.preferences import PreferredAnswers

SIZE, PAIRS, BETA, RATE = 8, 64, 0.1, 1e-4
REACH = 1.0


def rows() -> Iterator[Row]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_base(SMALL, folder)
        (folder / "pairs.jsonl").write_text(format_jsonl(make_pairs()))
        trainer = opened(recipe_of(folder), folder / "run")
        assert isinstance(trainer.source, PreferredAnswers)
        step = trl_step(folder, trainer.source)
        torch.testing.assert_close(step(), trainer.advance().loss.item(), atol=1e-5, rtol=1e-5)
        yield paired(f"DPO of {SIZE} pairs, {SMALL.name}, to trl", trainer.advance, step, REACH)


def make_pairs() -> list[PreferencePair]:
    """Beginnings of stories with the 160 letters that follow, chosen, and those of another story, rejected."""
    texts = [story(0, index) for index in range(PAIRS + 1)]
    return [PreferencePair(one[:80], one[80:240], other[80:240]) for one, other in zip(texts, texts[1:], strict=False)]


def recipe_of(folder: Path) -> Recipe:
    config = open_base(str(folder))[0].config
    return Recipe(
        model=config,
        data=Data(Preferences(str(folder / "pairs.jsonl"))),
        schedule=Schedule(steps=10_000, shape="constant"),
        batch=Batch(SIZE, config.context),
        objective=Objective("dpo"),
        machine=Machine("cpu", threads=torch.get_num_threads()),
        base=str(folder),
        preference=Preference(beta=BETA),
    )


def trl_step(folder: Path, source: PreferredAnswers) -> Callable[[], float]:
    """A step of TRL's trainer on the batches of `source`, which are drawn beforehand."""
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
    from trl import DPOConfig, DPOTrainer

    def model() -> Any:
        return AutoModelForCausalLM.from_pretrained(folder, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, pad_token="<|endoftext|>")
    given = [json.loads(line) for line in (folder / "pairs.jsonl").read_text().splitlines()]
    options = DPOConfig(
        str(folder / "trl"), beta=BETA, report_to=[], use_cpu=True, learning_rate=RATE, gradient_checkpointing=False,
        bf16=False, disable_tqdm=True,
    )  # fmt: skip
    rows = Dataset.from_list(given)
    trainer = DPOTrainer(model(), model(), args=options, train_dataset=rows, processing_class=tokenizer)
    policy: Any = trainer.model
    policy.train()
    optimiser = torch.optim.AdamW(policy.parameters(), lr=RATE, fused=True)
    batches = cycle([inputs_of(source, step) for step in range(1, 33)])

    return lambda: take_step(policy, optimiser, trainer.compute_loss(policy, next(batches)))


def inputs_of(source: PreferredAnswers, step: int) -> dict[str, torch.Tensor]:
    """TRL has the chosen texts first, then the rejected ones."""
    pairs = source.draw_pairs(step)
    ids, real, answer = (torch.cat([each[:, 0], each[:, 1]]) for each in (pairs.ids, pairs.real, pairs.answer))
    return {"input_ids": ids, "attention_mask": real.long(), "completion_mask": answer.long()}
