"""A corpus of one's own: the texts of a file, and what a model reads of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from engine.checkpoints import Checkpoint
from engine.data.table import read_table
from engine.data.text import read_text
from engine.inputs import readers
from engine.inputs.readers import Reading
from engine.inputs.samples import legible

MOST = 20_000  # characters of a text of a corpus, of which the first few hundred tokens are looked at


@dataclass(frozen=True)
class Corpus:
    """Texts of the file `name`."""

    name: str
    texts: tuple[str, ...]

    @cached_property
    def digest(self) -> str:
        return blake2b("\0".join(self.texts).encode(), digest_size=16).hexdigest()


def read_corpus(path: Path | str, column: str = "") -> Corpus:
    """The paragraphs of a .txt file, or its lines where no empty line parts it; of a table the texts of a column, the
    first where none is named. Raises ValueError, in one sentence, as the readers of data do."""
    path = Path(path)
    if path.suffix.lower() == ".txt":
        text = read_text(path).strip()
        parts = re.split(r"\n\s*\n", text)
        return Corpus(path.name, tuple(part.strip() for part in (parts if len(parts) > 1 else text.split("\n"))))
    table = read_table(path)
    return Corpus(path.name, table.texts(column or table.columns[0]))


def legible_texts(checkpoint: Checkpoint, corpus: Corpus, count: int) -> list[str]:
    """Selects, of the first `count` texts, those of which the model knows nine tokens in ten, each as far as it is
    read: no more than `MOST` of its characters.

    Raises ValueError for a model that reads no text without a gap or a picture, and where there is none."""
    wanted, tokenizer = readers.kind(checkpoint), checkpoint.tokenizer
    if wanted in ("picture", "pixels", "infill"):
        reads = "fills gaps in a text" if wanted == "infill" else "reads pictures"
        raise ValueError(f"A corpus is for a model that reads whole texts, and this one {reads}; choose another model.")
    first = [text[:MOST] for text in corpus.texts[:count]]
    found = [text for text in first if (readers.readable if tokenizer is None else legible)(checkpoint, text)]
    if not found:
        needs = "it has no tokenizer and reads token ids such as 12 7 40" if tokenizer is None else "its vocabulary "
        needs += "" if tokenizer is None else "lacks their words"
        raise ValueError(f"This model can read no text of {corpus.name}: {needs}; choose another file or model.")
    return found


def corpus_readings(checkpoint: Checkpoint, texts: list[str], limit: int) -> Iterator[Reading]:
    """A reading of each text, cut to `limit` tokens; an encoder-decoder writes the target."""
    limit = min(limit, checkpoint.model.config.context)
    for text in texts:
        if readers.kind(checkpoint) == "translation":
            yield readers.read_translation(checkpoint, text, "", limit)
        else:
            yield readers.read_text(checkpoint, text, limit)
