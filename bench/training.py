"""A training step, as `python -m engine train` makes it, against plain loops with PyTorch's layers and with GPT-2."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, GPT2LMHeadModel

from bench.models import LITTLE
from bench.paired import Row, paired
from engine.data.kinds.stories import Stories
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.model.config import Activation
from engine.training.cluster.parallel import Peers
from engine.training.launch.machine import Abilities, plan
from engine.training.loop import train
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.recipe import Batch, Log, Machine, Recipe, Schedule
from engine.training.run.folder import RunFolder
from engine.training.run.journal import Step
from engine.training.trainer import Trainer

BATCH = Batch(size=32, context=128)
REACH = 1 / 1.1  # of their time
TOGETHER = 5  # updates
WATCHED = 1.05
CONFIG = replace(LITTLE.config, context=BATCH.context)


def rows() -> Iterator[Row]:
    yield against("nn.TransformerEncoderLayer", "gelu", PlainDecoder)
    yield against("GPT2LMHeadModel", "gelu_tanh", gpt2)
    yield watched()


def watched() -> Row:
    """A whole run, which logs, keeps snapshots, saves and looks at its probe, to its updates alone, some at a time."""
    recipe = of_bench("gelu")
    with TemporaryDirectory() as folder:
        steps = cast(Generator[Step], train(recipe, Path(folder) / "watched"))
        bare = opened(recipe, Path(folder) / "bare")
        done = 0

        def whole() -> None:
            nonlocal done
            done += TOGETHER
            while next(steps).step < done:
                pass

        def alone() -> None:
            for _ in range(TOGETHER):
                bare.advance()

        row = paired("logging, snapshots and the live probe, to none", whole, alone, WATCHED)
        steps.close()
    return row


def against(name: str, activation: Activation, theirs: Callable[[int], nn.Module]) -> Row:
    """Both with the same `activation`, data of the same kind, and AdamW; theirs as its users write it."""
    with TemporaryDirectory() as folder:
        trainer = opened(of_bench(activation), Path(folder))
        model = theirs(trainer.model.config.vocab_size).train()
        if parameters(model) != parameters(trainer.model):
            raise ValueError(f"both must be of one size, got {parameters(model)} and {parameters(trainer.model)}.")
        row = paired(f"training 4 x 4 x 128, to {name}", trainer.advance, plain_loop(model), REACH)
    tokens = BATCH.size * BATCH.context
    return replace(row, note=f"{tokens / row.ours:.0f} against {tokens / row.theirs:.0f} tokens/s")


def of_bench(activation: Activation) -> Recipe:
    assert CONFIG.mlp is not None
    return Recipe(
        model=replace(CONFIG, mlp=replace(CONFIG.mlp, activation=activation)),
        data=Data(Stories(400, 50), tokenizer=TokenizerRecipe("bpe", CONFIG.vocab_size)),
        schedule=Schedule(steps=10_000),
        batch=BATCH,
        log=Log(every=TOGETHER),
        machine=Machine("cpu", threads=torch.get_num_threads()),
    )


def opened(recipe: Recipe, folder: Path) -> Trainer:
    run = RunFolder(folder)
    run.adopt(recipe)
    return Trainer(recipe, run, plan(recipe.machine, Abilities.of_this_machine()), Peers())


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


class PlainDecoder(nn.Module):
    """The same decoder of PyTorch's layers; with dropout 0 and `is_causal` they run their fused attention."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.tokens, self.positions = (nn.Embedding(n, CONFIG.d_model) for n in (vocab_size, BATCH.context))
        width, heads, d_mlp = CONFIG.d_model, CONFIG.attention.heads, 4 * CONFIG.d_model
        layer = nn.TransformerEncoderLayer(
            width, heads, d_mlp, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, CONFIG.layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(BATCH.context))

    def forward(self, ids: Tensor) -> Tensor:
        resid = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        logits: Tensor = self.blocks(resid, mask=self.mask, is_causal=True) @ self.tokens.weight.T
        return logits


def gpt2(vocab_size: int) -> nn.Module:
    config = GPT2Config(
        vocab_size=vocab_size,
        n_positions=BATCH.context,
        n_embd=CONFIG.d_model,
        n_layer=CONFIG.layers,
        n_head=CONFIG.attention.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=None,
        eos_token_id=None,
    )
    return GPT2LMHeadModel(config)


def plain_loop(model: nn.Module) -> Callable[[], object]:
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    vocab_size = next(model.parameters()).shape[0]
    text = torch.randint(vocab_size, (200_000,), generator=torch.Generator().manual_seed(0))

    def step() -> object:
        begin = torch.randint(len(text) - BATCH.context, (BATCH.size, 1))
        windows = text[begin + torch.arange(BATCH.context + 1)]
        ids, targets = windows[:, :-1], windows[:, 1:]
        made = model(ids)
        logits = made if isinstance(made, Tensor) else made.logits
        loss = cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        return loss.item()

    return step
