"""What the page Logit lens asks of a run: the likeliest candidates of every layer, and one of them through depth."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.analysis.logit_lens import Depth, Lens, candidate_depth, logit_lens
from views.core.questions import Registry, Row, Vocab
from views.core.run_context import RunContext
from views.core.table_files import Table

LISTED = 5  # candidates of a layer at a position

LENS = Registry()


def lens_table(run: RunContext) -> Table:
    """A line for each candidate that is listed; `kl` is of its layer and row."""
    lens = cached_lens(run)
    layer, row, place = np.indices(lens.ids.shape).reshape(3, -1)
    ids = lens.ids.flatten().tolist()
    columns: dict[str, Any] = {
        "layer": layer, "row": row, "row_name": [run.rows[at] for at in row], "place": place + 1, "id": np.array(ids),
        "candidate": run.name_candidates(ids), "probability": lens.probability.flatten().numpy(),
        "kl": lens.kl[..., None].expand(lens.ids.shape).flatten().numpy(),
    }  # fmt: skip
    return Table(columns, {"model": run.model_name, "table": "logit lens"})


def cached_lens(run: RunContext) -> Lens:
    """Both charts draw it, and each run of the page again."""
    return run.cached("lens", lambda: ask_lens(run))


@LENS.question("lens", make_table=lens_table)
def ask_lens(run: RunContext) -> Lens:
    """The likeliest candidates at every layer and position, and KL(end || layer) in bits."""
    return logit_lens(run.model, run.trace, LISTED)


@LENS.question("depth", returns={"probability": ("layer",), "rank": ("layer",)}, title=lambda **_: "through depth")
def ask_depth(run: RunContext, row: Row, candidate: Vocab) -> Depth:
    """Probability and rank of one candidate at one position, from the embedding to the end."""
    return candidate_depth(run.model, run.trace, row, candidate)
