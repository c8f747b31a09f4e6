"""Saving and exporting a checkpoint, in a published family's format where there is one for it.

`save` writes a folder; `export_checkpoint` a zip of it, or one weights file that carries everything in its header.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copyfile, rmtree
from tempfile import TemporaryDirectory, mkdtemp
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from zipfile import ZIP_STORED, ZipFile

import torch
from torch import Tensor

from engine.checkpoints.assemble import build_without_memory, expected_shapes, find_twins
from engine.checkpoints.canonical import canonical_config
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import DROPPED, Family, Row, invert_rows, translate
from engine.checkpoints.folder_settings import LABELS, PROCESSOR, START, FolderSettings
from engine.checkpoints.generation_config import NAME as GENERATION
from engine.checkpoints.generation_config import READ, write_generation
from engine.checkpoints.locate import ANSWER_KEY, CheckpointLocation
from engine.checkpoints.recomputed import SAVED_FREQUENCIES, SINUSOIDS
from engine.checkpoints.sentence import LENGTHS, PROMPTS, write_modules, write_settings
from engine.checkpoints.weights import KEYS_OF_QUANTISATION, LARGEST_HEADER, LARGEST_JSON, write_weights
from engine.inputs.processors import read_processor
from engine.model.config import ModelConfig
from engine.model.layers.rotary import rotary_frequencies
from engine.model.stored import saved_dtype, stored_state
from engine.model.transformer import Transformer
from engine.tokenizers.files import OF_TOKENIZER

if TYPE_CHECKING:
    from engine.checkpoints.checkpoint import Checkpoint

CONFIG = "loupe.config"  # the metadata key of a weights file that describes its own model
Form = Literal["folder", "file"]

FILE, PACKED = "loupe.file.", "loupe.packed."  # keys of the metadata: a file's text, or that compressed and in base64
SHORT = 2**16  # characters that stay readable
NAMES = ("config.json", GENERATION, "card.json", PROCESSOR, PROMPTS, LENGTHS, *OF_TOKENIZER)
# Keys of config.json that are true of its folder alone: what is saved is in floating point.
OF_ITS_FOLDER = ("_name_or_path", "auto_map", "custom_pipelines", *KEYS_OF_QUANTISATION)
ROOM = 2**22  # bytes of the header that stay free for the names and shapes of the tensors


def save(checkpoint: Checkpoint, folder: Path) -> None:
    """Write a checkpoint to a folder beside `folder`, and move it when it is whole, config.json last."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _write(checkpoint, partial)
        folder.mkdir(exist_ok=True)
        for file in sorted(partial.iterdir(), key=lambda file: file.name == "config.json"):
            if file.is_dir():
                (folder / file.name).mkdir(exist_ok=True)
                for inner in file.iterdir():
                    os.replace(inner, folder / file.name / inner.name)
            else:
                os.replace(file, folder / file.name)
    finally:
        rmtree(partial)


def save_weights(model: Transformer, path: Path) -> None:
    """Write a self-describing file, under Loupe's own names: `load(path)` needs no config.json beside it."""
    write_weights(path, model.state_dict(), {CONFIG: json.dumps(model.config.to_dict())})


def family_for(config: ModelConfig, first: str = "") -> tuple[Family, dict[str, Any]]:
    """Find the first family that expresses `config` exactly, or Loupe's own, and the config.json it writes.

    What makes a vector of a whole text may stand beside the family's files, where these say nothing of it. It also has
    to have a row for every other tensor of such a model. Those called `first` are tried before all others; one
    whose files hold sinusoids is asked for learned positions only where the checkpoint came from such a file.
    """
    learned = config.positions.kind == "learned"
    published = [
        family
        for families in FAMILIES.values()
        for family in families
        if family is not NATIVE and not (learned and family.stores_sinusoids and family.name != first)
    ]
    for family in sorted(published, key=lambda family: family.name != first):
        try:
            theirs = family.write_config(config)
            expected_shapes(family, build_without_memory(config))
        except ValueError:
            continue
        return family, theirs
    if config.vector is not None and (found := family_for(replace(config, vector=None), first))[0] is not NATIVE:
        return found
    return NATIVE, NATIVE.write_config(config)


