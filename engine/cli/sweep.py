"""`sweep MODEL PAIRS`: what each head, or place, of a model does to the answers of a file of pairs of prompts."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from engine.analysis.interventions.metric import MetricKind
from engine.analysis.interventions.pair_set import COLUMNS, mean_of, read_pairs, sweep_pairs
from engine.analysis.interventions.patching import By
from engine.analysis.interventions.sites import SITES
from engine.analysis.interventions.sweep import Direction, Effects
from engine.checkpoints import load
from engine.plurals import count_words


def add_to(commands: Any) -> None:
    sweeping = commands.add_parser("sweep", help="patch every head, or place, over a file of pairs of prompts")
    sweeping.add_argument("model", help="a shipped model, a folder or a file, run:NAME[@STEP], or hub:org/name")
    sweeping.add_argument("pairs", help=f".csv, .tsv, .jsonl or .parquet with the columns {', '.join(COLUMNS)}")
    sweeping.add_argument("--site", choices=SITES, default="z", help="what is patched (default: z, the heads' output)")
    sweeping.add_argument("--by", choices=get_args(By), nargs="+", help="default: head, of a head; else pos")
    sweeping.add_argument("--metric", choices=get_args(MetricKind), default="logit", help="default: logit")
    sweeping.add_argument("--direction", choices=get_args(Direction), default="restore", help="default: restore")
    sweeping.add_argument("--out", type=Path, help="a .parquet or .csv file of every pair's effects")
    sweeping.set_defaults(run=sweep)


def sweep(options: argparse.Namespace) -> int:
    """Prints means with tabs between their columns; writes each pair behind them where a file is named."""
    by: tuple[By, ...] = tuple(options.by or (("head",) if SITES[options.site].by_head else ("pos",)))
    if options.out is not None and options.out.suffix not in (".parquet", ".csv"):
        raise ValueError(f"--out must end with .parquet or .csv, got {options.out.name!r:.80}; name it so.")
    pairs = read_pairs(options.pairs)

    def tell(row: int, why: str) -> None:
        print(f"row {row + 1} is left out: {why}", file=sys.stderr)

    checkpoint = load(options.model)
    found = list(sweep_pairs(checkpoint, pairs, options.site, by, options.metric, options.direction, tell))
    whole = mean_of([effects.effect for _, effects in found])
    axes = ("layer", *(name for name in get_args(By) if name in by))
    print(*axes, "mean", "low", "high", sep="\t")
    for place in whole.mean.isfinite().nonzero().tolist():
        values = (float(one[tuple(place)]) for one in (whole.mean, whole.low, whole.high))
        print(*place, *(f"{value:.4f}" for value in values), sep="\t")
    print(f"{len(found)} of {count_words(len(pairs), 'pair')}", file=sys.stderr)
    if options.out is not None:
        write_table(options.out, tabulate(axes, found))
    return 0


def tabulate(axes: tuple[str, ...], found: Sequence[tuple[int, Effects]]) -> dict[str, list[Any]]:
    """Columns with a line for each place of each pair."""
    columns: dict[str, list[Any]] = {name: [] for name in ("pair", *axes, "effect", "moved")}
    for row, effects in found:
        places = effects.effect.isfinite().nonzero().T
        columns["pair"] += [row] * places.shape[1]
        for name, at in zip(axes, places, strict=True):
            columns[name] += at.tolist()
        columns["effect"] += effects.effect[tuple(places)].tolist()
        columns["moved"] += effects.moved[tuple(places)].tolist()
    return columns


def write_table(file: Path, columns: dict[str, list[Any]]) -> None:
    """Raises ValueError for a .parquet file where pyarrow is not installed."""
    if file.suffix == ".csv":
        with file.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
        return
    try:
        from pyarrow import parquet, table  # type: ignore[import-untyped]  # slow to import
    except ModuleNotFoundError:
        raise ValueError(f"{file.name} needs pyarrow, which is not installed; name a .csv file.") from None
    parquet.write_table(table(columns), file)
