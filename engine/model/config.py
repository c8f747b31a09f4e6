"""What a transformer is made of: small frozen dataclasses, an optional part being an optional nested config.

A config is data. It names no model family, and two checkpoints with equal configs run the same code.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from engine.model.config_check import check_config
from engine.model.from_dict import build

PositionKind = Literal["learned", "sinusoidal", "rotary", "alibi", "relative", "none"]
NormKind = Literal["layer", "rms", "batch", "none"]
NormPlace = Literal["before", "after", "around"]
MaskKind = Literal["causal", "full", "prefix"]
Activation = Literal["relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh"]
ScalingKind = Literal["linear", "dynamic", "yarn", "llama3", "longrope"]
Sublayers = Literal["sequential", "parallel", "parallel_one_norm"]
Link = Literal["softmax", "logistic", "identity"]
OwnLink = Literal["logistic", "identity"]
HeadKind = Literal["language", "masked", "sequence", "token", "span", "none"]


@dataclass(frozen=True)
class RotaryScaling:
    """Rotary frequencies changed so that a model reads further than the `trained` positions it saw.

    `linear`: all divided by `factor` (Chen et al. 2023, Position Interpolation). `dynamic`: theta grows with the length
    read (NTK-aware). `yarn`: by parts between `slow` and `fast` turns (Peng et al. 2023). `llama3`: by parts between
    wavelengths trained / `low` and trained / `high` (Llama 3.1). `longrope`: one divisor a pair, `short` or `long`
    (Ding et al. 2024). `attention` multiplies cos and sin; None is each kind's own.
    """

    kind: ScalingKind
    factor: float
    trained: int
    low: float = 1.0
    high: float = 4.0
    slow: float = 1.0
    fast: float = 32.0
    short: tuple[float, ...] = ()
    long: tuple[float, ...] = ()
    attention: float | None = None


@dataclass(frozen=True)
class Positions:
    """Position scheme: how the model knows where a token stands.

    `learned` (GPT-2) and `sinusoidal` (Vaswani et al. 2017, section 3.5) add a vector to the embedding; `rotary` (Su et
    al. 2021, RoFormer) turns queries and keys; `alibi` (Press et al. 2022) and `relative` (T5, Raffel et al. 2020,
    section 2.1) add a bias to the scores.

    Rotary turns the first `turned` components of a head (None: all). The two numbers that share an angle stand
    `halves` apart or are `neighbours`; None is halves for rotary and neighbours for sinusoidal, as published.
    Relative has `buckets`, the last for all distances from `farthest` on. With `axes` = 2 a token has two positions,
    where it stands and where in its span (GLM, Du et al. 2022, section 2.1): two learned tables, or half of a head's
    components for each, of which the first `turned` turn.

    Learned positions may be `counted` past padding: of `tokens` that are not the id `padding`, whose place is a row of
    its own (RoBERTa), or of what is `real` by the mask of padding (OPT).
    """

    kind: PositionKind = "learned"
    theta: float = 10_000.0
    turned: int | None = None
    pairs: Literal["halves", "neighbours"] | None = None
    scaling: RotaryScaling | None = None
    buckets: int = 32
    farthest: int = 128
    axes: int = 1
    counted: Literal["all", "tokens", "real"] = "all"
    padding: int = 0


@dataclass(frozen=True)
class Norm:
    """`layer` (Ba et al. 2016), `rms` (Zhang & Sennrich 2019) or `batch` (Ioffe & Szegedy 2015), `before` or `after`
    each sublayer, or both (`around`).

    `final` puts one more behind the last block; None does where norms stand before.
    """

    kind: NormKind = "layer"
    place: NormPlace = "before"
    eps: float = 1e-5
    final: bool | None = None


@dataclass(frozen=True)
class Attention:
    """`kv_heads` < `heads` is grouped-query attention (Ainslie et al. 2023), `kv_heads=1` multi-query
    (Shazeer 2019).

    `d_head` defaults to d_model / heads, `scale` to 1 / sqrt(d_head). `window` limits how many keys back a query
    sees, itself included, in the layers `windowed` (None: all); `block` cuts an image into squares of that many
    patches a side and lets a patch see its own square. `nearest` keeps the k highest scores of each row (Bertsch et
    al. 2023, Unlimiformer). `softcap` c makes scores c tanh(score / c) (Gemma 2). `qk_norm` normalises queries and
    keys, each head by itself (Qwen3) or all together (OLMo 2).
    """

    heads: int
    kv_heads: int | None = None
    d_head: int | None = None
    bias: bool = True
    out_bias: bool = True
    mask: MaskKind = "causal"
    window: int | None = None
    windowed: tuple[int, ...] | None = None
    block: int | None = None
    nearest: int | None = None
    scale: float | None = None
    softcap: float | None = None
    qk_norm: Literal["head", "all"] | None = None


@dataclass(frozen=True)
class MLP:
    """`gated` multiplies the activation with a second projection (GLU variants, Shazeer 2020)."""

    d_mlp: int
    activation: Activation = "gelu_tanh"
    gated: bool = False
    bias: bool = True


@dataclass(frozen=True)
class Patches:
    """A square picture of `image` pixels a side and `channels`, cut into squares of `size` (Dosovitskiy et al. 2021).

    A [CLS] vector stands before them, and behind it, where a model is `distilled`, one whose result was taught to agree
    with a teacher (Touvron et al. 2021, section 4).
    """

    image: int
    size: int
    channels: int = 3
    distilled: bool = False

    @property
    def side(self) -> int:
        return self.image // self.size

    @property
    def count(self) -> int:
        return self.side**2

    @property
    def before(self) -> int:
        """Number of vectors that are no patch and stand before the patches."""
        return 2 if self.distilled else 1


@dataclass(frozen=True)
class Embedding:
    """Treatment of token vectors: times `scale`, plus one of `segments` vectors (BERT), then a norm.

    Vectors of another `width` than the stream's are mapped to it (Lan et al. 2020, section 3.1), `all` that was added
    up, behind the norm, or the `tokens` alone, without a bias. A head over tokens then maps the stream back to that
    width. `patches` reads pictures instead of tokens.
    """

    scale: float = 1.0
    segments: int = 0
    norm: bool = False
    width: int | None = None
    mapped: Literal["all", "tokens"] = "all"
    patches: Patches | None = None


@dataclass(frozen=True)
class OutputHead:
    """Output head on the last residual stream.

    `language`: logits over the vocabulary. `masked`: the same behind a dense layer with `activation` and norm (BERT).
    `token`: one of `classes` at each position, behind one more `dense` layer with `activation` where there is one
    (Clark et al. 2020, whose only class is "replaced"). `span`: at each position whether an answer starts there and
    whether it ends there (Devlin et al. 2019, section 4.2). `sequence`: one of `classes` for the whole, at the `first`
    position, at the `last` that is real (a causal model has read the whole text only there), or of the `mean` of all
    that are real (Chen et al. 2020, section 2.3). `none`: nothing.
    `pooler` is tanh(W x + b) at that position, or another `pooler_activation`, which `sequence` and `next_sentence`
    (BERT's second head) then read. `averaged` has a second classifier on the second position, and the mean of both as
    its logits (Touvron et al. 2021, section 4). `bias` None is each kind's own: none over tokens, one over classes.
    A language head maps the stream back to the width of token vectors that have one of their own; `narrow` does so for
    classes, and where nothing follows (OPT-350m's body).
    `outputs` is how many tokens can be predicted where that is not the vocabulary (ImageGPT's start token never is).

    `link` makes probabilities of a sequence head's logits: "logistic" of each class by itself, "identity" for scores,
    which are none; None is softmax over classes that exclude each other, and of a single class its score. Where the
    last position is read, it is the last token that is no `padding`, or the last `mark`, if they are ids (as
    transformers' classes read the pad and the end token).

    With `language` a sequence head has a language head beside it, whose `scale`, `softcap` and `outputs` these are;
    both are trained together (Radford et al. 2018, section 3.2).
    """

    kind: HeadKind = "language"
    classes: int = 0
    read: Literal["first", "last", "mean"] = "first"
    bias: bool | None = None
    scale: float = 1.0
    softcap: float | None = None
    activation: Activation = "gelu"
    dense: bool = False
    pooler: bool = False
    pooler_activation: Activation = "tanh"
    next_sentence: bool = False
    averaged: bool = False
    narrow: bool = False
    outputs: int | None = None
    link: OwnLink | None = None
    padding: int | None = None
    mark: int | None = None
    language: bool = False

    @property
    def over_classes(self) -> bool:
        return self.kind in ("sequence", "token", "span")

    @property
    def has_bias(self) -> bool:
        return self.over_classes if self.bias is None else self.bias


@dataclass(frozen=True)
class Encoder:
    """The first of two stacks (Vaswani et al. 2017), whose result the decoder's cross-attention reads.

    Width, positions and norms are the decoder's own kinds. `start` is the id that every target begins with once it is
    shifted right.
    """

    layers: int
    attention: Attention
    mlp: MLP | None = None
    start: int = 0


@dataclass(frozen=True)
class Infill:
    """GLM's two marks (Du et al. 2022): `mask` stands for a gap in the text, `start` begins the span that fills it.

    All before the first `start` is seen in both directions. The n-th span fills the n-th gap: its first position is the
    gap's, its second counts 1, 2, ... from its start token, and is 0 in the text.
    """

    mask: int
    start: int


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of one stack of blocks: a decoder, or an encoder where its mask is full. With `encoder`, the second of two.

    `mlp=None` leaves attention only; `residual=False` takes out the skip connections; `parallel` sublayers read the
    same stream, through two norms (NeoX) or one (GPT-J). `distinct` is how many different blocks there are, each used
    in as many layers in a row (Lan et al. 2020, section 3.1); None: as many as layers. `cross` is the attention to the
    encoder, by default like `attention`.
    """

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
    sublayers: Sublayers = "sequential"
    distinct: int | None = None
    embedding: Embedding = field(default_factory=Embedding)
    head: OutputHead = field(default_factory=OutputHead)
    encoder: Encoder | None = None
    cross: Attention | None = None
    infill: Infill | None = None

    def __post_init__(self) -> None:
        check_config(self)

    @property
    def kv_heads(self) -> int:
        return kv_heads(self.attention)

    @property
    def d_head(self) -> int:
        return self.head_width(self.attention)

    def head_width(self, attention: Attention) -> int:
        return attention.d_head or self.d_model // attention.heads

    @property
    def d_embed(self) -> int:
        """The width of the token vectors, and of what a head over tokens compares them with."""
        return self.embedding.width or self.d_model

    @property
    def narrows(self) -> bool:
        """True if a map of its own takes the stream back to the width of the token vectors (a masked head's dense
        layer does that as well)."""
        kind, own = self.head.kind, self.embedding.width is not None
        return own and kind != "masked" and (kind == "language" or self.head.narrow)

    @property
    def final_norm(self) -> bool:
        return self.norm.place != "after" if self.norm.final is None else self.norm.final

    @property
    def encoder_stack(self) -> ModelConfig:
        """The encoder of an encoder-decoder as a stack of its own."""
        if self.encoder is None:
            raise ValueError("this model has one stack of blocks and no encoder before it.")
        part = self.encoder
        alone = replace(self, encoder=None, cross=None, layers=part.layers, attention=part.attention, mlp=part.mlp)
        return replace(alone, head=OutputHead("none"))

    @property
    def cross_attention(self) -> Attention:
        """Cross-attention: how the decoder of an encoder-decoder attends to what the encoder gave."""
        if self.cross is not None:
            return self.cross
        return replace(self.attention, mask="full", window=None, windowed=None, block=None)

    @property
    def outputs(self) -> int:
        """Number of logits per position: tokens, or classes."""
        if self.head.kind == "span":
            return 2
        if self.head.kind in ("sequence", "token"):
            return self.head.classes
        return self.head.outputs or self.vocab_size

    @property
    def link(self) -> Link:
        """Function that turns the logits into probabilities."""
        if self.head.kind == "sequence":
            return self.head.link or ("identity" if self.outputs == 1 else "softmax")
        return "logistic" if self.head.kind == "token" and self.outputs == 1 else "softmax"

    @property
    def rereads(self) -> bool:
        """True if the decoder reads the encoder's own text once more, shifted right, to judge it and write nothing
        (Lewis et al. 2020, sections 3.1 and 3.2)."""
        return self.encoder is not None and self.head.kind != "language"

    @property
    def generates(self) -> bool:
        """True if it can continue a text token by token."""
        return self.head.kind == "language" and self.attention.mask != "full"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ModelConfig:
        """The inverse of `to_dict`. Raises ValueError for an unknown key, a missing one or a wrong value."""
        config: ModelConfig = build(cls, data)
        return config


def kv_heads(attention: Attention) -> int:
    return attention.heads if attention.kv_heads is None else attention.kv_heads
