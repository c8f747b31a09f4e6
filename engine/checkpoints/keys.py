"""config.json and ModelConfig: one table of keys, read in both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.kinds import KINDS, Kind
from engine.model.config import ModelConfig, OwnLink

REQUIRED = object()
Table = Mapping[str, Any]

ACTIVATIONS = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "relu": "relu",
    "relu2": "relu2",
    "silu": "silu",
    "swish": "silu",
    "quick_gelu": "quick_gelu",
}


@dataclass(frozen=True)
class Key:
    """`theirs` in config.json is `ours` in ModelConfig, a dotted path; several paths where it says several things.

    `default` stands in where theirs is absent or null: a value, or a function of the whole config.json.
    `values` translates words of theirs into ours; of several that mean the same, the first is the one
    written. `also` are other names of the key, which are written as well, for other readers.
    `reads` makes ours of theirs, given the whole config.json, and `writes` makes theirs of ours, given the whole
    ModelConfig as tables. `kind` is that of values of theirs, for a name that no other family has (else it stands in
    KINDS).
    """

    theirs: str
    ours: str | tuple[str, ...]
    default: Any = REQUIRED
    values: Table | None = None
    also: tuple[str, ...] = ()
    reads: Callable[[Any, Table], Any] | None = None
    writes: Callable[[Any, Table], Any] | None = None
    kind: Kind | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.ours,) if isinstance(self.ours, str) else self.ours

    def read(self, theirs: Table) -> Any:
        found = theirs.get(self.theirs)
        if found is None and self.default is REQUIRED:
            raise ValueError(f"config.json lacks {self.theirs}; without it the model cannot be built.")
        if found is None:
            return self.default(theirs) if callable(self.default) else self.default
        if self.reads is not None:
            return self.reads(found, theirs)
        if self.values is None:
            return found
        return check_word(self.theirs, found, self.values)

    def translate(self, word: Any) -> Any:
        """The meaning of a word of theirs, which is itself where there is no table of words."""
        return self.values.get(word, word) if self.values is not None and isinstance(word, str) else word

    def write(self, value: Any, ours: Table) -> dict[str, Any]:
        if self.writes is not None:
            try:
                value = self.writes(value, ours)
            except (TypeError, ArithmeticError) as error:
                raise ValueError(f"{self.theirs} does not come out of such a model ({error}).") from None
        elif self.values is not None:
            value = write_word(value, self.values)
        return dict.fromkeys((self.theirs, *self.also), value)


def check_word(theirs: str, word: Any, values: Table) -> Any:
    """Looks up the meaning of the `word` of the key `theirs`."""
    if not isinstance(word, str) or word not in values:
        raise ValueError(f"config.json's {theirs} must be one of {', '.join(values)}, got {word!r:.80}.")
    return values[word]


def write_word(value: Any, values: Table) -> Any:
    """The first word that means `value`, or that itself where none does."""
    return next((word for word, meant in values.items() if meant == value), value)


class ConfigTable(dict[str, Any]):
    """config.json, the one way in which its values are read: each is of its kind, else ValueError names the key.

    `read` are the keys that somebody asked for, and `source` is what the table is called. A key of no declared kind is
    a fault of the reader's: LookupError.
    """

    def __init__(
        self,
        table: Table,
        read: set[str] | None = None,
        kinds: Mapping[str, Kind] = KINDS,
        source: str = "config.json's ",
    ) -> None:
        super().__init__(table)
        self.read: set[str] = set() if read is None else read
        self.kinds, self.source = kinds, source

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return self.check(key, super().get(key, default))

    def __getitem__(self, key: str) -> Any:
        found = self.get(key)
        if found is None:
            raise ValueError(f"{self.source}{key} must be {self.kinds[key].words}, and is not there; add it.")
        return found

    def check(self, key: str, value: Any, name: str | None = None) -> Any:
        """The value, where it is null or of the key's kind; `name` is what the table calls the key."""
        if value is not None and not self.kinds[key].admits(value):
            expected = f"{self.source}{name or key} must be {self.kinds[key].words}, got {value!r:.80}"
            raise ValueError(f"{expected}; correct it there, or fetch the file anew.")
        return value


