"""Puts the program into the one folder that a wheel installs, `loupe/`, as it lies here, and says which version that
is; all else says pyproject.toml.

An editable install finds everything where it is.
"""

import re
import subprocess
import tomllib
from email import message_from_string
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).absolute().parent
FOLDERS = ("engine", "views", "pages", "server", "corpora", "assets", ".streamlit")
FILES = ("app.py", "asgi.py", "LICENSE")
LEFT_OUT = ("__pycache__", "*.pyc", "secrets.toml", "readme")  # the last are the pictures of README.md
TAG = r"v(\d+(?:\.\d+)+(?:(?:a|b|rc)\d+)?)-(\d+)-(g[0-9a-f]+)\n"  # as git describes a commit


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


def version() -> str:
    """That of an sdist; in a checkout the last tag, such as v1.2, and the commits since; else what is written."""
    if (ROOT / "PKG-INFO").is_file():
        return message_from_string((ROOT / "PKG-INFO").read_text(encoding="utf-8"))["Version"]
    written = re.search(r'__version__ = "(.+)"', (ROOT / "loupe" / "__init__.py").read_text(encoding="utf-8"))[1]
    if not (ROOT / ".git").exists():
        return written
    describe = ["git", "-C", str(ROOT), "describe", "--tags", "--long", "--match", "v[0-9]*"]
    try:
        told = subprocess.run(describe, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return written
    found = re.fullmatch(TAG, told)
    if found is None:
        return written
    tagged, commits, commit = found.groups()
    return tagged if commits == "0" else f"{tagged}.post{commits}+{commit}"


setup(cmdclass={"build_py": OneFolder}, version=version())
