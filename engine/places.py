"""Where Loupe's own files lie, and where what is made with it is kept. No other file counts folders upwards.

In a checkout what is made lies below the folder in which Loupe is started, as the settings say; installed from a wheel,
in the person's data folder: an upgrade replaces the folder that holds the program.
"""

import sys
from pathlib import Path

from platformdirs import user_data_path

ROOT = Path(__file__).resolve().parents[1]
INSTALLED = (ROOT / "__init__.py").is_file()  # a wheel puts one there: its folder is the package `loupe`
SCRIPT, SERVER = ROOT / "app.py", ROOT / "asgi.py"
PAGES = ROOT / "pages"
CORPORA = ROOT / "corpora"
ASSETS = ROOT / "assets"
ADAPTERS = ASSETS / "adapters"
CHECKPOINTS = ASSETS / "checkpoints"
RECIPES = [ASSETS / room for room in ("recipes", "lab", "adapt", "preferences")]
USER = user_data_path("loupe", appauthor=False)

# The command line of the engine, for a process and for a person.
COMMAND = (sys.executable, "-m", "loupe" if INSTALLED else "engine")
SAID = "loupe" if INSTALLED else "python -m engine"


DISTRIBUTION = "loupe-engine"


def install(extra: str) -> str:
    """The command that brings what an extra of pyproject.toml lists."""
    return f"pip install '{DISTRIBUTION}[{extra}]'" if INSTALLED else f"pip install -e '{ROOT}[{extra}]'"


def default_folder(kind: str) -> str:
    """Folder of what is made, such as "runs", where no setting names one."""
    return str(USER / kind) if INSTALLED else kind
