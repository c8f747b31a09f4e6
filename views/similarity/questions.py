"""What the page Similarity asks: how alike texts are by their vectors, and which tokens make two of them so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from engine.analysis.text_vectors import (
    SharedCosine,
    choose_vector,
    cosines,
    late_interaction,
    nearest,
    read_text,
    split_cosine,
    vector_shares,
    vector_steps,
    vectors_of,
)
from engine.model.config import Pooling, TextVector
from engine.runtime.run import run as run_model
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from views.core.bound_source import Imports
from views.core.questions import Registry
from views.core.run_context import RunContext
from views.core.table_files import Table

SIMILARITY = Registry()
NEAREST = 10  # texts of a file that are told


@dataclass(frozen=True, kw_only=True)
class SimilarityContext(RunContext):
    """A run on one text, and `others` that it is compared with, `other` above all; each is read behind its prompt.

    `pooling` stands in place of the model's own vector where it is not None; `corpus` are texts of a file, of which the
    nearest are looked for.
    """

    text: str
    other: str
    others: tuple[str, ...]
    prompt: str = ""
    prompt_of_others: str = ""
    pooling: Pooling | None = None
    corpus: tuple[str, ...] = ()
    corpus_name: str = ""

    @property
    def attributes(self) -> Mapping[str, str]:  # type: ignore[override]
        return {**RunContext.attributes, "pooling": repr(self.pooling), "first": "first", "second": "second"}

    @property
    def digest(self) -> str:
        said = (self.text, self.other, self.others, self.prompt, self.prompt_of_others, self.pooling, self.corpus_name)
        return f"{super().digest} {said}"

    @property
    def vector(self) -> TextVector:
        return choose_vector(self.model.config, self.pooling)

    @property
    def readings(self) -> tuple[Encoding, Encoding]:
        """The text and the other one, as the model reads them."""
        return self.cached(
            "readings",
            lambda: (
                read_text(self.checkpoint, self.text, self.prompt),
                read_text(self.checkpoint, self.other, self.prompt_of_others),
            ),
        )

    @property
    def first(self) -> Trace:
        """The run on the text behind its prompt, under the edits."""
        read = self.readings[0]
        return self.cached("first", lambda: run_model(self.model, read, edits=self.trace.edits))

    @property
    def second(self) -> Trace:
        return self.cached("second", lambda: run_model(self.model, self.readings[1]))

    @property
    def cosine(self) -> SharedCosine:
        """Raises ValueError as `vector_shares`."""
        return self.cached("cosine", lambda: find_cosine(self))

    def labels(self, axis: str, query: Mapping[str, Any]) -> Sequence[str] | None:
        if axis in ("first", "second"):
            return self.readings[axis == "second"].pieces
        return super().labels(axis, query)

    def script(self, imports: Imports, lines: Sequence[str], only: tuple[str, ...] | None = None) -> str:
        module = "engine.analysis.text_vectors"
        imports = {**imports, module: {"read_text", *imports.get(module, ())}}
        read = [
            f"first = run(checkpoint.model, read_text(checkpoint, {self.text!r}, {self.prompt!r}))",
            f"second = run(checkpoint.model, read_text(checkpoint, {self.other!r}, {self.prompt_of_others!r}))",
        ]
        return super().script(imports, [*read, *lines], only)


def find_cosine(run: SimilarityContext) -> SharedCosine:
    first, second = (vector_shares(run.model, trace, run.pooling) for trace in (run.first, run.second))
    return split_cosine(first, second)


def corpus_steps(run: SimilarityContext) -> list[Callable[[], Tensor]]:
    """Vectors of the file's texts, a step for the next few."""
    made = vector_steps(run.checkpoint, run.corpus, run.prompt_of_others, run.pooling)
    return [partial(run.cached, ("corpus", number), step) for number, step in enumerate(made)]


def texts_of(run: SimilarityContext) -> tuple[str, ...]:
    return (run.text, *run.others)


def found_cosines(run: SimilarityContext) -> Tensor:
    """Cosine of each text with each: text text."""

    def find() -> Tensor:
        read = [run.readings[0], *(read_text(run.checkpoint, one, run.prompt_of_others) for one in run.others)]
        first = vectors_of(run.model, run.first, run.pooling)
        traces = [first, *(vectors_of(run.model, run_model(run.model, one), run.pooling) for one in read[1:])]
        vectors = torch.cat(traces)
        return cosines(vectors, vectors)

    return run.cached("cosines", find)


def cosines_table(run: SimilarityContext) -> Table:
    found, texts = found_cosines(run), texts_of(run)
    pairs = [(one, other) for one in range(len(texts)) for other in range(len(texts))]
    columns: dict[str, Any] = {
        "text": [texts[one] for one, _ in pairs],
        "other": [texts[other] for _, other in pairs],
        "value": [float(found[one, other]) for one, other in pairs],
        "row": [one for one, _ in pairs],
        "column": [other for _, other in pairs],
    }
    return Table(columns, {"model": run.model_name, "table": "cosines of texts"})


def pairs_table(run: SimilarityContext) -> Table:
    """A line for each pair of tokens, and what it adds to the cosine, or its product where each token has a vector."""
    first, second = run.readings
    found = run.cosine.pairs if run.vector.pooled else found_products(run)
    pairs = [(i, j) for i in range(len(first)) for j in range(len(second))]
    columns: dict[str, Any] = {
        "first": [f"{i + 1} {first.pieces[i]}" for i, _ in pairs],
        "second": [f"{j + 1} {second.pieces[j]}" for _, j in pairs],
        "value": [float(found[i, j]) for i, j in pairs],
    }
    return Table(columns, {"model": run.model_name, "table": "pairs of tokens"})


def found_products(run: SimilarityContext) -> Tensor:
    """Products of the vectors of the text's tokens with those of the other's."""
    first, second = (vectors_of(run.model, trace)[0] for trace in (run.first, run.second))
    return late_interaction(first, second)[0]


def nearest_texts(run: SimilarityContext) -> list[tuple[float, str]]:
    """Cosine and text of those of the file that lie nearest to the text, once their vectors are made."""
    vectors = torch.cat([step() for step in corpus_steps(run)])
    values, at = nearest(vectors_of(run.model, run.first, run.pooling)[0], vectors, NEAREST)
    return [(float(value), run.corpus[int(index)]) for value, index in zip(values, at, strict=True)]


@SIMILARITY.question("token_pairs", returns={"pairs": ("first", "second")}, make_table=pairs_table)
def ask_pairs(run: SimilarityContext) -> Tensor:
    """What each pair of tokens adds to the cosine of two texts."""
    return split_cosine(
        vector_shares(run.model, run.first, run.pooling), vector_shares(run.model, run.second, run.pooling)
    ).pairs


@SIMILARITY.question("token_products", returns={"products": ("first", "second")}, make_table=pairs_table)
def ask_products(run: SimilarityContext) -> Tensor:
    """Product of the vectors of two tokens, of which the greatest of each row is what the text’s token finds."""
    return late_interaction(vectors_of(run.model, run.first)[0], vectors_of(run.model, run.second)[0])[0]


@SIMILARITY.question("text_cosines", returns={"cosine": ("text", "other")}, make_table=cosines_table)
def ask_cosines(run: SimilarityContext) -> Tensor:
    """Cosine of two texts by their vectors."""
    return cosines(vectors_of(run.model, run.first, run.pooling), vectors_of(run.model, run.second, run.pooling))
