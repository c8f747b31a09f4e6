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
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, Literal
from zipfile import ZIP_STORED, ZipFile

import torch
from torch import Tensor

from engine.checkpoints.assemble import build_without_memory, expected_shapes, find_twins
from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.families import FAMILIES, NATIVE
from engine.checkpoints.family import DROPPED, Family, invert_rows, translate
from engine.checkpoints.generation_config import NAME as GENERATION
from engine.checkpoints.generation_config import write_generation
from engine.checkpoints.locate import Place
from engine.checkpoints.recomputed import SINUSOIDS
from engine.checkpoints.weights import LARGEST_HEADER, LARGEST_JSON, write_weights
from engine.model.config import ModelConfig
from engine.model.transformer import Transformer

CONFIG = "loupe.config"  # the metadata key of a weights file that describes its own model
Form = Literal["folder", "file"]

FILE, PACKED = "loupe.file.", "loupe.packed."  # keys of the metadata: a file's text, or that compressed and in base64
SHORT = 2**16  # characters that stay readable
NAMES = ("config.json", GENERATION, "card.json", "tokenizer.json", "tokenizer_config.json", "preprocessor_config.json")
ROOM = 2**22  # bytes of the header that stay free for the names and shapes of the tensors


def save(checkpoint: Checkpoint, folder: Path) -> None:
    """Write a checkpoint to a folder beside `folder`, and move it when it is whole, config.json last."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _write(checkpoint, partial)
        folder.mkdir(exist_ok=True)
        for file in sorted(partial.iterdir(), key=lambda file: file.name == "config.json"):
            os.replace(file, folder / file.name)
    finally:
        rmtree(partial)


def save_weights(model: Transformer, path: Path) -> None:
    """Write a self-describing file, under Loupe's own names: `load(path)` needs no config.json beside it."""
    write_weights(path, model.state_dict(), {CONFIG: json.dumps(model.config.to_dict())})


def family_for(config: ModelConfig, first: str = "") -> tuple[Family, dict[str, Any]]:
    """Find the first family that expresses `config` exactly, or Loupe's own, and the config.json it writes.

    It also has to have a row for every tensor of such a model. Those called `first` are tried before all others; one
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
    return NATIVE, NATIVE.write_config(config)


def _write(checkpoint: Checkpoint, folder: Path) -> None:
    model = checkpoint.model
    family, config = family_for(model.config, checkpoint.family)
    state = model.state_dict()
    if family is NATIVE:
        save_weights(model, folder / "model.safetensors")
    else:
        rows = family.bind(state)
        tensors = dict(translate(state, invert_rows(rows), model.config))
        if config.get("tie_word_embeddings") is False:  # then transformers looks for each of two tensors that are one
            tensors |= {one: tensors[other].clone() for one, other in find_twins(family, rows).items()}
        if family.stores_sinusoids and model.config.positions.kind == "sinusoidal":
            tensors |= compute_sinusoids(family, model)
        write_weights(folder / "model.safetensors", tensors, {"format": "pt"})
    write_other_files(checkpoint, folder, config)


def compute_sinusoids(family: Family, model: Transformer) -> dict[str, Tensor]:
    """The tables of sinusoids that the family's files hold, which are no tensors of a model here."""
    config = model.config
    table = torch.empty(config.context, config.d_model, dtype=model.dtype)
    return {
        name: SINUSOIDS.compute(table, config, 0).to(model.dtype)
        for name, ours, *must_equal in family.rows
        if ours is DROPPED and SINUSOIDS in must_equal
    }


