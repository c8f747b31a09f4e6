"""Keys of PEFT's adapter_config.json: what Loupe can represent, the modules they choose, and the base they name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from engine.budget import budget
from engine.checkpoints.locate import SHIPPED, CheckpointLocation, current_path, path_exists, shipped_folder
from engine.checkpoints.run_steps import RUN, kept_steps, name_step, split_name
from engine.checkpoints.run_steps import weights as find_run_weights
from engine.checkpoints.save import name_export
from engine.checkpoints.weights import read_json
from engine.model.config import HeadKind, ModelConfig
from engine.model.from_dict import build
from engine.places import ROOT

CONFIG, WEIGHTS = "adapter_config.json", ("adapter_model.safetensors", "adapter_model.bin")
BASE = "base_model_name_or_path"
DRAWN = (True, False, None, "gaussian", "eva", "orthogonal", "mica")  # first values of A and B; others change the base
SILENT = frozenset(  # keys that change nothing once A and B are there, or that are read elsewhere
    "task_type peft_type auto_mapping peft_version inference_mode fan_in_fan_out megatron_core loftq_config "
    "eva_config corda_config lora_ga_config velora_config qalora_group_size runtime_config init_lora_weights "
    "ensure_weight_tying merge_weights modules_to_save".split()
)
HUB_NAME = re.compile(r"([\w-][\w.-]*/[\w.-]+)(?:@(.+))?")  # and a revision
LONGEST_PATTERN, MOST_REPEATS = 2000, 6  # of a regular expression, which comes from others
TASKS = {"sequence": "SEQ_CLS", "token": "TOKEN_CLS", "span": "QUESTION_ANS", "none": "FEATURE_EXTRACTION"}
HEADS: dict[str, HeadKind] = {"SEQ_CLS": "sequence", "TOKEN_CLS": "token", "QUESTION_ANS": "span"}


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


def is_adapter(place: CheckpointLocation) -> bool:
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


def name_base(name: str) -> str | None:
    """Name by which others open a base: a hub's name, or a path, from Loupe's folder where it lies in that. Of a run it
    is that of the checkpoint which it made, and of an earlier step that of its weights."""
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


def task_of(config: ModelConfig) -> str | None:
    """PEFT's name of what the base does; it has none for guessing masked words, nor for what reads pictures."""
    if config.embedding.patches is not None:
        return None
    if config.head.kind == "language":
        return "CAUSAL_LM" if config.encoder is None else "SEQ_2_SEQ_LM"
    return TASKS.get(config.head.kind)
