"""What the tab Surprise shows: of every token how probable it was, what was expected, and the loss they add up to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from torch import Tensor

from engine.analysis.surprise import Surprise
from engine.inputs.readers import kind
from views.core.payload import pack
from views.core.table_files import Table
from views.generate.availability import unmeasured
from views.generate.codegen import joined, opening
from views.generate.session import UNKNOWN, Query, Writing
from views.generate.steps import BITS
from views.generate.streaming import asked_here, came_of, grown, looked_at, steps_of
from views.generate.surprise_cache import STRIDES, Measurement

ROWS, FEW = 10, 5  # of the most probable tokens at each place, FEW of a text that is read in windows
OBJECTIVE = {
    "translation": "sequence to sequence, with teacher forcing",
    "infill": "infilling: the tokens of the gap",
    "pixels": "the next pixel",
}
NEXT, MASKED = "the next token", "masked tokens"
HIDDEN = "Its own training hid many tokens of a text at once; here each one is hidden alone."
PRINTED = (
    "print(found.log_probabilities, found.ranks)",
    "print(found.total, found.mean, found.perplexity, found.training)",
)
WINDOWS = "print([(one.begin, one.asked, one.end) for one in found.windows])"
TAUGHT = {  # by the objective that a model was trained with, where that asks for less than every token
    "completion": "Its own training asked only for what stands behind an instruction or a separator.",
    "repeated": "Its own training asked only for what had stood in the text before.",
}


def answer(writing: Writing, query: Query) -> bytes:
    """The whole text, or its first `steps` where the query names them. Raises ValueError with a sentence."""
    measuring, end = asked(writing, query), steps_of(query)
    return pack(*between(writing, measuring, 0, min(len(measuring.steps), end or len(measuring.steps))))


def parts(writing: Writing, query: Query) -> Iterator[bytes]:
    """The steps behind those that a browser has, as they are measured. Raises ValueError with a sentence."""
    measuring = asked(writing, query)
    for begin, end in grown(measuring, came_of(query, len(measuring.steps)), query):
        yield pack(*between(writing, measuring, begin, end))


def asked(writing: Writing, query: Query) -> Measurement:
    asked_here(writing, query)
    return measurement(writing, writing.ids(query.get("written")), apart(query))


def apart(query: Query) -> str:
    """How far its windows are from each other, one of STRIDES."""
    said = query.get("stride", "half")
    if not isinstance(said, str) or said not in STRIDES:
        raise ValueError(UNKNOWN)
    return said


def between(
    writing: Writing, measuring: Measurement, begin: int, end: int
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


def sums(writing: Writing, found: Surprise) -> dict[str, Any]:
    """What the tokens add up to, and what training would."""
    return {
        "total": found.total,
        "mean": found.mean,
        "perplexity": found.perplexity,
        "objective": MASKED if pseudo(writing) else OBJECTIVE.get(kind(writing.checkpoint), NEXT),
        "taught": HIDDEN if pseudo(writing) else TAUGHT.get(str(writing.checkpoint.card.get("objective")), ""),
        "training": found.training,
    }


def pseudo(writing: Writing) -> bool:
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


def measurement(writing: Writing, written: tuple[int, ...], stride: str = "half") -> Measurement:
    """Raises ValueError for a text that is too long even for that."""
    why = unmeasured(writing.prompt)
    if why:
        raise ValueError(why)
    return writing.measured.of(writing.prompt, written, stride)


def token_frame(writing: Writing, found: Surprise) -> pd.DataFrame:
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


def surprise_table(writing: Writing, query: Query) -> Table:
    """A row for each token that is asked for, of the first steps where the browser has no more."""
    measuring, first = measurement(writing, written_of(writing, query), apart(query)), steps_of(query)
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


def written_of(writing: Writing, query: Query) -> tuple[int, ...]:
    return writing.ids(query.get("written", []))


def ahead_of_surprise(writing: Writing, query: Query) -> Iterator[dict[str, Any]]:
    """The text that is shown, for a file in which somebody turns to the tab, where one step measures it; what was
    looked at is in it already."""
    said = query.get("branch", [])
    if looked_at(query, "surprise") or unmeasured(writing.prompt):
        return
    if len(measurement(writing, writing.ids(said)).steps) == 1:
        yield {"trace": writing.made, "ask": "surprise", "written": said}


def surprise_lines(writing: Writing, query: Query) -> str:
    """They bind `found` to the Surprise of the text that is shown."""
    why = unmeasured(writing.prompt)
    if why:
        raise ValueError(why)
    imports, lines = opening(writing)
    arguments = ", ".join(filter(None, (writing.call.prompt, writing.call.target)))
    if pseudo(writing):
        imports["engine.analysis.pseudo"] = {"pseudo_surprise"}
        lines += [
            f"read = checkpoint.tokenizer.encode({arguments})",
            "found = pseudo_surprise(checkpoint, read.ids, read.segments)",
        ]
    else:
        written = written_of(writing, query)
        imports.setdefault("engine.generation.prompt", set()).add("begin")
        imports["engine.analysis.surprise"] = {"surprise"}
        ids = f"(*begun.ids, {', '.join(map(str, written))})" if written else "begun.ids"
        longer, stride = "", ""
        if not writing.prompt.fits:
            longer = ", longer=True"
            stride = f", stride={STRIDES[apart(query)](writing.checkpoint.config.context)}"
        lines += [
            f"begun = begin(checkpoint, {arguments}{longer})",
            f"found = surprise(checkpoint, {ids}, begun.source{stride})",
        ]
    return joined(imports, [*lines, *PRINTED, *([] if writing.prompt.fits else [WINDOWS])])
