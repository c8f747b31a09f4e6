"""What the page about a checkpoint draws: its card, every tensor of its file, its weights and its tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite, isnan
from typing import Any, get_args

import torch

from engine.analysis.weights import Matrix, by_head, circuit, histogram, matrices, neighbours, projection, spectrum
from engine.checkpoints import Checkpoint, Report
from engine.checkpoints.facts import Facts
from engine.checkpoints.parity import Parity
from engine.checkpoints.report import MEANING, Status
from engine.model.config import Attention, ModelConfig, kv_heads
from engine.model.transformer import Transformer
from views.architecture.architecture import drawing
from views.core.payload import pack

LANGUAGES = {"bpe": "BPE", "wordpiece": "WordPiece", "unigram": "Unigram", "byte": "bytes", "char": "characters"}
LANGUAGES |= {"word": "words"}
NORMS = {"layer": "LayerNorm", "rms": "RMSNorm", "none": "none"}
PLACES = {"before": "before each sublayer", "after": "after each sublayer", "around": "before and after each sublayer"}
AT_ONCE = 2_000_000  # numbers of which everything is computed before the page is shown
REMARKABLE = ("missing", "unexpected", "dropped", "tied", "loaded")  # the order of the table

Fact = tuple[str, str]


def card(
    name: str, checkpoint: Checkpoint, about: Facts | None, *, compares: bool, notes: Mapping[str, Any] | None = None
) -> bytes:
    """The payload of checkpoint.js. `compares` says whether transformers is here to compare with."""
    report = checkpoint.report
    return pack(
        {
            "name": name,
            "says": about.says if about else "",
            "facts": [*facts(checkpoint, about), *described(checkpoint.config)],
            "files": [list(file) for file in about.files] if about else [],
            "model": drawing(name, checkpoint.config),
            "ledger": ledger(report),
            "notes": list(report.notes),
            "compares": compares,
            **(notes or {}),
        },
        {},
    )


def facts(checkpoint: Checkpoint, about: Facts | None) -> list[Fact]:
    """What it is and where it comes from."""
    tokenizer = checkpoint.tokenizer
    stored = Counter(row.dtype for row in checkpoint.report.rows if row.dtype and row.status != "dropped")
    kept = dtype(checkpoint)
    other = [name for name in stored if name != kept]
    numbers = kept if not other else f"{kept}, in the file {' and '.join(other)}"
    found = [("format", " · ".join(part for part in (about.format, about.architecture) if part))] if about else []
    found += [("numbers", numbers)]
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
    return [*found, *([("trained", ", ".join(trained))] if trained else [])]


def described(config: ModelConfig) -> list[Fact]:
    """A config in the words of the field."""
    stacks = [("encoder", config.encoder_stack), ("decoder", config)] if config.encoder else [("blocks", config)]
    found = [(name, blocks(stack)) for name, stack in stacks]
    found += [("width", f"d {config.d_model:,}"), ("positions", positions(config))]
    eps = f", ε {config.norm.eps:g}" if config.norm.kind != "none" else ""
    found += [("norm", f"{NORMS[config.norm.kind]} {PLACES[config.norm.place]}{eps}")]
    return [*found, ("head", head(config))]


def blocks(config: ModelConfig) -> str:
    mlp = config.mlp
    wide = "no MLP" if mlp is None else f"{'gated ' if mlp.gated else ''}MLP {mlp.d_mlp:,} {mlp.activation}"
    return f"{config.layers} × ({heads(config, config.attention)}, {wide.replace('_', ' ')})"


def heads(config: ModelConfig, attention: Attention) -> str:
    shared = kv_heads(attention)
    grouped = "" if shared == attention.heads else f" on {shared} of keys and values"
    window = "" if attention.window is None else f", window {attention.window:,}"
    return f"{attention.heads} {attention.mask} heads of {config.head_width(attention)}{grouped}{window}"


def positions(config: ModelConfig) -> str:
    made = config.positions
    theta = f", θ {made.theta:,.10g}" if made.kind == "rotary" else ""
    scaled = f", {made.scaling.kind} scaling × {made.scaling.factor:g}" if made.scaling else ""
    patches = config.embedding.patches
    most = f"{patches.count:,} patches" if patches else f"up to {config.context:,}"
    return f"{made.kind}{theta}{scaled}, {most}"


def head(config: ModelConfig) -> str:
    kind = config.head.kind
    if kind == "none":
        return "none: vectors"
    if kind not in ("language", "masked"):
        return "span: where an answer starts and ends" if kind == "span" else f"{kind}, {config.outputs:,} classes"
    return f"{kind}, {config.outputs:,} tokens{', the table of tokens again' if config.tied else ''}"


def ledger(report: Report) -> dict[str, int]:
    """How many tensors came to each status."""
    counts = Counter(row.status for row in report.rows)
    return {status: counts[status] for status in get_args(Status)}


def tensors(report: Report, notes: Mapping[str, Any] | None = None) -> bytes:
    """The payload of assets/views/checkpoint/tensors.js: the table of every tensor, the remarkable first."""
    rows = sorted(report.rows, key=lambda row: REMARKABLE.index(row.status))
    table = [[row.name, row.status, list(row.shape), list(row.ours), row.dtype] for row in rows]
    return pack({"rows": table, "ledger": ledger(report), "meaning": MEANING, **(notes or {})}, {})


def weights(name: str, model: Transformer, notes: Mapping[str, Any] | None = None) -> bytes:
    """The payload of weights.js: the matrices that it can ask for, and the first one to look at.

    Of a small model with all that is drawn at first.
    """
    found = [matrix_row(model, each) for each in drawn_matrices(model)]
    first = next((i for i, row in enumerate(found) if row["heads"]), 0)
    header: dict[str, Any] = {"checkpoint": name, "matrices": found, "first": first, **(notes or {})}
    arrays: dict[str, torch.Tensor] = {}
    if sum(parameter.numel() for parameter in model.parameters()) <= AT_ONCE:
        header["answer"], arrays = figures(model, found[first]["name"], None, False)
        arrays["rms"] = magnitudes(model)
    return pack(header, arrays)


def drawn_matrices(model: Transformer) -> list[Matrix]:
    return [each for each in matrices(model) if each.kind == "matrix"]


def matrix_row(model: Transformer, matrix: Matrix) -> dict[str, Any]:
    """`circuit` is the one that the heads of this matrix can be multiplied to: QK from W_Q, OV from W_O."""
    letter = matrix.name.removesuffix(".weight").rpartition(".")[2]
    in_attention = matrix.part in ("attn", "cross_attn")
    return {
        "name": matrix.name,
        "title": matrix.title,
        "family": matrix.family,
        "side": matrix.side,
        "layer": matrix.layer,
        "shape": list(matrix.shape),
        "heads": len(by_head(model, matrix.name)) if in_attention and letter in ("q", "k", "v", "out") else 0,
        "circuit": {"q": "qk", "out": "ov"}.get(letter, "") if in_attention else "",
    }


def matrix_sizes(model: Transformer) -> bytes:
    return pack({}, {"rms": magnitudes(model)})


def magnitudes(model: Transformer) -> torch.Tensor:
    """The root mean square of each of `drawn_matrices`."""
    return torch.tensor([root_mean_square(model.get_parameter(each.name)) for each in drawn_matrices(model)])


def root_mean_square(tensor: torch.Tensor) -> float:
    return torch.linalg.vector_norm(tensor.detach(), dtype=torch.float32).item() / tensor.numel() ** 0.5


def matrix_figures(model: Transformer, name: str, head: int | None, through: bool) -> bytes:
    """Raises as `figures` does."""
    header, arrays = figures(model, name, head, through)
    return pack(header, arrays)


def figures(
    model: Transformer, name: str, head: int | None, through: bool
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Histogram and singular values of a matrix, of one of its heads, or of the circuit `through` it.

    Raises ValueError for a matrix or a head that is not there.
    """
    row = next((matrix_row(model, each) for each in drawn_matrices(model) if each.name == name), None)
    if row is None or (head is not None and not 0 <= head < row["heads"]):
        raise ValueError("This checkpoint has no such matrix; choose another one.")
    weight = model.get_parameter(name).detach()
    heads = {"heads": [root_mean_square(part) for part in by_head(model, name)]} if row["heads"] else {}
    if head is not None and through and row["circuit"]:
        made = circuit(model, row["layer"], head, row["circuit"], row["side"], ".cross_attn." in name)
        tensor, values = made.matrix, made.spectrum
    else:
        tensor = by_head(model, name)[head] if head is not None else weight.flatten(1)
        values = spectrum(tensor)
    counted = histogram(tensor)
    header = {
        "shape": list(tensor.shape if head is not None else weight.shape),
        "stats": {key: getattr(counted, key) for key in ("mean", "std", "min", "max", "norm", "zeros", "outside")},
        "ranks": {
            "rank": values.rank,
            "stable": values.stable_rank,
            "energy": values.energy,
            "condition": values.condition if isfinite(values.condition) else None,
        },
    }
    arrays = {"edges": counted.edges.float(), "counts": counted.counts, "values": values.values.float()}
    return header, {**arrays, **{key: torch.tensor(value) for key, value in heads.items()}}