def has_modules(family: Family, written: Mapping[str, Any], config: ModelConfig) -> bool:
    """True where the vector of a model stands beside its family's files, and not in them."""
    return family is not NATIVE and config.vector is not None and family.read_config(written).vector is None


def _write(checkpoint: Checkpoint, folder: Path) -> None:
    model = checkpoint.model
    family, config = family_for(model.config, checkpoint.family)
    if has_modules(family, config, model.config):
        write_modules(folder, model.config, stored_state(model))
    config = keep_settings(checkpoint, family, config)
    state = stored_state(model)
    if family is NATIVE:
        save_weights(model, folder / "model.safetensors")
    else:
        rows = family.bind(state)
        tensors = dict(translate(state, invert_rows(rows), model.config))
        for row in rows:
            if row.transform.loses:
                tensors |= write_as_stored(row, checkpoint, state, tensors)
        if config.get("tie_word_embeddings") is False:  # then transformers looks for each of two tensors that are one
            tensors |= {one: tensors[other].clone() for one, other in find_twins(family, rows).items()}
        if family.stores_sinusoids and model.config.positions.kind == "sinusoidal":
            tensors |= compute_sinusoids(family, model)
        if model.config.positions.kind == "rotary":
            tensors |= compute_frequencies(family, model)
        kept = checkpoint.report.stored
        tensors |= {name: kept[name].to(saved_dtype(model)) for name in family.kept if name in kept}
        write_weights(folder / "model.safetensors", tensors, {"format": "pt"})
    write_other_files(checkpoint, folder, config)


