"""Low-rank adapters in PEFT's format: adapter_config.json beside adapter_model.safetensors.

The modules and the order of their rows are those of the base's family. Where a file has one matrix for several of ours
(GPT-2's c_attn), an adapter that is read acts on each part with all of A and the part's rows of B, and one that is
written has the parts' A on top of each other and their B side by side, zero elsewhere.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from engine.budget import budget
from engine.checkpoints.assemble import build_without_memory, check_finite, check_kind
from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.families import NATIVE
from engine.checkpoints.family import SAME, Family, Row
from engine.checkpoints.folder_settings import read_folder_settings
from engine.checkpoints.heads import with_head
from engine.checkpoints.keys import read_link
from engine.checkpoints.locate import SHIPPED, Place, current_path, path_exists, shipped_folder
from engine.checkpoints.run_steps import RUN, kept_steps, name_step, split_name
from engine.checkpoints.run_steps import weights as find_run_weights
from engine.checkpoints.save import family_for, keep_settings, name_export, write_config, zip_folder
from engine.checkpoints.weights import Weights, open_weights, read_json, write_weights
from engine.edits import keep_adapter
from engine.edits.adapters import digest_of
from engine.model.config import HeadKind, ModelConfig
from engine.model.from_dict import build
from engine.model.layers.lora import Adapter, check_fits, list_linears, merge
from engine.model.layers.module import Linear
from engine.model.transformer import Transformer
from engine.places import ROOT

README = "README.md"
CONFIG, WEIGHTS = "adapter_config.json", ("adapter_model.safetensors", "adapter_model.bin")
BASE = "base_model_name_or_path"
PREFIX = "base_model.model."
TENSOR = re.compile(r"(.+)\.lora_([AB])\.weight")
SAVED = re.compile(r"\.(?:modules_to_save\.(?:default\.)?|base_layer\.)")  # between a module and its tensor
DRAWN = (True, False, None, "gaussian", "eva", "orthogonal", "mica")  # first values of A and B; others change the base
SILENT = frozenset(  # keys that change nothing once A and B are there, or that are read elsewhere
    "task_type peft_type auto_mapping peft_version inference_mode fan_in_fan_out megatron_core loftq_config "
    "eva_config corda_config lora_ga_config velora_config qalora_group_size runtime_config init_lora_weights "
    "ensure_weight_tying merge_weights modules_to_save".split()
)
HUB_NAME = re.compile(r"([\w-][\w.-]*/[\w.-]+)(?:@(.+))?")  # and a revision
LONGEST_PATTERN, MOST_REPEATS = 2000, 6  # of a regular expression, which comes from others


@dataclass(frozen=True)
class AdapterConfig:
    """The keys of adapter_config.json that say what A and B do, with PEFT's defaults."""

    r: int = 8
    lora_alpha: float = 8.0
    lora_dropout: float = 0.0
    use_rslora: bool = False
    target_modules: list[str] | str | None = None
    exclude_modules: list[str] | str | None = None
    layers_to_transform: list[int] | int | None = None
    layers_pattern: list[str] | str | None = None
    rank_pattern: Mapping[str, int] = field(default_factory=dict)
    alpha_pattern: Mapping[str, float] = field(default_factory=dict)
    bias: str = "none"
    base_model_name_or_path: str | None = None
    revision: str | None = None

    @property
    def base(self) -> str:
        """The base, with its revision as Loupe writes one of a hub's; empty where none is named."""
        named = self.base_model_name_or_path or ""
        return f"{named}@{self.revision}" if named and self.revision not in (None, "", "main") else named

    def targets(self, module: str) -> bool:
        """True for a module that PEFT adapts, as its `check_target_module_exists` decides."""
        if self.exclude_modules and names(self.exclude_modules, module):
            return False
        if self.target_modules in (None, "all-linear"):
            return True
        assert self.target_modules is not None
        if isinstance(self.target_modules, str) or module in self.target_modules:
            return names(self.target_modules, module)
        return names(self.target_modules, module) and self.has_layer(module)

    def has_layer(self, module: str) -> bool:
        layers = self.layers_to_transform
        if layers is None or layers == []:
            return True
        given = [self.layers_pattern] if isinstance(self.layers_pattern, str) else self.layers_pattern
        patterns = [rf"(?:^|.*?\.){check_pattern(name)}\.(\d+)\." for name in given or ()] or [r".*?\.[^.]*\.(\d+)\."]
        match = next(filter(None, (re.match(pattern, module) for pattern in patterns)), None)
        return match is not None and int(match[1]) in (layers if isinstance(layers, list) else [layers])

    def own(self, patterns: Mapping[str, Any], module: str, usual: Any) -> Any:
        """The value of the first pattern that a module's name ends with."""
        return next((v for p, v in patterns.items() if re.match(rf"(.*\.)?({check_pattern(p)})$", module)), usual)


