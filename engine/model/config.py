"""What a transformer is made of: small frozen dataclasses, an optional part being an optional nested config.

A config is data. It names no model family, and two checkpoints with equal configs run the same code.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from engine.model.config_check import check_config
from engine.model.from_dict import build
from engine.model.option import (
    DECIDED,
    Option,
    has_head,
    is_alone,
    is_disentangled,
    is_normed,
    is_relative,
    is_rotary,
    reads_patches,
)

PositionKind = Literal["learned", "sinusoidal", "rotary", "alibi", "relative", "disentangled", "none"]
NormKind = Literal["layer", "rms", "batch", "none"]
NormPlace = Literal["before", "after", "around", "output"]
MaskKind = Literal["causal", "full", "prefix"]
NormWeights = Literal["all", "weight", "none"]
Activation = Literal["relu", "relu2", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh"]
ScalingKind = Literal["linear", "dynamic", "yarn", "llama3", "longrope"]
Sublayers = Literal["sequential", "parallel", "parallel_one_norm"]
Link = Literal["softmax", "logistic", "identity"]
OwnLink = Literal["logistic", "identity"]
HeadKind = Literal["language", "masked", "sequence", "token", "span", "none"]
ReadAt = Literal["first", "last", "mean", "vector"]
Pooling = Literal["first", "last", "mean", "max", "weighted_mean", "scaled_sum"]
MapActivation = Literal["identity", "relu", "gelu", "silu", "tanh"]


@dataclass(frozen=True)
class RotaryScaling:
    """Rotary frequencies changed so that a model reads further than the `trained` positions it saw.

    `linear`: all divided by `factor` (Chen et al. 2023, Position Interpolation). `dynamic`: theta grows with the length
    read (NTK-aware). `yarn`: by parts between `slow` and `fast` turns (Peng et al. 2023). `llama3`: by parts between
    wavelengths trained / `low` and trained / `high` (Llama 3.1). `longrope`: one divisor a pair, `short` or `long`
    (Ding et al. 2024). `attention` multiplies cos and sin; None is each kind's own.
    """

    kind: ScalingKind = field(
        metadata=Option(help="How the frequencies change, so that the model reads further than it was trained.")
    )
    factor: float = field(
        metadata=Option(help="How many times further it reads; linear divides all frequencies by it.")
    )
    trained: int = field(metadata=Option(help="Positions that the model saw in training."))
    low: float = field(
        default=1.0, metadata=Option(help="Llama 3: waves longer than trained / low are divided by the whole factor.")
    )
    high: float = field(
        default=4.0, metadata=Option(help="Llama 3: waves shorter than trained / high stay as they are.")
    )
    slow: float = field(
        default=1.0,
        metadata=Option(
            help="YaRN: pairs that turn less often than this over the trained positions are divided by the whole "
            "factor.",
        ),
    )
    fast: float = field(
        default=32.0,
        metadata=Option(help="YaRN: pairs that turn more often than this over the trained positions stay as they are."),
    )
    whole: bool = field(
        default=True, metadata=Option(help="YaRN: the pairs between which it changes are rounded to whole ones.")
    )
    short: tuple[float, ...] = field(
        default=(),
        metadata=Option(help="LongRoPE: a divisor for each pair, with commas between them, to the trained length."),
    )
    long: tuple[float, ...] = field(
        default=(),
        metadata=Option(help="LongRoPE: a divisor for each pair, with commas between them, for longer texts."),
    )
    attention: float | None = field(
        default=None, metadata=Option(help="What cosines and sines are multiplied by. Empty: each kind's own.")
    )


@dataclass(frozen=True)
class OtherRotation:
    """Other positions of some `layers`, which turn queries and keys otherwise than the rest: by another `theta` and
    `scaling` (Gemma 3), or not at all (NoPE, Kazemnejad et al. 2023), where `theta` is None."""

    layers: tuple[int, ...] = field(metadata=Option(help="Layers, counted from 0, that turn otherwise than the rest."))
    theta: float | None = field(
        default=None, metadata=Option(help="Theta of these layers. Empty: they turn nothing and have no positions.")
    )
    scaling: RotaryScaling | None = field(
        default=None, metadata=Option(help="How the frequencies of these layers are changed.")
    )


@dataclass(frozen=True)
class Positions:
    """Position scheme: how the model knows where a token stands.

    `learned` (GPT-2) and `sinusoidal` (Vaswani et al. 2017, section 3.5) add a vector to the embedding; `rotary` (Su et
    al. 2021, RoFormer) turns queries and keys; `alibi` (Press et al. 2022) and `relative` (T5, Raffel et al. 2020,
    section 2.1) add a bias to the scores. With a `relative_bias` learned positions add T5's bias too (Song et al. 2020,
    MPNet).

    Rotary turns the first `turned` components of a head (None: all). The two numbers that share an angle stand
    `halves` apart or are `neighbours`; None is halves for rotary and neighbours for sinusoidal, as published.
    Relative has `buckets`, the last for all distances from `farthest` on. With `axes` = 2 a token has two positions,
    where it stands and where in its span (GLM, Du et al. 2022, section 2.1): two learned tables, or half of a head's
    components for each, of which the first `turned` turn. Some layers may turn otherwise, as `other` says.

    A `picture_bias` adds a number of each head to a score for each distance of two patches in rows and in columns (Bao
    et al. 2022, BEiT, section 2.2, after Swin), shared by all layers or of each.

    With `grid` half of a head's pairs turn by a patch's row and half by its column, each from -1 to 1 across the
    picture and times 2 pi (Siméoni et al. 2025, DINOv3, section 3.2); vectors before the patches do not turn.

    `disentangled` (He et al. 2021, DeBERTa, section 3.1) has a vector of each distance, from `farthest` back to
    `farthest` ahead, and adds up to two `terms` to the scores: the query with the vector's key ("c2p"), and the key
    with the vector's query ("p2c"). Distances beyond half of the `buckets` share vectors, the more the farther they
    are; with 0 buckets each has its own. The vectors go through the maps of the content, or with `own_maps` through
    others, behind a layer norm where they are `normed`; learned positions may be `added` to the embedding besides.

    Learned positions may be `counted` past padding: of `tokens` that are not the id `padding`, whose place is a row of
    its own (RoBERTa), or of what is `real` by the mask of padding (OPT).
    """

    kind: PositionKind = field(
        default="learned",
        metadata=Option(help="How the model knows a token's position. None: only from the causal mask."),
    )
    theta: float = field(
        default=10_000.0,
        metadata=Option(help="The slowest pair turns once in about 2 pi theta positions.", when=is_rotary),
    )
    turned: int | None = field(
        default=None, metadata=Option(help="Components of a head that turn. Empty: all.", when=is_rotary)
    )
    pairs: Literal["halves", "neighbours"] | None = field(
        default=None,
        metadata=Option(
            help="Whether the two numbers that share an angle stand half of them apart or side by side. Empty: "
            "each kind's own.",
            when=lambda said, _: said["kind"] in ("rotary", "sinusoidal"),
        ),
    )
    scaling: RotaryScaling | None = field(
        default=None,
        metadata=Option(
            help="Rotary frequencies changed, so that the model reads further than it was trained.", when=is_rotary
        ),
    )
    other: OtherRotation | None = field(
        default=None,
        metadata=Option(
            help="Some layers turn by other angles than the rest, or not at all.",
            when=lambda said, recipe: is_rotary(said, recipe) and is_alone(said, recipe),
        ),
    )
    buckets: int = field(
        default=32,
        metadata=Option(
            help="Distances that have a bias or a vector of their own, or share one where they are far. With "
            "disentangled positions as many each way, and 0 is all up to the farthest.",
            when=is_relative,
        ),
    )
    farthest: int = field(
        default=128,
        metadata=Option(help="From this distance on all keys share the last bias or vector.", when=is_relative),
    )
    relative_bias: bool = field(
        default=False,
        metadata=Option(
            help="A learned bias for each distance is added to the scores, besides the vector of the position.",
            when=lambda said, recipe: said["kind"] == "learned" and is_alone(said, recipe),
        ),
    )
    picture_bias: Literal["shared", "each"] | None = field(default=None, metadata=DECIDED)
    grid: bool = field(
        default=False,
        metadata=Option(
            help="The patches of a picture turn by their rows and columns; what stands before them does not turn.",
            when=lambda said, recipe: is_rotary(said, recipe) and reads_patches(said, recipe),
        ),
    )
    terms: Literal["both", "c2p", "p2c"] = field(
        default="both",
        metadata=Option(
            help="What a distance adds to a score: the query times the distance's key (c2p), the key times its query "
            "(p2c), or both.",
            when=is_disentangled,
        ),
    )
    own_maps: bool = field(
        default=False,
        metadata=Option(
            help="Distances have maps to queries and keys of their own. Off: those of the tokens.", when=is_disentangled
        ),
    )
    normed: bool = field(
        default=False, metadata=Option(help="A layer norm on the vectors of the distances.", when=is_disentangled)
    )
    added: bool = field(
        default=False,
        metadata=Option(help="A learned vector of each position is added to the embedding too.", when=is_disentangled),
    )
    axes: int = field(
        default=1,
        metadata=Option(
            help="2 gives a token two positions: where it stands, and where in its span.",
            when=lambda _, recipe: recipe.model.infill is not None,
        ),
    )
    counted: Literal["all", "tokens", "real"] = field(
        default="all",
        metadata=Option(
            help="Learned positions count all tokens, those that are not the padding's, or those that are real by "
            "the mask.",
        ),
    )
    padding: int = field(
        default=0, metadata=Option(help="The id of the padding, where learned positions count the other tokens.")
    )

    @property
    def has_buckets(self) -> bool:
        """True if each bucket of distances has a learned bias."""
        return self.kind == "relative" or self.relative_bias

    @property
    def has_places(self) -> bool:
        """True if a learned vector of each position is added to the embedding."""
        return self.kind == "learned" or (self.kind == "disentangled" and self.added)

    @property
    def named_terms(self) -> tuple[str, ...]:
        """Hook points of what disentangled positions add to a score."""
        if self.kind != "disentangled":
            return ()
        return ("c2p", "p2c") if self.terms == "both" else (self.terms,)

    @property
    def span(self) -> int:
        """Disentangled positions have a vector for each of as many distances back, and for as many others."""
        return self.buckets or self.farthest

    def of_layer(self, layer: int) -> Positions:
        """Scheme of one layer, as that of all layers of a model."""
        other = self.other
        if other is None:
            return self
        if layer not in other.layers:
            return replace(self, other=None)
        if other.theta is None:
            return Positions("none")
        return replace(self, theta=other.theta, scaling=other.scaling, other=None)


@dataclass(frozen=True)
class Norm:
    """`layer` (Ba et al. 2016), `rms` (Zhang & Sennrich 2019) or `batch` (Ioffe & Szegedy 2015), `before` each
    sublayer, on the stream `after` it, on its `output` before that is added (OLMo 2), or first and last (`around`).

    `final` puts one more behind the last block; None does unless norms stand after. `learned` leaves out a layer norm's
    bias ("weight"), or all that a norm learns ("none": OLMo, Groeneveld et al. 2024, section 2.1). Without the `first`
    attention reads the stream as it is in layer 0 (Warner et al. 2024, ModernBERT, whose embedding has a norm).
    """

    kind: NormKind = field(
        default="layer",
        metadata=Option(
            help="Layer norm subtracts the mean and divides by the spread; RMS norm only divides. Batch norm has "
            "both of each feature, over the batch: in training a token then sees those after it, and other texts.",
        ),
    )
    place: NormPlace = field(
        default="before",
        metadata=Option(
            help="Before each sublayer (GPT-2), after it (the first Transformer), on its output alone (OLMo 2), or "
            "before it and on its output.",
            when=is_normed,
        ),
    )
    eps: float = field(
        default=1e-5,
        metadata=Option(
            help="Added to the variance, so that nothing is divided by 0.", title="epsilon", when=is_normed
        ),
    )
    final: bool | None = field(
        default=None,
        metadata=Option(help="One more norm after the last block. Empty: in all but post-norm models.", when=is_normed),
    )
    learned: NormWeights = field(
        default="all",
        metadata=Option(
            help="A norm's weight and, of a layer norm, a bias are learned; the weight alone; or nothing.",
            when=lambda said, _: said["kind"] in ("layer", "rms"),
        ),
    )

    first: bool = field(
        default=True,
        metadata=Option(
            help="A norm before the attention of layer 0 too. Off: it reads the stream as it is.",
            when=lambda said, recipe: said["kind"] != "none" and said["place"] == "before" and is_alone(said, recipe),
        ),
    )

    @property
    def has_weight(self) -> bool:
        return self.kind != "none" and self.learned != "none"

    @property
    def has_bias(self) -> bool:
        return self.kind in ("layer", "batch") and self.learned == "all"


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (DeepSeek-AI 2024, DeepSeek-V2, section 2.1): what keys and values of all heads are
    made of is one vector of `keys` numbers a token, behind a norm of its own; queries are made of one of `queries`,
    None for the stream. The components of a key that positions turn are made apart, and are the same for all heads.

    `d_value` is the width of a head's values, None for d_head. `bias` is that of the maps that compress, `eps` their
    norms'.
    """

    keys: int = field(metadata=Option(help="Numbers of the vector that all keys and values are made of."))
    queries: int | None = field(
        default=None, metadata=Option(help="Numbers of the vector that queries are made of. Empty: the stream.")
    )
    d_value: int | None = field(
        default=None, metadata=Option(help="Components of a head’s values. Empty: as many as of its keys.")
    )
    bias: bool = field(default=False, metadata=Option(help="A bias is added where the stream is compressed."))
    eps: float = field(
        default=1e-6,
        metadata=Option(help="Added to the variance in the norms of what was compressed.", title="epsilon"),
    )


