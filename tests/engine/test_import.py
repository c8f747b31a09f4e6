"""What imports the engine stays as it was: no settings of its folder, no variable, no other library changed."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK = """
import gc, os, sys
from huggingface_hub import constants
told, before = dict(os.environ), dict(vars(constants))
import engine, engine.checkpoints.hub, engine.cli.main, engine.runtime.library, engine.training.trainer
assert dict(os.environ) == told, set(os.environ.items()) ^ set(told.items())
assert vars(constants) == before
assert gc.isenabled()
found = {"streamlit", "pandas", "sqlalchemy", "server", "pages", "views"} & sys.modules.keys()
assert not found, found
from engine.budget import Budget, budget
assert budget == Budget()
"""


def test_a_bare_interpreter_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "loupe.toml").write_text("max_tokens = 'many'\nno_such_setting = 1\n", encoding="utf-8")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text(CHECK, encoding="utf-8")  # imported while sys.argv begins with "-m"
    (tmp_path / "mine" / "__main__.py").touch()
    environment = {"PYTHONPATH": str(ROOT), "LOUPE_MAX_TOKENS": "many"}
    command = [sys.executable, "-m", "mine"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_what_needs_no_model_loads_no_pytorch() -> None:
    """The front of several processes, and whatever asks the engine for a number, start in a fraction of the time."""
    check = "import sys, engine.budget, server.http.workers; assert 'torch' not in sys.modules; engine.load"
    ended = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
