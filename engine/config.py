"""What a transformer is made of: small frozen dataclasses, an optional part being an optional nested config.

A config is data. It names no model family, and two checkpoints with equal configs run the same code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

PositionKind = Literal["learned", "sinusoidal", "rotary", "alibi", "none"]
NormKind = Literal["layer", "rms", "none"]
NormPlace = Literal["before", "after"]
MaskKind = Literal["causal", "full", "prefix"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]


@dataclass(frozen=True)
class Positions:
    """How the model knows where a token stands.

    `learned` (GPT-2) and `sinusoidal` (Vaswani et al. 2017, section 3.5) add a vector to the embedding;
    `rotary` (Su et al. 2021, RoFormer) turns queries and keys; `alibi` (Press et al. 2022) adds a bias to the
    scores.
    """

    kind: PositionKind = "learned"
    theta: float = 10_000.0


@dataclass(frozen=True)
class Norm:
    """`layer` (Ba et al. 2016) or `rms` (Zhang & Sennrich 2019), `before` or `after` each sublayer."""

    kind: NormKind = "layer"
    place: NormPlace = "before"
    eps: float = 1e-5


@dataclass(frozen=True)
class Attention:
    """`kv_heads` < `heads` is grouped-query attention (Ainslie et al. 2023), `kv_heads=1` multi-query
    (Shazeer 2019).

    `d_head` defaults to d_model / heads. `window` limits how many keys back a query sees, itself included.
    """

    heads: int
    kv_heads: int | None = None
    d_head: int | None = None
    bias: bool = True
    out_bias: bool = True
    mask: MaskKind = "causal"
    window: int | None = None


@dataclass(frozen=True)
class MLP:
    """`gated` multiplies the activation with a second projection (GLU variants, Shazeer 2020)."""

    d_mlp: int
    activation: Activation = "gelu_tanh"
    gated: bool = False
    bias: bool = True


@dataclass(frozen=True)
class ModelConfig:
    """A decoder. `mlp=None` leaves attention only; `residual=False` takes out the skip connections."""

    vocab_size: int
    context: int
    d_model: int
    layers: int
    attention: Attention
    mlp: MLP | None = None
    positions: Positions = field(default_factory=Positions)
    norm: Norm = field(default_factory=Norm)
    tied: bool = True
    dropout: float = 0.0
    residual: bool = True

    def __post_init__(self) -> None:
        attention = self.attention
        sizes = {
            "vocab_size": self.vocab_size,
            "context": self.context,
            "d_model": self.d_model,
            "attention.d_head": attention.d_head,
            "attention.window": attention.window,
            "mlp.d_mlp": self.mlp.d_mlp if self.mlp else None,
        }
        for name, size in sizes.items():
            if size is not None and size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}.")
        if self.layers < 0:
            raise ValueError(f"layers must be at least 0, got {self.layers}.")
        heads, kv_heads = attention.heads, self.kv_heads
        if heads < 1 or kv_heads < 1 or heads % kv_heads:
            raise ValueError(
                f"attention.heads must be a positive multiple of kv_heads, got {heads} and {kv_heads}."
            )
        if attention.d_head is None and self.d_model % heads:
            raise ValueError(
                f"d_model must divide among the heads, got {self.d_model}/{heads}; set attention.d_head."
            )
        if self.positions.kind == "rotary" and self.d_head % 2:
            raise ValueError(f"rotary positions turn pairs, so d_head must be even, got {self.d_head}.")
        if not self.positions.theta > 0:
            raise ValueError(f"positions.theta must be above 0, got {self.positions.theta}.")
        if not self.norm.eps >= 0:
            raise ValueError(f"norm.eps must be at least 0, got {self.norm.eps}.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be in [0, 1), got {self.dropout}.")

    @property
    def kv_heads(self) -> int:
        return self.attention.heads if self.attention.kv_heads is None else self.attention.kv_heads

    @property
    def d_head(self) -> int:
        return self.attention.d_head or self.d_model // self.attention.heads

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ModelConfig:
        """The inverse of `to_dict`. Raises ValueError for an unknown key, a missing one or a wrong value."""
        return build(cls, data)


def build(cls: Any, data: Any, path: str = "") -> Any:
    """A dataclass from plain data, checked against its annotations; `path`, where it stands, is for errors."""
    if not isinstance(data, dict):
        raise ValueError(f"{path or cls.__name__} must be a table, got {data!r}.")
    known = {f.name: f for f in fields(cls)}
    hints = get_type_hints(cls)
    prefix = f"{path}." if path else ""
    for name in data:
        if name not in known:
            raise ValueError(f"{prefix}{name} is not a known key; expected one of {', '.join(known)}.")
    values = {name: _checked(hints[name], value, f"{prefix}{name}") for name, value in data.items()}
    try:
        return cls(**values)
    except TypeError:
        missing = [n for n, f in known.items() if n not in values and _required(f)]
        raise ValueError(f"{path or cls.__name__} lacks {', '.join(missing)}.") from None


def _required(f: Any) -> bool:
    return f.default is MISSING and f.default_factory is MISSING


NOUNS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", list: "a list"}
NOUNS |= {Mapping: "a table", tuple: "a list"}


def _checked(hint: Any, value: Any, path: str) -> Any:
    if get_origin(hint) is UnionType:
        if value is None and type(None) in get_args(hint):
            return None
        options = [option for option in get_args(hint) if option is not type(None)]
        hint = next(
            (option for option in options if isinstance(value, get_origin(option) or option)), options[0]
        )
    if hint is Any:
        return value
    if hasattr(hint, "__dataclass_fields__"):
        return build(hint, value, path)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{path} must be one of {', '.join(map(str, get_args(hint)))}, got {value!r}.")
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    kind = get_origin(hint) or hint
    if kind is tuple and isinstance(value, list):
        value = tuple(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{path} must be {NOUNS.get(kind, kind.__name__)}, got {value!r}.")
    if kind in (list, tuple):
        of = (get_args(hint) or (Any,))[0]
        return kind(_checked(of, item, f"{path}[{i}]") for i, item in enumerate(value))
    if kind is Mapping:
        return {name: _checked(get_args(hint)[1], item, f"{path}.{name}") for name, item in value.items()}
    return value
