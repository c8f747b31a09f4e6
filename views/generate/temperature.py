"""A distribution at every temperature of a grid: of numbers that a person wrote, or of the logits after a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import Tensor

from engine.generation.prompt import follows
from engine.generation.sampling import Sampling, distribution, effective_choices, entropy
from views.core.table_files import Table
from views.generate.availability import why_no_logits
from views.generate.charts import HIGHEST_TEMPERATURE, TEMPERATURE_STEP
from views.generate.session import GenerationContext, Settings
from views.generate.steps import BITS

GRID = tuple(round(TEMPERATURE_STEP * i, 2) for i in range(round(HIGHEST_TEMPERATURE / TEMPERATURE_STEP) + 1))
NUMBERS = (2, 8)  # that a person may write, at least and at most
LARGEST = 100.0
ROWS = 8  # of the most probable tokens
FIRST = "2, 4, 5"  # the numbers that the tab opens on


class TemperatureSweep(NamedTuple):
    """Axes: probability (temperature, row); rest, entropy (bits) and choices (temperature); logit (row). `rest` is the
    probability of all that no row shows; entropy and effective choices are of the whole distribution."""

    temperature: Tensor
    logit: Tensor
    probability: Tensor
    rest: Tensor
    entropy: Tensor
    choices: Tensor


def parse_numbers(text: str) -> list[float]:
    """Numbers with commas or spaces between them. Raises ValueError, which says what they must be, for others."""
    low, high = NUMBERS
    words = text.replace(",", " ").replace("−", "-").split()
    must = f"{low} to {high} numbers from {-LARGEST:g} to {LARGEST:g}, with commas between them"
    try:
        found = [float(word) for word in words]
    except ValueError:
        raise ValueError(must) from None
    if not low <= len(found) <= high or not all(math.isfinite(one) and abs(one) <= LARGEST for one in found):
        raise ValueError(must)
    return found


def logits_after(writing: GenerationContext, begun: tuple[int, ...]) -> Tensor:
    """Logits (vocab) after a text; of one longer than the model reads, after as many of its last tokens as it does.
    Raises ValueError where nothing can follow."""
    prompt = writing.prompt
    if why_no_logits(prompt):
        raise ValueError(why_no_logits(prompt))
    if not prompt.fits:
        return follows(prompt).float()
    step = next(writing.generate(Settings(), len(begun) + 1, begun), None)
    if step is None:
        raise ValueError("Nothing follows there, for the text has ended; choose an earlier position.")
    return step.logits.float()


def temper(logits: Tensor, rows: Sequence[int] | None = None) -> TemperatureSweep:
    """The distribution at every temperature of GRID; `rows` are ids (None: all) whose probabilities are kept."""
    found = [distribution(logits, Sampling(temperature=one)).probabilities for one in GRID]
    shown = torch.arange(len(logits)) if rows is None else torch.tensor(rows)
    return TemperatureSweep(
        torch.tensor(GRID),
        logits[shown],
        torch.stack([one[shown] for one in found]),
        torch.stack([one.index_fill(-1, shown, 0).sum() for one in found]),
        torch.stack([entropy(one) for one in found]) / BITS,
        torch.stack([effective_choices(one) for one in found]),
    )


def most_probable(logits: Tensor) -> list[int]:
    return [int(id) for id in logits.topk(min(ROWS, len(logits))).indices]


def curve_frame(found: TemperatureSweep, names: Sequence[str]) -> pd.DataFrame:
    """Name, row, logit, temperature and probability; where there is a name more than rows, it is that of the rest."""
    columns = [*found.probability.unbind(-1), found.rest][: len(names)]
    logits = [*found.logit.tolist(), None][: len(names)]
    rows = zip(names, logits, columns, strict=True)
    frames = [
        pd.DataFrame({"name": name, "row": row, "logit": logit, "temperature": GRID, "probability": column.numpy()})
        for row, (name, logit, column) in enumerate(rows)
    ]
    return pd.concat(frames, ignore_index=True)


def total_frame(found: TemperatureSweep) -> pd.DataFrame:
    return pd.DataFrame(
        {"temperature": GRID, "entropy": found.entropy.double().numpy(), "choices": found.choices.double().numpy()}
    )


def temperature_table(writing: GenerationContext, begun: tuple[int, ...]) -> Table:
    """A row for each temperature, a column for each of the most probable tokens after `begun`."""
    logits = logits_after(writing, begun)
    rows = most_probable(logits)
    found = temper(logits, rows)
    columns: dict[str, Any] = {"temperature": found.temperature.numpy()}
    for row, id in enumerate(rows):
        columns[f"{id} {writing.piece(id)}"] = found.probability[:, row].numpy()
    columns |= {"entropy_bits": found.entropy.numpy(), "effective_choices": found.choices.numpy()}
    return Table(columns, {"model": writing.name, "table": "probabilities over temperature"})
