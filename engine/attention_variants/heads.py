"""The maps of one attention layer's heads, as plain tensors."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class Heads:
    """`w_*`: head d_head d_model, `b_*`: head d_head."""

    w_q: Tensor
    b_q: Tensor
    w_k: Tensor
    b_k: Tensor
    w_v: Tensor
    b_v: Tensor

    def queries(self, x: Tensor) -> Tensor:
        """pos d_model -> head pos d_head, as for the two below."""
        return x @ self.w_q.mT + self.b_q[:, None]

    def keys(self, states: Tensor) -> Tensor:
        return states @ self.w_k.mT + self.b_k[:, None]

    def values(self, states: Tensor) -> Tensor:
        return states @ self.w_v.mT + self.b_v[:, None]

    @classmethod
    def from_layer(cls, attention: nn.Module, heads: int) -> Heads:
        """Heads of a layer with the linear maps `q`, `k` and `v`; where several heads share keys and values, each gets
        its own copy."""
        if getattr(attention, "latent", None) is not None:
            raise ValueError("keys and values must be made of the stream, and are made of a compressed vector.")
        d_head = attention.get_parameter("q.weight").shape[0] // heads
        maps = [_split(attention.get_submodule(name), d_head, heads) for name in "qkv"]
        return cls(*(tensor for pair in maps for tensor in pair))


def _split(linear: nn.Module, d_head: int, heads: int) -> tuple[Tensor, Tensor]:
    """Weight head d_head d_model and bias head d_head, zero where there is none."""
    weight = linear.get_parameter("weight").detach().unflatten(0, (-1, d_head))
    bias = linear._parameters.get("bias")
    shift = weight.new_zeros(weight.shape[:2]) if bias is None else bias.detach().unflatten(0, (-1, d_head))
    shared = heads // len(weight)
    return weight.repeat_interleave(shared, 0), shift.repeat_interleave(shared, 0)