def write_as_stored(
    row: Row, checkpoint: Checkpoint, state: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The tensors of a row that loses something: as they were opened where the model still holds what was made of them,
    else what is made of it, in the dtype of the model."""
    model, kept = checkpoint.model, checkpoint.report.stored
    dtype = saved_dtype(model)
    if all(name in kept and kept[name].dtype == dtype for name in row.source):
        stored = [kept[name] for name in row.source]
        made = row.read(stored, model.config, dtype)
        if all(torch.equal(one, state[name]) for name, one in zip(row.target, made, strict=True)):
            return dict(zip(row.source, stored, strict=True))
    return {name: tensors[name].to(dtype) for name in row.source}


def compute_sinusoids(family: Family, model: Transformer) -> dict[str, Tensor]:
    """The tables of sinusoids that the family's files hold, which are no tensors of a model here."""
    config, dtype = model.config, saved_dtype(model)
    table = torch.empty(config.context, config.d_model, dtype=dtype)
    return {
        name: SINUSOIDS.compute(table, config, 0).to(dtype)
        for name, ours, *must_equal in family.rows
        if ours is DROPPED and SINUSOIDS in must_equal
    }


def compute_frequencies(family: Family, model: Transformer) -> dict[str, Tensor]:
    """The rotary frequencies that the family's files hold."""
    frequencies, _ = rotary_frequencies(model.config.d_turned, model.config.positions)
    return {name: frequencies for name, _, *must_equal in family.rows if SAVED_FREQUENCIES in must_equal}


def write_other_files(checkpoint: Checkpoint, folder: Path, config: Mapping[str, Any]) -> None:
    """Write all files but the weights; `config` is that of the family in whose format they are."""
    for part in (checkpoint.tokenizer, checkpoint.processor):
        if part is not None:
            part.save(folder)
    write_settings(folder, checkpoint.sentence)
    keep_processor(checkpoint, folder)
    _write_json(folder / "card.json", checkpoint.card)
    special, settings = special_ids(checkpoint), checkpoint.settings
    unchanged, generation = is_unchanged(checkpoint), settings.generation
    asked = write_generation(checkpoint.writing)
    if unchanged and generation is not None:
        _write_json(folder / GENERATION, generation)
    elif asked or generation:  # beside it transformers reads nothing about writing in config.json
        start = {} if checkpoint.config.encoder is None else {START: checkpoint.config.encoder.start}
        kept = {name: value for name, value in (generation or {}).items() if name not in READ}
        _write_json(folder / GENERATION, {**kept, **special, **start, **asked})
    write_config(checkpoint, folder, config)


def keep_processor(checkpoint: Checkpoint, folder: Path) -> None:
    """Write the file of the processor as it was read, where that makes the same of a picture."""
    theirs, ours = checkpoint.settings.processor, checkpoint.processor
    if theirs is None or ours is None:
        return
    _write_json(folder / PROCESSOR, theirs)
    try:
        same = read_processor(folder, checkpoint.settings.config) == ours
    except ValueError:
        same = False
    if not same:
        ours.save(folder)


def write_config(checkpoint: Checkpoint, folder: Path, config: Mapping[str, Any]) -> None:
    """Write config.json, with the names of the classes and the type of the weights."""
    _write_json(folder / "config.json", {**config, **class_names(checkpoint, config), **dtype_entry(checkpoint)})


def keep_settings(checkpoint: Checkpoint, family: Family, own: Mapping[str, Any]) -> dict[str, Any]:
    """config.json as it was opened, where it still describes the model, else with what has changed: `own` is what the
    family writes of it."""
    special, unchanged = special_ids(checkpoint), is_unchanged(checkpoint)
    ends = {} if unchanged or not checkpoint.end_ids else {"eos_token_id": special["eos_token_id"]}
    filled = {**special, **{name: value for name, value in own.items() if value is not None or not special.get(name)}}
    theirs = {name: value for name, value in checkpoint.settings.config.items() if name not in OF_ITS_FOLDER}
    if not theirs or family is NATIVE or family.name != checkpoint.family:
        return {**filled, **ends}
    wanted = canonical_config(family.read_config(own))
    whole = {} if checkpoint.settings.written else filled  # what was inferred from tensors says little
    named = {name: own[name] for name in ("model_type", "architectures")}
    without_labels = {name: value for name, value in theirs.items() if name not in LABELS}
    tokens = {name: value for name in special if (value := theirs.get(name, filled[name])) is not None}
    for kept in ({**whole, **theirs, **named}, {**without_labels, **own, **tokens}):
        try:
            if canonical_config(family.read_config({**kept, **start_of(checkpoint)})) == wanted:
                return {**kept, **ends}
        except ValueError:
            continue
    return {**filled, **ends}


def start_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The start token of generation_config.json, which counts before that of config.json."""
    generation = checkpoint.settings.generation or {}
    return {START: generation[START]} if generation.get(START) is not None else {}


def is_unchanged(checkpoint: Checkpoint) -> bool:
    """True where a checkpoint writes, and ends, as the files say that it was opened from."""
    settings, config = checkpoint.settings, checkpoint.config
    ends = settings.read_end_ids(config) or checkpoint.end_ids
    return (settings.read_writing(config)[0], ends) == (checkpoint.writing, checkpoint.end_ids)


def special_ids(checkpoint: Checkpoint) -> dict[str, Any]:
    """The tokens that transformers wants to know."""
    end = list(checkpoint.end_ids)
    pad = checkpoint.tokenizer.pad_id if checkpoint.tokenizer is not None else None
    return {"bos_token_id": None, "eos_token_id": end[0] if len(end) == 1 else end or None, "pad_token_id": pad}


def class_names(checkpoint: Checkpoint, config: Mapping[str, Any]) -> dict[str, Any]:
    """Names of the classes, where `config` does not have them already."""
    classes = checkpoint.config.head.classes
    there = FolderSettings(config).read_labels(checkpoint.config) if config.get("label2id") else None
    if not classes or there == checkpoint.labels:
        return {}
    names = checkpoint.labels or [f"LABEL_{i}" for i in range(classes)]
    by_id = {str(i): name for i, name in enumerate(names)}
    return {"id2label": by_id, "label2id": {name: int(i) for i, name in by_id.items()}}


def dtype_entry(checkpoint: Checkpoint) -> dict[str, str]:
    """Type of the weights that are written, under the name that config.json has for it."""
    key = "torch_dtype" if "torch_dtype" in checkpoint.settings.config else "dtype"
    return {key: str(saved_dtype(checkpoint.model)).removeprefix("torch.")}


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def name_export(name: str) -> str:
    """Name of the file, and of the folder in it, that a checkpoint is exported as."""
    return re.sub(r"[^\w.-]+", "-", name.removeprefix("hub:"), flags=re.ASCII).strip("-.") or "model"


def export_checkpoint(checkpoint: Checkpoint, form: Form, folder: Path) -> Path:
    """Write into `folder` what `checkpoint.save` writes, as a zip of one folder, or a single `.safetensors`.

    Either opens in Loupe as it was, tokenizer, card and labels included; the folder is one that transformers reads
    wherever it has such a model, and has the answer key of a compiled one. Raises ValueError for a tokenizer that is
    too large for the header of one file.
    """
    name = name_export(checkpoint.name)
    if form == "file":
        save_file(checkpoint, folder / f"{name}.safetensors")
        return folder / f"{name}.safetensors"
    with TemporaryDirectory(dir=folder) as made:
        save(checkpoint, Path(made) / name)
        if checkpoint.source is not None and (checkpoint.source / ANSWER_KEY).is_file():
            copyfile(checkpoint.source / ANSWER_KEY, Path(made) / name / ANSWER_KEY)
        zip_folder(Path(made), folder / f"{name}.zip")
    return folder / f"{name}.zip"


def zip_folder(folder: Path, target: Path) -> None:
    """Write the files in the folders of `folder` to a zip, as they are."""
    with ZipFile(target, "w", ZIP_STORED) as zipped:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            zipped.write(file, file.relative_to(folder))


def save_file(checkpoint: Checkpoint, path: Path) -> None:
    """Write one safetensors file under Loupe's own names, which holds all that a folder would."""
    with TemporaryDirectory() as made:
        config = keep_settings(checkpoint, NATIVE, NATIVE.write_config(checkpoint.config))
        write_other_files(checkpoint, Path(made), config)
        files = {file.name: file.read_bytes() for file in sorted(Path(made).iterdir()) if file.is_file()}
    metadata = {
        CONFIG: json.dumps(checkpoint.config.to_dict()),
        **dict(metadata_entry(name, data) for name, data in files.items() if name in NAMES),
    }
    size = sum(map(len, metadata.values()))
    if size > LARGEST_HEADER - ROOM:
        raise ValueError(f"its tokenizer takes {size:,} bytes, too many for the header of one file; save the folder.")
    write_weights(path, checkpoint.model.state_dict(), metadata)


def metadata_entry(name: str, data: bytes) -> tuple[str, str]:
    if len(data) <= SHORT and name.endswith((".json", ".txt", ".jinja")):
        return FILE + name, data.decode("utf-8")
    return PACKED + name, b64encode(zlib.compress(data, 9)).decode()


@contextmanager
def unpack_header(
    place: CheckpointLocation, metadata: Mapping[str, str], beside: Mapping[str, bytes] = MappingProxyType({})
) -> Iterator[CheckpointLocation]:
    """Replace the files around `place` by those that the header of its weights carries, or by those `beside` it, as
    long as it is used.

    The header comes from others and is not trusted: only the names that `save_file` writes count.
    """
    texts = {**beside, **{name: text for name in NAMES if (text := read_carried_file(name, metadata)) is not None}}
    if not texts:
        yield place
        return
    with TemporaryDirectory(prefix="loupe-") as made:
        for name, text in texts.items():
            (Path(made) / name).write_bytes(text)
        try:
            yield replace(place, folders=(Path(made),))
        except ValueError as error:  # names a file that nobody can look into
            raise ValueError(str(error).replace(made, f"the header of {place.weights.name}")) from error


def read_carried_file(name: str, metadata: Mapping[str, str]) -> bytes | None:
    if FILE + name in metadata:
        return metadata[FILE + name].encode("utf-8", "surrogatepass")
    if PACKED + name not in metadata:
        return None
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(b64decode(metadata[PACKED + name], validate=True), LARGEST_JSON)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"the {name} in the header of the weights does not unpack ({error}).") from None
    if not reader.eof:
        raise ValueError(f"the {name} in the header of the weights must be whole, and at most {LARGEST_JSON:,} bytes.")
    return text
