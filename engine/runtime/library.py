"""Checkpoints and traces shared by everybody who asks for the same one, within a budget of memory.

A checkpoint has a name: those of `names()` everybody sees, and a former one of them is read as the present; a hub's is
its name on the hub, once it is on this machine; a step of a training run is "run:NAME@STEP", and "run:NAME" is the last
that it kept; what a person opens otherwise gets one that nobody guesses, and whoever has it has the checkpoint.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import torch
from torch import Tensor

from engine.budget import budget
from engine.characters import cut_characters, keep_words
from engine.checkpoints import Checkpoint, load, run_steps, shipped_names
from engine.checkpoints.adapters.config import BASE, find_adapter_weights, is_adapter, name_base, read_config
from engine.checkpoints.adapters.config import CONFIG as ADAPTER_CONFIG
from engine.checkpoints.adapters.read import read_adapter
from engine.checkpoints.locate import (
    WEIGHTS,
    CheckpointLocation,
    current_name,
    current_path,
    locate,
    shipped_folder,
)
from engine.checkpoints.towers import MARK, TOWER, is_pair
from engine.checkpoints.weights import read_json
from engine.edits import Edit, keep_adapter
from engine.model.from_dict import build
from engine.model.layers.lora import Adapter
from engine.model.stored import StoredTensor, as_stored
from engine.model.transformer import Transformer
from engine.places import ADAPTERS
from engine.runtime import openings
from engine.runtime.device import place
from engine.runtime.lru_cache import LruCache
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from engine.work_limit import suspend_limit

HUB, RUN = "hub:", run_steps.RUN
ANSWERS_MEMORY = 64 * 2**20  # bytes
LONGEST = 40  # letters of a title


@dataclass(frozen=True)
class LoadOptions:
    """Arguments of `engine.load`: `dtype` None keeps the numbers as stored, `config` corrects config.json, `rename`
    maps the names of tensors; `device` is where it is computed, "" as the setting says.

    `folder` is deleted with the last of its openings. What was `uploaded` comes from others, and has a folder here or
    in another process of the server.
    """

    source: str | Path
    dtype: torch.dtype | None = torch.float32
    config: Mapping[str, Any] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    folder: TemporaryDirectory[str] | None = None
    uploaded: bool = False
    device: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "uploaded", self.uploaded or self.folder is not None)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for what opens to the same model; a file that was written again is another one."""
        given = json.dumps(dict(self.config), sort_keys=True)
        return str(self.source), str(self.dtype), given, tuple(self.rename.items()), self.device, _stamp(self.source)

    @property
    def record(self) -> dict[str, Any]:
        """All but the folder, as JSON has it, and which version of the file; `from_record` reads it."""
        named = {"source": str(self.source), "dtype": self.dtype and str(self.dtype).removeprefix("torch.")}
        given = {"config": dict(self.config), "rename": dict(self.rename), "title": self.title}
        more: dict[str, Any] = {"uploaded": True} if self.uploaded else {}
        more |= {"device": self.device} if self.device else {}
        return {**named, **given, **more, "stamp": list(_stamp(self.source))}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> LoadOptions:
        """Raises ValueError for one that is damaged."""
        kept: Record = build(Record, record)
        dtype = kept.dtype and getattr(torch, kept.dtype, kept.dtype)
        if not isinstance(dtype, torch.dtype | None):
            raise ValueError(f"dtype must be one of torch's, got {dtype!r:.80}.")
        given = kept.config, kept.rename, kept.title
        return cls(Path(kept.source), dtype, *given, uploaded=kept.uploaded, device=kept.device)


@dataclass(frozen=True)
class Record:
    """What is kept of a `LoadOptions`, as JSON has it; `stamp` is the time and the size of the weights file."""

    source: str
    dtype: str | None
    config: Mapping[str, Any]
    rename: Mapping[str, str]
    title: str
    uploaded: bool = False
    device: str = ""
    stamp: tuple[int, ...] = ()


def names(*more: str) -> list[str]:
    """The shipped checkpoints, the folders a person put into the models folder, then those of `more` that are known."""
    folder = Path(budget.models_folder)
    own = sorted(p.name for p in folder.iterdir() if _holds_a_model(p)) if folder.is_dir() else []
    own = [name for one in own for name in (one, *([f"{one}{MARK}"] if has_two_towers(folder / one) else []))]
    public = [*shipped_names(), *(name for name in own if shipped_folder(name) is None)]
    others = dict.fromkeys(map(current_name, more))
    return [*public, *(name for name in others if name not in public and knows(name))]


def knows(name: str) -> bool:
    """True if `checkpoint` finds it."""
    if name.endswith(MARK):
        return knows(name.removesuffix(MARK)) and has_two_towers(parse_name(name.removesuffix(MARK)).source)
    known = current_name(name) in names() or _find_offer(name) is not None
    return known or hub_folder(name) is not None or run_weights(name) is not None