def names(wanted: list[str] | str, module: str) -> bool:
    """True if a regular expression is the module's whole name, or one of a list its end."""
    if isinstance(wanted, str):
        return re.fullmatch(check_pattern(wanted), module) is not None
    return any(module == name or module.endswith(f".{name}") for name in wanted)


def check_pattern(pattern: str) -> str:
    """Raises ValueError for what is no regular expression, or one that may take for ever on a short name."""
    try:
        re.compile(pattern)
        slow = re.search(r"\)[*+{]", pattern) or len(re.findall(r"[*+]|\{\d*,", pattern)) > MOST_REPEATS
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{CONFIG} has {pattern!r:.80}, which is no regular expression ({error}).") from None
    if slow or len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"{CONFIG} has the regular expression {pattern!r:.80}, which repeats too much; list names.")
    return pattern


# --- Modules of a family ---


@dataclass(frozen=True)
class Module:
    """A linear module of a family's files, and the linear maps here that it holds."""

    ours: tuple[str, ...]
    row: Row
    transposed: bool

    def split(self, b: Tensor, config: ModelConfig) -> list[Tensor]:
        """The parts' rows, each out rank, of B (out rank)."""
        if len(self.ours) == 1:
            return [b]
        return self.row.transform.read([b.mT if self.transposed else b], config)

    def join(self, parts: Sequence[Tensor], config: ModelConfig) -> Tensor:
        if len(self.ours) == 1:
            return parts[0]
        (b,) = self.row.transform.write(list(parts), config)
        return b.mT if self.transposed else b


def list_modules(model: Transformer, rows: Sequence[Row]) -> dict[str, Module]:
    """Linear modules by the family's name, found in its rows for the weights of this model's linear maps."""
    linears, found = list_linears(model), {}
    for row in rows:
        ours = [name.removesuffix(".weight") for name in row.target]
        if not all(name in linears and f"{name}.weight" in row.target for name in ours):
            continue
        same = row.transform is SAME
        for source, targets in zip(row.source, [(n,) for n in ours] if same else [tuple(ours)], strict=True):
            columns = [torch.zeros(linears[name].out_features, 1) for name in targets]
            transposed = not same and len(row.transform.write(columns, model.config)[0]) == 1
            found[source.removesuffix(".weight")] = Module(targets, row, transposed)
    return found


# --- Reading ---


def is_adapter(place: Place) -> bool:
    """True for a folder that holds an adapter and not a model."""
    return place.weights.name in WEIGHTS and place.find(CONFIG) is not None


def find_adapter_weights(folder: Path) -> Path | None:
    """The weights beside an adapter_config.json; None in a folder without an adapter."""
    if not (folder / CONFIG).is_file():
        return None
    return next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)


def read_config(path: Path) -> AdapterConfig:
    """Raises ValueError for what Loupe cannot represent, naming the key."""
    theirs = read_json(path)
    known = {each.name for each in fields(AdapterConfig)}
    if theirs.get("peft_type") != "LORA":
        raise ValueError(f"{CONFIG}'s peft_type must be LORA, got {theirs.get('peft_type')!r:.80}: Loupe has no other.")
    drawn = theirs.get("init_lora_weights")
    if (drawn.lower() if isinstance(drawn, str) else drawn) not in DRAWN:
        raise ValueError(
            f"{CONFIG}'s init_lora_weights is {drawn!r:.80}, which changes the base model too; "
            "convert the adapter to plain LoRA with peft."
        )
    for key, value in theirs.items():
        if value and key not in known | SILENT:
            raise ValueError(f"{CONFIG} sets {key!r:.80}, which Loupe cannot represent; use plain LoRA without it.")
    config: AdapterConfig = build(AdapterConfig, {k: v for k, v in theirs.items() if k in known and v is not None})
    if config.bias != "none":
        raise ValueError(f"{CONFIG}'s bias must be none, got {config.bias!r:.80}: an adapter here has no biases.")
    return config


