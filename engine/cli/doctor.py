"""`doctor`: what Loupe finds on this machine, where things lie, and a sentence with a command for what is amiss."""

from __future__ import annotations

import argparse
import os
import platform
import webbrowser
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch

from engine.budget import budget
from engine.checkpoints.locate import present_names, shipped_names
from engine.places import ASSETS, DISTRIBUTION, INSTALLED, ROOT, USER, install
from engine.runtime.device import list_cards
from engine.training.launch.machine import Abilities

GIB = 2**30
OLDEST = "Chrome and Edge 111, Firefox 121, Safari 16.4"  # as package.json tells the linter
# What each extra of pyproject.toml is for, and modules that it brings.
EXTRAS = {
    "app": ("the pages", ("streamlit", "uvicorn", "babel")),
    "class": ("class sessions and LTI", ("sqlalchemy", "jwt", "cryptography")),
    "cluster": ("trainings on a cluster, runs in a store, several servers", ("ray", "s3fs", "psycopg")),
    "notebook": ("pictures in notebooks that say what is clicked", ("anywidget",)),
    "compare": ("comparison with transformers and PEFT", ("transformers", "peft")),
    "sound": ("FLAC files, beside WAV", ("soundfile",)),
    "tensorflow": ("TensorFlow's files of weights", ("h5py",)),
    "sign-in": ("sign-in by a provider of identities", ("authlib",)),
}


class Finding(NamedTuple):
    """`amiss` is what is wrong and what to do, "" where all is well."""

    name: str
    told: str
    amiss: str = ""


def add_to(commands: Any) -> None:
    asking = commands.add_parser("doctor", help="what Loupe finds on this machine, and what is amiss")
    asking.set_defaults(run=tell)


def tell(options: argparse.Namespace) -> int:
    """Returns 1 where something is amiss."""
    found = [*look_at_machine(), *look_at_browser(), *look_at_extras(), *look_at_places()]
    for one in found:
        print(f"{one.name:<12} {one.told}".rstrip() + (f"\n{'':<12} ! {one.amiss}" if one.amiss else ""))
    return int(any(one.amiss for one in found))


def look_at_machine() -> Iterator[Finding]:
    yield Finding("Loupe", f"{version(DISTRIBUTION) if INSTALLED else 'a checkout'} in {ROOT}")
    yield Finding("Python", platform.python_version())
    able, cards = Abilities.of_this_machine(), list_cards()
    yield Finding("PyTorch", torch.__version__)
    names = [f"{torch.cuda.get_device_name(card.device)}, {card.free / GIB:.1f} GiB free" for card in cards]
    wants = budget.device.startswith("cuda") and not cards
    remedy = f"the setting device is {budget.device}, and PyTorch sees none such; set LOUPE_DEVICE=cpu"
    yield Finding("device", "; ".join(names) or "CPU", f"{remedy}, or install a PyTorch for it." if wants else "")
    yield Finding("cores", str(able.cores))
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        yield Finding("memory", f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / GIB:.1f} GiB")


def look_at_browser() -> Iterator[Finding]:
    """The one that this person's system opens, where it says; which of them draw does not depend on the machine."""
    try:
        name = getattr(webbrowser.get(), "name", "") or "the system's own"
    except webbrowser.Error:
        name = "none to be opened from here"
    yield Finding("browser", f"{name}  (these draw, or newer ones: {OLDEST})")


def look_at_extras() -> Iterator[Finding]:
    """An extra that nobody asked for is no fault."""
    for extra, (use, modules) in EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
        told = f"not there ({', '.join(missing)}): {install(extra)}" if missing else "there"
        yield Finding(extra, f"{told}  ({use})")


def look_at_places() -> Iterator[Finding]:
    views = ASSETS / "views"
    again = f"the modules of the views must lie in {views}, and do not; install again: {install('app')}"
    yield Finding("assets", str(ASSETS), "" if any(views.glob("*/*.js")) else again)
    here, all_names = present_names(), shipped_names()
    lacking = [name for name in all_names if name not in here]
    told = f"; fetched when asked for: {', '.join(lacking)}" if lacking else ""
    amiss = "" if here else f"no shipped model is here; install again: {install('app')}"
    yield Finding("models", f"{len(here)} of {len(all_names)} shipped are here{told}", amiss)
    if INSTALLED:
        yield Finding("kept in", str(USER))
    for name, place in {"runs": budget.runs_folder, "own models": budget.models_folder}.items():
        yield Finding(name, str(Path(place).absolute()), check_writable(Path(place), name))
    yield Finding("settings", os.environ.get("LOUPE_SETTINGS", "no file"))


def check_writable(folder: Path, name: str) -> str:
    """Sentence for a folder that cannot be written to; one that is not there is made where one is that can be."""
    there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return ""
    setting = f"LOUPE_{name.split()[-1].upper()}"
    return f"{there} must be a folder that you may write to, and is not: chmod u+wx it, or set {setting}."
