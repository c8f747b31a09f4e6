"""The config of a model of which only the weights came: its family by the names, its sizes by the shapes.

Nothing here knows a family. The sizes (sizes.py) are written by the family's keys as its config.json has them. What no
shape shows (how many heads share a width, an activation, the base of rotary angles) is what transformers takes where
config.json says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from engine.checkpoints.assemble import are_equal, build_skeleton, iterate_leaves, shapes_by_row
from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import DROPPED, Family
from engine.checkpoints.keys import REQUIRED, Key
from engine.checkpoints.nanogpt import FAMILIES as UNCONFIGURED
from engine.checkpoints.report import Assumption, UnknownNames
from engine.checkpoints.sizes import (
    BY_DEFAULT,
    GIVEN,
    PLAIN,
    Evidence,
    Shapes,
    evaluate_default,
    infer_sizes,
    map_spellings,
)
from engine.checkpoints.weights import Weights
from engine.model.config import MLP, Attention, ModelConfig
from engine.plurals import count_words

NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")  # a whole part of a dotted name
NEARLY = 0.9  # of the names that the best family knows, for another to be looked at
UNKNOWN_CONTEXT = 2048
NEAREST = 3  # families that a refusal names
EVERYONES_OWN = (" mlp.activation", " encoder.mlp.activation", " head.activation", " head.scale")


def under_own_names(family: Family) -> Family:
    """The same models as Loupe's state dict stores them: each of the family's tensors under Loupe's name, as it is."""
    ours = (row[1] for row in family.rows if row[1] is not DROPPED)
    names = dict.fromkeys(name for target in ours for name in ((target,) if isinstance(target, str) else target))
    tied = NATIVE.tied if family.tied else {}
    return replace(
        family, rows=tuple((name, name) for name in names), tied=tied, twins={}, old_spelling={}, optional_prefix="",
        signs=(),
    )  # fmt: skip


PUBLISHED = tuple(family for of in FAMILIES.values() for family in of if family is not NATIVE)
OWN = tuple(map(under_own_names, PUBLISHED))
CANDIDATES = (*PUBLISHED, *UNCONFIGURED, *OWN)


def has_own_names(family: Family) -> bool:
    return any(family.rows is own.rows for own in OWN)


class Inference(NamedTuple):
    """`theirs` is a config.json as the family writes it, with what was wished for in it."""

    family: Family
    theirs: dict[str, Any]
    assumed: tuple[Assumption, ...]


def infer(weights: Weights, wishes: Mapping[str, Any]) -> Inference:
    """`wishes` are keys of config.json that a person gave; what depends on them is inferred anew.

    Raises ValueError where the names are no known family's, or are of more layers than any model has.
    """
    among = [family for family in CANDIDATES if may_match(family, wishes)]
    prefix = find_wrapper(weights.shapes, among)
    likely = filter_by_names(weights.shapes, [accept_prefix(prefix, family) for family in among])
    first = select_first_layer(weights.shapes)
    fits = sorted((fit_family(family, first, wishes) for family in likely), key=lambda found: found.order)
    family = fits[0].family
    if fits[0].faults and has_own_names(family):
        raise ValueError(
            "their names must be those of a whole model of a published family, and they are Loupe's own, of a model "
            f"that none has ({family.architecture} comes nearest); write it with checkpoint.save(folder), which puts "
            "its config beside the weights."
        )
    if fits[0].faults == torch.inf:
        raise describe_nearest(weights.shapes, among)
    tied = find_tie(family, weights)
    inferred = describe(family, weights.shapes, wishes, {"tied": tied} if tied else {})
    if "model_type" not in wishes:
        refuse_misfit(inferred, fits, weights.shapes, wishes)
    others = {found.family.name for found in fits if found.faults == fits[0].faults} - {family.name}
    return inferred._replace(assumed=(assume_family(family, others, wishes), *inferred.assumed))


@dataclass(frozen=True)
class Misfit:
    """The file's names that a model has no place for, and the family's that it lacks, or has in another shape."""

    left_out: tuple[str, ...]
    missing: tuple[str, ...]
    misshapen: tuple[str, ...]

    def __str__(self) -> str:
        told = {"leaves out": self.left_out, "lacks": self.missing, "has in another shape": self.misshapen}
        return ", ".join(
            f"{verb} {count_words(len(names), 'tensor')} ({', '.join(names[:2])}{', ...' * (len(names) > 2)})"
            for verb, names in told.items()
            if names
        )