def read_adapter(folder: str | Path, checkpoint: Checkpoint, merged: Mapping[str, str] | None = None) -> Adapter:
    """The adapter in a folder of PEFT's for this base, in float32 where it is stored in less; edits find it by its key.

    `merged` are modules outside the blocks, by their names in the file, with the tensors here that hold their change
    already. Raises FileNotFoundError where there is none, ValueError for one that is not plain LoRA or not of this
    base.
    """
    folder = Path(folder)
    path = find_adapter_weights(folder)
    if path is None:
        raise FileNotFoundError(f"an adapter's folder must hold {CONFIG} and {WEIGHTS[0]}; {folder} does not.")
    config, weights, model = read_config(folder / CONFIG), open_weights(path), checkpoint.model
    family, _ = family_for(model.config, checkpoint.family)
    rows = family.bind(model.state_dict())
    modules, saved, merged = list_modules(model, rows), read_saved(weights, family, rows, model.config), merged or {}
    for name, tensor in saved.items():
        if name in merged.values():
            continue
        ours = model.state_dict()[name]
        if ours.shape != tensor.shape or not torch.equal(ours.float(), tensor.float()):
            raise ValueError(
                f"the adapter {folder.name} has a {name.partition('.')[0]} of its own, learned beside its matrices, "
                f"and this model has another; open it with load({str(folder)!r:.200}), which puts that on its base."
            )
    linears = list_linears(model)
    saved |= {target: model.state_dict()[target] for target in merged.values()}
    stored = match_modules(weights, modules, family.spellings, merged)
    check_targets(config, weights, spell_alike(modules, stored, family), stored)
    matrices: dict[str, tuple[Tensor, Tensor]] = {}
    alphas: dict[str, float] = {}
    for name, module in stored.items():
        a, b = read_pair(name, config, weights, module, linears)
        alpha = config.own(config.alpha_pattern, name, config.lora_alpha)
        alphas |= {ours: float(alpha) for ours in module.ours if alpha != config.lora_alpha}
        matrices |= {ours: (a, part) for ours, part in zip(module.ours, module.split(b, model.config), strict=True)}
    adapter = Adapter(
        folder.resolve().name, matrices, config.lora_alpha, config.use_rslora, config.lora_dropout, alphas,
        name_base(config.base) or "", saved,
    )  # fmt: skip
    check_fits(adapter, model)
    keep_adapter(adapter)
    return adapter


def match_modules(
    weights: Weights, modules: Mapping[str, Module], spellings: Any, but: Collection[str] = ()
) -> dict[str, Module]:
    """The modules that a file has matrices of, by the name it gives them, `but` for some."""
    stored: dict[str, Module] = {}
    for tensor in weights:
        match = TENSOR.fullmatch(tensor.removeprefix(PREFIX))
        if match is None or match[1] in but:
            continue
        found = next((modules[name] for name in spellings(match[1]) if name in modules), None)
        if found is None:
            some = ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in modules))
            raise ValueError(
                f"{weights.label(tensor)} acts on a layer that no adapter reaches in this model ({some} are reached); "
                "use its own base."
            )
        stored[match[1]] = found
    return stored


def saved_name(tensor: str) -> str | None:
    """Name in the model of a tensor that is saved whole; None for one that is an A or B."""
    name = tensor.removeprefix(PREFIX)
    return None if TENSOR.fullmatch(name) else SAVED.sub(".", name)


