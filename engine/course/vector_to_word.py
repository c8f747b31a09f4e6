"""From vector to word: the unembedding, temperature, sampling until the end token, beams that add log-probabilities,
and two words after two contexts.

Sampling and beam search are those of engine.generation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.generation.beam import BeamStep, beam
from engine.generation.generate import Step, generate
from engine.generation.sampling import Sampling, distribution
from engine.model.layers.head import LanguageHead
from engine.model.layers.softmax import softmax
from engine.runtime import library
from engine.tokenizers.encoding import Encoding

# --- unembedding ---


@dataclass(frozen=True)
class UnembeddedVector:
    """The last vector `x` (d_model), the table that scores it (vocab d_model), and `logits` (vocab), a dot product for
    each entry. `tied`: the table is that of the embedding, of which `saved` numbers are not stored again."""

    x: Tensor
    table: Tensor
    logits: Tensor
    tied: bool
    saved: int


def unembed(name: str, ids: Sequence[int]) -> UnembeddedVector:
    """logits = W_U x of what stands last, behind the final norm. Of tied weights W_U is W_E, an entry a row (Press &
    Wolf 2017, section 2)."""
    checkpoint = library.checkpoint(name)
    model = checkpoint.model
    assert isinstance(model.head, LanguageHead) and model.embed.tokens is not None
    own = model.head.weight
    table = (model.embed.tokens.weight if own is None else own).detach()
    trace = library.traces.trace(name, Encoding.from_ids(ids))
    x = trace["final_norm.out"][0, -1]
    return UnembeddedVector(x, table, table @ x, own is None, table.numel() if own is None else 0)


# --- temperature ---


def at_temperature(logits: Tensor, temperature: float) -> Tensor:
    """softmax(logits / temperature), of vocab; at 0 the largest has it all."""
    return distribution(logits, Sampling(temperature)).probabilities


def softmax_terms(logits: Tensor) -> tuple[list[float], float]:
    """e to each logit less the largest, and their sum: the largest's share is 1 over that."""
    terms = (logits - logits.max()).exp()
    return terms.tolist(), float(terms.sum())


def next_logits(name: str, ids: Sequence[int]) -> Tensor:
    """vocab: the logits of what follows."""
    return library.traces.trace(name, Encoding.from_ids(ids))["logits"][0, -1]


# --- writing ---


def sample_text(
    name: str, text: str, temperature: float, most: int, seed: int, stop_at_end: bool = True
) -> tuple[Step, ...]:
    """Draws a token, reads it, draws the next: until the end token, or `most` tokens are written."""
    checkpoint = library.checkpoint(name)
    steps = generate(checkpoint, text, most, temperature=temperature, seed=seed, stop_at_end=stop_at_end)
    return tuple(steps)


def search_beams(name: str, text: str, beams: int, tokens: int) -> tuple[BeamStep, ...]:
    """The steps of a beam search, without a length penalty: a text's score is the sum of its log-probabilities. One
    beam is greedy decoding."""
    return beam(library.checkpoint(name), text, beams, tokens, length_penalty=0.0).steps


@dataclass(frozen=True)
class Entry:
    """A text that was considered: `before` is the sum of its log-probabilities up to the last token, `added` that of
    the last; `fate` is kept, ended or dropped."""

    text: str
    before: float
    added: float
    total: float
    fate: str


def list_candidates(steps: Sequence[BeamStep], at: int) -> list[Entry]:
    """The candidates of step `at`, the most probable first."""
    step = steps[at]
    fates = {one.rank: fate for fate, some in (("kept", step.kept), ("ended", step.finished)) for one in some}
    befores = [one.log_probability for one in steps[at - 1].kept] if at else [0.0]
    return [
        Entry(
            one.text,
            befores[one.parent],
            one.log_probability - befores[one.parent],
            one.log_probability,
            fates.get(one.rank, "dropped"),
        )
        for one in step.candidates
    ]


# --- what a text is worth ---


@dataclass(frozen=True)
class Path:
    """Logits and log-probabilities (nats) of the tokens written, one each."""

    logits: Tensor
    log_probabilities: Tensor

    @property
    def total(self) -> float:
        """Sum of the log-probabilities (nats), by which beam search ranks."""
        return float(self.log_probabilities.sum())

    @property
    def probability(self) -> float:
        return math.exp(self.total)

    @property
    def product(self) -> float:
        """Logits multiplied, which means nothing."""
        return float(self.logits.prod())


@torch.inference_mode()
def measure_path(name: str, before: Sequence[int], written: Sequence[int], added: float = 0.0) -> Path:
    """Scores `written` after `before` in one forward pass. `added` is added to every logit, which changes no
    probability."""
    checkpoint = library.checkpoint(name)
    logits = checkpoint.model(torch.tensor([[*before, *written]]))[0, len(before) - 1 : -1].double() + added
    at = torch.tensor(list(written))[:, None]
    return Path(logits.gather(-1, at)[:, 0], softmax(logits).log().gather(-1, at)[:, 0])


# --- two words after two contexts ---


def compare_continuations(name: str, contexts: Sequence[str], words: Sequence[str]) -> Tensor:
    """ln p (nats) of each word after each context, context word: the sum over the tokens of the word."""
    tokenizer = library.checkpoint(name).tokenizer
    assert tokenizer is not None
    found = torch.zeros(len(contexts), len(words), dtype=torch.float64)
    for row, context in enumerate(contexts):
        for column, word in enumerate(words):
            encoding = tokenizer.encode(f"{context} {word}")
            begun = sum(end <= len(context) for _start, end in encoding.spans)
            found[row, column] = measure_path(name, encoding.ids[:begun], encoding.ids[begun:]).total
    return found
