"""How far each head writes the tokens that it attends to."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import batch_norm, layer_norm, rms_norm

from engine.analysis.token_circuits import W_U, embed_alone, lacks, norm_before, onward
from engine.analysis.weights.circuit import attention_of, reading_rows, stack_of, writing_rows
from engine.model.layers.norm import BatchNorm, LayerNorm, RMSNorm, stretch
from engine.model.transformer import Transformer
from engine.work_limit import check_work

SLICE = 4096  # tokens of the vocabulary at a time


@torch.no_grad()
def copying_scores(model: Transformer, side: str = "", crosses: bool = False) -> Tensor:
    """sum(l) / sum(|l|) of the eigenvalues l of every head's whole `ov`, layer head (Elhage et al. 2021).

    They are those of a d_head d_head product, so no table of vocab by vocab is made. As in `ov`, but that the bias of
    the norm before the head is left out too. NaN where the model has no such circuit, or a head's is 0.
    """
    stack = stack_of(model, side)
    shape = (len(stack.blocks), attention_of(model, 0, side, crosses).heads if len(stack.blocks) else 0)
    if lacks(model, "ov", side):
        return torch.full(shape, torch.nan)
    gram = read_and_write(model, side, crosses)
    found = torch.empty(shape, dtype=torch.float64)
    for layer in range(shape[0]):
        check_work()
        attention = attention_of(model, layer, side, crosses)
        W_O = onward(model, side, writing_rows(model, layer, side, crosses).float())
        W_V = reading_rows(attention, "v").float()
        norm = norm_before(model, layer, side, crosses, query=False)
        if isinstance(norm, LayerNorm | RMSNorm | BatchNorm):
            W_V = stretch(norm, W_V)
        for head in range(shape[1]):
            inner = W_O[head] @ gram @ W_V[head * attention.kv_heads // attention.heads].mT
            values = torch.linalg.eigvals(inner.double())
            found[layer, head] = values.sum().real / values.abs().sum()
    return found.float()


def read_and_write(model: Transformer, side: str, crosses: bool) -> Tensor:
    """W_U^T times the normalised vectors of the same tokens, d_embed d_model; the norm's weight and bias left out."""
    norm = norm_before(model, 0, side, crosses, query=False)
    total: Tensor | None = None
    for ids in torch.arange(model.config.outputs, device=model.device).split(SLICE):
        read = embed_alone(model, "encoder" if crosses else side, ids).float()
        if isinstance(norm, LayerNorm):
            read = layer_norm(read, read.shape[-1:], eps=norm.eps)
        elif isinstance(norm, RMSNorm):
            read = rms_norm(read, read.shape[-1:], eps=norm.eps)
        elif isinstance(norm, BatchNorm):
            read = batch_norm(read, norm.mean.float(), norm.variance.float(), eps=norm.eps)
        product = W_U(model)[ids].float().mT @ read
        total = product if total is None else total + product
    assert total is not None
    return total
