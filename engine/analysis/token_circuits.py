"""A token alone: its vector as an attention reads it, and what a head writes as W_U reads it, without any run.

A token stands for the first residual stream without positions and segments, and in a later layer for the same: nothing
of what the layers before add. That vector goes through the norm that the attention reads with, exactly; where norms
stand behind the sublayers, through none but an embedding's own. Cross-attention takes keys and values from the source's
vectors, through the encoder's last norm.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import linear

from engine.analysis.weights.circuit import Which, linear_part, stack_of
from engine.model.layers.embed import token_factors
from engine.model.layers.head import LanguageHead
from engine.model.transformer import Transformer


def lacks(model: Transformer, which: Which, side: str = "") -> str | None:
    """Why a model has no circuit from token to token, in one sentence; None where it has one."""
    if model.table is None:
        return "this model reads pictures and has no table of tokens, so no circuit goes from token to token."
    if stack_of(model, side).config.attention.latent is not None:
        return "keys and values are made of a compressed vector behind a norm, so no circuit is of weights alone."
    if which == "qk":
        return None
    if side == "encoder":
        return "what an encoder writes is read by a decoder, not by W_U; ask for the heads of the decoder."
    if not isinstance(model.head, LanguageHead):
        return "this model predicts no tokens, so what a head writes cannot be read as tokens; ask for QK."
    if model.head.dense is not None:
        return "a masked head has a layer with an activation before W_U, so OV is no linear map to tokens; ask for QK."
    return None


def reads(model: Transformer, layer: int, ids: Tensor, side: str, crosses: bool, query: bool) -> Tensor:
    """token d_model: the tokens' vectors as the attention reads them."""
    norm = norm_before(model, layer, side, crosses, query)
    resid = embed_alone(model, "encoder" if crosses and not query else side, ids)
    read: Tensor = resid if norm is None else norm(resid)
    return read.float()


def embed_alone(model: Transformer, side: str, ids: Tensor) -> Tensor:
    """token d_model: the first residual stream of each token without positions and segments."""
    embed = stack_of(model, side).embed
    mask = embed.token_dropout
    factor = None if mask is None else token_factors(ids[:, None], mask)[:, 0]
    resid = embed.read(ids, model.table, factor)
    resid = embed.map(resid) if embed.maps_tokens else resid
    resid = resid if embed.norm is None else embed.norm(resid)
    return embed.map(resid) if embed.maps_all else resid


def norm_before(model: Transformer, layer: int, side: str, crosses: bool, query: bool) -> nn.Module | None:
    """Pre-attention norm of a block, or None in post-norm blocks."""
    if model.config.norm.place == "after":
        return None
    if crosses and not query:
        final: nn.Module = model.encoder.final_norm
        return final
    norm = getattr(stack_of(model, side).blocks[layer], "norm_cross" if crosses else "norm1")
    assert isinstance(norm, nn.Module)
    return norm


def onward(model: Transformer, side: str, written: Tensor) -> Tensor:
    """Maps the stream to what W_U reads, ... d_embed: the linear part of the norms in between, and what narrows."""
    stack, head = stack_of(model, side), model.head
    assert isinstance(head, LanguageHead)
    if model.config.final_norm:
        written = linear_part(stack.final_norm, written)
    elif model.config.norm.place == "after":
        written = linear_part(last_norm(stack.blocks[-1]), written)
    if head.narrow is not None:
        written = linear(written, head.narrow.weight.float())
    return written * head.scale


def last_norm(block: nn.Module) -> nn.Module:
    """Last norm of a block whose norms stand after its sublayers."""
    for name in ("norm2", "norm_cross", "norm1"):
        norm = getattr(block, name)
        if isinstance(norm, nn.Module):
            return norm
    raise ValueError("a block must have a norm, got one without; build it with norm.place 'before'.")


def W_U(model: Transformer) -> Tensor:
    """vocab d_embed."""
    assert isinstance(model.head, LanguageHead) and model.table is not None
    return model.table if model.head.weight is None else model.head.weight
