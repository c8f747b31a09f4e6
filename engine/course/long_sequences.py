"""Long sequences: what a pattern costs here, windows and blocks, k nearest states across, and product quantization."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.attention_variants import quantize
from engine.attention_variants.heads import Heads
from engine.attention_variants.kept_share import KeptPattern, keep
from engine.attention_variants.material import Material, encode_in_chunks, long_text
from engine.attention_variants.measure import ALONE, PeakBytes, Setup, computation, cost
from engine.attention_variants.nearest import Nearest, exact, nearest_attention
from engine.checkpoints import Checkpoint
from engine.model.transformer import Transformer
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding

# --- What a pattern costs ---


@dataclass(frozen=True)
class AttentionCost:
    """`bytes` held at the peak and least `seconds` of several runs, all heads of one layer, from queries to z."""

    length: int
    kind: str
    bytes: int
    seconds: float


@torch.no_grad()
def measure_lengths(
    material: Material, lengths: Sequence[int], kinds: Sequence[str], window: int, times: int = 9
) -> list[AttentionCost]:
    """Measures each kind of attention ("explicit": with the pattern in memory) at each length, on this machine."""
    found, setup = [], Setup(window=window)
    with ALONE:
        for kind in kinds:
            computation(kind, material.first(lengths[0]), setup)()  # warms up
            for length in lengths:
                compute = computation(kind, material.first(length), setup)
                with PeakBytes() as seen:
                    compute()
                found.append(AttentionCost(length, kind, seen.peak, min(time_of(compute) for _ in range(times))))
    return found


def time_of(compute: Callable[[], object]) -> float:
    begin = time.perf_counter()
    compute()
    return time.perf_counter() - begin


def pattern_bytes(length: int, heads: int) -> int:
    """Scores and pattern, float32, together: 2 H n^2 numbers of 4 bytes."""
    return cost("explicit", length, heads, 1, heads, Setup()).bytes


# --- Windows ---


def keep_window(checkpoint: Checkpoint, encoding: Encoding, layer: int, head: int, window: int) -> KeptPattern:
    """A head's causal pattern on a text, of which each query keeps the last `window` keys, itself among them
    (Beltagy et al. 2020, Longformer, section 3.1)."""
    pattern = run(checkpoint.model, encoding, keep=[f"blocks.{layer}.attn.pattern"])[f"blocks.{layer}.attn.pattern"]
    pos = torch.arange(len(encoding.ids))
    return keep(pattern[0, head], pos[:, None] - pos < window)


# --- k nearest states across (Unlimiformer, Bertsch et al. 2023) ---


def read_long(checkpoint: Checkpoint, text: str) -> list[int]:
    """Ids of a text of any length, its sentences in one row, as the model learned one or two at a time."""
    tokenizer = checkpoint.tokenizer
    assert tokenizer is not None
    return list(tokenizer.encode(text.strip()).ids)


@torch.no_grad()
def encode_long(checkpoint: Checkpoint, ids: Sequence[int]) -> Tensor:
    """The encoder's states (key d_model) of a text of any length, from chunks that overlap by half."""

    model = checkpoint.model
    return encode_in_chunks(model.encoder.forward_resid, torch.tensor(ids), model.config.context)


def with_nearest(model: Transformer, k: int) -> Transformer:
    """The same weights, each head of the cross-attention with its k highest scores a row only."""
    config = model.config
    made = Transformer(replace(config, cross=replace(config.cross_attention, nearest=k)))
    made.load_state_dict(model.state_dict())
    return made.eval()


@torch.no_grad()
def write_from(checkpoint: Checkpoint, memory: Tensor, k: int) -> list[int]:
    """Ids that the decoder writes greedily from states (key d_model), the start token first; each head of the
    cross-attention looks at its `k` nearest."""
    model, encoder = with_nearest(checkpoint.model, k), checkpoint.config.encoder
    assert encoder is not None
    ids = [encoder.start]
    unread = torch.zeros(1, 1, dtype=torch.long)  # the encoder has read already
    while len(ids) < model.config.context:
        logits, _ = model.forward_with_pooled(unread, target=torch.tensor([ids]), memory=memory[None])
        ids.append(int(logits[0, -1].argmax()))
        if ids[-1] in checkpoint.end_ids:
            break
    return ids


