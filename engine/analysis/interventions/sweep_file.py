"""Files of what a sweep over pairs of prompts found: a line for each place of each pair, with its prompts.

A .parquet file says in its metadata what was asked of which weights, and which pairs could not be swept, so that what
was found can be shown again. Of a .csv file the pairs alone are read.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from engine.analysis.interventions.pair_set import COLUMNS, MOST, PromptPair, SweepOptions, pairs_of
from engine.analysis.interventions.sweep import Effects
from engine.analysis.survey_file import digest_weights
from engine.checkpoints import Checkpoint
from engine.data.table import MAX_CELLS, check_unpacked, open_parquet, parse_table, read_raw, unpacked_bytes
from engine.json_text import parse_json
from engine.model.from_dict import build
from engine.plurals import count_words

KINDS = (".parquet", ".csv")
KEY = b"loupe.sweep"  # of the metadata
VERSION = 1


@dataclass(frozen=True)
class LeftOut:
    """A pair that could not be swept, of the row `pair` from 0, and why."""

    pair: int
    why: str
    clean: str
    corrupted: str
    answer: str
    wrong: str = ""


@dataclass(frozen=True, kw_only=True)
class SweepHeader(SweepOptions):
    """The sweep that was asked of the model of that name, whose `weights` have that digest."""

    version: int
    model: str
    weights: str
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class SweptPairs:
    """Pairs of a file. With a `header` they have effects by row, layer first, or are left out for a reason."""

    pairs: Sequence[PromptPair]
    header: SweepHeader | None = None
    effects: Mapping[int, Tensor] = field(default_factory=dict)
    left_out: Mapping[int, str] = field(default_factory=dict)


def check_out(file: Path) -> None:
    if file.suffix not in KINDS:
        raise ValueError(f"out must end with {' or '.join(KINDS)}, got {file.name!r:.80}; name it so.")


def write_sweep(
    file: Path,
    model: str,
    checkpoint: Checkpoint,
    pairs: Sequence[PromptPair],
    options: SweepOptions,
    found: Mapping[int, Effects | str],
) -> None:
    """Writes the effects of each pair `found` by its row, or why it has none. Raises ValueError for a file of another
    kind than KINDS, and for a .parquet file where pyarrow is not installed."""
    check_out(file)
    columns = tabulate(options, found)
    prompts = {name: [getattr(pair, name) for pair in pairs] for name in COLUMNS}
    if not any(prompts["wrong"]):
        del prompts["wrong"]
    if file.suffix == ".csv":
        with file.open("w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out)
            writer.writerow([*columns, *prompts])
            texts = [[one[row] for row in columns["pair"]] for one in prompts.values()]
            writer.writerows(zip(*columns.values(), *texts, strict=True))
        return
    try:
        import pyarrow  # type: ignore[import-untyped]  # slow to import
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise ValueError(f"{file.name} needs pyarrow, which is not installed; name a .csv file.") from None
    left_out = [LeftOut(row, why, **asdict(pairs[row])) for row, why in found.items() if isinstance(why, str)]
    header = SweepHeader(
        site=options.site, by=options.places, metric=options.metric, direction=options.direction, version=VERSION,
        model=model, weights=digest_weights(checkpoint), left_out=tuple(left_out),
    )  # fmt: skip
    rows = pyarrow.array(columns["pair"], pyarrow.int32())
    said = {name: pyarrow.DictionaryArray.from_arrays(rows, pyarrow.array(one)) for name, one in prompts.items()}
    table = pyarrow.table({**columns, **said})
    parquet.write_table(table.replace_schema_metadata({KEY: json.dumps(asdict(header))}), file)


def tabulate(options: SweepOptions, found: Mapping[int, Effects | str]) -> dict[str, list[Any]]:
    """Columns with a line for each place of each pair that has effects."""
    axes = ("layer", *options.places)
    columns: dict[str, list[Any]] = {name: [] for name in ("pair", *axes, "effect", "moved")}
    for row, effects in found.items():
        if isinstance(effects, str):
            continue
        places = effects.effect.isfinite().nonzero().T
        columns["pair"] += [row] * places.shape[1]
        for name, at in zip(axes, places, strict=True):
            columns[name] += at.tolist()
        columns["effect"] += effects.effect[tuple(places)].tolist()
        columns["moved"] += effects.moved[tuple(places)].tolist()
    return columns


def read_sweep(file: Path | str) -> SweptPairs:
    """Pairs of a file as `read_pairs` reads them, with what was found where `write_sweep` wrote it as .parquet. Raises
    ValueError, in one sentence, for a file that is damaged, or holds neither."""
    raw, name = read_raw(Path(file))
    if name.lower().endswith(".parquet"):
        with open_parquet(raw) as (parquet, _):
            said = (parquet.schema_arrow.metadata or {}).get(KEY)
            if said is not None:
                try:
                    return read_effects(parquet, build(SweepHeader, parse_json(said)))
                except ValueError as error:
                    told = str(error).rstrip(".")
                    raise ValueError(f"{name} must hold what `sweep` wrote, but {told}; write it again.") from None
    return SweptPairs(pairs_of(parse_table(raw, name), name))


def read_effects(parquet: Any, header: SweepHeader) -> SweptPairs:
    from pyarrow import types

    if header.version != VERSION:
        raise ValueError(f"its version must be {VERSION}, and is {header.version}")
    places, schema = ("layer", *header.places), parquet.schema_arrow
    prompts = [name for name in COLUMNS if name in schema.names]
    kinds = dict.fromkeys(("pair", *places), types.is_integer) | {"effect": types.is_floating}
    kinds |= dict.fromkeys((*COLUMNS[:3], *prompts), types.is_dictionary)
    wrong = [one for one, is_kind in kinds.items() if one not in schema.names or not is_kind(schema.field(one).type)]
    if wrong:
        raise ValueError(f"it lacks the columns {', '.join(wrong)}, or they hold something else")
    table = parquet.read(columns=[*kinds]).combine_chunks()
    if any(table[one].null_count for one in kinds):
        raise ValueError("cells of its columns are empty")
    numbers = [torch.from_numpy(table[one].to_numpy().astype("int64")) for one in ("pair", *places)]
    if any(len(one) and int(one.min()) < 0 for one in numbers):
        raise ValueError("it counts pairs or places below 0")
    left_out = {one.pair: one for one in header.left_out}
    rows = sorted({*numbers[0].unique().tolist(), *left_out})
    sizes = [int(one.max()) + 1 if len(one) else 0 for one in numbers[1:]]
    if len(rows) > MOST or prod(sizes) * len(rows) > MAX_CELLS:
        each = count_words(prod(sizes), "place")
        raise ValueError(f"it has {count_words(len(rows), 'pair')} with {each} each, which are too many")
    at = {row: number for number, row in enumerate(rows)}
    index = torch.tensor([at[row] for row in numbers[0].tolist()], dtype=torch.long)
    effects = torch.full((len(rows), *sizes), torch.nan)
    effects[index, *numbers[1:]] = torch.from_numpy(table["effect"].to_numpy().astype("float32"))
    first = dict(sorted({number: line for line, number in reversed([*enumerate(index.tolist())])}.items()))
    chosen = table.select(prompts).take([*first.values()]).combine_chunks()
    check_unpacked(sum(unpacked_bytes(chunk) for name in prompts for chunk in chosen[name].chunks))
    texts = {number: PromptPair(**line) for number, line in zip(first, chosen.to_pylist(), strict=True)}
    known = {at[row]: one for row, one in left_out.items() if at[row] not in texts}
    texts |= {number: PromptPair(one.clean, one.corrupted, one.answer, one.wrong) for number, one in known.items()}
    found = {number: effects[number] for number in first}
    return SweptPairs([texts[n] for n in range(len(rows))], header, found, {n: one.why for n, one in known.items()})
