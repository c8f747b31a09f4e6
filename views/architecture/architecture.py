"""What the page about architectures draws: a model as its blocks, laid out for architecture.js; tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, LiteralString

from engine.analysis.sizes import Formula, Part, parameters
from engine.analysis.sizes.shape import Stack, stacks
from engine.model.config import MLP, Attention, ModelConfig, TextVector, kv_heads
from engine.plurals import count_words
from views.core.markdown import Markdown
from views.core.payload import pack

# Which blocks of the picture a switch changes; a block of two stacks is marked in both.
SHOWN_BY = {
    "stacks": ("cross_attn", "norm_cross"),
    "input": ("tokens", "patches"),
    "mask": ("attn",),
    "window": ("attn",),
    "positions": ("positions", "relative", "distances", "attn"),
    "segments": ("segments",),
    "width": ("tokens", "head"),
    "sharing": ("attn", "mlp"),
    "norm": ("norm1", "norm2", "norm_cross", "norm1_after", "norm2_after", "final_norm", "embed_norm"),
    "learned": ("norm1", "norm2", "norm_cross", "norm1_after", "norm2_after", "final_norm", "embed_norm"),
    "place": ("norm1", "norm2", "norm_cross", "norm1_after", "norm2_after", "final_norm"),
    "sublayers": ("attn", "mlp"),
    "kv_heads": ("attn", "cross_attn"),
    "qk_norm": ("attn", "cross_attn"),
    "mlp": ("mlp",),
    "experts": ("mlp",),
    "activation": ("mlp",),
    "biases": ("attn", "cross_attn", "mlp"),
    "head": ("head",),
    "pooler": ("pooler",),
    "tied": ("head",),
}
POSITIONS = {"rotary": "rotary positions", "alibi": "ALiBi", "relative": "relative positions"}
TERMS = {"c2p": "query · distance", "p2c": "key · distance"}
NORMS = {"layer": "norm", "rms": "RMS norm", "batch": "batch norm", "none": ""}
ROLES = dict.fromkeys(("tokens", "patches", "sound", "positions", "relative", "distances", "segments"), "residual")
ROLES |= {"attn": "attention", "cross_attn": "attention", "mlp": "mlp", "pooler": "probability"}
ROLES |= {"head": "probability", "next_sentence": "probability", "vector": "probability"}  # the rest are norms


Rows = Sequence[tuple[str, Formula]]


def architecture(
    models: Sequence[tuple[str, ModelConfig]],
    *,
    differing: Iterable[str] = (),
    source: str = "",
    notes: Mapping[str, Any] | None = None,
) -> bytes:
    """The payload for one model, or for two side by side whose switches `differing` do not stand alike."""
    marked = sorted({block for switch in differing for block in SHOWN_BY[switch]})
    models_drawn = [model_drawing(name, config) for name, config in models]
    return pack({"models": models_drawn, "marked": marked, "source": source, **(notes or {})}, {})


def model_drawing(name: str, config: ModelConfig) -> dict[str, Any]:
    parts = parameters(config)
    return {
        "name": name,
        "total": sum(part.count for part in parts),
        "stacks": [stack_drawing(stack, config.table) for stack in stacks(config)],
        "ends": end_drawing(config),
        "parts": [part_row(part) for part in parts],
    }


def part_row(part: Part) -> dict[str, Any]:
    written = {"tex": part.formula.tex, "numbers": part.formula.tex_numbers, "count": part.count}
    each = part.one.value if part.layers is not None else None
    return {"name": part.name, "block": part.block, "role": role(part.block), "each": each, **written}


def role(block: str) -> str:
    """The hue of a block, one of the theme's."""
    return ROLES.get(block.rpartition(".")[2], "soft")


def stack_drawing(stack: Stack, table: str) -> dict[str, Any]:
    """`table` is the name of the tensor of the tokens' vectors."""
    config, prefix, crosses = stack.config, stack.prefix, stack.crosses
    return {
        "prefix": prefix,
        "layers": config.layers,
        "shared": config.distinct is not None and config.distinct < config.layers,
        "width": config.d_model,
        "reads": describe_read(config),
        "embedding": list(embedding_rows(config, table.startswith(prefix))),
        "embedNorm": config.embedding.norm and bool(NORMS[config.norm.kind]),
        "norm": NORMS[config.norm.kind],
        "place": config.norm.place,
        "sublayers": config.sublayers,
        "residual": config.residual,
        "scale": "λ" if config.layer_scale else "" if config.residual_scale == 1 else f"{config.residual_scale:.3g}",
        "attention": attention_drawing(config, config.attention),
        "cross": attention_drawing(config, config.cross_attention, across=True) if crosses else None,
        "mlp": None if config.mlp is None else mlp_drawing(config, config.mlp),
        "finalNorm": config.final_norm and bool(NORMS[config.norm.kind]),
    }