def tables(name: str, checkpoint: Checkpoint, notes: Mapping[str, Any] | None = None) -> bytes | None:
    """The payload of assets/views/checkpoint/projection.js; None for a model without a table of vectors."""
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    special = list(tokenizer.special_tokens.values()) if tokenizer else []
    found = [
        {
            "name": each.name,
            "title": "token" if tokens else "position",
            "rows": each.shape[0],
            "tokens": tokens and tokenizer is not None,
            "ordered": not tokens,
            "special": special if tokens else [],
        }
        for each in table_matrices(model)
        for tokens in (each.name.endswith("tokens.weight"),)
    ]
    if not found:
        return None
    name_of_first = str(found[0]["name"])
    first = model.get_parameter(name_of_first)
    header: dict[str, Any] = {"checkpoint": name, "width": first.shape[1], "tables": found, **(notes or {})}
    arrays: dict[str, torch.Tensor] = {}
    if first.numel() <= AT_ONCE:
        header["answer"], arrays = points(checkpoint, name_of_first, "pca")
    return pack(header, arrays)


def table_matrices(model: Transformer) -> list[Matrix]:
    """Embeddings of tokens and of positions, with at least two rows."""
    ends = ("embed.tokens.weight", "embed.positions.weight")
    return [each for each in drawn_matrices(model) if each.name.endswith(ends) and each.shape[0] > 1]


