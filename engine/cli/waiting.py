"""The script of a trainer process that waits for a run, which `engine.training.launch.warm_trainer` starts.

It imports the standard library only at first.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from contextlib import suppress
from threading import Thread

BACKGROUND = 5  # added to the niceness of the server
PART = 2**16  # bytes of the message that are received at once
DESCRIPTORS = 3


def main(root: str, descriptor: str) -> None:
    """Waits for a run and trains it; ends where the server does before. The packages lie in `root`."""
    sys.path.insert(0, root)
    from engine.json_text import parse_json

    gc.disable()  # of what is imported nothing becomes garbage
    imports = Thread(target=import_trainer, daemon=True)
    imports.start()
    with socket.socket(fileno=int(descriptor)) as link:
        message, descriptors, _, _ = socket.recv_fds(link, PART, DESCRIPTORS)
        while message and not message.endswith(b"\n"):
            part = link.recv(PART)
            message = message + part if part else b""
        if not message:
            os._exit(0)  # also where the thread is still importing
        os.setsid()
        link.send(b"\n")
    _, starter, log = descriptors  # the first is the ticket's, whose lock it holds as long as this process lives
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    order = parse_json(message)
    os.environ |= order["environment"]
    raise_priority(imports)
    imports.join()
    gc.freeze()
    gc.enable()

    from engine.cli.main import main as run_command
    from engine.training.launch.turn import wait_for_turn

    runs, folder, ticket = order["turn"]
    wait_for_turn(runs, folder, ticket, starter)
    raise SystemExit(run_command(order["arguments"]))


def raise_priority(imports: Thread) -> None:
    """Gives a thread that still imports the priority of this one, where the system lets this process do so."""
    if sys.platform == "linux" and imports.native_id is not None:
        with suppress(PermissionError, ProcessLookupError):  # without privileges; or it has ended
            os.setpriority(os.PRIO_PROCESS, imports.native_id, os.getpriority(os.PRIO_PROCESS, 0))


def import_trainer() -> None:
    """Imports what a training needs up to its first update, in this thread, at a low priority."""
    if sys.platform == "linux":  # where it is the priority of this thread alone
        os.nice(BACKGROUND)

    import torch

    import engine.cli.main  # noqa: F401
    from engine.data.kinds import data_kinds
    from engine.training.objectives import objectives

    objectives()
    data_kinds()
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.AdamW([weight], fused=True)  # the first one imports PyTorch's compiler
    weight.grad = torch.zeros(1)
    optimiser.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
