"""The engine from the command line: `python -m engine train RECIPE`, `python -m engine size MODEL`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copyfile, copytree

from tqdm import tqdm

from engine.analysis.sizes.report import report
from engine.checkpoints import load
from engine.named import NAMED
from engine.training import Diverged, Recipe, RunFolder, Step, read_recipe, read_status, stop, train
from engine.training.latest import Progress, read_progress
from engine.training.parallel import leads

RUNS = Path("runs")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 done, 1 something was wrong with what was asked, 130 stopped before the end."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, OSError, Diverged) as error:
        print(f"loupe: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine", description="Loupe's transformer engine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    training = commands.add_parser("train", help="train a model, or continue a run that was stopped")
    training.add_argument("recipe", type=Path, help="a recipe, such as assets/recipes/stories.toml")
    training.add_argument("--out", type=Path, help="the run directory (default: runs/ and the recipe's name)")
    training.add_argument("--steps", type=int, help="instead of the recipe's schedule.steps")
    training.add_argument("--device", choices=["auto", "cpu", "cuda"], help="instead of the recipe's")
    training.add_argument("--threads", type=int, help="CPU threads; 0 for all cores")
    training.add_argument("--publish", type=Path, metavar="FOLDER", help="copy the finished checkpoint there")
    training.add_argument("--quiet", action="store_true", help="no progress bar")
    training.set_defaults(run=run_training)
    sizing = commands.add_parser("size", help="count a model's parameters, operations and memory")
    sizing.add_argument("model", help="a published name such as bert-base, a shipped one, or a checkpoint's folder")
    sizing.add_argument("--batch", type=int, default=1, help="texts at once (default: 1)")
    sizing.add_argument("--length", type=int, help="tokens of each (default: all that the model reads)")
    sizing.add_argument("--target", type=int, help="tokens of the target, with two stacks (default: as many)")
    sizing.add_argument("--bytes", type=int, default=2, help="of a number in memory (default: 2, half precision)")
    sizing.set_defaults(run=run_size)
    return parser


def run_size(options: argparse.Namespace) -> int:
    name = options.model
    config = NAMED[name].config if name in NAMED else load(name).config
    length = config.context if options.length is None else options.length
    print("\n".join(report(config, options.batch, length, options.target, options.bytes)))
    return 0


def run_training(options: argparse.Namespace) -> int:
    recipe = changed(read_recipe(options.recipe), options)
    run = RunFolder(options.out or default_folder(options.recipe))
    run.path.mkdir(parents=True, exist_ok=True)  # a signal may come before anything else is there
    signal.signal(signal.SIGTERM, lambda *_: stop(run.path))
    signal.signal(signal.SIGINT, lambda *_: interrupted(run))
    follow(recipe, run, options.quiet or not leads())
    if not leads():
        return 0
    status = read_status(run.status)
    if status is None or status.state != "finished":
        print(f"Stopped. The same command continues it from {run.latest}.", file=sys.stderr)
        return 130
    if options.publish:
        copytree(run.checkpoint, options.publish, dirs_exist_ok=True)
        copyfile(run.recipe, options.publish / "recipe.toml")
    print(f"Finished: {options.publish or run.checkpoint}", file=sys.stderr)
    return 0


def changed(recipe: Recipe, options: argparse.Namespace) -> Recipe:
    """With what the command line says instead."""
    if options.steps is not None:
        warmup = min(recipe.schedule.warmup, options.steps)
        recipe = replace(recipe, schedule=replace(recipe.schedule, steps=options.steps, warmup=warmup))
    machine = {k: v for k in ("device", "threads") if (v := getattr(options, k)) is not None}
    return replace(recipe, machine=replace(recipe.machine, **machine))


def default_folder(recipe: Path) -> Path:
    """A recipe that lies in a run directory is that run's."""
    return recipe.parent if (recipe.parent / "status.json").exists() else RUNS / recipe.stem


def interrupted(run: RunFolder) -> None:
    """Ctrl-C asks for a stop after the present update; a second one does not wait for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stop(run.path)


def follow(recipe: Recipe, run: RunFolder, quiet: bool) -> None:
    """Train, and show it."""
    shown: dict[str, str] = {}
    begun = (read_progress(run.latest) or Progress()).step
    total = recipe.schedule.steps
    with tqdm(total=total, initial=begun, unit="step", disable=quiet, dynamic_ncols=True) as bar:
        for step in train(recipe, run.path):
            shown |= figures(step)
            bar.set_postfix(shown, refresh=False)
            bar.update(step.step - bar.n)


def figures(step: Step) -> dict[str, str]:
    named = {"loss": step.loss, "held-out": step.held_out_loss}
    shown = {name: f"{value:.3f}" for name, value in named.items() if value is not None}
    return shown | ({"tok/s": f"{step.tokens_per_second:,.0f}"} if step.tokens_per_second else {})
