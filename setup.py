"""Puts the program into the one folder that a wheel installs, `loupe/`, as it lies here; all else says pyproject.toml.

An editable install finds everything where it is.
"""

import tomllib
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
FOLDERS = ("engine", "views", "pages", "server", "corpora", "assets", ".streamlit")
FILES = ("app.py", "asgi.py", "LICENSE")
LEFT_OUT = ("__pycache__", "*.pyc", "readme")  # the last are the pictures of README.md


class OneFolder(build_py):
    def run(self) -> None:
        if self.editable_mode:
            return super().run()
        self.packages = ["loupe"]
        super().run()
        place = Path(self.build_lib, "loupe")
        for folder in FOLDERS:
            copytree(ROOT / folder, place / folder, ignore=ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)
        for file in FILES:
            copy2(ROOT / file, place / file)
        fetched = tomllib.loads((ROOT / "assets" / "checkpoints" / "fetched.toml").read_text(encoding="utf-8"))
        for name in fetched:  # once, by who asks for it
            (place / "assets" / "checkpoints" / name / "model.safetensors").unlink()


setup(cmdclass={"build_py": OneFolder})
