"""A checkpoint to take away: its folder as a zip, or one weights file that carries everything in its header."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal
from zipfile import ZIP_STORED, ZipFile

from engine.checkpoints.checkpoint import Checkpoint
from engine.checkpoints.families import NATIVE
from engine.checkpoints.locate import Place
from engine.checkpoints.save import CONFIG, save, write_beside
from engine.checkpoints.weights import LARGEST_HEADER, LARGEST_JSON, write_weights

Form = Literal["folder", "file"]

FILE, PACKED = "loupe.file.", "loupe.packed."  # keys of the metadata: a file's text, or that compressed and in base64
SHORT = 2**16  # characters that stay readable
NAMES = ("config.json", "card.json", "tokenizer.json", "tokenizer_config.json", "preprocessor_config.json")
ROOM = 2**22  # bytes of the header that stay free for the names and shapes of the tensors


def exported(checkpoint: Checkpoint, form: Form, folder: Path) -> Path:
    """Written into `folder`: what `checkpoint.save` writes, as a zip of one folder, or a single `.safetensors`.

    Either opens in Loupe as it was, tokenizer, card and labels included; the folder is one that transformers reads
    wherever it has such a model. Raises ValueError for a tokenizer that is too large for the header of one file.
    """
    name = re.sub(r"[^\w.-]+", "-", checkpoint.name.removeprefix("hub:"), flags=re.ASCII).strip("-.") or "model"
    if form == "file":
        save_file(checkpoint, folder / f"{name}.safetensors")
        return folder / f"{name}.safetensors"
    with TemporaryDirectory(dir=folder) as made:
        save(checkpoint, Path(made) / name)
        with ZipFile(folder / f"{name}.zip", "w", ZIP_STORED) as zipped:
            for file in sorted((Path(made) / name).iterdir()):
                zipped.write(file, f"{name}/{file.name}")
    return folder / f"{name}.zip"


def save_file(checkpoint: Checkpoint, path: Path) -> None:
    """One safetensors file under Loupe's own names, from which `load` has all that a folder would have."""
    with TemporaryDirectory() as made:
        write_beside(checkpoint, Path(made), NATIVE.write_config(checkpoint.config))
        texts = {file.name: file.read_text(encoding="utf-8") for file in sorted(Path(made).iterdir())}
    metadata = {CONFIG: json.dumps(checkpoint.config.to_dict()), **dict(entry(*each) for each in texts.items())}
    size = sum(map(len, metadata.values()))
    if size > LARGEST_HEADER - ROOM:
        raise ValueError(f"its tokenizer takes {size:,} bytes, too many for the header of one file; save the folder.")
    write_weights(path, checkpoint.model.state_dict(), metadata)


def entry(name: str, text: str) -> tuple[str, str]:
    if len(text) <= SHORT:
        return FILE + name, text
    return PACKED + name, b64encode(zlib.compress(text.encode(), 9)).decode()


@contextmanager
def unpacked(place: Place, metadata: Mapping[str, str]) -> Iterator[Place]:
    """`place` with the files that the header of its weights carries in place of those around it, as long as it is used.

    The header comes from others and is not trusted: only the names that `save_file` writes count.
    """
    texts = {name: text for name in NAMES if (text := carried(name, metadata)) is not None}
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


def carried(name: str, metadata: Mapping[str, str]) -> bytes | None:
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
