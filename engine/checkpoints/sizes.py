"""The sizes of a model of which only the weights came: the shapes of its tensors, read through its family's rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import gcd, isqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine.checkpoints.assemble import MOST_LAYERS
from engine.checkpoints.family import DROPPED, Family, fill_experts
from engine.checkpoints.keys import Key
from engine.model.config import MLP, Attention, Encoder, ModelConfig

USUAL_HEADS = (64, 32, 16, 8, 4, 2, 1)  # numbers in a head, most usual first
WIDE, WIDE_HEAD = 4096, 128  # from this width on heads are twice as wide
USUAL_LAYERS = 12
MOST_EXPERTS = 10_000
BY_DEFAULT = "No tensor shows it; this is what transformers takes where config.json says nothing."
GIVEN = "It was given."
MISFIT = (RuntimeError, LookupError, ValueError, TypeError, AttributeError, AssertionError)
PLAIN = ModelConfig(1, 1, 64, 1, Attention(1), MLP(1), encoder=Encoder(1, Attention(1), MLP(1)))
Shapes = Mapping[str, tuple[int, ...]]
Ours = Mapping[str, tuple[tuple[int, ...], str]]  # shape, and the name in the file


class Evidence(NamedTuple):
    value: Any
    why: str
    certain: bool = True


def infer_sizes(family: Family, shapes: Shapes, wishes: Mapping[str, Any]) -> dict[str, Evidence]:
    """Paths of ModelConfig -> what the shapes show of them."""
    ours, layers = read_tensors(family, shapes, PLAIN)
    d_model = find_width(ours)
    if d_model is None:
        return {}
    ours, _ = read_tensors(family, shapes, replace(PLAIN, d_model=d_model[0], attention=Attention(1)))
    seen = {"d_model": Evidence(d_model[0], f"It is the length of {d_model[1]}.")}
    seen |= infer_outside_blocks(ours, d_model[0])
    two = any(name.startswith("decoder.") for name in ours)
    for stack, path in (("decoder.", ""), ("encoder.", "encoder.")) if two else (("", ""),):
        seen[f"{path}layers"] = layer_count(family, layers.get(stack, 0))
        seen |= {f"{path}{name}": part for name, part in infer_block(ours, stack).items()}
        seen |= infer_experts(family, ours, shapes, seen[f"{path}layers"].value)
        of_heads = infer_heads(family, ours, shapes, stack, wishes)
        seen |= {f"{path}attention.{name}": part for name, part in of_heads.items()}
    told = {path for key in family.keys for path in key.paths}
    if "positions.kind" in told:
        kind = "learned" if "embed.positions.weight" in ours else "rotary"
        seen["positions.kind"] = Evidence(kind, "By the tensors that are there.")
        seen |= infer_disentangled(family, ours)
    if "embedding.norm" in told:
        seen["embedding.norm"] = Evidence("embed.norm.weight" in ours, "By the tensors that are there.")
    if family.tied:
        seen["tied"] = Evidence(
            not map_spellings(family, shapes).keys() & family.tied.keys(), "By the tensors that are there."
        )
    return seen


def layer_count(family: Family, count: int) -> Evidence:
    if "distinct" in family.always:
        return Evidence(USUAL_LAYERS, "All layers are one block, so that no tensor shows how many there are.", False)
    return Evidence(count, "The layers were counted.")


def read_tensors(family: Family, shapes: Shapes, config: ModelConfig) -> tuple[dict[str, Any], dict[str, int]]:
    """Loupe's names of what stands outside the layers and in the first that has it, and how many layers each stack
    has."""
    spelled = map_spellings(family, shapes)
    ours: dict[str, tuple[tuple[int, ...], str]] = {}
    layers: dict[str, int] = {}
    for theirs, names, *transform in (row for row in family.rows if row[1] is not DROPPED):
        sources = (theirs,) if isinstance(theirs, str) else theirs
        targets = (names,) if isinstance(names, str) else names
        at = 0
        if "{}" in targets[0]:
            stack, numbers = targets[0].partition("blocks.")[0], find_layers(sources[0], spelled)
            layers[stack] = max(layers.get(stack, 0), max(numbers, default=-1) + 1)
            at = min(numbers, default=0)
        first = list(fill_experts(tuple(source.format(at) for source in sources), count_experts(sources[0], spelled)))
        if any(name not in spelled for name in first) or targets[0].format(0) in ours:
            continue
        stored = [spelled[name] for name in first]
        for target, shape in zip(targets, read_row(transform, [shapes[name] for name in stored], config), strict=False):
            ours[target.format(0)] = shape, stored[0]
    return ours, layers


def map_spellings(family: Family, names: Iterable[str]) -> dict[str, str]:
    """The family's names of a file's tensors -> those in the file."""
    found: dict[str, str] = {}
    for stored in names:
        for name in family.spellings(stored):
            found.setdefault(name, stored)
    return found


def find_layers(template: str, names: Iterable[str]) -> set[int]:
    """Numbers of the layers that have a tensor; what is missing among them is found later, by name."""
    found = match_numbers(template.replace("*", "0"), "{}", names)
    if max(found, default=0) >= MOST_LAYERS:
        count = max(found) + 1
        raise ValueError(f"the weights must be of at most {MOST_LAYERS} layers, got {count}; is the file damaged?")
    return found


def count_experts(template: str, names: Iterable[str]) -> int:
    """Number of experts of the first layer that has them; 0 for a tensor that is no expert's."""
    if "*" not in template:
        return 0
    at = min(find_layers(template, names), default=0)
    count = max(match_numbers(template.format(at), "*", names), default=-1) + 1
    if count > MOST_EXPERTS:
        raise ValueError(f"a layer must have at most {MOST_EXPERTS} experts, got {count}; is the file damaged?")
    return count


