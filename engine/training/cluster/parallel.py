"""Several processes on one run. Under `torchrun` each reads its share of every batch, and gradients are added up.

Only rank 0 writes to the run directory; the others do as it says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor, distributed

PATIENCE = timedelta(hours=12)  # of those that wait while the first one measures and writes; torchrun ends all with one
T = TypeVar("T")
Given = ParamSpec("Given")


@dataclass(frozen=True)
class Call:
    """Request of the first process that the others do something with it: a method of theirs, by name."""

    method: str
    given: tuple[object, ...]


class Peers:
    """This process among `count`; alone, every method is free. Where a machine has fewer cards than processes, several
    share one."""

    def __init__(self, rank: int = 0, count: int = 1, local_rank: int = 0) -> None:
        self.rank, self.count, self.local_rank = rank, count, local_rank

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def device(self, kind: str) -> torch.device:
        cards = max(torch.cuda.device_count(), 1)
        return torch.device("cuda", self.local_rank % cards) if kind == "cuda" else torch.device(kind)

    def all_reduce_sum(self, tensors: Sequence[Tensor]) -> None:
        """Adds up each tensor over all processes, in place."""
        if self.count > 1:
            flat = torch.cat([tensor.flatten() for tensor in tensors])
            distributed.all_reduce(flat)
            for tensor, total in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
                tensor.copy_(total.view_as(tensor))

    def agree(self, value: T) -> T:
        """Returns what rank 0 has."""
        if self.count == 1:
            return value
        told = [value]
        distributed.broadcast_object_list(told)
        return told[0]

    @contextmanager
    def leader_first(self) -> Iterator[None]:
        """Rank 0 runs the block before the others do, so that they find the files it made."""
        if self.count > 1 and not self.leads:
            distributed.barrier()
        yield
        if self.count > 1 and self.leads:
            distributed.barrier()


def together(method: Callable[Concatenate[Any, Given], T]) -> Callable[Concatenate[Any, Given], T]:
    """Method of what has `peers` that all processes run, once the first one runs it and the others wait for orders."""

    @wraps(method)
    def run(self: Any, *given: Given.args, **options: Given.kwargs) -> T:
        if self.peers.leads:
            self.peers.agree(Call(method.__name__, given))
        return method(self, *given, **options)

    return run


def leads() -> bool:
    """Tells whether this process is alone, or the first of those that `torchrun` started."""
    return os.environ.get("RANK", "0") == "0"


def backend(device: str, local: int) -> str:
    """Name of the library that adds up the gradients of `local` processes of a machine: NCCL, which wants a card for
    each of them, or Gloo, in host memory."""
    return "nccl" if device == "cuda" and local <= torch.cuda.device_count() else "gloo"


@contextmanager
def peers(device: str) -> Iterator[Peers]:
    """Finds the processes that `torchrun` started, by the variables it sets; alone where it did not."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Peers()
        return
    here = Peers(int(os.environ["RANK"]), count, int(os.environ.get("LOCAL_RANK", "0")))
    # Its functions have as a default the group that there is when they are imported: imported later, they would keep
    # it, and its threads would end with the interpreter, which they can crash.
    import torch.distributed.nn.functional

    if device == "cuda":
        torch.cuda.set_device(here.device(device))  # where NCCL puts what is no tensor
    added = backend(device, int(os.environ.get("LOCAL_WORLD_SIZE", count)))
    distributed.init_process_group(added, timeout=PATIENCE)
    try:
        yield here
    finally:
        distributed.destroy_process_group()
