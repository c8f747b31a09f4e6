"""What memory holds beside the parameters: the KV cache of generation, and what training keeps and updates."""

from __future__ import annotations

from dataclasses import dataclass

from engine.analysis.sizes.formula import Formula, Integer, Symbol, formula, total
from engine.analysis.sizes.parameters import count
from engine.analysis.sizes.shape import Stack, stacks
from engine.analysis.sizes.work import reaches
from engine.model.config import MLP, Activation, Attention, Experts, Latent, ModelConfig, kv_heads

FLOAT32 = 4  # bytes; softmax and norms keep their statistics in it whatever the rest is in
KEPT_OF_ACTIVATION: dict[Activation, int] = {
    "relu": 1,
    "relu2": 2,
    "tanh": 1,
    "gelu": 2,
    "gelu_tanh": 2,
    "silu": 2,
    "quick_gelu": 3,
}


def wide(mlp: MLP) -> int:
    """Numbers that are kept of each neuron."""
    limited = 0 if mlp.limit is None else 1 + mlp.gated
    return KEPT_OF_ACTIVATION[mlp.activation] + (2 if mlp.gated else 0) + limited


@dataclass(frozen=True)
class Memory:
    """`formula` is in bytes; `quadratic` memory grows with the square of the length."""

    name: str
    formula: Formula
    quadratic: bool = False

    @property
    def bytes(self) -> int:
        return self.formula.value


def kv_cache(config: ModelConfig, batch: int, length: int, number: int = 2, source: int | None = None) -> list[Memory]:
    """Keys and values of `length` tokens of each text, `number` bytes each; layers with a window keep what it reaches.

    An encoder-decoder also keeps those of the `source` tokens, by default as many, for its cross-attention. Empty for a
    model that does not continue a text: it reads everything at once.
    """
    if not config.generates:
        return []
    stack, B, b = stacks(config)[-1], Symbol("B", batch), Symbol("b", number)
    each = 2 * B * b
    seen = total([many * reach for many, reach in reaches(config.attention, Symbol("n", length), stack.L, config)])
    found = [Memory("keys and values", each * seen * stack.kv_heads(config.attention))]
    if config.attention.latent is not None:
        both = total([stack.heads(config.attention), stack.values(config.attention)])
        found = [Memory("keys and values", B * b * seen * both)]
    if stack.crosses:
        read = Symbol("m", length if source is None else source)
        crossing = each * stack.L * read * stack.kv_heads(config.cross_attention)
        found.append(Memory("keys and values of the source", crossing))
    return found


def states(config: ModelConfig) -> list[Memory]:
    """Bytes that Adam (Kingma & Ba 2015) holds in mixed precision, 16 bytes a parameter (Rajbhandari et al. 2020, 3.1).

    Plain float32 holds 4 of weights, 4 of gradients and 8 of moments, which is as much.
    """
    parameters = Symbol("N_p", count(config))
    return [
        Memory("weights in half precision", 2 * parameters),
        Memory("gradients in half precision", 2 * parameters),
        Memory("weights in float32", 4 * parameters),
        Memory("Adam's two moments in float32", 8 * parameters),
    ]


def activations(
    config: ModelConfig, batch: int, length: int, number: int = 2, target: int | None = None
) -> list[Memory]:
    """Values that one forward pass in training keeps for the backward pass, `number` bytes each, dropout off.

    Counted is every floating-point tensor that PyTorch's autograd saves, once: the inputs of matrix products, norms and
    activations, queries, keys, values, and the log-probabilities of the loss. Attention is fused, so that no pattern is
    kept, except where relative or disentangled positions (their table needs its gradient from it) or a soft cap forbid
    that. Token ids are left out, and so are recomputation and what a kernel needs only for a moment.
    """
    tally = Tally(config, Symbol("B", batch), Symbol("b", number))
    source = Symbol("n", length)
    last = source
    if (patches := config.embedding.patches) is not None:
        tally.keep("patches", tally.B * Symbol("p", patches.count) * stacks(config)[0].pixels)
    if (sound := config.embedding.sound) is not None:
        source = Symbol("N_s", sound.positions)
        tally.keep("frames", tally.B * 2 * source * Symbol("M", sound.bins))
        tally.keep("convolutions: before gelu, and what the second reads", 5 * tally.B * source * tally.d)
    for stack in stacks(config):
        last = Symbol("m", length if target is None else target) if stack.crosses else source
        tally.stack(stack, last, source)
    tally.ends(last)
    return tally.kept