@dataclass(frozen=True)
class Attention:
    """`kv_heads` < `heads` is grouped-query attention (Ainslie et al. 2023), `kv_heads=1` multi-query
    (Shazeer 2019).

    `d_head` defaults to d_model / heads, `scale` to 1 / sqrt(d_head), or with disentangled positions to 1 / sqrt(d_head
    times the terms of a score, q k included). `window` limits how many keys back a query sees, itself included, and as
    many ahead where it sees both sides, in the layers `windowed` (None: all); `block` cuts an image into squares of
    that many patches a side and lets a patch see its own square. `nearest` keeps the k highest scores of each row
    (Bertsch et al. 2023, Unlimiformer). `softcap` c makes scores c tanh(score / c) (Gemma 2). With `sinks` each head
    has a learned score besides, to which the softmax gives its share of every row (OpenAI 2025, gpt-oss). `qk_norm`
    normalises queries and keys: each head by itself, with weights that all share ("head", Qwen3) or with its own
    ("each", Command R+), or all together ("all", OLMo 2).
    """

    heads: int = field(
        metadata=Option(
            help="Attention patterns side by side; each has d_model / heads components, if d_head is empty."
        )
    )
    kv_heads: int | None = field(
        default=None,
        metadata=Option(
            help="Fewer than heads: several heads share keys and values (grouped queries).", title="key-value heads"
        ),
    )
    d_head: int | None = field(
        default=None,
        metadata=Option(
            help="Components of a head’s queries, keys and values. Empty: d_model / heads.", title="d_head"
        ),
    )
    bias: bool = field(default=True, metadata=Option(help="A bias is added to queries, keys and values."))
    key_bias: bool = field(
        default=True,
        metadata=Option(
            help="The keys have one too; left out, queries and values alone (Whisper).",
            when=lambda said, _: bool(said["bias"]),
        ),
    )
    out_bias: bool = field(
        default=True, metadata=Option(help="A bias is added to what the heads write.", title="output bias")
    )
    mask: MaskKind = field(
        default="causal",
        metadata=Option(help="Causal: a token sees those before it and itself. Full: all. Prefix: all before a gap."),
    )
    window: int | None = field(
        default=None,
        metadata=Option(
            help="How many keys back a query sees, itself included, and as many ahead in a full mask. Empty: all."
        ),
    )
    windowed: tuple[int, ...] | None = field(
        default=None,
        metadata=Option(
            help="Layers, counted from 0, that have the window. Empty: all of them.",
            when=lambda said, _: said["window"] is not None,
        ),
    )
    block: int | None = field(
        default=None,
        metadata=Option(
            help="Patches a side of the squares in which alone a patch sees others. Empty: it sees all.",
            when=reads_patches,
        ),
    )
    nearest: int | None = field(
        default=None, metadata=Option(help="Only that many of the highest scores of a row are kept. Empty: all.")
    )
    scale: float | None = field(
        default=None,
        metadata=Option(help="What scores are multiplied by. Empty is 1 / sqrt(d_head); 1 leaves them unscaled."),
    )
    softcap: float | None = field(
        default=None, metadata=Option(help="Scores become c tanh(score / c), never beyond c. Empty: as they are.")
    )
    sinks: bool = field(
        default=False,
        metadata=Option(
            help="A learned score takes its share of each row beside those of the keys, so that a head may attend less."
        ),
    )
    latent: Latent | None = field(
        default=None,
        metadata=Option(
            help="Keys and values are made of one compressed vector a token; left out, of the stream.",
            when=lambda _, recipe: recipe.model.encoder is None and recipe.model.positions.kind == "rotary",
        ),
    )
    qk_norm: Literal["head", "each", "all"] | None = field(
        default=None,
        metadata=Option(
            help="Normalises queries and keys before they are multiplied: each head by itself, with weights that all "
            "share (head) or with its own (each), or all together (all).",
            title="norm of q and k",
        ),
    )


