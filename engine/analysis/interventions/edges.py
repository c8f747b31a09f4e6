"""Edges between the parts of a decoder or an encoder: what one writes into the stream as another reads it.

A part that writes is the embedding, a head or an MLP; one that reads is a head's query, key or value, an MLP, or the
output. `patch_paths` changes what one reader reads of one writer and nothing else (Wang et al. 2023, "Interpretability
in the Wild", section 3.1, direct paths); `attribute_edges` estimates that for all edges at once (Syed et al. 2024,
"Attribution Patching Outperforms Automated Circuit Discovery": edge attribution patching; Hanna et al. 2024, "Have
Faith in Faithfulness", section 3: with integrated gradients).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from engine.analysis.interventions.gradient import differentiate
from engine.analysis.interventions.metric import Metric, widen
from engine.analysis.interventions.patching import Origin, PatchRows, new_values, rows_together, run_rows
from engine.analysis.interventions.sites import SITES
from engine.analysis.weights.circuit import writing_rows
from engine.model.config import ModelConfig, kv_heads
from engine.model.hooks import active
from engine.model.layers.block import Block
from engine.model.transformer import Transformer
from engine.runtime.recording import Recording
from engine.runtime.run import resolve_edits
from engine.runtime.trace import Trace

Part = Literal["embedding", "head", "MLP", "q", "k", "v", "output"]


@dataclass(frozen=True)
class Node:
    """A part that writes (embedding, head, MLP) or reads (q, k, v of a head, MLP, output)."""

    part: Part
    layer: int | None = None
    head: int | None = None


@dataclass(frozen=True)
class Edges:
    """`values` is writer reader; NaN where the writer stands behind the reader."""

    writers: tuple[Node, ...]
    readers: tuple[Node, ...]
    values: Tensor


def check_edges(config: ModelConfig) -> None:
    """Raises ValueError for a model whose parts do not read sums of what others wrote."""
    if config.encoder is not None:
        raise ValueError("Edges are between parts of one stack, and this model has two; choose a model of one stack.")
    if config.norm.place != "before" and config.norm.kind != "none":
        raise ValueError(
            f"Edges are for models with a norm in front of each sublayer, got {config.norm.place}: there a norm stands "
            "between what a head writes and the stream; choose another model."
        )


def list_writers(config: ModelConfig) -> tuple[Node, ...]:
    found = [Node("embedding")]
    for layer in range(config.layers):
        found += [Node("head", layer, head) for head in range(config.attention.heads)]
        found += [Node("MLP", layer)] if config.mlp else []
    return tuple(found)


def list_readers(config: ModelConfig) -> tuple[Node, ...]:
    heads = {"q": config.attention.heads, "k": kv_heads(config.attention), "v": kv_heads(config.attention)}
    found = list[Node]()
    for layer in range(config.layers):
        found += [Node(part, layer, head) for part, count in heads.items() for head in range(count)]  # type: ignore[arg-type]
        found += [Node("MLP", layer)] if config.mlp else []
    return (*found, Node("output"))


def reaches(config: ModelConfig, writer: Node, reader: Node) -> bool:
    """Tells whether what one writes is in the stream that the other reads."""
    if writer.layer is None or reader.layer is None:
        return True
    beside = config.sublayers == "sequential" and writer.part == "head" and reader.part == "MLP"
    return writer.layer < reader.layer or (writer.layer == reader.layer and beside)


def written_changes(model: Transformer, base: Trace, origin: Origin) -> Tensor:
    """What an origin changes each writer's part of the stream by, writer pos d_model, in the order of
    `list_writers`."""
    config = model.config
    found = [new_values(base, origin, SITES["stream"].hook(model, 0))[2][None]]
    for layer in range(config.layers):
        z = new_values(base, origin, SITES["z"].hook(model, layer))[2]  # pos head d_value
        found.append(torch.einsum("phd,hdm->hpm", z, widen(writing_rows(model, layer))))
        if config.mlp:
            found.append(new_values(base, origin, SITES["MLP"].hook(model, layer))[2][None])
    return torch.cat(found)


def stream_of(model: Transformer, reader: Node) -> str:
    """Hook of the stream that a part reads."""
    if reader.layer is None:
        return f"blocks.{model.config.layers - 1}.resid_post"
    middle = reader.part == "MLP" and model.config.sublayers == "sequential"
    return f"blocks.{reader.layer}.resid_{'mid' if middle else 'pre'}"


def read_of(model: Transformer, reader: Node) -> str:
    """Hook of what a part makes of the stream."""
    if reader.layer is None:
        return stream_of(model, reader)
    site = SITES["MLP" if reader.part == "MLP" else reader.part]
    return site.hook(model, reader.layer).name


def read(model: Transformer, base: Trace, reader: Node, stream: Tensor) -> Tensor:
    """What a part, of all heads, makes of another stream (batch pos d_model), as its hook has it."""
    if reader.layer is None:
        return stream
    block, hook = model.blocks[reader.layer], read_of(model, reader)
    assert isinstance(block, Block)
    edits = resolve_edits(model, base.edits, list(base.encodings) or base.ids, mask=base.mask)
    recording = Recording(model, frozenset([hook]), edits, None)
    with active(recording):
        if reader.part == "MLP":
            assert block.mlp is not None
            out = block.mlp(block.norm1(stream) if block.norm2 is None else block.norm2(stream))
            block.scale_output(out, block.hook_added2, block.scale2)
        elif reader.part == "q":
            block.attn.query(block.norm1(stream))
        else:
            block.attn.keys_and_values(block.norm1(stream))
    return recording.values[hook]


@torch.no_grad()
def patch_paths(model: Transformer, base: Trace, origin: Origin, reader: Node, metric: Metric, row: int) -> Edges:
    """The metric where one part reads another value of one writer: exact, a run for each edge that changes anything,
    many at a time. With a head as the reader, of all heads of its block.

    Raises ValueError as `check_edges` does.
    """
    check_edges(model.config)
    writers = [one for one in list_writers(model.config) if reaches(model.config, one, reader)]
    changes = written_changes(model, base, origin)
    order = {node: number for number, node in enumerate(list_writers(model.config))}
    hook = model.hooks[read_of(model, reader)]
    readers = [one for one in list_readers(model.config) if (one.part, one.layer) == (reader.part, reader.layer)]
    stream = widen(base[stream_of(model, reader)][:1])
    together = rows_together(model, base)
    columns = list[Tensor]()
    for number in range(len(readers)):
        measured = []
        for part in torch.tensor([order[one] for one in writers]).split(together):
            values = read(model, base, reader, (stream + changes[part]).to(model.dtype))
            heads = torch.arange(len(readers)) == number
            places = heads.view([1, *(-1 if axis == "head" else 1 for axis in hook.axes[1:])])
            edit = PatchRows(hook.name, values, places)
            measured.append(metric(run_rows(model, base, [edit], len(part), row)))
        columns.append(torch.cat(measured))
    return Edges(tuple(writers), tuple(readers), torch.stack(columns, 1))


def attribute_edges(model: Transformer, base: Trace, origin: Origin, metric: Metric, row: int, steps: int = 0) -> Edges:
    """What the change of each edge does to the metric, to first order: by the slopes of the base's run, or with `steps`
    by their mean over as many runs on the way from it to one whose embedding is the origin's.

    Raises ValueError as `check_edges` does, and for a metric without a gradient.
    """
    check_edges(model.config)
    config, changes = model.config, written_changes(model, base, origin)
    writers, readers = list_writers(config), list_readers(config)
    apart = torch.tensor([[not reaches(config, writer, reader) for reader in readers] for writer in writers])
    total = changes.new_zeros(len(writers), len(readers))
    stream = widen(base[SITES["stream"].hook(model, 0).name][:1])
    for step in range(1, max(steps, 1) + 1):
        resid = (stream + step / steps * changes[0]).to(model.dtype) if steps else None
        slopes = torch.stack(list(reader_slopes(model, base, metric, row, readers, resid)))  # reader pos d_model
        total += torch.einsum("wpm,rpm->wr", changes, slopes)
    return Edges(writers, readers, (total / max(steps, 1)).masked_fill(apart.to(total.device), torch.nan))


def reader_slopes(
    model: Transformer, base: Trace, metric: Metric, row: int, readers: Sequence[Node], resid: Tensor | None
) -> Iterator[Tensor]:
    """d metric / d the stream as each part reads it, pos d_model."""
    hooks = list(dict.fromkeys([name for one in readers for name in (stream_of(model, one), read_of(model, one))]))
    values, slopes = differentiate(model, base, hooks, metric, row, resid)
    known = dict[tuple[Part, int | None], Tensor]()
    for reader in readers:
        kind, hook = (reader.part, reader.layer), read_of(model, reader)
        if kind not in known:
            known[kind] = through_reader(model, base, reader, values[stream_of(model, reader)], slopes[hook])
        yield known[kind][reader.head or 0]


def through_reader(model: Transformer, base: Trace, reader: Node, stream: Tensor, slope: Tensor) -> Tensor:
    """A slope of what a part makes of the stream (batch pos ...), as one of the stream, for each head by itself: head
    pos d_model, of a part without heads 1 pos d_model."""
    if reader.layer is None:
        return widen(slope)
    heads = slope.shape[2] if reader.head is not None else 1
    with torch.enable_grad():
        given = stream.detach().expand(heads, *stream.shape[1:]).clone().requires_grad_()
        made = read(model, base, reader, given)
        own = made.diagonal(dim1=0, dim2=2).permute(2, 0, 1) if reader.head is not None else made  # head pos width
        asked = slope[0].transpose(0, 1) if reader.head is not None else slope
        (found,) = torch.autograd.grad(own, given, asked)
    return widen(found)