def find_misfit(family: Family, theirs: Mapping[str, Any], shapes: Shapes) -> Misfit:
    """Finds the tensors that do not fit a model. Raises ValueError for a config that describes none."""
    model, rows, names = build_skeleton(family, family.read_config(theirs), shapes)
    expected = shapes_by_row(rows, family, model)
    return Misfit(
        tuple(sorted(shapes.keys() - {*names.values()})),
        tuple(sorted(expected.keys() - names.keys())),
        tuple(names[name] for name, shape in expected.items() if name in names and shapes[names[name]] != shape),
    )


def refuse_misfit(inferred: Inference, fits: Sequence[Fit], shapes: Shapes, wishes: Mapping[str, Any]) -> None:
    """Raises UnknownNames where a model of the family would be another than the file's: it has tensors that the family
    has no place for, or in other shapes. What is only missing may be in another file, and is told where it is missed.
    """
    best = find_misfit(inferred.family, inferred.theirs, shapes)
    if not best.misshapen and (best.missing or not best.left_out):
        return
    told = {inferred.family.name: f"{inferred.family.architecture} {best}"}
    for family in (found.family for found in fits[1:] if found.faults < torch.inf):
        if len(told) < NEAREST and family.name not in told:
            try:
                misfit = find_misfit(family, describe(family, shapes, wishes, {}).theirs, shapes)
            except (ValueError, OverflowError):
                continue
            told[family.name] = f"{family.architecture} {misfit}"
    nearest = "; ".join(told.values())
    raise UnknownNames(
        f"no family that Loupe knows has just these tensors. The nearest: {nearest}. Put its config.json beside the "
        'file, say config={"model_type": ...} to open it as one of these with what it leaves out, or map its names '
        "with rename={old: new}.",
        tuple(sorted({NUMBER.sub("{}", name) for name in best.left_out})),
        str(inferred.family.architecture),
        (),
    )


def may_match(family: Family, wishes: Mapping[str, Any]) -> bool:
    named, architectures = wishes.get("model_type", family.name), wishes.get("architectures")
    asked = architectures if isinstance(architectures, list) else [family.architecture]
    return bool(named == family.name and {family.architecture, *family.also} & {*map(str, asked)})


def assume_family(family: Family, others: Collection[str], wishes: Mapping[str, Any]) -> Assumption:
    why = f"The names and shapes of the tensors are those of {family.architecture}"
    why += f", and of {', '.join(sorted(others))} as well." if others else "."
    return Assumption("model_type", family.name, why, certain=not others or "model_type" in wishes)


def name_templates(family: Family) -> frozenset[str]:
    """The names of a family's tensors, numbers left open."""
    named = [source for row in family.rows for source in ((row[0],) if isinstance(row[0], str) else row[0])]
    return frozenset(NUMBER.sub("{}", name.replace("*", "{}")) for name in (*named, *family.tied, *family.twins))


TEMPLATES = {id(family.rows): name_templates(family) for family in CANDIDATES}  # many families share their rows


def count_known_names(family: Family, kinds: Iterable[str]) -> int:
    """Number of kinds of names, numbers left open, that are the family's."""
    own = TEMPLATES.get(id(family.rows)) or name_templates(family)
    return sum(not own.isdisjoint(family.spellings(kind)) for kind in kinds)


def filter_by_names(shapes: Shapes, among: Sequence[Family]) -> list[Family]:
    kinds = {NUMBER.sub("{}", name) for name in shapes}
    counts = [count_known_names(family, kinds) for family in among]
    most = max(counts, default=0)
    if 2 * most < len(kinds) or not most:
        raise describe_nearest(shapes, among)
    return [family for family, count in zip(among, counts, strict=True) if count >= NEARLY * most]


def describe_nearest(shapes: Shapes, among: Sequence[Family]) -> UnknownNames:
    """Error that names the family that comes nearest: of pictures or not, by whole names, then by their words."""
    kinds = {NUMBER.sub("{}", name) for name in shapes}
    words = split_words(kinds)
    convolves = any(len(shape) == 4 and shape[-1] > 1 for shape in shapes.values())  # as the map of patches does

    def likeness(family: Family) -> tuple[bool, int, float]:
        own = split_words(name_templates(family))
        cuts = any("embed.patches" in str(row[1]) for row in family.rows)
        return cuts == convolves, count_known_names(family, kinds), len(words & own) / max(len(words | own), 1)

    published = [family for family in among if not has_own_names(family)]
    family = max(published or PUBLISHED, key=likeness)
    spelled = {spelling for kind in kinds for spelling in family.spellings(kind)}
    needed = {
        NUMBER.sub("{}", name.replace("*", "{}"))
        for row in family.rows
        if row[1] is not DROPPED
        for name in ((row[0],) if isinstance(row[0], str) else row[0])
    }
    lacks = tuple(name for name in sorted(needed) if name not in spelled)
    names, missing = ", ".join(sorted(shapes)[:3]), ", ".join(lacks[:3])
    return UnknownNames(
        f"their names ({names}, ...) are those of no family that Loupe knows, or of another than was asked for; "
        f"the nearest is {family.architecture}, of whose names {len(lacks)} are missing ({missing}, ...): "
        "map yours to them with rename={old: new}, where {} stands for the number of a layer and commas split a tensor "
        'into equal parts ("qkv": "q, k, v") or stack several ("q, k, v": "qkv").',
        tuple(sorted(kinds)),
        str(family.architecture),
        lacks,
    )