@dataclass(frozen=True)
class Experts:
    """A router and `count` MLPs of which each token sees `used`: a mixture of experts (Shazeer et al. 2017; Fedus et
    al. 2022, Switch Transformers) in place of one MLP, but for the layers that are `dense`, whose MLP is `d_dense`
    wide.

    The probabilities of those that are used weigh what they write, `renormalised` to the sum 1 and times `scale`. Of
    `groups` of equal size only the `groups_used` that are ranked best, by the sum of their `group_best` best scores,
    can be chosen from (DeepSeek-AI 2024, DeepSeek-V2, section 2.2.2). A `correction` is added to the scores where
    experts are chosen (DeepSeek-V3, section 2.1.2). All tokens see the MLP that is `shared` (width), weighed by a gate
    of its own with `shared_gate` (Qwen2-MoE).
    """

    count: int = field(metadata=Option(help="MLPs in place of one, of which each token sees a few."))
    used: int = field(metadata=Option(help="Experts that each token is sent to: those with the highest scores."))
    scores: Literal["softmax", "sigmoid"] = field(
        default="softmax",
        metadata=Option(help="What the router's logits become: shares of all experts, or each between 0 and 1 alone."),
    )
    renormalised: bool = field(
        default=True, metadata=Option(help="The weights of a token's experts are divided by their sum.")
    )
    scale: float = field(default=1.0, metadata=Option(help="The weights of a token's experts are multiplied by it."))
    bias: bool = field(default=False, metadata=Option(help="A bias is added to the router's logits."))
    groups: int = field(default=1, metadata=DECIDED)
    groups_used: int = field(default=1, metadata=DECIDED)
    group_best: int = field(default=1, metadata=DECIDED)
    correction: bool = field(default=False, metadata=DECIDED)
    shared: int | None = field(
        default=None,
        metadata=Option(help="Neurons of an MLP that every token sees besides. Empty: there is none."),
    )
    shared_gate: bool = field(
        default=False,
        metadata=Option(
            help="A gate weighs what the shared MLP writes, for each token.",
            when=lambda said, _: said["shared"] is not None,
        ),
    )
    dense: tuple[int, ...] = field(
        default=(), metadata=Option(help="Layers, counted from 0, that have one MLP and no experts. Empty: none.")
    )
    d_dense: int | None = field(
        default=None,
        metadata=Option(
            help="Neurons of the MLP of those layers. Empty: as many as of an expert.",
            when=lambda said, _: bool(said["dense"]),
        ),
    )