def match_numbers(template: str, hole: str, names: Iterable[str]) -> set[int]:
    """Numbers that stand in a hole of the template."""
    pattern = re.compile(re.escape(template).replace(re.escape(hole), r"(\d{1,9})"))
    return {int(found[1]) for name in names if (found := pattern.fullmatch(name))}


def read_row(transform: list[Any], shapes: list[tuple[int, ...]], config: ModelConfig) -> list[tuple[int, ...]]:
    tensors: list[Tensor] = [torch.empty(shape, device="meta") for shape in shapes]
    try:
        made = transform[0].read(tensors, config) if transform else tensors
    except MISFIT:
        return []
    return [tuple(tensor.shape) for tensor in made]


def find_width(ours: Ours) -> tuple[int, str] | None:
    """Width of the residual stream, and the tensor that shows it."""
    for end, at in (("norm1.weight", 0), ("norm2.weight", 0), ("final_norm.weight", 0), ("embed.tokens.weight", 1)):
        for name, (shape, stored) in ours.items():
            if name.endswith(end) and len(shape) == at + 1 and shape[at] > 0:
                return shape[at], stored
    return None


def infer_outside_blocks(ours: Ours, d_model: int) -> dict[str, Evidence]:
    """Sizes of what stands before the blocks and after them."""
    seen: dict[str, Evidence] = {}

    def see(path: str, ends: str, at: int) -> None:
        for name, (shape, stored) in ours.items():
            if name.endswith(ends) and len(shape) > at:
                seen.setdefault(path, Evidence(shape[at], f"It is a side of {stored}."))

    see("vocab_size", "embed.tokens.weight", 0)
    see("context", "embed.positions.weight", 0)
    see("embedding.segments", "embed.segments.weight", 0)
    see("embedding.width", "embed.tokens.weight", 1)
    see("positions.buckets", "relative.weight", 0)
    see("head.classes", "head.weight", 0)
    if "embedding.width" in seen and seen["embedding.width"].value == d_model:
        seen["embedding.width"] = Evidence(None, "The token vectors are as wide as the stream.")
    elif "embed.mapped.weight" in ours:
        mapped = "all" if "embed.mapped.bias" in ours else "tokens"
        seen["embedding.mapped"] = Evidence(mapped, "By the tensors that are there.")
    if "head.dense.weight" in ours or "head.weight" in ours:
        seen["head.bias"] = Evidence("head.bias" in ours, "By the tensors that are there.")
    return seen | infer_patches(ours) | infer_sound(ours)