def describe_read(config: ModelConfig) -> str:
    patches, sound = config.embedding.patches, config.embedding.sound
    if sound is not None:
        return f"{sound.frames:,} frames of {sound.bins} mel bins"
    if patches is None:
        return "token ids"
    registers = [count_words(patches.registers, "register")] if patches.registers else []
    named = [name for name in patches.names_before if not name.startswith("[REG")]
    last = f"{patches.side} × {patches.side} patches{'' if registers else ' of a picture'}"
    before = [*named, *registers]
    return f"{', '.join(before)} and {last}" if before else last


def embedding_rows(config: ModelConfig, own: bool) -> Iterable[dict[str, str]]:
    d, made = f"{config.d_model:,}", config.embedding
    if made.patches is not None:
        pixels = made.patches.channels * made.patches.size**2
        yield {"id": "patches", "label": "patches", "detail": f"{pixels:,} × {d}"}
    elif made.sound is not None:
        yield {"id": "sound", "label": "convolutions", "detail": f"{made.sound.bins} → {d}"}
    elif not own:
        yield {"id": "tokens", "label": "tokens", "detail": "shared with the encoder"}
    else:
        mapped = "" if made.width is None else f" → {d}"
        yield {"id": "tokens", "label": "tokens", "detail": f"{config.vocab_size:,} × {config.d_embed:,}{mapped}"}
    if made.width is not None and made.mapped == "all":
        d = f"{made.width:,}"
    if config.positions.has_places:
        both = " twice" if config.positions.axes == 2 else ""
        yield {"id": "positions", "label": "positions", "detail": f"{config.context:,} × {d}{both}"}
    elif config.positions.kind == "sinusoidal":
        yield {"id": "positions", "label": "positions", "detail": "sin and cos"}
    if made.segments:
        yield {"id": "segments", "label": "segments", "detail": f"{made.segments} × {d}"}


def mlp_drawing(config: ModelConfig, mlp: MLP) -> dict[str, Any]:
    notes = [f"{mlp.activation.replace('_', ' ')}{', gated' if mlp.gated else ''}"]
    title, experts = "MLP", mlp.experts
    if experts is not None:
        title = count_words(experts.count, "expert")
        some = len(config.experts_by_layer)
        notes = [f"{experts.used} a token{', 1 shared' if experts.shared else ''}", *notes]
        notes += [f"in {some} of {config.layers}"] if some < config.layers else []
    return {"title": title, "width": mlp.d_mlp, "gated": mlp.gated, "note": ", ".join(notes)}


def attention_drawing(config: ModelConfig, attention: Attention, across: bool = False) -> dict[str, Any]:
    notes = [] if across or config.positions.kind not in POSITIONS else [POSITIONS[config.positions.kind]]
    notes += ["a bias for each distance"] if not across and config.positions.relative_bias else []
    notes += ["a bias for each distance of patches"] if not across and config.positions.picture_bias else []
    notes += [] if across or not config.positions.named_terms else ["disentangled positions"]
    notes += [] if across else [f"+ {TERMS[term]}" for term in config.positions.named_terms]
    notes += ["of two kinds"] if not across and config.positions.kind == "rotary" and config.positions.axes == 2 else []
    if not across and config.positions.other is not None:
        notes.append(f"otherwise turned in {len(config.positions.other.layers)} of {config.layers}")
    if attention.window is not None:
        some = "" if attention.windowed is None else f" in {len(attention.windowed)} of {config.layers}"
        each = " each way" if attention.mask == "full" else ""
        notes.append(f"window {attention.window:,}{each}{some}")
    notes += [] if across or config.norm.first else ["no norm before layer 0"]
    notes += ["each head has a sink"] if attention.sinks else []
    notes += [] if attention.softcap is None else [f"scores capped at {attention.softcap:g}"]
    notes += [] if attention.qk_norm is None else ["q, k normed"]
    return {
        "mask": attention.mask,
        "window": attention.window is not None,
        "heads": attention.heads,
        "kvHeads": kv_heads(attention),
        "dHead": config.head_width(attention),
        "notes": notes,
    }