@dataclass(frozen=True)
class MLP:
    """`gated` multiplies the activation with a second projection (GLU variants, Shazeer 2020).

    `slope` a makes SiLU x sigmoid(a x). With a `limit` the gate is at most that and the second projection within it, to
    which `shift` is added (OpenAI 2025, gpt-oss). With `experts` each of them is such an MLP.
    """

    d_mlp: int = field(
        metadata=Option(help="Neurons between the two maps of an MLP; 4 times d_model is usual.", title="d_mlp")
    )
    activation: Activation = field(default="gelu_tanh", metadata=Option(help="What each neuron does to its input."))
    gated: bool = field(
        default=False,
        metadata=Option(help="The activation is multiplied with a second map of the input (SwiGLU with SiLU)."),
    )
    bias: bool = field(default=True, metadata=Option(help="A bias is added by each of its maps."))
    slope: float = field(default=1.0, metadata=DECIDED)
    limit: float | None = field(default=None, metadata=DECIDED)
    shift: float = field(default=0.0, metadata=DECIDED)
    experts: Experts | None = field(
        default=None,
        metadata=Option(
            help="A router sends each token to a few of many MLPs; left out, there is one.",
            title="mixture of experts",
            when=is_alone,
        ),
    )

    def of_layer(self, layer: int) -> MLP:
        """MLP of one layer, as that of all layers of a model."""
        experts = self.experts
        if experts is None:
            return self
        if layer in experts.dense:
            return replace(self, d_mlp=experts.d_dense or self.d_mlp, experts=None)
        return replace(self, experts=replace(experts, dense=(), d_dense=None))

    @property
    def neurons_seen(self) -> int:
        """Number of neurons that a token sees in a layer with experts, or in one without."""
        experts = self.experts
        if experts is None:
            return self.d_mlp
        return max(experts.used * self.d_mlp + (experts.shared or 0), experts.d_dense or 0)


