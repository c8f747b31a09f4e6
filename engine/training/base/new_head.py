"""The model of a base under the head that an objective asks for: the one that transformers puts on that family."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from engine.checkpoints.heads import CLASSES, with_head
from engine.model.config import ModelConfig
from engine.training.base.base import open_base, pad_id_of
from engine.training.objectives import find_objective


def model_of_base(name: str, objective: str, data: str = "", language: bool = False) -> ModelConfig:
    """Config of the base `name` with a head for the objective, on the table [data.`data`].

    A head of the kind that is needed stays. Another one is that of the base's family in transformers: the last real
    token of a GPT is classified, and [CLS] behind a pooler of a BERT. The number of classes is the data's, and
    1 of a reward model.
    With `language` the base's language head is kept beside that of classes.
    """
    opened, _ = open_base(name)
    asked = find_objective(objective)
    config = with_head(opened.config, asked.head, opened.family.name)
    if config.head.read == "last" and config.head.kind == "sequence" and config.head.mark is None:
        config = replace(config, head=replace(config.head, padding=pad_id_of(name)))  # as the checkpoint will say
    if classes := asked.needs.get("head.classes"):
        return replace(config, head=replace(config.head, classes=classes))
    theirs = opened.config.head
    if language and theirs.kind == "language":
        kept = replace(config.head, language=True, scale=theirs.scale, softcap=theirs.softcap, outputs=theirs.outputs)
        return replace(config, head=kept, tied=opened.config.tied)
    if config.head.kind != "masked":
        return config
    pairs = bool(asked.needs_of(data).get("head.next_sentence"))
    return replace(config, head=replace(config.head, next_sentence=pairs, pooler=pairs))


def fill_model(name: str, objective: str, data: str, given: dict[str, Any], language: bool = False) -> dict[str, Any]:
    """A recipe's [model] as a table, from the base and what of it is `given`; `language` as for `model_of_base`."""
    head = given.get("head")
    if isinstance(head, dict) and head.get("kind") in ("sequence", "token"):
        given = {**given, "head": {"classes": CLASSES, **head}}
    return {**asdict(model_of_base(name, objective, data, language)), **given}
