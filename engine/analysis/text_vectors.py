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
from engine.model.config import ModelConfig, Pooling, TextVector
from engine.model.layers.mask import HiddenPosition
from engine.model.layers.vector import SHORTEST, MapOfVector, pool, pooling_weights
from engine.model.transformer import Transformer
from engine.runtime.run import run, stream
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding

OUT = "vector.out"
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


def choose_vector(config: ModelConfig, pooling: Pooling | None = None) -> TextVector:
    """The model's own way to make a vector of a text, or the pooling that is given, of length 1. Raises ValueError for
    a model that has none of its own, and for two stacks of blocks."""
    if config.encoder is not None:
        raise ValueError("A vector is made of one stack of blocks, and this model has two; choose an encoder.")
    if pooling is not None:
        return TextVector((pooling,), unit=True)
    if config.vector is None:
        raise ValueError(
            "This model does not say how a vector of a whole text is made, as a sentence encoder's modules.json does: "
            "choose how its last vectors are pooled."
        )
    return config.vector


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


def vectors_of(model: Transformer, trace: Trace, pooling: Pooling | None = None) -> Tensor:
    """Vectors of the texts of a run: text component, or text pos component where every token has one of its own."""
    if pooling is None:
        choose_vector(model.config)
        return trace[OUT]
    choose_vector(model.config, pooling)
    return normalize(pool(trace[last_hook(model)], pooling, trace.padding), dim=-1, eps=SHORTEST)


def text_vectors(
    checkpoint: Checkpoint, texts: Sequence[str], prompt: str = "", pooling: Pooling | None = None
) -> Tensor:
    """text component, of texts each behind the prompt, by the model's own vector or by a `pooling`. Raises ValueError
    as `choose_vector` and `read_text`, and where every token has a vector of its own."""
    return torch.cat([step() for step in vector_steps(checkpoint, texts, prompt, pooling)])


def vector_steps(
    checkpoint: Checkpoint, texts: Sequence[str], prompt: str = "", pooling: Pooling | None = None
) -> list[Callable[[], Tensor]]:
    """Parts of the work of `text_vectors`, each of which gives the vectors of the next few texts."""
    check_pooled(choose_vector(checkpoint.config, pooling))
    readings = [read_text(checkpoint, text, prompt) for text in texts]
    parts = [readings[at : at + BATCH] for at in range(0, len(readings), BATCH)]
    return [partial(make_vectors, checkpoint.model, part, pooling) for part in parts]


def make_vectors(model: Transformer, readings: Sequence[Encoding], pooling: Pooling | None) -> Tensor:
    hook = OUT if pooling is None else last_hook(model)
    return vectors_of(model, run(model, list(readings), keep=[hook]), pooling)


def check_pooled(vector: TextVector) -> None:
    """Raises ValueError for a model with a vector for each token and none for the text."""
    if not vector.pooled:
        raise ValueError(
            "This model keeps a vector for each token, and a text has none of its own: two texts have a score, the sum "
            "of the best product of each token."
        )


def cosines(vectors: Tensor, others: Tensor) -> Tensor:
    """Cosine of each of `vectors` with each of `others`: text text."""
    return normalize(vectors, dim=-1) @ normalize(others, dim=-1).T


def nearest(vector: Tensor, others: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Cosines and indices of the `count` texts whose vectors (text component) lie nearest to one (component)."""
    found = cosines(vector[None], others)[0].topk(min(count, len(others)))
    return found.values, found.indices


def vector_shares(model: Transformer, trace: Trace, pooling: Pooling | None = None) -> VectorShares:
    """What each token gives to the vector of the first text. Raises ValueError where maps with an activation make of
    the sum something else."""
    vector = choose_vector(model.config, pooling)
    check_pooled(vector)
    if not vector.is_linear:
        bent = (f"map with the activation {one.activation}" for one in vector.maps if one.activation != "identity")
        named = "norm" if vector.norm else "probe with an MLP" if vector.probe else next(bent)
        raise ValueError(
            f"A {named} stands behind what is pooled, so that the vector is no sum over tokens: the cosine cannot be "
            "split into pairs of tokens."
        )
    last = trace[last_hook(model)]
    own = model.vector if pooling is None else None
    weights = (
        pooling_weights(last, kind, trace.padding) if own is None else own.weigh(kind, last, trace.padding, trace.ids)
        for kind in vector.pooled
    )
    shares = torch.cat([last[0].double() * one[0].double() for one in weights], dim=-1)
    rest = shares.new_zeros(shares.shape[-1])
    for made in model.vector.maps if pooling is None and model.vector is not None else ():
        assert isinstance(made, MapOfVector)
        weight = made.dense.weight.double()
        shares, rest = shares @ weight.T, rest @ weight.T
        if made.dense.bias is not None:
            rest = rest + made.dense.bias.double()
    length = (shares.sum(0) + rest).norm().clamp(min=SHORTEST) if vector.unit else shares.new_ones(())
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


def vector_without(model: Transformer, read: Encoding | Tensor, at: int) -> Tensor:
    """The vector, component, of a text or of pixels where nobody sees the position `at`."""
    return run(model, read, keep=[OUT], mask=model.mask() & HiddenPosition(at))[OUT][0]


def cosines_without(model: Transformer, read: Encoding | Tensor, vector: Tensor) -> Tensor:
    """Cosine with `vector` (component) of that of a text or of pixels where nobody sees the first position, the second,
    and so on: pos."""
    count = len(read) if isinstance(read, Encoding) else model.config.context
    return torch.stack([cosines(vector_without(model, read, at)[None], vector[None])[0, 0] for at in range(count)])


def iterate_prompts(checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    """Names and texts of the prompts of a model, the empty one first where none is usual."""
    settings = checkpoint.sentence
    usual = settings.usual
    if usual is None:
        yield "", ""
    yield from sorted(settings.prompts.items(), key=lambda one: one[0] != usual)
    if usual is not None:
        yield "", ""