@dataclass(frozen=True)
class Patches:
    """A square picture of `image` pixels a side and `channels`, cut into squares of `size` (Dosovitskiy et al. 2021).

    A [CLS] vector stands before them if `cls`, and behind it, where a model is `distilled`, one whose result was taught
    to agree with a teacher (Touvron et al. 2021, section 4), and `registers`, which have no place in the picture and no
    position (Darcet et al. 2024, section 2.3). With `mask` there is a vector for what was hidden in training, which no
    run reads. Positions were `trained` for a picture of so many pixels a side, and are interpolated to this one
    (bicubic, smoothed first with `antialias`); None: of as many.
    """

    image: int = field(metadata=DECIDED)
    size: int = field(
        metadata=Option(help="Pixels of a patch’s side; the context must be a position for each patch, and [CLS].")
    )
    channels: int = field(default=3, metadata=DECIDED)
    distilled: bool = field(
        default=False,
        metadata=Option(help="One more vector stands behind [CLS], whose result was taught to agree with a teacher."),
    )

    cls: bool = field(default=True, metadata=DECIDED)
    registers: int | None = field(default=None, metadata=DECIDED)
    mask: bool = field(default=False, metadata=DECIDED)
    bias: bool = field(default=True, metadata=DECIDED)
    trained: int | None = field(default=None, metadata=DECIDED)
    antialias: bool = field(default=False, metadata=DECIDED)

    @property
    def side(self) -> int:
        return self.image // self.size

    @property
    def places(self) -> int:
        """Number of positions that the table of a model has: of each patch as it was trained, and what has one before
        them."""
        trained = self.side if self.trained is None else self.trained // self.size
        return trained**2 + self.cls + self.distilled

    @property
    def count(self) -> int:
        return self.side**2

    @property
    def before(self) -> int:
        """Number of vectors that are no patch and stand before the patches."""
        return self.cls + self.distilled + (self.registers or 0)

    @property
    def names_before(self) -> tuple[str, ...]:
        """What those vectors are called."""
        registers = (f"[REG {number + 1}]" for number in range(self.registers or 0))
        return (*(("[CLS]",) if self.cls else ()), *(("[DIST]",) if self.distilled else ()), *registers)


@dataclass(frozen=True)
class Sound:
    """Log-mel frames of a sound, each of so many `bins`, that two convolutions over three frames read; the second
    takes every other one and leaves `positions` vectors (Radford et al. 2023, Whisper, section 2.2)."""

    bins: int = field(default=80, metadata=DECIDED)
    positions: int = field(default=1500, metadata=DECIDED)

    @property
    def frames(self) -> int:
        return 2 * self.positions


