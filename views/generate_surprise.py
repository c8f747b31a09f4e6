"""What the tab Surprise shows: of every token how probable it was, what was expected, and the loss they add up to."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from engine.analysis.surprise import Surprise, surprise, training_loss
from engine.reading import kind
from views.generate_steps import BITS
from views.generate_writing import STALE, Query, Writing
from views.lines_of_generating import joined, opening
from views.payload import pack
from views.table_files import Table

ROWS = 10  # of the most probable tokens at each place
OBJECTIVE = {
    "translation": "sequence to sequence, with teacher forcing",
    "infill": "infilling: the tokens of the gap",
    "pixels": "the next pixel",
}
NEXT = "the next token"
TAUGHT = {  # by the objective that a model was trained with, where that asks for less than every token
    "completion": "Its own training asked only for what stands behind an instruction or a separator.",
    "repeated": "Its own training asked only for what had stood in the text before.",
}


def answer(writing: Writing, query: Query) -> bytes:
    """Raises ValueError with a sentence."""
    if query.get("trace") != writing.made:
        raise ValueError(STALE)
    return pack(*parts(writing, writing.ids(query.get("written"))))


def parts(writing: Writing, written: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and arrays: the prompt with what was `written` behind it. All arrays have an axis `token` first; `at` is
    how many of the ids stand before the token, among what the decoder reads."""
    found = of(writing, written)
    own = found.logits.softmax(-1)
    top = own.topk(min(ROWS, own.shape[-1]))
    read = found.examples.inputs.get("target", found.examples.ids)[0].tolist()
    shown = sorted({*found.ids.tolist(), *read, *top.indices.unique().tolist()})
    header = {
        "pieces": {str(id): writing.piece(id) for id in shown},
        "read": read,
        "total": found.total,
        "mean": found.mean,
        "perplexity": found.perplexity,
        "objective": OBJECTIVE.get(kind(writing.checkpoint), NEXT),
        "taught": TAUGHT.get(str(writing.checkpoint.card.get("objective")), ""),
        "training": training_loss(writing.checkpoint, found.examples),
    }
    arrays = {
        "id": found.ids,
        "at": found.at + 1,
        "log_probability": found.log_probabilities,
        "surprise": -found.log_probabilities / BITS,
        "rank": found.ranks,
        "entropy": found.entropies / BITS,
        "top.id": top.indices,
        "top.probability": top.values,
        "rest": (1 - top.values.double().sum(-1)).clamp(min=0).float(),
    }
    return header, arrays


def of(writing: Writing, written: tuple[int, ...]) -> Surprise:
    prompt = writing.prompt
    return surprise(writing.checkpoint, (*prompt.ids, *written), prompt.source)


def surprise_table(writing: Writing, query: Query) -> Table:
    """A row for each token that is asked for."""
    found = of(writing, written_of(writing, query))
    columns: dict[str, Any] = {
        "position": (found.at + 1).numpy(),
        "id": found.ids.numpy(),
        "token": [writing.piece(id) for id in found.ids.tolist()],
        "log_probability": found.log_probabilities.numpy(),
        "surprise_bits": (-found.log_probabilities / BITS).numpy(),
        "rank": found.ranks.numpy(),
        "entropy_bits": (found.entropies / BITS).numpy(),
    }
    about = {"loss": str(found.mean), "sum": str(found.total), "perplexity": str(found.perplexity)}
    return Table(columns, {"model": writing.name, "table": "surprise of each token", **about})


def written_of(writing: Writing, query: Query) -> tuple[int, ...]:
    return writing.ids(query.get("written", []))


def surprise_lines(writing: Writing, query: Query) -> str:
    """They bind `found` to the Surprise of the text that is shown."""
    written = written_of(writing, query)
    imports, lines = opening(writing)
    imports.setdefault("engine.prompt", set()).add("begin")
    imports.setdefault("engine.analysis.surprise", set()).update({"surprise", "training_loss"})
    arguments = ", ".join(filter(None, (writing.call.prompt, writing.call.target)))
    ids = f"(*begun.ids, {', '.join(map(str, written))})" if written else "begun.ids"
    lines += [
        f"begun = begin(checkpoint, {arguments})",
        f"found = surprise(checkpoint, {ids}, begun.source)",
        "print(found.log_probabilities, found.ranks)",
        "print(found.total, found.mean, found.perplexity)",
        "print(training_loss(checkpoint, found.examples))",
    ]
    return joined(imports, lines)

