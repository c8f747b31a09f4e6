"""A run to take away: a step as a checkpoint, the curves as a table or for TensorBoard, and its command line."""

from __future__ import annotations

import csv
import io
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.checkpoints import load
from engine.checkpoints.run_steps import latest_step, name_step, weights
from engine.checkpoints.save import export_checkpoint
from engine.places import SAID
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run import event_file
from engine.training.run.folder import RunFolder, runs_folder
from engine.training.run.names import existing_run
from engine.training.run.origin import read_origin
from engine.training.run.snapshots import progress

ALSO = "also"  # the column of metrics that holds more of them
SPREAD = ("tokens", "seconds", "tokens_per_second")


def checkpoint(name: str, step: int | None, to: Path, folder: Path | str | None = None) -> Path:
    """A zip, in `to`, of a folder that transformers reads wherever it has such a model; `step` None is the newest.

    The card of a step that is not the finished model says which step it is and what was measured there.
    """
    run = RunFolder(existing_run(name, runs_folder(folder)))
    file = weights(name_step(run.path.name, step), runs_folder(folder))
    if file is None:
        raise ValueError(f"{name} has kept no weights of {'any step' if step is None else f'step {step:,}'} yet.")
    found = load(file)
    reached = latest_step(run.path) if file == run.weights else int(re.sub(r"\D", "", file.stem))
    recipe = read_recipe(run.recipe)
    if reached == recipe.schedule.steps and run.checkpoint.is_dir():
        card = dict(load(run.checkpoint).card)
    else:
        measured = next((line for line in run.read_metrics() if line["step"] == reached), {})
        card = {"name": run.path.name, "about": recipe.about, "objective": recipe.objective.kind, "steps": reached}
        card |= {key: value for key, value in measured.items() if key.startswith(("loss", "accuracy", "held_out"))}
        card |= {"seed": recipe.seed}
    return export_checkpoint(replace(found, name=f"{run.path.name}-step-{reached}", card=card), "folder", to)


def metrics_csv(name: str, folder: Path | str | None = None) -> str:
    """metrics.jsonl as CSV: a row a logged step, a column a number, empty where it was not measured."""
    lines = [flat(line) for line in RunFolder(existing_run(name, runs_folder(folder))).read_metrics()]
    columns = list(dict.fromkeys(column for line in lines for column in line))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def flat(line: dict[str, Any]) -> dict[str, Any]:
    """Flattens a line: what was counted beside the rest stands under its own name."""
    return {key: value for key, value in line.items() if key != ALSO} | line.get(ALSO, {})


def tensorboard(name: str, folder: Path | str | None = None) -> tuple[str, bytes]:
    """The curves as a file of events, with the name that TensorBoard looks for: put it into a folder of its own.

    Held-out numbers are beside those of training: "loss/training", "loss/held_out".
    """
    run = RunFolder(existing_run(name, runs_folder(folder)))
    began = read_origin(run).created
    recipe = "```toml\n" + run.recipe.read_text(encoding="utf-8") + "```"
    events = [event_file.begin(), event_file.text("recipe/text_summary", recipe, 0, began)]
    for line in run.read_metrics():
        for key, value in flat(line).items():
            if key != "step" and isinstance(value, int | float):
                events.append(event_file.scalar(tag(key), value, line["step"], began + line["seconds"]))
    return f"events.out.tfevents.{int(began)}.{run.path.name}", b"".join(events)


def tag(key: str) -> str:
    plain = key.removeprefix("held_out_")
    if plain in ("lr", "grad_norm", *SPREAD):
        return f"training/{plain}"
    return f"{plain}/{'training' if plain == key else 'held_out'}"


def command(name: str, folder: Path | str | None = None) -> str:
    """The command line, from Loupe's folder, that makes this run again beside itself, with as many threads, so that
    sums are rounded alike; of a fork it is two lines."""
    run = RunFolder(existing_run(name, runs_folder(folder)))
    origin = read_origin(run)
    again = f"{run.path.name} again"
    place = runs_folder(folder) / again
    train, made = f"{SAID} train", progress(run)
    alike = f" --threads {made.threads}" if made is not None and made.threads else ""
    if not origin.run:
        return f"{train} {shlex.quote(str(run.recipe))} --out {shlex.quote(str(place))}{alike}"
    forked = f"{SAID} {shlex.join(['fork', origin.run, str(origin.step), again, *origin.changes])}"
    return f"{forked}\n{train} {shlex.quote(str(place / 'recipe.toml'))}{alike}"
