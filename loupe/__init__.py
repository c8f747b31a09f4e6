"""Loupe as a package: `import loupe` makes the engine and the views importable, from a checkout and from a wheel.

loupe.load, loupe.run, loupe.generate    the engine's, loaded when first asked for
loupe.show                               a run in the cell of a notebook, as `views.notebook` draws it
"""

import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine import generate, load, run
    from views.notebook import show

__all__ = ["generate", "load", "run", "show"]
__version__ = "0.1.0"  # where no tag of git says another (setup.py)

HERE = Path(__file__).resolve().parent
HOME = HERE if (HERE / "engine").is_dir() else HERE.parent  # a wheel puts all of it in here, a checkout has it beside
PLACES = {"load": "engine", "run": "engine", "generate": "engine", "show": "views.notebook"}
if HOME == HERE:
    __version__ = version("loupe-engine")

if str(HOME) not in sys.path:
    sys.path.append(str(HOME))
_found = find_spec("engine")
if _found is None or _found.origin is None or Path(_found.origin).resolve().parent != HOME / "engine":
    at = "nothing" if _found is None else _found.origin or "a folder without __init__.py"
    raise ImportError(f"engine must be Loupe's, in {HOME}, got {at}; run Python where no other module has that name.")


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"loupe has {', '.join(__all__)}, got {name}.")
    return getattr(import_module(PLACES[name]), name)
