"""Models whose circuits are to be found: what each head and each MLP does to an answer, measured in three ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.analysis.attribution import attribute
from engine.analysis.interventions.circuit import list_nodes, measure_circuits
from engine.analysis.interventions.marks import FOUND
from engine.analysis.interventions.pairs import partner_row
from engine.analysis.interventions.patching import Constant
from engine.analysis.interventions.sweep import Sweep
from engine.compiled import AnswerKey, find_answer_key
from engine.compiled.answer_key import Part
from engine.compiled.program import POSITIONS, TOKENS
from engine.runtime import library
from engine.runtime.run import run
from engine.runtime.trace import Trace

# By the numbers that a reader sees, which do not tell what they compute.
MODELS = {1: "compiled-induction", 2: "compiled-histogram", 3: "compiled-sorting", 4: "compiled-reversal"}


@dataclass(frozen=True)
class PartEffects:
    """One value for each of `parts`. `swapped`: how far the lead of the answer over that to the other text goes towards
    what it is there, as a share, when the part takes the values that it has there. `zeroed`: what the logit of the
    answer changes by when the part is 0. `added`: what the part itself adds to it."""

    parts: tuple[Part, ...]
    swapped: Tensor
    zeroed: Tensor
    added: Tensor

    def list_found(self, values: Tensor) -> list[Part]:
        """Parts whose value is above FOUND."""
        return [part for part, value in zip(self.parts, values.tolist(), strict=True) if abs(value) > FOUND]


def answer_key(model: int) -> AnswerKey:
    """The program of a model, and the part that does each line."""
    key = find_answer_key(library.checkpoint(MODELS[model]))
    assert key is not None
    return key


def list_parts(model: int) -> tuple[Part, ...]:
    """Heads and the MLP of each block, by blocks."""
    nodes = list_nodes(library.checkpoint(MODELS[model]).config)
    return tuple((node.part, node.layer, node.head) for node in nodes)


def read_vocabulary(model: int) -> tuple[tuple[str, ...], int]:
    """The tokens that a model reads, and of how many a text may be."""
    variables = {variable.name: variable for variable in answer_key(model).variables}
    return variables[TOKENS].labels, variables[POSITIONS].size


def read(model: int, text: Sequence[str]) -> Trace:
    checkpoint = library.checkpoint(MODELS[model])
    assert checkpoint.tokenizer is not None
    return run(checkpoint.model, checkpoint.tokenizer.encode(" ".join(text)))


def list_answers(model: int, text: Sequence[str]) -> list[str]:
    """What the model answers at each token of a text."""
    tokenizer = library.checkpoint(MODELS[model]).tokenizer
    assert tokenizer is not None
    return [tokenizer.pieces[id] for id in read(model, text)["logits"][0, 1:].argmax(-1).tolist()]


def measure_parts(model: int, text: Sequence[str], other: Sequence[str], place: int) -> PartEffects:
    """Swaps, zeroes and attributes each head and each MLP, for the answer at a place of the text, counted from 0.

    Raises ValueError where both texts are answered alike there.
    """
    checkpoint, row = library.checkpoint(MODELS[model]), place + 1  # behind the start token
    trace, there = read(model, text), read(model, other)
    partner = partner_row(trace, there, row, len(text) + 1)
    answer, against = int(trace["logits"][0, row].argmax()), int(there["logits"][0, partner].argmax())
    if answer == against:
        raise ValueError("Both texts are answered alike there; choose another place, or swap another token.")
    parts = list_parts(model)
    one_out = ~torch.eye(len(parts), dtype=torch.bool)
    sweep = Sweep(checkpoint.model, trace, there, "logit", row, answer, against, "break")
    zero = Sweep(checkpoint.model, trace, Constant(), "logit", row, answer)
    found = attribute(checkpoint.model, trace, row, answer)
    added: dict[Part, float] = {
        (writer.kind, writer.layer, writer.head): value for writer, value in found.values.items()
    }
    return PartEffects(
        parts,
        (measure_circuits(sweep, one_out) - sweep.nothing) / sweep.span + 0.0,
        measure_circuits(zero, one_out) - zero.nothing,
        torch.tensor([added.get(part, 0.0) for part in parts]),
    )


def swap(text: Sequence[str], place: int, token: str) -> list[str]:
    return [*text[:place], token, *text[place + 1 :]]


def list_places(model: int, text: Sequence[str], other: Sequence[str]) -> list[int]:
    """Places at which two texts of one length are answered differently."""
    both = zip(list_answers(model, text), list_answers(model, other), strict=True)
    return [place for place, (one, another) in enumerate(both) if one != another]


def find_swap(model: int, text: Sequence[str], part: Part) -> tuple[int, str] | None:
    """The first swap of a token of the text that shows a part, at the last place that is answered differently; None
    where none does."""
    tokens, _ = read_vocabulary(model)
    for place, own in enumerate(text):
        for token in tokens:
            other = swap(text, place, token)
            if token != own and (places := list_places(model, text, other)):
                effects = measure_parts(model, text, other, places[-1])
                if part in effects.list_found(effects.swapped):
                    return place, token
    return None
