"""Surveys of a model over many texts (engine/analysis/strongest.py) on a cluster of Ray."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from engine.analysis.strongest import (
    CORPUS_LENGTH,
    CORPUS_TEXTS,
    LENGTH,
    Survey,
    keep_survey,
    read_texts,
    readings_of,
    survey,
)
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.inputs.corpus import Corpus
from engine.inputs.readers import Reading
from engine.training.cluster.ray_work import RayWork, find_cluster


class RaySurvey(RayWork[Survey]):
    """A survey, of which a part is some of the texts."""

    name = "survey"

    def __init__(
        self, model: str, checkpoint: Checkpoint, corpus: Corpus | None, runs: Path | str, address: str
    ) -> None:
        self.corpus, self.readings = corpus, list(readings_of(checkpoint, corpus))
        super().__init__(model, checkpoint, read_texts(corpus), len(self.readings), Survey(), runs, address)

    def describe(self) -> dict[str, Any]:
        return {"texts": None if self.corpus is None else self.corpus.texts[:CORPUS_TEXTS]}

    def find(self, numbers: range) -> Survey:
        return find_part(self.checkpoint, self.readings, numbers)

    def read(self, numbers: range, tensors: dict[str, Tensor]) -> Survey:
        return Survey.from_tensors(self.readings[numbers.start : numbers.stop], tensors)

    def join(self, so_far: Survey, part: Survey) -> Survey:
        return so_far.join(part)

    @staticmethod
    def compute(checkpoint: Checkpoint, told: Mapping[str, Any], numbers: range) -> dict[str, Tensor]:
        corpus = None if told["texts"] is None else Corpus("", tuple(told["texts"]))
        return find_part(checkpoint, list(readings_of(checkpoint, corpus)), numbers).tensors

    def keep(self, found: Survey) -> None:
        keep_survey(self.checkpoint, self.corpus, found)


KIND = RaySurvey


def on_cluster(model: str, checkpoint: Checkpoint, corpus: Corpus | None, count: int) -> RaySurvey | None:
    """The survey of a model of the library on the cluster of `LOUPE_RAY_ADDRESS`; None where `find_cluster` has none
    for it."""
    tokens = count * (LENGTH if corpus is None else CORPUS_LENGTH)
    weights = sum(weight.numel() for weight in checkpoint.model.parameters())
    address = find_cluster(model, tokens * weights)
    return RaySurvey(model, checkpoint, corpus, budget.runs_folder, address) if address else None


def find_part(checkpoint: Checkpoint, readings: Sequence[Reading], numbers: range) -> Survey:
    *_, found = survey(checkpoint.model, readings[numbers.start : numbers.stop], numbers.start)
    return found
