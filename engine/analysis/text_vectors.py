"""Vectors that stand for whole texts: how alike two are, which pairs of tokens make them so, and which lie nearest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import normalize

from engine.checkpoints import Checkpoint
from engine.inputs import readers
from engine.model.config import ModelConfig, TextVector
from engine.model.layers.vector import SHORTEST, pooling_weights
from engine.model.transformer import Transformer
from engine.runtime.run import run, stream
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding

OUT, LENGTH = "vector.out", "vector.length"
BATCH = 16  # texts of a forward pass


@dataclass(frozen=True)
class VectorShares:
    """A text's vector as a sum: of what each token gives (`tokens`, pos component) and of the biases of maps (`rest`,
    component)."""

    tokens: Tensor
    rest: Tensor

    @property
    def vector(self) -> Tensor:
        """component."""
        return self.tokens.sum(0) + self.rest


@dataclass(frozen=True)
class SharedCosine:
    """Cosine of two texts as a sum: of `pairs` (a token of the first, one of the second), and of the `rest`, which the
    biases of maps make."""

    cosine: float
    pairs: Tensor
    rest: float


def check_vectors(config: ModelConfig) -> None:
    """Raises ValueError for a model that makes no vector of a whole text."""
    if config.vector is None:
        raise ValueError(
            "This model has no vector that stands for a whole text: a sentence encoder's folder says how one is made, "
            "in its modules.json. Choose a model that has one."
        )


def last_hook(model: Transformer) -> str:
    """Hook of the last residual stream, of which vectors are made."""
    final = "final_norm.out"
    return final if final in model.hooks else stream(model, f"blocks.{model.config.layers - 1}.")


def read_text(checkpoint: Checkpoint, text: str, prompt: str = "") -> Encoding:
    """The text behind its prompt, cut to as many tokens as the model makes a vector of. Raises ValueError as
    `readers.tokens`, and for a text without a token."""
    longest = min(checkpoint.sentence.longest or checkpoint.config.context, checkpoint.config.context)
    read = readers.tokens(checkpoint, prompt + text).truncate(longest)
    if not read:
        raise ValueError(f"Expected a text, got {text!r:.80}, which has no token; write some words.")
    return read


def text_vectors(checkpoint: Checkpoint, texts: Sequence[str], prompt: str = "") -> Tensor:
    """text component, of texts each behind the prompt. Raises ValueError as `check_vectors` and `read_text`, and where
    every token has a vector of its own."""
    return torch.cat([step() for step in vector_steps(checkpoint, texts, prompt)])


def vector_steps(checkpoint: Checkpoint, texts: Sequence[str], prompt: str = "") -> list[Callable[[], Tensor]]:
    """Parts of the work of `text_vectors`, each of which gives the vectors of the next few texts."""
    check_vectors(checkpoint.config)
    check_pooled(checkpoint.config.vector)
    readings = [read_text(checkpoint, text, prompt) for text in texts]
    return [partial(make_vectors, checkpoint, readings[at : at + BATCH]) for at in range(0, len(readings), BATCH)]


def make_vectors(checkpoint: Checkpoint, readings: Sequence[Encoding]) -> Tensor:
    return run(checkpoint.model, list(readings), keep=[OUT])[OUT]


def check_pooled(vector: TextVector | None) -> None:
    if vector is not None and not vector.pooled:
        raise ValueError(
            "This model keeps a vector for each token, and a text has none of its own; two texts have a score."
        )


def cosines(vectors: Tensor, others: Tensor) -> Tensor:
    """Cosine of each of `vectors` with each of `others`: text text."""
    return normalize(vectors, dim=-1) @ normalize(others, dim=-1).T


def nearest(vector: Tensor, others: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Cosines and indices of the `count` texts whose vectors (text component) lie nearest to one (component)."""
    found = cosines(vector[None], others)[0].topk(min(count, len(others)))
    return found.values, found.indices


def vector_shares(model: Transformer, trace: Trace) -> VectorShares:
    """What each token gives to the vector of the first text. Raises ValueError where maps with an activation make of
    the sum something else."""
    check_vectors(model.config)
    vector = model.config.vector
    assert vector is not None and model.vector is not None
    check_pooled(vector)
    if not vector.is_linear:
        named = next(one.activation for one in vector.maps if one.activation != "identity")
        raise ValueError(
            f"A map with the activation {named} stands behind what is pooled, so that the vector is no sum over "
            "tokens: the cosine cannot be split into pairs of tokens."
        )
    last = trace[last_hook(model)][:1].double()
    real = None if trace.padding is None else trace.padding[:1]
    shares = torch.cat([(last * pooling_weights(last, kind, real))[0] for kind in vector.pooled], dim=-1)
    rest = shares.new_zeros(shares.shape[-1])
    for made in model.vector.maps:
        weight = made.dense.weight.double()
        shares, rest = shares @ weight.T, rest @ weight.T
        if made.dense.bias is not None:
            rest = rest + made.dense.bias.double()
    length = trace[LENGTH][0].double().clamp(min=SHORTEST) if vector.unit else shares.new_ones(())
    return VectorShares(shares / length, rest / length)


def split_cosine(first: VectorShares, second: VectorShares) -> SharedCosine:
    """The cosine of two vectors as a sum over pairs of their tokens, each the product of what both give, divided by the
    vectors' lengths: sum_ij a_i . b_j / (|a| |b|)."""
    lengths = first.vector.norm() * second.vector.norm()
    cosine = first.vector @ second.vector / lengths.clamp(min=SHORTEST)
    pairs = first.tokens @ second.tokens.T / lengths.clamp(min=SHORTEST)
    return SharedCosine(float(cosine), pairs, float(cosine - pairs.sum()))


def late_interaction(query: Tensor, document: Tensor) -> tuple[Tensor, Tensor]:
    """Products of each token's vector of a query with each of a document (pos key), and the greatest of each row, whose
    sum is the score (Khattab & Zaharia 2020, ColBERT, section 3.3); both are pos component."""
    products = query @ document.T
    return products, products.amax(1)


def iterate_prompts(checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    """Names and texts of the prompts of a model, the empty one first where none is usual."""
    settings = checkpoint.sentence
    usual = settings.usual
    if usual is None:
        yield "", ""
    yield from sorted(settings.prompts.items(), key=lambda one: one[0] != usual)
    if usual is not None:
        yield "", ""
