"""Trains again what the pages show before anybody trains, and keeps of it what was kept before:
`python -m scripts.recordings assets/adapt/recorded`; without folders all of them, what another rests on first."""

import json
import subprocess
import sys
from pathlib import Path
from shutil import copyfile, copytree, rmtree
from tempfile import TemporaryDirectory

from safetensors import safe_open
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parents[1]
# Recorded run -> the recipe that it follows; its own recipe.toml has what its base added to that.
RECORDED = {
    "assets/lab/recorded": "assets/lab/recorded/recipe.toml",
    "assets/learn/recorded/scaled": "assets/learn/recorded/scaled/recipe.toml",
    "assets/learn/recorded/unscaled": "assets/learn/recorded/unscaled/recipe.toml",
    "assets/adapt/recorded": "assets/adapt/sentiment.toml",
    **{
        f"assets/preferences/recorded/{name}": f"assets/preferences/{name}.toml"
        for name in ("reward", "ppo", "ppo-free", "dpo", "grpo")
    },
}
HALVED = ("assets/adapt/recorded",)  # runs of so many weights that their snapshots are kept in float16


def record(folder: Path, recipe: Path) -> None:
    """Replaces a recorded run by one of its recipe: the same files, snapshots of the same steps, and all frames."""
    kept = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.parent.name != "frames"]
    with TemporaryDirectory() as made:
        run = Path(made) / "run"
        command = [sys.executable, "-m", "engine", "train", str(recipe), "--out", str(run), "--threads", "1", "--quiet"]
        subprocess.run(command, cwd=ROOT, check=True)
        if absent := [str(path) for path in kept if not (run / path).is_file()]:
            raise FileNotFoundError(f"Expected a run of {recipe} with {', '.join(absent)}, which it did not write.")
        rmtree(folder)
        for path in kept:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            copyfile(run / path, folder / path)
        copytree(run / "frames", folder / "frames")
    if folder.relative_to(ROOT).as_posix() in HALVED:
        for file in folder.glob("snapshots/*.safetensors"):
            halve(file)
    status = json.loads((folder / "status.json").read_text())
    (folder / "status.json").write_text(json.dumps({**status, "pid": 1, "host": ""}, indent=1))


def halve(file: Path) -> None:
    """Stores weights in float16, which are read as float32."""
    with safe_open(file, "pt") as weights:
        halves = {name: weights.get_tensor(name).half() for name in weights.keys()}
        metadata = weights.metadata()
    save_file(halves, file, metadata)


if __name__ == "__main__":
    for name in sys.argv[1:] or RECORDED:
        record(ROOT / name, ROOT / RECORDED[name])
        print(f"{name}: recorded again")