def infer_disentangled(family: Family, ours: Ours) -> dict[str, Evidence]:
    """Disentangled positions, whose terms no tensor shows where the maps are those of the content."""
    if "distances.weight" not in ours:
        return {}
    there, ((rows, *_), stored) = "By the tensors that are there.", ours["distances.weight"]
    whole = family.always.get("positions.buckets") == 0  # then each distance has a vector
    why = (
        "As many rows has the table each way." if whole else "Published models have twice as many distances as buckets."
    )
    own = [term for term, letter in (("c2p", "k"), ("p2c", "q")) if f"blocks.0.attn.position_{letter}.weight" in ours]
    return {
        "positions.kind": Evidence("disentangled", there),
        "positions.added": Evidence("embed.positions.weight" in ours, there),
        "positions.normed": Evidence("distances_norm.weight" in ours, there),
        "positions.own_maps": Evidence(bool(own), there),
        "positions.terms": Evidence(own[0] if len(own) == 1 else "both", there, bool(own)),
        "positions.buckets": Evidence(rows // 2, f"It is half of the rows of {stored}.", False),
        "positions.farthest": Evidence(rows // 2 if whole else rows, why, whole),
    }


def infer_patches(ours: Ours) -> dict[str, Evidence]:
    """Square patches of a square picture of three channels, or else of one."""
    if "embed.patches.project.weight" not in ours or "embed.positions.weight" not in ours:
        return {}
    (shape, stored), (table, positions) = ours["embed.patches.project.weight"], ours["embed.positions.weight"]
    channels = 3 if isqrt(shape[1] // 3) ** 2 * 3 == shape[1] else 1
    size, side = isqrt(shape[1] // channels), isqrt(max(table[0] - 1, 0))
    return {
        "embedding.patches.channels": Evidence(channels, f"It is a side of {stored}."),
        "embedding.patches.size": Evidence(size, f"It is a side of {stored}."),
        "embedding.patches.image": Evidence(side * size, f"It is the side of as many patches as {positions} has rows."),
    }


def infer_sound(ours: Ours) -> dict[str, Evidence]:
    """Bins and positions of the sound that an encoder reads."""
    wanted = {"bins": ("encoder.embed.conv1.weight", 2), "positions": ("encoder.embed.positions.weight", 0)}
    if "encoder.embed.conv1.weight" not in ours or not all(name in ours for name, _ in wanted.values()):
        return {}
    read = {name: (ours[of], at) for name, (of, at) in wanted.items()}
    return {
        f"embedding.sound.{name}": Evidence(shape[at], f"It is a side of {stored}.")
        for name, ((shape, stored), at) in read.items()
        if len(shape) > at
    }


def infer_block(ours: Ours, stack: str) -> dict[str, Evidence]:
    """The MLP, the biases and how the sublayers stand, by the first block of a stack."""
    block, there = f"{stack}blocks.0.", "By the tensors that are there."
    seen: dict[str, Evidence] = {}
    if f"{block}mlp.pre.weight" in ours:
        shape, stored = ours[f"{block}mlp.pre.weight"]
        seen["mlp.d_mlp"] = Evidence(shape[0], f"It is a side of {stored}.")
        seen["mlp.gated"] = Evidence(f"{block}mlp.up.weight" in ours, there)
        seen["mlp.bias"] = Evidence(f"{block}mlp.pre.bias" in ours, there)
    if f"{block}attn.q.weight" in ours:
        seen["attention.bias"] = Evidence(f"{block}attn.q.bias" in ours, there)
        seen["attention.out_bias"] = Evidence(f"{block}attn.out.bias" in ours, there)
    shape, stored = ours.get(f"{block}attn.q_norm.weight", ((), ""))
    if len(shape) == 2:
        seen["attention.qk_norm"] = Evidence("each", f"{stored} has a row for each head.")
    if f"{block}norm1.weight" in ours and f"{block}norm2.weight" not in ours:
        seen["sublayers"] = Evidence("parallel_one_norm", there)
    return seen


def infer_experts(family: Family, ours: Ours, shapes: Shapes, layers: int) -> dict[str, Evidence]:
    """Experts of a decoder, and in which layers they are."""
    block = "blocks.0.mlp."
    if f"{block}router.weight" not in ours or f"{block}experts.out.weight" not in ours:
        return {}
    (count, *_), router = ours[f"{block}router.weight"]
    (*_, width), stored = ours[f"{block}experts.out.weight"]
    there = "By the tensors that are there."
    seen = {
        "mlp.experts.count": Evidence(count, f"It is a side of {router}."),
        "mlp.experts.bias": Evidence(f"{block}router.bias" in ours, there),
        "mlp.experts.correction": Evidence(f"{block}router.correction" in ours, there),
        "mlp.experts.shared_gate": Evidence(f"{block}shared_gate.weight" in ours, there),
        "mlp.d_mlp": Evidence(width, f"It is a side of {stored}."),
        "mlp.gated": Evidence(f"{block}experts.up.weight" in ours, there),
        "mlp.bias": Evidence(f"{block}experts.out.bias" in ours, there),
    }
    if f"{block}shared.out.weight" in ours:
        (*_, shared), stored = ours[f"{block}shared.out.weight"]
        seen["mlp.experts.shared"] = Evidence(shared, f"It is a side of {stored}.")
    if f"{block}out.weight" in ours:
        (*_, dense), stored = ours[f"{block}out.weight"]
        seen["mlp.experts.d_dense"] = Evidence(dense, f"It is a side of {stored}.")
    routed: set[int] = set()
    for row in family.rows:
        if row[1] == "blocks.{}.mlp.router.weight":
            routed = find_layers(row[0], map_spellings(family, shapes))
    seen["mlp.experts.dense"] = Evidence(tuple(n for n in range(layers) if n not in routed), there)
    return seen


def infer_heads(
    family: Family, ours: Ours, shapes: Shapes, stack: str, wishes: Mapping[str, Any]
) -> dict[str, Evidence]:
    """Number and size of the heads that share the width of queries and keys, which few files show."""
    block = f"{stack}blocks.0.attn"
    if f"{block}.q.weight" not in ours:
        return {}
    (queries, *_), stored = ours[f"{block}.q.weight"]
    (keys, *_), stored_keys = ours.get(f"{block}.k.weight", ((queries,), stored))
    path = "encoder.attention" if stack == "encoder." else "attention"
    given = heads_from_wishes(family, path, queries, wishes)
    told = (
        *given,
        *heads_from_tensors(family, ours, shapes, stack, queries),
        *heads_by_default(family, path, queries, keys),
    )
    found = next(size for size in told if divides(size.value, queries))
    count = Evidence(queries // found.value, found.why, found.certain)
    shared = Evidence(max(keys // found.value, 1), f"It is as many as fit into {stored_keys}.", found.certain)
    return {"d_head": found, "heads": count, "kv_heads": shared}


def divides(size: Any, queries: int) -> bool:
    return type(size) is int and 0 < size <= queries and queries % size == 0


def heads_from_wishes(family: Family, path: str, queries: int, wishes: Mapping[str, Any]) -> Iterator[Evidence]:
    """Sizes of a head by what a person gave."""
    size, count = read_wish(family, f"{path}.d_head", wishes), read_wish(family, f"{path}.heads", wishes)
    yield Evidence(size, GIVEN)
    if divides(count, queries):
        yield Evidence(queries // count, GIVEN)


def heads_from_tensors(family: Family, ours: Ours, shapes: Shapes, stack: str, queries: int) -> Iterator[Evidence]:
    """Sizes of a head by tensors that have a side for each head, or for each number of one."""
    for name in (f"{stack}relative.weight", "encoder.relative.weight"):
        if name in ours and divides(ours[name][0][-1], queries):
            yield Evidence(queries // ours[name][0][-1], f"{ours[name][1]} has a column for each head.")
    norm = ours.get(f"{stack}blocks.0.attn.q_norm.weight")
    if norm is not None and family.always.get("attention.qk_norm") == "head":
        yield Evidence(norm[0][0], f"It is the length of {norm[1]}.")
    in_part = any("positions.turned" in key.paths for key in family.keys)
    for name in (name for name in shapes if name.endswith("rotary_emb.inv_freq") and shapes[name] and not in_part):
        yield Evidence(2 * shapes[name][0], f"{name} has an angle for every two numbers of a head.")


def heads_by_default(family: Family, path: str, queries: int, keys: int) -> Iterator[Evidence]:
    """Sizes of a head by the family's default, then by what most models have."""
    for key in family.keys:
        default = evaluate_default(key, {"n_embd": queries}) if callable(key.default) else key.default
        if key.paths == (f"{path}.d_head",) and divides(default, gcd(queries, keys)):
            yield Evidence(default, BY_DEFAULT, False)
        if key.paths == (f"{path}.heads",) and divides(default, queries):
            yield Evidence(queries // default, f"It is what this program's models of width {queries} have.", False)
    for size in ((WIDE_HEAD,) if queries >= WIDE else ()) + USUAL_HEADS:
        if gcd(queries, keys) % size == 0 and (size < queries or queries == 1):
            why = f"No tensor shows how many heads share the {queries} queries; {size} numbers each is the most usual."
            yield Evidence(size, why, False)


def evaluate_default(key: Key, theirs: Mapping[str, Any]) -> Any:
    """A default that depends on other keys; None where it does not come out."""
    try:
        return key.default(theirs)
    except MISFIT:
        return None


def read_wish(family: Family, path: str, wishes: Mapping[str, Any]) -> Any:
    """Value that a person gave for a path of ModelConfig."""
    names = (name for key in family.keys if key.paths == (path,) for name in (key.theirs, *key.also))
    return next((wishes[name] for name in names if name in wishes), None)
