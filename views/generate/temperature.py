"""What the tab Temperature asks: a distribution at every temperature of a grid, of numbers that a person wrote or of
the logits behind a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from engine.generation.prompt import follows
from engine.generation.sampling import Sampling, distribution, effective_choices, entropy
from views.core.payload import pack
from views.core.table_files import Table
from views.generate.availability import unfollowed
from views.generate.session import STALE, UNKNOWN, Query, Settings, Writing
from views.generate.steps import BITS

STEP, LAST = 0.05, 5.0
GRID = tuple(round(STEP * i, 2) for i in range(round(LAST / STEP) + 1))
NUMBERS = (2, 8)  # that a person may write, at least and at most
LARGEST = 100.0
ROWS = 8  # of the most probable tokens
FIRST = [2, 4, 5]  # the numbers that the tab opens on
AHEAD = 16  # places of a text


def answer(writing: Writing, query: Query) -> bytes:
    """Raises ValueError with a sentence."""
    if query.get("trace") != writing.made:
        raise ValueError(STALE)
    match query:
        case {"values": list() as said}:
            return pack({}, tempered(numbers(said)))
        case {"begun": said}:
            logits = logits_behind(writing, writing.ids(said))
            order = logits.topk(min(ROWS, len(logits))).indices
            header = {"pieces": [writing.piece(id) for id in order.tolist()], "count": len(logits)}
            return pack(header, {"id": order, **tempered(logits, order)})
    raise ValueError(UNKNOWN)


def numbers(said: list[Any]) -> Tensor:
    """Those that a person wrote. Raises ValueError for others."""
    low, high = NUMBERS
    if not low <= len(said) <= high:
        raise ValueError(f"Give {low} to {high} numbers, not {len(said)}.")
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and abs(one) <= LARGEST for one in said):
        raise ValueError(f"Each must be a number from {-LARGEST:g} to {LARGEST:g}.")
    return torch.tensor([float(one) for one in said])


def logits_behind(writing: Writing, begun: tuple[int, ...]) -> Tensor:
    """vocab; of a text that is longer than the model reads behind its last tokens, as many as those. Raises ValueError
    where nothing can follow."""
    prompt = writing.prompt
    if unfollowed(prompt):
        raise ValueError(unfollowed(prompt))
    if not prompt.fits:
        return follows(prompt).float()
    step = next(writing.generating(Settings(), len(begun) + 1, begun), None)
    if step is None:
        raise ValueError("Nothing follows there, for the text has ended; look at an earlier token.")
    return step.logits.float()


def tempered(logits: Tensor, shown: Tensor | None = None) -> dict[str, Tensor]:
    """temperature row: the probabilities of the `shown` ids (all, where None) at every temperature of the grid; entropy
    in bits and the effective number of choices are of all of them."""
    found = [distribution(logits, Sampling(temperature=one)).probabilities for one in GRID]
    rows = torch.arange(len(logits)) if shown is None else shown
    return {
        "temperature": torch.tensor(GRID),
        "logit": logits[rows],
        "probability": torch.stack([one[rows] for one in found]),
        "rest": torch.stack([one.index_fill(-1, rows, 0).sum() for one in found]),
        "entropy": torch.stack([entropy(one) for one in found]) / BITS,
        "choices": torch.stack([effective_choices(one) for one in found]),
    }


def ahead_of_temperature(writing: Writing, query: Query) -> Iterator[dict[str, Any]]:
    """What the tab asks first, and behind the last tokens of the branch that is shown."""
    yield {"trace": writing.made, "ask": "tempered", "values": FIRST}
    ids = query.get("branch")
    if isinstance(ids, list):
        for count in range(len(ids), max(-1, len(ids) - AHEAD), -1):
            yield {"trace": writing.made, "ask": "tempered", "begun": ids[:count]}


def temperature_table(writing: Writing, query: Query) -> Table:
    """A row for each temperature, a column for each of the most probable tokens at the place that is looked at."""
    logits = logits_behind(writing, writing.ids(query.get("place", [])))
    order = logits.topk(min(ROWS, len(logits))).indices
    found = tempered(logits, order)
    columns: dict[str, Any] = {"temperature": found["temperature"].numpy()}
    for row, id in enumerate(order.tolist()):
        columns[f"{id} {writing.piece(id)}"] = found["probability"][:, row].numpy()
    columns |= {"entropy_bits": found["entropy"].numpy(), "effective_choices": found["choices"].numpy()}
    return Table(columns, {"model": writing.name, "table": "probabilities over temperature"})
