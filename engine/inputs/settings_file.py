"""preprocessor_config.json, or that part of processor_config.json: how pictures or sounds are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.tokenizers.jsonfile import read_object

FILE, NESTED = "preprocessor_config.json", "processor_config.json"
PARTS = ("image_processor", "feature_extractor")  # of the nested file


def find_fields(folder: Path) -> tuple[Path, Any]:
    """File that describes the processor of a folder, and its keys; None for those where there is no such file."""
    if (folder / NESTED).is_file():
        nested = read_object(folder / NESTED)
        part = next((name for name in PARTS if name in nested), None)
        if part is not None:
            return folder / NESTED, nested[part]
    return folder / FILE, read_object(folder / FILE) if (folder / FILE).is_file() else None


def write_fields(folder: Path, fields: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps(fields, indent=2), encoding="utf-8")
