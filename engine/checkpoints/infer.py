"""The config of a model of which only the weights came: its family by the names, its sizes by the shapes.

Nothing here knows a family. A file's tensors are read through each family's rows into Loupe's names; the shapes of
those are the sizes, which the family's keys write as its config.json has them. What no shape shows (how many heads
share a width, an activation, the base of rotary angles) is what transformers takes where config.json says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, isqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine.checkpoints.assemble import MOST_LAYERS, leaves, same, shapes_by, skeleton
from engine.checkpoints.explicit import explicit
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import REQUIRED, Key
from engine.checkpoints.nanogpt import FAMILIES as UNCONFIGURED
from engine.checkpoints.report import Assumed
from engine.checkpoints.weights import Weights
from engine.config import MLP, Attention, Encoder, ModelConfig

CANDIDATES = (*(f for of in FAMILIES.values() for f in of if f is not NATIVE), *UNCONFIGURED)
NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")  # a whole part of a dotted name
NEARLY = 0.9  # of the names that the best family knows, for another to be looked at
USUAL_HEADS = (64, 32, 16, 8, 4, 2, 1)  # numbers in a head, most usual first
WIDE, WIDE_HEAD = 4096, 128  # from this width on heads are twice as wide
UNKNOWN_CONTEXT, USUAL_LAYERS = 2048, 12
EVERYONES_OWN = (" mlp.activation", " encoder.mlp.activation", " head.activation", " head.scale")
BY_DEFAULT = "No tensor shows it; this is what transformers takes where config.json says nothing."
GIVEN = "It was given."
MISFIT = (RuntimeError, LookupError, ValueError, TypeError, AttributeError, AssertionError)
PLAIN = ModelConfig(1, 1, 64, 1, Attention(1), MLP(1), encoder=Encoder(1, Attention(1), MLP(1)))
Shapes = Mapping[str, tuple[int, ...]]
Ours = Mapping[str, tuple[tuple[int, ...], str]]  # shape, and the name in the file


class Seen(NamedTuple):
    value: Any
    why: str
    certain: bool = True


class Inferred(NamedTuple):
    """`theirs` is a config.json as the family writes it, with what was wished for in it."""

    family: Family
    theirs: dict[str, Any]
    assumed: tuple[Assumed, ...]


def infer(weights: Weights, wishes: Mapping[str, Any]) -> Inferred:
    """`wishes` are keys of config.json that a person gave; what depends on them is inferred anew.

    Raises ValueError where the names are no known family's, or are of more layers than any model has.
    """
    among = [family for family in CANDIDATES if may_be(family, wishes)]
    prefix = wrapping(weights.shapes, among)
    likely = by_names(weights.shapes, [spelled_with(prefix, family) for family in among])
    first = of_first_layer(weights.shapes)
    fits = sorted((fit(family, first, wishes) for family in likely), key=lambda found: found.order)
    family = fits[0].family
    tied = tie(family, weights)
    inferred = describe(family, weights.shapes, wishes, {"tied": tied} if tied else {})
    others = {found.family.name for found in fits if found.faults == fits[0].faults} - {family.name}
    return inferred._replace(assumed=(chosen(family, others, wishes), *inferred.assumed))


def may_be(family: Family, wishes: Mapping[str, Any]) -> bool:
    named, architectures = wishes.get("model_type", family.name), wishes.get("architectures")
    asked = architectures if isinstance(architectures, list) else [family.architecture]
    return bool(named == family.name and {family.architecture, *family.also} & {*map(str, asked)})


def chosen(family: Family, others: Collection[str], wishes: Mapping[str, Any]) -> Assumed:
    why = f"The names and shapes of the tensors are those of {family.architecture}"
    why += f", and of {', '.join(sorted(others))} as well." if others else "."
    return Assumed("model_type", family.name, why, certain=not others or "model_type" in wishes)


def templates(family: Family) -> frozenset[str]:
    """The names of a family's tensors, numbers left open."""
    named = [source for row in family.rows for source in ((row[0],) if isinstance(row[0], str) else row[0])]
    return frozenset(NUMBER.sub("{}", name) for name in (*named, *family.tied, *family.twins))