def parse_name(name: str) -> LoadOptions:
    """Parses how a checkpoint of that name is opened. Raises ValueError for any other, so that a name is never a
    path."""
    if name.endswith(MARK):
        whole = parse_name(name.removesuffix(MARK))
        return replace(whole, config={**whole.config, TOWER: "text"}, title=name)
    name = current_name(name)
    offered = _find_offer(name)
    if offered is not None:
        return offered
    if name in shipped_names():
        return LoadOptions(name, title=name)
    if name in names():
        return LoadOptions(Path(budget.models_folder) / name, title=name)
    if (folder := hub_folder(name)) is not None:
        return LoadOptions(folder, title=name)
    if (file := run_weights(name)) is not None:
        return LoadOptions(file, title=name)
    if name.startswith(RUN):
        raise ValueError(f"{absent(name)}.")
    if "~" in name or is_path(name):
        raise ValueError(f"{absent(name)}.")
    raise ValueError(f"there is no model called {name[:200]!r}; the models here are {', '.join(names())}.")


def offer(given: LoadOptions, name: str = "") -> str:
    """A name for what may be opened so, the same one for the same again, or `name`, which nobody else may guess. It is
    not opened yet.

    Its title, then 40 random bits: it stands in links. Those to a path, which nobody deletes with the server, are kept;
    those to an upload are told to the other processes of the server.
    """
    known = _names.get(given.key)
    if known is not None and _offers.find(known) is not None:
        return known
    passing = given.uploaded or Path(given.source).is_relative_to(budget.runs_folder)  # steps of a run have names
    record = None if passing else given.record
    title = cut_characters(keep_words(given.title, ".-", "-").strip("-."), LONGEST) or "model"
    name = name or (record and openings.find_name(budget.runs_folder, record)) or f"{title}~{secrets.token_hex(5)}"
    _offers.keep(name, given, _disk(given.folder))
    _names[given.key] = name
    if record:
        openings.keep_path(budget.runs_folder, name, record)
    if given.uploaded and budget.uploads_folder:
        openings.keep_path(budget.uploads_folder, name, given.record)
    return name


def rename_with(name: str, **changes: Any) -> str:
    """The name of the same checkpoint opened otherwise: with another `dtype`, with a corrected `config`."""
    after = replace(parse_name(name), **changes)
    plain = after.title  # of one that everybody sees, its name
    return plain if knows(plain) and parse_name(plain).key == after.key else offer(after)


def checkpoint_place(name: str) -> CheckpointLocation:
    """Place of the files of a checkpoint. Raises as `parse_name` does, and FileNotFoundError."""
    return locate(parse_name(name).source)


def hub_folder(name: str) -> Path | None:
    """Folder, or GGUF file, of a hub's checkpoint that was fetched to this machine; nothing is asked of a network."""
    if not name.startswith(HUB):
        return None
    from engine.checkpoints.hub import cached_checkpoint, parse  # what speaks to a network is slow to import

    try:
        folder = cached_checkpoint(parse(name))
    except ValueError:
        return None
    return folder if folder is not None and (folder.is_file() or _holds_a_model(folder)) else None


def has_two_towers(source: str | Path) -> bool:
    """True for a folder of a model for pictures and of one for texts."""
    config = Path(source) / "config.json"
    try:
        return _reads_as_pair(config, config.stat().st_mtime_ns)
    except OSError:
        return False


@lru_cache(maxsize=256)
def _reads_as_pair(config: Path, changed: int) -> bool:
    """Tells it by config.json, which was `changed` last at that time (ns)."""
    try:
        return is_pair(read_json(config))
    except ValueError:
        return False


def other_tower(name: str) -> str:
    """Name of the tower of texts of the pair whose tower of pictures has this name, and the other way round."""
    return name.removesuffix(MARK) if name.endswith(MARK) else f"{name}{MARK}"


def run_weights(name: str) -> Path | None:
    """The file of a training run's step, or of its newest, which while it trains is another one from time to time."""
    if not name.startswith(RUN):
        return None
    return run_steps.weights(name, budget.runs_folder)


def kept_runs() -> dict[str, list[int]]:
    """Steps whose weights the training runs kept, by the run's name; a run without any is left out."""
    found = {run.name: run_steps.kept_steps(run) for run in run_steps.run_folders(budget.runs_folder)}
    return {name: steps for name, steps in found.items() if steps}


def kept_steps(run: str) -> list[int]:
    """Steps whose weights the run of this name kept, in order."""
    known = run in {one.name for one in run_steps.run_folders(budget.runs_folder)}
    return run_steps.kept_steps(Path(budget.runs_folder) / run) if known else []