def read_saved(weights: Weights, family: Family, rows: Sequence[Row], config: ModelConfig) -> dict[str, Tensor]:
    """Tensors of the model, by name, that an adapter's file holds whole (PEFT's modules_to_save).

    Raises ValueError for one that is none of the model's, and for a part of what the file's layout keeps together.
    """
    whole = {name: tensor for tensor in weights if (name := saved_name(tensor)) is not None}
    sources = {source for row in rows for source in row.source}
    spelled = {next((s for s in family.spellings(name) if s in sources), name): whole[name] for name in whole}
    found: dict[str, Tensor] = {}
    for row in rows:
        if spelled.keys() >= set(row.source):
            named = [spelled.pop(source) for source in row.source]
            for tensor in named:
                check_kind(tensor, weights)
                check_finite(weights.label(tensor), weights[tensor])
            tensors = row.transform.read([weights[tensor].float() for tensor in named], config)
            found |= dict(zip(row.target, tensors, strict=True))
    for unread in spelled.values():
        raise ValueError(
            f"{weights.label(unread)} is neither A or B of a linear layer nor a whole tensor of a {family.name} model "
            f'with the head "{config.head.kind}"; use its own base.'
        )
    return found


def open_adapter(base: Checkpoint, folder: Path) -> Checkpoint:
    """The model that a folder of PEFT's makes of its base: the weights hold the adapter at strength 1, and what it
    saved whole stands in its place; a new head makes the base a classifier.

    Raises ValueError as `read_adapter` does, and where neither holds a tensor of the head.
    """
    weights = open_weights(folder / next(name for name in WEIGHTS if (folder / name).is_file()))
    if any(saved_name(tensor) is not None for tensor in weights):
        base = with_saved(base, folder, weights)
    outside = list_outside(base, weights)
    adapter = read_adapter(folder, with_outside(base, read_config(folder / CONFIG), weights, outside), outside)
    base = replace(base, model=with_tensors(base.model, adapter.saved))
    model = merge(base.model, {adapter: 1.0})
    model.merged = frozenset({*base.model.merged, digest_of(adapter.key)})
    return replace(base, model=model, adapters=(*base.adapters, adapter))


def list_outside(base: Checkpoint, weights: Weights) -> dict[str, str]:
    """Modules outside the blocks that a file has matrices of, such as a pooler, by the name it gives them, with their
    weight here. No edit reaches those: they are merged and count as saved whole."""
    family, _ = family_for(base.config, base.family)
    rows = family.bind(base.model.state_dict())
    modules = list_modules(base.model, rows)
    plain = {row.source[0].removesuffix(".weight"): row.target[0] for row in rows if row.transform is SAME}
    found: dict[str, str] = {}
    for tensor in weights:
        match = TENSOR.fullmatch(tensor.removeprefix(PREFIX))
        names = () if match is None else family.spellings(match[1])
        target = next((plain[name] for name in names if name in plain), None)
        if match is not None and target is not None and modules.keys().isdisjoint(names):
            found[match[1]] = target
    return found


def with_outside(
    base: Checkpoint, config: AdapterConfig, weights: Weights, outside: Mapping[str, str]
) -> Checkpoint:
    """The base with what the file adds to the weights of these modules."""
    changed: dict[str, Tensor] = {}
    for name, target in outside.items():
        weight, rank = base.model.state_dict()[target], config.own(config.rank_pattern, name, config.r)
        a, b = read_matrices(name, weights, rank, (len(weight), weight.shape[-1]))
        alpha = config.own(config.alpha_pattern, name, config.lora_alpha)
        change = b @ a * (alpha / (math.sqrt(rank) if config.use_rslora else rank))
        changed[target] = (weight + change).to(weight.dtype)
    return replace(base, model=with_tensors(base.model, changed))


def with_tensors(model: Transformer, tensors: Mapping[str, Tensor]) -> Transformer:
    """The model with some of its tensors in place of its own; all others are shared."""
    if not tensors:
        return model
    changed = merge(model, {})
    changed.load_state_dict({name: each.to(model.dtype) for name, each in tensors.items()}, strict=False, assign=True)
    return changed


