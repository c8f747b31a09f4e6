"""Processes that train, forked from one that has imported everything, so that each starts in a moment."""

import os
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch

PRELOADED = ["engine.cli.main", "engine.training.loop", "tests.engine.training.starting"]


def command(arguments: list[str], environment: Mapping[str, str]) -> None:
    from engine.cli.main import main

    os.environ |= environment
    torch.set_num_threads(1)
    raise SystemExit(main(arguments))


def start(recipe: Path, folder: Path, environment: Mapping[str, str] | None = None) -> BaseProcess:
    """`python -m engine train`, but for what a fork of such a process does not need."""
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    arguments = ["train", str(recipe), "--out", str(folder), "--quiet"]
    process = context.Process(target=command, args=(arguments, dict(environment or {})))
    process.start()
    return process
