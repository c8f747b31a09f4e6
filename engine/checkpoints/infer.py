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

from engine.checkpoints.assemble import leaves, same, shapes_by, skeleton
from engine.checkpoints.explicit import explicit
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import Family
from engine.checkpoints.keys import REQUIRED, Key
from engine.checkpoints.nanogpt import FAMILIES as UNCONFIGURED
from engine.checkpoints.report import Assumed
from engine.checkpoints.sizes import BY_DEFAULT, GIVEN, PLAIN, Seen, Shapes, computed, sizes, spellings
from engine.checkpoints.weights import Weights
from engine.model.config import MLP, Attention, ModelConfig

CANDIDATES = (*(f for of in FAMILIES.values() for f in of if f is not NATIVE), *UNCONFIGURED)
NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")  # a whole part of a dotted name
NEARLY = 0.9  # of the names that the best family knows, for another to be looked at
UNKNOWN_CONTEXT = 2048
EVERYONES_OWN = (" mlp.activation", " encoder.mlp.activation", " head.activation", " head.scale")


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


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    *branches, leaf = path.split(".")
    for branch in branches:
        if not isinstance(tree.get(branch), dict):
            tree[branch] = {}
        tree = tree[branch]
    tree[leaf] = value
