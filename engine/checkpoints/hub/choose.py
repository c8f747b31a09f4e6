"""Which files of a repository a checkpoint needs: never code, and pickles only where there is nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath

from engine.checkpoints.locate import BESIDE, WEIGHTS
from engine.checkpoints.weights import read_json

INDEX = ".index.json"
SMALL = (*BESIDE, "tokenizer.model", "spiece.model", "spm.model", "sentencepiece.bpe.model", "source.spm", "target.spm")


def check_names(names: Collection[str], repo: str) -> None:
    """Names come from others. Raises ValueError where one of them could lead out of a folder."""
    for name in names:
        path = PurePosixPath(name if isinstance(name, str) else "/")
        if path.is_absolute() or not path.parts or ".." in path.parts or "\\" in name or "\0" in name:
            raise ValueError(f"{repo} must list files inside itself, and lists {name!r:.200}; do not trust it.")


def choose(names: Collection[str], repo: str, index: Callable[[str], Path]) -> list[str]:
    """Weights last: where they are all there, so is everything. `index(name)` is where that index can be read.

    Raises ValueError where `names` are not those of a whole checkpoint.
    """
    main = next((name for name in WEIGHTS if name in names), None)
    if main is None:
        there = ", ".join(sorted(names)[:20]) or "nothing"
        raise ValueError(f"a checkpoint must have one of {', '.join(WEIGHTS)}; {repo} has {there}.")
    shards = named_by(index(main), main) if main.endswith(INDEX) else []
    for shard in shards:
        if shard not in names:
            raise ValueError(f"{main} must name files of {repo}, and {shard!r:.200} is none of them.")
    return [*(name for name in SMALL if name in names), main, *shards]


def named_by(index: Path, name: str) -> list[str]:
    """Files of the index's own kind alone: one of safetensors cannot ask for a pickle."""
    kind = Path(name.removesuffix(INDEX)).suffix
    named = read_json(index).get("weight_map")
    files = set(named.values()) if isinstance(named, dict) and all(map(is_text, named.values())) else set()
    if not files or not all(file.endswith(kind) and "/" not in file for file in files):
        raise ValueError(f"{name} must have a table weight_map (tensor -> {kind} file beside it); do not trust it.")
    return sorted(files)


def is_text(value: object) -> bool:
    return isinstance(value, str)
