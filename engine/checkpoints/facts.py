"""Facts about a checkpoint: its files, and what its makers say of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.checkpoints.adapters.config import is_adapter
from engine.checkpoints.llama2c import is_llama2c
from engine.checkpoints.locate import CheckpointLocation
from engine.checkpoints.weights import read_json, shards

BESIDE = re.compile(
    r"(.*config|generation_config|card|answer_key|vocab|tokenizer|special_tokens_map|added_tokens|tekken)\.json|"
    r"chat_template\.(json|jinja)|(merges|vocab)\.txt|.*\.(model|spm)|README\.md|(LICEN[CS]E|COPYING)([.-]\w+)?",
    re.IGNORECASE,
)
README_BYTES = 2**16  # bytes of a README or a licence
LONGEST_SUMMARY = 600  # letters of it
MARKS = (
    (re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL), "\n"),  # comments
    (re.compile(r"```.*?(?:```|\Z)", re.DOTALL), ""),  # code
    (re.compile(r"^#.*$", re.MULTILINE), "\n"),  # headings
    (re.compile(r"!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)"), ""),  # pictures
    (re.compile(r"\[([^\]\n]{0,200})\]\([^)\n]{0,500}\)"), r"\1"),  # links
)
TEMPLATE = re.compile(  # what the cards of huggingface_hub, PEFT, TRL and transformers say before anybody fills them in
    r"more information needed|\{\{|\{%|^use the code below to get started with the model\.$"
    r"|^carbon emissions can be estimated using|^cite .{1,80} as:$|^this model is a fine-tuned version of none\b",
    re.IGNORECASE,
)
LICENCE_FILE = re.compile(r"(LICEN[CS]E|COPYING)([.-]\w+)?", re.IGNORECASE)
TITLES = (  # of the usual texts, by what their first lines say (SPDX's names)
    (re.compile(r"\bMIT License\b|Permission is hereby granted, free of charge, to any person", re.IGNORECASE), "MIT"),
    (re.compile(r"Apache License\W+Version 2\.0", re.IGNORECASE), "Apache-2.0"),
    (re.compile(r"GNU AFFERO GENERAL PUBLIC LICENSE\W+Version 3", re.IGNORECASE), "AGPL-3.0"),
    (re.compile(r"GNU LESSER GENERAL PUBLIC LICENSE\W+Version 3", re.IGNORECASE), "LGPL-3.0"),
    (re.compile(r"GNU GENERAL PUBLIC LICENSE\W+Version 3", re.IGNORECASE), "GPL-3.0"),
    (re.compile(r"GNU GENERAL PUBLIC LICENSE\W+Version 2", re.IGNORECASE), "GPL-2.0"),
    (re.compile(r"Mozilla Public License\W+Version 2\.0", re.IGNORECASE), "MPL-2.0"),
    (re.compile(r"BSD 3-Clause|Neither the name of", re.IGNORECASE), "BSD-3-Clause"),
    (re.compile(r"BSD 2-Clause", re.IGNORECASE), "BSD-2-Clause"),
    (re.compile(r"CC0 1\.0 Universal", re.IGNORECASE), "CC0-1.0"),
    (re.compile(r"Attribution 4\.0 International", re.IGNORECASE), "CC-BY-4.0"),
)
FIELD = re.compile(r"^(licen[cs]e|license_name):[ \t]*['\"]?([^'\"\n#]+)", re.MULTILINE)


@dataclass(frozen=True)
class Facts:
    """`files` are names and bytes, the weights first. `format` is whose way of writing a model it is, `model_type` of
    config.json. `licence` and `says` are the makers' own words, "" where there are none; a licence that stands in a
    file alone is called by its SPDX name, or by the name of the file."""

    files: tuple[tuple[str, int], ...]
    format: str
    architecture: str
    licence: str
    says: str

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)


def read_facts(place: CheckpointLocation, card: Mapping[str, Any] | None = None) -> Facts:
    """Collect the facts; `card` is that of the checkpoint.

    Raises ValueError for a config.json or an index that is not one.
    """
    config = place.find("config.json")
    theirs = read_json(config) if config else {}
    named = theirs.get("architectures")
    readme = _read_start(place.find("README.md"))
    front, body = _split_readme(readme)
    fields = {name.replace("licence", "license"): value.strip() for name, value in FIELD.findall(front)}
    licence = fields.get("license", "")
    stated = fields.get("license_name", licence) if licence == "other" else licence
    card = card or {}
    return Facts(
        files=tuple((path.name, path.stat().st_size) for path in _list_files(place)),
        format="PEFT" if is_adapter(place) else str(theirs.get("model_type") or _format_without_config(place)),
        architecture=str(named[0]) if isinstance(named, list) and named else "",
        licence=str(card.get("licence") or stated or _licence_of_file(place)),
        says=str(card.get("about") or body)[:LONGEST_SUMMARY],
    )


def _licence_of_file(place: CheckpointLocation) -> str:
    """Licence whose text lies beside the weights, "" without one."""
    here = (path for folder in place.folders for path in sorted(folder.iterdir()) if path.is_file())
    file = next((path for path in here if LICENCE_FILE.fullmatch(path.name)), None)
    if file is None:
        return ""
    text = _read_start(file)
    return next((name for title, name in TITLES if title.search(text)), f"see {file.name}")


def _list_files(place: CheckpointLocation) -> list[Path]:
    indexed = place.weights.name.endswith(".index.json")
    weights = [*(shards(place.weights) if indexed else ()), place.weights]
    here = [path for folder in place.folders for path in sorted(folder.iterdir()) if path.is_file()]
    return [*weights, *(path for path in here if BESIDE.fullmatch(path.name) and path not in weights)]


def _format_without_config(place: CheckpointLocation) -> str:
    """The format of weights without a config.json."""
    if place.weights.suffix == ".bin" and is_llama2c(place.weights):
        return "llama2.c"
    if place.weights.suffix == ".gguf":
        return "GGUF"
    return "nanoGPT" if place.weights.suffix in (".pt", ".pth") else "weights alone"


def _read_start(path: Path | None) -> str:
    if path is None:
        return ""
    with path.open("rb") as file:
        return file.read(README_BYTES).decode("utf-8", "replace")


def _split_readme(readme: str) -> tuple[str, str]:
    """Split a README into its front matter and its first paragraph, as plain words, that is no template's."""
    front, body = "", readme
    if readme.startswith("---"):
        front, _, body = readme.removeprefix("---").partition("\n---")
    for marks, left in MARKS:
        body = marks.sub(left, body)
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", body))
    own = (part for part in paragraphs if part and part[0].isalnum() and not TEMPLATE.search(part))
    return front, next(own, "")
