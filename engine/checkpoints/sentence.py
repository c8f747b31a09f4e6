"""What makes a sentence encoder of a model: the modules of sentence-transformers that its folder holds beside it.

`modules.json` lists them: how the tokens' vectors are pooled, maps behind that, a division by the length. The words
that are put before texts stand in `config_sentence_transformers.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

from torch import Tensor

from engine.checkpoints.locate import MODULE_FOLDER, CheckpointLocation
from engine.checkpoints.weights import Weights, open_weights, read_json, write_weights
from engine.json_text import parse_json
from engine.model.config import MapActivation, ModelConfig, Pooling, TextVector, VectorMap

MODULES, PROMPTS, LENGTHS = "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"
TOKENIZER = "tokenizer_config.json"
NO_END = 10**6  # tokens, from which on a tokenizer's longest text means that there is none
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
POOLED: dict[str, Pooling] = {  # in the order in which flags stand one behind the other
    "cls": "first", "max": "max", "mean": "mean", "mean_sqrt_len_tokens": "scaled_sum",
    "weightedmean": "weighted_mean", "lasttoken": "last",
}  # fmt: skip
FLAGS = {
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
ACTIVATIONS: dict[str, MapActivation] = {
    "Identity": "identity", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu", "SiLU": "silu",
}  # fmt: skip
OF_EACH_TOKEN = ("pylate.",)  # whose maps are of tokens' vectors, each divided by its length
MOST_MODULES, MOST_PROMPTS, LONGEST_PROMPT = 16, 100, 10_000
TYPES = "sentence_transformers.models"


@dataclass(frozen=True)
class SentenceSettings:
    """How texts are read of which vectors are made: `prompts` by name, of which one is put before a text (`usual` where
    none is named), and how many tokens of a text are read, None for all. `files` are the JSON files that said so."""

    prompts: Mapping[str, str] = field(default_factory=dict)
    usual: str | None = None
    longest: int | None = None
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Modules(NamedTuple):
    """The vector that the modules of a folder make, and the weights of its maps, in order."""

    vector: TextVector
    maps: tuple[tuple[str, Weights], ...]


def read_settings(place: CheckpointLocation) -> tuple[SentenceSettings, tuple[str, ...]]:
    """Reads the settings that lie beside a model, and a sentence for those that are not obeyed."""
    found = {name: file for name in (PROMPTS, LENGTHS) if (file := place.find(name)) is not None}
    try:
        files = {name: read_json(file) for name, file in found.items()}
        told, lengths = files.get(PROMPTS, {}), files.get(LENGTHS, {})
        prompts = check_prompts(told)
        usual, longest = told.get("default_prompt_name"), lengths.get("max_seq_length")
        if longest is None and files and (file := place.find(TOKENIZER)) is not None:
            said = read_json(file).get("model_max_length")
            longest = said if type(said) is int and 0 < said < NO_END else None
        if usual is not None and usual not in prompts:
            raise ValueError(f"{PROMPTS}'s default_prompt_name must be one of its prompts, got {usual!r:.80}.")
        if longest is not None and (type(longest) is not int or longest < 1):
            raise ValueError(f"{LENGTHS}'s max_seq_length must be a number of tokens, got {longest!r:.80}.")
    except ValueError as error:
        return SentenceSettings(), (f"No settings of a sentence encoder: {error}",)
    notes: tuple[str, ...] = ()
    if lengths.get("do_lower_case"):
        notes = (f"{LENGTHS} asks for small letters, which its tokenizer has to make: Loupe leaves them as they are.",)
    return SentenceSettings(prompts, usual, longest, files), notes


def check_prompts(told: Mapping[str, Any]) -> dict[str, str]:
    """The prompts of config_sentence_transformers.json, also under the names of models of late interaction."""
    prompts = told.get("prompts") or {}
    words = [prompts] if not isinstance(prompts, dict) else [*prompts.values()]
    if not all(word is None or isinstance(word, str) for word in words) or len(words) > MOST_PROMPTS:
        raise ValueError(f"{PROMPTS} must have prompts of name and text, got {prompts!r:.80}; correct it.")
    if any(len(word or "") > LONGEST_PROMPT for word in words):
        raise ValueError(f"a prompt of {PROMPTS} must have at most {LONGEST_PROMPT:,} characters; correct it.")
    found = {str(name): word or "" for name, word in prompts.items()}
    for name in ("query", "document"):
        prefix = told.get(f"{name}_prefix")
        if isinstance(prefix, str) and prefix and len(prefix) <= LONGEST_PROMPT:
            found.setdefault(name, prefix)
    return found


def read_modules(place: CheckpointLocation, config: ModelConfig) -> tuple[Modules | None, tuple[str, ...]]:
    """Reads what modules.json lists behind the model itself; None without such a file, or where what it lists makes no
    vector that Loupe has, which a sentence then says."""
    file = place.find(MODULES)
    if file is None or config.vector is not None:
        return None, ()
    try:
        if config.encoder is not None:
            raise ValueError("the model has two stacks of blocks")
        return read_listed(file, config), ()
    except (ValueError, OSError) as error:
        return None, (f"No vector of the whole text, as {MODULES} has it: {str(error).rstrip('.')}.",)


def read_link(place: CheckpointLocation) -> dict[str, Any]:
    """What a cross-encoder makes of its logits, as config.json has it, where a file beside that says so."""
    file = place.find(PROMPTS)
    told = read_json(file).get("activation_fn") if file is not None else None
    return {"sentence_transformers": {"activation_fn": told}} if isinstance(told, str) else {}


def read_listed(file: Path, config: ModelConfig) -> Modules | None:
    """None where nothing stands behind the model itself."""
    listed = parse_json(file.read_text(encoding="utf-8"))
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed) or len(listed) > MOST_MODULES:
        raise ValueError(f"it must list at most {MOST_MODULES} modules, each a table")
    pooled: tuple[Pooling, ...] = ()
    maps: list[VectorMap] = []
    weights: list[tuple[str, Weights]] = []
    unit = any(str(one.get("type", "")).startswith(OF_EACH_TOKEN) for one in listed)
    for at, one in enumerate(listed):
        kind, path = str(one.get("type", "")).rpartition(".")[2], str(one.get("path", ""))
        last = at == len(listed) - 1
        folder = module_folder(file.parent, path) if path else file.parent
        if kind in ("Transformer", "Dropout"):
            continue
        if kind == "Normalize" and (last or unit):
            unit = True
        elif kind == "Pooling" and not pooled and not maps:
            pooled = read_pooling(folder, config.d_model)
        elif kind == "Dense":
            width = maps[-1].width if maps else config.d_model * max(len(pooled), 1)
            made, stored = read_map(folder, width)
            maps.append(made)
            weights.append((path, stored))
        else:
            raise ValueError(f"{one.get('type')!r:.80} is no module that Loupe computes there")
    return Modules(TextVector(pooled, tuple(maps), unit), tuple(weights)) if pooled or maps else None


def module_folder(folder: Path, path: str) -> Path:
    if not MODULE_FOLDER.fullmatch(path):
        raise ValueError(f"a module must lie in a folder such as 1_Pooling, got {path!r:.80}")
    return folder / path


def read_pooling(folder: Path, d_model: int) -> tuple[Pooling, ...]:
    """Kinds of pooling that a folder names, in the order in which they stand one behind the other."""
    told = read_json(folder / "config.json")
    width = told.get("word_embedding_dimension", told.get("embedding_dimension", d_model))
    if width != d_model:
        raise ValueError(f"its pooling is of vectors of {width!r:.40} numbers, and the model's have {d_model}")
    named = told.get("pooling_mode")
    if named is None:
        named = [mode for flag, mode in FLAGS.items() if told.get(flag)] or ["mean"]
    modes = [named] if isinstance(named, str) else named
    unknown = [mode for mode in modes if mode not in POOLED] if isinstance(modes, list) else [modes]
    if unknown or len(modes) > len(POOLED):
        raise ValueError(f"its pooling must be one of {', '.join(POOLED)}, got {unknown[:1] or len(modes)!r:.80}")
    if told.get("include_prompt") is False:
        raise ValueError("its pooling leaves out the prompt, and Loupe pools all tokens")
    return tuple(POOLED[mode] for mode in modes)


def read_map(folder: Path, reads: int) -> tuple[VectorMap, Weights]:
    told = read_json(folder / "config.json")
    sizes, bias = (told.get("in_features"), told.get("out_features")), told.get("bias", True)
    module, _, name = str(told.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")
    if name not in ACTIVATIONS or not module.startswith("torch."):
        raise ValueError(f"{folder.name} has the activation {name!r:.80}, and Loupe has {', '.join(ACTIVATIONS)}")
    if told.get("use_residual"):
        raise ValueError(f"{folder.name} adds what it reads to what it makes, and Loupe has no such map")
    file = next((folder / file for file in WEIGHTS if (folder / file).is_file()), None)
    if file is None:
        raise ValueError(f"{folder.name} must hold one of {', '.join(WEIGHTS)}")
    stored = open_weights(file)
    wide = all(type(size) is int for size in sizes)
    wanted = {"linear.weight": (sizes[1], sizes[0])} | ({"linear.bias": (sizes[1],)} if bias else {})
    if not wide or sizes[0] != reads or dict(stored.shapes) != wanted:
        raise ValueError(f"{folder.name} must map {reads} numbers as its config.json says, {sizes!r:.80}, and does not")
    assert isinstance(sizes[1], int)
    return VectorMap(sizes[1], bool(bias), ACTIVATIONS[name]), stored


def with_maps(weights: Weights, modules: Modules) -> Weights:
    """The weights of a model and of the maps behind it, whose names begin with the name of their folder."""
    shapes, readers = dict(weights.shapes), dict(weights.readers)
    dtypes, files = dict(weights.dtypes), dict(weights.files)
    for folder, stored in modules.maps:
        for name in stored:
            whole = f"{folder}.{name}"
            shapes[whole], dtypes[whole] = stored.shapes[name], stored.dtypes[name]
            readers[whole] = lambda _, stored=stored, name=name: stored[name]  # type: ignore[misc]
            files[whole] = stored.files[name]
    return replace(weights, shapes=shapes, readers=readers, dtypes=dtypes, files=files)


def rows_of_maps(modules: Modules) -> Iterator[tuple[str, str]]:
    """Rows of a family for the maps: their names, and ours."""
    for at, (folder, stored) in enumerate(modules.maps):
        for name in stored:
            yield f"{folder}.{name}", f"vector.maps.{at}.dense.{name.removeprefix('linear.')}"


def write_modules(folder: Path, config: ModelConfig, state: Mapping[str, Tensor]) -> None:
    """Write modules.json and the folders that it names, for `config.vector`; `state` holds the maps' weights."""
    vector = config.vector
    assert vector is not None
    listed = [("", "Transformer")]
    if vector.pooled:
        listed.append(("1_Pooling", "Pooling"))
        write_json(folder / "1_Pooling" / "config.json", pooling_config(vector, config.d_model))
    width = config.d_model * max(len(vector.pooled), 1)
    for at, made in enumerate(vector.maps):
        path = f"{len(listed)}_Dense"
        listed.append((path, "Dense"))
        names = {value: name for name, value in ACTIVATIONS.items()}
        module = "torch.nn.modules." + ("linear" if made.activation == "identity" else "activation")
        told: dict[str, Any] = {"in_features": width, "out_features": made.width, "bias": made.bias}
        told |= {"activation_function": f"{module}.{names[made.activation]}"}
        told |= {} if vector.pooled else {"module_input_name": "token_embeddings"}
        write_json(folder / path / "config.json", told)
        prefix = f"vector.maps.{at}.dense."
        own = {name: tensor for name, tensor in state.items() if name.startswith(prefix)}
        renamed = {f"linear.{name.removeprefix(prefix)}": tensor for name, tensor in own.items()}
        write_weights(folder / path / WEIGHTS[0], renamed, {"format": "pt"})
        width = made.width
    if vector.unit:
        path = f"{len(listed)}_Normalize"
        listed.append((path, "Normalize"))
        of_tokens = {} if vector.pooled else {"module_input_name": "token_embeddings"}
        write_json(folder / path / "config.json", of_tokens)
    entries = [
        {"idx": at, "name": str(at), "path": path, "type": f"{TYPES}.{kind}"} for at, (path, kind) in enumerate(listed)
    ]
    write_json(folder / MODULES, entries)


def pooling_config(vector: TextVector, d_model: int) -> dict[str, Any]:
    modes = [mode for kind in vector.pooled for mode, one in POOLED.items() if one == kind]
    told: dict[str, Any] = {"word_embedding_dimension": d_model}
    if modes == [mode for mode in POOLED if mode in modes]:
        return told | {flag: mode in modes for flag, mode in FLAGS.items()}
    return told | {"pooling_mode": modes}


def write_settings(folder: Path, settings: SentenceSettings) -> None:
    """Write the JSON files of `settings` as they were read."""
    for name, told in settings.files.items():
        write_json(folder / name, told)


def write_json(path: Path, data: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


assert set(POOLED.values()) == set(get_args(Pooling)) and set(ACTIVATIONS.values()) == set(get_args(MapActivation))
