"""One training step, as `python -m engine train` makes it, against the plain loop around transformers' model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from bench.models import LITTLE
from bench.paired import Row, paired
from engine.training.folder import RunFolder
from engine.training.machine import Abilities, plan
from engine.training.parallel import Peers
from engine.training.recipe import Batch, Data, Machine, Recipe, Schedule, Stories, TokenizerRecipe
from engine.training.trainer import Trainer

BATCH = Batch(size=32, context=128)


def rows() -> Iterator[Row]:
    recipe = Recipe(
        model=replace(LITTLE.config, context=BATCH.context),
        data=Data(stories=Stories(400, 50), tokenizer=TokenizerRecipe("bpe", LITTLE.config.vocab_size)),
        schedule=Schedule(steps=10_000),
        batch=BATCH,
        machine=Machine("cpu", threads=torch.get_num_threads()),
    )
    with TemporaryDirectory() as folder:
        run = RunFolder(Path(folder))
        run.adopt(recipe)
        trainer = Trainer(recipe, run, plan(recipe.machine, Abilities.here()), Peers())
        row = paired(
            f"training step, 4 x 4 x 128, {BATCH.size} x {BATCH.context} tokens",
            trainer.advance,
            their_step(trainer.model.config.vocab_size),
        )
    yield replace(row, note=f"{BATCH.size * BATCH.context / row.ours:.0f} tokens/s")


def their_step(vocab_size: int) -> Callable[[], object]:
    config = GPT2Config(
        vocab_size=vocab_size,
        n_positions=BATCH.context,
        n_embd=LITTLE.config.d_model,
        n_layer=LITTLE.config.layers,
        n_head=LITTLE.config.attention.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    model = GPT2LMHeadModel(config).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(vocab_size, (BATCH.size, BATCH.context), generator=torch.Generator().manual_seed(0))

    def step() -> object:
        loss = model(ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        return loss.detach()

    return step
