"""A language model's sisters, as transformers ships them: its body alone, and the body under a layer over classes.

They share everything but the head, so each is made of the language model's own tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.checkpoints.families.bert import CLASSES
from engine.checkpoints.family import DROPPED, Family

SEQUENCE = {"head.kind": "sequence", "head.read": "last"}
MEAN = {"head.kind": "sequence", "head.read": "mean"}
TOKEN = {"head.kind": "token"}
SPAN = {"head.kind": "span"}
POOLED = SEQUENCE | {"head.pooler": True}
NO_BIAS = {"head.bias": False}


def with_tasks(
    language: Family,
    token: str | None = "score",
    span: str | None = "qa_outputs",
    span_prefix: str | None = None,
    stem: str | None = None,
) -> tuple[Family, ...]:
    """The families of all that a decoder's files may hold, told apart by their heads' names.

    A text is classified by `score`, which has no bias; `token` and `span` are the layers that judge each position, None
    where transformers has no such model. `span_prefix` stands before the body's names under the latter, where that is
    not the family's own, and `stem` is what their architectures' names begin with, where that is not what the
    language model's begins with.
    """
    name = stem or architecture_stem(language)
    body = body_of(language, f"{name}Model")
    found = [
        classifier(body, f"{name}ForSequenceClassification", "score", SEQUENCE | NO_BIAS),
        language,
        body,
    ]
    if span is not None:
        answers = classifier(body, f"{name}ForQuestionAnswering", span, SPAN)
        found.insert(0, answers if span_prefix is None else rename_prefix(answers, body.optional_prefix, span_prefix))
    if token is not None:
        found.insert(0, classifier(body, f"{name}ForTokenClassification", token, TOKEN))
    return tuple(found)


def architecture_stem(language: Family) -> str:
    assert language.architecture is not None
    return language.architecture.removesuffix("LMHeadModel").partition("For")[0]


def pair_with_tasks(language: Family, prefix: str) -> tuple[Family, ...]:
    """The classifiers on an encoder-decoder, whose decoder reads the text again (Lewis et al. 2020, sections 3.1 and
    3.2). `prefix` stands before the body's names under the one of whole texts, where they have none of their own."""
    name = architecture_stem(language)
    body = body_of(language, f"{name}Model")
    whole = rename_prefix(body, "", prefix) if prefix else body
    sequence = classifier(whole, f"{name}ForSequenceClassification", "classification_head.out_proj", POOLED)
    dense = tuple((f"classification_head.dense.{part}", f"pooler.dense.{part}") for part in ("weight", "bias"))
    return (
        replace(sequence, rows=(*sequence.rows, *dense)),
        classifier(body, f"{name}ForQuestionAnswering", "qa_outputs", SPAN),
    )


def body_of(language: Family, architecture: str) -> Family:
    """Family of the body without the head: what a file holds of the head is left out on purpose."""
    return replace(
        language,
        architecture=architecture,
        also=(),
        keys=tuple(key for key in language.keys if not any(map(is_head_path, key.paths))),
        always={path: value for path, value in language.always.items() if not is_head_path(path)}
        | {"head.kind": "none"},
        rows=tuple((row[0], DROPPED) if is_head_row(row[1]) else row for row in language.rows),
        tied={},
        signs=(),
    )


def is_head_path(path: str) -> bool:
    return path == "tied" or path.startswith("head.")


def is_head_row(ours: str | tuple[str, ...] | None) -> bool:
    return isinstance(ours, str) and ours.startswith("head.")


def classifier(body: Family, architecture: str, layer: str, head: Mapping[str, Any]) -> Family:
    """The body under one linear layer called `layer`."""
    parts = ("weight", "bias") if head.get("head.bias", True) else ("weight",)
    return replace(
        body,
        architecture=architecture,
        keys=body.keys if head["head.kind"] == "span" else (*body.keys, CLASSES),
        always={**body.always, **head},
        rows=(*body.rows, *((f"{layer}.{part}", f"head.{part}") for part in parts)),
        signs=tuple(f"{layer}.{part}" for part in parts),
    )


def rename_prefix(family: Family, old: str, new: str) -> Family:
    """The same tensors, their names beginning with `new` instead of `old`; a file may have either, or neither."""

    def name(theirs: str) -> str:
        return new + theirs.removeprefix(old) if theirs.startswith(old) else theirs

    def names(theirs: str | tuple[str, ...]) -> str | tuple[str, ...]:
        return name(theirs) if isinstance(theirs, str) else tuple(map(name, theirs))

    return replace(
        family,
        rows=tuple((names(theirs), *rest) for theirs, *rest in family.rows),
        twins={name(one): name(other) for one, other in family.twins.items()},
        optional_prefix=new,
        old_spelling={**family.old_spelling, **({old: new} if old else {})},
    )
