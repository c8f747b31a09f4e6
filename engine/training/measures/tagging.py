"""How often a word that was never seen in its sentence is given its class, and how many names are found whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from engine.data.task import Tagged
from engine.model.transformer import Transformer
from engine.training.examples.padding import pad_rows, real
from engine.training.examples.token_classification import first_tokens
from engine.training.sources.tag_texts import TaggedTexts
from engine.training.trainer import Trainer

SENTENCES, AT_ONCE = 2_000, 250
Span = tuple[int, int, str]  # from which word to which, and what it is


def measure_tags(trainer: Trainer) -> dict[str, Any]:
    source = source_of(trainer)
    asked = source.held_out_rows(SENTENCES)
    return score_tags(source.labels, asked, predict_tags(trainer.result, source, asked))


def score_tags(labels: Sequence[str], asked: Sequence[Tagged], given: Sequence[Sequence[str]]) -> dict[str, Any]:
    """`test_accuracy` of words. With tags in BIO also precision, recall and F1 of whole names, right only with the very
    words and kind (Tjong Kim Sang & De Meulder 2003), over all and by kind; of other tags F1 of the words of each.
    """
    wanted = [tag for row in asked for tag in row.tags]
    written = [tag for row in given for tag in row]
    right = Counter(tag for tag, one in zip(wanted, written, strict=True) if tag == one)
    found: dict[str, Any] = {"test_accuracy": right.total() / len(wanted), "words": len(wanted), "texts": len(asked)}
    if in_bio(labels):
        return found | of_names([row.tags for row in asked], given)
    there, made = Counter(wanted), Counter(written)
    return found | {"f1_by_tag": {tag: f1(right[tag], made[tag], there[tag]) for tag in sorted(there)}}


def of_names(wanted: Sequence[Sequence[str]], given: Sequence[Sequence[str]]) -> dict[str, Any]:
    """`precision`, `recall`, `f1` and `f1_by_kind` of whole names, from the tags of each sentence."""
    there, made, right = Counter[str](), Counter[str](), Counter[str]()
    for tags, ours in zip(wanted, given, strict=True):
        names, found = spans(tags), spans(ours)
        there.update(kind for *_, kind in names)
        made.update(kind for *_, kind in found)
        right.update(kind for *_, kind in names & found)
    hits, all_made, all_there = right.total(), made.total(), there.total()
    return {
        "precision": hits / max(all_made, 1),
        "recall": hits / max(all_there, 1),
        "f1": f1(hits, all_made, all_there),
        "f1_by_kind": {kind: f1(right[kind], made[kind], there[kind]) for kind in sorted(there)},
    }


def f1(right: int, given: int, wanted: int) -> float:
    """The harmonic mean of precision and recall; 1 where there is nothing to find and nothing was."""
    return 2 * right / (given + wanted) if given + wanted else 1.0


def in_bio(labels: Iterable[str]) -> bool:
    """O, and B-... or I-... for each kind (Ramshaw & Marcus 1995)."""
    return all(label == "O" or label[:2] in ("B-", "I-") and len(label) > 2 for label in labels)


def spans(tags: Sequence[str]) -> set[Span]:
    """Each begins with B, or with an I of another kind than before it, and goes on while there are I of its kind."""
    found: set[Span] = set()
    begin, kind = 0, ""
    for at, tag in enumerate([*tags, "O"]):
        mark, _, its = tag.partition("-")
        if kind and (mark != "I" or its != kind):
            found.add((begin, at, kind))
            kind = ""
        if mark == "B" or (mark == "I" and not kind):
            begin, kind = at, its
    return found


@torch.no_grad()
def predict_tags(model: Transformer, source: TaggedTexts, asked: Sequence[Tagged]) -> list[list[str]]:
    """A tag for each word, that of its first token; "" for a word that has none."""
    found = list[list[str]]()
    for begin in range(0, len(asked), AT_ONCE):
        rows = [source.corpus.tokenizer.encode(one.text) for one in asked[begin : begin + AT_ONCE]]
        ids = [torch.tensor(row.ids) for row in rows]
        read, stands = pad_rows(ids, 0).to(model.device), real(ids).to(model.device)
        best = model(read, padding=stands).argmax(-1).tolist()
        for row, classes in zip(rows, best, strict=True):
            found.append(["" if at is None else source.labels[classes[at]] for at in first_tokens(row)])
    return found


def sample_tags(trainer: Trainer) -> str:
    """The first held-out text, and what each of its words is taken for."""
    source = source_of(trainer)
    (one,) = source.held_out_rows(1)
    (tags,) = predict_tags(trainer.result, source, [one])
    return f"{one.text}\n{' '.join(tag or '?' for tag in tags)}"


def source_of(trainer: Trainer) -> TaggedTexts:
    assert isinstance(trainer.source, TaggedTexts)
    return trainer.source