def with_saved(base: Checkpoint, folder: Path, weights: Weights) -> Checkpoint:
    settings = read_folder_settings(Place(folder.name, folder / CONFIG, (folder,)))
    kind = find_head(base, weights, read_json(folder / CONFIG).get("task_type"))
    config = with_head(base.config, kind, base.family)
    if kind in ("sequence", "token"):
        config = replace(config, head=replace(config.head, classes=count_rows(weights, config, base.family)))
    if kind == "sequence":
        pad = base.settings.config.get("pad_token_id", base.tokenizer.pad_id if base.tokenizer else None)
        last = config.head.read == "last" and config.head.mark is None
        asked = settings.config.get("problem_type")
        own = base.config.head.link if kind == base.config.head.kind else None
        link = own if asked is None else read_link(asked, settings.config)
        config = replace(config, head=replace(config.head, link=link, padding=pad if last else None))
    theirs = base.model.state_dict()
    shared = config.tied and kind in ("language", "masked")
    if shared:  # saved whole, the table and the head are two tensors
        config = replace(config, tied=bool(read_json(folder / CONFIG).get("ensure_weight_tying")))
        theirs |= {} if config.tied else {"head.weight": theirs["embed.tokens.weight"]}
    family, _ = family_for(config, base.family)
    model = build_without_memory(config)
    saved = read_saved(weights, family, family.bind(model.state_dict()), config)
    if shared and config.tied and "head.weight" in saved:
        saved["embed.tokens.weight"] = saved.pop("head.weight")
    same = kind == base.config.head.kind
    state: dict[str, Tensor] = {}
    for name, ours in model.state_dict().items():
        held = theirs.get(name) if same or not name.startswith("head.") else None
        found = saved.get(name, held)
        if found is None or found.shape != ours.shape:
            got = "it is not there" if found is None else f"it has shape {tuple(found.shape)}"
            raise ValueError(
                f"the adapter {folder.name} must bring {name} with shape {tuple(ours.shape)}, which its base has not, "
                f"and {got}; train it with that module in modules_to_save, or use its own base."
            )
        state[name] = found.to(base.model.dtype)
    model.load_state_dict(state, assign=True)
    labels = settings.read_labels(config) or (base.labels if len(base.labels) == config.head.classes else ())
    return replace(base, model=model.eval(), labels=labels)


def find_head(base: Checkpoint, weights: Weights, task: object) -> HeadKind:
    """The kind of head that PEFT's task_type names, else the first of those that have all that was saved."""
    if task in HEADS:
        return HEADS[str(task)]
    own = base.config.head.kind
    whole = [name for tensor in weights if (name := saved_name(tensor)) is not None]
    for kind in (own, *HEADS.values()):
        config = replace(with_head(base.config, kind, base.family), tied=False)
        family, _ = family_for(config, base.family)
        sources = {source for row in family.bind(build_without_memory(config).state_dict()) for source in row.source}
        if all(sources.intersection(family.spellings(name)) for name in whole):
            return kind
    return own


def count_rows(weights: Weights, config: ModelConfig, first: str) -> int:
    """Number of classes of a head that an adapter saved."""
    family, _ = family_for(config, first)
    rows = (row for row in family.bind(build_without_memory(config).state_dict()) if "head.weight" in row.target)
    names = {source for row in rows for source in row.source}
    for tensor in weights:
        name = saved_name(tensor)
        if name is not None and names.intersection(family.spellings(name)):
            return weights.shapes[tensor][0]
    return config.head.classes


def spell_alike(modules: Collection[str], stored: Collection[str], family: Family) -> list[str]:
    """The family's modules in the spelling of those that a file has: with or without the prefix of the body, and as
    transformers 5 or older files have them."""
    prefix = family.optional_prefix
    whole = any(name.startswith(prefix) for name in stored)
    alike = [name if whole else name.removeprefix(prefix) for name in modules]
    return alike if any(name in alike for name in stored) else [family.module_name(name) for name in alike]


def check_targets(config: AdapterConfig, weights: Weights, expected: Collection[str], stored: Collection[str]) -> None:
    """Raises ValueError where the config and the file speak of different modules."""
    untold = next((name for name in stored if not config.targets(name)), None)
    if untold is not None:
        raise ValueError(
            f"{CONFIG} leaves out {untold}, and {WEIGHTS[0]} has matrices of it; they are of two adapters."
        )
    explicit = config.target_modules not in (None, "all-linear")
    lacking = next((n for n in expected if explicit and n not in stored and config.targets(n)), None)
    lacking = lacking or next((n for n in stored for x in "AB" if f"{PREFIX}{n}.lora_{x}.weight" not in weights), None)
    if lacking is not None:
        raise ValueError(f"{WEIGHTS[0]} lacks A or B of {lacking}, which {CONFIG} names; fetch the file again.")