@dataclass(frozen=True)
class Embedding:
    """Treatment of token vectors: times `scale`, plus one of `segments` vectors (BERT), then a norm.

    Vectors of another `width` than the stream's are mapped to it (Lan et al. 2020, section 3.1), `all` that was added
    up, behind the norm, or the `tokens` alone, without a bias. A head over tokens then maps the stream back to that
    width. `patches` reads pictures instead of tokens, `sound` what is heard; of two stacks the encoder does, and the
    rest is of the decoder's tokens. With `token_dropout`, the id of a mask, that token's vector is 0 and the others are
    multiplied by 0.88 / (1 - share of masks), as in training 0.12 were masked (Lin et al. 2023, ESM-2).
    """

    scale: float = field(
        default=1.0,
        metadata=Option(help="Token vectors are multiplied by it; the first Transformer takes sqrt(d_model)."),
    )
    segments: int = field(
        default=0,
        metadata=Option(
            help="Vectors of which each token adds the one of its text: BERT has 2.",
            when=lambda _, recipe: recipe.model.embedding.segments > 0,
        ),
    )
    norm: bool = field(default=False, metadata=Option(help="A norm stands behind the sum of the token's vectors."))
    width: int | None = field(
        default=None,
        metadata=Option(
            help="Token vectors narrower or wider than the stream, mapped to it. Empty: d_model.",
            when=lambda _, recipe: recipe.model.encoder is None and recipe.model.embedding.patches is None,
        ),
    )
    mapped: Literal["all", "tokens"] = field(
        default="all",
        metadata=Option(
            help="All that was added up is mapped to the stream's width, behind the norm, or the token vectors alone.",
            when=lambda said, _: said["width"] is not None,
        ),
    )
    token_dropout: int | None = field(
        default=None,
        metadata=Option(
            help="The id of a mask whose vector is left out; the other tokens' are enlarged to make up for it. Empty: "
            "none.",
            when=lambda _, recipe: is_alone(_, recipe) and recipe.model.attention.mask == "full",
        ),
    )
    patches: Patches | None = field(
        default=None, metadata=Option(help="Pictures are read in place of tokens.", when=reads_patches)
    )
    sound: Sound | None = field(default=None, metadata=DECIDED)

    @property
    def of_tokens(self) -> bool:
        """True if vectors of tokens are read, no picture and no sound."""
        return self.patches is None and self.sound is None