def split_words(names: Iterable[str]) -> set[str]:
    return {word for name in names for word in re.split(r"[._]", name) if word}


def accept_wrapper(family: Family, shapes: Shapes) -> Family:
    """Family that also accepts names with the prefix of a training program."""
    return accept_prefix(find_wrapper(shapes, [family]), family)


def accept_prefix(prefix: str, family: Family) -> Family:
    return replace(family, old_spelling={prefix: "", **family.old_spelling}) if prefix else family


def find_wrapper(names: Collection[str], among: Sequence[Family]) -> str:
    """Prefix of every name that is not the family's: `module.`, `_orig_mod.`, `model.`, or several of them."""
    parts = min(names, key=len, default="").split(".")[:-1]
    heads = ["".join(f"{part}." for part in parts[:count]) for count in range(len(parts) + 1)]
    common = [head for head in heads if all(name.startswith(head) for name in names)]
    kinds = {NUMBER.sub("{}", name) for name in names}

    def count_fitting_names(head: str) -> int:
        return max(
            (count_known_names(family, [kind.removeprefix(head) for kind in kinds]) for family in among), default=0
        )

    return max(common, key=lambda head: (count_fitting_names(head), -len(head)))


def select_first_layer(shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """Shapes outside the blocks, in the first one, and in the first that has others, as the second: enough to judge a
    family by."""
    first = {name: shape for name, shape in shapes.items() if layer_number(name) == 0}
    kinds = {NUMBER.sub("{}", name) for name in first}
    others = (layer_number(name) for name in shapes if NUMBER.sub("{}", name) not in kinds)
    second = min(others, default=0)
    if second:
        named = {name: shape for name, shape in shapes.items() if layer_number(name) == second}
        first |= {NUMBER.sub("1", name, count=1): shape for name, shape in named.items()}
    return first


def layer_number(name: str) -> int:
    """The first number of a name; 0 where it has none."""
    return int((NUMBER.findall(name) or ["0"])[0])


@dataclass(frozen=True)
class Fit:
    """Fit of a file to a family. Among equal `faults`, `order` prefers the model with the least that is unusual."""

    family: Family
    faults: float
    order: tuple[float, ...]


def fit_family(family: Family, shapes: Shapes, wishes: Mapping[str, Any]) -> Fit:
    try:
        config = family.read_config(describe(family, shapes, wishes, {}).theirs)
        model, rows, names = build_skeleton(family, config, shapes)
        expected = shapes_by_row(rows, family, model)
    except (ValueError, OverflowError):
        return Fit(family, torch.inf, (torch.inf,))
    missing = len(expected.keys() - names.keys())
    misshapen = sum(shapes[names[name]] != shape for name, shape in expected.items() if name in names)
    faults = missing + misshapen + len(shapes.keys() - {*names.values()})
    dropped = sum(family.drops(name) for name in names)
    odd = count_unusual_keys(family, infer_sizes(family, shapes, wishes))
    alone = config.attention.heads == 1  # which no published model has
    return Fit(family, faults, (faults, alone, dropped, config.context % 8 != 0, count_departures(config), odd))


def count_departures(config: ModelConfig) -> int:
    """Number of settings that differ from a plain model of these sizes, without those that each family chooses."""
    plain = ModelConfig(config.vocab_size, config.context, config.d_model, config.layers, Attention(1), MLP(1))
    mine, other = (dict(iterate_leaves(canonical_config(each).to_dict())) for each in (config, plain))
    return sum(other.get(path) != value for path, value in mine.items() if path not in EVERYONES_OWN)


def count_unusual_keys(family: Family, seen: Mapping[str, Evidence]) -> int:
    """Number of keys for which a file shows something else than the family's default."""
    shown = ((key, read_evidence(key, seen)) for key in family.keys if not callable(key.default))
    return sum(found is not None and found[0] != key.default for key, found in shown if key.default is not REQUIRED)


def find_tie(family: Family, weights: Weights) -> Evidence | None:
    """Evidence that the output embedding is the input's: it is stored twice alike, or only once."""
    spelled = map_spellings(family, weights.shapes)
    for one, other in family.tied.items():
        if one not in spelled:
            return Evidence(True, f"There is no {one}.")
        if other in spelled and are_equal(spelled[one], spelled[other], weights):
            return Evidence(True, f"{spelled[one]} and {spelled[other]} are equal.")
        return Evidence(False, f"{spelled[one]} is a tensor of its own.")
    return None


def describe(family: Family, shapes: Shapes, wishes: Mapping[str, Any], more: Mapping[str, Evidence]) -> Inference:
    """Write config.json in the family's words: what the shapes show, then the defaults."""
    seen = {**infer_sizes(family, shapes, wishes), **more}
    writing = ConfigDraft(family, wishes, seen)
    keys = [key for key in family.keys if "dropout" not in key.paths and (family.tied or key.ours != "tied")]
    hidden = [key for key in keys if key.paths and read_evidence(key, seen) is None]
    for key in keys:
        if (shown := read_evidence(key, seen)) is not None:
            writing.record_value(key, *shown)
    for key in hidden:
        if key.default is REQUIRED and key.ours == "context":
            writing.record_value(key, UNKNOWN_CONTEXT, "No tensor shows how long a text the model was made for.", False)
        elif key.default is not REQUIRED and not callable(key.default):
            writing.tell_default(key, key.default)
    for key in hidden:
        if callable(key.default):
            writing.tell_default(key, evaluate_default(key, writing.theirs))
    for key in keys:
        if not key.paths and key.theirs not in writing.theirs:
            writing.record_value(key, (), BY_DEFAULT, False)
    of_class = {name for name, value in family.defaults.items() if not callable(value)}  # of another model than this
    theirs = {name: value for name, value in writing.theirs.items() if value is not None}
    theirs |= dict.fromkeys(of_class - theirs.keys())
    others = {
        name: Assumption(name, value, GIVEN, certain=True) for name, value in wishes.items() if name != "model_type"
    }
    return Inference(family, theirs, (*(others | writing.assumed).values(),))


class ConfigDraft:
    """Draft of a config.json: `theirs`, what of it is `assumed`, and `ours`, which keys read to write theirs."""

    def __init__(self, family: Family, wishes: Mapping[str, Any], seen: Mapping[str, Evidence]) -> None:
        self.wishes = wishes
        self.theirs: dict[str, Any] = {"model_type": family.name, "architectures": [family.architecture], **wishes}
        self.assumed: dict[str, Assumption] = {}
        self.ours = PLAIN.to_dict()
        for path, value in family.always.items():
            if not callable(value):
                put_path(self.ours, path, value)
        for path, part in seen.items():
            put_path(self.ours, path, part.value)

    def record_value(self, key: Key, value: Any, why: str, certain: bool) -> None:
        for path, part in zip(key.paths, (value,) if isinstance(key.ours, str) else value, strict=True):
            put_path(self.ours, path, part)
        for name, word in key.write(value, self.ours).items():
            told = self.wishes.get(name, word)
            self.theirs[name] = told
            if name == key.theirs and isinstance(told, (bool, int, float, str)):
                reason = (GIVEN, True) if name in self.wishes else (why, certain)
                self.assumed[name] = Assumption(name, told, *reason)

    def tell_default(self, key: Key, value: Any) -> None:
        """Write a default; None and tables are left out, since the reader of config.json has the same ones."""
        if value is None:
            return
        if key.ours == "positions.turned":
            value = min(value, self.ours["attention"]["d_head"] or value)
        for path, part in zip(key.paths, (value,) if isinstance(key.ours, str) else value, strict=True):
            put_path(self.ours, path, part)
        if isinstance(value, (bool, int, float, str)) or key.values is not None:
            self.record_value(key, value, BY_DEFAULT, False)


def read_evidence(key: Key, seen: Mapping[str, Evidence]) -> tuple[Any, str, bool] | None:
    """Value of a key by the shapes, why, and how certain; None where no shape shows it.

    A key that says two things, of which only one is seen, gets the first word that fits.
    """
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


def put_path(tree: dict[str, Any], path: str, value: Any) -> None:
    *branches, leaf = path.split(".")
    for branch in branches:
        if not isinstance(tree.get(branch), dict):
            tree[branch] = {}
        tree = tree[branch]
    tree[leaf] = value
