"""Where a checkpoint is: a shipped name, a folder, or one weights file in a folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engine.checkpoints.shipped import fetch, list_shipped_weights
from engine.places import CHECKPOINTS as SHIPPED
from engine.places import ROOT

# Former names of shipped checkpoints, by which links, recipes and adapters may still name them.
RENAMED = {"stories-bert": "tales-bert"}
FLAX, TENSORFLOW = "flax_model.msgpack", "tf_model.h5"
WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    FLAX,
    TENSORFLOW,
    "adapter_model.safetensors",
)
ANSWER_KEY = "answer_key.json"  # which part of a compiled model does what (engine/compiled/)
KINDS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf")
BESIDE = (
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "card.json",
    ANSWER_KEY,
    "README.md",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "token_mappings.json",
    "tekken.json",
    "adapter_config.json",
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
)
MODULE_FOLDER = re.compile(r"\d{1,2}_\w{1,40}", re.ASCII)  # of a sentence encoder's modules, beside the model
OF_MODULES = ("config.json", "model.safetensors", "pytorch_model.bin")
OF_TOKENIZERS = (".model", ".spm")  # SentencePiece's, or tiktoken's
OF_TOKENS = re.compile(r"tok(enizer|\d+)\.bin")  # llama2.c's
PART = re.compile(r"-\d{5}-of-\d{5}(?=\.gguf$)")  # of the name of a GGUF file that was split
SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}\.(safetensors|bin)")
OLD_MODEL = "0_Transformer"  # where old sentence encoders have the model itself
OF_A_RUN = ("latest", "snapshots", OLD_MODEL)  # folders of what lies one folder up: a run's tokenizer, modules.json


@dataclass(frozen=True)
class CheckpointLocation:
    """`weights` is the file to open, `folders` where its config and tokenizer may be, nearest first."""

    name: str
    weights: Path
    folders: tuple[Path, ...]

    def find(self, file: str) -> Path | None:
        return next((folder / file for folder in self.folders if (folder / file).is_file()), None)


def is_part(name: str) -> bool:
    """True for a name of a file that can belong to a checkpoint."""
    return name in (*BESIDE, *WEIGHTS) or name.endswith(
        (*KINDS, *OF_TOKENIZERS, *(f"{kind}.index.json" for kind in KINDS))
    )


def is_part_of_module(name: str) -> bool:
    """True for the path of a file that a module of a sentence encoder has in its folder: 1_Pooling/config.json."""
    folder, _, file = name.rpartition("/")
    return file in OF_MODULES and MODULE_FOLDER.fullmatch(folder) is not None


def shipped_names() -> list[str]:
    """The names of the checkpoints that come with Loupe."""
    return sorted(p.name for p in SHIPPED.iterdir() if p.is_dir()) if SHIPPED.is_dir() else []


def present_names() -> list[str]:
    """Names of the shipped models whose weights lie on this machine: opening one fetches nothing."""
    listed = list_shipped_weights()
    return [name for name in shipped_names() if name not in listed or listed[name].is_here]


def current_name(name: str) -> str:
    """Present name of a shipped checkpoint, given that or a former one; any other name as it is."""
    return RENAMED.get(name, name)


def current_path(path: Path) -> Path:
    """Present path of what was, or lay in, the folder of a shipped checkpoint; any other path as it is."""
    for former, present in RENAMED.items():
        if (ROOT / path).is_relative_to(SHIPPED / former):
            return SHIPPED / present / (ROOT / path).relative_to(SHIPPED / former)
    return path


def shipped_folder(name: str) -> Path | None:
    """Folder of the shipped checkpoint that has, or had, this name; None for any other name."""
    name = current_name(name)
    return SHIPPED / name if name in shipped_names() else None


def locate(name_or_path: str | Path) -> CheckpointLocation:
    """A path that is not here is looked for in Loupe's folder, from which copied lines name their models; weights that
    a package leaves out are fetched. Raises FileNotFoundError, naming what there is instead, and as `fetch` does."""
    path = shipped_folder(name_or_path) if isinstance(name_or_path, str) else None
    if path is None:
        path = expand_home(name_or_path)
        path = path if path_exists(path) else current_path(ROOT / path)
    if path.parent == SHIPPED and path.name in list_shipped_weights():
        path = fetch(path.name)
    if path_exists(path) and path.is_file():
        return CheckpointLocation(path.stem, check_readable(path), search_folders(path.parent))
    if not path_exists(path):
        names = ", ".join(shipped_names()) or "none"
        raise FileNotFoundError(
            f"{str(name_or_path)!r:.300} is no folder, no file and no shipped checkpoint (those are: {names})."
        )
    inner = (path / "latest", path / OLD_MODEL)
    folder = path if find_weights(path) is not None else next(filter(find_weights, inner), inner[0])
    weights = find_weights(folder)
    if weights is None:
        found = sorted(p.name.encode(errors="replace").decode() for p in path.iterdir())
        shard = next(filter(None, map(SHARD.fullmatch, found)), None)
        if shard is not None:
            index = f"{shard[1]}.{shard[2]}.index.json"
            raise FileNotFoundError(f"{path} holds shards such as {shard[0]} without their index; fetch {index} too.")
        there = ", ".join(found[:20]) or "nothing"
        raise FileNotFoundError(f"a checkpoint folder must hold one of {', '.join(WEIGHTS)}; {path} holds {there}.")
    return CheckpointLocation(path.resolve().name, check_readable(weights), search_folders(folder))


def check_readable(path: Path) -> Path:
    """Raises ValueError for a name that is no text, which no message could tell."""
    try:
        str(path.resolve()).encode()
    except UnicodeEncodeError:
        raise ValueError(f"a file must have a name in UTF-8, got {ascii(path.name)}; rename it.") from None
    return path


def expand_home(name_or_path: str | Path) -> Path:
    try:
        return Path(name_or_path).expanduser()
    except RuntimeError:  # there is no such user
        return Path(name_or_path)


def path_exists(path: Path) -> bool:
    """True for a file or a folder; what no system takes as a name is neither."""
    try:
        return path.is_file() or path.is_dir()
    except OSError:
        return False


def find_weights(folder: Path) -> Path | None:
    """Weights file of a folder: one of a usual name, or the only one that can be weights."""
    usual = next((folder / file for file in WEIGHTS if (folder / file).is_file()), None)
    if (usual is not None and usual.name not in (FLAX, TENSORFLOW)) or not folder.is_dir():
        return usual
    named = [path for path in folder.iterdir() if path.suffix in KINDS and path.is_file()]
    others = sorted(path for path in named if not OF_TOKENS.fullmatch(path.name))
    return others[0] if len({re.sub(PART, "", path.name) for path in others}) == 1 else usual


def search_folders(folder: Path) -> tuple[Path, ...]:
    return (folder, folder.parent) if folder.name in OF_A_RUN else (folder,)
