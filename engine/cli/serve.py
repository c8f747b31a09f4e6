"""`serve`, which becomes the server, and `open FOLDER`, which serves a model of one's own first."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from engine.checkpoints.locate import locate, shipped_folder
from engine.places import SERVER, install


def add_to(commands: Any) -> None:
    serving = commands.add_parser("serve", help="serve the app, at http://127.0.0.1:8501 if nothing else is said")
    opening = commands.add_parser("open", help="serve the app with a model of your own before the visitor")
    opening.add_argument("folder", type=Path, help="of a checkpoint, or of a training run")
    for parser in (serving, opening):
        parser.add_argument("--host", default="127.0.0.1", help="(default: 127.0.0.1, this machine alone)")
        parser.add_argument("--port", type=int, help="(default: 8501, or the next that is free)")
        parser.add_argument("--no-open", action="store_true", help="open no browser")
        parser.add_argument("--workers", type=int, default=1, help="processes that share the visitors (default: 1)")
        parser.add_argument("--api", action="store_true", help="answer programs too, who send a token (docs/api.md)")
    serving.set_defaults(run=serve)
    opening.set_defaults(run=open_folder)


def serve(options: argparse.Namespace) -> int:
    """This process becomes the server; it does not return. Raises ValueError where the app's packages are not there."""
    if find_spec("streamlit") is None:
        raise ValueError(f"the app must have its packages, and streamlit is not installed; run {install('app')}.")
    told = [f"--host={options.host}", f"--workers={options.workers}"]
    told += [] if options.port is None else [f"--port={options.port}"]
    told += [f"--{name}" for name in ("no-open", "api") if vars(options)[name.replace("-", "_")]]
    os.execv(sys.executable, [sys.executable, str(SERVER), *told])


def open_folder(options: argparse.Namespace) -> int:
    """Offers what lies beside the folder too, as the setting `models` does."""
    if not options.folder.is_dir():
        raise ValueError(f"open must be given the folder of a checkpoint, got {str(options.folder)!r}, which is none.")
    place = locate(options.folder.resolve()).weights.parent  # that of a run lies in it
    if shipped_folder(place.name) is not None:
        raise ValueError(f"the folder must not be called {place.name!r}, as a shipped model is; give it another name.")
    os.environ |= {"LOUPE_MODELS": str(place.parent), "LOUPE_MODEL": place.name}
    return serve(options)
