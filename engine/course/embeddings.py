"""Word vectors: the table and its one-hot product, neighbours, analogies, maps, and a word in two contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from engine.checkpoints import Checkpoint
from engine.runtime.run import run


def embedding_table(checkpoint: Checkpoint) -> Tensor:
    """The table of the decoder or encoder, vocab d_model."""
    return dict(checkpoint.model.named_parameters())["embed.tokens.weight"].detach()


def one_hot(id: int, vocab_size: int) -> Tensor:
    """1 at `id`, else 0, vocab."""
    vector = torch.zeros(vocab_size)
    vector[id] = 1.0
    return vector


def row_by_product(id: int, table: Tensor) -> Tensor:
    """The row of a token, as one-hot times the table, d_model."""
    return one_hot(id, len(table)) @ table


def whole_words(checkpoint: Checkpoint) -> dict[str, int]:
    """Words that are one token where they follow a space -> id."""
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None
    found: dict[str, int] = {}
    for id in range(tokenizer.vocab_size):
        piece = tokenizer.decode([id])
        if piece[:1] == " " and piece[1:].isalpha() and len(piece) > 2:
            found.setdefault(piece[1:], id)
    return found


class Ranking(NamedTuple):
    """Words by falling cosine, and their cosines."""

    words: list[str]
    cosines: list[float]


def rank(vector: Tensor, table: Tensor, words: Mapping[str, int], without: Sequence[str] = ()) -> Ranking:
    """All `words` by the cosine of their vector with `vector` (d_model), those `without` left out."""
    names = [word for word in words if word not in without]
    cosines = normalize(table[[words[word] for word in names]], dim=-1) @ normalize(vector, dim=0)
    order = cosines.argsort(descending=True, stable=True).tolist()
    return Ranking([names[at] for at in order], cosines[order].tolist())


def analogy(table: Tensor, words: Mapping[str, int], a: str, b: str, c: str) -> Ranking:
    """Finds what is to `c` as `b` is to `a`: words by the cosine with b - a + c, the three left out (Mikolov et al.
    2013)."""
    vectors = normalize(table[[words[a], words[b], words[c]]], dim=-1)
    return rank(vectors[1] - vectors[0] + vectors[2], table, words, (a, b, c))


def principal_map(vectors: Tensor, axes: int) -> tuple[Tensor, Tensor]:
    """Coordinates of `vectors` (row d) on their principal axes, row axis, and the share of variance of each."""
    centred = vectors - vectors.mean(0)
    u, s, _ = torch.linalg.svd(centred, full_matrices=False)
    return u[:, :axes] * s[:axes], (s.square() / s.square().sum())[:axes]


def context_similarity(checkpoint: Checkpoint, texts: tuple[str, str], word: str) -> Tensor:
    """Cosine between the vectors of a word in two texts: of its embedding, then after each layer, 1 + layer.

    Raises ValueError, with a sentence, where a text does not hold the word as one token.
    """
    tokenizer, layers = checkpoint.tokenizer, checkpoint.model.config.layers
    assert tokenizer is not None
    vectors = []
    for text in texts:
        encoding = tokenizer.encode(text)
        places = [at for at, piece in enumerate(encoding.ids) if tokenizer.decode([piece]).strip() == word]
        if not places:
            raise ValueError(f"Expected “{word}” as one token of the text “{text}”, got none; write it there.")
        hooks = ["embed.tokens", *(f"blocks.{layer}.resid_post" for layer in range(layers))]
        trace = run(checkpoint.model, encoding, keep=hooks)
        vectors.append(torch.stack([trace[hook][0, places[-1]] for hook in hooks]))
    return cosine_similarity(vectors[0], vectors[1], dim=-1)
