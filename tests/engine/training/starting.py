"""Processes that train, forked from one that has imported everything, so that each starts in a moment."""

import os
import socket
import sys
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

PRELOADED = ["engine.cli.main", "engine.training.loop", "tests.engine.training.starting"]


def command(arguments: list[str], environment: Mapping[str, str]) -> None:
    from engine.cli.main import main

    os.environ |= environment
    torch.set_num_threads(1)
    status = main(arguments)
    if "torch.distributed.fsdp" not in sys.modules:  # whose mesh keeps the group to the end
        threads = {one.read_text().strip() for one in Path("/proc/self/task").glob("*/comm")}
        assert not [name for name in threads if "gloo" in name], "a thread of Gloo can crash an interpreter that ends"
    raise SystemExit(status)


def start(recipe: Path, folder: Path, environment: Mapping[str, str] | None = None) -> BaseProcess:
    """`python -m engine train`, but for what a fork of such a process does not need."""
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    arguments = ["train", str(recipe), "--out", str(folder), "--quiet"]
    process = context.Process(target=command, args=(arguments, dict(environment or {})))
    process.start()
    return process


def together(recipe: Path, folder: Path, count: int) -> None:
    """`count` processes that train `recipe` in `folder`."""
    begin_together(count, lambda place: start(recipe, folder, place))


def begin_together(count: int, begin: Callable[[Mapping[str, str]], BaseProcess]) -> None:
    """Begins `count` processes, each with the variables that torchrun sets, and waits until all have ended well."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port = str(opened.getsockname()[1])
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    processes = [begin(shared | {"RANK": str(n), "LOCAL_RANK": str(n)}) for n in range(count)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * count