class Tally:
    """Tally of what is kept, one method a part of the model; each adds to `kept`."""

    def __init__(self, config: ModelConfig, B: Symbol, b: Symbol) -> None:
        self.config, self.B, self.b = config, B, b
        self.kept: list[Memory] = []
        self.d = Symbol("d", config.d_model)
        norm = config.norm  # an RMS norm with a weight keeps x / scale too, and none keeps a mean
        self.normed = {"layer": 1, "rms": 1 + norm.has_weight, "batch": 1, "none": 0}[norm.kind]
        self.moments = {"layer": 2, "rms": 1, "batch": 2, "none": 0}[norm.kind]

    def keep(self, name: str, numbers: Formula, each: Formula | None = None, quadratic: bool = False) -> None:
        if numbers.value:
            self.kept.append(Memory(name, (self.b if each is None else each) * numbers, quadratic))

    def statistics(self, name: str, numbers: Formula) -> None:
        self.keep(name, numbers, Integer(FLOAT32))

    def stack(self, stack: Stack, tokens: Symbol, source: Symbol) -> None:
        config, d, title = stack.config, self.d, f"{stack.title} " if stack.title else ""
        rows = self.B * tokens
        if config.embedding.norm:
            self.norms(f"{title}embedding norm", rows, Integer(1), 1, 1, stack.embedding_width)
        if config.embedding.token_dropout is not None:
            self.keep("factors of the token vectors", rows)
        if config.embedding.width is not None:
            self.keep("vectors of tokens before their map", rows * stack.E)
        self.angles(stack, tokens)
        self.block_norms(stack, rows, title)
        self.attention(stack, config.attention, tokens, tokens, f"{title}attention")
        if stack.crosses:
            self.keep("encoder's output", self.B * source * d)
            self.attention(stack, config.cross_attention, tokens, source, "cross-attention", across=True)
        if config.mlp is not None:
            same = config.sublayers == "parallel_one_norm"  # as what attention reads, which is kept there
            same |= config.sublayers == "parallel" and config.norm.place == "output"
            inputs = Integer(0) if same else d
            if config.mlp.experts is None:
                self.keep(f"{title}MLP", rows * stack.L * total([inputs, wide(config.mlp) * stack.d_ff]))
            else:
                self.keep("MLP: inputs", rows * stack.L * inputs)
                self.experts(stack, config.mlp, config.mlp.experts, rows)
        if config.layer_scale:
            adds = 1 + (config.mlp is not None)
            self.keep(f"{title}what the layers' scales multiply", adds * rows * stack.L * d)
        if config.final_norm:
            self.norms(f"{title}final norm", rows, Integer(1), 1, 1)

    def experts(self, stack: Stack, mlp: MLP, experts: Experts, rows: Formula) -> None:
        """The router's probabilities and weights; of each token, for each of its experts, what that reads, its neurons,
        and what it writes."""
        k = Symbol("k", experts.used)
        sums = [k + 1] if experts.renormalised else []
        self.statistics("router: probabilities", rows * stack.L_x * total([stack.X, *sums]))
        self.keep("router: weights", rows * stack.L_x * k)
        for feed in stack.feeds:
            neurons = wide(mlp) * feed.width
            if feed.module == "mlp":
                self.keep("MLP", rows * feed.layers * neurons)
            elif feed.module == "mlp.shared":
                gate = [self.d + 1] if experts.shared_gate else []
                self.keep("shared expert", rows * feed.layers * total([neurons, *gate]))
            else:
                self.keep("experts", rows * feed.layers * k * total([2 * formula(self.d), neurons]))

    def block_norms(self, stack: Stack, rows: Formula, title: str) -> None:
        config = stack.config
        both = config.mlp is not None
        outputs = (1 + both) if config.norm.place in ("around", "output") else 0
        if config.norm.place == "output":
            self.norms(f"{title}norms", rows, stack.L, outputs, outputs)
            return
        if not config.norm.first and config.layers:
            self.norms(f"{title}norms before attention", rows, stack.L - 1, 1, 1)
            self.norms(f"{title}norms before the MLP", rows, stack.L, int(both), int(both))
            return
        norms = 1 + (both and config.sublayers != "parallel_one_norm") + stack.crosses + outputs
        inputs = norms - (both and config.sublayers == "parallel")  # two norms of one stream
        self.norms(f"{title}norms", rows, stack.L, inputs, norms)

    def norms(
        self, name: str, rows: Formula, layers: Formula, inputs: int, norms: int, width: Symbol | None = None
    ) -> None:
        if not self.normed:
            return
        kept = inputs + (norms if self.normed == 2 else 0)
        self.keep(f"{name}: inputs", rows * layers * (kept * (width or self.d)))
        self.scales(name, norms * layers, rows, width or self.d)

    def scales(self, name: str, norms: Formula, rows: Formula, width: Formula) -> None:
        """Adds what each norm divides by, and the mean where it subtracts that: of every row, or of every feature for a
        batch norm."""
        each = 2 * width if self.config.norm.kind == "batch" else self.moments * rows
        self.statistics(f"{name}: scales", norms * each)

    def attention(
        self, stack: Stack, attention: Attention, tokens: Symbol, read: Symbol, name: str, across: bool = False
    ) -> None:
        """`read` are the keys' tokens. The input is kept once for queries, keys and values."""
        config, layers, heads = stack.config, stack.L, Symbol("H", attention.heads)
        explicit = attention.softcap is not None or attention.nearest is not None or attention.sinks
        terms = () if across else config.positions.named_terms
        learned = config.positions.has_buckets or config.positions.picture_bias is not None
        biased = (learned or bool(terms)) and not across and not explicit
        queries = stack.heads(attention)
        keys = queries if biased else stack.kv_heads(attention)
        values = keys if attention.latent is None else stack.values(attention)
        results = queries if attention.latent is None else values
        self.keep(f"{name}: inputs, queries and results", self.B * tokens * layers * total([self.d, queries, results]))
        self.keep(f"{name}: keys and values", self.B * read * layers * total([keys, values]))
        if attention.latent is not None:
            self.latent(attention.latent, self.B * tokens * layers, name)
        if attention.qk_norm is not None:
            self.query_norms(stack, attention, tokens, name)
        if terms:
            rows = 2 * Symbol("D", config.positions.span)
            each = total([rows * queries, self.B * tokens * queries, self.B * heads * tokens * rows])
            self.keep(f"{name}: products with the distances", len(terms) * layers * each)
            if config.positions.normed:
                self.keep(f"{name}: distances", rows * self.d)
                self.statistics(f"{name}: scales of the norm of the distances", 2 * rows)
        square = tokens * read
        if attention.sinks:
            self.keep(f"{name}: shares of the sinks", self.B * layers * heads * tokens)
        if explicit or biased:
            self.patterns(stack, attention, self.B * heads * square, square, name, explicit)
            return
        if config.value_width(attention) != config.head_width(attention):  # which no fused kernel takes
            self.keep(f"{name}: patterns", layers * self.B * heads * square, quadratic=True)
            return
        self.statistics(f"{name}: sums of the softmax", self.B * layers * heads * tokens)
        if not across:
            self.mask_sums(stack, attention, square, name)

    def latent(self, latent: Latent, rows: Formula, name: str) -> None:
        """Counts what was compressed, as its norm reads it, divides it and gives it."""
        widths = [Symbol("c", latent.keys), *([Symbol("c_q", latent.queries)] if latent.queries else [])]
        for width in widths:
            self.keep(f"{name}: compressed", rows * ((self.normed + 1) * width))
            self.scales(f"{name}: norms of what is compressed", Integer(1), rows, width)

    def patterns(
        self, stack: Stack, attention: Attention, pattern: Formula, square: Formula, name: str, explicit: bool
    ) -> None:
        """The softmax's result; the tanh of a cap; and once more the result, where a row may have nothing to see."""
        limited = attention.window is not None or attention.block is not None
        mixed = attention.window is not None and attention.windowed is not None
        layers = (1 + (attention.softcap is not None)) * stack.L
        if explicit and (limited or attention.mask == "prefix") and not attention.sinks:
            layers = layers + (Symbol("L_w", len(attention.windowed or ())) if mixed else stack.L)
        self.keep(f"{name}: patterns", layers * pattern, quadratic=True)
        if attention.nearest is not None:
            self.keep(f"{name}: masks", stack.L * pattern + square, Integer(1), quadratic=True)
        elif not explicit or limited or attention.mask != "full":
            self.keep(f"{name}: masks", (2 if mixed else 1) * square, Integer(1), quadratic=True)

    def query_norms(self, stack: Stack, attention: Attention, tokens: Symbol, name: str) -> None:
        both = stack.heads(attention) + stack.kv_heads(attention)
        own = attention.qk_norm == "each" and stack.config.norm.has_weight  # which multiply what is normalised
        held = self.normed + own * (stack.config.norm.kind == "layer")
        self.keep(f"{name}: inputs of the query and key norms", held * self.B * tokens * stack.L * both)
        rows = attention.heads + kv_heads(attention) if attention.qk_norm != "all" else 2
        self.statistics(f"{name}: their scales", self.moments * rows * self.B * tokens * stack.L)

    def mask_sums(self, stack: Stack, attention: Attention, square: Formula, name: str) -> None:
        """The mask as numbers added to the scores, for masks that fused attention has no name for."""
        config, layers = stack.config, stack.L
        if config.positions.kind == "alibi":
            self.keep(f"{name}: masks", layers * Symbol("H", attention.heads) * square, quadratic=True)
        elif config.infill is not None:
            self.keep(f"{name}: masks", self.B * layers * square, quadratic=True)
        elif attention.window is not None or attention.block is not None:
            some = attention.windowed is not None and attention.window is not None
            many = Symbol("L_w", len(attention.windowed or ())) if some else layers
            self.keep(f"{name}: masks", many * square, quadratic=True)

    def angles(self, stack: Stack, tokens: Symbol) -> None:
        """cos and sin of rotary positions, once for all layers that turn alike."""
        config = stack.config
        layers = range(config.layers)
        kinds = {one for one in map(config.positions.of_layer, layers) if one.kind == "rotary"}
        if kinds:
            texts: Formula = 2 * self.B if config.positions.axes == 2 else Integer(1)
            each = 2 * texts * tokens * Symbol("d_r", config.d_turned)
            self.keep("cos and sin of the positions", each if len(kinds) == 1 else len(kinds) * each)

    def vector(self, tokens: Symbol) -> None:
        """Counts what the vector of the whole keeps, where a head reads that."""
        vector = self.config.vector
        assert vector is not None
        self.keep("vector: weights of what is pooled", len(vector.pooled) * self.B * tokens)
        if vector.norm:
            self.norms("vector: norm", self.B, Integer(1), 1, 1, stacks(self.config)[-1].read)

    def ends(self, tokens: Symbol) -> None:
        config, head, d = self.config, self.config.head, self.d
        rows, read = self.B * tokens, stacks(config)[-1].read
        whole = head.kind == "sequence"
        mean = self.B if whole and head.read in ("mean", "vector") else rows  # one position keeps them all
        if whole and head.read == "vector":
            self.vector(tokens)
        pooled = whole and head.pooler
        if head.pooler:
            self.keep("pooler", total([rows * d, KEPT_OF_ACTIVATION[head.pooler_activation] * self.B * d]))
        if config.narrows and not pooled:
            self.keep("head: before the map", mean * d)
        if head.kind == "none":
            return
        if head.kind == "masked":
            self.keep("head: dense", rows * total([d, KEPT_OF_ACTIVATION[head.activation] * read]))
            extra = int(config.norm.kind != "none")
            self.keep("head: norm", rows * ((self.normed - 1) * extra * formula(read)))
            self.scales("head", Integer(extra), rows, formula(read))
        if head.dense:
            made, extra = (self.B if whole else rows) * formula(read), int(head.norm and config.norm.kind != "none")
            self.keep("head: dense", KEPT_OF_ACTIVATION[head.activation] * made)
            self.keep("head: norm", self.normed * extra * made)
            self.scales("head", Integer(extra), self.B if whole else rows, formula(read))
        if not pooled or config.narrows:
            self.keep("head: input", (self.B if whole and config.narrows else mean) * read)
        outputs = stacks(config)[-1].outputs
        logits = (self.B if whole else rows) * outputs
        self.keep("log-probabilities", (2 if head.softcap is not None else 1) * logits)