@dataclass(frozen=True)
class OutputHead:
    """Output head on the last residual stream.

    `language`: logits over the vocabulary. `masked`: the same behind a dense layer with `activation` and norm (BERT).
    `token`: one of `classes` at each position. `span`: at each position whether an answer starts there and
    whether it ends there (Devlin et al. 2019, section 4.2). `sequence`: one of `classes` for the whole, at the `first`
    position, at the `last` that is real (a causal model has read the whole text only there), of the `mean` of all
    that are real (Chen et al. 2020, section 2.3), or of the model's `vector`. `none`: nothing.
    A head over classes may have one more `dense` layer with `activation` before them (Clark et al. 2020), and a `norm`
    behind that (ModernBERT), as a masked head has; `dense_bias` is that layer's, in either.
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

    kind: HeadKind = field(default="language", metadata=DECIDED)
    classes: int = field(default=0, metadata=DECIDED)
    read: ReadAt = field(
        default="first",
        metadata=Option(
            help="Which position the classes are read from: the first, the last, or the mean of all.",
            when=has_head("sequence"),
        ),
    )
    bias: bool | None = field(
        default=None, metadata=Option(help="A bias is added to the logits. Empty: over classes, and not over tokens.")
    )
    scale: float = field(
        default=1.0, metadata=Option(help="Logits over tokens are multiplied by it.", when=has_head("language"))
    )
    softcap: float | None = field(
        default=None,
        metadata=Option(
            help="Logits become c tanh(logit / c), never beyond c. Empty: as they are.", when=has_head("language")
        ),
    )
    activation: Activation = field(
        default="gelu",
        metadata=Option(
            help="What each neuron of the dense layer before the outputs does to its input.",
            when=lambda said, _: said["kind"] == "masked" or bool(said["dense"]),
        ),
    )
    dense: bool = field(
        default=False,
        metadata=Option(help="One more layer stands before the classes.", when=has_head("sequence", "token", "span")),
    )
    dense_bias: bool = field(
        default=True,
        metadata=Option(
            help="A bias is added by the dense layer before the outputs.",
            when=lambda said, _: said["kind"] == "masked" or bool(said["dense"]),
        ),
    )
    norm: bool = field(
        default=False,
        metadata=Option(help="A norm stands behind that layer.", when=lambda said, _: bool(said["dense"])),
    )
    pooler: bool = field(
        default=False,
        metadata=Option(
            help="The position that is read goes through one more layer, as in BERT.", when=has_head("sequence")
        ),
    )
    pooler_activation: Activation = field(
        default="tanh",
        metadata=Option(
            help="What each neuron of the pooler does to its input.", when=lambda said, _: bool(said["pooler"])
        ),
    )
    next_sentence: bool = field(default=False, metadata=DECIDED)
    averaged: bool = field(default=False, metadata=DECIDED)
    narrow: bool = field(default=False, metadata=DECIDED)
    outputs: int | None = field(default=None, metadata=DECIDED)
    link: OwnLink | None = field(
        default=None,
        metadata=Option(
            help="What makes probabilities of a sequence head's logits: logistic of each class alone, identity "
            "leaves scores. Empty: softmax, and a score of a single class.",
        ),
    )
    padding: int | None = field(
        default=None,
        metadata=Option(
            help="An id that does not count where the last position is read. Empty: the mask of padding says what "
            "is real.",
        ),
    )
    mark: int | None = field(
        default=None,
        metadata=Option(
            help="An id whose last place is read where the last position is. Empty: the last that is real."
        ),
    )
    language: bool = field(default=False, metadata=DECIDED)

    @property
    def over_classes(self) -> bool:
        return self.kind in ("sequence", "token", "span")

    @property
    def has_bias(self) -> bool:
        return self.over_classes if self.bias is None else self.bias


@dataclass(frozen=True)
class VectorMap:
    """A linear map to `width` numbers behind what was pooled, and what each of them then goes through."""

    width: int = field(metadata=DECIDED)
    bias: bool = field(default=True, metadata=DECIDED)
    activation: MapActivation = field(default="identity", metadata=DECIDED)


@dataclass(frozen=True)
class Probe:
    """Attention that pools: one learned vector asks all positions, by `heads`; an MLP of `d_mlp` neurons, behind a
    norm, is added to what comes of it (Zhai et al. 2022, Scaling Vision Transformers, section 3.1)."""

    heads: int = field(metadata=DECIDED)
    d_mlp: int = field(metadata=DECIDED)
    activation: Activation = field(default="gelu_tanh", metadata=DECIDED)


@dataclass(frozen=True)
class TextVector:
    """One vector that stands for the whole text, by which texts are compared (Reimers & Gurevych 2019, Sentence-BERT,
    section 3).

    `pooled` of the last residual stream: its `first` position, the `last` that is real, the `mean` or the `max` of all,
    the mean `weighted` by 1, 2, 3, ... (Muennighoff 2022, SGPT, section 4.2), or the sum `scaled` by 1 / sqrt(length);
    several stand one behind the other. None pooled leaves a vector for each token (Khattab & Zaharia 2020, ColBERT).
    With `patches` these alone are pooled of a picture. Only positions of the id `mark` are pooled where a text has one;
    a text is `filled` up with that id to the context, and read with it, where the model was trained so. With a `probe`
    attention gives what is pooled, of which there is one then. A `norm` may stand behind, then come the `maps`, and
    with `unit` the vector is divided by its length.
    """

    pooled: tuple[Pooling, ...] = field(default=("mean",), metadata=DECIDED)
    maps: tuple[VectorMap, ...] = field(default=(), metadata=DECIDED)
    unit: bool = field(default=False, metadata=DECIDED)
    norm: bool = field(default=False, metadata=DECIDED)
    mark: int | None = field(default=None, metadata=DECIDED)
    patches: bool = field(default=False, metadata=DECIDED)
    filled: int | None = field(default=None, metadata=DECIDED)
    probe: Probe | None = field(default=None, metadata=DECIDED)

    @property
    def is_linear(self) -> bool:
        """True where the vector, before its length is made 1, is a sum of what each token gives to it, and biases."""
        return not self.norm and self.probe is None and all(one.activation == "identity" for one in self.maps)

    def width(self, d_model: int) -> int:
        """Components of the vector."""
        return self.maps[-1].width if self.maps else d_model * max(len(self.pooled), 1)


@dataclass(frozen=True)
class Encoder:
    """The first of two stacks (Vaswani et al. 2017), whose result the decoder's cross-attention reads.

    Width, positions and norms are the decoder's own kinds. `start` is the id that every target begins with once it is
    shifted right.
    """

    layers: int = field(metadata=Option(help="Blocks of the encoder, one after the other."))
    attention: Attention = field(metadata=Option(help="Attention of the encoder."))
    mlp: MLP | None = field(
        default=None,
        metadata=Option(help="The MLP of each block of the encoder; left out, there is attention only.", title="MLP"),
    )
    start: int = field(default=0, metadata=DECIDED)


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

    `mlp=None` leaves attention only; `residual=False` takes out the skip connections; what a sublayer adds is
    multiplied by `residual_scale` (Granite), or component by component by what is learned (`layer_scale`, Touvron et
    al. 2021, CaiT, section 2.1); `parallel` sublayers read the same stream, through two norms (NeoX) or one
    (GPT-J). `distinct` is how many different blocks there are, each used in as many layers in a row (Lan et al. 2020,
    section 3.1); None: as many as layers. `cross` is the attention to the encoder, by default like `attention`.
    `vector` is what stands for a whole text or picture.
    """

    vocab_size: int = field(metadata=Option(title="vocabulary size", decided=True))
    context: int = field(metadata=DECIDED)
    d_model: int = field(
        metadata=Option(help="Components of each token's vector: the width of the residual stream.", title="d_model")
    )
    layers: int = field(metadata=Option(help="Blocks, one after the other."))
    attention: Attention
    mlp: MLP | None = field(
        default=None, metadata=Option(help="The MLP of each block; left out, there is attention only.", title="MLP")
    )
    positions: Positions = field(default_factory=Positions)
    norm: Norm = field(default_factory=Norm)
    tied: bool = field(
        default=True,
        metadata=Option(
            help="The table that embeds the tokens is also the one that predicts them.", title="tied embeddings"
        ),
    )
    dropout: float = field(
        default=0.0,
        metadata=Option(help="The share of numbers that is set to 0 at random in each training step; 0 leaves all."),
    )
    residual: bool = field(
        default=True,
        metadata=Option(
            help="Off takes out the skip connections: each sublayer replaces the stream instead of adding to it."
        ),
    )
    residual_scale: float = field(
        default=1.0, metadata=Option(help="What a sublayer adds to the stream is multiplied by it.")
    )
    layer_scale: bool = field(
        default=False,
        metadata=Option(
            help="What a sublayer adds is multiplied, component by component, by what is learned.", when=is_alone
        ),
    )
    sublayers: Sublayers = field(
        default="sequential",
        metadata=Option(
            help="Attention and MLP one after the other, or both from the same stream, side by side.", when=is_alone
        ),
    )
    distinct: int | None = field(
        default=None,
        metadata=Option(
            help="How many different blocks there are; the layers share them. Empty: each layer has its own.",
            when=is_alone,
        ),
    )
    embedding: Embedding = field(default_factory=Embedding)
    head: OutputHead = field(default_factory=OutputHead)
    encoder: Encoder | None = field(
        default=None,
        metadata=Option(
            help="A stack before this one, whose result this one's cross-attention reads.",
            when=lambda _, recipe: recipe.model.encoder is not None or recipe.data.may_be_pairs,
        ),
    )
    cross: Attention | None = field(
        default=None,
        metadata=Option(
            help="The attention to the encoder; left out, it is like the decoder's.",
            title="cross-attention of its own kind",
            when=lambda _, recipe: recipe.model.encoder is not None,
        ),
    )
    infill: Infill | None = field(default=None, metadata=DECIDED)
    vector: TextVector | None = field(default=None, metadata=DECIDED)

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

    def score_scale(self, attention: Attention) -> float:
        """What the products of queries and keys are multiplied by."""
        if attention.scale is not None:
            return attention.scale
        return float((self.head_width(attention) * (1 + len(self.positions.named_terms))) ** -0.5)

    def value_width(self, attention: Attention) -> int:
        """Components of a head's values, and of what it mixes of them."""
        own = None if attention.latent is None else attention.latent.d_value
        return own or self.head_width(attention)

    @property
    def d_turned(self) -> int:
        """Number of a head's components that rotary positions turn, by each position of a token."""
        return self.positions.turned or self.d_head // self.positions.axes

    def of_layer(self, layer: int) -> ModelConfig:
        """The config of which one layer is built: what differs from layer to layer is that layer's."""
        mlp = None if self.mlp is None else self.mlp.of_layer(layer)
        norm = self.norm if layer == 0 else replace(self.norm, first=True)
        return replace(self, positions=self.positions.of_layer(layer), mlp=mlp, norm=norm)

    @property
    def experts_by_layer(self) -> dict[int, Experts]:
        """The experts of each layer that has them."""
        found = {layer: self.of_layer(layer).mlp for layer in range(self.layers)}
        return {layer: mlp.experts for layer, mlp in found.items() if mlp is not None and mlp.experts is not None}

    @property
    def table(self) -> str:
        """Name of the tensor that embeds the tokens, which two stacks that both read tokens share."""
        side = "" if self.encoder is None else "encoder." if self.embedding.of_tokens else "decoder."
        return f"{side}embed.tokens.weight"

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
        heard, embedding = self.embedding.sound, self.embedding
        context = self.context if heard is None else heard.positions
        if heard is not None:
            embedding = Embedding(norm=embedding.norm, sound=heard)
        return replace(
            self, encoder=None, cross=None, layers=part.layers, attention=part.attention, mlp=part.mlp,
            context=context, embedding=embedding, head=OutputHead("none"), vector=None,
        )  # fmt: skip

    @property
    def decoder_stack(self) -> ModelConfig:
        """The decoder of an encoder-decoder, which reads tokens whatever the encoder reads."""
        return self if self.embedding.of_tokens else replace(self, embedding=replace(self.embedding, sound=None))

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
