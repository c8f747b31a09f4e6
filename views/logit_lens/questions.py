"""What the page Logit lens asks of a run: the likeliest candidates of every layer, and one of them through depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.analysis.lenses import LensKind, learning_of, make_lens
from engine.analysis.logit_lens import Depth, Lens, Translators, candidate_depth, logit_lens
from views.core.questions import Registry, Row, Vocab
from views.core.run_context import RunContext
from views.core.table_files import Table

LISTED = 5  # candidates of a layer at a position

LENS = Registry()


def lens_table(run: RunContext, lens: LensKind = "logit") -> Table:
    return tabulate_lens(run, cached_lens(run, lens), f"{lens} lens")


def tabulate_lens(run: RunContext, found: Lens, name: str) -> Table:
    """A line for each candidate that is listed; `kl` is of its layer and row."""
    layer, row, place = np.indices(found.ids.shape).reshape(3, -1)
    ids = found.ids.flatten().tolist()
    columns: dict[str, Any] = {
        "layer": layer, "row": row, "row_name": [run.rows[at] for at in row], "place": place + 1, "id": np.array(ids),
        "candidate": run.name_candidates(ids), "probability": found.probability.flatten().numpy(),
        "kl": found.kl[..., None].expand(found.ids.shape).flatten().numpy(),
    }  # fmt: skip
    return Table(columns, {"model": run.model_name, "table": name})


def cached_lens(run: RunContext, lens: LensKind) -> Lens:
    """Both charts draw it, and each run of the page again."""
    made = make_lens(run.checkpoint, lens)
    return run.cached(("lens", lens, made and made.base), lambda: ask_lens(run, lens))


def lens_steps(run: RunContext, lens: LensKind = "logit", **_: Any) -> list[Callable[[], Translators]]:
    return [] if lens == "logit" else learning_of(run.checkpoint, lens).steps


@LENS.question("lens", make_table=lens_table, steps=lens_steps)
def ask_lens(run: RunContext, lens: LensKind = "logit") -> Lens:
    """The likeliest candidates at every layer and position, and KL(end || layer) in bits."""
    return logit_lens(run.model, run.trace, LISTED, make_lens(run.checkpoint, lens))


@LENS.question(
    "depth",
    returns={"probability": ("layer",), "rank": ("layer",)},
    title=lambda **_: "through depth",
    steps=lens_steps,
)
def ask_depth(run: RunContext, row: Row, candidate: Vocab, lens: LensKind = "logit") -> Depth:
    """Probability and rank of one candidate at one position, from the embedding to the end."""
    return candidate_depth(run.model, run.trace, row, candidate, make_lens(run.checkpoint, lens))