def end_drawing(config: ModelConfig) -> dict[str, Any]:
    """The boxes above the last stack, and what comes out of them."""
    head, d = config.head, f"{config.d_model:,}"
    narrow = "" if config.embedding.width is None else f"{d} → {config.d_embed:,}, "
    boxes = []
    if head.pooler:
        read = "x₀" if head.read == "first" else "x₋₁"
        boxes.append({"id": "pooler", "label": "pooler", "detail": f"{head.pooler_activation}(W {read} + b)"})
    if head.next_sentence:
        boxes.append({"id": "next_sentence", "label": "next sentence", "detail": f"{d} → 2"})
    if head.kind in ("language", "masked"):
        label = "head" if head.kind == "language" else "masked head"
        detail = f"{narrow}shares the token embedding (tied)" if config.tied else f"{narrow}{d} → {config.outputs:,}"
        boxes.append({"id": "head", "label": label, "detail": detail})
    elif head.kind != "none":
        mean = "mean, " if head.kind == "sequence" and head.read == "mean" else ""
        mean += "dense, norm, " if head.norm else "dense, " if head.dense else ""
        made = f"{narrow}{config.d_embed:,}" if config.narrows else d
        boxes.append({"id": "head", "label": f"{head.kind} head", "detail": f"{mean}{made} → {config.outputs:,}"})
    elif config.narrows:
        boxes.append({"id": "head", "label": "map", "detail": f"{d} → {config.d_embed:,}"})
    if config.vector is not None:
        boxes.append({"id": "vector", "label": "vector", "detail": describe_vector(config.vector, config.d_model)})
    return {"boxes": boxes, "tied": config.tied and head.kind in ("language", "masked"), "out": outcome(config)}


def describe_vector(vector: TextVector, d_model: int) -> str:
    """Words for how the vector of a text is made: "mean, 768 → 256, length 1"."""
    named = [", ".join(kind.replace("_", " ") for kind in vector.pooled) or "of each token"]
    widths = [d_model * max(len(vector.pooled), 1), *(one.width for one in vector.maps)]
    named += [" → ".join(f"{width:,}" for width in widths)] if vector.maps else []
    return ", ".join([*named, *(["length 1"] if vector.unit else [])])


def outcome(config: ModelConfig) -> str:
    head = config.head
    if config.vector is not None and head.kind == "none":
        whole = "text" if config.embedding.patches is None else "picture"
        return "a vector of each token" if not config.vector.pooled else f"the {whole} as one vector"
    if head.kind == "sequence":
        return count_words(config.outputs, "class", "classes")
    if head.kind == "token":
        return f"{config.outputs:,} {'classes' if config.outputs > 1 else 'logit'} at each position"
    if head.kind == "span":
        return "where an answer starts and ends"
    if head.kind == "none":
        return "the text as one vector" if head.pooler else "a vector at each position"
    return f"{config.outputs:,} logits at each position"


def table(rows: Rows, total: int, unit: str, narrow: bool = False) -> Markdown:
    """A Markdown table: each row's name, what its formula comes to and the share, the formula, the numbers put in.

    A `narrow` one has no shares, and cuts long formulas into lines.
    """
    widest = 44 if narrow else 100  # letters of TeX
    lines = [
        row("part", unit, "share", "formula", "in numbers", narrow),
        row(":--", "--:", "--:", ":--", ":--", narrow),
    ]
    for name, formula in rows:
        share = percent(formula.value / total) if total else ""
        tex, put_in = (
            f"${{{tex}}}$" if len(tex) <= widest else f"${tex}$" for tex in (formula.tex, formula.tex_numbers)
        )
        lines.append(row(written_name(name), f"{formula.value:,}".replace("-", "−"), share, tex, put_in, narrow))
    return Markdown("\n".join([*lines, row("**all**", f"**{total:,}**", "", "", "", narrow)]))


def percent(share: float) -> str:
    """Formats a share with two decimals, or as many as show two digits: a small part is not none."""
    value = 100 * share
    return f"{value:.2f}\u00a0%" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}\u00a0%"


def row(name: str, count: str, share: str, tex: str, put_in: str, narrow: bool) -> str:
    return f"| {' | '.join([name, count, *([] if narrow else [share]), tex, put_in])} |"


def written_name(name: str) -> Markdown:
    """Writes a name as Markdown that a line end does not cut: matrices as TeX."""
    escaped = re.sub(r"W_(\w)", r"$W_\1$", name.replace("[", r"\[").replace("]", r"\]"))
    return Markdown(escaped.replace(" ", "\u00a0") if len(name) < 28 else escaped)


def part_rows(config: ModelConfig) -> Rows:
    return [(block_title(part.block, part.name), part.formula) for part in parameters(config)]


def block_title(block: str, name: str) -> str:
    stack = block.rpartition(".")[0]
    return f"{stack}: {name}" if stack else name


def symbols(formulas: Iterable[Formula]) -> Markdown:
    """Explains what each symbol of some formulas stands for, once, as Markdown."""
    found = {symbol.name: symbol for formula in formulas for symbol in formula.symbols()}
    return Markdown(" · ".join(f"${symbol.tex}$ {symbol.definition}" for symbol in found.values()))


def about(number: int) -> LiteralString:
    """101.3 million: for words around an exact number, never in its place."""
    if number < 1e5:
        return f"{number:,}"
    scale, unit = (1e9, "billion") if number >= 1e9 else (1e6, "million")
    return f"{number / scale:,.1f} {unit}"


def size(number: int) -> LiteralString:
    """Bytes in the largest unit that leaves at least one: 1.63 GiB."""
    value, units = float(number), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{number} bytes" if units[0] == "bytes" else f"{value:,.2f} {units[0]}"
