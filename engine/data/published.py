"""Real text that others have published: files outside the project, of which none of their sentences goes into it.

A recipe names one as "corpora:tales.txt.xz", and it lies in the folder that LOUPE_CORPORA names, packed or not.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from engine.budget import budget

PREFIX, PACKED = "corpora:", ".xz"


@dataclass(frozen=True)
class Published:
    """`form` is how such a file is laid out, and `source` where it can be had."""

    form: str
    source: str
    licence: str


KNOWN = {
    "tales.txt": Published(
        "English tales in prose, a paragraph a line, an empty line between books",
        "Project Gutenberg (gutenberg.org), 48 books of fairy tales, myths and children's stories of before 1929",
        "public domain in the USA",
    ),
    "eng-fra.tsv": Published(
        "an English sentence a line, a tab, its French translation",
        "Tatoeba (tatoeba.org), by way of manythings.org/anki",
        "CC BY 2.0 FR",
    ),
}


def check_named(table: str, **files: str) -> None:
    """Raises ValueError for a file that is named and is none of these."""
    for name, file in files.items():
        if file and not file.startswith(PREFIX):
            raise ValueError(f'{table}.{name} must be "{PREFIX}" and the name of a file, got {file!r:.80}.')


def locate(path: str) -> Path:
    """The file that a recipe names. Raises ValueError, in a sentence that says where it can be had, for one of
    LOUPE_CORPORA that is not there."""
    if not path.startswith(PREFIX):
        return Path(path)
    name, folder = path.removeprefix(PREFIX), budget.corpora_folder
    if Path(name).name != name:
        raise ValueError(f"{PREFIX} must be followed by the name of a file without folders, got {name[:80]!r}.")
    found = [Path(folder) / one for one in (name, name.removesuffix(PACKED)) if folder]
    for file in found:
        if file.is_file():
            return file
    what = KNOWN.get(name.removesuffix(PACKED))
    told = f" ({what.form}; from {what.source}, {what.licence})" if what else ""
    raise ValueError(
        f"{name}{told} must lie in the folder that LOUPE_CORPORA names, and {repr(folder) if folder else 'no folder'} "
        "is named; put it there, or name its folder with make checkpoints CORPORA=..."
    )


def unpack(raw: bytes, name: str) -> bytes:
    """Contents of an .xz file, or `raw` itself of another. Raises ValueError for a damaged or too large one."""
    if not name.endswith(PACKED):
        return raw
    opened = lzma.LZMADecompressor(memlimit=2**28)
    try:
        text = opened.decompress(raw, budget.max_data + 1)
    except lzma.LZMAError as error:
        raise ValueError(f"{name} must be a file packed by xz, got {error}; fetch it again.") from None
    if len(text) > budget.max_data:
        raise ValueError(
            f"{name} may have {budget.max_data / 2**20:,.0f} MiB when it is unpacked, and has more; take a part of it, "
            "or raise LOUPE_MAX_DATA_MIB where Loupe is started."
        )
    if not opened.eof:
        raise ValueError(f"{name} must be a whole file packed by xz, got only its beginning; fetch it again.")
    return text


def describe(path: str) -> dict[str, Any]:
    """Facts for a card of a file that was learned from: `bytes` and `sha256` are those of the text that it holds."""
    file = locate(path)
    raw, name = unpack(file.read_bytes(), file.name), file.name.removesuffix(PACKED)
    told = {"source": KNOWN[name].source, "licence": KNOWN[name].licence} if name in KNOWN else {}
    return {"file": name, **told, "bytes": len(raw), "sha256": sha256(raw).hexdigest()}
