"""DeiT with distillation (Touvron et al. 2021), as transformers names it: ViT with a second vector before the patches.

Without distillation it is a ViT, and its files say so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.checkpoints.families import vit
from engine.checkpoints.families.bert import CLASSES, CLASSIFIER
from engine.checkpoints.families.vit import ONE_TOKEN
from engine.checkpoints.family import Family

ALWAYS = vit.ALWAYS | {
    "context": lambda theirs: vit.patches_and_cls(theirs) + 1,
    "embedding.patches.distilled": True,
}
CLASSIFIED = ALWAYS | {"head.kind": "sequence"}


def deit(rows: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
    return tuple((theirs.replace("vit.", "deit.", 1), *ours) for theirs, *ours in rows)


ROWS = (*deit(vit.ROWS), ("deit.embeddings.distillation_token", "embed.patches.distilled", ONE_TOKEN))
POOLER, NO_POOLER = deit(vit.POOLER), deit(vit.NO_POOLER)
BOTH_CLASSIFIERS = (
    ("cls_classifier.weight", "head.weight"),
    ("cls_classifier.bias", "head.bias"),
    ("distillation_classifier.weight", "head.distilled.weight"),
    ("distillation_classifier.bias", "head.distilled.bias"),
)


BODY = Family(
    name="deit",
    architecture="DeiTModel",
    keys=vit.KEYS,
    always=ALWAYS,
    rows=ROWS,
    optional_prefix="deit.",
    module_spelling=vit.MODULES,
    defaults=vit.DEFAULTS,
)
FAMILIES = (
    replace(
        BODY,
        architecture="DeiTForImageClassificationWithTeacher",
        keys=(*vit.KEYS, CLASSES),
        always=CLASSIFIED | {"head.averaged": True},
        rows=(*ROWS, *BOTH_CLASSIFIERS, *NO_POOLER),
        signs=("cls_classifier.weight", "distillation_classifier.weight"),
    ),
    replace(
        BODY,
        architecture="DeiTForImageClassification",
        keys=(*vit.KEYS, CLASSES),
        always=CLASSIFIED,
        rows=(*ROWS, *CLASSIFIER, *NO_POOLER),
        signs=("classifier.weight",),
    ),
    replace(
        BODY,
        keys=(*vit.KEYS, vit.POOLER_WIDTH),
        always=ALWAYS | {"head.pooler": True},
        only={"pooler_act": "tanh"},
        rows=(*ROWS, *POOLER),
        signs=("deit.pooler.dense.weight",),
    ),
    BODY,
)
