"""config.json and ModelConfig: one table of keys, read in both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.checkpoints.canonical import canonical_config
from engine.model.config import ModelConfig, OwnLink

REQUIRED = object()
Table = Mapping[str, Any]

ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "quick_gelu": "quick_gelu",
}


@dataclass(frozen=True)
class Key:
    """`theirs` in config.json is `ours` in ModelConfig, a dotted path; several paths where it says several things.

    `default` stands in where theirs is absent or null: a value, or a function of the whole config.json.
    `values` translates words of theirs into ours; of several that mean the same, the first is the one
    written. `also` are other names of the key: read where `theirs` is absent, and written as well.
    `reads` makes ours of theirs, given the whole config.json, and `writes` makes theirs of ours, given the whole
    ModelConfig as tables.
    """

    theirs: str
    ours: str | tuple[str, ...]
    default: Any = REQUIRED
    values: Table | None = None
    also: tuple[str, ...] = ()
    reads: Callable[[Any, Table], Any] | None = None
    writes: Callable[[Any, Table], Any] | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.ours,) if isinstance(self.ours, str) else self.ours

    def read(self, theirs: Table) -> Any:
        found = [theirs[name] for name in (self.theirs, *self.also) if theirs.get(name) is not None]
        if not found and self.default is REQUIRED:
            raise ValueError(f"config.json lacks {self.theirs}; without it the model cannot be built.")
        if not found:
            return self.default(theirs) if callable(self.default) else self.default
        if self.reads is not None:
            return self.reads(found[0], theirs)
        if self.values is None:
            return found[0]
        if not isinstance(found[0], str) or found[0] not in self.values:
            known = ", ".join(self.values)
            raise ValueError(f"config.json's {self.theirs} must be one of {known}, got {found[0]!r:.80}.")
        return self.values[found[0]]

    def write(self, value: Any, ours: Table) -> dict[str, Any]:
        if self.writes is not None:
            value = self.writes(value, ours)
        elif self.values is not None:
            value = next((word for word, meant in self.values.items() if meant == value), value)
        return dict.fromkeys((self.theirs, *self.also), value)


LINKS: dict[str, OwnLink | None] = {
    "single_label_classification": None, "multi_label_classification": "logistic", "regression": "identity",
}  # fmt: skip
PAD = {"opt": 1, "gemma": 0, "gemma2": 0}  # where config.json does not say, by transformers' class of the model type
END = {"bart": 2, "t5": 1, "mt5": 1}


def read_link(word: Any, theirs: Table) -> OwnLink | None:
    if word not in LINKS:
        raise ValueError(f"config.json's problem_type must be one of {', '.join(LINKS)}, got {word!r:.80}.")
    if word == "regression" and count_classes(theirs) == 1:
        return None
    if word == "single_label_classification" and count_classes(theirs) == 1:
        raise ValueError(f"config.json's problem_type {word} needs 2 labels or more, got 1; is it a regression?")
    return LINKS[word]


def count_classes(theirs: Table) -> int:
    """Number of labels that transformers gives a classifier: num_labels, else the number of id2label names, else 2."""
    count, named = theirs.get("num_labels"), theirs.get("id2label")
    if count is None:
        count = 2 if named is None else len(named)
    if type(count) is not int or count < 1:
        raise ValueError(f"config.json's num_labels must be a whole number, 1 or more, got {count!r:.80}.")
    return count


def head_keys(name: str, always: Table) -> tuple[Key, ...]:
    """Keys of a head over whole texts: what makes probabilities of its logits, and which token it reads where that is
    the last."""
    if always.get("head.kind") != "sequence":
        return ()
    words = {link: word for word, link in LINKS.items() if link is not None}
    link = Key("problem_type", "head.link", default=None, reads=read_link, writes=lambda link, _: words.get(link))
    if always.get("head.read") != "last":
        return (link,)
    if name in END:
        return (link, id_key("eos_token_id", "head.mark", END[name]))
    return (link, id_key("pad_token_id", "head.padding", PAD.get(name)))


def id_key(theirs: str, ours: str, usual: int | None) -> Key:
    """Key of a token, of which null says that there is none."""
    return Key(theirs, ours, default=lambda table: None if theirs in table else usual,
               reads=lambda value, _: value[0] if isinstance(value, list) and value else value)  # fmt: skip


def write_only_key(theirs: str, writes: Callable[[Table], Any]) -> Key:
    """A key that says again, for other readers, what other keys say: `writes` makes it of the whole ModelConfig."""
    return Key(theirs, (), default=(), reads=lambda *_: (), writes=lambda _, ours: writes(ours))


def read_model_config(theirs: Table, keys: Sequence[Key], always: Table, only: Table) -> ModelConfig:
    for name, value in only.items():
        if theirs.get(name, value) != value:
            got = f"{theirs[name]!r:.80}"
            raise ValueError(f"config.json's {name} must be {value!r}, got {got}: Loupe has no such model.")
    ours: dict[str, Any] = {}
    for key in keys:
        value = evaluate(key.read, theirs, key.theirs)
        for path, part in zip(key.paths, [value] if isinstance(key.ours, str) else value, strict=True):
            _put(ours, path, part)
    for path, value in always.items():
        _put(ours, path, evaluate(value, theirs, path) if callable(value) else value)
    try:
        return ModelConfig.from_dict(ours)
    except ValueError as error:
        names = ", ".join(key.theirs for key in keys if any(path in str(error) for path in key.paths))
        raise ValueError(f"config.json describes no model that Loupe can build: {error} Its key: {names}.") from None


def evaluate(function: Callable[[Table], Any], theirs: Table, name: str) -> Any:
    """`function` of config.json, whose values may be of any type."""
    try:
        return function(theirs)
    except (TypeError, ArithmeticError) as error:
        raise ValueError(
            f"config.json describes no model that Loupe can build: {name} does not come out ({error})."
        ) from None


def write_table(config: ModelConfig, keys: Sequence[Key], only: Table) -> dict[str, Any]:
    ours = canonical_config(config).to_dict()
    theirs = dict(only)
    for key in keys:
        values = tuple(_get(ours, path) for path in key.paths)
        try:
            theirs |= key.write(values[0] if isinstance(key.ours, str) else values, ours)
        except (TypeError, ArithmeticError) as error:
            raise ValueError(f"{key.theirs} does not come out of {config} ({error}).") from None
    return theirs


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *branches, leaf = path.split(".")
    for branch in branches:
        tree = tree.setdefault(branch, {})
    tree[leaf] = value


def _get(tree: dict[str, Any] | None, path: str) -> Any:
    for name in path.split("."):
        tree = tree.get(name) if tree is not None else None
    return tree
