"""What a checkpoint is, in words: its facts, its config, the account of its tensors, how it compares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, LiteralString, get_args

import pandas as pd

from engine.analysis.parity import Parity
from engine.checkpoints import Checkpoint, Report
from engine.checkpoints.facts import Facts
from engine.checkpoints.report import Status
from engine.model.config import Attention, ModelConfig, RotaryScaling, kv_heads
from engine.model.hooks import fold_layers
from engine.model.layers.lora import Adapter
from engine.plurals import count_words
from views.architecture.architecture import model_drawing
from views.core.markdown import Markdown, code_markdown
from views.core.payload import pack

LANGUAGES = {"bpe": "BPE", "wordpiece": "WordPiece", "unigram": "Unigram", "byte": "bytes", "char": "characters"}
LANGUAGES |= {"word": "words"}
LEARNED = {("layer", "weight"): " without bias", ("layer", "none"): " unlearned", ("rms", "none"): " unlearned"}
NORMS = {"layer": "LayerNorm", "rms": "RMSNorm", "batch": "BatchNorm", "none": "none"}
PLACES = {
    "before": "before each sublayer",
    "after": "after each sublayer",
    "around": "before and after each sublayer",
    "output": "on each sublayer's output",
}
PIPE = "\\|"  # in a table's cell, in code too
REMARKABLE = ("missing", "unexpected", "dropped", "tied", "loaded")  # the order of the table

Fact = tuple[str, str]


def card(name: str, checkpoint: Checkpoint, notes: Mapping[str, Any] | None = None) -> bytes:
    """Payload of checkpoint.js: the architecture, and where its parameters are."""
    return pack({"name": name, "model": model_drawing(name, checkpoint.config), **(notes or {})}, {})


def facts(checkpoint: Checkpoint, about: Facts | None) -> list[Fact]:
    """Facts about a checkpoint: what it is and where it comes from."""
    tokenizer = checkpoint.tokenizer
    stored = Counter(row.dtype for row in checkpoint.report.rows if row.dtype and row.status != "dropped")
    kept = dtype(checkpoint)
    other = [name for name in stored if name != kept]
    numbers = kept if not other else f"{kept}, in the file {' and '.join(other)}"
    found = [("format", " · ".join(part for part in (about.format, about.architecture) if part))] if about else []
    found += [("precision", numbers)]
    if tokenizer is not None:
        kind = LANGUAGES.get(tokenizer.kind, tokenizer.kind)
        found += [("tokenizer", f"{kind}, {tokenizer.vocab_size:,} tokens")]
    else:
        pictures = checkpoint.processor is not None or checkpoint.config.embedding.patches is not None
        found += [("reads", "pictures" if pictures else "token ids, there is no tokenizer")]
    if about:
        found += [("licence", about.licence or "not stated")]
        found += [("files", f"{len(about.files)}, {size(about.bytes)}")]
    trained = [f"{checkpoint.card[key]:,} {key}" for key in ("steps", "tokens") if is_count(checkpoint.card.get(key))]
    found += [("trained", ", ".join(trained))] if trained else []
    if isinstance(program := checkpoint.card.get("program"), list):
        found += [("trained", f"no, compiled from a program of {count_words(len(program), 'line')}")]
    perplexity = checkpoint.card.get("perplexity")
    held_out = perplexity.get("held_out") if isinstance(perplexity, dict) else None
    return [*found, *([("perplexity", f"{held_out:.3g}, held out")] if isinstance(held_out, float) else [])]


def measures(card: Mapping[str, Any]) -> list[Fact]:
    """Measurements in a card on texts that were not learned from, each value under the names that lead to it,
    and the published texts that were."""
    found: list[Fact] = []

    def walk(value: object, *names: str) -> None:
        if isinstance(value, Mapping):
            for name, inner in value.items():
                walk(inner, *names, str(name).replace("_", " "))
        elif isinstance(value, list):
            walk({str(number): inner for number, inner in enumerate(value, 1)}, *names)
        elif value is not None:
            said = f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if is_count(value) else str(value)
            found.append((" · ".join(names), said))

    for name in ("loss", "accuracy", "perplexity"):
        held_out = card.get(name)
        walk(held_out.get("held_out") if isinstance(held_out, Mapping) else None, name)
    walk(card.get("measured"))
    corpora = card.get("corpora")
    for number, corpus in enumerate(corpora if isinstance(corpora, list) else [], 1):
        walk(corpus, f"learned from {number}")
    return found


def config_facts(config: ModelConfig) -> list[Fact]:
    """A config in the words of the field."""
    stacks = [("encoder", config.encoder_stack), ("decoder", config)] if config.encoder else [("blocks", config)]
    found = [(name, blocks(stack)) for name, stack in stacks]
    found += [("width", f"d {config.d_model:,}"), ("positions", positions(config))]
    eps = f", ε {config.norm.eps:g}" if config.norm.kind != "none" else ""
    learned = LEARNED.get((config.norm.kind, config.norm.learned), "")
    found += [("norm", f"{NORMS[config.norm.kind]}{learned} {PLACES[config.norm.place]}{eps}")]
    if config.residual_scale != 1:
        found += [("sublayers", f"what they add × {config.residual_scale:g}")]
    if config.layer_scale:
        found += [("sublayers", "what they add × a learned scale of each component")]
    return [*found, ("head", head(config))]


def blocks(config: ModelConfig) -> str:
    mlp = config.mlp
    wide = "no MLP" if mlp is None else f"{'gated ' if mlp.gated else ''}MLP {mlp.d_mlp:,} {mlp.activation}"
    if mlp is not None and mlp.experts is not None:
        wide = f"{count_words(mlp.experts.count, 'expert')}, {mlp.experts.used} a token, each a {wide}"
    return f"{config.layers} × ({heads(config, config.attention)}, {wide.replace('_', ' ')})"


def heads(config: ModelConfig, attention: Attention) -> str:
    shared = kv_heads(attention)
    grouped = "heads" if shared == attention.heads else f"query heads, {shared} key/value heads"
    window = "" if attention.window is None else f", window {attention.window:,}"
    return f"{attention.heads} {attention.mask} {grouped}, head size {config.head_width(attention)}{window}"


def positions(config: ModelConfig) -> str:
    made = config.positions
    angles = describe_angles(made.theta, made.scaling) if made.kind == "rotary" else ""
    if made.other is not None:
        turned = describe_angles(made.other.theta, made.other.scaling).removeprefix(", ") or "nothing turned"
        angles += f" ({turned} in {len(made.other.layers)} of {count_words(config.layers, 'layer')})"
    patches = config.embedding.patches
    most = f"{patches.count:,} patches" if patches else f"up to {config.context:,}"
    kinds = [] if made.kind == "none" and made.picture_bias else [f"{made.kind}{angles}"]
    kinds += ["a bias for each distance of patches"] if made.picture_bias else []
    return ", ".join([*kinds, most])


def describe_angles(theta: float | None, scaling: RotaryScaling | None) -> str:
    scaled = "" if scaling is None else f", {scaling.kind} scaling × {scaling.factor:g}"
    return "" if theta is None else f", θ {theta:,.10g}{scaled}"


def head(config: ModelConfig) -> str:
    kind = config.head.kind
    if kind == "none":
        return "none: vectors"
    if kind not in ("language", "masked"):
        classes = count_words(config.outputs, "class", "classes")
        return "span: where an answer starts and ends" if kind == "span" else f"{kind}, {classes}"
    return f"{kind}, {config.outputs:,} tokens{', shares the token embedding (tied)' if config.tied else ''}"


def ledger(report: Report) -> dict[str, int]:
    """Counts the tensors of each status."""
    counts = Counter(row.status for row in report.rows)
    return {status: counts[status] for status in get_args(Status)}


def tensor_frame(report: Report) -> pd.DataFrame:
    """A row for each tensor of the file, the remarkable first."""
    rows = sorted(report.rows, key=lambda row: REMARKABLE.index(row.status))
    return pd.DataFrame(
        {
            "status": [row.status for row in rows],
            "in the file": [row.name for row in rows],
            "in the model": [", ".join(row.ours) or "—" for row in rows],
            "shape": [" × ".join(map(str, row.shape)) or "scalar" for row in rows],
            "elements": [prod(row.shape) for row in rows],
            "stored as": [row.dtype or "—" for row in rows],
        }
    )


def adapter_frame(adapters: Sequence[Adapter]) -> pd.DataFrame:
    """Table of a checkpoint's adapters; of several ranks or alphas in one, the smallest and largest."""
    rows = []
    for adapter in adapters:
        ranks = {adapter.rank_of(name) for name in adapter.matrices}
        alphas = {adapter.alphas.get(name, adapter.alpha) for name in adapter.matrices}
        spans = [f"{min(some):g}" + (f" to {max(some):g}" if len(some) > 1 else "") for some in (ranks, alphas)]
        rows.append([adapter.name, *spans, size(adapter.bytes), fold_layers(adapter.matrices)])
    return pd.DataFrame(rows, columns=["adapter", "rank", "alpha", "size", "acts on"])


