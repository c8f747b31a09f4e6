"""Why a head looks there: one score q k, before the softmax, as the exact sum over what wrote the query and the key.

Elhage et al. 2021 ("A Mathematical Framework for Transformer Circuits", "Path Expansion of Attention Scores"): with the
norms held still (`engine.analysis.writers`), q and k are sums over the parts that wrote the two streams, and their
product is a sum over pairs. Rotations of positions turn each term as they turn the whole. What ALiBi, or a relative
position, adds to a score stands beside the sum. Disentangled positions take part in it as one more writer, the
distance: its key with each part of the query, its query with each part of the key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from engine.analysis.weights.circuit import attention_of
from engine.analysis.writers import Walk, Writer, hold_norm
from engine.model.layers.attention import Attention
from engine.model.layers.latent import Latent
from engine.model.layers.norm import norm_of_head
from engine.model.layers.position import distance_rows
from engine.model.stack import Stack
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace


@dataclass(frozen=True)
class ScoreSplit:
    """`values` (query writer, key writer) add up to `score`, the recorded one before cap, bias and mask; `bias` is what
    positions add to it, 0 where they add nothing. `seen` is False where the mask hides the key.

    Where the distance is a writer, `terms` are the parts of the score as they were recorded, by their hooks: "scores",
    "c2p", "p2c".
    """

    queries: tuple[Writer, ...]
    keys: tuple[Writer, ...]
    values: Tensor
    score: float
    bias: float
    seen: bool
    terms: Mapping[str, float] = field(default_factory=dict)


@torch.no_grad()
def split_score(
    model: Transformer, trace: Trace, layer: int, head: int, pos: int, key: int, side: str = "", crosses: bool = False
) -> ScoreSplit:
    """Splits the score of one head between a query's position and a key's, in the first text.

    Raises ValueError for a layer, head or place that there is not, and for a run whose edits changed queries, keys or
    positions on their way to the score, so that the parts do not add up to it.
    """
    attention = attention_of(model, layer, side, crosses)
    if not 0 <= head < attention.heads:
        raise ValueError(f"head must be 0 to {attention.heads - 1}, got {head}.")
    walk = Walk(model, trace, pos, side)
    name = "cross_attn" if crosses else "attn"
    hook = f"{walk.prefix}blocks.{layer}.{name}"
    queries, q = vectors(walk, attention, layer, head, crosses, "q", hook)
    if crosses:
        walk = Walk(model, trace, key, "encoder")
        layer = len(walk.stack.blocks)
    else:
        walk = Walk(model, trace, key, side)
    keys, k = vectors(walk, attention, layer, head, crosses, "k", hook)
    values = q @ k.mT * attention.scale
    scores = trace[f"{hook}.scores"][0, head]
    terms = {name: float(trace[f"{hook}.{name}"][0, head, pos, key]) for name in ("scores", *attention.terms)}
    if attention.terms:
        values = with_distance(walk.stack, attention, head, pos, key, q, k, values)
        queries, keys = ([*those, Writer("distance")] for those in (queries, keys))
    score = sum(terms.values())
    if abs(float(values.sum()) - score) > tolerance(values, scores.dtype):
        raise ValueError(
            "the edits of this run change queries, keys or positions on their way to this score, so its parts do not "
            "add up to it; take these edits off."
        )
    bias = float(trace[f"{hook}.bias"][head, pos, key]) if f"{hook}.bias" in trace else 0.0
    seen = bool(trace[f"{hook}.mask"].expand(len(trace.ids), attention.heads, -1, -1)[0, head, pos, key])
    return ScoreSplit(tuple(queries), tuple(keys), values, score, bias, seen, terms if attention.terms else {})


def with_distance(
    stack: Stack, attention: Attention, head: int, pos: int, key: int, q: Tensor, k: Tensor, values: Tensor
) -> Tensor:
    """`values` with a column of each part of the query `q` (writer d_head) times the distance's key, and a row of each
    part of the key `k` times its query; 0 where the positions have no such term."""
    vectors = stack.distance_vectors()
    assert vectors is not None
    row = distance_rows(torch.tensor([pos]), torch.tensor([key]), stack.config.positions)[0, 0]
    whole = torch.nn.functional.pad(values, (0, 1, 0, 1))
    for term, last, x in (("c2p", whole[:-1, -1], q), ("p2c", whole[-1, :-1], k)):
        if term in attention.terms:
            of_distance = attention.of_distances(vectors, "k" if term == "c2p" else "q")[head, row]
            last.copy_(x @ of_distance.double() * attention.scale)
    return whole


def tolerance(values: Tensor, dtype: torch.dtype) -> float:
    """Largest difference of a score from the sum of its parts that rounding alone can make, on whatever processor: of a
    shipped model it has been 9 times the precision of what is summed."""
    return max(1.0, float(values.abs().sum())) * 32 * torch.finfo(dtype).eps


def vectors(
    walk: Walk, attention: Attention, layer: int, head: int, crosses: bool, which: str, hook: str
) -> tuple[Collection[Writer], Tensor]:
    """Each writer, and its term in the query "q", the key "k" or the value "v" of a head (writer d_head), turned as its
    position turns it."""
    group = head if which == "q" else head * attention.kv_heads // attention.heads
    read, constant = through_projection(attention, getattr(attention, which), which, group, walk, hook)
    if attention.latent is not None:
        read, constant = through_latent(attention.latent, which, read, constant, walk, f"blocks.{layer}.attn.latent.")
    foreign = crosses and which != "q"
    norm = None if foreign else norm_of(walk.stack, layer, crosses)
    name = "norm_cross" if crosses else "norm1"
    if foreign and not isinstance(walk.stack.final_norm, nn.Identity):
        read, shift = hold_norm(walk.stack.final_norm, read, walk.value(f"blocks.{layer - 1}.resid_post"))
        constant = constant + shift
    if norm is not None:
        stream = walk.value(f"blocks.{layer}.{'resid_mid' if crosses else 'resid_pre'}")
        read, shift = walk.through_norm(read, norm, f"blocks.{layer}.{name}", stream)
        constant = constant + shift
    found = walk.back(read, layer, behind="attn" if crosses and not foreign else "")
    found.add(Writer("bias", layer if not foreign else None), constant)
    return found.values.keys(), found.matrix if crosses or which == "v" else turn(walk, attention, layer, found.matrix)


def norm_of(stack: Stack, layer: int, crosses: bool) -> nn.Module | None:
    """The norm that an attention reads with; None where norms stand behind."""
    block = stack.blocks[layer]
    if not block.norm_before:
        return None
    norm = block.norm_cross if crosses else block.norm1
    assert isinstance(norm, nn.Module)
    return norm


def through_latent(
    latent: Latent, which: str, read: Tensor, constant: Tensor, walk: Walk, name: str
) -> tuple[Tensor, Tensor]:
    """Turns what reads a compressed vector (component d_latent) into what reads the stream (component d_model); of a
    key its turned components, which are made apart, stand before the others."""
    if which == "q" and latent.queries is None:
        return read, constant
    of_queries = which == "q"
    part = "queries" if of_queries else "keys"
    down, norm = getattr(latent, part), getattr(latent, f"{part}_norm")
    read, shift = walk.through_norm(read, norm, f"{name}{part}_norm", walk.value(f"{name}{part}"))
    constant = constant + shift + (0 if down.bias is None else read @ down.bias.double())
    read = read @ down.weight.double()
    if which != "k":
        return read, constant
    shared = latent.shared
    first = constant.new_zeros(shared.out_features) if shared.bias is None else shared.bias.double()
    return torch.cat([shared.weight.double(), read]), torch.cat([first, constant])


def through_projection(
    attention: Attention, projection: nn.Linear, which: str, group: int, walk: Walk, hook: str
) -> tuple[Tensor, Tensor]:
    """Readings of the stream by each component of a head's query, key or value, d_head d_model, and what it is
    anyway."""
    heads = attention.heads if which == "q" else attention.kv_heads
    read = torch.eye(projection.out_features, dtype=torch.float64).unflatten(0, (heads, -1))[group]
    constant = read.new_zeros(len(read))
    if attention.normed and which != "v":
        norm = attention.q_norm if which == "q" else attention.k_norm
        given = walk.trace[f"{hook}.{which}"][0, walk.pos].double()  # head d_head
        if attention.whole:
            read, constant = hold_norm(norm, read, given.flatten())
        else:
            one = torch.eye(attention.d_head, dtype=torch.float64)
            own, constant = hold_norm(norm_of_head(norm, group), one, given[group])
            read = own @ read
    if projection.bias is not None:
        constant = constant + read @ projection.bias.double()
    return read @ projection.weight.double(), constant


def turn(walk: Walk, attention: Attention, layer: int, vectors: Tensor) -> Tensor:
    """Turns queries or keys (writer d_head) as the walk's position turns them."""
    stack, trace = walk.stack, walk.trace
    rotary = stack.rotary_of(layer)
    if rotary is None:
        return vectors
    ids = trace.target if walk.prefix == "decoder." and trace.target is not None else trace.ids
    length = trace[f"{walk.prefix}blocks.0.resid_pre"].shape[1]
    pos = stack.positions(ids, torch.arange(length, device=vectors.device))
    if pos.dim() == 3:
        both = [rotary.turn(one, length, torch.float64) for one in pos]
        here = tuple((cos[:1, walk.pos : walk.pos + 1], sin[:1, walk.pos : walk.pos + 1]) for cos, sin in both)
        turned = attention.turn(vectors[:, None, None], (here[0], here[1]))
    else:
        cos, sin = rotary.turn(pos, length, torch.float64)
        turned = attention.turn(vectors[:, None, None], (cos[walk.pos : walk.pos + 1], sin[walk.pos : walk.pos + 1]))
    return turned[:, 0, 0]