@torch.no_grad()
def cross_queries(checkpoint: Checkpoint, memory: Tensor, ids: Sequence[int], k: int, layer: int) -> Tensor:
    """Queries of a layer's cross-attention at each token written, head pos d_head."""
    model = with_nearest(checkpoint.model, k)
    found: list[Tensor] = []
    linear = model.get_submodule(f"decoder.blocks.{layer}.cross_attn.q")
    linear.register_forward_hook(lambda _module, _given, out: found.append(out))
    unread = torch.zeros(1, 1, dtype=torch.long)
    model.forward_with_pooled(unread, target=torch.tensor([list(ids)]), memory=memory[None])
    return found[-1][0].unflatten(-1, (model.config.cross_attention.heads, -1)).transpose(0, 1)


@dataclass(frozen=True)
class NearestCrossAttention:
    """Ids `written`, the start token first; of one layer the attention to the `nearest` states and that to all of them
    (head pos key), and the share of the latter that is on the former (head)."""

    written: list[int]
    nearest: Nearest
    full: Tensor
    kept: Tensor


def cross(checkpoint: Checkpoint, ids: Sequence[int], k: int, layer: int) -> NearestCrossAttention:
    """A text of any length translated with k nearest states a query. The query is folded through W_K and searches the
    states themselves, so one index serves all heads of all layers (Bertsch et al. 2023, section 3.2)."""
    memory = encode_long(checkpoint, ids)
    written = write_from(checkpoint, memory, k)
    q = cross_queries(checkpoint, memory, written, k, layer)
    heads = Heads.from_layer(checkpoint.model.get_submodule(f"decoder.blocks.{layer}.cross_attn"), len(q))
    near = nearest_attention(q, memory, heads, k)
    full = nearest_attention(q, memory, heads, len(memory)).dense(len(memory))
    kept = (full * (near.dense(len(memory)) > 0)).sum(-1).mean(-1)
    return NearestCrossAttention(written, near, full, kept)


# --- Product quantization (Jegou et al. 2011) ---


@torch.no_grad()
def states_behind(checkpoint: Checkpoint, ids: Sequence[int], before: int) -> Material:
    """States of the last layer of `before` tokens of stories and the text `ids` behind them, as its heads read them."""
    model = checkpoint.model
    layer = model.config.layers - 1
    read = f"blocks.{layer}.norm1.out"
    whole = torch.cat([long_text(checkpoint, before), torch.tensor(list(ids))])
    states = encode_in_chunks(lambda batch: run(model, batch, keep=[read])[read], whole, model.config.context)
    return Material(states, Heads.from_layer(model.get_submodule(f"blocks.{layer}.attn"), model.config.attention.heads))


@dataclass(frozen=True)
class IndexedState:
    """A query and one state as the index has them. `query` and `residual` are subspace d, in its coordinates; `code` is
    subspace: which centroid of its sub-space each piece became. `tables` (subspace code) hold what every centroid would
    contribute; those that the code picks add up, with `offset`, to `quantized`, which stands for `exact`."""

    query: Tensor
    residual: Tensor
    code: Tensor
    tables: Tensor
    offset: float
    quantized: float
    exact: float
    list: int


def open_state(index: quantize.Index, query: Tensor, state: int, distances: bool = False) -> IndexedState:
    """Product q . h, or squared distance ||q - h||^2, of a query (d_model) and the one numbered `state` by tables.

    q . h ~ q . c + sum_i q_i . r_i; ||q - h||^2 ~ sum_i ||(q - c)_i - r_i||^2 (Jegou et al. 2011, equations 13 and 28),
    where c is the centroid of the state's list and r_i the centroid of piece i of h - c.
    """
    subspaces, row = len(index.codebooks), int((index.keys == state).nonzero())
    number = next(at for at, end in enumerate(index.starts[1:]) if row < end)
    q, h, c = query @ index.metric.to_query, index.states[state] @ index.metric.to_state, index.centroids[number]
    pieces = (q - c if distances else q).view(subspaces, 1, -1)
    if distances:
        tables, offset, exactly = (pieces - index.codebooks).square().sum(-1), 0.0, float((q - h).square().sum())
    else:
        tables, offset, exactly = (pieces * index.codebooks).sum(-1), float(q @ c), float(q @ h)
    code = index.codes[row].long()
    quantized = offset + float(tables[torch.arange(subspaces), code].sum())
    return IndexedState(pieces[:, 0], (h - c).view(subspaces, -1), code, tables, offset, quantized, exactly, number)


def recall_curve(index: quantize.Index, queries: Tensor, ks: Sequence[int]) -> list[float]:
    """recall@k for each k: the share of the true k nearest among the k found."""
    return [quantize.recall(index.search(queries, k)[1], exact(queries, index.states, k)[1]) for k in ks]