def table_points(checkpoint: Checkpoint, name: str, how: str) -> bytes:
    """Raises as `points` does."""
    header, arrays = points(checkpoint, name, how)
    return pack(header, arrays)


def points(checkpoint: Checkpoint, name: str, how: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """A table in the plane, and what its rows are called. Raises ValueError for another name."""
    table = table_of(checkpoint, name)
    found = projection(table, "tsne" if how == "tsne" else "pca")
    tokenizer = checkpoint.tokenizer if name.endswith("tokens.weight") else None
    pieces = None if tokenizer is None else [tokenizer.piece(id) for id in range(len(table))]
    return {"explained": found.explained, "pieces": pieces}, {"points": found.points, "ids": found.ids}


def table_neighbours(checkpoint: Checkpoint, name: str, id: int) -> bytes:
    """Which rows of a table are most like row `id`. Raises ValueError for another name or row."""
    found = neighbours(table_of(checkpoint, name), id)
    return pack({}, {"ids": found.ids, "similarity": found.similarity})


def table_of(checkpoint: Checkpoint, name: str) -> torch.Tensor:
    if name not in [each.name for each in table_matrices(checkpoint.model)]:
        raise ValueError("This checkpoint has no such table; reload the page.")
    return checkpoint.model.get_parameter(name).detach()


def verdict(found: Parity, read: str) -> bytes:
    """What transformers gave for the same input, in numbers; `read` says what that was."""
    versions = " and ".join(f"{name} {version}" for name, version in found.versions.items())
    ids = {True: ", the same token ids", False: ", other token ids", None: ""}[found.ids]
    header = {
        "logits": found.logits,
        "patterns": None if isnan(found.patterns) else found.patterns,
        "layers": [layer.difference for layer in found.layers],
        "compared": " and ".join(found.compared),
        "against": f"{found.architecture} of {versions} in {found.dtype}",
        "through": f"through {found.through}",
        "read": f"{read}{ids}",
    }
    return pack(header, {})


def dtype(checkpoint: Checkpoint) -> str:
    return str(checkpoint.model.dtype).removeprefix("torch.")


def is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def size(number: int) -> str:
    """Bytes as the hub counts them: 548.1 MB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= scale:
            return f"{number / scale:,.1f} {unit}"
    return f"{number} bytes"


def sizes(files: Sequence[tuple[str, int]]) -> str:
    """A Markdown table of files; their names come from others and are code."""
    named = [(name.replace("`", "").replace("|", "\\|"), length) for name, length in files]
    rows = [f"| `{name}` | {size(length)} |" for name, length in named]
    return "\n".join(["| file | size |", "|:--|--:|", *rows])


def plain(text: str) -> str:
    """A text of others inside Markdown."""
    return re.sub(r"([\\`*_{}\[\]()#+.!|<>~$:&-])", r"\\\1", " ".join(text.split()))