def write_other_files(checkpoint: Checkpoint, folder: Path, config: Mapping[str, Any]) -> None:
    """Write all files but the weights; `config` is that of the family in whose format they are."""
    for part in (checkpoint.tokenizer, checkpoint.processor):
        if part is not None:
            part.save(folder)
    named = {**class_names(checkpoint), **dtype_entry(checkpoint.model)}
    _write_json(folder / "card.json", checkpoint.card)
    asked = write_generation(checkpoint.writing)
    if asked:  # beside it transformers reads nothing about writing in config.json
        start = {} if checkpoint.config.encoder is None else {"decoder_start_token_id": checkpoint.config.encoder.start}
        _write_json(folder / GENERATION, {**special_ids(checkpoint), **start, **asked})
    special = special_ids(checkpoint)
    own = {name: value for name, value in config.items() if value is not None or special.get(name) is None}
    _write_json(folder / "config.json", {**special, **own, **named})


def special_ids(checkpoint: Checkpoint) -> dict[str, Any]:
    """The tokens that transformers wants to know."""
    end = list(checkpoint.end_ids)
    pad = checkpoint.tokenizer.pad_id if checkpoint.tokenizer is not None else None
    return {"bos_token_id": None, "eos_token_id": end[0] if len(end) == 1 else end or None, "pad_token_id": pad}


def class_names(checkpoint: Checkpoint) -> dict[str, Any]:
    classes = checkpoint.config.head.classes
    if not classes:
        return {}
    names = checkpoint.labels or [f"LABEL_{i}" for i in range(classes)]
    by_id = {str(i): name for i, name in enumerate(names)}
    return {"id2label": by_id, "label2id": {name: int(i) for i, name in by_id.items()}}


def dtype_entry(model: Transformer) -> dict[str, str]:
    return {"dtype": str(model.dtype).removeprefix("torch.")}


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def export_checkpoint(checkpoint: Checkpoint, form: Form, folder: Path) -> Path:
    """Write into `folder` what `checkpoint.save` writes, as a zip of one folder, or a single `.safetensors`.

    Either opens in Loupe as it was, tokenizer, card and labels included; the folder is one that transformers reads
    wherever it has such a model. Raises ValueError for a tokenizer that is too large for the header of one file.
    """
    name = re.sub(r"[^\w.-]+", "-", checkpoint.name.removeprefix("hub:"), flags=re.ASCII).strip("-.") or "model"
    if form == "file":
        save_file(checkpoint, folder / f"{name}.safetensors")
        return folder / f"{name}.safetensors"
    with TemporaryDirectory(dir=folder) as made:
        save(checkpoint, Path(made) / name)
        zip_folder(Path(made), folder / f"{name}.zip")
    return folder / f"{name}.zip"


def zip_folder(folder: Path, target: Path) -> None:
    """Write the files in the folders of `folder` to a zip, as they are."""
    with ZipFile(target, "w", ZIP_STORED) as zipped:
        for file in sorted(folder.glob("*/*")):
            zipped.write(file, file.relative_to(folder))


def save_file(checkpoint: Checkpoint, path: Path) -> None:
    """Write one safetensors file under Loupe's own names, which holds all that a folder would."""
    with TemporaryDirectory() as made:
        write_other_files(checkpoint, Path(made), NATIVE.write_config(checkpoint.config))
        texts = {file.name: file.read_text(encoding="utf-8") for file in sorted(Path(made).iterdir())}
    metadata = {
        CONFIG: json.dumps(checkpoint.config.to_dict()),
        **dict(metadata_entry(*each) for each in texts.items()),
    }
    size = sum(map(len, metadata.values()))
    if size > LARGEST_HEADER - ROOM:
        raise ValueError(f"its tokenizer takes {size:,} bytes, too many for the header of one file; save the folder.")
    write_weights(path, checkpoint.model.state_dict(), metadata)


def metadata_entry(name: str, text: str) -> tuple[str, str]:
    if len(text) <= SHORT:
        return FILE + name, text
    return PACKED + name, b64encode(zlib.compress(text.encode(), 9)).decode()


@contextmanager
def unpack_header(place: Place, metadata: Mapping[str, str]) -> Iterator[Place]:
    """Replace the files around `place` by those that the header of its weights carries, as long as it is used.

    The header comes from others and is not trusted: only the names that `save_file` writes count.
    """
    texts = {name: text for name in NAMES if (text := read_carried_file(name, metadata)) is not None}
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
