"""The logit lens: what a model would say if it stopped before a block (nostalgebraist 2020, "interpreting GPT: the
logit lens"; Belrose et al. 2023, section 2).

The residual stream into each block goes through the final norm and the head as the last one does. Layer 0 is the
embedding, the last layer the model's own logits, with all that edits did to them; edits of the final norm or the head
itself act on that last layer only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from engine.analysis.effects import log_probabilities
from engine.model.config import ModelConfig
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace


@dataclass(frozen=True)
class Translators:
    """Maps of each layer's stream h to the input of the final norm and the head: h + `matrix` h + `bias` (layer d_model
    d_model and layer d_model), made of `texts` texts. `base` is the model that others made them for, or where they come
    from, by their name, `kind` what they are, and `missing` the layers of which others made none, which stay as they
    are."""

    matrix: Tensor
    bias: Tensor
    texts: int = 0
    base: str = ""
    kind: Literal["tuned", "Jacobian"] = "tuned"
    missing: tuple[int, ...] = ()

    def translate(self, stream: Tensor, layer: int) -> Tensor:
        """`stream` is ... d_model; that behind the last block stays."""
        if layer >= len(self.matrix):
            return stream
        return stream + stream @ self.matrix[layer].to(stream.dtype).mT + self.bias[layer].to(stream.dtype)


@dataclass(frozen=True)
class Lens:
    """`ids` and `probability` are layer row candidate, the likeliest first; `kl` (layer row) is KL(end || layer) in
    bits: what is lost by stopping there."""

    ids: Tensor
    probability: Tensor
    kl: Tensor


@dataclass(frozen=True)
class Depth:
    """Trajectory of one candidate at one row through all layers: `probability`, and `rank`, 1 for the likeliest (layer
    each)."""

    probability: Tensor
    rank: Tensor


@torch.no_grad()
def lens_logits(
    model: Transformer, trace: Trace, layer: int, row: int | None = None, made: Translators | None = None
) -> Tensor:
    """Logits of the first text at a layer, 0 to the number of blocks: pos vocab or pos class; 1 class of a head that
    answers once; 2 pos (start and end) of one that points into the text. With `row` those of one row, 1 candidate;
    with translators those of another lens (`engine.analysis.lenses`).

    Raises ValueError for a model without a head, and for a layer that it does not have.
    """
    config = model.config
    check_lens(config)
    if not 0 <= layer <= config.layers:
        raise ValueError(f"layer must be from 0 to {config.layers}, got {layer}.")
    alone = row is not None and config.head.kind in ("language", "masked", "token")  # one that needs no other position
    at = slice(row, row + 1) if alone and row is not None else slice(None)
    logits = trace["logits"][:1, at] if layer == config.layers else read_stream(model, trace, layer, at, made)
    if "pos" not in trace.dims("logits"):
        return logits[:1]
    rows = logits[0].mT if config.head.kind == "span" else logits[0]
    return rows if row is None or alone else rows[row : row + 1]


def read_stream(
    model: Transformer, trace: Trace, layer: int, at: slice = slice(None), made: Translators | None = None
) -> Tensor:
    """Output of the head for the stream into block `layer`, with the axes of the model's logits, at the positions `at`
    of those whose logits were computed."""
    stack, side = (model, "") if model.config.encoder is None else (model.decoder, "decoder.")
    resid = trace[f"{side}blocks.{layer}.resid_pre"]
    stream = stack.final_norm(resid if made is None else made.translate(resid, layer))
    padding = trace.padding if trace.target is None else trace.target_padding
    read = trace.ids if trace.target is None or model.config.rereads else trace.target
    return model.heads(stream[:, trace.logits_at][:, at], padding, trace.logits_at, None if trace.pictures else read)[0]


def check_lens(config: ModelConfig) -> None:
    """Raises ValueError for a model whose layers cannot be read as probabilities."""
    if config.head.kind == "none":
        raise ValueError("This model has no head, so no layer of it says anything; choose one that predicts.")
    if config.link == "identity":
        raise ValueError("This model's head gives scores, which are no probabilities; choose one that predicts.")


def log_layer(
    model: Transformer, trace: Trace, layer: int, row: int | None = None, made: Translators | None = None
) -> Tensor:
    """Log probabilities at a layer, row candidate, in nats; of classes that hold or do not, those of yes and then of
    no."""
    logits = lens_logits(model, trace, layer, row, made)
    if model.config.link == "softmax" and logits.shape[-1] > 1:
        return logits.float().log_softmax(-1)
    return torch.stack([log_probabilities(one, model.config.link) for one in logits])


def logit_lens(model: Transformer, trace: Trace, count: int = 5, made: Translators | None = None) -> Lens:
    """The `count` likeliest candidates of every layer and row, and how far each is from the end."""
    layers, choices = model.config.layers, lens_logits(model, trace, model.config.layers).shape[-1]
    end = log_layer(model, trace, layers)
    likely, never = end.exp(), end.isneginf()
    masked = bool(never.any())
    found = []
    for one in range(layers + 1):  # all at once would be many bytes
        layer = end if one == layers else log_layer(model, trace, one, made=made)
        top = layer[:, :choices].topk(min(count, choices))
        gap = (end - layer).mul_(likely)  # in place, for a pass over the vocabulary costs as much as the head's
        kl = (gap.masked_fill_(never, 0.0) if masked else gap).sum(-1).clamp(min=0) / math.log(2)
        found.append((top.indices, top.values.exp().float(), kl.float()))
    ids, probability, kl = map(torch.stack, zip(*found, strict=True))
    return Lens(ids, probability, kl)


def candidate_depth(model: Transformer, trace: Trace, row: int, id: int, made: Translators | None = None) -> Depth:
    """Follows candidate `id` (a token, class or position) at `row` from the embedding to the end."""
    rows, choices = lens_logits(model, trace, model.config.layers).shape
    if not (0 <= row < rows and 0 <= id < choices):
        raise ValueError(f"a candidate must be in row 0..{rows - 1} and 0..{choices - 1}, got {row} and {id}.")
    depths = range(model.config.layers + 1)
    layers = torch.cat([log_layer(model, trace, layer, row, made)[:, :choices] for layer in depths])
    own = layers[:, id : id + 1]
    return Depth(own[:, 0].exp().float(), 1 + (layers > own).sum(-1))
