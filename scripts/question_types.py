"""`python -m scripts.question_types` writes assets/views/core/questions.d.ts, the types of every page's questions.

The JavaScript is checked against them; a test holds the file equal to what the registries say.
"""

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pages.controls
import views
from views.core.questions import Registry, javascript_types

PLACE = Path(__file__).resolve().parents[1] / "assets" / "views" / "core" / "questions.d.ts"


def registries() -> list[Registry]:
    """Every registry of a module of views/ and pages/controls/, in the order of their modules."""
    found: dict[int, Registry] = {}
    for package in (views, pages.controls):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            values = vars(import_module(module.name)).values()
            found |= {id(value): value for value in values if isinstance(value, Registry)}
    return list(found.values())


if __name__ == "__main__":
    PLACE.write_text(javascript_types(*registries()), encoding="utf-8")