def is_path(name: str) -> bool:
    return not name.startswith((HUB, RUN)) and (name.startswith((".", "~")) or "/" in name or "\\" in name)


def absent(name: str) -> str:
    """Why a name leads to no checkpoint, a part of a sentence."""
    if is_path(name):
        return (
            f"links and menus open no paths, and {name[:80]!r} is one: type it on the page Open a model, into the "
            "field for another one"
        )
    if "~" in name and openings.find_path(budget.runs_folder, name):
        return f"the files that {name[:80]!r} was opened from are not there any more: put them back, or open others"
    if "~" in name:
        return f"the model {name[:80]!r} is not here any more: upload its files again, or open their path"
    if not name.startswith(RUN):
        return f"the model {name[:80]!r} is not here"
    return run_steps.absent(name, budget.runs_folder)


def version(name: str) -> tuple[object, ...]:
    """Another one once something else is opened under that name. Of all but runs it is always the same."""
    file = run_weights(name)
    return () if file is None else (str(file), *_stamp(file))


def with_known_base(how: LoadOptions) -> LoadOptions:
    """Restricts an uploaded adapter, which comes from others, to a base that is named and never a path. Raises
    ValueError for a base that is no name here."""
    place = locate(how.source)
    if not how.uploaded or not is_adapter(place):
        return how
    named = how.config.get(BASE) or read_json(place.weights.with_name(ADAPTER_CONFIG)).get(BASE)
    public = name_base(str(named))
    shipped = next((name for name in shipped_names() if name_base(name) == public), str(named))
    base = next((name for name in (shipped, str(named), f"{HUB}{named}") if knows(name)), None)
    if base is None:
        raise ValueError(
            f"the adapter must name its base as one of the models here ({', '.join(names())}, or a hub's that was "
            f"opened), got {named!r:.200}; open the base first, and give its name as {BASE}."
        )
    return replace(how, config={**how.config, BASE: str(parse_name(base).source)})


def name_adapters(opened: Checkpoint, how: LoadOptions) -> Checkpoint:
    """The folder of an upload or of a hub says nothing: their adapters are called as they were opened."""
    if not how.uploaded and not how.title.startswith(HUB):
        return opened
    title = how.title.removeprefix(HUB).rpartition("/")[2]
    return replace(opened, adapters=tuple(replace(adapter, name=title) for adapter in opened.adapters))


def adapter_folder(key: str) -> Path | None:
    """The folder of an adapter that was opened here, None of one that was uploaded, whose folder is the server's."""
    return _adapter_folders.get(key)


def adapters_for(name: str) -> list[Adapter]:
    """The adapters that come with Loupe, and that finished training runs made, for the checkpoint of this name, their
    base; those that do not read are left out."""
    found = []
    shipped = sorted(ADAPTERS.glob(f"*/{ADAPTER_CONFIG}"))
    for config in (*shipped, *sorted(Path(budget.runs_folder).glob(f"*/adapter/*/{ADAPTER_CONFIG}"))):
        with suppress(ValueError, OSError):
            if name_base(_read_base(config, config.stat().st_mtime_ns)) != name_base(name):
                continue
            folder = config.parent.resolve()
            key = (name, str(folder), *_stamp(folder))
            adapter = _trained_adapters.find(key) or read_adapter(folder, checkpoint(name))
            found.append(_trained_adapters.keep(key, adapter, adapter.bytes))
            _adapter_folders[adapter.key] = folder
    return found


@lru_cache(maxsize=256)
def _read_base(config: Path, changed: int) -> str:
    """Name of the base in an adapter's config file; `changed`, the time of its last change (ns), is part of the cache
    key."""
    return read_config(config).base


class Checkpoints:
    """Checkpoints by name, opened once and shared, within a budget of bytes of weights."""

    def __init__(self, budget: int | Callable[[], int]) -> None:
        self._shelf: LruCache[Checkpoint] = LruCache(budget)
        self._opening: dict[str, Lock] = {}

    def __call__(self, name: str) -> Checkpoint:
        """Raises ValueError where no checkpoint is called so, and as `engine.load` does."""
        name = current_name(name)
        key = (name, *version(name))
        found = self._shelf.find(key)
        if found is not None:
            return found
        how = parse_name(name)
        with suspend_limit(), self._opening.setdefault(name, Lock()):  # however many ask at once
            found = self._shelf.find(key)
            if found is None:
                how = with_known_base(how)
                opened = load(how.source, dtype=how.dtype, config=how.config, rename=how.rename)
                opened = place(name_adapters(opened, how), how.device or budget.device)
                folder = locate(how.source).weights.parent
                keys = [keep_adapter(adapter) for adapter in opened.adapters]
                if not how.uploaded and find_adapter_weights(folder) is not None:
                    _adapter_folders.update(dict.fromkeys(keys, folder.resolve()))
                found = self._shelf.keep(key, opened, weight(opened))
        return found

    def has(self, name: str) -> bool:
        """True if it is open already."""
        name = current_name(name)
        return self._shelf.find((name, *version(name))) is not None

    def unconfirmed_keys(self, name: str) -> tuple[str, ...]:
        """Keys of config.json that neither a file nor a person has said of a checkpoint that is open, and that no
        tensor shows."""
        if not knows(name) or not self.has(name):
            return ()
        return tuple(one.key for one in self(name).report.assumed if not one.certain)

    def cache_clear(self) -> None:
        self._shelf.clear()


