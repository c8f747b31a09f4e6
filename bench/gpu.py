"""What a card makes of the engine, against nothing but itself: `python -m bench.gpu --out FILE`. Tokens a second, the
share of what its matrix units do in a large product, and the memory that tensors take. `--device cpu --tiny` tries it
where there is no card."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Literal

import torch
from torch import Tensor

from bench.finetuning import SMALL
from bench.models import GPT2_SMALL, LITTLE_LLAMA, Shape, llama
from bench.training import opened
from engine.analysis.sizes import BACKWARD, forward
from engine.checkpoints import Checkpoint, load
from engine.data.kinds.stories import Stories
from engine.generation.generate import generate
from engine.model.transformer import Transformer, initialise
from engine.model.twin import Twin, twins
from engine.runtime.run import run
from engine.training.base.base import open_base
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.recipe import Batch, Machine, Recipe, Schedule

LEAST = 3  # repetitions, however slow
LOOKED_AT = 256  # tokens of a text that a page shows, at most
FORMATS = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


@dataclass(frozen=True)
class Case:
    """A shape, and how many rows of its whole length are read at a time."""

    shape: Shape
    rows: int
    written: int = 128  # tokens


CASES = (
    Case(replace(GPT2_SMALL, name="GPT-2 small (12 x 768)", tokens=1024), rows=16),
    Case(Shape("Llama 1B (16 x 2048)", llama(32_000, 2048, 16, 32, 8, 8192), 1024), rows=8),
)
LITTLE = replace(LITTLE_LLAMA.config, vocab_size=SMALL.config.vocab_size)
TINY = (
    Case(replace(SMALL, tokens=32), rows=2, written=4),
    Case(Shape("Llama 4 x 128", LITTLE, 32), rows=2, written=4),
)


@dataclass(frozen=True)
class Row:
    """Median `seconds` of a repetition. `share` is that of the peak of the same format, and `memory` is in bytes, at
    its highest. `failed` says why there is nothing else."""

    what: str
    seconds: float | None = None
    tokens_per_second: float | None = None
    tflops: float | None = None
    share: float | None = None
    memory: int | None = None
    failed: str = ""


class Bench:
    """Measures on `device`, each for `seconds` or so."""

    def __init__(self, device: torch.device, cases: tuple[Case, ...], seconds: float) -> None:
        self.device, self.cases, self.seconds = device, cases, seconds
        self.card = device.type == "cuda"
        self.peaks: dict[torch.dtype, float] = {}  # operations a second
        self.format = torch.bfloat16 if self.card else torch.float32  # that trainings choose

    def rows(self) -> Iterator[Row]:
        """Rows in the order of what is worth most, should time run out; one that fails does not keep the others."""
        for dtype in FORMATS if self.card else (torch.float32,):
            yield self.attempt(f"product of two matrices, {FORMATS[dtype]}", partial(self.product, dtype))
        first = self.cases[0]
        with TemporaryDirectory() as folder:
            for number, case in enumerate(self.cases):
                formats = tuple(FORMATS) if self.card and case is first else (self.format,)
                yield from self.rows_of_model(case, Path(folder, str(number)), formats)
                yield self.attempt_training(case, Path(folder, str(number)), "off")
            if self.card:  # takes a minute
                yield self.attempt_training(first, Path(folder, "0"), "on")

    def attempt_training(self, case: Case, base: Path, compiled: Literal["off", "on"]) -> Row:
        what = f"training step{', compiled' if compiled == 'on' else ''}, {case.shape.name}, {FORMATS[self.format]}"
        return self.attempt(what, partial(self.trained, case, base, compiled))

    def rows_of_model(self, case: Case, folder: Path, formats: tuple[torch.dtype, ...]) -> Iterator[Row]:
        """Rows of an opened model with random weights, which is left in `folder` for trainings to begin with."""
        model = initialise(Transformer(case.shape.config), seed=0).eval()
        checkpoint = Checkpoint(model, load("stories").tokenizer)
        checkpoint.save(folder)
        for dtype in formats:
            kind = f"{case.shape.name}, {FORMATS[dtype]}"
            twins[model] = Twin(model, self.device, dtype, self.refuse)
            yield self.attempt(f"forward, {kind}", partial(self.forward, case, model, dtype))
            yield self.attempt(f"forward with everything kept, {kind}", partial(self.traced, case, model))
            yield self.attempt(f"writing with the KV cache, {kind}", partial(self.written, case, checkpoint))
            del twins[model]

    def refuse(self, sentence: str) -> None:
        """Raises RuntimeError: what the CPU computes in the card's place is not measured."""
        raise RuntimeError(sentence)

    def attempt(self, what: str, measure: Callable[[], Row]) -> Row:
        if self.card:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)
        torch.set_float32_matmul_precision("highest")  # a training before it may have asked for less
        try:
            row = measure()
        except (RuntimeError, ValueError) as error:  # used-up memory among them
            return Row(what, failed=str(error).strip().partition("\n")[0][:300])
        return replace(row, what=what, memory=torch.cuda.max_memory_allocated(self.device) if self.card else None)

    def time(self, action: Callable[[], object]) -> float:
        """Median seconds of the action, after it was done once."""
        times: list[float] = []
        action()
        began = self.now()
        while len(times) < LEAST or self.now() - began < self.seconds:
            start = self.now()
            action()
            times.append(self.now() - start)
        return median(times)

    def now(self) -> float:
        """Seconds, after all that the device was given."""
        if self.card:
            torch.cuda.synchronize(self.device)
        return perf_counter()

    def row(self, seconds: float, tokens: int, flops: float, dtype: torch.dtype) -> Row:
        peak = self.peaks.get(dtype)
        share = None if peak is None else flops / seconds / peak
        return Row("", seconds, tokens / seconds, flops / seconds / 1e12, share)

    def product(self, dtype: torch.dtype) -> Row:
        """What the matrix units do at best: random numbers, as zeros take less power and are faster."""
        size = 8192 if self.card else 512
        one, other = (torch.randn(size, size, device=self.device).to(dtype) for _ in range(2))
        seconds = self.time(lambda: one @ other)
        self.peaks[dtype] = 2 * size**3 / seconds
        return Row("", seconds, tflops=self.peaks[dtype] / 1e12)

    def ids(self, case: Case, rows: int, tokens: int) -> Tensor:
        chance = torch.Generator().manual_seed(0)
        return torch.randint(case.shape.config.vocab_size, (rows, tokens), generator=chance)

    def forward(self, case: Case, model: Transformer, dtype: torch.dtype) -> Row:
        """Logits of whole rows, which stay on the device."""
        there, ids = twins[model].model, self.ids(case, case.rows, case.shape.tokens).to(self.device)

        @torch.inference_mode()
        def read() -> object:
            return there(ids)

        return self.row(self.time(read), ids.numel(), self.flops(case), dtype)

    def flops(self, case: Case) -> int:
        """Operations of a forward pass over all rows."""
        return case.rows * sum(work.flops for work in forward(case.shape.config, case.shape.tokens))

    def traced(self, case: Case, model: Transformer) -> Row:
        """One text as a page has it: all that is recorded comes to host memory."""
        ids = self.ids(case, 1, min(LOOKED_AT, case.shape.tokens))
        seconds = self.time(lambda: run(model, ids))
        return Row("", seconds, ids.numel() / seconds)

    def written(self, case: Case, checkpoint: Checkpoint) -> Row:
        """One text after 16 tokens, greedily, as the page Generate writes."""
        ids = self.ids(case, 1, 16)
        seconds = self.time(lambda: list(generate(checkpoint, ids, case.written, greedy=True, stop_at_end=False)))
        return Row("", seconds, case.written / seconds)

    def trained(self, case: Case, base: Path, compiled: Literal["off", "on"]) -> Row:
        """An update of the engine's own trainer, with all its weights."""
        recipe = Recipe(
            model=open_base(str(base))[0].config,
            data=Data(Stories(400, 50)),
            schedule=Schedule(steps=10_000),
            batch=Batch(case.rows, case.shape.tokens),
            machine=Machine("cuda" if self.card else "cpu", compile=compiled, threads=torch.get_num_threads()),
            base=str(base),
        )
        trainer = opened(recipe, base / f"run-{compiled}")
        seconds = self.time(trainer.advance)
        if trainer.compilation.notes:
            raise RuntimeError(trainer.compilation.notes[0])
        return self.row(seconds, case.rows * case.shape.tokens, (1 + BACKWARD) * self.flops(case), self.format)


def main() -> int:
    parser = ArgumentParser(prog="python -m bench.gpu")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="shapes that a CPU computes in a moment")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row, or three repetitions")
    parser.add_argument("--out", type=Path, required=True, help="JSON, written anew after each row")
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("expected a CUDA device, and PyTorch sees none; see --device cpu --tiny", file=sys.stderr)
        return 3
    name = torch.cuda.get_device_name(0) if asked.device == "cuda" else "CPU"
    bench = Bench(torch.device(asked.device, 0), TINY if asked.tiny else CASES, asked.seconds)
    rows: list[Row] = []
    for row in bench.rows():
        rows.append(row)
        print(f"{row.what}: {row.failed or format(row.seconds or 0, '.4g') + ' s'}", flush=True)
        found = {"device": name, "torch": torch.__version__, "rows": [asdict(one) for one in rows]}
        asked.out.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return int(any(row.failed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
