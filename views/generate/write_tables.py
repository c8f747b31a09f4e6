"""What the tab Write gives away: the tokens of a branch, one of its steps, and the steps that a file alone asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from views.core.table_files import Table
from views.generate.session import Query, Settings, Writing
from views.generate.steps import BITS, CUTS, STAGES, step_arrays

NOTHING = "Nothing is written yet: write first."
MOST = 400  # steps of a file


def token_table(writing: Writing, query: Query) -> Table:
    """A row for each token of the branch that is looked at, by one run over all of it: the model's own distribution."""
    ids = writing.ids(query.get("branch", []))
    if not ids:
        raise ValueError(NOTHING)
    logits = following(writing, ids)
    logs = logits.log_softmax(-1)
    chosen = torch.tensor(ids)[:, None]
    own = logs.gather(-1, chosen)[:, 0]
    columns: dict[str, Any] = {
        "position": [len(writing.prompt.ids) + index for index in range(len(ids))],
        "id": list(ids),
        "token": [writing.piece(id) for id in ids],
        "logit": logits.gather(-1, chosen)[:, 0].numpy(),
        "probability": own.exp().numpy(),
        "log_probability": own.numpy(),
        "rank": ((logits > logits.gather(-1, chosen)).sum(-1) + 1).numpy(),
        "entropy_bits": (-(logs.exp() * logs).nansum(-1) / BITS).numpy(),
    }
    return Table(columns, {"model": writing.name, "table": "tokens that were written"})


@torch.inference_mode()
def following(writing: Writing, ids: tuple[int, ...]) -> Tensor:
    """token vocab: the logits from which each of the `ids` followed."""
    prompt, model = writing.prompt, writing.checkpoint.model
    read = torch.tensor([[*prompt.ids, *ids[:-1]]], device=model.device)
    at = slice(len(prompt.ids) - 1, None)
    if prompt.source:
        source = torch.tensor([prompt.source], device=model.device)
        return model(source, target=read, logits_at=at)[0].float().cpu()
    return model(read, logits_at=at)[0].float().cpu()


def step_table(writing: Writing, query: Query) -> Table:
    """A row for each token that is shown of the step that is looked at, a column for each stage."""
    ids, at = writing.ids(query.get("branch", [])), query.get("at")
    place = at if type(at) is int and 0 <= at <= len(ids) else len(ids)
    settings = Settings.of(query.get("settings", {}))
    step = next(writing.generating(settings, place + 1, ids[:place]), None)
    if step is None:
        raise ValueError("Nothing follows there, so there is no step; choose a token.")
    found = {name: value[0] for name, value in step_arrays([step]).items()}
    rows = found["top.id"][:-1]
    columns: dict[str, Any] = {"id": rows.numpy(), "token": [writing.piece(int(id)) for id in rows]}
    named = ("own", *STAGES, *CUTS)
    columns |= {name: found[f"top.{name}"][:-1].numpy() for name in named}
    return Table(columns, {"model": writing.name, "table": "one step, stage by stage", "begun": str(list(ids[:place]))})


def ahead_of_writing(writing: Writing, query: Query) -> Iterator[dict[str, Any]]:
    """The steps of everything that was written, as the file asks them when somebody turns to them."""
    kept = query.get("kept")
    if not isinstance(kept, Mapping) or not isinstance(kept.get("asks"), list):
        return
    for ask in kept["asks"][:MOST]:
        if isinstance(ask, dict):
            yield ask
