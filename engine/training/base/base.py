"""A checkpoint to begin with instead of random weights: what it has learned is fine-tuned for another task (Radford et
al. 2018, section 3.2).

`base` in a recipe is whatever `engine.load` and `engine.runtime.library` open: a shipped name, a folder or a file,
"hub:org/name", "run:NAME" or "run:NAME@STEP".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from engine.checkpoints import Checkpoint, load
from engine.checkpoints.adapter_snapshot import FILE, name_tensors
from engine.checkpoints.assemble import build_without_memory
from engine.checkpoints.folder_settings import FolderSettings
from engine.checkpoints.load import OpenedModel, find_place, open_model, open_settings, open_tokenizer
from engine.checkpoints.locate import CheckpointLocation, current_name, path_exists
from engine.checkpoints.save import unpack_header
from engine.model.config import ModelConfig
from engine.model.transformer import Transformer, draw_weights
from engine.runtime import library
from engine.tokenizers import END, Tokenizer
from engine.training.objectives import find_objective
from engine.training.run.atomic import read_json, write_json

if TYPE_CHECKING:
    from engine.training.recipe.recipe import Recipe

OF_DATA = frozenset({"vocab_size", "head", "tied", "encoder", "infill"})  # what data and head decide in a model
ROLES = {
    "[PAD]": ("pad_id",), "<pad>": ("pad_id",), "[CLS]": ("cls_id",), "[SEP]": ("sep_id",), "[MASK]": ("mask_id",),
    END: ("end_id",), "</s>": ("end_id", "sep_id"), "<sep>": ("sep_id", "end_id"),
}  # fmt: skip
PARTS_OF_HEAD = ("head.", "pooler.", "next_sentence.", "language.")


# --- Opening ---


def find_opening(name: str) -> library.LoadOptions:
    """Opening of a base, by its name. Raises ValueError for a run or a step that is not here."""
    known = name.startswith(library.RUN) or library.knows(name)
    return library.parse_name(name) if known else library.LoadOptions(name)


def open_base(name: str) -> tuple[OpenedModel, Tokenizer | None]:
    """The config and the tokenizer of a base, without its weights. Raises ValueError where it cannot be opened."""
    with open_files(name) as (opened, beside):
        return opened, open_tokenizer(beside, opened.config)[0]


def settings_of(name: str) -> FolderSettings:
    """config.json and generation_config.json of a base. Raises ValueError as `open_base`."""
    with open_files(name) as (opened, beside):
        return open_settings(opened, beside)


def pad_id_of(name: str) -> int | None:
    """The token that fills up rows of a base, by config.json or by its tokenizer."""
    with open_files(name) as (opened, beside):
        found = open_settings(opened, beside).config.get("pad_token_id")
        if isinstance(found, int):
            return found
        tokenizer = open_tokenizer(beside, opened.config)[0]
        return None if tokenizer is None else tokenizer.pad_id


@contextmanager
def open_files(name: str) -> Iterator[tuple[OpenedModel, CheckpointLocation]]:
    how = find_opening(name)
    try:
        place = find_place(how.source)
        opened = open_model(place, dict(how.config), dict(how.rename))
        with unpack_header(place, opened.weights.metadata) as beside:
            yield opened, beside
    except OSError as error:  # it is not here, or its hub does not give it
        told = f"base must be a checkpoint that is here, and {error} Correct base, or bring it back."
        raise ValueError(told) from None


def resolve_base(name: str, folder: Path | None) -> str:
    """`name`, in place of a former one the present, or where it is a path of `folder`, in which the recipe stands, that
    path from the root.

    Raises ValueError without a folder where it is not known here by that name.
    """
    if not name or library.knows(name) or name.startswith(library.RUN):
        return current_name(name)
    if folder is None:
        raise ValueError(
            f"base must be one of the models here ({', '.join(library.names())}), run:NAME@STEP or a hub's that was "
            f"fetched, got {name!r:.200}; open it first, or train from a recipe's file."
        )
    return str((folder / name).resolve()) if path_exists(folder / name) else name


# --- Checks ---


def check_base(name: str, config: ModelConfig, but: Collection[str] = ("head", "tied")) -> None:
    """Raises ValueError where `config` is not that of a base, `but` for some of it; reads no weights."""
    with open_files(name) as (opened, _):  # its tokenizer takes three times as long to read
        theirs = replace(opened.config, dropout=config.dropout)
    keys = [one.name for one in fields(config) if one.name not in but]
    different = [key for key in keys if getattr(theirs, key) != getattr(config, key)]
    if different:
        wanted = ", ".join(f"{key} = {getattr(theirs, key)}" for key in different)
        raise ValueError(
            f"model must be that of the base {name}, with {wanted}; correct it, leave out [model], or leave out base."
        )


def check_tokenizer(recipe: Recipe) -> None:
    """Raises ValueError where the tokenizer of the recipe's base lacks what its objective needs."""
    if recipe.data.table.pictures:
        return
    opened, tokenizer = open_base(recipe.base)
    tokenizer, rows = require_tokenizer(recipe.base, tokenizer), opened.config.vocab_size
    objective = find_objective(recipe.objective.kind)
    wanted = [*objective.marks, *recipe.data.tokenizer.special_tokens]
    if objective.joins and (separator := getattr(recipe.data.table, "separator", "<sep>")):
        wanted.append(separator)
    ids = {one: mark_id(tokenizer, one) for one in wanted}
    missing = [one for one, id in ids.items() if id is None or id >= rows]  # or it has no embedding
    if missing:
        raise ValueError(
            f"base must have the special tokens {', '.join(missing)}, and {recipe.base} lacks them; give that its "
            "tokens in data.tokenizer.special_tokens and train it again, or choose another base."
        )


