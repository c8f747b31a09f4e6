"""Surprise of a text: of every token how probable it was, what was expected, and the loss they add up to."""

from __future__ import annotations

from typing import Any, Literal

import pandas as pd
from torch import Tensor

from engine.analysis.surprise import Surprise
from engine.checkpoints import Checkpoint
from engine.inputs.readers import kind
from engine.training.objectives import objectives
from views.core.table_files import Table
from views.generate.availability import why_no_surprise
from views.generate.session import GenerationContext
from views.generate.steps import BITS
from views.generate.surprise_cache import Measurement

ROWS, FEW = 10, 5  # of the most probable tokens at each place, FEW of a text that is read in windows
OBJECTIVE = {
    "translation": "sequence to sequence, with teacher forcing",
    "infill": "infilling: the tokens of the gap",
    "pixels": "the next pixel",
}
Stride = Literal["half", "quarter", "whole"]  # how far apart windows are: a key of STRIDES
NEXT, MASKED = "the next token", "masked tokens"
HIDDEN = "Its own training hid many tokens of a text at once; here each one is hidden alone."


def between(
    writing: GenerationContext, measuring: Measurement, begin: int, end: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and arrays of the steps `begin` to `end`. All arrays have an axis `token` first; `at` is the token's place
    among what is read.

    What is `read` is told with the first step, and the `windows`, which have begin, first token asked and end of each.
    `asked` is how many tokens are predicted in all; the sums are of all `count` steps so far. `pseudo` says that tokens
    are masked in turn.
    """
    found, so_far = measuring.between(begin, end), measuring.between(0, end)
    read = measuring.read if begin == 0 else []
    shown = sorted({*found.ids.tolist(), *read, *found.top_ids.unique().tolist()})
    header = {
        "from": begin,
        "count": end,
        "whole": end == len(measuring.steps),
        "steps": len(measuring.steps),
        "pieces": {str(id): writing.piece(id) for id in shown},
        "read": read,
        "windows": [[one.begin, one.asked, one.end] for one in measuring.windows] if begin == 0 else [],
        "asked": len(so_far.ids) if measuring.asked is None else measuring.asked,
        "pseudo": pseudo(writing),
        **sums(writing, so_far),
    }
    return header, arrays_of(found, FEW if len(measuring.windows) > 1 else ROWS, 0 if pseudo(writing) else 1)


def sums(writing: GenerationContext, found: Surprise) -> dict[str, Any]:
    """Adds up the tokens, as they are and as training would."""
    return {
        "total": found.total,
        "mean": found.mean,
        "perplexity": found.perplexity,
        "objective": MASKED if pseudo(writing) else OBJECTIVE.get(kind(writing.checkpoint), NEXT),
        "taught": HIDDEN if pseudo(writing) else describe_training(writing.checkpoint),
        "training": found.training,
    }


def describe_training(checkpoint: Checkpoint) -> str:
    """A sentence where its training asked for less than every token; else nothing."""
    asked = objectives().get(str(checkpoint.card.get("objective")))
    return f"Its own training asked only for {asked.asks}." if asked is not None and asked.asks else ""


def pseudo(writing: GenerationContext) -> bool:
    return not writing.checkpoint.config.generates


def arrays_of(found: Surprise, rows: int, behind: int) -> dict[str, Tensor]:
    """A token stands so many places `behind` the one that it is predicted at."""
    return {
        "id": found.ids,
        "at": found.at + behind,
        "log_probability": found.log_probabilities,
        "surprise": -found.log_probabilities / BITS,
        "rank": found.ranks,
        "entropy": found.entropies / BITS,
        "top.id": found.top_ids[:, :rows],
        "top.probability": found.top_probabilities[:, :rows],
        "rest": (1 - found.top_probabilities[:, :rows].double().sum(-1)).clamp(min=0).float(),
    }


def measurement(writing: GenerationContext, written: tuple[int, ...], stride: Stride = "half") -> Measurement:
    """Raises ValueError for a text that is too long even for that."""
    why = why_no_surprise(writing.prompt)
    if why:
        raise ValueError(why)
    return writing.measured.measure(writing.prompt, written, stride)


def token_frame(writing: GenerationContext, found: Surprise) -> pd.DataFrame:
    """Index, position, token, surprise and entropy (bits) of each token that was predicted."""
    after = 0 if pseudo(writing) else 1
    return pd.DataFrame(
        {
            "index": range(len(found.ids)),
            "position": (found.at + after).numpy(),
            "token": [writing.piece(id) for id in found.ids.tolist()],
            "surprise": (-found.log_probabilities / BITS).double().numpy(),
            "entropy": (found.entropies / BITS).double().numpy(),
        }
    )


def surprise_table(writing: GenerationContext, written: tuple[int, ...], stride: Stride, first: int | None) -> Table:
    """A row for each token that is scored, of the `first` steps where the browser has no more."""
    measuring = measurement(writing, written, stride)
    found = measuring.between(0, first or len(measuring.steps))
    columns: dict[str, Any] = {
        "position": (found.at + (0 if pseudo(writing) else 1)).numpy(),
        "id": found.ids.numpy(),
        "token": [writing.piece(id) for id in found.ids.tolist()],
        "log_probability": found.log_probabilities.numpy(),
        "surprise_bits": (-found.log_probabilities / BITS).numpy(),
        "rank": found.ranks.numpy(),
        "entropy_bits": (found.entropies / BITS).numpy(),
    }
    sums = {"loss": found.mean, "sum": found.total, "perplexity": found.perplexity}
    part = {} if first is None else {"steps": f"the first {first} of {len(measuring.steps)}"}
    about = {f"pseudo_{name}" if pseudo(writing) else name: str(value) for name, value in sums.items()}
    return Table(columns, {"model": writing.name, "table": "surprise of each token", **about, **part})
