"""`sweep MODEL PAIRS`: what each head, or place, of a model does to the answers of a file of pairs of prompts; `sweep
RECIPE` reads from a file what that is asked of."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

from engine.analysis.interventions.metric import MetricKind
from engine.analysis.interventions.pair_set import COLUMNS, PromptPair, SweepOptions, mean_of, read_pairs
from engine.analysis.interventions.patching import By
from engine.analysis.interventions.sites import SITES
from engine.analysis.interventions.sweep import Direction, Effects
from engine.analysis.interventions.sweep_file import check_out, write_sweep
from engine.checkpoints import Checkpoint, load
from engine.model.from_dict import build
from engine.plurals import count_words
from engine.training.base.base import resolve_base
from engine.training.cluster.ray_kinds.pair_sweep import Found, find_part, on_cluster
from engine.training.recipe.recipe_file import parse_toml, read_toml

GIVEN = ("pairs", "site", "by", "metric", "direction", "out")  # of the command line, which counts more than a recipe
PACE = 1.0  # seconds between two looks at what a cluster finds


@dataclass(frozen=True, kw_only=True)
class SweepRecipe(SweepOptions):
    """A sweep of the `model` over the file `pairs`, of which each pair's effects are written to the file `out`, if any.
    Raises ValueError as SweepOptions, for one that lacks a file, and for an `out` of another kind."""

    model: str = ""
    pairs: str = ""
    out: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        lacking = [name for name in ("model", "pairs") if not getattr(self, name)]
        if lacking:
            raise ValueError(f"a sweep needs {' and '.join(lacking)}; name what is missing.")
        if self.out:
            check_out(Path(self.out))


def add_to(commands: Any) -> None:
    sweeping = commands.add_parser("sweep", help="patch every head, or place, over a file of pairs of prompts")
    keys = ", ".join(one.name for one in fields(SweepRecipe))
    sweeping.add_argument(
        "model", help=f"a shipped model, a folder or a file, run:NAME[@STEP], hub:org/name, or a .toml with {keys}"
    )
    sweeping.add_argument(
        "pairs", nargs="?", help=f".csv, .tsv, .jsonl or .parquet with the columns {', '.join(COLUMNS)}"
    )
    add_options(sweeping)
    sweeping.set_defaults(run=sweep)


def add_options(parser: Any) -> None:
    parser.add_argument("--site", choices=SITES, help="what is patched (default: z, the heads' output)")
    parser.add_argument("--by", choices=get_args(By), nargs="+", help="default: head, of a head; else pos")
    parser.add_argument("--metric", choices=get_args(MetricKind), help="default: logit")
    parser.add_argument("--direction", choices=get_args(Direction), help="default: restore")
    parser.add_argument("--out", help="a .parquet or .csv file of every pair's effects")


def given_options(options: argparse.Namespace) -> dict[str, Any]:
    found = {name: getattr(options, name, None) for name in GIVEN}
    return {name: tuple(one) if name == "by" else one for name, one in found.items() if one is not None}


def read_sweep_recipe(path: Path | str) -> SweepRecipe:
    """A recipe of a TOML file, whose paths are those from its folder. Raises as `read_recipe` of trainings."""
    path = Path(path)
    recipe: SweepRecipe = parse_toml(read_toml(path), str(path), lambda data: build(SweepRecipe, data))
    pairs, out = (str(path.parent / one) if one else "" for one in (recipe.pairs, recipe.out))
    return replace(recipe, model=resolve_base(recipe.model, path.parent), pairs=pairs, out=out)


def sweep(options: argparse.Namespace) -> int:
    """Prints means with tabs between their columns; writes each pair behind them where a file is named."""
    if options.model.endswith(".toml"):
        recipe = replace(read_sweep_recipe(options.model), **given_options(options))
    else:
        recipe = SweepRecipe(model=options.model, **given_options(options))
    pairs = read_pairs(recipe.pairs)
    checkpoint = load(recipe.model)
    found = find_effects(recipe, checkpoint, pairs)
    for row, why in found.items():
        if isinstance(why, str):
            print(f"row {row + 1} is left out: {why}", file=sys.stderr)
    swept = [effects.effect for effects in found.values() if isinstance(effects, Effects)]
    whole = mean_of(swept)
    print("layer", *recipe.places, "mean", "low", "high", sep="\t")
    for place in whole.mean.isfinite().nonzero().tolist():
        values = (float(one[tuple(place)]) for one in (whole.mean, whole.low, whole.high))
        print(*place, *(f"{value:.4f}" for value in values), sep="\t")
    print(f"{len(swept)} of {count_words(len(pairs), 'pair')}", file=sys.stderr)
    if recipe.out:
        write_sweep(Path(recipe.out), recipe.model, checkpoint, pairs, recipe, found)
    return 0


def find_effects(recipe: SweepRecipe, checkpoint: Checkpoint, pairs: Sequence[PromptPair]) -> Found:
    """Effects by row, or why a row has none: found on the cluster where one is set, else here."""
    work = on_cluster(recipe.model, checkpoint, pairs, recipe)
    if work is None:
        return find_part(checkpoint, pairs, recipe, range(len(pairs)))
    told = ""
    for part, step in enumerate(work.steps):
        while says := work.wait(part):
            if says != told:
                print(says, file=sys.stderr)
            told = says
            time.sleep(PACE)
        step()
    if work.trouble:
        print(work.trouble, file=sys.stderr)
    return work.results
