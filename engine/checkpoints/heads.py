"""A model under another head: the one that transformers puts on its family."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.save import family_for
from engine.model.config import HeadKind, ModelConfig, OutputHead

CLASSES = 2  # until somebody says how many


def with_head(config: ModelConfig, kind: HeadKind, family: str = "") -> ModelConfig:
    """`config` with a head of that kind; `family` is what it was read as. ELECTRA's discriminator is no tagger."""
    if config.head.kind == kind and not (kind == "token" and config.head.dense and not config.head.norm):
        return replace(config, head=replace(config.head, link=None))
    published, theirs = family_for(config, family)
    sisters = () if published is NATIVE else FAMILIES[published.name]
    sister = next((one for one in sisters if one.head == kind and "head.classes" not in one.always), None)
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