def read_pair(
    name: str, config: AdapterConfig, weights: Weights, module: Module, linears: Mapping[str, Linear]
) -> tuple[Tensor, Tensor]:
    rank = config.own(config.rank_pattern, name, config.r)
    inputs, outputs = linears[module.ours[0]].in_features, sum(linears[ours].out_features for ours in module.ours)
    return read_matrices(name, weights, rank, (outputs, inputs))


def read_matrices(name: str, weights: Weights, rank: int, shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """A (rank in) and B (out rank) of a module whose weight has that shape, out in."""
    pair = []
    for letter, expected in (("A", (rank, shape[1])), ("B", (shape[0], rank))):
        tensor = f"{PREFIX}{name}.lora_{letter}.weight"
        if tensor not in weights:
            raise ValueError(f"{WEIGHTS[0]} lacks A or B of {name}; fetch the file again.")
        if weights.shapes[tensor] != expected:
            raise ValueError(
                f"{weights.label(tensor)} must have shape {expected} by {CONFIG} and the base, got "
                f"{weights.shapes[tensor]}; they are not of one adapter."
            )
        check_kind(tensor, weights)
        found = weights[tensor]
        check_finite(weights.label(tensor), found)
        pair.append(found if found.dtype == torch.float64 else found.float())
    return pair[0], pair[1]


# --- Writing ---


def write_adapter(adapter: Adapter, checkpoint: Checkpoint, folder: str | Path) -> None:
    """Write the two files of PEFT's format for the family that `checkpoint.save` would write the base in.

    A head over classes, and what else the adapter's training `saved`, are in them as PEFT's modules_to_save, and then
    config.json beside them has the names of the classes. A README.md says how they open on another machine. Raises
    ValueError for an adapter that is not of this base.
    """
    folder, model = Path(folder), checkpoint.model
    check_fits(adapter, model)
    family, settings = family_for(model.config, checkpoint.family)
    rows = family.bind(model.state_dict())
    modules = list_modules(model, rows)
    widths = {name: linear.out_features for name, linear in list_linears(model).items()}
    body = family.optional_prefix if family.head == "none" else ""
    tensors: dict[str, Tensor] = {}
    ranks: dict[str, int] = {}
    alphas: dict[str, float] = {}
    for full, module in modules.items():
        if any(name in adapter.matrices for name in module.ours):
            name = family.module_name(full.removeprefix(body))
            a, b, alphas[name] = join_parts(adapter, module, widths, model.config)
            ranks[name] = len(a)
            tensors |= {f"{PREFIX}{name}.lora_A.weight": a, f"{PREFIX}{name}.lora_B.weight": b}
    if not tensors:
        raise ValueError(f"an adapter must act on a linear map to be written, and {adapter.name!r:.80} acts on none.")
    saved = list_saved(adapter, model, family, rows)
    tensors |= {f"{PREFIX}{family.module_name(name.removeprefix(body))}": tensor for name, tensor in saved.items()}
    rank, alpha = (Counter(values.values()).most_common(1)[0][0] for values in (ranks, alphas))
    public = public_base(adapter.base or checkpoint.name)
    hub = HUB_NAME.fullmatch(public)
    named, revision = hub.groups("") if hub else (public, "")
    config = {
        "peft_type": "LORA",
        "task_type": task_of(model.config),
        BASE: named or None,
        "revision": revision or None,
        "r": rank,
        "lora_alpha": alpha,
        "rank_pattern": {name: own for name, own in ranks.items() if own != rank},
        "alpha_pattern": {name: own for name, own in alphas.items() if own != alpha},
        "use_rslora": adapter.rank_stabilised,
        "lora_dropout": adapter.dropout,
        "target_modules": sorted(ranks),
        "modules_to_save": sorted({family.module_name(saved_module(name, family).removeprefix(body)) for name in saved})
        or None,
        "fan_in_fan_out": any(module.transposed for module in modules.values()),
        "bias": "none",
        "init_lora_weights": True,
        "inference_mode": True,
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_weights(folder / WEIGHTS[0], tensors, {"format": "pt"})
    (folder / CONFIG).write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if saved:
        write_config(checkpoint, folder, keep_settings(checkpoint, family, settings))
    opener = family.architecture if family is not NATIVE else None
    readme = describe_opening(folder.name, named, revision, opener, bool(saved))
    (folder / README).write_text(readme, encoding="utf-8")


def describe_opening(name: str, base: str, revision: str, opener: str | None, saved: bool) -> str:
    """Text of README.md: what an adapter changes, and the lines that open it on another machine.

    `opener` is transformers' class of the base, None where it has none; with `saved` tensors beside A and B the
    adapter's own config.json says of which head.
    """
    name, base = re.sub(r"[^\w .-]", "-", name), re.sub(r"[^\w/:@. -]", "-", base) or "base"
    hub = HUB_NAME.fullmatch(base) is not None
    place = base if hub else name_export(base)
    more = f", revision={revision!r}" * (hub and bool(revision))
    more += f", config=AutoConfig.from_pretrained({name!r})" * saved
    lines = ["from engine import load", "", f"model = load({name!r}, config={{{BASE!r}: {place!r}}}).model"]
    if opener is not None:
        lines = ["from peft import PeftModel", f"from transformers import {'AutoConfig, ' * saved}{opener}", ""]
        lines += [f"base = {opener}.from_pretrained({place!r}{more})"]
        lines += [f"model = PeftModel.from_pretrained(base, {name!r})"]
    get = f"open {base} in Loupe, on the page Checkpoint, take Export and Folder, zipped, and unpack that as {place!r}"
    told = f"This adapter (LoRA) changes the model {base}, which is not in this folder: "
    told += "transformers fetches it from the hub." if hub else f"{get}, beside this folder."
    front = ["---", *([f"base_model: {base}"] if hub else []), "library_name: peft", "---"]
    return "\n".join([*front, "", f"# {name}", "", told, "", "```python", *lines, "```", ""])


def list_saved(adapter: Adapter, model: Transformer, family: Family, rows: Sequence[Row]) -> dict[str, Tensor]:
    """Tensors by the family's names that are written whole: those that the adapter saved and, of a head over classes,
    all, with whatever else lies in the same modules."""
    ours = set(adapter.saved)
    if model.config.head.over_classes:
        ours |= {name for name in model.state_dict() if name.startswith("head.")}
    touched = {source for row in rows if ours.intersection(row.target) for source in row.source}
    modules = {saved_module(source, family) for source in touched}
    chosen = [row for row in rows if any(saved_module(source, family) in modules for source in row.source)]
    state = {**model.state_dict(), **adapter.saved}
    return {
        source: tensor.detach().contiguous()
        for row in chosen
        for source, tensor in zip(
            row.source, row.inverse.transform.read([state[name] for name in row.target], model.config), strict=True
        )
    }


def saved_module(source: str, family: Family) -> str:
    """The module of modules_to_save that holds a tensor: the outermost one of a head over classes, which PEFT names by
    itself, else its own."""
    prefix, path = family.optional_prefix, source.rpartition(".")[0]
    own = family.head not in TASKS or (prefix and path.startswith(prefix))
    return path if own else path.partition(".")[0]


def name_base(name: str) -> str | None:
    """What others open a base by: a hub's name, or a path, from Loupe's folder where it lies in that. Of a run it is
    that of the checkpoint which it made, and of an earlier step that of its weights."""
    if name.startswith("hub:"):
        return name.removeprefix("hub:")
    path = shipped_folder(name) or current_path(Path(name))
    if name.startswith(RUN) and (found := find_run_weights(name, budget.runs_folder)) is not None:
        run = Path(budget.runs_folder) / split_name(name)[0]
        newest = (name_step(run.name, step) for step in kept_steps(run)[-1:])
        last = found in (find_run_weights(one, budget.runs_folder) for one in newest)
        whole = (last or split_name(name)[1] is None) and (run / "checkpoint").is_dir()
        path = (run / "checkpoint" if whole else found).resolve()
    inside = path.is_absolute() and path.is_relative_to(ROOT)
    return path.relative_to(ROOT).as_posix() if inside else str(path) if name else None


def public_base(name: str) -> str:
    """Name of a base without where it lies on this machine: a hub's, that of a shipped checkpoint or of a run, else
    what its export is called; all but the last open in Loupe as they are. Empty where there is none."""
    told = name_base(name) or ""
    path = next((path.resolve() for path in (Path(told), ROOT / told) if told and path_exists(path)), None)
    if name.startswith("hub:") or path is None:
        return Path(told).name if Path(told).is_absolute() else told
    if path.parent == SHIPPED:
        return path.name
    runs = Path(budget.runs_folder).resolve()
    if path.is_relative_to(runs) and path != runs:
        run, *inside = path.relative_to(runs).parts
        step = re.search(r"\d+", inside[-1]) if inside[:1] == ["snapshots"] else None
        return name_step(run, int(step[0]) if step else None)
    return name_export(path.stem if path.is_file() else path.name)


def export_adapters(checkpoint: Checkpoint, folder: Path) -> Path:
    """Write into `folder` a zip with a folder of PEFT's format for each adapter of the checkpoint."""
    target = folder / "adapters.zip"
    with TemporaryDirectory(dir=folder) as made:
        for adapter in checkpoint.adapters:
            name = adapter.key.partition("~")[0].strip(".-") or "adapter"
            write_adapter(adapter, checkpoint, Path(made) / name)
        zip_folder(Path(made), target)
    return target


def split_adapters(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint without what its adapters added to its weights, to the rounding of these."""
    model = merge(checkpoint.model, dict.fromkeys(checkpoint.adapters, -1.0))
    model.merged = frozenset()
    return replace(checkpoint, model=model, adapters=())


def join_parts(
    adapter: Adapter, module: Module, widths: Mapping[str, int], config: ModelConfig
) -> tuple[Tensor, Tensor, float]:
    """A (rank in), B (out rank) and alpha of one module of the file; parts with the same A share it."""
    parts = [name for name in module.ours if name in adapter.matrices]
    first = parts[0]
    distinct: list[Tensor] = []
    place: dict[str, int] = {}
    for name in parts:
        a = adapter.matrices[name][0]
        place[name] = next((i for i, other in enumerate(distinct) if torch.equal(a, other)), len(distinct))
        distinct += [a] if place[name] == len(distinct) else []
    starts = [0, *accumulate(map(len, distinct))]
    rank, columns = starts[-1], []
    scale = next(filter(None, map(adapter.scale_of, parts)), 1.0)
    alpha = adapter.alphas.get(first, adapter.alpha)
    if rank != adapter.rank_of(first) or scale != adapter.scale_of(first):
        alpha = scale * (math.sqrt(rank) if adapter.rank_stabilised else rank)
    for name in module.ours:
        b = torch.zeros(widths[name], rank, dtype=distinct[0].dtype, device=distinct[0].device)
        if name in place:
            own = adapter.matrices[name][1].detach() * (adapter.scale_of(name) / scale)
            b[:, starts[place[name]] : starts[place[name] + 1]] = own
        columns.append(b)
    return torch.cat(distinct).detach(), module.join(columns, config), alpha


TASKS = {"sequence": "SEQ_CLS", "token": "TOKEN_CLS", "span": "QUESTION_ANS", "none": "FEATURE_EXTRACTION"}
HEADS: dict[str, HeadKind] = {"SEQ_CLS": "sequence", "TOKEN_CLS": "token", "QUESTION_ANS": "span"}


def task_of(config: ModelConfig) -> str | None:
    """PEFT's name of what the base does; it has none for guessing masked words, nor for what reads pictures."""
    if config.embedding.patches is not None:
        return None
    if config.head.kind == "language":
        return "CAUSAL_LM" if config.encoder is None else "SEQ_2_SEQ_LM"
    return TASKS.get(config.head.kind)