TEMPLATES = {id(family.rows): templates(family) for family in CANDIDATES}  # many families share their rows


def known(family: Family, kinds: Iterable[str]) -> int:
    """How many kinds of names, numbers left open, are the family's."""
    own = TEMPLATES.get(id(family.rows)) or templates(family)
    return sum(not own.isdisjoint(family.spellings(kind)) for kind in kinds)


def by_names(shapes: Shapes, among: Sequence[Family]) -> list[Family]:
    kinds = {NUMBER.sub("{}", name) for name in shapes}
    counts = [known(family, kinds) for family in among]
    most = max(counts, default=0)
    if 2 * most < len(kinds) or not most:
        names = ", ".join(sorted(shapes)[:3])
        raise ValueError(
            f"their names ({names}, ...) are those of no family that Loupe knows, or of another than was asked for; "
            "put the config.json of the model there."
        )
    return [family for family, count in zip(among, counts, strict=True) if count >= NEARLY * most]


def unwrapped(family: Family, shapes: Shapes) -> Family:
    """The family with what a training program put before every name as a spelling of it."""
    return spelled_with(wrapping(shapes, [family]), family)


def spelled_with(prefix: str, family: Family) -> Family:
    return replace(family, old_spelling={prefix: "", **family.old_spelling}) if prefix else family


def wrapping(names: Collection[str], among: Sequence[Family]) -> str:
    """What stands before every name without being the family's: `module.`, `_orig_mod.`, `model.`, or several."""
    parts = min(names, key=len, default="").split(".")[:-1]
    heads = ["".join(f"{part}." for part in parts[:count]) for count in range(len(parts) + 1)]
    common = [head for head in heads if all(name.startswith(head) for name in names)]
    kinds = {NUMBER.sub("{}", name) for name in names}

    def fitting(head: str) -> int:
        return max((known(family, [kind.removeprefix(head) for kind in kinds]) for family in among), default=0)

    return max(common, key=lambda head: (fitting(head), -len(head)))


