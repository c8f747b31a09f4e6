"""Trial of an upload in a process of its own, with limits of memory and time, before the server reads any of it.

The steps of a tokenizer are run by a library in Rust, which ends the process where it gets no memory, and which nobody
can interrupt; a pickle of a few megabytes can keep its reader busy for hours. So what an upload does to its reader is
found out where it harms nobody. Nothing comes back but the verdict: the server then reads the same bytes, which nobody
else can write to, with the same code, so it meets nothing that the trial did not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from engine.checkpoints.llama2c import is_llama2c, read_llama2c
from engine.checkpoints.locate import locate
from engine.checkpoints.save import unpack_header
from engine.checkpoints.weights import Weights, open_weights
from engine.places import ROOT
from engine.tokenizers import read_tokenizer

MEMORY = 4 * 2**30  # bytes of addresses, besides those of the files; a tokenizer of 256,000 entries takes a quarter
SECONDS = 20  # of the processor
PATIENCE = 60  # seconds, on a machine that has other things to do
REFUSED = 3  # exit status after a sentence about the weights
TEXT = (
    "The cat sat on the mat, and it didn't move;  2 + 40 = 42.\n\n\tÉtés, naïve cafe\u0301, ﷺ ½ 中文 한국어 שלום 👩 "
    f"<s>[CLS]</s> def f(x): return x ** 2  # {'a' * 40}! {'ab' * 40}? {'1' * 40} {' ' * 40}{'.' * 40}"
)
AT_WEIGHTS, AT_TOKENIZER = "weights\n", "tokenizer\n"  # printed when the trial comes to them


def check_upload(folder: Path) -> None:
    """Raises ValueError for an upload whose weights do not open, or whose reading takes too much. What is otherwise
    wrong with it is found when it is opened."""
    with TemporaryDirectory(prefix="loupe-trial-") as scratch:
        try:
            ended = subprocess.run(
                [sys.executable, "-m", "engine.checkpoints.trial", str(folder.resolve()), str(MEMORY), str(SECONDS)],
                timeout=PATIENCE, check=False, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env={
                    **os.environ, "TMPDIR": scratch, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false",
                    "RUST_BACKTRACE": "0",
                },
            )  # fmt: skip
            status, printed = ended.returncode, ended.stdout
        except subprocess.TimeoutExpired as late:
            status, printed = None, late.stdout or b""
    said = printed.decode(errors="replace")
    if status == REFUSED:
        raise ValueError(said.removeprefix(AT_WEIGHTS))
    if status != 0:
        limits = f"within {SECONDS} s and {MEMORY // 2**30} GiB of memory"
        raise ValueError(
            f"the tokenizer must read a short text {limits}, and does not; do not trust it, or upload the other files "
            "without it."
            if said.endswith(AT_TOKENIZER)
            else f"the weights must open {limits} besides their own, and do not; do not trust them."
        )


def main(folder: str, memory: str, seconds: str) -> int:
    """Opens the weights of a folder, then its tokenizer, and reads a text with it. Returns the exit status.

    A process that gets no further ends with another. It is 0 also where a sentence is left to the server.
    """
    limit_process(Path(folder), int(memory), int(seconds))
    print(AT_WEIGHTS, end="", flush=True)
    try:
        place = locate(folder)
    except (ValueError, FileNotFoundError):
        return 0
    try:
        weights = open_all(place.weights)
    except (ValueError, FileNotFoundError) as error:
        sys.stdout.buffer.write(str(error).encode(errors="replace"))
        return REFUSED
    print(AT_TOKENIZER, end="", flush=True)
    with suppress(ValueError), unpack_header(place, weights.metadata, weights.beside) as beside:
        for one in beside.folders:
            tokenizer = read_tokenizer(one)
            if tokenizer is not None:
                tokenizer.decode(tokenizer.encode(TEXT).ids)
    return 0


def open_all(path: Path) -> Weights:
    """Weights as `load` opens them, with each tensor asked for once. Raises ValueError for what is no such file."""
    if path.suffix == ".bin" and is_llama2c(path):
        return read_llama2c(path)[2]
    weights = open_weights(path)
    for name in weights:
        with suppress(ValueError):  # about one tensor, which no model may ask for
            weights[name]
    return weights


def limit_process(folder: Path, memory: int, seconds: int) -> None:
    """Limits what this process may take from now on, and lets the system end it before others where memory is short.

    The files of `folder` may be mapped twice, by their format's library and by PyTorch.
    """
    if sys.platform == "win32":
        return
    import resource

    limits = {resource.RLIMIT_CPU: int(process_time()) + seconds, resource.RLIMIT_CORE: 0}
    if sys.platform == "linux":
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        mapped = 2 * sum(file.stat().st_size for file in folder.iterdir())
        limits[resource.RLIMIT_AS] = taken + mapped + memory
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")
    for limit, most in limits.items():
        resource.setrlimit(limit, (most, most))


if __name__ == "__main__":
    status = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # taking PyTorch apart would take longer than most trials
