"""The model of a base under the head that an objective asks for: the one that transformers puts on that family."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.save import family_for
from engine.model.config import HeadKind, ModelConfig, OutputHead
from engine.training.base import open_base

HEADS: dict[str, HeadKind] = {
    "classification": "sequence", "token_classification": "token", "span": "span", "masked": "masked",
    "reward": "sequence",
}  # fmt: skip
CLASSES = 2  # until the data says how many


def model_of_base(name: str, objective: str, data: str = "", language: bool = False) -> ModelConfig:
    """Config of the base `name` with a head for the objective, on the table [data.`data`].

    A head of the kind that is needed stays. Another one is that of the base's family in transformers: the last real
    token of a GPT is classified, and [CLS] behind a pooler of a BERT. The number of classes is the data's, and
    1 of a reward model.
    With `language` the base's language head is kept beside that of classes.
    """
    opened, _ = open_base(name)
    config = with_head(opened.config, HEADS.get(objective, "language"), opened.family.name)
    if objective == "reward":
        return replace(config, head=replace(config.head, classes=1))
    theirs = opened.config.head
    if language and theirs.kind == "language":
        kept = replace(config.head, language=True, scale=theirs.scale, softcap=theirs.softcap, outputs=theirs.outputs)
        return replace(config, head=kept, tied=opened.config.tied)
    if config.head.kind != "masked":
        return config
    pairs = data == "sentence_pairs"
    return replace(config, head=replace(config.head, next_sentence=pairs, pooler=pairs))


def with_head(config: ModelConfig, kind: HeadKind, family: str = "") -> ModelConfig:
    """`config` with a head of that kind; `family` is what it was read as. ELECTRA's discriminator is no tagger."""
    if config.head.kind == kind and not (kind == "token" and config.head.dense):
        return replace(config, head=replace(config.head, link=None))
    published, theirs = family_for(config, family)
    sisters = () if published is NATIVE else FAMILIES[published.name]
    sister = next((one for one in sisters if one.head == kind and not one.always.get("head.dense")), None)
    if sister is not None:
        named = {"id2label": {str(i): f"LABEL_{i}" for i in range(CLASSES)}}
        found = sister.read_config({**theirs, "architectures": [sister.architecture], **named})
        return replace(config, head=found.head, tied=found.tied)
    return replace(config, head=plain_head(kind, config.attention.mask == "causal"))


def plain_head(kind: HeadKind, causal: bool) -> OutputHead:
    """Head of a model that no published family can express."""
    if kind == "sequence":
        return OutputHead(kind, CLASSES, "last", bias=False) if causal else OutputHead(kind, CLASSES, pooler=True)
    return OutputHead(kind, CLASSES if kind == "token" else 0, bias=True if kind == "masked" else None)


def fill_model(
    name: str, objective: str, data: str, given: dict[str, Any], language: bool = False
) -> dict[str, Any]:
    """A recipe's [model] as a table, from the base and what of it is `given`; `language` as for `model_of_base`."""
    head = given.get("head")
    if isinstance(head, dict) and head.get("kind") in ("sequence", "token"):
        given = {**given, "head": {"classes": CLASSES, **head}}
    return {**asdict(model_of_base(name, objective, data, language)), **given}
