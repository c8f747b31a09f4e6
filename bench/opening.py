"""Opening a checkpoint: how long until the first logits, and the memory it takes at its peak."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import transformers
from safetensors.torch import load_file, save_file

from bench.models import GPT2_SMALL
from bench.paired import Row, paired
from engine import load, run
from engine.checkpoints import Checkpoint
from engine.model.transformer import Transformer, initialise

SHARDS = 3
MOST = 1.15  # times the weights, in the dtype that the model then has

# What a process has in memory, its own pages and those of the file alike, more than before it opened the folder.
PEAK = """
import sys, torch
from pathlib import Path
from engine import load, run

def kib(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))

torch.set_num_threads(1)
run(load("stories").model, [1, 2])  # what is imported and allocated once for all
before = kib("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
model = load(sys.argv[1], dtype=getattr(torch, sys.argv[2]) if sys.argv[2] != "None" else None).model
print((kib("VmHWM") - before) * 1024, sum(p.numel() * p.element_size() for p in model.parameters()))
"""


def rows() -> Iterator[Row]:
    with TemporaryDirectory() as place:
        folder = Path(place) / "single"
        Checkpoint(initialise(Transformer(GPT2_SMALL.config), seed=0)).save(folder)
        yield until_first_logits(folder)
        for name, write in FORMATS.items():
            other = Path(place) / "other"
            other.mkdir()
            (other / "config.json").write_bytes((folder / "config.json").read_bytes())
            write(folder / "model.safetensors", other)
            for dtype in ("float32", "None") if "bfloat16" in name else ("float32",):
                yield peak(name, other, dtype)
            for file in other.iterdir():
                file.unlink()
            other.rmdir()


def until_first_logits(folder: Path) -> Row:
    ids = GPT2_SMALL.ids

    @torch.no_grad()
    def theirs() -> object:
        return transformers.GPT2LMHeadModel.from_pretrained(folder).eval()(ids, use_cache=False).logits

    def ours() -> object:
        return run(load(folder).model, ids, keep="logits")["logits"]

    torch.testing.assert_close(ours(), theirs(), atol=1e-3, rtol=0)
    return paired(f"open + first logits, {GPT2_SMALL.name}", ours, theirs, reach=1.0, note="files in the page cache")


def peak(name: str, folder: Path, dtype: str) -> Row:
    child = subprocess.run([sys.executable, "-c", PEAK, str(folder), dtype], capture_output=True, text=True, check=True)
    took, weights = map(int, child.stdout.split())
    kept = "as stored" if dtype == "None" else f"as {dtype}"
    note = "peak and weights in MB, not ms"
    what = f"peak memory while opening {name}, {kept}"
    return Row(what, took / 1e9, weights / 1e9, took / weights, 1, reach=MOST, note=note)


def single(source: Path, folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(source.read_bytes())


def sharded(source: Path, folder: Path) -> None:
    tensors = load_file(source)
    index = {name: f"model-{number % SHARDS}.safetensors" for number, name in enumerate(tensors)}
    for file in set(index.values()):
        save_file({name: tensor for name, tensor in tensors.items() if index[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))


def pickled(source: Path, folder: Path) -> None:
    torch.save(load_file(source), folder / "pytorch_model.bin")


def halved(source: Path, folder: Path) -> None:
    save_file({n: t.bfloat16() for n, t in load_file(source).items()}, folder / "model.safetensors", {"format": "pt"})


def halved_pickled(source: Path, folder: Path) -> None:
    torch.save({n: t.bfloat16() for n, t in load_file(source).items()}, folder / "pytorch_model.bin")


FORMATS: dict[str, Callable[[Path, Path], None]] = {
    "safetensors": single,
    f"{SHARDS} shards": sharded,
    "pytorch_model.bin": pickled,
    "bfloat16 safetensors": halved,
    "bfloat16 .bin": halved_pickled,
}