def parity_sentences(found: Parity, read: str) -> list[str]:
    """Describes what was compared with, what both read, and the largest difference of attention in each layer."""
    versions = " and ".join(f"{name} {version}" for name, version in found.versions.items())
    ids = {True: ", the same token ids", False: ", other token ids", None: ""}[found.ids]
    said = [f"{found.architecture} of {versions} in {found.dtype}, through {found.through}; {read}{ids}"]
    if found.through == "our export":
        said.append(
            "transformers opened what Loupe exported: this shows that both compute the same of it, and not that the "
            "files were opened as the model that they are"
        )
    if found.layers:
        said.append(f"attention by layer: {' · '.join(f'{layer.difference:.1e}' for layer in found.layers)}")
    return said


def account(report: Report) -> tuple[bool, str, str]:
    """Tells whether every tensor of the file found its place, a sentence that says so, and the counts."""
    counts = ledger(report)
    lost, total = counts["missing"] + counts["unexpected"], sum(counts.values())
    verb = "has" if lost == 1 else "have"
    tensors = count_words(total, "tensor")
    sentence = f"{lost} of {tensors} {verb} no place" if lost else f"{tensors}, every one accounted for"
    shown = [f"{n} {status}" for status, n in counts.items() if n or status in ("missing", "unexpected")]
    return not lost, sentence, " · ".join(shown)


def dtype(checkpoint: Checkpoint) -> str:
    return str(checkpoint.model.dtype).removeprefix("torch.")


def is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def size(number: int) -> LiteralString:
    """Bytes as the hub counts them: 548.1 MB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= scale:
            return f"{number / scale:,.1f} {unit}"
    return f"{number} bytes"


def sizes(files: Sequence[tuple[str, int]]) -> Markdown:
    """A Markdown table of files; their names come from others and are code."""
    rows = [f"| {code_markdown(name).replace('|', PIPE)} | {size(length)} |" for name, length in files]
    return Markdown("\n".join(["| file | size |", "|:--|--:|", *rows]))