def weight(checkpoint: Checkpoint) -> int:
    """Bytes of memory that the numbers of a model take; those that stay in their file take none."""
    return sum(
        as_stored(parameter).nbytes
        for parameter in checkpoint.model.parameters()
        if not (isinstance(parameter, StoredTensor) and parameter.mapped)
    )


class Answers:
    """Cache of what was computed of a checkpoint, as bytes, by what was asked."""

    def __init__(self, budget: int) -> None:
        self._shelf: LruCache[bytes] = LruCache(budget)

    def answer(self, asked: Mapping[str, Any], make: Callable[[], bytes]) -> bytes:
        """`asked` names the checkpoint, as "checkpoint" or "model"; what `make` raises is not kept."""
        named = str(asked.get("checkpoint", asked.get("model", "")))
        key = json.dumps([dict(asked), version(named)], sort_keys=True)
        found = self._shelf.find(key)
        if found is None:
            found = make()
            found = self._shelf.keep(key, found, len(found))
        return found


class Traces:
    """Full traces by what they were made from; once they hold more than `budget` bytes, those not used longest go."""

    def __init__(self, budget: int | Callable[[], int]) -> None:
        self.shelf: LruCache[Any] = LruCache(budget)

    def trace(
        self,
        name: str,
        read: Encoding | Tensor,
        edits: Sequence[Edit] = (),
        target: Encoding | None = None,
        base: Trace | None = None,
    ) -> Trace:
        """The trace of a text or picture through a checkpoint of this library, from `base`, a run on the same text;
        None: from its plain run where that is kept.

        `target` is what the decoder of an encoder-decoder reads.
        """
        model = checkpoint(name).model
        key = run_key(model, read, edits, target)
        found: Trace | None = self.shelf.find(key)
        if found is None:
            base = self.shelf.find(run_key(model, read, (), target)) if base is None else base
            found = run(model, read, edits=edits, base=base, target=target)
            found = self.shelf.keep(key, found, found.bytes)
        return found


def run_key(
    model: Transformer, read: Encoding | Tensor, edits: Sequence[Edit], target: Encoding | None
) -> tuple[object, ...]:
    """Key of a run. What a run keeps holds its model's hooks on: no other has their id meanwhile."""
    what = (read.numpy().tobytes(), tuple(read.shape)) if isinstance(read, Tensor) else read
    return id(model.hooks), what, target, tuple(map(repr, edits))


def _find_offer(name: str) -> LoadOptions | None:
    """Opening that was offered by that name, if it is still there: also a path from before the server was started, or
    an upload to another process of the server."""
    found = _offers.find(name)
    if found is not None and (found.folder or not found.uploaded or Path(found.source).exists()):
        return found
    for folder in (budget.runs_folder, budget.uploads_folder):
        kept = openings.find_path(folder, name) if folder and "~" in name else None
        if kept and (again := _open_record(kept)):
            _names[again.key] = name
            return _offers.keep(name, again, 0)
    return None


def _open_record(kept: Mapping[str, Any]) -> LoadOptions | None:
    """None where what it names is not there any more, or it is damaged."""
    try:
        source = current_path(Path(kept["source"]))
        return LoadOptions.from_record({**kept, "source": str(source)}) if source.exists() else None
    except (ValueError, OSError):  # no record, or no path
        return None


def _holds_a_model(folder: Path) -> bool:
    return any((folder / file).is_file() for file in ("config.json", *WEIGHTS))


def _stamp(source: str | Path) -> tuple[int, int]:
    """Time and size of the weights file; zeros where there is none."""
    try:
        stat = locate(source).weights.stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def _disk(folder: TemporaryDirectory[str] | None) -> int:
    return 0 if folder is None else sum(p.stat().st_size for p in Path(folder.name).rglob("*") if p.is_file())


_offers: LruCache[LoadOptions] = LruCache(lambda: budget.uploads_disk)
_names: dict[tuple[object, ...], str] = {}
_adapter_folders: dict[str, Path] = {}
_trained_adapters: LruCache[Adapter] = LruCache(lambda: budget.adapters_memory)
checkpoint = Checkpoints(lambda: budget.models_memory)
traces = Traces(lambda: budget.trace_memory)
answers = Answers(ANSWERS_MEMORY)