def tokenizer_of(name: str) -> Tokenizer:
    """Tokenizer of a base. Raises ValueError where it has none."""
    return require_tokenizer(name, open_base(name)[1])


def require_tokenizer(name: str, tokenizer: Tokenizer | None) -> Tokenizer:
    if tokenizer is None:
        raise ValueError(f"base must be a checkpoint that reads texts, got {name} without a tokenizer; choose another.")
    return tokenizer


def mark_id(tokenizer: Tokenizer, mark: str) -> int | None:
    """Id of a special token by Loupe's name for it, or of the one that has its role under another; None: there is
    none."""
    roles = (getattr(tokenizer, role) for role in ROLES.get(mark, ()))
    ids = (tokenizer.special_tokens.get(mark), *roles)
    return next((id for id in ids if id is not None), None)


# --- Weights ---


@dataclass(frozen=True)
class Transfer:
    """Fate of every tensor of a fine-tuning, by Loupe's names: `taken` over from the base, `new` and drawn at random,
    `left` behind in the base. `family` is what the base was read as, and what the result is saved as if it can be, and
    `checksum` that of the frozen tensors of a training of an adapter."""

    base: str
    taken: tuple[str, ...]
    new: tuple[str, ...]
    left: tuple[str, ...]
    family: str = ""
    checksum: int | None = None

    def __str__(self) -> str:
        lists = {"taken over": (), "new": self.new, "left behind": self.left}
        names = {what: f" ({', '.join(each)})" if each else "" for what, each in lists.items()}
        counts = (len(self.taken), len(self.new), len(self.left))
        told = ", ".join(f"{n} {what}{names[what]}" for n, what in zip(counts, names, strict=True))
        return f"Tensors of the base {self.base}: {told}."


def load_base(name: str) -> Checkpoint:
    how = find_opening(name)
    return load(how.source, config=how.config, rename=how.rename)


def begin_with(config: ModelConfig, name: str, seed: int) -> tuple[Transformer, Transfer]:
    """A model with the weights of a base, of its head too where that is of the same kind and size; the others are drawn
    as `initialise` does. Raises ValueError where the base is made of something else."""
    check_base(name, config)
    checkpoint = load_base(name)
    head, family = checkpoint.config.head.kind, checkpoint.family
    model, theirs = build_without_memory(config), name_tensors(checkpoint.model.state_dict(), head, config)
    del checkpoint  # so that each of its tensors goes once it is copied
    ours = model.state_dict()
    other = head != config.head.kind

    def fits(key: str) -> bool:
        foreign = other and key.startswith("head.")
        return key in theirs and theirs[key].shape == ours[key].shape and not foreign

    taken = tuple(key for key in ours if fits(key))
    new = tuple(key for key in ours if key not in taken)
    if any(not key.startswith(PARTS_OF_HEAD) for key in new):
        raise ValueError(f"base must have every tensor of the model but its head's, and {name} lacks {', '.join(new)}.")
    left = tuple(key for key in theirs if key not in taken)
    state = {key: theirs.pop(key).clone(memory_format=torch.contiguous_format) for key in taken}
    if new:
        state |= {key: drawn for key, drawn in draw_weights(model, seed) if key in new}
        averages = (key for key in new if key.endswith((".mean", ".variance")))  # of a batch norm
        state |= {key: torch.full(ours[key].shape, float(key.endswith(".variance"))) for key in averages}
    model.load_state_dict(state, assign=True)
    return model, Transfer(name, taken, new, left, family)


def write_transfer(folder: Path, transfer: Transfer) -> None:
    lists = {"taken": transfer.taken, "new": transfer.new, "left": transfer.left}
    told: dict[str, object] = {"base": transfer.base, "family": transfer.family, "sentence": str(transfer)}
    if transfer.checksum is not None:  # snapshots will need the base
        how, named = find_opening(transfer.base), transfer.base.startswith(library.RUN)
        told |= {"source": transfer.base if named else str(how.source), "config": how.config, "rename": how.rename}
        told |= {"checksum": transfer.checksum}
    write_json(folder / FILE, told | lists)


def read_transfer(folder: Path) -> Transfer | None:
    """Record of what a run took over from its base; None for a run without one."""
    found = read_json(folder / FILE)
    if found is None:
        return None
    taken, new, left = (tuple(found[name]) for name in ("taken", "new", "left"))
    return Transfer(found["base"], taken, new, left, found["family"], found.get("checksum"))
