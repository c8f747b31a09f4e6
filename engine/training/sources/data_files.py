"""What a run learns from, noticed when it has changed between two starts: data/files.json has a hash of each file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from hashlib import blake2b, file_digest
from pathlib import Path

from engine.data.kinds.hub import Hub
from engine.data.published import PREFIX, locate
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.link import FILES
from engine.training.run.atomic import read_json, write_json
from engine.training.run.folder import RunFolder

NAME = "files.json"


def check_unchanged(data: Data, run: RunFolder) -> None:
    """Raises ValueError where a run that has learned goes on with other data than it began with: numbers of labels and
    of rows, and the ids that are kept, are those of before. One that has learned nothing yet begins with what there is.
    """
    kept, now = read_json(run.data / NAME), dict(hash_files(data))
    if kept == now or (kept is None and not now):
        return
    changed = [option for option in now if kept is not None and kept.get(option) != now[option]]
    if changed and run.weights.exists():
        option = changed[0]
        name = Path(str(getattr(data.table, option))).name
        raise ValueError(
            f"data.{data.kind}.{option} must be what this training began with, and {name} has changed since; bring "
            "back what it was, or train anew, with this run as the base if its weights are to be kept."
        )
    for file in run.data.glob("tokens-*.safetensors") if changed else ():
        file.unlink()
    run.data.mkdir(parents=True, exist_ok=True)
    write_json(run.data / NAME, now)


def hash_files(data: Data) -> Iterator[tuple[str, str]]:
    """The options of the data that name files, each with a hash of its bytes; those that are not there are left to who
    reads them. A data set of the hub has one of its rows."""
    if isinstance(data.table, Hub):
        yield "name", blake2b(repr(data.table.table()).encode(errors="surrogatepass"), digest_size=16).hexdigest()
    for option, value in ((one.name, getattr(data.table, one.name)) for one in fields(data.table)):
        if isinstance(value, str) and value and (option in FILES or value.startswith(PREFIX)):
            file = locate(value)
            if file.is_file():
                with file.open("rb") as opened:
                    yield option, file_digest(opened, lambda: blake2b(digest_size=16)).hexdigest()
