"""Trial of an upload's tokenizer in a process of its own, with limits of memory and time.

Its steps and expressions are run by a library in Rust, which ends the process where it gets no memory, and which nobody
can interrupt. So what an uploaded tokenizer does to a text is found out where it harms nobody; the files of weights
need no trial, as what is in them is looked at before it is read.

This file is also the script of that process, which imports neither PyTorch nor the rest of the engine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ENGINE = Path(__file__).resolve().parents[1]
MEMORY = 4 * 2**30  # bytes of addresses; a tokenizer of 256,000 entries takes a quarter
SECONDS = 20  # of the processor
PATIENCE = 60  # seconds, on a machine that has other things to do
TEXT = (
    "The cat sat on the mat, and it didn't move;  2 + 40 = 42.\n\n\tÉtés, naïve cafe\u0301, ﷺ ½ 中文 한국어 שלום 👩 "
    f"<s>[CLS]</s> def f(x): return x ** 2  # {'a' * 40}! {'ab' * 40}? {'1' * 40} {' ' * 40}{'.' * 40}"
)


def check_upload(folder: Path) -> None:
    """Raises ValueError for an upload whose tokenizer takes too much to read a short text. What is otherwise wrong with
    it is found when it is opened."""
    from engine.checkpoints.locate import locate
    from engine.checkpoints.save import unpack_header
    from engine.checkpoints.weights import safetensors_header

    try:
        place = locate(folder)
        header = safetensors_header(place.weights) if place.weights.suffix == ".safetensors" else {}
        with unpack_header(place, header.get("__metadata__") or {}) as beside:
            harmless = all(survives(one) for one in beside.folders)
    except (ValueError, FileNotFoundError):
        return
    if not harmless:
        raise ValueError(
            f"the tokenizer must read a short text within {SECONDS} s and {MEMORY // 2**30} GiB of memory, and does "
            "not; do not trust it, or upload the other files without it."
        )


def survives(folder: Path) -> bool:
    """Tells whether a process that reads the tokenizer of `folder` and a text with it ends well; also where there is
    none, or it is refused."""
    if not any(
        file.name.startswith(("vocab.", "token")) or file.suffix in (".model", ".spm") for file in folder.iterdir()
    ):
        return True
    try:
        ended = subprocess.run(
            [sys.executable, "-P", __file__, str(folder), str(MEMORY), str(SECONDS)], timeout=PATIENCE, check=False,
            env={**os.environ, "TOKENIZERS_PARALLELISM": "false", "RUST_BACKTRACE": "0"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def main(folder: str, memory: str, seconds: str) -> None:
    """Reads the tokenizer of a folder, and a text with it. A process that gets no further ends with another status."""
    if sys.platform != "win32":
        import resource

        limits = {resource.RLIMIT_AS: int(memory), resource.RLIMIT_CPU: int(seconds), resource.RLIMIT_CORE: 0}
        for limit, most in limits.items():
            resource.setrlimit(limit, (most, most))
    package = ModuleType("engine")  # without its own __init__, which imports PyTorch
    package.__path__ = [str(ENGINE)]
    sys.modules["engine"] = package

    from engine.tokenizers.files import read_tokenizer

    try:
        tokenizer = read_tokenizer(Path(folder))
        if tokenizer is not None:
            tokenizer.decode(tokenizer.encode(TEXT).ids)
    except ValueError:  # a sentence, which the server finds itself
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
