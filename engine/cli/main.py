"""The command line, `python -m engine` in a checkout and `loupe` where a wheel is installed: `train RECIPE`, `search
RECIPE KEY=VALUES`, `options`, `runs`, `fork RUN STEP NEW`, `generate MODEL PROMPT`, `analyse MODEL TEXT`, `sweep MODEL
PAIRS` or either with its `RECIPE`, `size MODEL`, `serve`, `open FOLDER`, `doctor`."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import time
import tomllib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from shutil import copyfile, copytree
from typing import Any

from tqdm import tqdm

from engine.analysis.sizes.report import report
from engine.checkpoints import load
from engine.checkpoints.assemble import FLOATS
from engine.cli import analyse, doctor, serve, sweep
from engine.cli import generate as cli_generate
from engine.data import digits
from engine.model.presets import NAMED
from engine.places import COMMAND, RECIPES, ROOT, SAID
from engine.plurals import count_words
from engine.settings import read_settings
from engine.training import Recipe, RunFolder, Step, TrainingFailed, read_recipe, read_status, stop, train
from engine.training.base.base import read_transfer
from engine.training.cluster.parallel import leads
from engine.training.cluster.store import kept_alike
from engine.training.launch.choice import choose_launcher
from engine.training.launch.processes import wait_in_line
from engine.training.launch.search import format_search, read_axis, read_search, start_search
from engine.training.recipe.options import format_options
from engine.training.run.atomic import read_json, write_json
from engine.training.run.folder import runs_folder
from engine.training.run.fork import fork
from engine.training.run.latest import Progress, read_progress
from engine.training.run.runs import format_table, runs
from engine.training.run.status import ACTIVE, write_status

RECIPE = "a file, such as assets/recipes/stories.toml, or the name of a shipped one, such as stories or reverse"
TRAINS = "train a model, or continue a run that was stopped"
ITS_OPTIONS = f"All options of a recipe and what they mean: {SAID} options"
PACE = 1.0  # seconds between two looks at the runs of a search


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 done, 1 something was wrong with what was asked, 130 stopped before the end."""
    read_settings()
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, OSError, TrainingFailed) as error:
        print(f"loupe: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=SAID, description="Loupe's transformer engine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    training = commands.add_parser("train", help=TRAINS, epilog=ITS_OPTIONS)
    training.add_argument("recipe", type=find_recipe, help=RECIPE)
    training.add_argument("--out", type=Path, help="the run directory (default: runs/ and the recipe's name)")
    training.add_argument("--steps", type=int, help="instead of the recipe's schedule.steps")
    training.add_argument("--device", choices=["auto", "cpu", "cuda"], help="instead of the recipe's")
    training.add_argument("--threads", type=int, help="CPU threads; 0 for all cores, or a share in the background")
    training.add_argument("--publish", type=Path, metavar="FOLDER", help="copy the finished checkpoint there")
    training.add_argument("--stored", choices=("float32", "float16"), default="float32", help="as it is published")
    training.add_argument("--licence", help="under which it is published, such as MIT; its card says so")
    training.add_argument("--quiet", action="store_true", help="no progress bar")
    training.add_argument("--wait", action="store_true", help="wait for a turn, as trainings of the app do")
    training.add_argument("--background", action="store_true", help="let other programs have the cores first")
    training.add_argument("--seconds", type=int, metavar="N", help="stop after N seconds; it can be continued")
    training.set_defaults(run=run_training)
    searching = commands.add_parser("search", help="train a recipe with several values of some options, and compare")
    searching.add_argument("recipe", type=find_recipe, help=RECIPE)
    searching.add_argument("axes", nargs="*", metavar="KEY=VALUES", help="such as optimiser.lr=1e-3,3e-3 seed=0,1,2")
    searching.add_argument("--name", help="of the search (default: the recipe's); with one that is there, go on")
    searching.add_argument("--table", action="store_true", help="only say how its runs are doing")
    searching.set_defaults(run=run_search)
    explaining = commands.add_parser("options", help="all options of a recipe, and what each means")
    explaining.set_defaults(run=lambda _: print(format_options()) or 0)
    listing = commands.add_parser("runs", help="the trainings on this machine, and how each is doing")
    place = runs_folder(None)
    listing.add_argument("folder", type=Path, nargs="?", default=place, help=f"of run directories (default: {place})")
    listing.set_defaults(run=lambda options: print("\n".join(format_table(runs(options.folder)))) or 0)
    forking = commands.add_parser("fork", help="a new run that goes on from a step of another; `train` continues it")
    forking.add_argument("name", help="the run")
    forking.add_argument("step", type=int, help="one of which it kept the weights")
    forking.add_argument("new", help="what the new run is called")
    forking.add_argument("changes", nargs="*", metavar="KEY=VALUE", help="of the recipe, such as optimiser.lr=1e-4")
    forking.set_defaults(run=run_fork)
    for one in (cli_generate, analyse, sweep, serve, doctor):
        one.add_to(commands)
    sizing = commands.add_parser("size", help="count a model's parameters, operations and memory")
    sizing.add_argument("model", help="a published name such as bert-base, a shipped one, a folder, or run:NAME[@STEP]")
    sizing.add_argument("--batch", type=int, default=1, help="texts at once (default: 1)")
    sizing.add_argument("--length", type=int, help="tokens of each (default: all that the model reads)")
    sizing.add_argument("--target", type=int, help="tokens of the target, with two stacks (default: as many)")
    sizing.add_argument("--bytes", type=int, default=2, help="of a number in memory (default: 2, half precision)")
    sizing.set_defaults(run=run_size)
    return parser


def find_recipe(text: str) -> Path:
    """A path that is not here is looked for in Loupe's folder, as a model's is, and among the shipped recipes."""
    given = Path(text)
    places = [given, ROOT / given, *(folder / f"{text}.toml" for folder in RECIPES)]
    return next((path for path in places if path.is_file()), given)


def run_size(options: argparse.Namespace) -> int:
    name = options.model
    config = NAMED[name].config if name in NAMED else load(name).config
    length = config.context if options.length is None else options.length
    print("\n".join(report(config, options.batch, length, options.target, options.bytes)))
    return 0


def run_search(options: argparse.Namespace) -> int:
    """Starts the runs, and shows them as they end; Ctrl-C leaves them at work."""
    name = options.name or options.recipe.stem
    if not options.table:
        axes = [read_axis(text) for text in options.axes]
        recipe, beside = read_recipe(options.recipe), options.recipe.parent.resolve()
        started = start_search(choose_launcher(), recipe, axes, name, runs_folder(None), beside)
        again = f"{SAID} {shlex.join(['search', str(options.recipe), '--name', name, '--table'])}"
        print(f"{count_words(len(started), 'run')} at work; Ctrl-C leaves them so, and {again} tells of them.")
        with tqdm(total=len(started), unit="run", dynamic_ncols=True) as bar:
            while (ended := sum(run.status.state not in ACTIVE for run in read_search(name))) < len(started):
                bar.update(ended - bar.n)
                time.sleep(PACE)
            bar.update(ended - bar.n)
    print("\n".join(format_search(read_search(name))))
    return 0


def run_fork(options: argparse.Namespace) -> int:
    made = fork(options.name, options.step, options.new, dict(map(change, options.changes)))
    print(f"Made {made}. Train it: {SAID} train {shlex.quote(str(made / 'recipe.toml'))}", file=sys.stderr)
    return 0


def change(text: str) -> tuple[str, Any]:
    """A value is written as in TOML; what is none is text."""
    key, _, value = text.partition("=")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


def run_training(options: argparse.Namespace) -> int:
    recipe = override_recipe(read_recipe(options.recipe), options)
    run = RunFolder(options.out or default_folder(options.recipe))
    if options.wait:
        wait(run, recipe, options)
    run.path.mkdir(parents=True, exist_ok=True)  # a signal may come before anything else is there
    signal.signal(signal.SIGTERM, lambda *_: stop(run.path))
    signal.signal(signal.SIGINT, lambda *_: stop_on_interrupt(run))
    late = stop_after(run, options.seconds)
    with kept_alike(run.path) if leads() else nullcontext():
        return train_run(options, recipe, run, late)


def train_run(options: argparse.Namespace, recipe: Recipe, run: RunFolder, late: list[bool]) -> int:
    """Trains, and tells of the end. `late` is no longer empty once it was stopped for its time."""
    follow(recipe, run, options.quiet or not leads(), options.background)
    if not leads():
        return 0
    status = read_status(run.status)
    if status is not None and status.state == "stopped" and late:
        time = count_words(options.seconds, "second")
        told = f"it ran for {time}, as long as is allowed at a time; resume it to go on."
        write_status(run.status, replace(status, cause="time limit", error=told))
    if status is None or status.state != "finished":
        print(f"Stopped. The same command continues it from {run.latest}.", file=sys.stderr)
        return 130
    if options.publish:
        publish(run, options.publish, options.licence, options.stored)
    print(f"Finished: {options.publish or run.checkpoint}", file=sys.stderr)
    return 0


def publish(run: RunFolder, folder: Path, licence: str | None, stored: str = "float32") -> None:
    copytree(run.checkpoint, folder, dirs_exist_ok=True)
    if stored != "float32":
        load(run.checkpoint, dtype=FLOATS[stored]).save(folder)
    copyfile(run.recipe, folder / "recipe.toml")
    if licence:
        card = read_json(folder / "card.json")
        data = f", {digits.LICENCE}" if "digits" in card["data"] else ""  # a corpus has its own beside it
        write_json(folder / "card.json", {**card, "licence": licence + data})


def wait(run: RunFolder, recipe: Recipe, options: argparse.Namespace) -> None:
    """This process becomes one that waits, and then the same command without --wait; it does not return."""
    if "WORLD_SIZE" in os.environ:
        raise ValueError("--wait is for one process; under torchrun leave it out.")
    recipe_file, out = options.recipe.resolve(), run.path.resolve()
    command = [*COMMAND, "train", str(recipe_file), "--out", str(out)]
    for name in ("steps", "device", "threads", "publish", "stored", "licence", "seconds"):
        if (value := getattr(options, name)) is not None:
            command += [f"--{name}", str(value)]
    command += [f"--{name}" for name in ("quiet", "background") if getattr(options, name)]
    wait_in_line(run, recipe, command)


def stop_after(run: RunFolder, seconds: int | None) -> list[bool]:
    """Ask for a stop after so many seconds. What is returned is no longer empty then."""
    late: list[bool] = []

    def stop_late(*_: object) -> None:
        late.append(True)
        stop(run.path)

    if seconds and hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, stop_late)
        signal.alarm(seconds)
    return late


