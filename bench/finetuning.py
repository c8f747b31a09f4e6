"""A step of fine-tuning on a checkpoint, as `python -m engine train` makes it: of an adapter against peft, of all
weights against a plain loop of transformers. `python -m bench.finetuning FOLDER SIDE WHAT THREADS` tells one side's
peak memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory
from typing import Any

import torch

from bench.models import GPT2_SMALL, LITTLE, Shape
from bench.paired import Row, paired
from bench.training import opened
from engine.checkpoints import Checkpoint, load
from engine.data.kinds.stories import Stories
from engine.model.transformer import Transformer, initialise
from engine.training.base.base import open_base
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.recipe import Batch, Lora, Machine, Recipe, Schedule, Train
from engine.training.sources import open_source
from engine.training.sources.source import Source

BATCH = Batch(size=2, context=64)
SMALL = replace(LITTLE, name="4 x 4 x 128", config=replace(LITTLE.config, vocab_size=1024))
SHAPES = (replace(GPT2_SMALL, name="GPT-2 small"), SMALL)
RANK, ALPHA = 8, 16
TARGETS = {
    "usual": (("attn.q", "attn.v"), ["c_attn"]),  # what each adapts in a GPT-2 unless told otherwise
    "same": (("attn.out", "mlp.pre", "mlp.out"), ["c_proj", "c_fc"]),  # the same matrices in both
}
REACH = {"all": 0.9, "usual": 1.0, "same": 1.0}
STEPS = 3  # until the peak of memory
MIB = 2**20


def rows() -> Iterator[Row]:
    for shape in SHAPES:
        for what in REACH:
            with TemporaryDirectory() as folder:
                write_base(shape, Path(folder))
                yield against(shape, Path(folder), what)


def lines() -> Iterator[str]:
    """Peak resident memory of a fresh process each, from opening the base to some steps; in the small one it is the
    libraries'."""
    shape = SHAPES[0]
    with TemporaryDirectory() as folder:
        write_base(shape, Path(folder))
        for what in ("all", "usual"):
            (start, ours), (_, theirs) = (in_fresh_process(folder, side, what) for side in ("ours", "theirs"))
            yield (
                f"peak memory, {title(what)}, {shape.name}: {ours:.0f} MiB, theirs {theirs:.0f} "
                f"({ours / theirs:.2f}x), of which the libraries {start:.0f}"
            )


def title(what: str) -> str:
    return "full fine-tuning" if what == "all" else f"LoRA on {', '.join(TARGETS[what][0])}"


def write_base(shape: Shape, folder: Path) -> None:
    """The shape with random weights, as a GPT-2 that both read."""
    model = initialise(Transformer(shape.config), seed=0)
    Checkpoint(model, load("stories").tokenizer).save(folder)


def against(shape: Shape, folder: Path, what: str) -> Row:
    trainer = opened(recipe_of(folder, what), folder / "run")
    model = open_model(folder, what)
    if what != "usual" and learned(model) != learned(trainer.model):
        raise ValueError(f"both must learn as much, got {learned(model)} and {learned(trainer.model)}.")
    step = plain_loop(model, trainer.source)
    torch.testing.assert_close(step(), trainer.advance().loss.item(), atol=1e-4, rtol=1e-4)
    theirs = "transformers" if what == "all" else "peft"
    note = f"{learned(trainer.model)} and {learned(model)} parameters learn"
    return paired(f"{title(what)}, {shape.name}, to {theirs}", trainer.advance, step, REACH[what], note=note)


def recipe_of(folder: Path, what: str) -> Recipe:
    recipe = Recipe(
        model=open_base(str(folder))[0].config,
        data=Data(Stories(400, 50)),
        schedule=Schedule(steps=10_000),
        batch=BATCH,
        machine=Machine("cpu", threads=torch.get_num_threads()),
        base=str(folder),
    )
    if what == "all":
        return recipe
    return replace(recipe, train=Train("lora"), lora=Lora(RANK, ALPHA, TARGETS[what][0]))


def open_windows(folder: Path) -> Source:
    """The batches of a training, without its model."""
    with TemporaryDirectory() as made:
        return open_source(recipe_of(folder, "all"), Path(made))


def open_model(folder: Path, what: str) -> Any:
    """Transformers' GPT-2 without dropout, with an adapter of peft's unless all of it learns."""
    from peft import LoraConfig, get_peft_model
    from transformers import GPT2LMHeadModel

    model = GPT2LMHeadModel.from_pretrained(folder, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0).train()
    if what == "all":
        return model
    config = LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=TARGETS[what][1], fan_in_fan_out=True)
    return get_peft_model(model, config)


def plain_loop(model: Any, source: Source) -> Callable[[], float]:
    """A step as its users write it, on the batches of `source`, which are drawn beforehand."""
    optimiser = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-3, fused=True)
    drawn = [source.batch(step) for step in range(1, 65)]
    batches = cycle([(batch.ids.contiguous(), batch.targets.contiguous()) for batch in drawn])

    def step() -> float:
        ids, targets = next(batches)
        return take_step(model, optimiser, model(ids, labels=targets, shift_labels=targets, use_cache=False).loss)

    return step


def take_step(model: Any, optimiser: torch.optim.Optimizer, loss: torch.Tensor) -> float:
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    optimiser.zero_grad()
    return float(loss.detach())


def learned(model: torch.nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


# --- Memory ---


def in_fresh_process(folder: str, side: str, what: str) -> tuple[float, float]:
    command = [sys.executable, "-m", "bench.finetuning", folder, side, what, str(torch.get_num_threads())]
    told = run(command, capture_output=True, text=True, check=True).stdout
    start, peak = json.loads(told.splitlines()[-1])
    return start, peak


def peak_memory(folder: Path, side: str, what: str) -> tuple[float, float]:
    """Peak MiB resident before anything is opened, and after STEPS steps. The batches of both are Loupe's."""
    start = high_water()
    if side == "ours":
        step: Callable[[], object] = opened(recipe_of(folder, what), folder / side / what).advance
    else:
        step = plain_loop(open_model(folder, what), open_windows(folder))
    for _ in range(STEPS):
        step()
    return start, high_water()


def high_water() -> float:
    """MiB; getrusage would count what the parent had, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[4]))
    print(json.dumps(peak_memory(Path(sys.argv[1]), *sys.argv[2:4])))