LINKS: dict[str, OwnLink | None] = {
    "single_label_classification": None,
    "multi_label_classification": "logistic",
    "regression": "identity",
}
# Where config.json does not say, by transformers' class of the model type.
PAD = {"opt": 1, "gemma": 0, "gemma2": 0, "gemma3_text": 0, "olmo": 1, "olmo2": 1, "olmo3": 1, "phi3": 32000}
PAD |= {"smollm3": 128004, "glm": 151329, "glm4": 151329}
END = {"bart": 2, "t5": 1, "mt5": 1}


def read_link(word: Any, theirs: Table) -> OwnLink | None:
    link: OwnLink | None = check_word("problem_type", word, LINKS)
    if word == "regression" and count_classes(theirs) == 1:
        return None
    if word == "single_label_classification" and count_classes(theirs) == 1:
        raise ValueError(f"config.json's problem_type {word} needs 2 labels or more, got 1; is it a regression?")
    return link


def link_of_pairs(theirs: Table) -> OwnLink | None:
    """What a cross-encoder of sentence-transformers makes of its logits, where its config says so."""
    told = (theirs.get("sentence_transformers") or {}).get("activation_fn")
    word = str(told or theirs.get("sbert_ce_default_activation_function")).rpartition(".")[2]
    if word == "Identity":
        return None if count_classes(theirs) == 1 else "identity"
    return "logistic" if word == "Sigmoid" else None


def count_classes(theirs: Table) -> int:
    """Number of labels that transformers gives a classifier: num_labels, else the number of id2label names, else 2."""
    count: int | None = theirs.get("num_labels")
    named = theirs.get("id2label")
    if count is None and named is not None and not named:
        raise ValueError("config.json's id2label must name one class or more, and is empty; name them or leave it out.")
    return count or (2 if named is None else len(named))


def head_keys(name: str, always: Table) -> tuple[Key, ...]:
    """Keys of a head over whole texts: what makes probabilities of its logits, and which token it reads where that is
    the last."""
    if always.get("head.kind") != "sequence":
        return ()
    words = {link: word for word, link in LINKS.items() if link is not None}
    link = Key(
        "problem_type", "head.link", default=link_of_pairs, reads=read_link, writes=lambda link, _: words.get(link)
    )  # fmt: skip
    if always.get("head.read") != "last":
        return (link,)
    if name in END:
        return (link, id_key("eos_token_id", "head.mark", END[name]))
    return (link, id_key("pad_token_id", "head.padding", PAD.get(name)))


def id_key(theirs: str, ours: str, usual: int | None) -> Key:
    """Key of a token, of which null says that there is none."""
    return Key(
        theirs,
        ours,
        default=lambda table: None if theirs in table else usual,
        reads=lambda value, _: value[0] if isinstance(value, list) and value else value,
    )


def shared_key(theirs: str, ours: tuple[str, ...], default: Any, kind: Kind | None = None) -> Key:
    """Key of one value that each of several paths has."""
    return Key(
        theirs,
        ours,
        default=(default,) * len(ours),
        reads=lambda value, _: (value,) * len(ours),
        writes=lambda values, _: values[0],
        kind=kind,
    )


def write_only_key(theirs: str, writes: Callable[[Table], Any], kind: Kind | None = None) -> Key:
    """A key that says again, for other readers, what other keys say: `writes` makes it of the whole ModelConfig."""
    return Key(theirs, (), default=(), reads=lambda *_: (), writes=lambda _, ours: writes(ours), kind=kind)


def read_model_config(theirs: Table, keys: Sequence[Key], always: Table, only: Table) -> ModelConfig:
    for name, value in only.items():
        found = theirs.get(name, value)
        if type(found) is not type(value) or found != value:
            raise ValueError(f"config.json's {name} must be {value!r}, got {found!r:.80}: Loupe has no such model.")
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
        its = f" Its key: {names}." if names else ""
        raise ValueError(f"config.json describes no model that Loupe can build: {error}{its}") from None


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