def override_recipe(recipe: Recipe, options: argparse.Namespace) -> Recipe:
    """Replaces steps, device and threads of the recipe with those of the command line."""
    if options.steps is not None:
        warmup = min(recipe.schedule.warmup, options.steps)
        recipe = replace(recipe, schedule=replace(recipe.schedule, steps=options.steps, warmup=warmup))
    machine = {k: v for k in ("device", "threads") if (v := getattr(options, k)) is not None}
    return replace(recipe, machine=replace(recipe.machine, **machine))


def default_folder(recipe: Path) -> Path:
    """A recipe that lies in a run directory is that run's."""
    return recipe.parent if (recipe.parent / "status.json").exists() else runs_folder(None) / recipe.stem


def stop_on_interrupt(run: RunFolder) -> None:
    """Ctrl-C asks for a stop after the present update; a second one does not wait for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stop(run.path)


def follow(recipe: Recipe, run: RunFolder, quiet: bool, background: bool = False) -> None:
    """Train, and show it."""
    shown: dict[str, str] = {}
    begun = (read_progress(run.latest) or Progress()).step
    total = recipe.schedule.steps
    with tqdm(total=total, initial=begun, unit="step", disable=quiet, dynamic_ncols=True) as bar:
        for step in train(recipe, run.path, background):
            if step.step == 0 and (transfer := read_transfer(run.path)) is not None:
                tqdm.write(str(transfer), file=sys.stderr)
            shown |= figures(step)
            bar.set_postfix(shown, refresh=False)
            bar.update(step.step - bar.n)


def figures(step: Step) -> dict[str, str]:
    named = {"loss": step.loss, "held-out": step.held_out_loss}
    shown = {name: f"{value:.3f}" for name, value in named.items() if value is not None}
    return shown | ({"tok/s": f"{step.tokens_per_second:,.0f}"} if step.tokens_per_second else {})