def of_first_layer(shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Enough to judge a family by, however many layers there are."""
    return {name: shape for name, shape in shapes.items() if (NUMBER.findall(name) or ["0"])[0] == "0"}


@dataclass(frozen=True)
class Fit:
    """How well a file is a family's: of `faults` alike, the model with the least that is out of the ordinary."""

    family: Family
    faults: float
    order: tuple[float, ...]


def fit(family: Family, shapes: Shapes, wishes: Mapping[str, Any]) -> Fit:
    try:
        config = family.read_config(describe(family, shapes, wishes, {}).theirs)
        model, rows, names = skeleton(family, config, shapes)
        expected = shapes_by(rows, family, model)
    except (ValueError, OverflowError):
        return Fit(family, torch.inf, (torch.inf,))
    missing = len(expected.keys() - names.keys())
    misshapen = sum(shapes[names[name]] != shape for name, shape in expected.items() if name in names)
    faults = missing + misshapen + len(shapes.keys() - {*names.values()})
    dropped = sum(family.drops(name) for name in names)
    odd = unusual(family, sizes(family, shapes, wishes))
    return Fit(family, faults, (faults, dropped, config.context % 8 != 0, departures(config), odd))


def departures(config: ModelConfig) -> int:
    """In how much a model is not the plain one of its sizes, apart from what each family chooses for itself."""
    plain = ModelConfig(config.vocab_size, config.context, config.d_model, config.layers, Attention(1), MLP(1))
    mine, other = (dict(leaves(explicit(each).to_dict())) for each in (config, plain))
    return sum(other.get(path) != value for path, value in mine.items() if path not in EVERYONES_OWN)


def unusual(family: Family, seen: Mapping[str, Seen]) -> int:
    """In how many keys a file shows something else than the family's default."""
    shown = ((key, shown_by(key, seen)) for key in family.keys if not callable(key.default))
    return sum(found is not None and found[0] != key.default for key, found in shown if key.default is not REQUIRED)


def tie(family: Family, weights: Weights) -> Seen | None:
    """Whether the output embedding is the input's, which is so where it is stored twice alike, or only once."""
    spelled = spellings(family, weights.shapes)
    for one, other in family.tied.items():
        if one not in spelled:
            return Seen(True, f"There is no {one}.")
        if other in spelled and same(spelled[one], spelled[other], weights):
            return Seen(True, f"{spelled[one]} and {spelled[other]} are equal.")
        return Seen(False, f"{spelled[one]} is a tensor of its own.")
    return None


def spellings(family: Family, names: Iterable[str]) -> dict[str, str]:
    """The family's names of a file's tensors -> those in the file."""
    found: dict[str, str] = {}
    for stored in names:
        for name in family.spellings(stored):
            found.setdefault(name, stored)
    return found


def describe(family: Family, shapes: Shapes, wishes: Mapping[str, Any], more: Mapping[str, Seen]) -> Inferred:
    """What the family's keys say of the sizes, then what they are by default, in the words of its config.json."""
    seen = {**sizes(family, shapes, wishes), **more}
    writing = Writing(family, wishes, seen)
    keys = [key for key in family.keys if "dropout" not in key.paths and (family.tied or key.ours != "tied")]
    hidden = [key for key in keys if key.paths and shown_by(key, seen) is None]
    for key in keys:
        if (shown := shown_by(key, seen)) is not None:
            writing.tell(key, *shown)
    for key in hidden:
        if key.default is REQUIRED and key.ours == "context":
            writing.tell(key, UNKNOWN_CONTEXT, "No tensor shows how long a text the model was made for.", False)
        elif key.default is not REQUIRED and not callable(key.default):
            writing.tell_default(key, key.default)
    for key in hidden:
        if callable(key.default):
            writing.tell_default(key, computed(key, writing.theirs))
    for key in keys:
        if not key.paths and key.theirs not in writing.theirs:
            writing.tell(key, (), BY_DEFAULT, False)
    theirs = {name: value for name, value in writing.theirs.items() if value is not None}
    others = {name: Assumed(name, value, GIVEN, certain=True) for name, value in wishes.items() if name != "model_type"}
    return Inferred(family, theirs, (*(others | writing.assumed).values(),))


class Writing:
    """A config.json in the making: `theirs`, what of it is `assumed`, and `ours`, which keys read to write theirs."""

    def __init__(self, family: Family, wishes: Mapping[str, Any], seen: Mapping[str, Seen]) -> None:
        self.wishes = wishes
        self.theirs: dict[str, Any] = {"model_type": family.name, "architectures": [family.architecture], **wishes}
        self.assumed: dict[str, Assumed] = {}
        self.ours = PLAIN.to_dict()
        for path, value in family.always.items():
            if not callable(value):
                put(self.ours, path, value)
        for path, part in seen.items():
            put(self.ours, path, part.value)

    def tell(self, key: Key, value: Any, why: str, certain: bool) -> None:
        for name, word in key.write(value, self.ours).items():
            told = self.wishes.get(name, word)
            self.theirs[name] = told
            if name == key.theirs and isinstance(told, (bool, int, float, str)):
                known = (GIVEN, True) if name in self.wishes else (why, certain)
                self.assumed[name] = Assumed(name, told, *known)

    def tell_default(self, key: Key, value: Any) -> None:
        """None and tables are left out of config.json, whose reader has the same default."""
        if value is None:
            return
        if key.ours == "positions.turned":
            value = min(value, self.ours["attention"]["d_head"] or value)
        for path, part in zip(key.paths, (value,) if isinstance(key.ours, str) else value, strict=True):
            put(self.ours, path, part)
        if isinstance(value, (bool, int, float, str)) or key.values is not None:
            self.tell(key, value, BY_DEFAULT, False)


def shown_by(key: Key, seen: Mapping[str, Seen]) -> tuple[Any, str, bool] | None:
    """What a key says by the shapes. Of a key that says two things of which one is seen, the first word that fits."""
    parts = {path: seen[path] for path in key.paths if path in seen}
    if not parts:
        return None
    first = next(iter(parts.values()))
    if len(parts) == len(key.paths) and key.values is None:
        value = first.value if isinstance(key.ours, str) else tuple(part.value for part in parts.values())
        return value, first.why, all(part.certain for part in parts.values())
    meanings = [] if callable(key.default) or key.default is REQUIRED else [key.default]
    for meaning in (*meanings, *(key.values or {}).values()):
        told = (meaning,) if isinstance(key.ours, str) else meaning
        if all(path not in parts or parts[path].value == part for path, part in zip(key.paths, told, strict=True)):
            return meaning, f"{first.why} What of it no tensor shows is the default.", False
    return None


def computed(key: Key, theirs: Mapping[str, Any]) -> Any:
    """A default that depends on other keys; None where it does not come out."""
    try:
        return key.default(theirs)
    except MISFIT:
        return None


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    *branches, leaf = path.split(".")
    for branch in branches:
        if not isinstance(tree.get(branch), dict):
            tree[branch] = {}
        tree = tree[branch]
    tree[leaf] = value


def sizes(family: Family, shapes: Shapes, wishes: Mapping[str, Any]) -> dict[str, Seen]:
    """Paths of ModelConfig -> what the shapes show of them."""
    ours, layers = read(family, shapes, PLAIN)
    d_model = width(ours)
    if d_model is None:
        return {}
    ours, _ = read(family, shapes, replace(PLAIN, d_model=d_model[0], attention=Attention(1)))
    seen = {"d_model": Seen(d_model[0], f"It is the length of {d_model[1]}.")}
    seen |= outside(ours, d_model[0])
    two = any(name.startswith("decoder.") for name in ours)
    for stack, path in (("decoder.", ""), ("encoder.", "encoder.")) if two else (("", ""),):
        seen[f"{path}layers"] = counted_layers(family, layers.get(stack, 0))
        seen |= {f"{path}{name}": part for name, part in of_block(ours, stack).items()}
        of_heads = heads(family, ours, shapes, stack, wishes)
        seen |= {f"{path}attention.{name}": part for name, part in of_heads.items()}
    if family.tied:
        seen["tied"] = Seen(not spellings(family, shapes).keys() & family.tied.keys(), "By the tensors that are there.")
    return seen


def counted_layers(family: Family, count: int) -> Seen:
    if "distinct" in family.always:
        return Seen(USUAL_LAYERS, "All layers are one block, so that no tensor shows how many there are.", False)
    return Seen(count, "The layers were counted.")


def read(family: Family, shapes: Shapes, config: ModelConfig) -> tuple[dict[str, Any], dict[str, int]]:
    """Loupe's names of what stands outside the layers and in the first, and how many layers each stack has."""
    spelled = spellings(family, shapes)
    ours: dict[str, tuple[tuple[int, ...], str]] = {}
    layers: dict[str, int] = {}
    for theirs, names, *transform in (row for row in family.rows if row[1] is not DROPPED):
        sources = (theirs,) if isinstance(theirs, str) else theirs
        targets = (names,) if isinstance(names, str) else names
        if "{}" in targets[0]:
            stack, count = targets[0].partition("blocks.")[0], counted(sources[0], spelled)
            layers[stack] = max(layers.get(stack, 0), count)
        first = [source.format(0) for source in sources]
        if any(name not in spelled for name in first) or targets[0].format(0) in ours:
            continue
        stored = [spelled[name] for name in first]
        for target, shape in zip(targets, read_row(transform, [shapes[name] for name in stored], config), strict=False):
            ours[target.format(0)] = shape, stored[0]
    return ours, layers


def counted(template: str, names: Iterable[str]) -> int:
    """Layers, by the highest number: what is missing among them is found later, by name."""
    pattern = re.compile(re.escape(template).replace(r"\{\}", r"(\d{1,9})"))
    count = max((int(found[1]) + 1 for name in names if (found := pattern.fullmatch(name))), default=0)
    if count > MOST_LAYERS:
        raise ValueError(f"the weights must be of at most {MOST_LAYERS} layers, got {count}; is the file damaged?")
    return count


def read_row(transform: list[Any], shapes: list[tuple[int, ...]], config: ModelConfig) -> list[tuple[int, ...]]:
    tensors: list[Tensor] = [torch.empty(shape, device="meta") for shape in shapes]
    try:
        made = transform[0].read(tensors, config) if transform else tensors
    except MISFIT:
        return []
    return [tuple(tensor.shape) for tensor in made]


def width(ours: Ours) -> tuple[int, str] | None:
    """Of the stream, and the tensor that shows it."""
    for end, at in (("norm1.weight", 0), ("norm2.weight", 0), ("final_norm.weight", 0), ("embed.tokens.weight", 1)):
        for name, (shape, stored) in ours.items():
            if name.endswith(end) and len(shape) == at + 1 and shape[at] > 0:
                return shape[at], stored
    return None


def outside(ours: Ours, d_model: int) -> dict[str, Seen]:
    """What stands before the blocks and behind them."""
    seen: dict[str, Seen] = {}

    def see(path: str, ends: str, at: int) -> None:
        for name, (shape, stored) in ours.items():
            if name.endswith(ends) and len(shape) > at:
                seen.setdefault(path, Seen(shape[at], f"It is a side of {stored}."))

    see("vocab_size", "embed.tokens.weight", 0)
    see("context", "embed.positions.weight", 0)
    see("embedding.segments", "embed.segments.weight", 0)
    see("embedding.width", "embed.tokens.weight", 1)
    see("positions.buckets", "relative.weight", 0)
    see("head.classes", "head.weight", 0)
    if "embedding.width" in seen and seen["embedding.width"].value == d_model:
        seen["embedding.width"] = Seen(None, "The token vectors are as wide as the stream.")
    elif "embed.mapped.weight" in ours:
        mapped = "all" if "embed.mapped.bias" in ours else "tokens"
        seen["embedding.mapped"] = Seen(mapped, "By the tensors that are there.")
    if "head.dense.weight" in ours or "head.weight" in ours:
        seen["head.bias"] = Seen("head.bias" in ours, "By the tensors that are there.")
    return seen | patches(ours)


def patches(ours: Ours) -> dict[str, Seen]:
    """Square patches of a square picture of three channels, or else of one."""
    if "embed.patches.project.weight" not in ours or "embed.positions.weight" not in ours:
        return {}
    (shape, stored), (table, positions) = ours["embed.patches.project.weight"], ours["embed.positions.weight"]
    channels = 3 if isqrt(shape[1] // 3) ** 2 * 3 == shape[1] else 1
    size, side = isqrt(shape[1] // channels), isqrt(max(table[0] - 1, 0))
    return {
        "embedding.patches.channels": Seen(channels, f"It is a side of {stored}."),
        "embedding.patches.size": Seen(size, f"It is a side of {stored}."),
        "embedding.patches.image": Seen(side * size, f"It is the side of as many patches as {positions} has rows."),
    }


def of_block(ours: Ours, stack: str) -> dict[str, Seen]:
    """The MLP and the biases, by the first block of a stack."""
    block, there = f"{stack}blocks.0.", "By the tensors that are there."
    seen: dict[str, Seen] = {}
    if f"{block}mlp.pre.weight" in ours:
        shape, stored = ours[f"{block}mlp.pre.weight"]
        seen["mlp.d_mlp"] = Seen(shape[0], f"It is a side of {stored}.")
        seen["mlp.gated"] = Seen(f"{block}mlp.up.weight" in ours, there)
        seen["mlp.bias"] = Seen(f"{block}mlp.pre.bias" in ours, there)
    if f"{block}attn.q.weight" in ours:
        seen["attention.bias"] = Seen(f"{block}attn.q.bias" in ours, there)
        seen["attention.out_bias"] = Seen(f"{block}attn.out.bias" in ours, there)
    return seen


def heads(family: Family, ours: Ours, shapes: Shapes, stack: str, wishes: Mapping[str, Any]) -> dict[str, Seen]:
    """How the width of queries and keys is shared, which few files show."""
    block = f"{stack}blocks.0.attn"
    if f"{block}.q.weight" not in ours:
        return {}
    (queries, *_), stored = ours[f"{block}.q.weight"]
    (keys, *_), stored_keys = ours.get(f"{block}.k.weight", ((queries,), stored))
    path = "encoder.attention" if stack == "encoder." else "attention"
    given = given_heads(family, path, queries, wishes)
    told = (*given, *shown_heads(family, ours, shapes, stack, queries), *usual_heads(family, path, queries, keys))
    found = next(size for size in told if divides(size.value, queries))
    count = Seen(queries // found.value, found.why, found.certain)
    shared = Seen(max(keys // found.value, 1), f"It is as many as fit into {stored_keys}.", found.certain)
    return {"d_head": found, "heads": count, "kv_heads": shared}


def divides(size: Any, queries: int) -> bool:
    return type(size) is int and 0 < size <= queries and queries % size == 0


def given_heads(family: Family, path: str, queries: int, wishes: Mapping[str, Any]) -> Iterator[Seen]:
    """Numbers in a head, by what a person gave."""
    size, count = wished(family, f"{path}.d_head", wishes), wished(family, f"{path}.heads", wishes)
    yield Seen(size, GIVEN)
    if divides(count, queries):
        yield Seen(queries // count, GIVEN)


def shown_heads(family: Family, ours: Ours, shapes: Shapes, stack: str, queries: int) -> Iterator[Seen]:
    """By a tensor that has a side for each head, or for each number of one."""
    for name in (f"{stack}relative.weight", "encoder.relative.weight"):
        if name in ours and divides(ours[name][0][-1], queries):
            yield Seen(queries // ours[name][0][-1], f"{ours[name][1]} has a column for each head.")
    norm = ours.get(f"{stack}blocks.0.attn.q_norm.weight")
    if norm is not None and family.always.get("attention.qk_norm") == "head":
        yield Seen(norm[0][0], f"It is the length of {norm[1]}.")
    in_part = any("positions.turned" in key.paths for key in family.keys)
    for name in (name for name in shapes if name.endswith("rotary_emb.inv_freq") and shapes[name] and not in_part):
        yield Seen(2 * shapes[name][0], f"{name} has an angle for every two numbers of a head.")


def usual_heads(family: Family, path: str, queries: int, keys: int) -> Iterator[Seen]:
    """By the family's default, and else by what most models have."""
    for key in family.keys:
        default = computed(key, {"n_embd": queries}) if callable(key.default) else key.default
        if key.paths == (f"{path}.d_head",) and divides(default, gcd(queries, keys)):
            yield Seen(default, BY_DEFAULT, False)
        if key.paths == (f"{path}.heads",) and divides(default, queries):
            yield Seen(queries // default, f"It is what this program's models of width {queries} have.", False)
    for size in ((WIDE_HEAD,) if queries >= WIDE else ()) + USUAL_HEADS:
        if gcd(queries, keys) % size == 0 and (size < queries or queries == 1):
            why = f"No tensor shows how many heads share the {queries} queries; {size} numbers each is the most usual."
            yield Seen(size, why, False)


def wished(family: Family, path: str, wishes: Mapping[str, Any]) -> Any:
    """What a person gave for a path of ModelConfig."""
    names = (name for key in family.keys if key.paths == (path,) for name in (key.theirs, *key.also))
    return next((wishes[name] for name in names if name in wishes), None)
